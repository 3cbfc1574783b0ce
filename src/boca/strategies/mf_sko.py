"""MF-SKO, the paper's fourth baseline: sequential kriging over a finite list of fidelities.

[H06] Huang, Allen, Notz, Miller: Sequential Kriging Optimization Using Multiple-Fidelity Evaluations, 2006.

    symbol      shape         meaning
    m                         level: 0 is the cheapest fidelity of the list, M - 1 the target
    f_m(x)                    g at level m; f_0 and the differences f_m - f_{m-1} are independent GPs
    kappa, h    (M,), (M, d)  scales and length scales of f_0 and of the differences
    B           (T, M, M)     covariance of the levels in each of T terms of the kernel
    F, level    (n, D), (n,)  features of the queried x, and the level of each
    k           (q, n)        covariance of f_m at q points with the results; V is the same whitened, L^-1 k
    eta2                      variance of the noise
    x**                       effective best solution: the queried x of largest mean minus deviation at the target

The model is in `boca.strategies.mf_sko_model`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput, one_of
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion, point_key
from boca.model.dataset import Dataset
from boca.model.encoding import Encoding
from boca.model.fidelity_use import FITTED_RESULTS
from boca.model.posterior import EXACT_UP_TO, Posterior
from boca.model.surrogate import Surrogate
from boca.search import acquisition
from boca.search.candidates import STAND_IN, best_candidate
from boca.search.initial_design import random_start, start_query
from boca.search.maximizer import MAXIMIZERS, Maximizer
from boca.strategies.base import beta, explain, refuse_restricted
from boca.strategies.ladder import check_fidelities, ladder, on_levels
from boca.strategies.mf_sko_model import (
    JointFit,
    JointPosterior,
    autoregressive,
    checked_terms,
    fit_levels,
    known_posterior,
    unpack,
)

# With the limits of a usual surrogate: no run of the paper is without a result at its fidelities.
_ELSEWHERE = replace(Surrogate.paper(), fitted_results=FITTED_RESULTS, exact_results=EXACT_UP_TO)
_DIFFERENCE_STEP = 1e-6  # of the finite differences: the best balance of rounding and curvature
_KEYS = {"kappa0", "eta2", "mean", "h_x", "h_z"}  # of hyperparameters=, without terms
_LEAST_CORRELATION = 1e-12  # instead of correlations at or below zero, whose logarithm is not finite


@dataclass(frozen=True)
class MFSKO:
    """Query the point and the fidelity with the largest discounted expected improvement per cost."""

    fidelities: Sequence[Mapping[str, Any]] | None = None
    """The fidelities, to which the target is added; by default a third and two thirds of the way to the target."""
    maximizer: Maximizer = "direct"
    hyperparameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        one_of(self.maximizer, MAXIMIZERS, "maximizer")

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        refuse_restricted(problem, type(self).__name__)
        check_fidelities(problem, self.fidelities)
        given = self.hyperparameters
        if isinstance(given, Mapping) and "terms" in given:
            levels = ladder(problem, self.fidelities, costs(problem, History()))
            checked_terms(problem, given["terms"], len(levels))
            Surrogate.paper().check(Problem(problem.space), {key: given[key] for key in given if key != "terms"})
        elif isinstance(given, Mapping) and (unknown := sorted({*given} - _KEYS)):
            raise InvalidInput(
                f"hyperparameters[{unknown[0]!r}] is not a hyperparameter of MFSKO; use {sorted(_KEYS)} or 'terms'."
            )
        else:
            Surrogate.paper().check(problem, given)

    def posterior(self, problem: Problem, history: History) -> Posterior:
        levels = ladder(problem, self.fidelities, costs(problem, history))
        known, rng = on_levels(history, levels), np.random.default_rng(0)
        if not known.complete:  # all results are at fidelities that are not in the list
            return _ELSEWHERE.model(problem, history, rng)
        return self._posterior(problem, known, levels, rng)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        price = costs(problem, history)
        levels = ladder(problem, self.fidelities, price)
        starting = random_start(problem, history, budget, rng, price, design="uniform", fidelities=levels)
        if starting is not None:
            return starting
        known = on_levels(history, levels)
        if not known.complete:  # all results are at fidelities that are not in the list
            z = levels[int(rng.integers(len(levels)))]
            return start_query(problem, history, rng, price, z, design="uniform")

        posterior = self._posterior(problem, known, levels, rng)
        queried = problem.space.to_unit(list({point_key(t.x): t.x for t in known.finished}.values()))
        mu, sigma = posterior.moments(queried)
        best = float(mu[int(np.argmax(mu - sigma))])  # the mean at x**
        objective = ImprovementPerCost(posterior, best, np.array([price.target / price.of(z) for z in levels]))
        anchors = queried[np.argsort(-mu, kind="stable")[:5]]
        ranked = MAXIMIZERS[self.maximizer](objective, problem.space, rng, anchors)
        u, z, stands_in = best_candidate(
            problem, history, ranked, lambda u: dict(levels[objective.level(u)]), others=levels
        )
        reason = STAND_IN if stands_in else _sentence(levels, z)
        return Suggestion(problem.space.from_unit(u), z, self._why(problem, history, posterior, u, z, levels, reason))

    def _posterior(
        self, problem: Problem, known: History, levels: list[Point], rng: np.random.Generator
    ) -> JointPosterior:
        domain = Problem(problem.space, direction=problem.direction or "maximize")
        encoding, dataset = Encoding(domain, "se"), Dataset.from_history(domain, known)
        reached = np.array([levels.index(t.z) for t in [*known.finished, *known.running]])
        if self.hyperparameters is not None:
            return known_posterior(problem, dataset, levels, reached, encoding, self.hyperparameters)
        last = next((t.why["fits"] for t in reversed(known.chosen) if "fits" in t.why), None)
        stored = None if last is None else JointFit.from_json(last)
        values = tuple(tuple(z.values()) for z in levels)
        if stored is not None and stored.levels != values:
            stored = None
        learned: JointFit | None = None
        if stored is None or Surrogate.paper().is_due(dataset, stored.fit):
            learned = stored = fit_levels(dataset, values, reached, encoding, stored, rng)
        data = dataset.encoded(encoding, stored.fit.standard)
        kappa, h, eta2 = unpack(np.array(stored.fit.theta), len(levels))
        mean = float(np.median(data.y))
        return JointPosterior.build(
            problem, encoding, stored.fit.standard, data, reached, autoregressive(kappa), h, eta2, mean, learned
        )

    def _why(
        self,
        problem: Problem,
        history: History,
        posterior: JointPosterior,
        u: FloatArray,
        z: Point,
        levels: list[Point],
        reason: str,
    ) -> dict[str, Any]:
        weight = beta(len(history.chosen) + 1, len(problem.space), float(np.sum(1.0 / posterior.h[0])))
        level = {"level": levels.index(z) + 1} if z in levels else {}
        return explain(posterior, history, u, phase="model", reason=reason, beta=weight, acquisition="log_ei", **level)


def _sentence(levels: list[Point], z: Point) -> str:
    if len(levels) == 1:
        return "The largest expected improvement."
    if z == levels[-1]:
        return "The target fidelity: it promises the largest improvement for its cost."
    place = f"Fidelity {levels.index(z) + 1} of {len(levels)}"
    return f"{place}: it promises the largest improvement at the target for its cost."


# The acquisition --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ImprovementPerCost:
    """The logarithm of the acquisition of [H06] at the best level of every x."""

    posterior: JointPosterior
    best: float
    per_cost: FloatArray  # (M,), cost_{M-1} / cost_m

    def value(self, U: FloatArray) -> FloatArray:  # (q, d) -> (q,)
        return np.asarray(np.max(self.by_level(U), axis=0))

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (q, d) -> (q,), (q, d)
        """Return finite differences: with few starts in few dimensions, they are fast enough.

        Choices have slope zero.
        """
        q, d = U.shape
        numeric = self.posterior.encoding.x_numeric
        along, k = np.eye(d)[numeric], len(numeric)
        up, down = (
            np.clip(U[:, None, :] + step * along, 0.0, 1.0) for step in (_DIFFERENCE_STEP, -_DIFFERENCE_STEP)
        )  # (q, k, d)
        values = self.value(np.vstack([U, up.reshape(-1, d), down.reshape(-1, d)]))
        rise = (values[q : q + q * k] - values[q + q * k :]).reshape(q, k)
        gradient = np.zeros_like(U)
        gradient[:, numeric] = rise / (up - down).sum(axis=2)
        return values[:q], gradient

    def level(self, u: FloatArray) -> int:  # (d,)
        """Return the level to query at x."""
        return int(np.argmax(self.by_level(u[None, :])))

    def by_level(self, U: FloatArray) -> FloatArray:  # (q, d) -> (M, q)
        """Return the sum of the four factors' logarithms at every level."""
        mu, variance, covariance = self.posterior.joint(U)
        improvement = acquisition.log_ei(mu, np.sqrt(variance[-1]), self.best)[0]
        correlation = np.maximum(covariance / np.sqrt(variance * variance[-1]), _LEAST_CORRELATION)
        total = improvement + np.log(correlation) + np.log(self.per_cost)[:, None]
        if self.posterior.eta2 > 0.0:  # 1 - 1 / sqrt(1 + r), with all its digits where r is small
            total += np.log(-np.expm1(-0.5 * np.log1p(variance / self.posterior.eta2)))
        return np.asarray(total)
