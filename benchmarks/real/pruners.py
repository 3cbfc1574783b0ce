"""Optuna's pruners, epoch by epoch: a trial is reported after every step, and ends when the pruner says so.

Every step is a query of its own, and `accounting` charges the increment: nothing is trained twice.  Where a task has no
training that passes through steps, the rungs cost 1/27, 1/9, 1/3 and 1 of the target, along the diagonal of the
fidelities, and each is paid in full.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from benchmarks.peers.loop import Memory
from benchmarks.peers.optuna import distribution
from benchmarks.peers.versions import version
from benchmarks.real.rungs import steps
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, Suggestion
from boca.problems import Benchmark

Kind: TypeAlias = Literal["halving", "hyperband", "median"]


@dataclass(frozen=True)
class Pruned:
    """A sampler of Optuna with one of its pruners."""

    kind: Kind
    rungs: tuple[tuple[tuple[str, Any], ...], ...]
    optuna: str = field(default_factory=lambda: version("optuna"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def check(self, problem: Problem) -> None:
        """Load the library before the first suggestion, whose time is recorded."""
        import optuna.pruners
        import optuna.samplers  # noqa: F401

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(
            problem, history, rng, lambda seed: Study(problem, self, seed), name=f"Optuna with {self.kind}"
        )

    def begin(self, problem: Problem, seed: int) -> Study:
        """Return the study of one run."""
        self.check(problem)
        return Study(problem, self, seed)


def halving(benchmark: Benchmark) -> Pruned:
    """Random configurations and `SuccessiveHalvingPruner` with its defaults."""
    return _pruned("halving", benchmark)


def hyperband(benchmark: Benchmark) -> Pruned:
    """`TPESampler` and `HyperbandPruner` with their defaults, the largest resource being the last step."""
    return _pruned("hyperband", benchmark)


def median(benchmark: Benchmark) -> Pruned:
    """`TPESampler` and `MedianPruner` with their defaults."""
    return _pruned("median", benchmark)


def _pruned(kind: Kind, benchmark: Benchmark) -> Pruned:
    return Pruned(kind, tuple(tuple(z.items()) for z in steps(benchmark)))


class Study:
    """A study of Optuna in memory with one trial at a time, which goes from step to step."""

    def __init__(self, problem: Problem, settings: Pruned, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._rungs = [dict(z) for z in settings.rungs]
        self._distributions = {name: distribution(parameter) for name, parameter in problem.space.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            samplers, pruners = optuna.samplers, optuna.pruners
            sampler = samplers.RandomSampler(seed) if settings.kind == "halving" else samplers.TPESampler(seed=seed)
            pruner = {
                "halving": pruners.SuccessiveHalvingPruner,
                "hyperband": lambda: pruners.HyperbandPruner(max_resource=len(self._rungs)),
                "median": pruners.MedianPruner,
            }[settings.kind]()
            self._study = optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner)
        self._trial: Any = None
        self._rung = 0

    def ask(self) -> tuple[Point, Point]:
        if self._trial is None:
            self._trial, self._rung = self._study.ask(self._distributions), 0
        return dict(self._trial.params), self._rungs[self._rung]

    def tell(self, score: float) -> None:
        from optuna.trial import TrialState

        self._trial.report(score, self._rung + 1)
        if self._rung + 1 == len(self._rungs):
            self._study.tell(self._trial, score)
            self._trial = None
        elif self._trial.should_prune():
            self._study.tell(self._trial, state=TrialState.PRUNED)
            self._trial = None
        else:
            self._rung += 1
