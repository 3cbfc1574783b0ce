"""What a query at z costs: as the user declared it, or learned from how long trials took.

A learned cost is log-linear in the logs of the fidelities, with some curvature.  A priori the exponents are near one,
or near minus one if the target is the low end:

    log seconds(z) = w_0 + sum_i w_i s_i + sum_i v_i s_i^2 / S_i + u [z = z*] + noise
    s_i = log(z_i / z*_i), S_i = max |s_i|

The target has a level of its own, because the budget is a multiple of its cost: a curve through cheap results that
misses it would end a study early, whatever was measured there.  The fit is a Bayesian linear regression, so that two
results already give an estimate and a pessimistic quantile.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import History, Trial

EXPONENT_DEVIATION = 1.0  # prior, of an exponent, and of an option's level around one half: cubes are not rare
_DECLARED_EXPONENT_DEVIATION = 0.25  # prior, of the exponent of a declared cost, which seconds should follow
_CURVATURE_DEVIATION = 0.5  # prior, of the squares: a constant share of the time bends the line
LEVEL_DEVIATION = 10.0  # prior, of the level, in e-folds around one second: anything from 50 us to 6 hours
EXPECTED_SCATTER = 0.3  # deviation of log seconds before results say: about a third, between two runs of one thing
EXPECTED_SCATTER_WEIGHT = 4.0  # results that this expectation counts as
_SCATTER_ROUNDS = 3  # of fitting weights and scatter in turn, after which both have settled
NINE_IN_TEN = 1.2816  # deviations above the median of the 90 % quantile of a normal
CLOCK_RESOLUTION = 1e-6
"""Seconds; a shorter evaluation is charged as this one, and learned as this one, or a budget would never end."""


class Costs(Protocol):
    """The cost of a query in cost units, at any z, on the problem's grid and at the target."""

    def of(self, z: Mapping[str, Any], /) -> float:
        """Return the cost of z from scratch."""
        ...

    def pessimistic(self, z: Mapping[str, Any], start: int = 0, /) -> float:
        """Return the cost from a step to z if it is known; if it is learned, nine queries in ten stay below it."""
        ...

    def going_on(self, z: Mapping[str, Any], start: int, /) -> float:
        """Return the cost of continuing to z from a step; from 0 it is that of z from scratch."""
        ...

    @property
    def grid(self) -> FloatArray: ...  # (m,)
    @property
    def target(self) -> float: ...


def costs(problem: Problem, history: History) -> Costs:
    """Return the cost of any query, as known after this history."""
    if problem.has_declared_cost:
        return Declared(problem)
    measured = [t for t in history.complete if t.seconds is not None]
    if not measured:
        return Declared(problem)  # the assumed cost: proportional to every fidelity, one unit at the target
    return _learned(problem, history, measured, "cost")


def _learned(problem: Problem, history: History, measured: Sequence[Trial], amount: str) -> Costs:
    """Return what the measured trials say of the cost, or all runs if the evaluations pass through steps."""
    if problem.steps is None or problem.has_declared_cost:
        return Learned(problem, tuple(measured), tuple(getattr(t, amount) or 0.0 for t in measured))
    from boca.accounting.run_cost import LearnedRuns, runs_of

    return LearnedRuns(problem, runs_of(problem, history, amount))


def amount(trial: Trial, problem: Problem, known: Costs) -> float:
    """Return the cost of a trial, in the cost units of `known`.

    A declared cost is stored with the trial.  A learned cost is in seconds only after the first result: until then, for
    a running trial, and for one that was imported without a cost, the expected cost at its fidelity counts.
    """
    if problem.has_declared_cost:
        return trial.cost
    is_measured = trial.state != "running" and trial.seconds is not None and not isinstance(known, Declared)
    return trial.cost if is_measured else known.going_on(trial.z, trial.origin)


def seconds(problem: Problem, history: History) -> Seconds | None:
    """Return how long a query takes, including the time to choose it; None before the first result."""
    measured = [t for t in history.complete if t.seconds is not None]
    if not measured:
        return None
    evaluation = _learned(problem, history, measured, "seconds")
    overheads = [t.overhead for t in history if not t.added and not t.attempt]  # without attempts that died
    return Seconds(evaluation, float(np.median(overheads)) if overheads else 0.0)


@dataclass(frozen=True)
class Declared:
    """The cost that the problem states."""

    problem: Problem

    def of(self, z: Mapping[str, Any]) -> float:
        return self.problem.cost(z)

    def pessimistic(self, z: Mapping[str, Any], start: int = 0) -> float:
        return self.problem.cost_from(z, start)

    def going_on(self, z: Mapping[str, Any], start: int) -> float:
        return self.problem.cost_from(z, start)

    @property
    def grid(self) -> FloatArray:
        return self.problem.grid_costs

    @property
    def target(self) -> float:
        return self.problem.target_cost


