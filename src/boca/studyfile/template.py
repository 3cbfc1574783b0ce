"""A study file to begin with: what is required, and every other key as a comment."""

from __future__ import annotations

import textwrap
from typing import Final

from boca.studyfile.keys import KEYS

_WIDTH = 100  # characters of a comment

_REQUIRED: Final = """\
# A study of boca.  Next: boca check {file} --try, then boca run {file}
# Every key is explained in the reference: docs/guide/study_file.md

{what}
direction = "minimize"
budget = {{ targets = 20 }}               # what 20 evaluations at full fidelity cost
{cost}
[space]                                 # what is searched
a = {{ type = "float", low = 1e-3, high = 1e1, log = true }}
b = {{ type = "int", low = 1, high = 10 }}
# kind = {{ type = "choice", choices = ["rbf", "linear"] }}
# gamma = {{ type = "float", low = 0.1, high = 1.0, when = {{ kind = ["rbf"] }} }}

[fidelity]                              # what makes an evaluation cheaper; remove it if there is nothing
n = {{ type = "int", low = 10, high = 100 }}  # target = 100: what counts, by default the upper bound
"""

_FUNCTION: Final = (
    'objective = "objective:f"                # the function f of x and z in objective.py, beside this file'
)
_COMMAND: Final = 'command = "./evaluate.sh {a} {b} {n}"    # its last line is the value; or objective = "objective:f"'
_POWERS: Final = (
    "cost = { n = 1 }                        # proportional to n; leave it out to measure seconds instead\n"
)

_EXAMPLES: Final = {
    "name": '"study"',
    "deterministic": "false",
    "first": "[{ a = 0.1 }]",
    "strategy": '"boca"',
    "seed": "0",
    "workers": "2",
    "executor": '{ dask = "tcp://127.0.0.1:8786" }',
    "memory": '"4 GB"',
    "environment": '{ OMP_NUM_THREADS = "1" }',
    "trial_folders": '"runs"',
    "timeout": "600",
    "max_retries": "2",
    "on_error": '"fail"',
    "grace": "0",
    "stop_grace": "10",
    "checkpoints": '"checkpoints"',
    "keep_checkpoints": "50",
    "storage": '"sqlite:///study.db"',
    "where": '["a <= b"]',
    "subject_to": "{ latency = { at_most = 20.0 } }",
    "value": '"loss"',
    "outcomes": '{ loss = "minimize", size = "minimize" }',
    "reference": "{ loss = 1.0, size = 50.0 }",
    "candidates": '{ file = "points.csv", labels = ["name"] }',
}
"""A value for each key that the file shows as a comment; `boca check` accepts any of them with the rest."""

_OF_COMMANDS: Final = ("trial_folders", "stop_grace")

FUNCTION: Final = '''\
"""The objective of the study: one evaluation."""


def f(x, z):
    """Return the value at the point x, evaluated with the fidelity z; both are dicts by name."""
    return (x["a"] - 0.5) ** 2 + 0.01 * x["b"] + 1.0 / z["n"]
'''

COMMAND: Final = """\
#!/bin/sh
# One evaluation: $1 is a, $2 is b, $3 is n.  The last line that it prints is the value.
awk "BEGIN { print ($1 - 0.5) ^ 2 + 0.01 * $2 + 1 / $3 }"
"""


def text(file: str, *, command: bool) -> str:
    """Return the content of a new study file."""
    head, rest = _REQUIRED.split("\n[space]")
    filled = head.format(file=file, what=_COMMAND if command else _FUNCTION, cost=_POWERS)
    return f"{filled}{_optional(command=command)}\n[space]{rest.format()}"


def _optional(*, command: bool) -> str:
    """Return the other keys, each as a comment with its meaning."""
    lines = ["# All that follows is optional."]
    for name, example in _EXAMPLES.items():
        key = KEYS[name]
        if name in _OF_COMMANDS and not command:
            continue
        unit = f", in {key.unit}" if key.unit else ""
        lines += textwrap.wrap(
            f"{key.meaning}{unit}; default: {key.default}", _WIDTH, initial_indent="# ", subsequent_indent="# "
        )
        lines.append(f"#{name} = {example}")
    return "\n".join(lines) + "\n"
