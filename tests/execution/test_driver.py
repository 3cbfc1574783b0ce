"""What a driver does with the trials of a study, whatever its workers do."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

import boca
from boca import Float, Int, Optimizer, Problem, RandomSearch, Space, seconds, targets
from boca.domain.errors import BocaError
from boca.execution import timing
from boca.execution.driver import Driver
from boca.execution.executors import Outcome
from boca.execution.executors.base import finished
from boca.execution.executors.inflight import InFlightEngine
from boca.execution.executors.pool import Pool
from boca.study.ahead import Ahead
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


class Together(Scripted):
    """An engine whose evaluations are over when all slots are taken."""

    def __init__(self, slots: int) -> None:
        super().__init__(lambda x, z: took(1.0, x["a"]), slots)
        self._begun: list[tuple[Future[Outcome], dict[str, Any]]] = []

    def submit(self, x: dict[str, Any], z: dict[str, Any], *, timeout: float | None) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        self._begun.append((future, x))
        if len(self._begun) == self.slots:
            for begun, at in self._begun:
                begun.set_result(self._outcome(at, {}))
        return future


def test_what_was_done_at_once_is_stored_before_a_callback_can_end_the_run():
    opt = study()
    heard = []

    def after(trial, error):
        heard.append(trial.number)
        raise RuntimeError("of a callback")

    with pytest.raises(RuntimeError, match="of a callback"):
        drive(opt, Together(slots=3), after)
    assert heard == [0]
    assert [(t.state, t.value) for t in opt.history] == [("complete", t.x["a"]) for t in opt.history]
    assert len(opt.history) == 3


@pytest.mark.parametrize("slots", [2, 5])
@pytest.mark.parametrize("strategy", [RandomSearch(), boca.Boca()], ids=["alone", "batch"])
def test_a_result_is_stored_and_heard_of_before_the_next_worker_gets_a_trial(strategy, slots):
    opt = study(budget=targets(12), strategy=strategy)
    known = []

    def outcome(x, z):
        known.append((len(opt.running), len(heard)))
        return took(1.0, x["a"])

    heard = []
    drive(opt, Scripted(outcome, slots=slots), lambda trial, _: heard.append(trial.number))
    assert known == [(1, number) for number in range(12)]
    assert [t.told for t in opt.history][:-1] < [t.asked for t in opt.history][1:]


def test_callbacks_end_a_run_between_two_workers():
    opt = study(budget=targets(12))
    drive(opt, Scripted(lambda x, z: took(1.0), slots=5), lambda trial, _: trial.number == 1)
    assert [t.state for t in opt.history] == ["complete"] * 2


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


# Signals that end a run -----------------------------------------------------------------------------------------------


def kept(tmp_path, **more):
    study = {"budget": targets(3), "strategy": RandomSearch(), "seed": 0, "storage": f"sqlite:///{tmp_path}/study.db"}
    return study | more


@pytest.fixture(autouse=True)
def _default_signals():
    """Other tests of this process may have started Ray, which leaves a handler of its own."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def left_by_ray(number, frame):
    """Stand for the handler of `ray.init`, which ends the process."""
    os._exit(15)


left_by_ray.__module__ = "ray._private.worker"


def test_sigterm_is_a_clean_stop_after_ray_was_started(tmp_path):
    signal.signal(signal.SIGTERM, left_by_ray)
    with pytest.raises(SystemExit) as ended:
        boca.maximize(lambda x: os.kill(os.getpid(), signal.SIGTERM), SPACE, **kept(tmp_path))
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is left_by_ray


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_sigterm_hands_trials_back_with_no_attempt_used(tmp_path, number, status):
    def killed(x):
        os.kill(os.getpid(), number)
        raise AssertionError("it does not wait")

    for _ in range(4):
        with pytest.raises(SystemExit) as ended:
            boca.maximize(killed, SPACE, **kept(tmp_path))
        assert ended.value.code == status
        assert [t.state for t in ended.value.result.history] == ["running"]
    assert signal.getsignal(number) is signal.SIG_DFL
    result = boca.maximize(lambda x: 1.0, SPACE, **kept(tmp_path))
    assert [(t.state, t.attempt) for t in result.history] == [("complete", 0)] * 3


def test_sigterm_with_grace_lets_a_running_trial_finish(tmp_path):
    def slow(x):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
        return 5.0

    with pytest.raises(SystemExit) as ended:
        boca.maximize(slow, SPACE, **kept(tmp_path), grace=60)
    assert [(t.state, t.value) for t in ended.value.result.history] == [("complete", 5.0)]


def test_sigterm_hands_back_what_exceeds_the_grace_and_the_second_one_ends_at_once(tmp_path):
    def endless(x):
        os.kill(os.getpid(), signal.SIGTERM)
        if endless.twice:
            os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)

    for endless.twice, grace in ((False, 0.3), (True, 60)):
        began = time.monotonic()
        with pytest.raises(SystemExit):
            boca.maximize(endless, SPACE, **kept(tmp_path), grace=grace)
        assert time.monotonic() - began < 10
    result = boca.maximize(lambda x: 1.0, SPACE, **kept(tmp_path))
    assert [(t.state, t.attempt) for t in result.history] == [("complete", 0)] * 3


def test_a_handler_of_the_users_is_kept(tmp_path):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        result = boca.maximize(lambda x: os.kill(os.getpid(), signal.SIGTERM) or 1.0, SPACE, **kept(tmp_path))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert len(heard) == len(result.history.complete) == 3


