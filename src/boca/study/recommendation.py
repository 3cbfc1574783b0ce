"""Which point to use at the target, when the budget is spent or at any time before."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, point_key
from boca.domain.words import advice, point
from boca.strategies.base import posterior


@dataclass(frozen=True)
class Recommendation:
    """A point with what the model believes of it at the target."""

    x: Point
    mean: float
    std: float
    verified: bool
    """Whether x has been run at the target."""

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
        return Recommendation(dict(best_seen.x), best_seen.value, 0.0, verified=True)
    queried = {point_key(t.x): t.x for t in history.complete}.values()
    candidates = [x for x in queried if problem.space.violated(x) is None]
    if not candidates:
        return None
    mu, sigma = model.moments(problem.space.to_unit(candidates))
    best = int(np.argmax(mu - sigma))
    x = candidates[best]
    verified = any(t.x == x and problem.is_target(t.z) for t in history.complete)
    mean, deviation = float(mu[best]), float(sigma[best])
    return Recommendation(dict(x), model.value_as_told(mean), model.interval_as_told(mean, deviation), verified)
