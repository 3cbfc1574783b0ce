"""HEBO, DEHB and Ax as sessions, with the settings that their authors give them.

HEBO and Ax query the target alone.  DEHB knows one budget and no cost: as for SMAC in `benchmarks.peers.smac`, it is a
share of the way from the lowest corner of the fidelities to the target, from 1/27 to 1.  The libraries are imported
when they are used.

HEBO 0.3.6 declares numpy < 1.25, and boca needs 1.26: it installs beside boca without its declared dependencies alone,
`pip install --no-deps HEBO pymoo==0.6.0 GPy paramz catboost disjoint-set autograd cma alive-progress about-time
grapheme dill Deprecated wrapt decorator plotly graphviz narwhals`.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.peers.loop import Memory, Session
from benchmarks.peers.smac import along_diagonal, hyperparameter, values
from benchmarks.peers.versions import version
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.space import Choice, Float, Int, Parameter, Point
from boca.domain.trial import History, Suggestion

_LEAST_SHARE = 1 / 27  # with an eta of 3: four rungs


@dataclass(frozen=True)
class HEBO:
    """`hebo.optimizers.hebo.HEBO`: a Gaussian process with warped inputs and outputs, and three acquisitions."""

    hebo: str = field(default_factory=lambda: version("HEBO", "rivals"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(problem, history, rng, lambda seed: self.begin(problem, seed), name="HEBO")

    def begin(self, problem: Problem, seed: int) -> Session:
        return HEBOSession(problem, seed)


@dataclass(frozen=True)
class DEHB:
    """`dehb.DEHB`: differential evolution in the brackets of Hyperband."""

    dehb: str = field(default_factory=lambda: version("dehb", "rivals"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(problem, history, rng, lambda seed: self.begin(problem, seed), name="DEHB")

    def begin(self, problem: Problem, seed: int) -> Session:
        return DEHBSession(problem, seed)


@dataclass(frozen=True)
class Ax:
    """`ax.api.client.Client` with the strategy that it chooses for the problem."""

    ax: str = field(default_factory=lambda: version("ax-platform", "rivals"))
    _memory: Memory = field(default_factory=Memory, repr=False, compare=False)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._memory.suggest(problem, history, rng, lambda seed: self.begin(problem, seed), name="Ax")

    def begin(self, problem: Problem, seed: int) -> Session:
        return AxSession(problem, seed)


class HEBOSession:
    """HEBO minimizes, on tables of one row."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import torch
        from hebo.design_space.design_space import DesignSpace
        from hebo.optimizers import hebo

        np.random.seed(seed)  # noqa: NPY002 - it draws from the global stream
        torch.manual_seed(seed)
        self._problem = problem
        space = DesignSpace().parse([_hebo_range(name, p) for name, p in problem.space.items()])
        self._optimizer = hebo.HEBO(space, scramble_seed=seed)
        self._row: Any = None

    def ask(self) -> tuple[Point, Point]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._row = self._optimizer.suggest(n_suggestions=1)
        found = self._row.iloc[0].to_dict()
        return values(self._problem, _numbered(self._problem, found)), self._problem.target

    def tell(self, score: float) -> None:
        self._optimizer.observe(self._row, np.array([[-score]]))


def _hebo_range(name: str, parameter: Parameter) -> dict[str, Any]:
    if isinstance(parameter, Choice):
        return {"name": name, "type": "cat", "categories": list(range(parameter.levels))}
    kinds = {(Float, False): "num", (Float, True): "pow", (Int, False): "int", (Int, True): "pow_int"}
    bounds = {"lb": parameter.low, "ub": parameter.high}
    return {"name": name, "type": kinds[type(parameter), parameter.log], **bounds}


def _numbered(problem: Problem, found: dict[str, Any]) -> dict[str, Any]:
    """Return plain numbers, integers within their bounds after rounding."""
    numbers: dict[str, Any] = {}
    for name, parameter in problem.space.items():
        value = found[name]
        if isinstance(parameter, Int):
            numbers[name] = min(max(round(float(value)), parameter.low), parameter.high)
        else:
            numbers[name] = int(value) if isinstance(parameter, Choice) else float(value)
    return numbers


class DEHBSession:
    """DEHB minimizes; its files go to a directory that vanishes with it."""

    def __init__(self, problem: Problem, seed: int) -> None:
        import dehb
        from ConfigSpace import ConfigurationSpace

        self._problem = problem
        self._directory = tempfile.TemporaryDirectory(prefix="rivals-")
        space = ConfigurationSpace(space=[hyperparameter(name, p) for name, p in problem.space.items()], seed=seed)
        self._optimizer = dehb.DEHB(
            cs=space,
            f=None,
            dimensions=len(problem.space),
            min_fidelity=_LEAST_SHARE,
            max_fidelity=1.0,
            n_workers=1,
            output_path=self._directory.name,
            log_level="ERROR",
            seed=seed,
        )
        self._job: Any = None

    def ask(self) -> tuple[Point, Point]:
        self._job = self._optimizer.ask()
        return values(self._problem, dict(self._job["config"])), along_diagonal(self._problem, self._job["fidelity"])

    def tell(self, score: float) -> None:
        self._optimizer.tell(self._job, {"fitness": -score, "cost": self._job["fidelity"]})


class AxSession:
    """Ax maximizes a metric named score."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from ax.api.client import Client
        from ax.utils.common.logger import set_ax_logger_levels

        set_ax_logger_levels(logging.WARNING)
        self._problem = problem
        self._client = Client(random_seed=seed)
        self._client.configure_experiment(parameters=[_ax_range(name, p) for name, p in problem.space.items()])
        self._client.configure_optimization(objective="score")
        self._index = 0

    def ask(self) -> tuple[Point, Point]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ((self._index, found),) = self._client.get_next_trials(max_trials=1).items()
        return values(self._problem, _numbered(self._problem, dict(found))), self._problem.target

    def tell(self, score: float) -> None:
        self._client.complete_trial(trial_index=self._index, raw_data={"score": score})


def _ax_range(name: str, parameter: Parameter) -> Any:
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    if isinstance(parameter, Choice):
        options = list(range(parameter.levels))
        return ChoiceParameterConfig(name=name, values=options, parameter_type="int", is_ordered=False)
    return RangeParameterConfig(
        name=name,
        bounds=(parameter.low, parameter.high),
        parameter_type="float" if isinstance(parameter, Float) else "int",
        scaling="log" if parameter.log else "linear",
    )
