"""SMAC3's two facades with Hyperband, with the settings that SMAC gives them.

SMAC knows one budget.  Ours is a share s of the way from the lowest corner of the fidelity space to the target: every
fidelity has the unit coordinate s u*, where u* is that of its target.  With one fidelity that is the fidelity itself;
with more it is one joint budget along the diagonal, and SMAC cannot leave it.  SMAC does not know the cost either: it
takes a budget for what it costs.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.loop import Memory
from benchmarks.peers.versions import version
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import Choice, Float, Parameter, Point
from boca.domain.trial import History, Suggestion

_TRIALS = 10_000  # never reached; SMAC sizes its initial design by it, which is then its default of 10 a variable


@dataclass(frozen=True)
class Hyperband:
    """`smac.HyperbandFacade`: Hyperband with random configurations."""

    least: float = 1 / 27  # with SMAC's eta of 3: four rungs
    smac: str = field(default_factory=lambda: version("smac"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def check(self, problem: Problem) -> None:
        """Refuse fidelities without an order, through which there is no diagonal; load the library."""
        _refuse_choices(problem)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(
            problem, history, rng, lambda seed: Run(problem, "HyperbandFacade", seed, self.least), name="SMAC Hyperband"
        )


@dataclass(frozen=True)
class MultiFidelity:
    """`smac.MultiFidelityFacade`: Hyperband with configurations from a random forest."""

    least: float = 1 / 27
    smac: str = field(default_factory=lambda: version("smac"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def check(self, problem: Problem) -> None:
        """Refuse fidelities without an order, through which there is no diagonal; load the library."""
        _refuse_choices(problem)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(
            problem, history, rng, lambda seed: Run(problem, "MultiFidelityFacade", seed, self.least), name="SMAC MF"
        )


class Run:
    """A facade of SMAC, asked and told; its files go to a directory that vanishes with it."""

    def __init__(self, problem: Problem, facade: str, seed: int, least: float) -> None:
        import smac
        from ConfigSpace import ConfigurationSpace

        self._problem = problem
        self._directory = tempfile.TemporaryDirectory(prefix="peers-")
        scenario = smac.Scenario(
            ConfigurationSpace(space=[hyperparameter(name, p) for name, p in problem.space.items()], seed=seed),
            output_directory=Path(self._directory.name),
            deterministic=True,
            n_trials=_TRIALS,
            min_budget=least,
            max_budget=1.0,
            seed=seed,
        )
        kind = getattr(smac, facade)
        self._facade = kind(
            scenario, _never_called, intensifier=kind.get_intensifier(scenario), logging_level=False, overwrite=True
        )
        self._info: Any = None

    def ask(self) -> tuple[Point, Point]:
        self._info = self._facade.ask()
        return values(self._problem, dict(self._info.config)), along_diagonal(self._problem, self._info.budget)

    def tell(self, score: float) -> None:
        from smac.runhistory import TrialValue

        self._facade.tell(self._info, TrialValue(cost=-score, time=0.0), save=False)


def along_diagonal(problem: Problem, share: float) -> Point:
    """Return the fidelity at this share of the way to the target; 1 is the target itself."""
    if share >= 1.0 - 1e-9:
        return problem.target
    return problem.fidelity.from_unit(share * problem.fidelity.to_unit([problem.target])[0])


def _refuse_choices(problem: Problem) -> None:
    if not problem.fidelity or problem.fidelity.has_choices:
        raise InvalidInput(
            f"SMAC needs one or more fidelities that are numbers, as its budget; got {problem.fidelity!r}."
        )
    import smac  # noqa: F401


def _never_called(config: Any, seed: int = 0, budget: float = 0.0) -> float:
    raise AssertionError("SMAC is asked and told, it evaluates nothing itself")


def hyperparameter(name: str, parameter: Parameter) -> Any:
    """Return the range of a parameter as ConfigSpace has it, a choice by the numbers of its options."""
    from ConfigSpace import CategoricalHyperparameter, UniformFloatHyperparameter, UniformIntegerHyperparameter

    if isinstance(parameter, Choice):
        return CategoricalHyperparameter(name, list(range(parameter.levels)))
    kind = UniformFloatHyperparameter if isinstance(parameter, Float) else UniformIntegerHyperparameter
    return kind(name, parameter.low, parameter.high, log=parameter.log)


def values(problem: Problem, config: dict[str, Any]) -> Point:
    """Return the configuration in values of the space: options by their numbers, rounding at the ends undone."""
    values: Point = {}
    for name, parameter in problem.space.items():
        value = config[name]
        if isinstance(parameter, Choice):
            values[name] = parameter.choices[int(value)]
        elif isinstance(parameter, Float):
            values[name] = float(min(max(value, parameter.low), parameter.high))
        else:
            values[name] = int(value)
    return values
