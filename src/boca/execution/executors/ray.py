"""Evaluate on the workers of a Ray cluster, which need boca installed."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from typing import Any, final

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import Point
from boca.execution.executors.base import Objective, Outcome, outcome_of, pickled, pickled_arguments
from boca.execution.executors.handle import Begun
from boca.execution.executors.inflight import Cancel
from boca.execution.executors.worker import Report, described, evaluate_pickled


@final
class Ray:
    """The module `ray` after `ray.init()`; one slot per CPU of the cluster.

    Ray runs a task again if its worker dies, three times by default.  Here the driver decides that: tasks have no
    retries.  After a timeout the worker is killed.  Output goes where Ray sends it.
    """

    def __init__(self, ray: Any, objective: Objective) -> None:
        if not ray.is_initialized():
            raise InvalidInput("Ray is not running; executor=ray needs a running cluster. Call ray.init() first.")
        self._ray = ray
        self._payload = ray.put(pickled(objective))
        self._remote = ray.remote(max_retries=0)(evaluate_pickled)

    @property
    def capacity(self) -> int:
        """The CPUs of the cluster; one if there are none, as a node may join when there is work."""
        try:
            resources: dict[str, float] = self._ray.cluster_resources()
        except Exception as error:
            raise BocaError(f"The Ray cluster does not answer: {error}") from error
        return max(1, int(resources.get("CPU", 0)))

    @property
    def is_here(self) -> bool:
        return False

    def packed(self, values: tuple[Point, ...], run: Begun | None = None) -> bytes | Outcome:
        return pickled_arguments(values, None if run is None else run.plan)

    def send(self, packed: bytes) -> tuple[Future[Report], Cancel]:
        task = self._remote.remote(self._payload, packed)
        return task.future(), lambda: self._cancel(task)

    def refusal(self, error: Exception) -> str:
        return f"The Ray cluster accepts no more evaluations: {error}"

    def outcome(self, done: Future[Report], seconds: float) -> Outcome:
        try:
            return outcome_of(done.result())
        except self._ray.exceptions.RayTaskError as error:  # in sending the call or its result
            return Outcome(None, described(error), "", seconds)
        except BaseException as error:
            return Outcome(None, f"The Ray worker ended without a result: {error!r}", "", seconds, died=True)

    def close(self) -> None:
        """Do nothing: Ray stays up."""

    def _cancel(self, task: Any) -> None:
        with suppress(Exception):  # the cluster is gone
            self._ray.cancel(task, force=True)