@dataclass(frozen=True)
class Learned:
    """A smooth positive function of z, fitted to the measured costs of trials."""

    problem: Problem
    trials: tuple[Trial, ...]
    amounts: tuple[float, ...]

    def of(self, z: Mapping[str, Any]) -> float:
        """Return the median cost at z."""
        return float(np.exp(self.features([z]) @ self._posterior[0])[0])

    def going_on(self, z: Mapping[str, Any], start: int) -> float:
        """Return the median cost of continuing to z from a step."""
        return float(np.exp(self.features([z], [start]) @ self._posterior[0])[0])

    def pessimistic(self, z: Mapping[str, Any], start: int = 0) -> float:
        """Return a cost that nine queries in ten stay below, if the level at the target is taken as known.

        Pessimism about that level would rule out the query that teaches it, and end a study with its budget unspent.
        Of two ways to be uncertain the smaller counts: of the cost, which is small near measured fidelities, and of its
        ratio to the target's cost, which is small near the target.
        """
        w, S, scatter2 = self._posterior
        f = self.features([z], [start])[0]
        away = f - self._at_target[0]
        variance = min(float(f @ S @ f), float(away @ S @ away)) + scatter2
        return math.exp(float(f @ w) + NINE_IN_TEN * math.sqrt(variance))

    @cached_property
    def grid(self) -> FloatArray:
        return np.exp(self.features(self.problem.grid[0]) @ self._posterior[0])

    @cached_property
    def target(self) -> float:
        return self.of(self.problem.target)

    @cached_property
    def _at_target(self) -> FloatArray:  # (1, q)
        return self.features([self.problem.target])

    @cached_property
    def _posterior(self) -> tuple[FloatArray, FloatArray, float]:
        F = self.features([t.z for t in self.trials], [t.origin for t in self.trials])
        y = np.log(np.maximum(self.amounts, CLOCK_RESOLUTION))
        prior_mean, prior_deviation = self.prior(F.shape[1])
        scatter2 = EXPECTED_SCATTER**2
        expected = EXPECTED_SCATTER_WEIGHT * EXPECTED_SCATTER**2
        for _ in range(_SCATTER_ROUNDS):
            precision = F.T @ F / scatter2 + np.diag(prior_deviation**-2.0)
            S = np.asarray(np.linalg.inv(precision), dtype=float)
            w = S @ (F.T @ y / scatter2 + prior_mean / prior_deviation**2)
            residual = y - F @ w
            scatter2 = (expected + float(residual @ residual)) / (EXPECTED_SCATTER_WEIGHT + len(y))
        return w, S, scatter2

    def features(self, zs: Sequence[Mapping[str, Any]], starts: Sequence[int] | None = None) -> FloatArray:  # (n, q)
        """Return the columns of the regression: one, positions, their squares, options, and whether z is the target.

        Args:
            zs: the fidelities.
            starts: the steps from which each continued; they matter if the cost is declared.
        """
        if self.problem.has_declared_cost:  # the user's cost is the best feature there is
            costs = map(self.problem.cost_from, zs, starts or [0] * len(zs))
            column = [math.log(cost / self.problem.target_cost) for cost in costs]
            return np.column_stack([np.ones(len(zs)), column])
        linear = [self._position(name, [z[name] for z in zs]) for name in self.numeric]
        squares = [s * s / self._reach(name) for name, s in zip(self.numeric, linear, strict=True)]
        indicator = [
            np.array([float(z[name] == option) for z in zs])
            for name, parameter in self.problem.fidelity.items()
            for option in parameter.options
            if option != self.problem.target[name]
        ]
        at_target = [float(self.problem.is_target(z)) for z in zs]
        return np.column_stack([np.ones(len(zs)), *linear, *squares, *indicator, at_target])

    def prior(self, size: int) -> tuple[FloatArray, FloatArray]:
        mean, deviation = np.zeros(size), np.full(size, EXPONENT_DEVIATION)
        deviation[0] = LEVEL_DEVIATION
        if self.problem.has_declared_cost:
            mean[1], deviation[1] = 1.0, _DECLARED_EXPONENT_DEVIATION
            return mean, deviation
        k = len(self.numeric)
        mean[1 : 1 + k] = [self.problem.cost_direction(name) for name in self.numeric]
        mean[1 + 2 * k : -1] = math.log(0.5)
        deviation[1 + k : 1 + 2 * k] = _CURVATURE_DEVIATION
        return mean, deviation

    @cached_property
    def numeric(self) -> list[str]:
        return [name for name, parameter in self.problem.fidelity.items() if parameter.is_ordered]

    def _is_logarithmic(self, name: str) -> bool:
        ends = self.problem.fidelity[name].ends
        return ends is not None and ends[0] > 0

    def _reach(self, name: str) -> float:
        """Return the largest distance of a position from the target."""
        return float(np.max(np.abs(self._position(name, list(self.problem.fidelity[name].ends or ())))))

    def _position(self, name: str, values: list[Any]) -> FloatArray:
        target = self.problem.target[name]
        if self._is_logarithmic(name):
            return np.asarray(np.log(np.asarray(values, dtype=float) / target))
        unit = self.problem.fidelity[name].to_unit([*values, target])
        return np.asarray(unit[:-1] - unit[-1])


@dataclass(frozen=True)
class Seconds:
    """How long a query takes: its evaluation, which depends on z, and choosing it, which does not."""

    evaluation: Costs
    overhead: float

    @property
    def target(self) -> float:
        return self.evaluation.target + self.overhead

    def of(self, z: Mapping[str, Any], start: int = 0) -> float:
        return self.evaluation.going_on(z, start) + self.overhead

    def pessimistic(self, z: Mapping[str, Any], start: int = 0) -> float:
        return self.evaluation.pessimistic(z, start) + self.overhead
