"""Evaluate in an executor of the user's: threads, processes, or whatever else keeps to `concurrent.futures`."""

from __future__ import annotations

import os
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import final

from boca.domain.errors import BocaError
from boca.domain.space import Point
from boca.execution.executors.base import (
    Objective,
    Outcome,
    arguments,
    checked,
    finished,
    outcome_of,
    pickled,
    pickled_arguments,
)
from boca.execution.executors.inflight import Flights, InFlight
from boca.execution.executors.worker import Report, described, evaluate, evaluate_pickled


@final
class Pool:
    """The engine of any `concurrent.futures.Executor`, which stays the user's: it is not shut down.

    Its workers cannot be killed.  After a timeout, counted from the submission, an evaluation has failed, but it holds
    its worker until it ends by itself; there is a slot less as long.  Where a worker of a process pool dies, the pool
    is broken: everything that ran in it has died, and nothing more can be submitted.  Nothing printed is captured.

    A thread that never ends keeps the interpreter from ending.
    """

    def __init__(self, executor: Executor, objective: Objective, *, takes_fidelity: bool) -> None:
        self._executor = executor
        self._takes_fidelity = takes_fidelity
        self._capacity = int(getattr(executor, "_max_workers", None) or os.cpu_count() or 1)
        self._flights = Flights()
        self._objective = objective
        self._payload = None if isinstance(executor, ThreadPoolExecutor) else pickled(objective)

    @property
    def slots(self) -> int:
        return self._flights.free(self._capacity)

    def submit(self, x: Point, z: Point, *, timeout: float | None) -> Future[Outcome]:
        values = arguments(x, z, takes_fidelity=self._takes_fidelity)
        call = partial(evaluate, self._objective, values)
        if self._payload is not None:
            sent = pickled_arguments(values)
            if isinstance(sent, Outcome):
                return finished(sent)
            call = partial(evaluate_pickled, self._payload, sent)
        flight = self._flights.begin(self._capacity, checked(timeout))
        try:
            running = self._executor.submit(call)
        except Exception as error:
            self._flights.remove(flight)
            raise BocaError(
                f"The executor takes nothing any more: {error}. Give another one, or executor=n, "
                "where the death of a worker costs one trial and nothing else."
            ) from error
        flight.stop = running.cancel  # which helps if it has not begun
        flight.start()
        running.add_done_callback(lambda done: flight.land(_outcome(done, flight)))
        return flight.future

    def close(self, *, now: bool = False) -> None:
        """Leave the executor as it is; what runs there runs on."""
        self._flights.close(now=now)


def _outcome(done: Future[Report], flight: InFlight) -> Outcome:
    try:
        return outcome_of(done.result())
    except BrokenExecutor as error:
        reason = f"A worker of the pool ended, and the pool with it: {error}"
        return Outcome(None, reason, "", flight.seconds, died=True)
    except CancelledError:
        return Outcome(None, "The evaluation was cancelled before it began.", "", flight.seconds, died=True)
    except BaseException as error:  # of the way there or back
        return Outcome(None, described(error), "", flight.seconds)
