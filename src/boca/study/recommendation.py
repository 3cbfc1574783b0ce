"""Which point to use at the target, when the budget is spent or at any time before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import BoolArray, FloatArray, Point
from boca.domain.trial import History, Trial, point_key, sign
from boca.domain.words import advice, point
from boca.model.feasibility import LIKELY
from boca.strategies.base import feasibility, posterior

_ALMOST_SURE = 0.9  # probability from which a point may be recommended that was not seen to be feasible


@dataclass(frozen=True)
class Recommendation:
    """A point with what the model believes of it at the target."""

    x: Point
    mean: float
    std: float
    verified: bool
    """Whether x has been run at the target."""
    feasible: float | None = None
    """The probability that every outcome is within its limit at the target; None if there are no limits."""

    @property
    def words(self) -> str:
        """What the model expects there, in plain words."""
        return advice(self.mean, self.std, self.verified, self.feasible)

    def _repr_html_(self) -> str:
        from boca.domain import html

        return html.table([], [("recommended", point(self.x)), ("", advice(self.mean, self.std, self.verified))])


def recommend(problem: Problem, history: History, strategy: object) -> Recommendation | None:
    """Return the queried x with the highest mean minus deviation at the target.

    If the same query always gives the same value, it is the best x at the target as soon as there is one: what the
    model expects elsewhere may turn out worse.

    Only x that were run at some fidelity compete: the maximum of the posterior mean may sit in a corner where nothing
    was ever run (on Hartmann 6 with pure likelihood it was 1.1 off, and the best query 0.09).
    """
    model = posterior(strategy, problem, history)
    if model is None:
        return None
    best_seen = history.best(problem) if problem.deterministic else None
    if best_seen is not None and best_seen.value is not None:
        seen_feasible = 1.0 if problem.subject_to else None
        return Recommendation(dict(best_seen.x), best_seen.value, 0.0, verified=True, feasible=seen_feasible)
    queried = {point_key(t.x): t.x for t in history.complete}.values()
    candidates = [x for x in queried if problem.space.violated(x) is None]
    if not candidates:
        return None
    U = problem.space.to_unit(candidates)
    mu, sigma = model.moments(U)
    probability = None
    rank = mu - sigma
    if problem.subject_to:
        probability = feasibility(strategy, problem, history).probability(U)
        rank = np.where(_trusted(problem, history, candidates, probability), rank, -np.inf)
    best = int(np.argmax(rank)) if probability is None or np.isfinite(rank).any() else int(np.argmax(probability))
    x = candidates[best]
    verified = any(t.x == x and problem.is_target(t.z) for t in history.complete)
    mean, deviation = float(mu[best]), float(sigma[best])
    return Recommendation(
        dict(x),
        model.value_as_told(mean),
        model.interval_as_told(mean, deviation),
        verified,
        None if probability is None else float(probability[best]),
    )


def _trusted(problem: Problem, history: History, candidates: Sequence[Point], probability: FloatArray) -> BoolArray:
    """Return which points may be recommended: almost surely feasible, or seen to be and likely so."""
    seen = {point_key(t.x) for t in history.feasible(problem)}
    was_seen = np.array([point_key(x) in seen for x in candidates])
    return np.asarray((probability >= _ALMOST_SURE) | (was_seen & (probability >= LIKELY)))


def best(problem: Problem, history: History, strategy: object) -> Trial | None:
    """Return the best complete trial at the target; None before there is one.

    If variances were told there, the best value is the luckiest: then it is the trial with the highest posterior mean.
    """
    trials = history.feasible(problem)
    if problem.objectives:
        return None
    model = posterior(strategy, problem, history) if any(t.noise for t in trials) else None
    if model is None:
        return history.best(problem)
    mu, _ = model.moments(problem.space.to_unit([t.x for t in trials]))
    better = sign(problem.direction)
    return max(zip(mu, trials, strict=True), key=lambda pair: (pair[0], better * (pair[1].value or 0.0)))[1]


def nothing_best(problem: Problem, history: History) -> str:
    """Return why there is no best trial, in words."""
    if problem.subject_to and any(problem.is_target(t.z) for t in history.told(problem)):
        return "no trial at the target is within every limit"
    return "no trial is complete at the target"
