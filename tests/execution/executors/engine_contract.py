"""What every engine promises, whatever it runs on.  A test class inherits it and says how its engine is made."""

from __future__ import annotations

import math
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boca
from boca.domain.errors import BocaError, InvalidInput
from boca.execution.executors import Engine, Outcome

Make = Callable[..., Engine]

MANY = int(os.environ.get("BOCA_FAULTS", "20"))  # how many kills, where many are wanted

GOOD = [1.5, -2, np.float64(0.25), np.float32(0.5), np.int64(7), np.array(3.0), np.array([4.0]), np.uint8(3)]
BAD = [math.nan, math.inf, -math.inf, None, "1.0", b"1", True, np.True_, 1j, np.complex64(1), [1.0], np.ones(2), {}]
BAD += [np.ma.masked, np.ma.array([1.0], mask=[True])]  # behind a mask lies a number, but none that is meant


def run(engine: Engine, x: dict[str, Any], z: dict[str, Any] | None = None, timeout: float | None = None) -> Outcome:
    """Evaluate and wait for at most a minute."""
    return engine.submit(x, z or {}, timeout=timeout).result(60.0)


class EngineContract:
    """Objectives are functions inside of functions: they travel whole, and no engine needs this module for them."""

    @pytest.fixture
    def make(self) -> Make:
        """Return a function from an objective to an engine, which is closed after the test."""
        raise NotImplementedError

    def test_numbers_come_back(self, make: Make) -> None:
        engine = make(lambda x: x["value"])
        for value in GOOD:
            outcome = run(engine, {"value": value})
            assert outcome.value == float(np.asarray(value).item())
            assert type(outcome.value) is float
            assert (outcome.error, outcome.died, outcome.exception) == (None, False, None)

    def test_values_by_name_come_back_as_json(self, make: Make) -> None:
        engine = make(
            lambda x: {"loss": np.float64(x["value"]), "curve": np.arange(3.0), "n": 2, "who": None, "bad": math.nan}
        )
        outcome = run(engine, {"value": 0.25})
        assert outcome.value == {"loss": 0.25, "curve": [0.0, 1.0, 2.0], "n": 2, "who": None, "bad": "nan"}
        assert outcome.error is None

    def test_anything_else_is_a_failure_that_shows_what_came_back(self, make: Make) -> None:
        engine = make(lambda x: x["value"])
        for value in BAD:
            outcome = run(engine, {"value": value})
            assert outcome.value is None
            assert not outcome.died
            assert outcome.error is not None
            assert "must return a finite number" in outcome.error
            assert outcome.error.endswith(f"it returned {' '.join(repr(value).split())}.")

    def test_a_long_answer_is_cut(self, make: Make) -> None:
        for value in ("x" * 10**6, list(range(10**5)), np.zeros((50, 50))):
            error = run(make(lambda x: x["value"]), {"value": value}).error
            assert error is not None
            assert len(error) < 500

    def test_what_is_raised_is_a_failure_in_words(self, make: Make) -> None:
        def broken(x: dict[str, Any]) -> float:
            raise ValueError(f"no {x['a']}")

        outcome = run(make(broken), {"a": 3})
        assert (outcome.value, outcome.died) == (None, False)
        assert outcome.error is not None
        assert outcome.error.splitlines()[0] == "ValueError: no 3"
        assert "in broken" in outcome.error
        assert "in evaluate" not in outcome.error

    def test_a_long_message_is_cut_and_keeps_both_ends(self, make: Make) -> None:
        def broken(x: dict[str, Any]) -> float:
            raise ValueError("begin" + "\0\ud800" * 10**6 + "finish")

        error = run(make(broken), {}).error
        assert error is not None
        assert error.startswith("ValueError: begin")
        assert error.endswith("finish")
        assert len(error) < 7000
        assert "\0" not in error
        error.encode()

    def test_an_exception_that_cannot_travel_or_be_shown(self, make: Make) -> None:
        def broken(x: dict[str, Any]) -> float:
            class Odd(Exception):
                def __init__(self, one: object, two: object) -> None:
                    self.lock = __import__("threading").Lock()

                def __str__(self) -> str:
                    raise RuntimeError

            raise Odd(1, 2)

        error = run(make(broken), {}).error
        assert error is not None
        assert "Odd" in error.splitlines()[0]

    def test_x_and_z_arrive_and_are_copies(self, make: Make) -> None:
        def change(x: dict[str, Any], z: dict[str, Any]) -> float:
            x["a"] += z.pop("b")
            return float(x["a"])

        engine, x, z = make(change, takes_fidelity=True), {"a": 1}, {"b": 2}
        assert run(engine, x, z).value == run(engine, x, z).value == 3.0
        assert (x, z) == ({"a": 1}, {"b": 2})

    def test_seconds_are_those_of_the_evaluation(self, make: Make) -> None:
        outcome = run(make(lambda x: time.sleep(0.3) or 1.0), {})
        assert 0.25 < outcome.seconds < 5.0

    def test_many_small_ones_all_come_back_as_what_they_are(self, make: Make) -> None:
        engine = make(lambda x: x["i"] ** 2)
        futures = [engine.submit({"i": i}, {}, timeout=None) for i in range(50)]
        assert [future.result(60.0).value for future in futures] == [i**2 for i in range(50)]

    def test_closures_and_lambdas_travel(self, make: Make) -> None:
        scale = np.array([2.0, 3.0])
        assert run(make(lambda x: (scale * x["a"]).sum()), {"a": 2}).value == 10.0


