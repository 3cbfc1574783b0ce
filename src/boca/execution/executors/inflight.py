"""Evaluations that an executor of somebody else's runs, and that cannot always be stopped.

Such an evaluation has two ends: that of waiting for it, when there is a result or the time is over, and that of running
it.  Between the two it holds a worker that nobody else can have, so the engine has a slot less.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress

from boca.domain.errors import BocaError
from boca.execution.executors.base import CLOSED, Outcome, closed


class InFlight:
    """One evaluation on its way."""

    def __init__(self, flights: Flights, timeout: float | None) -> None:
        self.future: Future[Outcome] = Future()
        self.future.set_running_or_notify_cancel()  # it is not for the one who waits to cancel
        self.stop: Callable[[], object] = lambda: None
        """What to do when nobody waits any more: whatever may end the evaluation."""
        self._flights = flights
        self._began = time.perf_counter()
        self._timeout = timeout
        self._timer = None if timeout is None else threading.Timer(timeout, self._give_up)

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def start(self) -> None:
        """Let the clock run."""
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()

    def land(self, outcome: Outcome) -> None:
        """Take the outcome of an evaluation that runs no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._flights.remove(self)  # first: who sees the result finds the slot free
        self.settle(outcome)

    def settle(self, outcome: Outcome) -> None:
        """Give whoever waits this outcome, unless there was another one before."""
        with suppress(InvalidStateError):
            self.future.set_result(outcome)

    def _give_up(self) -> None:
        self._flights.lose(self)  # first: who sees the result finds the slot taken
        self.settle(
            Outcome(None, f"There was no result after {self._timeout:g} s; it may still be running.", "", self.seconds)
        )
        self.stop()


class Flights:
    """All evaluations of one engine that are not over."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._all: set[InFlight] = set()
        self._lost: set[InFlight] = set()
        self._is_closed = False

    def free(self, capacity: int) -> int:
        """Return how many slots there are when some workers are busy with what nobody waits for; at least one."""
        with self._change:
            return max(1, capacity - len(self._lost))

    def begin(self, capacity: int, timeout: float | None) -> InFlight:
        """Return a new flight; where no worker is free, wait for one as long as the flight itself may take."""
        with self._change:
            if self._is_closed:
                raise closed()
            if not self._change.wait_for(lambda: len(self._lost) < capacity, timeout):
                raise BocaError(
                    f"All {capacity} workers are busy with evaluations that had no result in time, which this executor "
                    f"cannot stop, and none came free within {timeout:g} s. Use executor=n: such workers are killed."
                )
            flight = InFlight(self, timeout)
            self._all.add(flight)
        return flight

    def remove(self, flight: InFlight) -> None:
        with self._change:
            self._all.discard(flight)
            self._lost.discard(flight)
            self._change.notify_all()

    def lose(self, flight: InFlight) -> None:
        with self._change:
            if flight in self._all:
                self._lost.add(flight)

    def close(self, *, now: bool) -> None:
        """Wait for the results that are awaited, or do without them; stop what can be stopped."""
        with self._change:
            self._is_closed = True
            flights = list(self._all)
        if not now:
            wait([flight.future for flight in flights])
        for flight in flights:
            flight.settle(Outcome(None, CLOSED, "", flight.seconds, died=True))
        stops = [threading.Thread(target=flight.stop, daemon=True) for flight in flights if flight in self._all]
        for thread in stops:  # at once: some take seconds
            thread.start()
        for thread in stops:
            thread.join()
