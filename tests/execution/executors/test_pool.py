"""Executors of the user's: threads and processes, which cannot be killed, and which may break."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest

import boca
from boca.domain.errors import BocaError, InvalidInput
from boca.execution.executors import Engine, engine
from boca.execution.executors.pool import Pool
from boca.execution.options import RunOptions
from execution.executors.engine_contract import Make, RemoteContract, run, wait_until
from execution.executors.run_contract import RunContract

X = dict[str, Any]


def processes(workers: int = 2) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def maker(executor: Executor) -> Make:
    def make(objective: Callable[..., Any], *, takes_fidelity: bool = False) -> Engine:
        return engine(executor, objective, takes_fidelity=takes_fidelity)

    return make


class TestThreads(RemoteContract, RunContract):
    @pytest.fixture
    def make(self) -> Iterator[Make]:
        with ThreadPoolExecutor(2) as pool:
            yield maker(pool)


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with processes() as pool:
        yield pool


class TestProcesses(RemoteContract, RunContract):
    @pytest.fixture
    def make(self, pool: Executor) -> Make:
        return maker(pool)


class Unknown(Executor):
    """An executor that tells nothing of itself."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        future: Any = concurrent.futures.Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_any_executor_will_do() -> None:
    made = engine(Unknown(), lambda x: x["a"], takes_fidelity=False)
    assert made.slots == os.cpu_count()
    assert run(made, {"a": 2}).value == 2.0


def test_a_lock_may_go_to_a_thread_but_not_to_a_process() -> None:
    lock = threading.Lock()
    with ThreadPoolExecutor(1) as pool:
        assert run(engine(pool, lambda x: 1.0 + lock.locked(), takes_fidelity=False), {}).value == 1.0
    with processes(1) as pool, pytest.raises(InvalidInput, match="cloudpickle refuses"):
        engine(pool, lambda x: lock.locked(), takes_fidelity=False)


def test_the_executor_stays_the_users() -> None:
    with ThreadPoolExecutor(1) as pool:
        engine(pool, lambda x: 1.0, takes_fidelity=False).close(now=True)
        assert pool.submit(lambda: 3).result() == 3


def test_a_timeout_takes_a_slot_until_the_evaluation_ends() -> None:
    ends = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        try:
            made = engine(pool, lambda x: ends.wait(30) + 0.0 if x["hang"] else 1.0, takes_fidelity=False)
            outcome = run(made, {"hang": True}, timeout=0.3)
            assert (outcome.value, outcome.died) == (None, False)
            assert outcome.error is not None
            assert "no result after 0.3 s" in outcome.error
            assert made.slots == 1
            assert run(made, {"hang": False}, timeout=5.0).value == 1.0
            assert made.slots == 1
        finally:
            ends.set()
        wait_until(lambda: made.slots == 2, 5)


def test_a_pool_whose_workers_all_hang_says_so_and_recovers_when_one_is_free() -> None:
    ends = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        try:
            made = engine(pool, lambda x: ends.wait(30) + 0.0 if x["hang"] else 1.0, takes_fidelity=False)
            assert run(made, {"hang": True}, timeout=0.2).value is None
            with pytest.raises(BocaError, match=r"All 1 workers.*executor=n"):
                made.submit({"hang": False}, {}, timeout=0.2)
        finally:
            ends.set()
        assert run(made, {"hang": False}, timeout=5.0).value == 1.0


def test_a_dead_worker_breaks_a_pool_of_processes() -> None:
    with processes() as pool:
        made = engine(pool, lambda x: os._exit(1) if x["die"] else time.sleep(x["s"]) or 1.0, takes_fidelity=False)
        # a worker that dies right after its start is not always noticed before something else happens in the pool
        for future in [made.submit({"die": False, "s": 1.0}, {}, timeout=None) for _ in range(2)]:
            assert future.result(30.0).value == 1.0
        for future in [made.submit({"die": die, "s": 60.0}, {}, timeout=None) for die in (False, True)]:
            outcome = future.result(30.0)
            assert outcome.died
            assert outcome.error is not None
            assert "the pool" in outcome.error
        with pytest.raises(BocaError, match=r"no more evaluations.*executor=n"):
            made.submit({"die": False}, {}, timeout=None)


def test_a_pool_that_was_shut_down_is_no_use() -> None:
    pool = ThreadPoolExecutor(1)
    made = engine(pool, lambda x: 1.0, takes_fidelity=False)
    pool.shutdown()
    with pytest.raises(BocaError, match="no more evaluations"):
        made.submit({}, {}, timeout=None)


def test_close_now_waits_for_nothing_and_cancels_what_has_not_begun() -> None:
    ends, began = threading.Event(), []
    with ThreadPoolExecutor(1) as pool:
        try:
            made = engine(pool, lambda x: began.append(1) or ends.wait(30) + 0.0, takes_fidelity=False)
            futures = [made.submit({}, {}, timeout=None) for _ in range(2)]
            wait_until(lambda: bool(began), 5)
            made.close(now=True)
            assert all(future.result(0.0).died for future in futures)
        finally:
            ends.set()
    assert began == [1]


def test_an_evaluation_that_the_user_cancels_has_died() -> None:
    ends = threading.Event()
    pool = ThreadPoolExecutor(1)
    made = engine(pool, lambda x: ends.wait(30) + 0.0, takes_fidelity=False)
    futures = [made.submit({}, {}, timeout=None) for _ in range(2)]
    pool.shutdown(wait=False, cancel_futures=True)
    ends.set()
    assert futures[0].result(5.0).value == 1.0
    outcome = futures[1].result(5.0)
    assert outcome.died
    assert outcome.error is not None
    assert "cancelled" in outcome.error
    pool.shutdown()


def test_loky() -> None:
    loky = pytest.importorskip("loky", reason="loky is not installed")
    pool = loky.ProcessPoolExecutor(2)
    try:
        made = engine(pool, lambda x: os._exit(1) if x["die"] else 1.0, takes_fidelity=False)
        assert made.slots == 2
        assert run(made, {"die": False}).value == 1.0
        assert run(made, {"die": True}).died
        with pytest.raises(BocaError, match="no more evaluations"):
            made.submit({"die": False}, {}, timeout=None)
    finally:
        pool.shutdown(wait=True, kill_workers=True)


class Cluster(Executor):
    """An executor that does not say how many workers it has."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(8)
        self.running = self.most = 0
        self._lock = threading.Lock()

    def submit(self, call, /, *arguments, **named):
        def counted():
            with self._lock:
                self.running += 1
                self.most = max(self.most, self.running)
            time.sleep(0.2)
            try:
                return call(*arguments, **named)
            finally:
                with self._lock:
                    self.running -= 1

        return self._threads.submit(counted)


@pytest.mark.parametrize("workers", [1, 6])
def test_an_executor_runs_as_many_trials_at_once_as_its_user_says(workers: int) -> None:
    cluster = Cluster()
    result = boca.minimize(
        lambda x: x["a"],
        boca.Space(a=boca.Float(0, 1)),
        budget=boca.targets(12),
        strategy=boca.RandomSearch(),
        seed=0,
        executor=cluster,
        workers=workers,
    )
    assert len(result.history.complete) == 12
    assert cluster.most == workers


def test_without_a_number_it_is_said_what_is_assumed(caplog: pytest.LogCaptureFixture) -> None:
    Pool(Cluster(), len)
    assert "workers=n" in caplog.text
    with pytest.raises(InvalidInput, match="one of the two"):
        RunOptions(executor=2, workers=3)
    with pytest.raises(InvalidInput, match="at least 1"):
        RunOptions(workers=0)
