"""What every strategy is, and what those with a model share: a choice among ranked points, and the words for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from boca.cost import costs
from boca.problem import Budget, Problem
from boca.space import FloatArray, Point
from boca.start import by_preference
from boca.surrogate import Model
from boca.trial import History, Suggestion, barred, occupied, point_key


@runtime_checkable
class Strategy(Protocol):
    """All trials in, a suggestion out; nothing remembered."""

    def suggest(
        self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator, /
    ) -> Suggestion: ...


def beta(t: int, d: int, l: float) -> float:  # noqa: E741 - the paper's symbol
    """Return the exploration weight that the paper runs, l being the L1 diameter in bandwidths.  [K17, app. C.1]"""
    return 0.5 * d * math.log(2.0 * l * t + 1.0)


def first_free(
    problem: Problem, history: History, ranked: FloatArray, fidelity_of: Callable[[FloatArray], Point]
) -> tuple[FloatArray, Point]:  # ranked (k, d) -> u (d,), z
    """Return the best point with its fidelity that is not out already and has not failed three times.

    Where every ranked point is out at its own fidelity, another fidelity is taken, dearer than the target only if it
    must be; where everything is out, the best.
    """
    taken, bad = occupied(history), barred(history)

    def usable(candidates: Iterable[tuple[FloatArray, Point]]) -> tuple[FloatArray, Point] | None:
        for u, z in candidates:
            x = point_key(problem.space.from_unit(u))
            if x not in bad and (x, point_key(z)) not in taken:
                return u, z
        return None

    found = usable((u, fidelity_of(u)) for u in ranked)
    if found is None:
        found = usable((u, z) for z in by_preference(problem, costs(problem, history)) for u in ranked[:64])
    return found or (ranked[0], fidelity_of(ranked[0]))


def explain(
    model: Model, history: History, u: FloatArray, *, phase: str, reason: str, beta: float, **more: Any
) -> dict[str, Any]:  # u (d,)
    """Return the part of `why` that every decision by a model shares, in the user's units and unrounded."""
    mu, sigma = (float(moment[0]) for moment in model.moments(u[None, :]))
    why: dict[str, Any] = {
        "reason": reason,
        "phase": phase,
        "beta": beta,
        "mean": model.value_as_told(mu),
        "std": model.deviation_as_told(sigma),
        "ucb": model.value_as_told(mu + math.sqrt(beta) * sigma),
        **more,
        "hyperparameters": model.hyperparameters(),
        "refit": model.fit is not None,
        "pending": [t.number for t in history.running],
    }
    if model.fit is not None:
        why["fit"] = model.fit
    return why
