"""A list of candidates in a study file."""

from __future__ import annotations

import sys

import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.studyfile import load
from boca.studyfile.listed import candidates

STUDY = """
objective = "scores:score"
budget = { targets = 3 }
seed = 0
candidates = { file = "compounds.csv", labels = ["name"] }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "compounds.csv").write_text("name,size,kind\nA,1.0,acid\nB,10.0,base\nC,100.0,acid\n")
    (tmp_path / "scores.py").write_text("def score(x): return -x['size']\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_rows_are_the_space(folder):
    space = load("study.toml").problem.space
    assert space == boca.Candidates(folder / "compounds.csv", labels=["name"])
    assert not space.repeats


def test_a_study_of_rows_runs_each_once(folder):
    study = load("study.toml")
    opt = boca.Optimizer(study.problem, budget=study.budget, seed=0)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, study.objective(trial.x))
    assert sorted(t.x["name"] for t in opt.history) == ["A", "B", "C"]
    assert opt.best.x["name"] == "A"


def test_space_describes_columns_and_where_leaves_rows_out(folder):
    more = 'where = ["size <= 50"]\n[space]\nsize = { type = "float", low = 0.5, high = 200, log = true }\n'
    (folder / "study.toml").write_text(STUDY + more)
    space = load("study.toml").problem.space
    assert space["size"] == boca.Float(0.5, 200, log=True)
    assert space.violated({"name": "C", "size": 100.0, "kind": "acid"}) is not None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("compounds.csv", "candidates must be a table"),
        ({}, "candidates.file must name a CSV file"),
        ({"file": "none.csv"}, "candidates: "),
        ({"file": "compounds.csv", "labels": "name"}, "candidates.labels must be a list"),
        ({"file": "compounds.csv", "label": ["name"]}, "may have the keys file, labels, repeat"),
        ({"file": "compounds.csv", "labels": ["name"], "repeat": 1}, "repeat"),
    ],
)
def test_what_is_refused(folder, given, words):
    with pytest.raises(InvalidInput, match=words):
        candidates(given, {}, str(folder))


def test_a_command_may_have_labels_as_placeholders(folder):
    (folder / "measure.py").write_text("import sys\nprint({'A': 1.0, 'B': 2.0, 'C': 3.0}[sys.argv[1]])\n")
    command = f'command = "{sys.executable} measure.py {{name}}"'
    (folder / "study.toml").write_text(STUDY.replace('objective = "scores:score"', command))
    study = load("study.toml")
    assert study.objective({"name": "B", "size": 10.0, "kind": "base"}) == 2.0
