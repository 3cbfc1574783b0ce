"""What to use of a front: the points that are best according to the models, each with its uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from boca.domain.hypervolume import undominated
from boca.domain.objectives import scores
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, point_key
from boca.domain.words import expected, point
from boca.model.feasibility import LIKELY
from boca.strategies.base import feasibility, objectives

_NEGLIGIBLE = 1e-3  # of what the front covers
_ALMOST_SURE = 0.9  # probability from which a point is recommended that was not seen to be feasible


@dataclass(frozen=True)
class FrontRecommendation:
    """A point of the front that the models expect, with what they believe of it at the target."""

    x: Point
    mean: Mapping[str, float]
    """Of every objective, by name."""
    std: Mapping[str, float]
    verified: bool
    """Whether x has been run at the target."""
    feasible: float | None = None
    """The probability that every outcome is within its limit, and that no trial fails; None if neither matters."""

    @property
    def words(self) -> str:
        """What the models expect there, in plain words."""
        each = ", ".join(f"{name} {expected(mean, self.std[name])}" for name, mean in self.mean.items())
        more = "" if self.feasible is None else f"; feasible with probability {self.feasible:.2g}"
        return f"{each}{more}; {'run' if self.verified else 'not run'} at the target"

    def _repr_html_(self) -> str:
        from boca.domain import html

        return html.table([], [("recommended", point(self.x)), ("", self.words)])


def recommend_front(problem: Problem, history: History, strategy: object) -> list[FrontRecommendation]:
    """Return the queried x whose posterior means at the target are not dominated, by the first objective.

    Only x that were run at some fidelity compete.  If outcomes have limits, they must be almost surely feasible, or
    seen to be and likely so.  If the same query always gives the same value, x that were run at the target have the
    values seen there, and those that were not must add to them by mean less deviation.
    """
    models = objectives(strategy, problem, history)
    if models is None:
        return []
    queried = {point_key(t.x): t.x for t in history.complete}.values()
    candidates = [x for x in queried if problem.space.violated(x) is None]
    if not candidates:
        return []
    U = problem.space.to_unit(candidates)
    known = feasibility(strategy, problem, history)
    probability = known.probability(U) if known else None
    if probability is not None:
        seen = {point_key(t.x) for t in history.feasible(problem)}
        was_seen = np.array([point_key(x) in seen for x in candidates])
        trusted = np.flatnonzero((probability >= _ALMOST_SURE) | (was_seen & (probability >= LIKELY)))
        candidates, U, probability = [candidates[k] for k in trusted], U[trusted], probability[trusted]
    if not candidates:
        return []
    mu, sigma = models.moments(U)
    at_target = {point_key(t.x): t for t in history.feasible(problem)}
    run = {point_key(t.x) for t in history.complete if problem.is_target(t.z)}
    if problem.deterministic:
        for k, x in enumerate(candidates):
            if (trial := at_target.get(point_key(x))) is not None:
                mu[k], sigma[k] = scores(problem, [trial])[0], 0.0
        kept = _distinctly_best(mu - sigma)
    else:
        kept = _distinctly_best(mu)
    return [
        FrontRecommendation(
            dict(candidates[k]),
            models.as_told(mu[k]),
            dict(zip(problem.objectives, sigma[k].tolist(), strict=True)),
            point_key(candidates[k]) in run,
            None if probability is None else float(probability[k]),
        )
        for k in sorted(kept, key=lambda k: (-mu[k, 0], k))
    ]


def _distinctly_best(Y: FloatArray) -> list[int]:  # (n, m)
    """Return the points that are not dominated, less those that another one makes up for but for rounding.

    A point that is better by a thousandth of the front in one objective, and much worse in another, is of no use.
    """
    front = np.flatnonzero(undominated(Y))
    extent = np.ptp(Y[front], axis=0)
    slack = _NEGLIGIBLE * extent
    share = (Y[front] - np.min(Y[front], axis=0)) / np.where(extent > 0.0, extent, 1.0)
    kept: list[int] = []
    for k in front[np.argsort(-np.sum(share, axis=1), kind="stable")]:
        if not any(np.all(Y[j] >= Y[k] - slack) and np.any(Y[j] > Y[k] + slack) for j in kept):
            kept.append(int(k))
    return kept
