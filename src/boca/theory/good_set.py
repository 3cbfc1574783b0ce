"""The good set: where BOCA makes most of its target queries, by theory and in a study.

symbol       shape    meaning
U            (m, d)   points of the domain, in unit coordinates
short        (m,)     f* - f(x), how far below the maximum f is
rho, alpha            constants of the theorem, rho > rho_0(alpha, d)
xi_far                information gap of the farthest fidelity
X_rho        (m,)     the good set: short <= 2 rho sqrt(kappa0) xi_far
X_rho,n      (m,)     its dilation by sqrt(d) / n^(alpha / 2d)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import BoolArray, FloatArray
from boca.domain.trial import History, sign
from boca.model.posterior import Model
from boca.strategies.base import posterior
from boca.strategies.boca_information import information_gap
from boca.theory.bounds import rho_0


class Study(Protocol):
    """What is read of a study: an `Optimizer`, or what `boca.plots.load` returns."""

    @property
    def problem(self) -> Problem: ...
    @property
    def history(self) -> History: ...
    @property
    def strategy(self) -> Any: ...


def in_good_set(short: FloatArray, *, rho: float, kappa0: float, xi_far: float) -> BoolArray:  # (m,) -> (m,)
    """Return which points are in X_rho, f* - f(x) <= 2 rho sqrt(kappa0) xi(sqrt p).  [K17, eq. 9]"""
    return np.asarray(np.asarray(short) <= 2.0 * rho * math.sqrt(kappa0) * xi_far)


def dilation_radius(n: int, *, d: int, alpha: float) -> float:
    """Return sqrt(d) / n^(alpha / 2d), by which the good set is dilated.  [K17, eq. 10]"""
    return float(math.sqrt(d) / n ** (alpha / (2.0 * d)))


def dilation(U: FloatArray, inside: BoolArray, radius: float) -> BoolArray:  # (m, d), (m,) -> (m,)
    """Return which points have a point of a set within a radius, as X_rho,n has of X_rho.  [K17, eq. 10]"""
    from scipy.spatial import KDTree

    if not inside.any():
        return np.zeros(len(U), dtype=bool)
    distance, _ = KDTree(U[inside]).query(U)
    return np.asarray(distance <= radius)


@dataclass(frozen=True)
class GoodSet:
    """X_rho and its dilation at points of the domain, and the target queries of a study in it."""

    U: FloatArray  # (m, d)
    short: FloatArray  # (m,)
    inside: BoolArray  # (m,)
    dilated: BoolArray  # (m,)
    queries: FloatArray  # (k, d)
    """The target queries that the model chose, in unit coordinates."""
    queries_inside: BoolArray  # (k,)
    xi_far: float
    width: float
    """2 rho sqrt(kappa0) xi_far in the user's units: how far below the maximum the good set reaches."""
    radius: float
    """Of the dilation."""
    best: float
    """f*, in the user's units."""

    @property
    def volume(self) -> float:
        """The share of the domain that is in X_rho."""
        return float(np.mean(self.inside))

    @property
    def dilated_volume(self) -> float:
        return float(np.mean(self.dilated))

    @property
    def share_inside(self) -> float:
        """The share of the model's target queries that are in X_rho; NaN without any."""
        return float(np.mean(self.queries_inside)) if len(self.queries) else math.nan


def good_set(
    study: Study,
    f: Callable[[Mapping[str, Any]], float] | None = None,
    *,
    rho: float | None = None,
    alpha: float = 0.5,
    points: int = 4096,
) -> GoodSet:
    """Return the good set of a study, with the kernel of its last fit.  [K17, eq. 9]

    Args:
        study: an `Optimizer`, or what `boca.plots.load` returns; its strategy must have one model of all fidelities.
        f: the true f at the target without noise, such as `bench.value`; None takes the posterior mean.
        rho: at least rho_0(alpha, d), which is the default.
        alpha: between 0 and 1: at most n^alpha queries at the target are outside, by the theorem.
        points: of a Sobol sequence, at which the set is computed.
    """
    from scipy.stats import qmc

    problem, history = study.problem, study.history
    least = rho_0(alpha, len(problem.space))
    rho = least if rho is None else rho
    if not rho >= least:
        raise InvalidInput(
            f"rho must be at least rho_0 = {least:.3g} for alpha = {alpha:g}; got {rho!r}. Leave it out."
        )
    model = posterior(study.strategy, problem, history)
    if not isinstance(model, Model) or not problem.fidelity:
        raise InvalidInput("The study must have results, fidelities, and one model of them, as Boca has. Run it first.")
    space = problem.space
    U = space.snap(qmc.Sobol(len(space), scramble=False).random(points))
    chosen = [t for t in history.chosen if t.phase == "model" and problem.is_target(t.z) and t.state == "complete"]
    queries = space.to_unit([t.x for t in chosen])
    value = _levels(model, problem, f, np.vstack([U, queries]))
    best = float(np.max(value))
    short = best - value
    k, own, star = model.encoding.fidelity_covariance(model.h, problem.grid[1])
    xi_far = float(np.max(information_gap(k, own, star)))
    kappa0 = float(model.hyperparameters()["kappa0"])
    inside = in_good_set(short, rho=rho, kappa0=kappa0, xi_far=xi_far)
    radius = dilation_radius(max(len(history.finished), 1), d=len(space), alpha=alpha)
    return GoodSet(
        U,
        short[: len(U)],
        inside[: len(U)],
        dilation(U, inside[: len(U)], radius),
        queries,
        inside[len(U) :],
        xi_far,
        2.0 * rho * math.sqrt(kappa0) * xi_far,
        radius,
        sign(problem.direction) * best,
    )


def _levels(
    model: Model, problem: Problem, f: Callable[[Mapping[str, Any]], float] | None, U: FloatArray
) -> FloatArray:  # (m, d) -> (m,)
    """Return f in the user's units, with the sign that makes larger ones better."""
    if f is None:
        mean = model.means(U)
        told = np.array([model.value_as_told(float(each)) for each in mean])
    else:
        told = np.array([f(problem.space.from_unit(u)) for u in U])
    return sign(problem.direction) * told
