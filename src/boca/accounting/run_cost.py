"""What a query costs that passes through steps, if the cost is learned: a start, and a rate per step.

    seconds(z, from s) = start(o) + (step - s) rate(o),    o: the other fidelities
    log rate(o)  = w_0 + sum_i w_i s_i + sum_i c_i s_i^2 / S_i + options      (s_i, S_i as in `cost.py`)
    log start(o) = v_0 + sum_i v_i s_i

A priori the rate has exponents near one, and a start takes about a twentieth of an evaluation at the target.  The fit
is a posterior mode with its curvature, so that two results already give an estimate and a pessimistic quantile.  Every
run is a datum, and so is its first report: the two tell the start from the rate.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from boca.accounting import cost as cost_models
from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import History

_START_SHARE = 0.05  # prior, of the seconds of an evaluation at the target
_START_SHARE_DEVIATION = 1.5  # prior, of its log: from a hundredth to a quarter
_START_EXPONENT = 0.5  # prior, of the start in the other fidelities: it may load them, or not
_ROUNDS = 3  # of fitting and of estimating the scatter in turn
_MOST_STEPS = 30  # of the fit, which ends after about six
_ENOUGH = 1e-9  # relative change of the objective that ends the fit


class Took(NamedTuple):
    """How long an evaluation took from one step to another."""

    z: Mapping[str, Any]
    steps: int
    seconds: float


def runs_of(problem: Problem, history: History, amount: str) -> tuple[Took, ...]:
    """Return what the runs of a history say: of each the whole of it, and its first report.

    Args:
        problem: it has steps.
        history: of which every trial with seconds counts, also one that is running and has reported.
        amount: the field of a complete trial that says what it took: "cost" or "seconds".
    """
    found: list[Took] = []
    for trial in history:
        known = [(problem.step(o.z), o.seconds) for o in trial.observations if o.seconds is not None]
        if trial.state == "complete" and trial.seconds is not None:
            known = [k for k in known if k[0] < problem.step(trial.z)][:1]
            known.append((problem.step(trial.z), getattr(trial, amount)))
        elif trial.observations:
            known = [*known[:1], *known[-1:]] if len(known) > 1 else known
        for step, seconds in known:
            if seconds is not None and step > trial.origin:
                found.append(Took(trial.planned, step - trial.origin, float(seconds)))
    return tuple(found)


@dataclass(frozen=True)
class LearnedRuns:
    """A start and a rate, fitted to the measured seconds of runs."""

    problem: Problem
    took: tuple[Took, ...]

    def of(self, z: Mapping[str, Any]) -> float:
        """Return the median cost of z from scratch."""
        return self.going_on(z, 0)

    def going_on(self, z: Mapping[str, Any], start: int) -> float:
        """Return the median cost of continuing to z from a step."""
        return float(np.exp(self._log([z], np.array([self.problem.step(z) - start]), self._fit[0])[0])[0])

    def pessimistic(self, z: Mapping[str, Any], start: int = 0) -> float:
        """Return a cost that nine queries in ten stay below, if the level at the target is taken as known."""
        theta, S, scatter2 = self._fit
        log, f = self._log([z], np.array([self.problem.step(z) - start]), theta)
        away = f[0] - self._at_target
        variance = min(float(f[0] @ S @ f[0]), float(away @ S @ away)) + scatter2
        return math.exp(float(log[0]) + cost_models.NINE_IN_TEN * math.sqrt(variance))

    @cached_property
    def grid(self) -> FloatArray:  # (m,)
        zs = self.problem.grid[0]
        return np.exp(self._log(zs, np.array([self.problem.step(z) for z in zs]), self._fit[0])[0])

    @cached_property
    def target(self) -> float:
        return self.of(self.problem.target)

    # How ----------------------------------------------------------------------------------------------------------

    @cached_property
    def _at_target(self) -> FloatArray:  # (q,)
        target = self.problem.target
        return np.asarray(self._log([target], np.array([self.problem.step(target)]), self._fit[0])[1][0])

    @cached_property
    def _others(self) -> Problem:
        """The problem without its steps, whose fidelities decide the rate and the start."""
        fidelity = {name: p for name, p in self.problem.fidelity.items() if name != self.problem.steps}
        target = {name: value for name, value in self.problem.target.items() if name in fidelity}
        return Problem(self.problem.space, type(self.problem.fidelity)(fidelity), target=target)

    @cached_property
    def _rate(self) -> cost_models.Learned:
        return cost_models.Learned(self._others, (), ())

    def _features(self, zs: Sequence[Mapping[str, Any]]) -> tuple[FloatArray, FloatArray]:  # (n, q), (n, r)
        """Return the columns of the rate and of the start."""
        if not self._others.fidelity:
            one = np.ones((len(zs), 1))
            return one, one
        others = [{name: z[name] for name in self._others.fidelity} for z in zs]
        F = self._rate.features(others)[:, :-1]  # a level of its own at the target would take the rate from the others
        return F, F[:, : 1 + len(self._rate.numeric)]

    def _log(
        self, zs: Sequence[Mapping[str, Any]], steps: FloatArray, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:  # (n,), (n, q + r)
        """Return the logs of the seconds, and their derivatives by the parameters."""
        F, G = self._features(zs)
        return _logs(F, G, steps, theta)

    @cached_property
    def _prior(self) -> tuple[FloatArray, FloatArray]:
        """Return mean and deviation of the parameters: of the rate, then of the start less the level of the rate."""
        if self._others.fidelity:
            size = self._rate.features([self._others.target]).shape[1]
            mean, deviation = (part[:-1] for part in self._rate.prior(size))
            powers = [self._others.cost_direction(name) for name in self._rate.numeric]
        else:
            mean, deviation, powers = np.zeros(1), np.array([cost_models.LEVEL_DEVIATION]), []
        level = math.log(_START_SHARE * self.problem.step(self.problem.target))
        start = [level, *(_START_EXPONENT * power for power in powers)]
        spread = [_START_SHARE_DEVIATION, *(cost_models.EXPONENT_DEVIATION for _ in powers)]
        return np.array([*mean, *start]), np.array([*deviation, *spread])

    @cached_property
    def _fit(self) -> tuple[FloatArray, FloatArray, float]:
        """Return the mode of the posterior, the inverse of its curvature, and the scatter of log seconds."""
        F, G = self._features([took.z for took in self.took])
        steps = np.array([took.steps for took in self.took], dtype=float)
        y = np.log(np.maximum([took.seconds for took in self.took], cost_models.CLOCK_RESOLUTION))
        mean, deviation = self._prior
        theta, scatter2 = mean.copy(), cost_models.EXPECTED_SCATTER**2
        theta[0] = float(np.mean(y - np.log(steps)))
        expected = cost_models.EXPECTED_SCATTER_WEIGHT * scatter2
        for _ in range(_ROUNDS):
            theta, S = _mode(F, G, steps, y, mean, deviation, theta, scatter2)
            residual = y - _logs(F, G, steps, theta)[0]
            scatter2 = (expected + float(residual @ residual)) / (cost_models.EXPECTED_SCATTER_WEIGHT + len(y))
        return theta, S, scatter2


def _logs(F: FloatArray, G: FloatArray, steps: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log(start + steps rate) and its derivatives; theta holds the rate, then the start in units of the rate."""
    q = F.shape[1]
    rate = F @ theta[:q] + np.log(np.maximum(steps, 1e-12))
    start = theta[0] + G @ theta[q:]
    log = np.logaddexp(rate, start)
    share = np.exp(rate - log)[:, None]
    J = np.hstack([share * F, (1.0 - share) * G])
    J[:, 0] = 1.0  # the level of the rate is that of the start too
    return log, J


def _mode(
    F: FloatArray,
    G: FloatArray,
    steps: FloatArray,
    y: FloatArray,
    mean: FloatArray,
    deviation: FloatArray,
    theta: FloatArray,
    scatter2: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the mode of the posterior and the inverse of its curvature, by damped Gauss-Newton steps."""

    def loss(at: FloatArray) -> float:
        residual, prior = y - _logs(F, G, steps, at)[0], (at - mean) / deviation
        return float(residual @ residual) / scatter2 + float(prior @ prior)

    weight = np.diag(deviation**-2.0)
    now = loss(theta)
    for _ in range(_MOST_STEPS):
        log, J = _logs(F, G, steps, theta)
        slope = J.T @ (y - log) / scatter2 - (theta - mean) / deviation**2
        move = np.linalg.solve(J.T @ J / scatter2 + weight, slope)
        size = 1.0
        while size > 1e-4 and not loss(theta + size * move) <= now:
            size *= 0.5
        moved = loss(theta + size * move)
        if not moved < now - _ENOUGH * (1.0 + now):
            break
        theta, now = theta + size * move, moved
    J = _logs(F, G, steps, theta)[1]
    return theta, np.asarray(np.linalg.inv(J.T @ J / scatter2 + weight), dtype=float)
