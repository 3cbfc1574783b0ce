"""Optuna's samplers at the target, with the settings that Optuna gives them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.peers.loop import Memory
from benchmarks.peers.versions import version
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.space import Choice, Float, Parameter, Point
from boca.domain.trial import History, Suggestion


@dataclass(frozen=True)
class GP:
    """`optuna.samplers.GPSampler`: a Gaussian process and LogEI after ten random trials."""

    optuna: str = field(default_factory=lambda: version("optuna"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def check(self, problem: Problem) -> None:
        """Load the library before the first suggestion, whose time is recorded."""
        import optuna.samplers  # noqa: F401

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(
            problem, history, rng, lambda seed: Study(problem, "GPSampler", seed), name="Optuna GP"
        )


@dataclass(frozen=True)
class TPE:
    """`optuna.samplers.TPESampler`: Parzen estimators after ten random trials, Optuna's default."""

    optuna: str = field(default_factory=lambda: version("optuna"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def check(self, problem: Problem) -> None:
        """Load the library before the first suggestion, whose time is recorded."""
        import optuna.samplers  # noqa: F401

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(
            problem, history, rng, lambda seed: Study(problem, "TPESampler", seed), name="Optuna TPE"
        )


class Study:
    """A study of Optuna in memory whose trials are all at the target."""

    def __init__(self, problem: Problem, sampler: str, seed: int) -> None:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._problem = problem
        self._distributions = {name: distribution(parameter) for name, parameter in problem.space.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            self._study = optuna.create_study(
                direction="maximize", sampler=getattr(optuna.samplers, sampler)(seed=seed)
            )
        self._trial: Any = None

    def ask(self) -> tuple[Point, Point]:
        self._trial = self._study.ask(self._distributions)
        return dict(self._trial.params), self._problem.target

    def tell(self, score: float) -> None:
        self._study.tell(self._trial, score)


def distribution(parameter: Parameter) -> Any:
    """Return the range of a parameter as Optuna has it."""
    from optuna import distributions

    if isinstance(parameter, Choice):
        return distributions.CategoricalDistribution(parameter.choices)
    kind = distributions.FloatDistribution if isinstance(parameter, Float) else distributions.IntDistribution
    return kind(parameter.low, parameter.high, log=parameter.log)
