"""One run of one method on one task, and many runs; the records are those of `boca bench`.

What a query is charged is in `accounting`.  A run ends with its budget, or when its method has asked for nothing new
`_MOST_FREE_IN_A_ROW` times, or `_MOST_FREE` times for each target: it would never end otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.real import tasks
from benchmarks.real.accounting import Accounts
from benchmarks.real.task import Task
from boca.bench import methods, records, runner
from boca.domain.budget import targets as in_targets
from boca.domain.trial import History
from boca.strategies import Strategy
from boca.strategies.base import HasPosterior
from boca.study.optimizer import Optimizer

_MOST_FREE_IN_A_ROW = 50
_MOST_FREE = 10  # free queries per target of the budget
_FREE = 1e-9  # of the target: a cost must be positive


def run_one(task: Task, strategy: Strategy, *, seed: int, targets: float) -> Optimizer:
    """Spend a budget of so many targets on a task, and return the optimizer with its trials."""
    optimizer = Optimizer(task.problem, budget=in_targets(targets), strategy=strategy, seed=seed)
    accounts = Accounts(task, seed)
    free, free_in_a_row = 0, 0
    while (trial := optimizer.ask()) is not None:
        charge = accounts.charge(trial.x, trial.z)
        asked = time.perf_counter()
        value = task.result(trial.x, trial.z, charge.replicate)
        took = time.perf_counter() - asked if charge.seconds is None else charge.seconds
        cost = max(charge.cost, _FREE * task.problem.target_cost)
        optimizer.tell(trial, value, seconds=took, cost=cost)
        free_in_a_row = 0 if charge.cost > 0.0 else free_in_a_row + 1
        free += charge.cost == 0.0
        if free_in_a_row >= _MOST_FREE_IN_A_ROW or free >= _MOST_FREE * targets:
            break
    return optimizer


def run_cell(cell: runner.Cell, *, targets: float) -> records.Record:
    """Run one cell and return its record."""
    began = time.perf_counter()
    task = tasks.at_path(cell.problem, cell.seed)
    benchmark = replace(task, budget=in_targets(targets))
    strategy = methods.method(cell.method)(benchmark, cell.learn)
    optimizer = run_one(task, strategy, seed=cell.seed, targets=targets)
    assert task.best is not None
    recommended = optimizer.recommend() if isinstance(strategy, HasPosterior) else None  # a fit for nothing elsewhere
    return {
        **runner.record(cell, benchmark, strategy, optimizer, recommended),
        "spread": task.best.spread,
        "family": task.family,
        "seconds": time.perf_counter() - began,
    }


def run(
    cells: Sequence[runner.Cell],
    directory: Path,
    *,
    targets: float,
    jobs: int,
    report: Callable[[runner.Cell, records.Record | str], None],
) -> int:
    """Run the cells that are missing in the directory and return how many failed."""
    return runner.run(cells, directory, jobs=jobs, report=report, one=partial(run_cell, targets=targets))


def shown(history: History) -> str:
    """Return the trials of a run as lines, for a look at one method on one task."""
    return "\n".join(f"{t.number:4d}  cost {t.cost:<8.3g} value {t.value:<10.5g} z {t.z}" for t in history)
