"""What a driver does with the trials of a study, whatever its workers do."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import pytest

import boca
from boca import Float, Int, Optimizer, Problem, RandomSearch, Space, seconds, targets
from boca.execution.driver import Driver
from boca.execution.executors import Outcome
from boca.execution.executors.base import finished
from boca.study.storage import Lease, Owner

SPACE = Space(a=Float(0, 1))
FIDELITY = Space(n=Int(1, 100))
DEAD = replace(Owner.me(), started="in another life")


class Scripted:
    """An engine whose evaluations are over at once, with the outcomes that it is given."""

    def __init__(self, outcome: Callable[[dict[str, Any], dict[str, Any]], Outcome], slots: int = 1) -> None:
        self.slots = slots
        self.timeouts: list[float | None] = []
        self._outcome = outcome

    def submit(self, x: dict[str, Any], z: dict[str, Any], *, timeout: float | None) -> Future[Outcome]:
        self.timeouts.append(timeout)
        return finished(self._outcome(x, z))

    def close(self, *, now: bool = False) -> None:
        """Do nothing."""


def took(seconds: float, value: float = 1.0) -> Outcome:
    return Outcome(value, None, "", seconds)


def died(seconds: float) -> Outcome:
    return Outcome(None, "The worker was killed.", "", seconds, died=True)


def study(fidelity: Space | None = None, **settings: Any) -> Optimizer:
    return Optimizer(
        Problem(SPACE, fidelity), **{"budget": targets(4), "strategy": RandomSearch(), "seed": 0} | settings
    )


def drive(opt: Optimizer, engine: Scripted, after: Callable[..., bool] = lambda *_: False, **settings: Any) -> None:
    Driver(opt, engine, after=after, **settings).run()


# What an evaluation may take ------------------------------------------------------------------------------------------


def test_a_limit_by_the_cost_waits_until_seconds_are_known():
    """Before the first result a trial costs its share of the target, which would be a limit of a few seconds."""
    opt = study(FIDELITY, budget=targets(8))
    engine = Scripted(lambda x, z: took(1000.0 * z["n"]))
    drive(opt, engine, timeout=lambda cost: 10 + 3 * cost)
    history = opt.history
    assert engine.timeouts[0] is None
    assert len(history) > 3
    for trial, limit in zip(history[1:], engine.timeouts[1:], strict=True):
        assert limit == pytest.approx(10 + 3 * 1000.0 * trial.z["n"], rel=0.5)


def test_a_trial_that_is_taken_over_has_the_limit_of_what_it_is_expected_to_cost_now():
    opt = study(FIDELITY)
    left = opt.ask(lease=Lease(owner=DEAD))
    assert left.cost <= 1.0
    first = opt.ask()
    opt.tell(first, 1.0, seconds=1000.0 * first.z["n"])
    engine = Scripted(lambda x, z: took(1000.0 * z["n"]))
    drive(opt, engine, timeout=lambda cost: 10 + 3 * cost)
    assert engine.timeouts[0] == pytest.approx(10 + 3 * 1000.0 * left.z["n"], rel=0.5)


def test_a_limit_by_a_declared_cost_is_one_from_the_first_trial_on():
    opt = Optimizer(Problem(SPACE, FIDELITY, cost=lambda z: 7.0 * z["n"]), budget=targets(4), seed=0)
    engine = Scripted(lambda x, z: took(0.1))
    drive(opt, engine, timeout=lambda cost: 10 + 3 * cost)
    assert engine.timeouts == [10 + 3 * 7.0 * trial.z["n"] for trial in opt.history]


# What came of trials --------------------------------------------------------------------------------------------------


def test_what_was_done_at_once_is_stored_before_a_callback_can_end_the_run():
    opt = study()
    heard = []

    def after(trial, error):
        heard.append(trial.number)
        raise RuntimeError("of a callback")

    with pytest.raises(RuntimeError, match="of a callback"):
        drive(opt, Scripted(lambda x, z: took(1.0, x["a"]), slots=3), after)
    assert heard == [0]
    assert [(t.state, t.value) for t in opt.history] == [("complete", t.x["a"]) for t in opt.history]
    assert len(opt.history) == 3


def test_attempts_that_died_are_charged_where_seconds_are():
    outcomes = [died(50.0), died(60.0), took(10.0), died(1.0), died(2.0), died(4.0)]
    opt = study(budget=seconds(135.0))
    drive(opt, Scripted(lambda x, z: outcomes.pop(0)), max_retries=2)
    first, second = opt.history
    assert (first.state, first.attempt, first.seconds, int(first.overhead)) == ("complete", 2, 10.0, 110)
    assert (second.state, second.attempt, second.seconds, int(second.overhead)) == ("failed", 2, 4.0, 3)
    assert opt.spent == pytest.approx(127.0, abs=1.0)  # beside them, the time to choose; 8 s do not buy another one


def test_attempts_that_died_teach_nothing_of_what_an_evaluation_takes():
    outcomes = [died(1000.0), died(1000.0), took(10.0)]
    opt = study(budget=seconds(1e6))
    drive(opt, Scripted(lambda x, z: outcomes.pop(0)), lambda *_: True, max_retries=2)
    ledger = opt._ledger(opt.history)
    assert ledger.target == pytest.approx(10.0, rel=0.5)


def test_attempts_that_died_are_free_where_the_cost_is_declared():
    outcomes = [died(50.0), took(10.0), died(50.0), died(50.0), died(50.0), *[took(1.0)] * 2]
    opt = study()
    drive(opt, Scripted(lambda x, z: outcomes.pop(0)), max_retries=2)
    assert [t.state for t in opt.history] == ["complete", "failed", "complete", "complete"]
    assert opt.spent == 4.0


# What others left -----------------------------------------------------------------------------------------------------


def test_a_driver_takes_over_what_it_has_workers_for_and_all_of_it_before_anything_new():
    opt = study(budget=targets(9))
    for _ in range(7):
        opt.ask(lease=Lease(owner=DEAD))
    held, tried = [], []

    def outcome(x, z):
        tried.append(next(t.number for t in opt.running if t.x == x))
        held.append(sum(t.attempt for t in opt.running))
        return took(1.0)

    drive(opt, Scripted(outcome, slots=2))
    assert max(held) == 2
    assert sorted(tried[:7]) == list(range(7))
    assert len(opt.history) == 9


# Interruptions --------------------------------------------------------------------------------------------------------


def test_a_trial_that_is_interrupted_time_and_again_is_not_one_that_kills(tmp_path):
    kept = {"budget": targets(2), "strategy": RandomSearch(), "seed": 0, "storage": f"sqlite:///{tmp_path}/study.db"}

    def interrupted(x):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("the second one does not wait")

    for _ in range(4):
        with pytest.raises(KeyboardInterrupt):
            boca.maximize(interrupted, SPACE, **kept)
    result = boca.maximize(lambda x: 1.0, SPACE, **kept)
    assert [(t.state, t.attempt) for t in result.history] == [("complete", 0)] * 2


def test_a_trial_that_ends_the_process_is_one_that_kills(tmp_path):
    kept = {"budget": targets(2), "strategy": RandomSearch(), "seed": 0, "storage": f"sqlite:///{tmp_path}/study.db"}

    def ends(x):
        raise SystemExit(3)

    for _ in range(2):
        with pytest.raises(SystemExit):
            boca.maximize(ends, SPACE, **kept, max_retries=1)
    result = boca.maximize(lambda x: 1.0, SPACE, **kept, max_retries=1)
    assert [(t.state, t.attempt) for t in result.history] == [("failed", 1), ("complete", 0)]
    assert result.history[0].reason == "The process that evaluated this trial died 2 times."


def test_ctrl_c_says_what_it_waits_for_and_no_wrong_number(caplog):
    def objective(x):
        os.kill(os.getpid(), signal.SIGINT)
        return 1.0

    with caplog.at_level(logging.WARNING, logger="boca"):
        result = boca.maximize(objective, SPACE, budget=targets(4), strategy=RandomSearch(), seed=0)
    assert [t.state for t in result.history] == ["complete"]
    assert "Ctrl-C again" in caplog.text
