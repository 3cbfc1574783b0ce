"""Evaluate on the workers of a Dask cluster, which need boca installed."""

from __future__ import annotations

import os
import signal
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any, final

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import Point
from boca.execution.executors.base import Objective, Outcome, outcome_of, pickled, pickled_arguments
from boca.execution.executors.handle import Begun
from boca.execution.executors.inflight import Cancel
from boca.execution.executors.worker import described, evaluate_pickled


@final
class Dask:
    """A `distributed.Client`, which stays the user's; one slot per thread of its workers.

    Dask runs a task again if its worker dies, three times by default.  Here the driver decides that: while an engine is
    open, the scheduler allows no failures, for all of its clients.

    After a timeout the worker is killed if it has one thread and a nanny.  Otherwise the evaluation occupies its thread
    until it ends.  Output is not captured.
    """

    def __init__(self, client: Any, objective: Objective) -> None:
        if client.asynchronous or client.status != "running":
            raise InvalidInput(
                f"A Dask client must be connected and not asynchronous; got {client!r} with status {client.status!r}. "
                "Give executor=distributed.Client(address)."
            )
        self._client = client
        self._payload = pickled(objective)
        self._is_closed = False
        self._count_runs(+1)

    @property
    def capacity(self) -> int:
        """The threads of all workers; one if there are none, as a worker may join when there is work."""
        try:
            threads: dict[str, int] = self._client.nthreads()
        except Exception as error:
            raise BocaError(f"The Dask cluster does not answer: {error}") from error
        return max(1, sum(threads.values()))

    @property
    def is_here(self) -> bool:
        return False

    def packed(self, values: tuple[Point, ...], run: Begun | None = None) -> bytes | Outcome:
        return pickled_arguments(values, None if run is None else run.plan)

    def send(self, packed: bytes) -> tuple[Any, Cancel]:
        remote = self._client.submit(evaluate_pickled, self._payload, packed, pure=False, retries=0)
        return remote, lambda: self._cancel(remote)

    def refusal(self, error: Exception) -> str:
        return f"The Dask cluster accepts no more evaluations: {error}"

    def outcome(self, done: Any, seconds: float) -> Outcome:
        from distributed.scheduler import KilledWorker

        try:
            return outcome_of(done.result())
        except (KilledWorker, CancelledError) as error:
            return Outcome(None, f"The Dask worker ended without a result: {error!r}", "", seconds, died=True)
        except BaseException as error:  # in sending the call or its result
            return Outcome(None, described(error), "", seconds)

    def close(self) -> None:
        """Let the scheduler allow failures again; the client stays open."""
        if not self._is_closed:
            self._is_closed = True
            with suppress(Exception):  # the cluster may be gone
                self._count_runs(-1)

    def _count_runs(self, change: int) -> None:
        """Tell the scheduler that a run began or ended; after the last one it allows as many failures as before."""

        def count(change: int, dask_scheduler: Any) -> None:  # nested, so that it is pickled by value
            kept = vars(dask_scheduler)
            runs, allowed = kept.pop("boca_runs", (0, dask_scheduler.allowed_failures))
            runs = max(runs + change, 0)  # a scheduler that was restarted knows of none
            dask_scheduler.allowed_failures = 0 if runs else allowed
            if runs:
                kept["boca_runs"] = (runs, allowed)

        self._client.run_on_scheduler(count, change)

    def _cancel(self, remote: Any) -> None:
        """End a task whose result is no longer needed, if that ends no other task.

        The nanny kills the worker, and starts another when it notices.  The restart that Dask offers takes four seconds
        longer, and a local cluster gives up a worker that is away 15 s after its last death.
        """

        def kill(dask_worker: Any) -> None:  # nested, so that it is pickled by value
            os.kill(dask_worker.pid, signal.SIGKILL)

        with suppress(Exception):  # the cluster is gone, or the worker has no nanny: the task ends by itself
            address = next((a for a, keys in self._client.processing().items() if remote.key in keys), None)
            if address is None:
                remote.cancel()
            elif self._client.nthreads()[address] == 1:
                self._client.run(kill, workers=[address], nanny=True)
