"""Evaluate in an executor of the user's: threads, processes, or any other of `concurrent.futures`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import TypeAlias, final

from boca.domain.space import Point
from boca.execution.executors.base import Objective, Outcome, outcome_of, pickled, pickled_arguments
from boca.execution.executors.handle import Begun, evaluate_run
from boca.execution.executors.inflight import Cancel
from boca.execution.executors.worker import Report, described, evaluate, evaluate_pickled

log = logging.getLogger("boca")

Call: TypeAlias = Callable[[], Report]


@final
class Pool:
    """A `concurrent.futures.Executor`, which stays the user's: it is not shut down.

    Its workers cannot be killed.  An evaluation that exceeds its timeout has failed, but occupies its worker until it
    ends.  If a worker of a process pool dies, the pool is broken: all its evaluations have died, and it accepts no
    more.  Output is not captured.

    A thread that never ends keeps the interpreter from exiting.
    """

    def __init__(self, executor: Executor, objective: Objective, workers: int | None = None) -> None:
        """Use an executor; `workers` says how many it has, which only the pools of Python do themselves."""
        self._executor = executor
        self._objective = objective
        self._payload = None if isinstance(executor, ThreadPoolExecutor) else pickled(objective)
        known = workers or getattr(executor, "_max_workers", None)
        self.capacity = int(known or os.cpu_count() or 1)
        if known is None:
            log.warning(
                "%r does not say how many workers it has. As many trials run at once as this machine has processors: "
                "%d. To run more, give workers=n.",
                executor,
                self.capacity,
            )

    @property
    def is_here(self) -> bool:
        return self._payload is None

    def packed(self, values: tuple[Point, ...], run: Begun | None = None) -> Call | Outcome:
        if self._payload is None:
            if run is not None:
                return partial(evaluate_run, self._objective, values, run.plan, run.link)
            return partial(evaluate, self._objective, values)
        sent = pickled_arguments(values, None if run is None else run.plan)
        return sent if isinstance(sent, Outcome) else partial(evaluate_pickled, self._payload, sent)

    def send(self, packed: Call) -> tuple[Future[Report], Cancel]:
        remote = self._executor.submit(packed)
        return remote, remote.cancel  # which has an effect only before it begins

    def refusal(self, error: Exception) -> str:
        return (
            f"The executor accepts no more evaluations: {error}. Give another executor, or executor=n, with which "
            "the death of a worker costs one trial."
        )

    def outcome(self, done: Future[Report], seconds: float) -> Outcome:
        try:
            return outcome_of(done.result())
        except BrokenExecutor as error:
            return Outcome(None, f"A worker died and broke the pool: {error}", "", seconds, died=True)
        except CancelledError:
            return Outcome(None, "The evaluation was cancelled before it began.", "", seconds, died=True)
        except BaseException as error:  # in sending the call or its result
            return Outcome(None, described(error), "", seconds)

    def close(self) -> None:
        """Do nothing: the executor stays open."""
