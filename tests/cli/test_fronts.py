"""A study with several objectives on the command line: a study file, a command as objective, and what is shown."""

from __future__ import annotations

import json
import sys

import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.studyfile import load
from cli.studies import command, said

STUDY = """
name = "two"
objective = "objective:two"
cost = { n = 1 }
budget = { targets = 4 }
seed = 3
strategy = "random"
outcomes = { loss = "minimize", speed = "maximize", recall = { at_least = 0.1 } }
reference = { loss = 3.0 }
[space]
a = { type = "float", low = 0, high = 1 }
[fidelity]
n = { type = "int", low = 1, high = 10 }
"""

OBJECTIVE = """
def two(x, z):
    return {"loss": x["a"] ** 2, "speed": x["a"] - 0.01 * (10 - z["n"]), "recall": 1 - x["a"]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_file_names_objectives_and_limits(folder):
    problem = load("study.toml").problem
    assert dict(problem.objectives) == {"loss": "minimize", "speed": "maximize"}
    assert problem.subject_to == {"recall": boca.AtLeast(0.1)}
    assert problem.reference == {"loss": 3.0}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('direction = "minimize"', "direction = 'minimize' and outcomes are both given"),
        ('value = "loss"', "value = 'loss' and outcomes are both given"),
        ("subject_to = { loss = { at_most = 1 } }", "which outcomes has too"),
    ],
)
def test_what_has_two_meanings_is_refused(folder, line, words):
    (folder / "study.toml").write_text(line + STUDY)
    with pytest.raises(InvalidInput, match=words):
        load("study.toml")
    changed = STUDY.replace('"minimize"', '"small"')
    (folder / "study.toml").write_text(changed)
    with pytest.raises(InvalidInput, match=r"outcomes\['loss'\] is 'small'"):
        load("study.toml")


def test_a_study_runs_and_is_shown(folder):
    ran = command("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    assert "trials on the front" in ran.stdout
    assert "front of 1 " in ran.stderr
    status, lines = said("best", "two.db", "two")
    front = json.loads(said("best", "two.db", "two", "--json")[1])
    assert (status, len(lines.splitlines())) == (0, len(front))
    assert all("loss" in line and "speed" in line for line in lines.splitlines())
    shown = said("show", "two.db", "two")[1]
    assert f"{len(front)} on the front" in shown
    assert "loss" in shown
    assert " value " not in shown.splitlines()[0]
    assert f"front of {len(front)}" in said("show", "two.db")[1]
    assert json.loads(said("show", "two.db", "--json")[1])[0]["front"] == len(front)
    assert "speed" in said("show", "two.db", "two", "--why", "0")[1]
    assert said("show", "two.db", "two", "--best", "2")[0] == 2
    assert said("report", "two.db", "two", "--out", "two.html")[0] == 0
    assert "hypervolume" in (folder / "two.html").read_text().lower()


def test_without_a_front_the_exit_status_is_1(folder):
    (folder / "study.toml").write_text(STUDY.replace("0.1", "2.0"))
    ran = command("run", "study.toml")
    assert ran.returncode == 1
    assert said("best", "two.db", "two")[0] == 1


def test_a_command_writes_its_outcomes(folder):
    script = (
        "import json, os; json.dump({'loss': 1.0, 'speed': 2.0, 'recall': 1.0}, open(os.environ['BOCA_RESULT'], 'w'))"
    )
    (folder / "train.py").write_text(script)
    line = f'command = "{sys.executable} train.py"'
    bare = STUDY.replace(", recall = { at_least = 0.1 }", "")
    (folder / "study.toml").write_text(bare.replace('objective = "objective:two"', line))
    ran = command("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    assert "4 trials on the front" in ran.stdout
