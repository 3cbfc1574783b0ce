"""Evaluate on the workers of a Ray cluster, which need boca installed."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import Any, final

from boca.domain.errors import BocaError, InvalidInput
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
from boca.execution.executors.worker import Report, described, evaluate_pickled


@final
class Ray:
    """The engine of the module `ray` after `ray.init()`; one slot a CPU of the cluster.

    Ray runs a task again whose worker died, three times by default.  Here that is for the driver to decide: every task
    has no retries.  After a timeout, counted from the submission, the worker is killed.  What is printed goes where Ray
    sends it.
    """

    def __init__(self, ray: Any, objective: Objective, *, takes_fidelity: bool) -> None:
        if not ray.is_initialized():
            raise InvalidInput("Ray must be running; got the module ray before ray.init(). Call that first.")
        self._ray = ray
        self._takes_fidelity = takes_fidelity
        self._payload = ray.put(pickled(objective))
        self._remote = ray.remote(max_retries=0)(evaluate_pickled)
        self._flights = Flights()

    @property
    def slots(self) -> int:
        return self._flights.free(self._capacity)

    @property
    def _capacity(self) -> int:
        """How many CPUs the cluster has now; with none, one may come when there is something to do."""
        try:
            resources: dict[str, float] = self._ray.cluster_resources()
        except Exception as error:
            raise BocaError(f"The Ray cluster does not answer: {error}") from error
        return max(1, int(resources.get("CPU", 0)))

    def submit(self, x: Point, z: Point, *, timeout: float | None) -> Future[Outcome]:
        values = pickled_arguments(arguments(x, z, takes_fidelity=self._takes_fidelity))
        if isinstance(values, Outcome):
            return finished(values)
        flight = self._flights.begin(self._capacity, checked(timeout))
        try:
            running = self._remote.remote(self._payload, values)
        except Exception as error:
            self._flights.remove(flight)
            raise BocaError(f"Ray takes nothing any more: {error}") from error
        flight.stop = lambda: self._stop(running)
        flight.start()
        running.future().add_done_callback(lambda done: flight.land(self._outcome(done, flight)))
        return flight.future

    def close(self, *, now: bool = False) -> None:
        self._flights.close(now=now)

    def _stop(self, running: Any) -> None:
        with suppress(Exception):  # of a cluster that is gone
            self._ray.cancel(running, force=True)

    def _outcome(self, done: Future[Report], flight: InFlight) -> Outcome:
        exceptions = self._ray.exceptions
        try:
            return outcome_of(done.result())
        except exceptions.RayTaskError as error:  # of the way there or back
            return Outcome(None, described(error), "", flight.seconds)
        except BaseException as error:
            return Outcome(None, f"The Ray worker ended and left no result: {error!r}", "", flight.seconds, died=True)