class RemoteContract(EngineContract):
    """What an engine promises that evaluates in other processes or threads, two at once."""

    def test_two_at_once(self, make: Make) -> None:
        def sleep(x: dict[str, Any]) -> float:
            time.sleep(x["s"])
            return float(hash((os.getpid(), threading.get_ident())) % 2**50)

        def both(seconds: float) -> set[float | None]:
            futures = [engine.submit({"s": seconds}, {}, timeout=None) for _ in range(2)]
            return {future.result(60.0).value for future in futures}

        engine = make(sleep)
        assert engine.slots == 2
        wait_until(lambda: len(both(0.2)) == 2, 30)  # everything has started
        began = time.monotonic()
        assert len(both(1.5)) == 2
        assert time.monotonic() - began < 2.7

    def test_sys_exit_is_a_failure(self, make: Make) -> None:
        outcome = run(make(lambda x: sys.exit("enough")), {})
        assert (outcome.value, outcome.died) == (None, False)
        assert outcome.error is not None
        assert outcome.error.startswith("SystemExit: enough")

    def test_the_caller_cannot_cancel(self, make: Make) -> None:
        future = make(lambda x: 1.0).submit({}, {}, timeout=None)
        assert not future.cancel()
        assert future.result(60.0).value == 1.0

    @pytest.mark.parametrize("timeout", [0, -1.0, math.nan, math.inf, "1"])
    def test_a_timeout_is_a_positive_number(self, make: Make, timeout: Any) -> None:
        with pytest.raises(InvalidInput, match="timeout must be"):
            make(lambda x: 1.0).submit({}, {}, timeout=timeout)

    def test_after_close_nothing_is_taken(self, make: Make) -> None:
        engine = make(lambda x: 1.0)
        last = engine.submit({}, {}, timeout=None)
        engine.close()
        assert last.result(0.0).value == 1.0
        with pytest.raises(BocaError, match="closed"):
            engine.submit({}, {}, timeout=None)
        engine.close()
        engine.close(now=True)


