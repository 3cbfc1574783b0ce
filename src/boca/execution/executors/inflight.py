"""The engine of executors that belong to the user: pools and clusters, whose evaluations cannot always be stopped.

Such an evaluation ends twice.  Waiting for it ends with its result or its timeout; the evaluation itself may run longer
than that, and occupies a worker until it ends.  The engine has one slot less meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from typing import Any, Protocol, TypeAlias, final

from boca.domain.errors import BocaError
from boca.domain.space import Point
from boca.execution.executors.base import CLOSED, Outcome, arguments, checked_timeout, closed, finished
from boca.execution.executors.handle import Begun
from boca.execution.executors.mailbox import Mailroom

Cancel: TypeAlias = Callable[[], object]
"""Whatever may end an evaluation whose result is no longer needed."""


class Backend(Protocol):
    """A pool or a cluster of the user's, as `InFlightEngine` uses it."""

    @property
    def capacity(self) -> int:
        """How many workers it has now."""

    @property
    def is_here(self) -> bool:
        """Whether it evaluates in this process, where a run can speak to its driver directly."""

    def packed(self, values: tuple[Point, ...], run: Begun | None = None) -> Any:
        """Return the arguments of one call in the form that `send` takes, or the `Outcome` of a failure."""

    def send(self, packed: Any) -> tuple[Any, Cancel]:
        """Start one evaluation; return its future, which has `add_done_callback`, and how to end it early."""

    def refusal(self, error: Exception) -> str:
        """Return the message if `send` raises."""

    def outcome(self, done: Any, seconds: float) -> Outcome:
        """Return the outcome of a finished future, `seconds` after it was sent."""

    def close(self) -> None:
        """Undo what the backend changed in the pool or cluster, which stays open."""


@final
class InFlightEngine:
    """Evaluate through a backend; a timeout counts from the submission."""

    def __init__(self, backend: Backend, *, takes_fidelity: bool, workers: int | None = None) -> None:
        """Use a backend; `workers` is how many evaluations it takes at once, if it cannot say so or may grow."""
        self._backend = backend
        self._workers = workers
        self._takes_fidelity = takes_fidelity
        self._mailroom = Mailroom()
        self._change = threading.Condition()
        self._running: set[InFlight] = set()
        self._overdue: set[InFlight] = set()
        self._is_closed = False

    @property
    def slots(self) -> int:
        """The workers that no overdue evaluation occupies; at least one."""
        capacity = self._capacity
        with self._change:
            return max(1, capacity - len(self._overdue))

    @property
    def _capacity(self) -> int:
        return self._backend.capacity if self._workers is None else self._workers

    def submit(self, x: Point, z: Point, *, timeout: float | None, run: Begun | None = None) -> Future[Outcome]:
        given = arguments(x, z, takes_fidelity=self._takes_fidelity)
        packed = self._backend.packed(given) if run is None else self._backend.packed(given, run)
        if isinstance(packed, Outcome):
            return finished(packed)
        one = self._begin(self._capacity, checked_timeout(timeout))
        box = None if run is None or self._backend.is_here else self._mailroom.open(run.plan, run.link)
        try:
            remote, one.cancel = self._backend.send(packed)
        except Exception as error:
            self._mailroom.close(box)
            self.remove(one)
            raise BocaError(self._backend.refusal(error)) from error
        one.start_clock()

        def end(done: Any) -> None:
            self._mailroom.close(box)  # with the last that the run has said
            one.finish(self._backend.outcome(done, one.seconds))

        remote.add_done_callback(end)
        return one.future

    def close(self, *, now: bool = False) -> None:
        """Wait for the results that are awaited, or give them up with `now`; then end what can be ended."""
        with self._change:
            self._is_closed = True
            running = list(self._running)
        if not now:
            wait([one.future for one in running])
        for one in running:
            one.settle(Outcome(None, CLOSED, "", one.seconds, died=True))
        cancels = [threading.Thread(target=one.cancel, daemon=True) for one in running if one in self._running]
        for thread in cancels:  # all at the same time: some take seconds
            thread.start()
        for thread in cancels:
            thread.join()
        self._backend.close()

    def _begin(self, capacity: int, timeout: float | None) -> InFlight:
        """Return a new evaluation; if overdue ones occupy all workers, wait at most `timeout` for one to end."""
        with self._change:
            if self._is_closed:
                raise closed()
            if not self._change.wait_for(lambda: len(self._overdue) < capacity, timeout):
                raise BocaError(
                    f"All {capacity} workers are busy with evaluations that exceeded their timeout, and none became "
                    f"free within {timeout:g} s. This executor cannot stop an evaluation. Give executor=n: boca "
                    "kills its own workers."
                )
            one = InFlight(self, timeout)
            self._running.add(one)
        return one

    def remove(self, one: InFlight) -> None:
        """Free the worker of an evaluation that has ended."""
        with self._change:
            self._running.discard(one)
            self._overdue.discard(one)
            self._change.notify_all()

    def count_overdue(self, one: InFlight) -> None:
        """Count the worker of an evaluation as occupied until it ends, unless it has ended."""
        with self._change:
            if one in self._running:
                self._overdue.add(one)


@final
class InFlight:
    """One evaluation that was sent and has not ended."""

    def __init__(self, engine: InFlightEngine, timeout: float | None) -> None:
        self.future: Future[Outcome] = Future()
        self.future.set_running_or_notify_cancel()  # the caller cannot cancel it
        self.cancel: Cancel = lambda: None
        self._engine = engine
        self._began = time.perf_counter()
        self._timeout = timeout
        self._timer = None if timeout is None else threading.Timer(timeout, self._time_out)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def start_clock(self) -> None:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def finish(self, outcome: Outcome) -> None:
        """Take the outcome of an evaluation that has ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._engine.remove(self)  # before the result: its reader must find the slot free
        self.settle(outcome)

    def settle(self, outcome: Outcome) -> None:
        """Set the result of the future, unless it has one."""
        with suppress(InvalidStateError):
            self.future.set_result(outcome)

    def _time_out(self) -> None:
        self._engine.count_overdue(self)  # before the result: its reader must find the slot occupied
        error = f"The evaluation had no result after {self._timeout:g} s; it may still be running."
        self.settle(Outcome(None, error, "", self.seconds))
        self.cancel()
