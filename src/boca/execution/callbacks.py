"""Ready-made callbacks for `maximize` and `minimize`: a progress bar, a log line per trial, JSON lines.

A callback is any callable.  It is called with the optimizer and the trial that has just finished.  If it has a method
`close`, that is called when the run ends, also by an error.  If it has a method `fail`, that is called first with the
error that ended the run.  An error in these two methods is logged and does not affect the run.
"""

from __future__ import annotations

import logging
import math
import sys
import time

from boca.accounting.ledger import Ledger
from boca.domain.trial import Trial
from boca.execution.lines import JsonLines, Pace, line
from boca.study.optimizer import Optimizer
from boca.study.recommendation import nothing_best

__all__ = ["JsonLines", "Log", "Progress"]

_BAR_WIDTH = 20  # characters; leaves room for the words beside it in a terminal of 80 columns
_LEAST_SECONDS_BETWEEN = 0.05  # two drawings of the bar: a quick objective must not spend its time on them


class Progress:
    """A bar in the terminal: the share of the budget that is spent, the number of trials, and the best value so far."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            BarColumn(_BAR_WIDTH),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            auto_refresh=False,
        )
        self._task = self._progress.add_task("", total=1.0)
        self._drawn = -math.inf

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        self._progress.start()
        share, words = state_of(optimizer)
        self._progress.update(self._task, completed=share, description=words)
        if time.monotonic() - self._drawn >= _LEAST_SECONDS_BETWEEN:
            self._progress.refresh()
            self._drawn = time.monotonic()

    def close(self) -> None:
        self._progress.stop()  # which draws the last state


def state_of(optimizer: Optimizer) -> tuple[float, str]:
    """Return how far a study is: the share of the budget that is spent, and in words the trials and the best."""
    history = optimizer.storage.read().history
    budget, best = optimizer.budget, history.best(optimizer.problem)
    share = budget.spent / budget.total if math.isfinite(budget.total) else 0.0
    if front := history.front(optimizer.problem) if optimizer.problem.objectives else []:
        found = f"{len(front)} on the front"
    elif best is not None:
        found = f"best {best.value:.6g} (trial {best.number})"
    else:
        has_limits = bool(optimizer.problem.subject_to)
        found = nothing_best(optimizer.problem, history) if has_limits else "no result at the target yet"
    failed = sum(t.state == "failed" for t in history)
    count = f"{len(history)} trial{'' if len(history) == 1 else 's'}"
    return min(share, 1.0), f"{count}{f', {failed} failed' if failed else ''}, {found}"


class Log:
    """One line per trial to a logger, at level INFO; failures at WARNING."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._log = logging.getLogger("boca") if logger is None else logger
        self._pace = Pace()

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        level = logging.WARNING if trial.state == "failed" else logging.INFO
        if not self._log.isEnabledFor(level):
            return
        ledger = Ledger(optimizer.problem, optimizer.storage.read().history, optimizer.limit)
        self._log.log(level, "%s", line(ledger, trial, self._pace.seconds_left(ledger, trial)))
