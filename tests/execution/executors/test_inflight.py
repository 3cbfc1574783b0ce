"""The engine of pools and clusters, on a backend whose evaluations end when the test says so."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest

from boca.domain.errors import BocaError
from boca.execution.executors import Outcome
from boca.execution.executors.inflight import InFlightEngine
from execution.executors.engine_contract import wait_until


class Manual:
    """A backend with two workers; an evaluation ends when its future gets a value, or when it is cancelled."""

    def __init__(self, *, stops: bool = False) -> None:
        self.capacity = 2
        self.sent: list[Future[float]] = []
        self.cancelled: list[Future[float]] = []
        self.closed = 0
        self.error: Exception | None = None
        self._stops = stops

    def packed(self, values: tuple[dict[str, Any], ...]) -> Any:
        return Outcome(None, "it cannot travel", "", 0.0) if "lock" in values[0] else values

    def send(self, packed: Any) -> tuple[Any, Any]:
        if self.error is not None:
            raise self.error
        future: Future[float] = Future()
        self.sent.append(future)
        return future, lambda: self._cancel(future)

    def _cancel(self, future: Future[float]) -> None:
        self.cancelled.append(future)
        if self._stops:
            future.set_result(0.0)

    def refusal(self, error: Exception) -> str:
        return f"The backend is full: {error}"

    def outcome(self, done: Future[float], seconds: float) -> Outcome:
        return Outcome(done.result(), None, "", seconds)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def backend() -> Manual:
    return Manual()


def made(backend: Manual) -> InFlightEngine:
    return InFlightEngine(backend, takes_fidelity=False)


def test_a_result_is_an_outcome(backend: Manual) -> None:
    future = made(backend).submit({"a": 1}, {}, timeout=None)
    assert not future.done()
    backend.sent[0].set_result(3.0)
    assert future.result(1.0).value == 3.0


def test_a_point_that_cannot_be_packed_is_not_sent(backend: Manual) -> None:
    assert made(backend).submit({"lock": 1}, {}, timeout=None).result(0.0).error == "it cannot travel"
    assert backend.sent == []


def test_a_backend_that_refuses_is_an_error_and_takes_no_slot(backend: Manual) -> None:
    engine = made(backend)
    backend.error = RuntimeError("no room")
    with pytest.raises(BocaError, match="The backend is full: no room"):
        engine.submit({}, {}, timeout=None)
    engine.close()  # which would wait for an evaluation that was counted


def test_a_timeout_settles_the_future_cancels_and_takes_the_slot_until_the_evaluation_ends(backend: Manual) -> None:
    engine = made(backend)
    outcome = engine.submit({}, {}, timeout=0.05).result(5.0)
    assert (outcome.value, outcome.died) == (None, False)
    assert outcome.error is not None
    assert "0.05 s" in outcome.error
    wait_until(lambda: backend.cancelled == backend.sent, 5)
    assert engine.slots == 1
    backend.sent[0].set_result(1.0)  # too late to be the result, but the worker is free
    assert engine.slots == 2


def test_a_cancel_that_works_frees_the_slot() -> None:
    backend = Manual(stops=True)
    engine = made(backend)
    engine.submit({}, {}, timeout=0.05).result(5.0)
    wait_until(lambda: engine.slots == 2, 5)


def test_a_result_in_time_stops_the_clock(backend: Manual) -> None:
    engine = made(backend)
    future = engine.submit({}, {}, timeout=0.2)
    backend.sent[0].set_result(1.0)
    time.sleep(0.4)
    assert future.result(0.0).value == 1.0
    assert (backend.cancelled, engine.slots) == ([], 2)


def test_if_all_workers_are_overdue_a_submission_waits_as_long_as_it_may_take_itself(backend: Manual) -> None:
    engine = made(backend)
    for future in [engine.submit({}, {}, timeout=0.05) for _ in range(2)]:
        future.result(5.0)
    assert engine.slots == 1  # at least one, so that the driver tries
    with pytest.raises(BocaError, match=r"All 2 workers.*executor=n"):
        engine.submit({}, {}, timeout=0.1)
    threading.Timer(0.1, backend.sent[0].set_result, [1.0]).start()
    later = engine.submit({}, {}, timeout=5.0)
    backend.sent[2].set_result(7.0)
    assert later.result(1.0).value == 7.0


def test_close_waits_for_results_and_then_takes_nothing_more(backend: Manual) -> None:
    engine = made(backend)
    future = engine.submit({}, {}, timeout=None)
    threading.Timer(0.1, backend.sent[0].set_result, [2.0]).start()
    engine.close()
    assert future.result(0.0).value == 2.0
    assert (backend.cancelled, backend.closed) == ([], 1)
    with pytest.raises(BocaError, match="closed"):
        engine.submit({}, {}, timeout=None)


def test_close_now_gives_up_what_runs_and_cancels_it(backend: Manual) -> None:
    engine = made(backend)
    futures = [engine.submit({}, {}, timeout=None) for _ in range(2)]
    engine.close(now=True)
    assert all(future.result(0.0).died for future in futures)
    assert set(backend.cancelled) == set(backend.sent)
    backend.sent[0].set_result(1.0)  # a result that comes now changes nothing
    assert futures[0].result(0.0).died
