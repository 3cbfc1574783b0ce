"""When an evaluation that reports its steps is not worth its next ones: a rule for every strategy.

At each rung s, which is the target's step s* halved again and again, the result at the target is foretold from the
report at s.  How reports at s foretell results is learned from the runs of this study that have reached the target, and
the run is stopped if it has too small a chance to beat the best of them.

    symbol   meaning
    v        a score: larger is better
    t        -log(1 + (b - v) / S) for v below b, (v - b) / S above: b is the best result at the target, and S its
             distance from the median one.  So differences near the best count, whatever the worst runs did
    line     t at the target = m + slope (t at s - mean), its slope near one a priori
    e        errors of the line for the completed runs, each left out in turn; their mean square is its variance
    P        probability that the run beats b: Student's t with two degrees of freedom fewer than there are runs

Runs that were stopped are not among the completed ones, and a line that was learned from survivors alone is still right
where they were: a stop depends on t at s only, and the line is about what comes after it.  One run in ten is never
stopped, so that the line is known where the others end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.runs import Verdict
from boca.domain.space import FloatArray, finite_number, whole_number
from boca.domain.trial import History, Trial, sign

_SLOPE_DEVIATION = 0.3  # prior, around one: what is ahead at a step is mostly ahead at the end
_ROUNDS = 3  # of fitting the line and its variance in turn, after which both have settled
_LEAST_VARIANCE = 1e-6  # of t: curves that agree to more than a thousandth say nothing of the next one
_GOLDEN_RATIO = 0.6180339887498949  # its multiples modulo 1 are evenly spread, and follow no cycle of a strategy
_LEAST_COMPLETED = 3  # a line and its variance take three


@dataclass(frozen=True)
class StopHopeless:
    """Stop a run that is unlikely to beat the best result at the target.

    Args:
        below: the probability to beat it, below which a run is stopped.
        completed: how many runs must have reached the target, with a report at the same step, before any is stopped
            there.
        finishing: the share of the runs that always go on to the end.
    """

    below: float = 0.02
    completed: int = 5
    finishing: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < finite_number(self.below, "below") < 1.0:
            raise InvalidInput(
                f"below is {self.below!r}, and must be a probability between 0 and 1. Leave it out for 0.02."
            )
        object.__setattr__(self, "completed", whole_number(self.completed, "completed"))
        if self.completed < _LEAST_COMPLETED:
            raise InvalidInput(
                f"completed is {self.completed!r}, and must be at least {_LEAST_COMPLETED} runs: fewer do not say how "
                "reports predict results. Leave it out for 5."
            )
        if not 0.0 <= finite_number(self.finishing, "finishing") <= 1.0:
            raise InvalidInput(
                f"finishing is {self.finishing!r}, and must be a share between 0 and 1. Leave it out for 0.1."
            )

    def keep_going(self, problem: Problem, history: History, trial: Trial, rng: np.random.Generator) -> Verdict:
        """Return whether a running trial should go on after its last report."""
        curve = _curve(problem, history, trial)
        at = _rung_just_reached(problem, curve)
        if at is None or self._always_finishes(history.chain(trial)[0].number):
            return Verdict(True)
        if problem.at_step(trial.planned, 0) != problem.at_step(problem.target, 0):
            return Verdict(True)  # no completed run is comparable
        pairs = _completed_pairs(problem, history, at, beside=trial)
        if len(pairs) < self.completed:
            return Verdict(True)
        line = Line.fitted(pairs)
        chance = line.chance(curve[-1][1])
        if chance >= self.below:
            return Verdict(True)
        step, told = curve[-1][0], sign(problem.direction) * line.foretold(curve[-1][1])
        reason = (
            f"Stopped at {problem.steps}={step}: as the {len(pairs)} runs that went on from there show, it would reach "
            f"{told:.4g} at the target, and beats the best one with a probability of {chance:.2g}."
        )
        numbers = {"chance": chance, "below": self.below, "completed": len(pairs), "foretold": told}
        return Verdict(False, {"reason": reason, **numbers, "slope": line.slope, "error": math.sqrt(line.variance)})

    def _always_finishes(self, number: int) -> bool:
        return (number * _GOLDEN_RATIO) % 1.0 < self.finishing


def _curve(problem: Problem, history: History, trial: Trial) -> list[tuple[int, float]]:
    """Return the modelled steps of a curve with their scores."""
    turn = sign(problem.direction)
    reported = history.curve(problem, trial)
    return [(s, turn * v) for s, v in reported if problem.is_modelled(problem.at_step(trial.planned, s))]


def _rung_just_reached(problem: Problem, curve: Sequence[tuple[int, float]]) -> int | None:
    """Return the rung, below the target, that the last report has reached and the one before had not."""
    if not curve:
        return None
    last, before = curve[-1][0], curve[-2][0] if len(curve) > 1 else 0
    star = problem.step(problem.target)
    rungs = (star // 2**k for k in range(1, star.bit_length()))
    return next((r for r in rungs if before < r <= last < star), None)


def _completed_pairs(problem: Problem, history: History, at: int, *, beside: Trial) -> list[tuple[float, float]]:
    """Return the scores of every completed run at a rung, and at the target."""
    found = []
    for trial in history.complete:
        if not problem.is_target(trial.z) or trial.value is None or trial.number == beside.number:
            continue
        curve = _curve(problem, history, trial)
        reached = [score for step, score in curve if at <= step < 2 * at]
        if reached:
            found.append((reached[0], sign(problem.direction) * trial.value))
    return found


@dataclass(frozen=True)
class Line:
    """How a report at one step foretells the result at the target."""

    best: float
    spread: float
    center: float  # mean of t at the step
    level: float  # mean of t at the target
    slope: float
    variance: float  # of what it foretells, from completed runs that were left out
    count: int
    weight: float  # of the distance from the center in the variance

    @classmethod
    def fitted(cls, pairs: Sequence[tuple[float, float]]) -> Line:
        at, end = (np.array(column, dtype=float) for column in zip(*pairs, strict=True))
        best = float(np.max(end))
        spread = best - float(np.median(end))
        if not spread > 0.0:
            spread = max(float(np.ptp(np.concatenate([at, end]))), abs(best), 1.0)
        t, y = _transformed(at, best, spread), _transformed(end, best, spread)
        n, center, level = len(t), float(np.mean(t)), float(np.mean(y))
        d, r = t - center, y - level
        variance = max(float(np.mean((r - d) ** 2)), _LEAST_VARIANCE)
        slope, weight = 1.0, 0.0
        for _ in range(_ROUNDS):
            ridge = variance / _SLOPE_DEVIATION**2
            weight = 1.0 / (float(d @ d) + ridge)
            slope = (float(d @ r) + ridge) * weight
            left_out = (r - slope * d) / np.maximum(1.0 - 1.0 / n - d * d * weight, 1.0 / n)
            variance = max(float(np.mean(left_out**2)), _LEAST_VARIANCE)
        return cls(best, spread, center, level, slope, variance, n, weight)

    def chance(self, score: float) -> float:
        """Return the probability that a run with this score at the step beats the best result at the target."""
        from scipy.special import stdtr

        d = self._away(score)
        deviation = math.sqrt(self.variance * (1.0 + d * d * self.weight))  # errors of the mean are in left-out errors
        return float(stdtr(self.count - 2, (self.level + self.slope * d) / deviation))

    def foretold(self, score: float) -> float:
        """Return the score at the target that is as likely to be exceeded as not."""
        t = self.level + self.slope * self._away(score)
        return self.best + self.spread * (t if t > 0.0 else -math.expm1(-t))

    def _away(self, score: float) -> float:
        return float(_transformed(np.array([score]), self.best, self.spread)[0]) - self.center


def _transformed(v: FloatArray, best: float, spread: float) -> FloatArray:  # (n,)
    below = (best - v) / spread
    return np.where(below > 0.0, -np.log1p(np.maximum(below, 0.0)), -below)
