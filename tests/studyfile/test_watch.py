"""A command that passes through steps: what it reports, saves and finds, and how it is stopped."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.execution.executors import stamp
from boca.execution.executors.handle import Plan, Run, evaluate_run
from boca.studyfile import load
from boca.studyfile.command import Command
from execution.executors.run_contract import STUDY, Heard
from support.trainings import loss

TRAINING = """
import json, os, signal, sys
start, end = int(os.environ["BOCA_START"]), int(os.environ["BOCA_END"])
a, save = float(os.environ["BOCA_X_a"]), os.environ["BOCA_SAVE"]
made = json.load(open(os.environ["BOCA_CHECKPOINT"])) if start else 0
assert made == start, (made, start)
reports = open(os.environ["BOCA_REPORTS"], "w")
is_over = []
signal.signal(signal.SIGTERM, lambda *_: is_over.append(1))
print("training from", start)
for step in range(start + 1, end + 1):
    made += 1
    print(step, (a - 0.3) ** 2 + 1.0 / made, file=reports, flush=True)
    with open(f"{save}/.new", "w") as file:
        json.dump(made, file)
    os.rename(f"{save}/.new", f"{save}/{step}")
    if WAITS:
        import time
        for _ in range(int(os.environ.get("TICKS", "30"))):
            if is_over:
                sys.exit(3)
            time.sleep(0.02)
"""


def python(code: str, *, grace: float = 10.0) -> Command:
    source = shlex.quote(code.replace("{", "{{").replace("}", "}}"))
    return Command(f"{shlex.quote(sys.executable)} -I -S -c {source}", ".", ("a", "epochs"), stop_grace=grace)


def shell(script: str, *, grace: float = 10.0) -> Command:
    source = shlex.quote(script.replace("{", "{{").replace("}", "}}"))
    return Command(f"sh -c {source}", ".", ("a", "epochs"), stop_grace=grace)


def evaluate(command: Command, heard: Heard, folder: Path, *, start: int = 0, checkpoint: str | None = None) -> Any:
    plan = Plan(STUDY, 7, 0, start, 5, checkpoint=checkpoint, folder=str(folder))
    return evaluate_run(command, ({"a": 0.5}, {"epochs": 5}), plan, heard)


def test_reports_and_checkpoints_of_a_command_arrive_and_it_goes_on_from_the_last(tmp_path):
    command, heard, later = python(TRAINING.replace("WAITS", "False")), Heard(), Heard()
    report = evaluate(command, heard, tmp_path)
    assert (report.error, report.ended) == (None, True)
    assert heard.reports == [(step, loss({"a": 0.5}, step), None) for step in range(1, 6)]
    step, path = heard.checkpoints[-1]
    assert step == 5
    assert stamp.fits(path, study=STUDY, step=5)
    assert (Path(path) / "5").read_text() == "5"
    short = Heard(stop_at=2)
    report = evaluate(python(TRAINING.replace("WAITS", "True")), short, tmp_path)
    assert (report.error, report.ended, short.steps) == (None, True, [1, 2])  # it exits with 3 where it is stopped
    step, path = short.checkpoints[-1]
    assert step == 2
    report = evaluate(command, later, tmp_path, start=2, checkpoint=path)
    assert report.error is None
    assert later.reports == [(step, loss({"a": 0.5}, step), None) for step in range(3, 6)]
    assert not list(tmp_path.rglob("*.inbox"))


def test_a_command_that_does_not_hear_is_killed(tmp_path):
    deaf = shell('trap "" TERM; echo "1 0.5" > $BOCA_REPORTS; while :; do sleep 0.05; done', grace=0.3)
    began = time.monotonic()
    heard = Heard(stop_at=1)
    report = evaluate(deaf, heard, tmp_path)
    assert (report.error, report.ended, heard.steps) == (None, True, [1])
    assert 0.3 <= time.monotonic() - began < 8


def test_a_command_that_fails_by_itself_has_failed(tmp_path):
    heard = Heard()
    report = evaluate(shell('echo "1 0.5" > $BOCA_REPORTS; echo broken >&2; exit 4'), heard, tmp_path)
    assert report.error.startswith("exit status 4: broken")
    assert heard.steps == [1]


def test_a_result_beside_reports_is_the_value_at_the_last_step(tmp_path):
    heard = Heard()
    report = evaluate(shell('echo "2 0.5" > $BOCA_REPORTS; echo 0.25 > $BOCA_RESULT'), heard, tmp_path)
    assert (report.value, report.ended, heard.steps) == (0.25, False, [2])
    assert evaluate(shell("echo 0.75"), Heard(), tmp_path).value == 0.75
    assert evaluate(shell('echo "5 0.5" > $BOCA_REPORTS; echo 3 epochs'), Heard(), tmp_path).ended


def test_outcomes_are_reported_as_json(tmp_path):
    heard = Heard()
    evaluate(shell("""echo '3 {"loss": 0.5, "size": 7}' > $BOCA_REPORTS"""), heard, tmp_path)
    assert heard.reports == [(3, {"loss": 0.5, "size": 7}, None)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("epoch 1: 0.5", ["'epoch 1: 0.5'", "12 0.37"]),
        ("1 good", ["'1 good'", "a step and a number"]),
        ("9 0.5", ["step 9", "ends at step 5"]),
        ("2 nan", ["nan at step 2"]),
    ],
)
def test_a_line_that_is_no_report_fails_the_trial_and_ends_the_command(line, words, tmp_path):
    report = evaluate(shell(f'echo "{line}" > $BOCA_REPORTS; sleep 60'), Heard(), tmp_path)
    assert [word for word in words if word not in report.error] == []


def test_a_checkpoint_of_an_impossible_step_is_refused(tmp_path):
    report = evaluate(shell('touch $BOCA_SAVE/7; echo "1 0.5" > $BOCA_REPORTS; sleep 60'), Heard(), tmp_path)
    assert "checkpoint 7" in report.error


def test_where_nothing_can_be_continued_there_is_nothing_to_save_to(tmp_path):
    plan = Plan(STUDY, 7, 0, 0, 5)
    said = evaluate_run(shell("echo ${BOCA_SAVE-none} $BOCA_END >&2; echo 1.0"), ({}, {"epochs": 5}), plan, Heard())
    assert said.value == 1.0
    assert Run(plan, Heard()).inbox is None


# Study files ----------------------------------------------------------------------------------------------------------

FILE = """
name = "training"
command = {command}
direction = "minimize"
cost = {{ epochs = 1 }}
budget = {{ targets = 2 }}
strategy = {{ name = "support.trainings:StopAt", step = 2 }}
seed = 1
checkpoints = "kept"
keep_checkpoints = 5
stop_grace = 4.5

