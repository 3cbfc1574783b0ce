"""One run of one method on one task, and many runs; the records are those of `boca bench`.

What a query is charged is in `accounting`.  A run ends with its budget, or when its method has asked for nothing new
`_MOST_FREE_IN_A_ROW` times, or `_MOST_FREE` times for each target: it would never end otherwise.

A strategy of boca is asked through `Optimizer`.  A method that only sees its own trials, as Optuna's pruners do, has a
session that is asked here: `Optimizer` reads the whole history at every query, and they make thousands.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from benchmarks.peers.loop import Session
from benchmarks.real import curves, tasks
from benchmarks.real.accounting import Accounts
from benchmarks.real.task import Task
from boca.bench import methods, records, runner
from boca.domain.problem import Problem
from boca.domain.reasons import Reasons
from boca.domain.trial import Trial, sign
from boca.strategies import Strategy
from boca.strategies.base import HasPosterior
from boca.study.optimizer import Optimizer

_MOST_FREE_IN_A_ROW = 50
_MOST_FREE = 10  # free queries per target of the budget
_FREE = 1e-9  # of the target: a cost must be positive
_ROUNDING = 1e-9  # of the budget, by which a sum of costs may exceed it


@runtime_checkable
class HasSession(Protocol):
    """A method that is asked and told without a history."""

    def begin(self, problem: Problem, seed: int, /) -> Session:
        """Return the session of one run."""
        ...


@dataclass
class Answers:
    """What a task answers in one run, and how much of that was free."""

    task: Task
    seed: int
    targets: float

    def __post_init__(self) -> None:
        self._accounts = Accounts(self.task, self.seed)
        self._free = self._free_in_a_row = 0

    def answer(self, trial: Trial) -> Trial:
        """Return the trial with its value, what it is charged, and its seconds."""
        if self.task.seconds is None and self.task.target_seconds is not None:
            return _timed(trial, partial(self.task.value, trial.x, trial.planned))
        charge = self._accounts.charge(trial.x, trial.planned)
        is_free = charge.cost == 0.0
        self._free_in_a_row = self._free_in_a_row + 1 if is_free else 0
        self._free += is_free
        cost = max(charge.cost, _FREE * self.task.problem.target_cost)
        done = _timed(trial, partial(self.task.result, trial.x, trial.planned, charge.replicate))
        return replace(done, cost=cost, seconds=done.seconds if charge.seconds is None else charge.seconds)

    @property
    def has_new(self) -> bool:
        """Whether the method still asks for what it has not seen."""
        return self._free_in_a_row < _MOST_FREE_IN_A_ROW and self._free < _MOST_FREE * self.targets


def _timed(trial: Trial, value: Callable[[], float]) -> Trial:
    began = time.perf_counter()
    done = trial.completed(value())
    return replace(done, seconds=time.perf_counter() - began)


def run_one(task: Task, strategy: Strategy, *, seed: int, targets: float) -> Optimizer:
    """Spend a budget of a number of targets on a task, and return the optimizer with its trials."""
    own = stream(task, seed)
    optimizer = Optimizer(task.problem, budget=task.limit(targets), strategy=strategy, seed=own)
    answers = Answers(task, seed, targets)
    while answers.has_new and (trial := optimizer.ask()) is not None:
        done = answers.answer(trial)
        assert done.value is not None
        paid = done.cost if task.problem.has_declared_cost else None
        optimizer.tell(trial, done.value, seconds=done.seconds, cost=paid)
    return optimizer


def stream(task: Task, seed: int) -> int:
    """Return the seed of a run: with the seed alone, tasks of one space would all begin with the same points."""
    return int(np.random.default_rng([seed, zlib.crc32(task.name.encode())]).integers(2**31))


def run_session(task: Task, session: Session, *, seed: int, targets: float) -> list[Trial]:
    """Spend a budget of a number of targets on a task that is not live, and return the trials."""
    problem, limit = task.problem, task.limit(targets)
    left = limit.amount * (1.0 if limit.unit == "seconds" else problem.target_cost) * (1 + _ROUNDING)
    answers, trials = Answers(task, seed, targets), list[Trial]()
    while answers.has_new:
        began = time.perf_counter()
        x, z = session.ask()
        x, z = problem.space.validate(x, "x"), problem.fidelity.validate(z, "z")
        overhead = time.perf_counter() - began
        reasons = Reasons.of({"reason": "The next question of a session.", "phase": "start"})
        done = answers.answer(Trial(len(trials), x, z, problem.cost(z), reasons, overhead=overhead))
        paid = (done.seconds or 0.0) + overhead if limit.unit == "seconds" else done.cost
        if paid > left or done.value is None:
            break
        left -= paid
        trials.append(done)
        session.tell(sign(problem.direction) * done.value)
    return trials


def run_cell(cell: runner.Cell, *, targets: float, in_seconds: bool = False) -> records.Record:
    """Run one cell and return its record; `in_seconds` measures the cost and spends seconds."""
    began = time.perf_counter()
    task = tasks.at_path(cell.problem, cell.seed)
    task = task.in_seconds() if in_seconds else task
    benchmark = replace(task, budget=task.limit(targets))
    strategy = methods.method(cell.method)(benchmark, cell.learn)
    recommended = None
    trials: Sequence[Trial]
    if isinstance(strategy, curves.WithCurves):
        own = stream(task, cell.seed)
        trials = curves.run(task, strategy, seed=cell.seed, own_seed=own, targets=targets)
    elif isinstance(strategy, HasSession) and task.family != "live":
        drawn = int(np.random.default_rng([stream(task, cell.seed), 0]).integers(2**31))  # as `peers.loop` draws it
        session = strategy.begin(task.problem, drawn)
        trials = run_session(task, session, seed=cell.seed, targets=targets)
    else:
        optimizer = run_one(task, strategy, seed=cell.seed, targets=targets)
        trials = optimizer.history
        if isinstance(strategy, HasPosterior) and task.best is not None:  # a fit for nothing elsewhere
            recommended = optimizer.recommend()
    return {
        **runner.record(cell, benchmark, strategy, trials, recommended),
        "spread": None if task.best is None else task.best.spread,
        "family": task.family,
        "seconds": time.perf_counter() - began,
    }


def run(
    cells: Sequence[runner.Cell],
    directory: Path,
    *,
    targets: float,
    in_seconds: bool,
    jobs: int,
    report: Callable[[runner.Cell, records.Record | str], None],
) -> int:
    """Run the cells that are missing in the directory and return how many failed."""
    return runner.run(
        cells, directory, jobs=jobs, report=report, one=partial(run_cell, targets=targets, in_seconds=in_seconds)
    )
