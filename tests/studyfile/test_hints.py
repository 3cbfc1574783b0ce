"""A study file with a word of another language says what TOML has in its place."""

from __future__ import annotations

import pytest

from boca.domain.errors import InvalidInput
from boca.studyfile import hints, load

STUDY = """name = "m"
command = "./m {a}"
budget = { targets = 6 }
[space]
a = { type = "float", low = 0.1, high = 1, log = true }
"""


@pytest.mark.parametrize(
    ("was", "typed", "words"),
    [
        ("log = true", "log = True", ["line 5", "TOML writes true in lower case"]),
        ("log = true", "log = False", ["TOML writes false in lower case"]),
        ("targets = 6", "targets = None", ["line 3", "leave the key out"]),
        ("{ targets = 6 }", "{ trials = 6 }", ["targets, seconds, cost", "'trials': 6", "budget = { targets = 30 }"]),
        ("{ targets = 6 }", "{ n_trials = 6 }", ["A trial is no unit"]),
        ("targets = 6", "target = 6", ["targets"]),
        ("log = true", "log = yes", ["line 5"]),
    ],
)
def test_a_mistake_is_told_with_what_to_type(tmp_path, was, typed, words):
    file = tmp_path / "m.toml"
    file.write_text(STUDY.replace(was, typed))
    with pytest.raises(InvalidInput) as refused:
        load(file)
    assert [word for word in words if word not in str(refused.value)] == []


def test_no_hint_is_given_where_none_is_known():
    assert hints.of_syntax("a = yes", "Invalid value (at line 1, column 5)") == ""
    assert hints.of_syntax("a = True", "at the end") == ""
    assert hints.of_budget(["targets"]) == ""


def test_a_direction_may_be_short(tmp_path):
    file = tmp_path / "m.toml"
    file.write_text('direction = "min"\n' + STUDY)
    assert load(file).problem.direction == "minimize"