class KillableContract(RemoteContract):
    """What an engine promises whose workers are processes that may die one by one, and that can be killed."""

    def test_three_dead_workers_cost_three_attempts_and_nothing_is_run_twice(self, make: Make, tmp_path: Path) -> None:
        def fragile(x: dict[str, Any]) -> float:
            with open(log, "a") as file:
                file.write(f"{x['i']} {os.getpid()}\n")
            if x["how"] == "exit":
                os._exit(3)
            if x["how"] == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if x["how"] == "crash":
                __import__("ctypes").string_at(0)
            return float(x["i"])

        log = tmp_path / "log"
        engine = make(fragile)
        for i, how in enumerate(["exit", "no", "kill", "no", "crash", "no"]):
            outcome = run(engine, {"i": i, "how": how})
            assert outcome.died == (how != "no"), outcome
            assert outcome.value == (None if outcome.died else i)
            assert (outcome.error is not None) == outcome.died
        time.sleep(0.5)
        assert [line.split()[0] for line in log.read_text().splitlines()] == list("012345")

    @pytest.fixture
    def executor(self) -> object:
        """Return what a user hands to `boca.maximize` for this engine."""
        raise NotImplementedError

    @pytest.mark.parametrize("kills", [3, pytest.param(MANY, marks=pytest.mark.faults)])
    def test_a_run_whose_workers_are_killed_at_any_moment_ends_as_if_nothing_had_been(
        self, executor: object, kills: int, tmp_path: Path
    ) -> None:
        out = tmp_path / "out"
        out.mkdir()
        url = f"sqlite:///{tmp_path / 'study.db'}"
        space, fidelity = boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Float(0.1, 1))
        budget = boca.targets(2 * kills + 10)
        settings: dict[str, Any] = {"cost": lambda z: 1.0, "strategy": boca.RandomSearch(), "seed": 4}

        def objective(x: dict[str, Any], z: dict[str, Any]) -> float:
            mark = out / f"{os.getpid()}"
            mark.touch()
            time.sleep(0.1)
            mark.unlink()
            return float(x["a"] * z["n"])

        with Killer(out, kills) as killer:
            result = boca.maximize(
                objective, space, fidelity, budget=budget, executor=executor, storage=url, max_retries=99, **settings
            )
        assert killer.killed == kills
        assert 1 <= sum(trial.attempt for trial in result.history) <= kills  # some died between two trials
        assert [trial.number for trial in result.history] == list(range(2 * kills + 10))
        assert {trial.state for trial in result.history} == {"complete"}
        assert all(trial.value == trial.x["a"] * trial.z["n"] for trial in result.history)
        assert result.spent == len(result.history)
        wait_until(lambda: not any(is_alive(pid) for pid in killer.pids), 5)

    def test_a_death_beside_a_running_evaluation_does_not_touch_it(self, make: Make) -> None:
        engine = make(lambda x: os._exit(1) if x["die"] else time.sleep(2.0) or 1.0)
        survivor, victim = (engine.submit({"die": die}, {}, timeout=None) for die in (False, True))
        assert victim.result(60.0).died
        assert survivor.result(60.0).value == 1.0

    def test_a_hang_ends_with_its_time_and_the_slot_comes_back(self, make: Make, tmp_path: Path) -> None:
        def hang(x: dict[str, Any]) -> float:
            if x["hang"]:
                pids.write_text(str(os.getpid()))
                time.sleep(600)
            return float(os.getpid())

        pids = tmp_path / "pid"
        engine = make(hang)
        run(engine, {"hang": False})
        late = run(engine, {"hang": True}, timeout=2.0)
        assert (late.value, late.died) == (None, False)
        assert late.error is not None
        assert "no result after 2 s" in late.error
        assert 1.9 < late.seconds < 5.0
        began = time.monotonic()
        while engine.slots < 2:
            assert time.monotonic() - began < 20
            time.sleep(0.1)
        done = [engine.submit({"hang": False}, {}, timeout=None) for _ in range(2)]
        assert int(pids.read_text()) not in [future.result(60.0).value for future in done]

    def test_close_now_kills_what_runs(self, make: Make, tmp_path: Path) -> None:
        def hang(x: dict[str, Any]) -> float:
            (directory / str(os.getpid())).touch()
            time.sleep(600)
            return 0.0

        directory = tmp_path
        engine = make(hang)
        futures = [engine.submit({}, {}, timeout=None) for _ in range(2)]
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2, 30)
        began = time.monotonic()
        engine.close(now=True)
        assert time.monotonic() - began < 20
        for future in futures:
            outcome = future.result(0.0)
            assert outcome.died
            assert outcome.error is not None
            assert "closed" in outcome.error
        wait_until(lambda: not any(is_alive(int(path.name)) for path in tmp_path.iterdir()), 5)


class Killer:
    """Kills workers that evaluate, one after another, at random moments; a file named after a pid says who does."""

    def __init__(self, folder: Path, kills: int) -> None:
        self.pids: list[int] = []
        self._folder, self._kills = folder, kills
        self._enough = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    @property
    def killed(self) -> int:
        return len(self.pids)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._enough.set()
        self._thread.join()

    def _work(self) -> None:
        rng = random.Random(0)
        while self.killed < self._kills and not self._enough.wait(rng.uniform(0.0, 0.1)):
            busy = sorted(int(mark.name) for mark in self._folder.iterdir())
            if busy:
                pid = rng.choice(busy)
                os.kill(pid, signal.SIGKILL)
                self.pids.append(pid)
                (self._folder / str(pid)).unlink(missing_ok=True)


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z" if stat.parent.parent.exists() else True
    except OSError:
        return False