SCRIPT = """
import os, pathlib, sys, time
import boca

folder, executor, grace = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])

def objective(x, folder=folder):
    pathlib.Path(folder, f"began-{os.getpid()}").touch()
    time.sleep(float(os.environ["SLOW"]))
    return x["a"]

boca.maximize(objective, boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), strategy=boca.RandomSearch(), seed=0,
    storage=f"sqlite:///{folder}/study.db", executor=executor or None, grace=grace, max_retries=2)
"""


def life(tmp_path, *, executor, number, grace=0.0, slow=60.0, group=False):
    """Return the status of a run that got a signal while trials ran, alone or with its workers."""
    for path in tmp_path.glob("began-*"):
        path.unlink()
    arguments = [sys.executable, "-c", SCRIPT, str(tmp_path), str(executor), str(grace)]
    driver = subprocess.Popen(arguments, env=os.environ | {"SLOW": str(slow)})
    wait_for(lambda: len(list(tmp_path.glob("began-*"))) >= max(executor, 1))
    if group:  # as systemd does: everything at once
        for path in tmp_path.glob("began-*"):
            os.kill(int(path.name.removeprefix("began-")), number)
    driver.send_signal(number)
    return driver.wait(30)


def wait_for(done, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_death_of_a_driver_is_no_attempt_of_trials_whose_workers_died_with_it(tmp_path, number):
    for k in range(4):
        status = life(tmp_path, executor=2, number=number, group=bool(k % 2))
        assert status == (143 if number == signal.SIGTERM else -number)
    result = boca.maximize(lambda x: x["a"], SPACE, **kept(tmp_path))
    # a worker that is killed while its driver lives is an attempt, as the last two lives may have begun with
    attempts = [t.attempt for t in result.history]
    assert [t.state for t in result.history] == ["complete"] * 3
    assert max(attempts) == 0 or number == signal.SIGKILL


def test_a_driver_that_is_killed_while_it_evaluates_may_have_died_of_the_trial(tmp_path):
    for _ in range(3):
        life(tmp_path, executor=0, number=signal.SIGKILL)
    result = boca.maximize(lambda x: x["a"], SPACE, **kept(tmp_path))
    assert [(t.state, t.attempt) for t in result.history] == [("failed", 2), ("complete", 0), ("complete", 0)]


# What the machine lacks -----------------------------------------------------------------------------------------------


def lacking() -> Outcome:
    return Outcome(None, "OSError: [Errno 24] Too many open files", "", 0.0, died=True, lacking=True)


def test_what_the_machine_lacks_is_waited_for_and_neither_charged_nor_an_attempt(monkeypatch):
    monkeypatch.setattr("boca.execution.driver._PAUSES", (0.05, 0.05, 0.05))
    outcomes = [lacking(), lacking(), took(1.0), lacking(), lacking(), lacking(), took(2.0), took(1.0), took(1.0)]
    opt = study()
    drive(opt, Scripted(lambda x, z: outcomes.pop(0)), max_retries=0)
    assert [(t.state, t.attempt) for t in opt.history] == [("complete", 0)] * 4
    assert opt.spent == 4.0


def test_what_the_machine_still_lacks_ends_the_run_with_the_reason(monkeypatch, tmp_path):
    monkeypatch.setattr("boca.execution.driver._PAUSES", (0.02, 0.02))
    opt = Optimizer(Problem(SPACE), **kept(tmp_path))
    outcomes = [took(1.0)]
    engine = Scripted(lambda x, z: outcomes.pop(0) if outcomes else lacking(), slots=2)
    with pytest.raises(BocaError, match=r"No worker could be started in 3 tries.*Too many open files"):
        drive(opt, engine)
    assert opt.spent == 1.0
    assert {t.state for t in opt.history} == {"complete", "running"}
    result = boca.maximize(lambda x: 1.0, SPACE, **kept(tmp_path))
    assert [(t.state, t.attempt) for t in result.history] == [("complete", 0)] * 3


# Clocks ---------------------------------------------------------------------------------------------------------------


def test_a_clock_that_jumps_robs_no_driver_of_this_machine(monkeypatch, tmp_path):
    opt = Optimizer(Problem(SPACE), **kept(tmp_path))
    memory = study()
    for one in (opt, memory):
        one.ask(lease=Lease())
        now = time.time()
        monkeypatch.setattr("time.time", lambda now=now: now + 3600.0)
        assert one.take_over(Lease()) == []
        assert not one.storage.hand_back(one.running[0])
        monkeypatch.undo()


class Slow:
    """Takes a while to choose, as a model with many results does."""

    def suggest(self, problem, history, budget, rng):
        time.sleep(0.02)
        return RandomSearch().suggest(problem, history, budget, rng)


@pytest.mark.parametrize(("workers", "share", "ahead"), [(4, 0.05, True), (4, 1e9, False), (1, 0.05, False)])
def test_trials_are_chosen_ahead_where_a_worker_would_wait(workers, share, ahead, monkeypatch):
    monkeypatch.setattr(timing, "_IDLE_SHARE", share)
    taken = []
    take = Ahead.take

    def noted(self, *given):
        trial = take(self, *given)
        taken.append(trial is not None)
        return trial

    monkeypatch.setattr(Ahead, "take", noted)
    problem = Problem(SPACE, cost=lambda z: 1.0)
    opt = Optimizer(problem, budget=targets(16), strategy=Slow(), seed=0)
    with ThreadPoolExecutor(workers) as pool:
        engine = InFlightEngine(Pool(pool, lambda x: time.sleep(0.3) or x["a"], None), takes_fidelity=False)
        drive(opt, engine)
    assert len(opt.history.complete) == 16
    assert any(taken) == ahead
