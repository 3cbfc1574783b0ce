"""Which point to use at the target, once the money is gone or whenever somebody wants to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, point_key
from boca.model.posterior import Model
from boca.model.surrogate import Surrogate


@dataclass(frozen=True)
class Recommendation:
    """A point with what the model believes of it at the target."""

    x: Point
    mean: float
    std: float
    verified: bool
    """Whether x has been run at the target."""


def posterior(problem: Problem, history: History, strategy: object) -> Model | None:
    """Return the model after everything that was told, what is still out apart; None before the first result."""
    if not history.complete:
        return None
    own = getattr(strategy, "surrogate", None)
    surrogate = own if isinstance(own, Surrogate) else Surrogate()
    known = getattr(strategy, "hyperparameters", None) if surrogate is own else None
    if known is not None and problem.fidelity and surrogate.fidelity_kernel is None and "h_z" not in known:
        known = None  # of every fidelity by itself: what they say about each other is learned
    return surrogate.model(
        problem,
        History([t for t in history if t.state != "running"]) if history.running else history,
        np.random.default_rng(0),
        hyperparameters=known,
    )


def recommend(problem: Problem, history: History, strategy: object) -> Recommendation | None:
    """Return the queried x with the highest mean minus deviation at the target.

    Only x that were run at some fidelity compete: the maximiser of the posterior mean may sit in a corner where
    nobody has been (on Hartmann 6 with pure likelihood it was 1.1 off where the best query was 0.09 off).
    """
    model = posterior(problem, history, strategy)
    if model is None:
        return None
    candidates = list({point_key(t.x): t.x for t in history.complete}.values())
    mu, sigma = model.moments(problem.space.to_unit(candidates))
    best = int(np.argmax(mu - sigma))
    x = candidates[best]
    verified = any(t.x == x and problem.is_target(t.z) for t in history.complete)
    return Recommendation(
        dict(x), model.value_as_told(float(mu[best])), model.deviation_as_told(float(sigma[best])), verified
    )
