"""Progress of the runs: the result of each, and how long the rest may take.

On a terminal it is a bar; elsewhere, in a log or a pipe, it is one line per finished run.  Everything goes to standard
error, and a run that failed shows its traceback in either case.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.table import Column
from rich.text import Text

from boca.bench import records, runner
from boca.bench.records import Record
from boca.bench.runner import Cell

Reporter: TypeAlias = Callable[[Cell, Record | str], None]


@contextmanager
def shown(cells: Sequence[Cell], *, jobs: int, timed: Collection[str]) -> Iterator[Reporter]:
    """Yield the function to call with every outcome; `timed` are the problems whose cells run one at a time."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False, soft_wrap=True)
    forecast = Forecast(cells, jobs=jobs, timed=timed)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        yield _lines(console, forecast)
        return
    columns = (
        BarColumn(20),
        MofNCompleteColumn(),
        _Left(Column(no_wrap=True, min_width=len("about 10 h 59 min left"))),
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
    )
    # one refresh per second: the runs that are measured share the machine with the bar
    with Progress(*columns, console=console, refresh_per_second=1, expand=True) as progress:
        yield _bar(progress, forecast)


def _lines(console: Console, forecast: Forecast) -> Reporter:
    def report(cell: Cell, outcome: Record | str) -> None:
        forecast.note(cell, outcome)
        left = forecast.seconds_left()
        until = "" if left is None or isinstance(outcome, str) else f"; about {duration(left)} left"
        console.print(f"[{forecast.done}/{forecast.total}] {summary(cell, outcome)}{until}")

    return report


def _bar(progress: Progress, forecast: Forecast) -> Reporter:
    task = progress.add_task("", total=forecast.total, due=None)

    def report(cell: Cell, outcome: Record | str) -> None:
        forecast.note(cell, outcome)
        left = forecast.seconds_left()
        progress.update(task, advance=1, due=None if left is None else time.monotonic() + left)
        if isinstance(outcome, str):
            progress.console.print(summary(cell, outcome))
        else:
            progress.update(task, description=summary(cell, outcome))

    return report


class _Left(ProgressColumn):
    """The time left, counted down between two outcomes."""

    def render(self, task: Task) -> Text:
        due = task.fields["due"]
        return Text("" if due is None or task.finished else f"about {duration(max(0.0, due - time.monotonic()))} left")


def summary(cell: Cell, outcome: Record | str) -> str:
    """Return the result of a cell and its seconds, or its traceback."""
    name = f"{cell.problem} {cell.method} seed {cell.seed}"
    if isinstance(outcome, str):
        return f"{name} FAILED\n{outcome}"
    return f"{name}: {_found(outcome)}, {outcome['seconds']:.1f} s"


def _found(record: Record) -> str:
    best = records.bests(record)[-1]
    if best is None:
        return "no query at the target"
    return f"best {best:.5g}" if record["optimum"] is None else f"regret {records.regret(record, best):.2g}"


def duration(seconds: float) -> str:
    """Return a time in the largest units that matter."""
    minutes = round(seconds / 60.0)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


class Forecast:
    """How long the cells that are left may take.

    A cell is expected to take as long as the same method did on the same problem.  Before the first such run, its
    estimated effort is scaled by the runs so far; a budget in seconds needs no scale.
    """

    def __init__(self, cells: Sequence[Cell], *, jobs: int, timed: Collection[str]) -> None:
        self._left = list(cells)
        self._jobs = jobs
        self._timed = timed
        self._effort = {(cell.problem, cell.method): runner.effort(cell) for cell in _one_per_kind(cells)}
        self._seconds: dict[tuple[str, str], list[float]] = {}
        self.total = len(cells)

    @property
    def done(self) -> int:
        return self.total - len(self._left)

    def note(self, cell: Cell, outcome: Record | str) -> None:
        """Take a cell off the list, and its seconds into account if it has any."""
        self._left.remove(cell)
        if not isinstance(outcome, str):
            self._seconds.setdefault((cell.problem, cell.method), []).append(outcome["seconds"])

    def seconds_left(self) -> float | None:
        """Return the seconds; None before the first cell has finished."""
        if not self._seconds:
            return None
        means = {kind: sum(s) / len(s) for kind, s in self._seconds.items()}
        scale = sum(means.values()) / sum(self._effort[kind] for kind in means)
        total = 0.0
        for cell in self._left:
            kind = cell.problem, cell.method
            alone = cell.problem in self._timed
            expected = means.get(kind, self._effort[kind] * (1.0 if alone else scale))
            total += expected / (1 if alone else self._jobs)
        return total


def _one_per_kind(cells: Sequence[Cell]) -> list[Cell]:
    return list({(cell.problem, cell.method): cell for cell in cells}.values())
