"""Runs that report every step and can go on: the curve tasks as a user of `boca.Steps` would give them.

    method                               what it is
    -----------------------------------  ----------------------------------------------------------------
    benchmarks.real.curves:boca          the default; runs leave a checkpoint wherever they end
    benchmarks.real.curves:boca_unsaved  the default where nothing leaves a checkpoint: runs are stopped
    benchmarks.real.curves:random_stops  random search at the target, with `StopHopeless`

A training reports every step, and `accounting` charges the increment, as for every other method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

import boca as library
from benchmarks.real.accounting import Accounts
from benchmarks.real.task import Task
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.space import Int, Space
from boca.domain.steps import Steps
from boca.domain.trial import History, Suggestion, Trial
from boca.problems import Benchmark
from boca.stopping import StopHopeless
from boca.strategies import Strategy
from boca.strategies.base import HasKeepGoing
from boca.study.optimizer import Optimizer

_FREE = 1e-9  # of the target: a cost must be positive
_MOST_FREE_IN_A_ROW = 50  # trials that cost nothing, as in `loop`


@dataclass(frozen=True)
class WithCurves:
    """A strategy whose runs report every step, leave checkpoints or not, and may be stopped by a rule."""

    strategy: Strategy
    saves: bool = True
    stop_runs: HasKeepGoing | None = None

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        """Suggest what the strategy does."""
        return self.strategy.suggest(problem, history, budget, rng)


def boca(benchmark: Benchmark) -> WithCurves:
    """Return the default."""
    return WithCurves(library.Boca())


def boca_unsaved(benchmark: Benchmark) -> WithCurves:
    """Return the default where nothing leaves a checkpoint."""
    return WithCurves(library.Boca(), saves=False)


def random_stops(benchmark: Benchmark) -> WithCurves:
    """Return random search with the rule that stops runs."""
    return WithCurves(library.RandomSearch(), saves=False, stop_runs=StopHopeless())


def stepped(task: Task) -> Task:
    """Return the task with its step as `Steps`."""
    problem = task.problem
    fidelity = {
        name: Steps(q.low, q.high) if name == task.step and isinstance(q, Int) else q
        for name, q in problem.fidelity.items()
    }
    same = Problem(
        problem.space, Space(fidelity), cost=problem.cost, target=problem.target, direction=problem.direction
    )
    return replace(task, problem=same)


def run(task: Task, method: WithCurves, *, seed: int, own_seed: int, targets: float) -> Sequence[Trial]:
    """Spend a budget of a number of targets on a task, and return the trials."""
    task = stepped(task)
    problem, accounts = task.problem, Accounts(task, seed)
    optimizer = Optimizer(
        problem, budget=task.limit(targets), strategy=method.strategy, seed=own_seed, stop_runs=method.stop_runs
    )
    free = 0
    while free < _MOST_FREE_IN_A_ROW and (trial := optimizer.ask()) is not None:
        paid = train(task, accounts, optimizer, trial, saves=method.saves)
        free = 0 if paid else free + 1
    return list(optimizer.history)


def train(task: Task, accounts: Accounts, optimizer: Optimizer, trial: Trial, *, saves: bool) -> float:
    """Make a trial step by step until it ends or is stopped, and return what that cost."""
    problem, paid, step = task.problem, 0.0, trial.start
    lowest = min(problem.step(z) for z in problem.grid[0])
    for step in range(max(trial.start + 1, lowest), problem.step(trial.planned) + 1):
        z = problem.at_step(trial.planned, step)
        charge = accounts.charge(trial.x, z)
        paid += charge.cost
        if not optimizer.report(trial, step, task.result(trial.x, z, charge.replicate)):
            break
    if saves:
        optimizer.saved(trial, step, "kept in memory")
    optimizer.tell(trial, None, cost=max(paid, _FREE * problem.target_cost), seconds=0.0)
    return paid
