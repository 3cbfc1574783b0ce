"""Runs that are killed at any moment, again and again: nothing is lost, nothing happens twice, and the end is the same.

The invariants after every kill: (I1) every acknowledged result is there, (I2) one result a trial, (I3) numbers without
gap, (I4) the money spent is the sum of the costs, (I5) the same next suggestion, (I6) no process is left.
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import boca
from boca import Optimizer
from boca.study.storage import Lease
from integration import driver
from support.places import FORKS, on

MANY = int(os.environ.get("BOCA_FAULTS", "0"))  # how many kills, where somebody wants hundreds


# One life -------------------------------------------------------------------------------------------------------------


class Life:
    """A process that drives a study, from its birth to its kill."""

    def __init__(self, *arguments, fresh=False):
        """Start a run, by a fork of a process that has everything loaded, or in an interpreter of its own."""
        if fresh:
            script = [sys.executable, driver.__file__]
            self._process = subprocess.Popen([*script, *map(str, arguments)], start_new_session=False)
        else:
            self._process = FORKS.Process(target=driver.as_leader, args=arguments)
            self._process.start()
        self.pid = self._process.pid

    def is_over(self):
        over = self._process.poll() if isinstance(self._process, subprocess.Popen) else self._process.exitcode
        return over is not None

    def kill(self):
        """Kill it, with nothing said to whatever it has started, and return how it had ended if it had."""
        if not self.is_over():
            os.kill(self.pid, signal.SIGKILL)
        return self.end()

    def end(self, timeout=120.0):
        if isinstance(self._process, subprocess.Popen):
            return self._process.wait(timeout)
        self._process.join(timeout)
        return self._process.exitcode


def left_of(session):
    """Return the processes of a session that are still there, the dead that nobody buried apart."""
    said = subprocess.run(
        ["ps", "-A", "-o", "pid=,pgid=,stat="], capture_output=True, text=True, timeout=30, check=True
    )
    rows = [line.split() for line in said.stdout.splitlines()]
    return [int(pid) for pid, group, state in rows if int(group) == session and not state.startswith("Z")]


def acknowledged(log):
    """Return the results that were acknowledged, by number; a line that was cut off by a kill is none."""
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def outcome(history):
    """Return what must be the same however often a run was killed."""
    return [(t.number, repr(t.x), repr(t.z), t.state, repr(t.value), t.reason, t.cost, t.why) for t in history]


def expected(trial):
    try:
        return ("complete", driver.value(trial.x, trial.z))
    except RuntimeError:
        return ("failed", None)


# The invariants -------------------------------------------------------------------------------------------------------


def check(place, log, case, kills=1):
    """Hold a study, as so many kills have left it, against what was acknowledged."""
    opt = place.optimizer(driver.PROBLEM, **driver.settings(*case))
    history = opt.history
    told = acknowledged(log)
    assert len({number for number, *_ in told}) == len(told)  # I2: nobody was told twice of one trial
    for number, state, value, cost in told:  # I1
        stored = history[number]
        assert (stored.state, stored.value, stored.cost) == (state, value, cost)
    assert [trial.number for trial in history] == list(range(len(history)))  # I3
    for trial in history.finished:
        assert (trial.state, trial.value) == expected(trial)
    assert 0 <= len(history.finished) - len(told) <= kills  # a kill may come between a result and the line about it
    assert opt.spent == math.fsum(trial.cost for trial in history.finished)  # I4
    assert opt.spent + opt.budget.reserved <= opt.budget.total * (1 + 1e-12)
    assert next_suggestion(place, case) == next_suggestion(place, case)  # I5
    return history


def next_suggestion(place, case):
    """Return what a process that has just started would ask."""
    opt = place.optimizer(driver.PROBLEM, **driver.settings(*case))
    history = opt.history
    rng = np.random.default_rng([opt.seed, len(history)])
    chosen = opt.strategy.suggest(opt.problem, history, opt.budget, rng)
    return repr((chosen.x, chosen.z, chosen.why))


def next_of_copies(place, case, directory):
    """Return what two processes ask of two copies of a file, as it lay there after a kill."""
    asked = []
    file = Path(place.url.removeprefix("sqlite:///"))
    for k in range(2):
        copy = directory / f"copy {k}"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for part in (file, file.with_name(f"{file.name}-wal")):
            if part.exists():
                shutil.copy(part, copy / part.name)
        opt = Optimizer(driver.PROBLEM, storage=f"sqlite:///{copy / file.name}", **driver.settings(*case))
        taken = opt.take_over(Lease(), max_retries=10**6)
        trial = opt.ask()
        asked.append(([t.number for t in taken], trial and (trial.number, repr(trial.x), repr(trial.z), trial.why)))
        opt.storage.close()
    return asked


# The driver is killed -------------------------------------------------------------------------------------------------


def survives(kind, directory, *, kills, strategy, targets, seed=0, fresh=False, workers=0):
    """Kill a driver so many times, each time after it has got on, and hold all the rest against an undisturbed run."""
    rng = random.Random(seed)
    killed = 0
    while killed < kills:
        case = (strategy, seed, targets)
        below = directory / f"{seed}"
        below.mkdir()
        with on(kind, below) as place:
            log = below / "log"
            before = killed
            while killed < kills and (done := lives(place, log, case, rng, fresh, workers)) is not None:
                killed += 1
                assert len(check(place, log, case, killed - before)) >= done
                place.close()
                if kind == "sqlite" and killed % 3 == 0:
                    one, other = next_of_copies(place, case, below)
                    assert one == other
            last = Life(place.url, str(log), *case, workers, fresh=fresh)
            assert last.end() == 0
            history = check(place, log, case, killed - before)
            assert not history.running
            if not workers:
                undisturbed = driver.run(None, None, *case).history
                assert outcome(history) == outcome(undisturbed)
            seed += 1
    return killed


def lives(place, log, case, rng, fresh, workers):
    """Start a driver, let it get on, and kill it; return how much had been acknowledged, None where it was done."""
    before = len(acknowledged(log))
    life = Life(place.url, str(log), *case, workers, fresh=fresh)
    steps = rng.randrange(3)
    end = time.monotonic() + 120.0
    while len(acknowledged(log)) < before + steps and not life.is_over():
        assert time.monotonic() < end
        time.sleep(0.002)
    time.sleep(rng.uniform(0.0, 0.1))
    status = life.kill()
    if status == 0:
        return None
    assert status == -signal.SIGKILL
    end = time.monotonic() + 5.0  # I6
    while left := left_of(life.pid):
        assert time.monotonic() < end, f"processes {left} outlived their driver"
        time.sleep(0.1)
    return len(acknowledged(log))


CASES = [
    ("sqlite", "random", 12, 50),
    ("sqlite", "boca", 3, 50),
    ("postgres", "random", 5, 20),
]


@pytest.mark.parametrize(("kind", "strategy", "few", "many"), CASES)
def test_a_driver_that_is_killed_at_any_moment_leaves_a_study_that_ends_as_if_nothing_had_been(
    kind, strategy, few, many, tmp_path
):
    assert survives(kind, tmp_path, kills=few, strategy=strategy, targets=25 if strategy == "random" else 7) == few


@pytest.mark.faults
@pytest.mark.parametrize(("kind", "strategy", "few", "many"), CASES)
def test_a_driver_that_is_killed_many_times(kind, strategy, few, many, tmp_path):
    kills = MANY or many
    assert survives(kind, tmp_path, kills=kills, strategy=strategy, targets=40, seed=1000) == kills


def test_a_script_of_its_own_that_is_killed(tmp_path):
    assert survives("sqlite", tmp_path, kills=2, strategy="random", targets=20, fresh=True) == 2


# Workers and drivers --------------------------------------------------------------------------------------------------

has_slots = pytest.mark.skipif(
    not hasattr(boca.executors, "Workers"), reason="NOT TESTED HERE: there are no worker slots yet"
)


@has_slots
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_workers_do_not_outlive_a_driver_that_is_killed(kind, tmp_path):
    assert survives(kind, tmp_path, kills=2, strategy="random", targets=12, workers=2) == 2


@has_slots
@pytest.mark.faults
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_workers_do_not_outlive_a_driver_that_is_killed_many_times(kind, tmp_path):
    kills = MANY or 20
    assert survives(kind, tmp_path, kills=kills, strategy="random", targets=40, workers=2, seed=2000) == kills


def mortal(folder):
    """Return an objective that kills its process in the first attempt at every third trial."""

    def objective(x, z):
        mark = Path(folder, f"{x['a']!r}")
        pid = Path(folder, f"pid {os.getpid()}")
        pid.touch()
        if x["k"] % 3 == 0 and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return driver.value(x, z)

    return objective


@has_slots
def test_a_worker_that_dies_costs_one_attempt_at_one_trial(database, tmp_path):
    folder = tmp_path / "marks"
    folder.mkdir()
    case = ("random", 3, 16.0)
    result = boca.maximize(
        mortal(str(folder)),
        driver.SPACE,
        driver.FIDELITY,
        cost=driver.price,
        storage=database.url,
        executor=2,
        **driver.settings(*case),
    )
    assert [trial.number for trial in result.history] == list(range(16))
    for trial in result.history:
        assert trial.attempt == (1 if trial.x["k"] % 3 == 0 else 0)
        assert (trial.state, trial.value) == expected(trial)
    assert sum(trial.attempt for trial in result.history) > 1
    assert result.spent == math.fsum(trial.cost for trial in result.history)
    pids = [int(path.name.split()[1]) for path in folder.glob("pid *")]
    end = time.monotonic() + 5.0
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < end
        time.sleep(0.1)


@has_slots
def test_a_worker_that_always_dies_at_one_point_fails_there_and_only_there(database):
    def objective(x, z):
        if x["k"] > 40:
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    result = boca.maximize(
        objective,
        driver.SPACE,
        driver.FIDELITY,
        cost=driver.price,
        storage=database.url,
        executor=2,
        max_retries=1,
        **driver.settings("random", 0, 12.0),
    )
    assert len(result.history) == 12
    for trial in result.history:
        assert (trial.state, trial.attempt) == (("failed", 1) if trial.x["k"] > 40 else ("complete", 0))
    assert 0 < sum(trial.state == "failed" for trial in result.history) < 12


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def test_what_one_of_several_drivers_left_is_taken_over_by_the_others(database, tmp_path):
    case = ("random", 5, 60.0)
    log = tmp_path / "log"
    lives = [Life(database.url, str(log), *case) for _ in range(3)]
    while len(acknowledged(log)) < 15:
        time.sleep(0.01)
    assert lives[0].kill() == -signal.SIGKILL
    assert [life.end() for life in lives[1:]] == [0, 0]
    history = check(database, log, case)
    assert len(history) == 60
    assert not history.running


def test_a_trial_that_was_out_when_its_driver_was_killed_is_run_again_at_once(database, tmp_path):
    """Nobody waits for the end of a lease whose owner is known to be dead."""
    log = tmp_path / "log"
    case = ("random", 7, 8.0)
    life = Life(database.url, str(log), *case)
    while not acknowledged(log):
        time.sleep(0.002)
    opt = database.optimizer(driver.PROBLEM, **driver.settings(*case))
    while not opt.running:
        time.sleep(0.001)
    assert life.kill() == -signal.SIGKILL
    began = time.monotonic()
    result = driver.run(database.url, str(log), *case)
    assert time.monotonic() - began < 20.0  # a lease lasts a minute
    assert len(result.history) == 8
    assert {trial.attempt for trial in result.history} <= {0, 1}
