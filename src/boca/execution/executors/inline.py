"""Evaluate in this process and thread, one point after another."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import replace
from typing import final

from boca.domain.errors import InvalidInput
from boca.domain.space import Point
from boca.execution.executors.base import Objective, Outcome, arguments, finished, outcome_of
from boca.execution.executors.handle import Begun, evaluate_run
from boca.execution.executors.worker import evaluate, here


@final
class Inline:
    """The engine of `executor=None`: it starts no process, captures no output, and only Ctrl-C stops an evaluation."""

    def __init__(self, objective: Objective, *, takes_fidelity: bool) -> None:
        self._objective = objective
        self._takes_fidelity = takes_fidelity

    @property
    def slots(self) -> int:
        return 1

    def submit(self, x: Point, z: Point, *, timeout: float | None, run: Begun | None = None) -> Future[Outcome]:
        """Evaluate at once and return a finished future; KeyboardInterrupt and SystemExit are raised here."""
        refuse_timeout(timeout)
        values = arguments(x, z, takes_fidelity=self._takes_fidelity)
        passing = (KeyboardInterrupt, SystemExit)
        if run is None:
            report = evaluate(self._objective, values, passing=passing)
        else:
            report = evaluate_run(self._objective, values, run.plan, run.link, passing=passing)
        exception = report.exception
        if exception is None and report.error is not None:
            exception = InvalidInput(report.error)
        return finished(replace(outcome_of(report), exception=exception, worker=here()))

    def close(self, *, now: bool = False) -> None:
        """Do nothing: no evaluation outlives `submit`."""


def refuse_timeout(timeout: object) -> None:
    """Refuse a timeout, which cannot be enforced in this thread."""
    if timeout is not None:
        raise InvalidInput(
            "timeout limits one evaluation and needs a process that can be killed; "
            f"got timeout={timeout!r} with executor=None. Give executor=1. "
            f"For a limit of the whole run give budget=boca.seconds({timeout!r})."
        )
