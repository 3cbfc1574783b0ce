"""The table of keys is what the parser takes, what the reference says, and what the schema accepts."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from boca.domain.errors import InvalidInput
from boca.studyfile import file, load
from boca.studyfile.keys import KEYS, KINDS, PARAMETER, schema

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guide" / "study_file.md").read_text()
VALIDATOR = Draft202012Validator(schema())
LEAST = """
objective = "{module}:f"
budget = {{ targets = 3 }}
{more}
[space]
a = {{ type = "float", low = 0, high = 1 }}
[fidelity]
n = {{ type = "int", low = 1, high = 4 }}
"""


def rows(keys):
    return [f"| `{n}` | {k.type} | {k.default} | {k.unit} | {k.meaning} |" for n, k in keys.items()]


@pytest.mark.parametrize("keys", [KEYS, PARAMETER], ids=["study", "parameter"])
def test_the_reference_has_every_key_with_its_type_default_and_unit(keys):
    found = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert [line for line in found if line in rows(keys)] == rows(keys)


def test_the_parser_takes_these_keys_and_no_others(tmp_path):
    assert tuple(KEYS) == file._KEYS
    (tmp_path / "study.toml").write_text("colour = 1\n")
    with pytest.raises(InvalidInput, match="may have the keys " + ", ".join(KEYS)):
        load(tmp_path / "study.toml")


def test_the_schema_is_one():
    Draft202012Validator.check_schema(schema())
    assert json.loads(json.dumps(schema()))["properties"].keys() == KEYS.keys()


def test_the_schema_accepts_every_study_file_of_the_repository():
    found = [*ROOT.glob("examples/**/*.toml"), *ROOT.glob("docs/**/study*.toml")]
    assert found
    for path in found:
        errors = list(VALIDATOR.iter_errors(tomllib.loads(path.read_text())))
        assert not errors, (path, errors)


def test_the_schema_accepts_the_study_files_of_the_documentation():
    blocks = [
        block
        for page in sorted(ROOT.glob("docs/**/*.md"))
        for block in re.findall(r"```toml\n(.*?)```", page.read_text(), re.S)
        if "[space]" in block and "budget" in block
    ]
    assert blocks
    for block in blocks:
        errors = list(VALIDATOR.iter_errors(tomllib.loads(block)))
        assert not errors, (block, errors)


WRONG = [
    'direction = "up"',
    "seed = -1",
    "workers = 0",
    'workers = "2"',
    'executor = { slurm = "x" }',
    'executor = "dask"',
    "environment = { A = 1 }",
    'on_error = "stop"',
    "grace = -1",
    "timeout = 0",
    "max_retries = 1.5",
    "colour = 1",
    "cost = {}",
    "subject_to = { size = { at_most = 1, at_least = 2 } }",
    "memory = 0",
]


@pytest.mark.parametrize("more", WRONG)
def test_the_schema_and_the_parser_refuse_the_same(more, tmp_path):
    (tmp_path / "least.py").write_text("def f(x, z):\n    return x['a']\n")
    text = LEAST.format(module="least", more=more)
    assert list(VALIDATOR.iter_errors(tomllib.loads(text)))
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InvalidInput):
        load(tmp_path / "study.toml")


RIGHT = [
    "",
    'direction = "minimize"',
    'executor = { dask = "tcp://127.0.0.1:8786" }',
    'executor = { ray = "auto" }\nworkers = 3',
    'memory = "4 GB"\nenvironment = { A = "1" }',
    'on_error = "raise"\ngrace = 2.5\ntimeout = 3',
    'where = ["a <= 0.5"]',
    'strategy = { name = "boca", first_c = 0.5 }',
    "cost = { n = 1 }",
    "first = [{ a = 0.5 }]",
]


@pytest.mark.parametrize("more", RIGHT)
def test_the_schema_and_the_parser_accept_the_same(more, tmp_path):
    (tmp_path / "least.py").write_text("def f(x, z):\n    return x['a']\n")
    text = LEAST.format(module="least", more=more)
    assert not list(VALIDATOR.iter_errors(tomllib.loads(text)))
    (tmp_path / "study.toml").write_text(text)
    load(tmp_path / "study.toml")


def test_a_kind_of_parameter_is_one_that_the_parser_takes(tmp_path):
    (tmp_path / "study.toml").write_text('budget = { targets = 3 }\n[space]\na = { type = "colour" }\n')
    of_x = [kind for kind in KINDS if kind != "steps"]  # which are a fidelity
    with pytest.raises(InvalidInput, match=r"type must be one of .*" + ".*".join(of_x)):
        load(tmp_path / "study.toml")