[space]
a = {{ type = "float", low = 0, high = 1 }}

[fidelity]
epochs = {{ type = "steps", low = 1, high = 5 }}
"""


def test_a_study_file_says_all_of_it(tmp_path):
    import json

    line = python(TRAINING.replace("WAITS", "True")).line
    (tmp_path / "study.toml").write_text(FILE.format(command=json.dumps(line)))
    study = load(tmp_path / "study.toml")
    assert study.problem.fidelity["epochs"] == boca.Steps(1, 5)
    assert (study.checkpoints, study.keep_checkpoints) == (tmp_path / "kept", 5)
    assert isinstance(study.objective, Command)
    assert study.objective.stop_grace == 4.5


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"steps"', '"step"', "fidelity.epochs.type"),
        ('"float", low = 0, high = 1', '"steps", low = 1, high = 3', "only a fidelity can be Steps"),
        ("low = 1, high = 5", "low = 0, high = 5", "must be 1 or more"),
        ('"kept"', "7", "checkpoints must be a string"),
        ("= 5\nstop", "= -1\nstop", "keep_checkpoints must be at least 0"),
        ("4.5", '"long"', "stop_grace"),
    ],
)
def test_a_mistake_is_named_when_the_file_is_loaded(before, after, words, tmp_path):
    assert before in FILE
    (tmp_path / "study.toml").write_text(FILE.replace(before, after).format(command='"true"'))
    with pytest.raises(InvalidInput, match=words):
        load(tmp_path / "study.toml")
