"""`boca init`, `boca check` and `boca schema`: from nothing to a study that runs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from cli.studies import command, said


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("options", [(), ("--command",)])
def test_a_new_study_is_checked_tried_and_run(empty, options):
    assert said("init", *options)[0] == 0
    checked = command("check", "study.toml", "--try")
    assert checked.returncode == 0, checked.stderr
    words = " ".join(checked.stdout.split())
    for part in (
        "study: minimize over 2 parameters",
        "a = Float(low=0.001, high=10.0, log=True)",
        "n = Int(low=10, high=100, log=False), target 100",
        "budget: 20 target evaluations",
        "cost: 10 at the cheapest (n = 10), 100 at the target",
        "which buys 20 evaluations at the target, or 200 of the cheapest",
        "runs in 1 worker process of this machine",
        "study.db, which does not exist yet",
        "Trying a = 0.1, b = ",
        "It returned ",
    ):
        assert part in words, (part, words)
    assert not os.path.exists("study.db")


def test_nothing_is_overwritten(empty):
    assert said("init")[0] == 0
    before = (empty / "study.toml").read_text()
    status, words = said("init", "--command")
    assert (status, "already exists" in words) == (2, True)
    assert (empty / "study.toml").read_text() == before
    assert not (empty / "evaluate.sh").exists()


def test_an_evaluation_that_fails_is_told_with_its_output(folder):
    failed = command("check", "study.toml", "--try", BOWL_FAILS="1")
    assert failed.returncode == 1
    assert "It failed after" in failed.stdout
    assert "it broke" in failed.stdout


_STEPS = """
name = "steps"
direction = "minimize"
budget = { targets = 3 }
cost = { epochs = 1 }
[space]
a = { type = "float", low = 0.0, high = 1.0 }
[fidelity]
epochs = { type = "steps", low = 2, high = 9 }
"""

_TRAINING = """
def train(x, z, run):
    assert z["epochs"] == run.end == 2
    for step in run.steps():
        run.report(step, x["a"] + step)
    with run.save() as folder:
        (folder / "made").touch()
"""

_PROGRAM = """
for step in $(seq 1 $BOCA_END); do
    echo "$step $step.5" > "$BOCA_REPORTS"
done
touch "$BOCA_SAVE/new" && mv "$BOCA_SAVE/new" "$BOCA_SAVE/$BOCA_END"
"""


@pytest.mark.parametrize("objective", ['objective = "training:train"', 'command = "sh training.sh {a}"'])
def test_an_evaluation_that_reports_its_steps_is_tried(empty, objective):
    (empty / "study.toml").write_text(f"{objective}\n{_STEPS}")
    (empty / "training.py").write_text(_TRAINING)
    (empty / "training.sh").write_text(_PROGRAM)
    tried = command("check", "study.toml", "--try")
    assert tried.returncode == 0, tried.stdout
    assert "It returned 2.5 in " in tried.stdout
    assert {path.name for path in empty.iterdir()} <= {"study.toml", "training.py", "training.sh", "__pycache__"}


def test_what_is_stored_already_is_said(done):
    status, words = said("check", "study.toml")
    assert status == 0
    assert "where it has 5 trials: boca run would resume it" in words


def test_a_mistake_is_named(folder):
    (folder / "study.toml").write_text((folder / "study.toml").read_text().replace("budget", "buget"))
    status, words = said("check", "study.toml")
    assert status == 2
    assert "got 'buget'" in words


def test_a_command_may_have_a_folder_per_evaluation(empty):
    assert said("init", "--command")[0] == 0
    text = (empty / "study.toml").read_text()
    text = text.replace(
        'command = "./evaluate.sh', 'trial_folders = "runs"\nenvironment = { UNIT = "mm" }\ncommand = "sh study.sh'
    )
    text = text.replace("targets = 20", "targets = 2")
    (empty / "study.toml").write_text(text)
    (empty / "study.sh").write_text('pwd; echo "$UNIT" > unit; "$BOCA_STUDY_FOLDER"/evaluate.sh "$@"\n')
    tried = command("check", "study.toml", "--try")
    assert tried.returncode == 1  # the program is in the folder of the study
    (empty / "study.toml").write_text(text.replace("sh study.sh", f"sh {empty}/study.sh"))
    ran = command("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    trials = json.loads(said("show", "study.db", "study", "--json")[1])
    for trial in trials:
        inside = trial["output"].split()[1]
        assert trial["output"].startswith(f"in {empty}/runs/20")
        assert json.loads(Path(inside, "point.json").read_text()) == {"x": trial["x"], "z": trial["z"]}
        assert Path(inside, "unit").read_text() == "mm\n"
        assert inside in trial["output"].splitlines()[1]


def test_the_schema_is_json(empty):
    assert json.loads(said("schema")[1])["title"] == "A study of boca"
