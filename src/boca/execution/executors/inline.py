"""Evaluate in this process and thread, one after the other."""

from __future__ import annotations

from concurrent.futures import Future
from typing import final

from boca.domain.errors import InvalidInput
from boca.domain.space import Point
from boca.execution.executors.base import Objective, Outcome, arguments, finished
from boca.execution.executors.worker import evaluate


@final
class Inline:
    """The engine of `executor=None`: nothing starts, nothing is captured, and nothing can be stopped but by Ctrl-C."""

    def __init__(self, objective: Objective, *, takes_fidelity: bool) -> None:
        self._objective = objective
        self._takes_fidelity = takes_fidelity

    @property
    def slots(self) -> int:
        return 1

    def submit(self, x: Point, z: Point, *, timeout: float | None) -> Future[Outcome]:
        """Return a future that is finished; KeyboardInterrupt and SystemExit pass."""
        refuse_timeout(timeout)
        values = arguments(x, z, takes_fidelity=self._takes_fidelity)
        report = evaluate(self._objective, values, passing=(KeyboardInterrupt, SystemExit))
        exception = report.exception
        if exception is None and report.error is not None:
            exception = InvalidInput(report.error)
        return finished(Outcome(report.value, report.error, "", report.seconds, exception=exception))

    def close(self, *, now: bool = False) -> None:
        """Do nothing: nothing is left running."""


def refuse_timeout(timeout: object) -> None:
    """Refuse a limit that nobody could enforce."""
    if timeout is not None:
        raise InvalidInput(
            f"A timeout needs another process, which can be killed; got timeout={timeout!r} with executor=None. "
            "Give executor=1."
        )
