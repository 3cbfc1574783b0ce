"""What a query at z costs: as the user declared it, or learned from how long trials took.

A learned cost is log-linear in the logs of the fidelities, with exponents around one a priori (around minus one
where the target is the low end), and some curvature:

    log seconds(z) = w_0 + sum_i w_i s_i + sum_i v_i s_i^2 / S_i + u [z = z*] + noise
    s_i = log(z_i / z*_i), S_i = max |s_i|

The target has a level of its own: a budget is so many times its cost, and a curve through cheap results that misses it
would end a study early, whatever was measured there.  All is fitted by Bayesian linear regression, so that
two results already give an estimate and a pessimistic quantile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import Choice, FloatArray
from boca.domain.trial import History, Trial

_SLOPE = 1.0  # prior deviation of an exponent, and of an option's level around one half: cubes are not rare
_DECLARED_SLOPE = 0.25  # of the exponent of a declared cost
_CURVATURE = 0.5  # of the squares: a constant share of the time bends the line
_LEVEL = 10.0  # prior deviation of the level, in e-folds around one second
_SCATTER = 0.3  # expected deviation of log seconds, worth _SCATTER_WEIGHT results
_SCATTER_WEIGHT = 4.0
_PESSIMISM = 1.2816  # the 90 % quantile of a normal
_SHORTEST = 1e-6  # seconds; a clock that shows less shows nothing


class Costs(Protocol):
    """The cost of a query in cost units, at any z, on the problem's grid and at the target."""

    def of(self, z: Mapping[str, Any], /) -> float: ...
    def pessimistic(self, z: Mapping[str, Any], /) -> float:
        """Return what to have in hand before a query at z: the cost itself, or what nine in ten stay below."""

    @property
    def grid(self) -> FloatArray: ...  # (m,)
    @property
    def target(self) -> float: ...


def costs(problem: Problem, history: History) -> Costs:
    """Return what is known of the cost after this history."""
    if problem.has_declared_cost:
        return Declared(problem)
    measured = [t for t in history.complete if t.seconds is not None]
    if not measured:
        return Declared(problem)  # the assumed cost: proportional to every fidelity, one unit at the target
    return Learned(problem, tuple(measured), tuple(t.cost for t in measured))


def amount(trial: Trial, problem: Problem, price: Costs) -> float:
    """Return what a trial counts for in today's cost units.

    A declared cost is what it is.  A learned one is in seconds only after the first result: until then, and for a
    trial that is out or was brought along without a cost, what is expected at its fidelity counts.
    """
    if problem.has_declared_cost:
        return trial.cost
    is_measured = trial.state != "running" and trial.seconds is not None and isinstance(price, Learned)
    return trial.cost if is_measured else price.of(trial.z)


def seconds(problem: Problem, history: History) -> Seconds | None:
    """Return how long a query takes, the time to choose it included; None before the first result."""
    measured = [t for t in history.complete if t.seconds is not None]
    if not measured:
        return None
    evaluation = Learned(problem, tuple(measured), tuple(t.seconds or 0.0 for t in measured))
    overheads = [t.overhead for t in history if not t.added and not t.attempt]  # without attempts that died
    return Seconds(evaluation, float(np.median(overheads)) if overheads else 0.0)


@dataclass(frozen=True)
class Declared:
    """The cost that the problem states."""

    problem: Problem

    def of(self, z: Mapping[str, Any]) -> float:
        return self.problem.cost(z)

    def pessimistic(self, z: Mapping[str, Any]) -> float:
        return self.problem.cost(z)

    @property
    def grid(self) -> FloatArray:
        return self.problem.grid_costs

    @property
    def target(self) -> float:
        return self.problem.target_cost


