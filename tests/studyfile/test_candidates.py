"""A study file whose space is a list of candidates."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import boca
from boca.domain.candidates import Candidates
from boca.domain.errors import InvalidInput
from boca.studyfile import load

ROWS = "name,copper,dose\nA1,0.1,0.001\nA2,0.3,1\nA3,0.5,10\nA4,0.7,0.1\n"
SPACE = 'candidates = "rows.csv"\nlabels = ["name"]\n'


def written(folder: Path, space: str = SPACE, more: str = "") -> Path:
    folder.joinpath("rows.csv").write_text(ROWS)
    script = folder / "alloy.py"
    script.write_text("import sys\nprint({'A1': 1.0, 'A2': 4.0, 'A3': 2.0, 'A4': 3.0}[sys.argv[1]])\n")
    file = folder / "alloys.toml"
    command = f'command = "{sys.executable} {script} {{name}} {{copper}}"\n'
    file.write_text(f"{command}budget = {{ targets = 4 }}\nseed = 0\n{more}[space]\n{space}")
    return file


def test_the_rows_are_searched_and_labels_reach_the_command(tmp_path):
    study = load(written(tmp_path))
    assert isinstance(study.problem.space, Candidates)
    result = boca.maximize(study.objective, study.problem.space, budget=study.budget, seed=study.seed)
    assert sorted(trial.x["name"] for trial in result.history) == ["A1", "A2", "A3", "A4"]
    assert (result.x["name"], result.value) == ("A2", 4.0)


def test_features_may_be_declared_and_rows_repeated(tmp_path):
    more = 'repeat = true\ndose = { type = "float", low = 1e-3, high = 10, log = true }\n'
    space = load(written(tmp_path, SPACE + more)).problem.space
    assert space["dose"] == boca.Float(1e-3, 10, log=True)
    assert space.repeats


def test_constraints_leave_rows_out(tmp_path):
    space = load(written(tmp_path, more='where = ["copper <= 0.4"]\n')).problem.space
    assert space.size == 2


def test_a_parameter_may_be_named_candidates(tmp_path):
    study = written(tmp_path, 'candidates = { type = "int", low = 1, high = 5 }\n')
    study.write_text(study.read_text().replace("{name} {copper}", "A1 {candidates}"))
    assert dict(load(study).problem.space) == {"candidates": boca.Int(1, 5)}


@pytest.mark.parametrize(
    ("space", "words"),
    [
        ('candidates = "other.csv"\n', "cannot be read"),
        ("candidates = 3\n", "path of a CSV file"),
        ('candidates = "rows.csv"\nlabels = "name"\n', "list of columns"),
        ('candidates = "rows.csv"\nlabels = ["nam"]\n', "nam"),
        (SPACE + "repeat = 1\n", "true or false"),
        (SPACE + "dose = 3\n", "space.dose must be a table"),
        (SPACE + 'weight = { type = "float", low = 0, high = 1 }\n', "weight"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path, space, words):
    with pytest.raises(InvalidInput, match=words):
        load(written(tmp_path, space))
