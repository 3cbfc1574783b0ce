"""Ready-made callbacks for `maximize` and `minimize`: a progress bar, and a line of log a trial.

A callback is any callable; it gets the optimiser and the trial that was just finished.  One with a method `close` is
closed when the run ends, however that is.  Where an error ended it, one with a method `fail` is told the error before.
What these two raise is logged and costs nothing else.
"""

from __future__ import annotations

import logging
import math
import sys

from boca.domain.trial import Trial
from boca.study.optimizer import Optimizer


class Progress:
    """A bar on the terminal: how much of the budget is gone, how many trials there are, and the best so far."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self._progress = Progress(
            BarColumn(30),
            TaskProgressColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=Console(file=sys.stderr),
            auto_refresh=False,
        )
        self._task = self._progress.add_task("", total=1.0)

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        self._progress.start()
        budget, history = optimizer.budget, optimizer.history
        share = budget.spent / budget.total if math.isfinite(budget.total) else 0.0
        best = optimizer.best
        found = "no result at the target yet" if best is None else f"best {best.value:.6g} (trial {best.number})"
        failed = sum(t.state == "failed" for t in history)
        words = f"{len(history)} trials{f', {failed} failed' if failed else ''}, {found}"
        self._progress.update(self._task, completed=min(share, 1.0), description=words)
        self._progress.refresh()

    def close(self) -> None:
        self._progress.stop()


class Log:
    """A line a trial to a logger, at level INFO; failures at WARNING."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._log = logging.getLogger("boca") if logger is None else logger

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        where = f"x={trial.x!r}" + (f", z={trial.z!r}" if trial.z else "")
        if trial.state == "failed":
            self._log.warning("trial %d failed at %s: %s", trial.number, where, trial.reason)
        else:
            self._log.info("trial %d: %.6g at %s, cost %.4g", trial.number, trial.value, where, trial.cost)
