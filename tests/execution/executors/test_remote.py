"""What an objective raises in another process arrives with its traceback, and a mistake in its code stops the run."""

from __future__ import annotations

import traceback
from concurrent.futures import ThreadPoolExecutor

import pytest

import boca
from boca.domain.errors import ObjectiveFailed
from boca.execution.executors.base import Outcome
from boca.execution.executors.remote import RemoteTraceback, is_mistake, raised
from boca.execution.executors.worker import evaluate

SPACE = boca.Space(a=(0.0, 1.0), b=(0.0, 1.0))
FIDELITY = boca.Space(n=(1, 9))


def reads_a_wrong_name(x, z):
    return x["lr"]


def has_a_wrong_name(x, z):
    return x["a"] + learning_rate  # noqa: F821


def adds_a_text(x, z):
    return x["a"] + "1"


def run(objective, **more):
    settings = {"cost": lambda z: z["n"], "budget": boca.targets(9), "strategy": boca.RandomSearch(), "seed": 0}
    return boca.minimize(objective, SPACE, FIDELITY, **settings | more)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (reads_a_wrong_name, "KeyError: 'lr'"),
        (has_a_wrong_name, "NameError: name 'learning_rate' is not defined"),
        (adds_a_text, "TypeError: unsupported operand"),
    ],
)
@pytest.mark.parametrize("executor", [None, 1, "threads"])
def test_a_mistake_in_the_code_stops_the_run_at_once_with_its_traceback(objective, words, executor):
    with pytest.raises(ObjectiveFailed) as caught:
        run(objective, executor=ThreadPoolExecutor(1) if executor == "threads" else executor)
    message = str(caught.value)
    for part in (words, "['a', 'b']", "['n']", "Correct the objective"):
        assert part in message
    shown = "".join(traceback.format_exception(caught.value))
    assert f"in {objective.__name__}" in shown
    assert words in shown
    assert sum(trial.state == "failed" for trial in caught.value.result.history) == 1


@pytest.mark.parametrize("executor", [None, 1])
def test_a_mistake_after_a_result_is_a_failed_trial(executor, tmp_path):
    seen = tmp_path / "seen"

    def objective(x, z):
        if not seen.exists():
            seen.touch()
            return 1.0
        return x["lr"]

    result = run(objective, executor=executor, budget=boca.targets(4))
    assert [trial.state for trial in result.history] == ["complete", *["failed"] * (len(result.history) - 1)]
    assert len(result.history) == 4


def test_another_error_may_be_that_of_a_bad_point():
    def objective(x, z):
        raise ValueError("no convergence")

    with pytest.raises(ObjectiveFailed, match="All 5 trials failed"):
        run(objective)


def failing(error):
    def objective():
        raise error

    report = evaluate(objective, ())
    return Outcome(None, report.error, "", 0.0)


def test_the_text_of_a_worker_is_an_exception_here():
    found = raised(failing(KeyError("lr")))
    assert isinstance(found, RemoteTraceback)
    assert found.kind == "KeyError"
    assert found.traceback.startswith("Traceback (most recent call last):")
    assert "raise error" in str(found)


@pytest.mark.parametrize(
    ("error", "mistake"),
    [
        (KeyError("lr"), True),
        (NameError("lr"), True),
        (UnboundLocalError("lr"), True),
        (TypeError(), True),
        (ValueError("KeyError: lr"), False),
        (RuntimeError("KeyError"), False),
    ],
)
def test_a_mistake_is_known_here_and_there(error, mistake):
    assert is_mistake(error) is mistake
    assert is_mistake(raised(failing(error))) is mistake


def test_without_a_traceback_there_is_nothing_to_chain():
    assert raised(Outcome(1.0, None, "", 0.0)) is None
    assert raised(Outcome(None, "The evaluation had no result after 6 s; its process was killed.", "", 6.0)) is None
    assert raised(Outcome(None, "KeyError", "", 0.0, died=True)) is None
    assert not is_mistake(None)
    error = ValueError()
    assert raised(Outcome(None, "x", "", 0.0, exception=error)) is error
