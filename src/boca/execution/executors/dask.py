"""Evaluate on the workers of a Dask cluster, which need boca installed."""

from __future__ import annotations

import os
import signal
from concurrent.futures import CancelledError, Future
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
from boca.execution.executors.worker import described, evaluate_pickled


@final
class Dask:
    """The engine of a `distributed.Client`, which stays the user's; one slot a thread of its workers.

    Dask runs a task again whose worker died, three times by default.  Here that is for the driver to decide: as long as
    an engine is open, the scheduler is told to allow no failures, for all of its clients.

    After a timeout, counted from the submission, the worker is killed if it has one thread and a nanny.  Otherwise
    the evaluation holds its thread until it ends by itself, and there is a slot less as long.  Nothing printed is
    captured.
    """

    def __init__(self, client: Any, objective: Objective, *, takes_fidelity: bool) -> None:
        if client.asynchronous or client.status != "running":
            raise InvalidInput(
                f"A Dask client must be connected and not asynchronous; got {client!r} with status {client.status!r}."
            )
        self._client = client
        self._takes_fidelity = takes_fidelity
        self._payload = pickled(objective)
        self._flights = Flights()
        self._is_closed = False
        self._count_runs(+1)

    @property
    def slots(self) -> int:
        return self._flights.free(self._capacity)

    @property
    def _capacity(self) -> int:
        """How many threads the workers have now; with none, one may come when there is something to do."""
        try:
            threads: dict[str, int] = self._client.nthreads()
        except Exception as error:
            raise BocaError(f"The Dask cluster does not answer: {error}") from error
        return max(1, sum(threads.values()))

    def submit(self, x: Point, z: Point, *, timeout: float | None) -> Future[Outcome]:
        values = pickled_arguments(arguments(x, z, takes_fidelity=self._takes_fidelity))
        if isinstance(values, Outcome):
            return finished(values)
        flight = self._flights.begin(self._capacity, checked(timeout))
        try:
            running = self._client.submit(evaluate_pickled, self._payload, values, pure=False, retries=0)
        except Exception as error:
            self._flights.remove(flight)
            raise BocaError(f"The Dask cluster takes nothing any more: {error}") from error
        flight.stop = lambda: self._stop(running)
        flight.start()
        running.add_done_callback(lambda done: flight.land(_outcome(done, flight)))
        return flight.future

    def close(self, *, now: bool = False) -> None:
        self._flights.close(now=now)
        if not self._is_closed:
            self._is_closed = True
            with suppress(Exception):  # the cluster may be gone
                self._count_runs(-1)

    def _count_runs(self, change: int) -> None:
        """Tell the scheduler of one run more or less; after the last one it allows as many failures as before."""

        def count(change: int, dask_scheduler: Any) -> None:  # nested, so that it travels whole
            kept = vars(dask_scheduler)
            runs, allowed = kept.pop("boca_runs", (0, dask_scheduler.allowed_failures))
            runs = max(runs + change, 0)  # none are known to a scheduler that was started again
            dask_scheduler.allowed_failures = 0 if runs else allowed
            if runs:
                kept["boca_runs"] = (runs, allowed)

        self._client.run_on_scheduler(count, change)

    def _stop(self, running: Any) -> None:
        """End a task that nobody waits for, where that ends nothing else.

        The nanny kills the worker, and starts another when it sees that it is dead.  To restart it in the way that Dask
        offers takes four seconds more, and a local cluster gives up for good a worker that is away 15 s after its last
        death.
        """

        def kill(dask_worker: Any) -> None:  # nested, so that it travels whole
            os.kill(dask_worker.pid, signal.SIGKILL)

        with suppress(Exception):  # a cluster that is gone, a worker without a nanny: then it ends when it ends
            address = next((a for a, keys in self._client.processing().items() if running.key in keys), None)
            if address is None:
                running.cancel()
            elif self._client.nthreads()[address] == 1:
                self._client.run(kill, workers=[address], nanny=True)


def _outcome(done: Any, flight: InFlight) -> Outcome:
    from distributed.scheduler import KilledWorker

    try:
        return outcome_of(done.result())
    except (KilledWorker, CancelledError) as error:
        return Outcome(None, f"The Dask worker ended and left no result: {error!r}", "", flight.seconds, died=True)
    except BaseException as error:  # of the way there or back
        return Outcome(None, described(error), "", flight.seconds)
