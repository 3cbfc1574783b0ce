"""What to type in a study file where another language was typed."""

from __future__ import annotations

import re
from collections.abc import Iterable

_WORDS_OF_PYTHON = {"True": "true", "False": "false", "None": None}
_NO_UNITS = frozenset({"trials", "n_trials", "evaluations", "iterations", "queries"})
_LINE = re.compile(r"line (\d+)")


def of_syntax(text: str, message: str) -> str:
    """Return a hint for the line of a syntax error, if it has a word of Python; else nothing."""
    found = _LINE.search(message)
    lines = text.splitlines()
    number = int(found[1]) if found else 0
    if not 0 < number <= len(lines):
        return ""
    for word, ours in _WORDS_OF_PYTHON.items():
        if re.search(rf"=\s*{word}\b", lines[number - 1]):
            return f" TOML writes {ours} in lower case." if ours else " TOML has no None: leave the key out."
    return ""


def of_budget(keys: Iterable[str]) -> str:
    """Return a hint if a budget is given in trials; else nothing."""
    if _NO_UNITS.isdisjoint(keys):
        return ""
    return " A trial is no unit, because trials cost different amounts. Type budget = { targets = 30 }."