@dataclass(frozen=True)
class Learned:
    """A smooth positive function of z through what trials were measured to cost."""

    problem: Problem
    trials: tuple[Trial, ...]
    amounts: tuple[float, ...]

    def of(self, z: Mapping[str, Any]) -> float:
        """Return the median cost at z."""
        return float(np.exp(self._features([z]) @ self._posterior[0])[0])

    def pessimistic(self, z: Mapping[str, Any]) -> float:
        """Return a cost that nine queries in ten stay below, taking the level at the target for known.

        A pessimist about that level would never buy the query that teaches it, and end a study with its money unspent.
        Near the target the ratio to its cost is known best; near what was measured, the cost itself.
        """
        w, S, scatter2 = self._posterior
        f = self._features([z])[0]
        away = f - self._at_target[0]
        variance = min(float(f @ S @ f), float(away @ S @ away)) + scatter2
        return math.exp(float(f @ w) + _PESSIMISM * math.sqrt(variance))

    @cached_property
    def grid(self) -> FloatArray:
        return np.exp(self._features(self.problem.grid[0]) @ self._posterior[0])

    @cached_property
    def target(self) -> float:
        return self.of(self.problem.target)

    @cached_property
    def _at_target(self) -> FloatArray:  # (1, q)
        return self._features([self.problem.target])

    @cached_property
    def _posterior(self) -> tuple[FloatArray, FloatArray, float]:
        F = self._features([t.z for t in self.trials])
        y = np.log(np.maximum(self.amounts, _SHORTEST))
        prior_mean, prior_deviation = self._prior(F.shape[1])
        scatter2 = _SCATTER**2
        for _ in range(3):  # the scatter and the weights settle against each other
            precision = F.T @ F / scatter2 + np.diag(prior_deviation**-2.0)
            S = np.asarray(np.linalg.inv(precision), dtype=float)
            w = S @ (F.T @ y / scatter2 + prior_mean / prior_deviation**2)
            residual = y - F @ w
            scatter2 = (_SCATTER_WEIGHT * _SCATTER**2 + float(residual @ residual)) / (_SCATTER_WEIGHT + len(y))
        return w, S, scatter2

    def _features(self, zs: Sequence[Mapping[str, Any]]) -> FloatArray:  # (n, q)
        """Return one, every fidelity's position against the target, its square, options, and whether z is that."""
        if self.problem.has_declared_cost:  # the user's cost is the best feature there is
            column = [math.log(self.problem.cost(z) / self.problem.target_cost) for z in zs]
            return np.column_stack([np.ones(len(zs)), column])
        linear = [self._position(name, [z[name] for z in zs]) for name in self._numeric]
        squares = [s * s / self._reach(name) for name, s in zip(self._numeric, linear, strict=True)]
        indicator = [
            np.array([float(z[name] == option) for z in zs])
            for name, parameter in self.problem.fidelity.items()
            if isinstance(parameter, Choice)
            for option in parameter.choices
            if option != self.problem.target[name]
        ]
        at_target = [float(self.problem.is_target(z)) for z in zs]
        return np.column_stack([np.ones(len(zs)), *linear, *squares, *indicator, at_target])

    def _prior(self, size: int) -> tuple[FloatArray, FloatArray]:
        mean, deviation = np.zeros(size), np.full(size, _SLOPE)
        deviation[0] = _LEVEL
        if self.problem.has_declared_cost:
            mean[1], deviation[1] = 1.0, _DECLARED_SLOPE
            return mean, deviation
        k = len(self._numeric)
        mean[1 : 1 + k] = [self.problem.cost_direction(name) for name in self._numeric]
        mean[1 + 2 * k : -1] = math.log(0.5)
        deviation[1 + k : 1 + 2 * k] = _CURVATURE
        return mean, deviation

    @cached_property
    def _numeric(self) -> list[str]:
        return [name for name, parameter in self.problem.fidelity.items() if not isinstance(parameter, Choice)]

    def _is_logarithmic(self, name: str) -> bool:
        parameter = self.problem.fidelity[name]
        return not isinstance(parameter, Choice) and parameter.low > 0

    def _reach(self, name: str) -> float:
        """Return the position farthest from the target."""
        parameter = self.problem.fidelity[name]
        assert not isinstance(parameter, Choice)
        return float(np.max(np.abs(self._position(name, [parameter.low, parameter.high]))))

    def _position(self, name: str, values: list[Any]) -> FloatArray:
        target = self.problem.target[name]
        if self._is_logarithmic(name):
            return np.asarray(np.log(np.asarray(values, dtype=float) / target))
        unit = self.problem.fidelity[name].to_unit([*values, target])
        return np.asarray(unit[:-1] - unit[-1])


@dataclass(frozen=True)
class Seconds:
    """How long a query takes: the evaluation, which depends on z, and the choice of it, which does not."""

    evaluation: Learned
    overhead: float

    @property
    def target(self) -> float:
        return self.evaluation.target + self.overhead

    def of(self, z: Mapping[str, Any]) -> float:
        return self.evaluation.of(z) + self.overhead

    def pessimistic(self, z: Mapping[str, Any]) -> float:
        return self.evaluation.pessimistic(z) + self.overhead
