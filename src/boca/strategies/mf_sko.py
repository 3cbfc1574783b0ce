"""MF-SKO, the paper's fourth baseline: sequential kriging over a finite list of fidelities.

[H06] Huang, Allen, Notz, Miller: Sequential Kriging Optimization Using Multiple-Fidelity Evaluations, 2006.

    symbol      shape         meaning
    m                         level: 0 is the cheapest fidelity of the list, M - 1 the target
    f_m(x)                    g at level m; f_0 and the differences f_m - f_{m-1} are independent GPs
    kappa, h    (M,), (M, d)  scales and bandwidths of f_0 and of the differences
    B           (T, M, M)     covariance of the levels in each of T terms of the kernel
    F, level    (n, D), (n,)  features of the queried x, and the level of each
    k           (M, n, q)     covariance of f_m at q points with the results
    eta2                      variance of the noise
    x**                       effective best solution: the queried x of largest mean minus deviation at the target

The kernel is a sum, cov(f_a(x), f_b(x')) = sum_t B_t[a, b] exp(-|x - x'|^2 / 2) with |.| in bandwidths h_t.  For the
autoregressive model B_t[a, b] = kappa_t where both levels reach t, and 0 elsewhere.  A GP that is known has one term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boca import acquisition
from boca.cost import costs
from boca.encoding import Encoding
from boca.errors import one_of
from boca.gp import linalg
from boca.gp.fit import JITTER, Prior, Standardisation, fit_theta, standardise
from boca.gp.kernels import squared_distances
from boca.maximizer import MAXIMIZERS, Maximizer
from boca.problem import Budget, Problem
from boca.space import FloatArray, Point
from boca.start import random_start, start_query
from boca.strategies.base import OFF_THE_LIST, beta, check_fidelities, explain, first_free, ladder, on_levels
from boca.surrogate import Data, Surrogate, collect, finite
from boca.trial import History, Suggestion, point_key, sign

_SMALLEST_DIFFERENCE = 1e-6  # scale of a difference of two levels: they may agree far better than f_0 varies
_STEP = 1e-6  # of the differences that stand in for a gradient
_UNCORRELATED = 1e-12  # posterior correlations at and below zero: no reason to go there, but a finite logarithm


@dataclass(frozen=True)
class MFSKO:
    """Query the point and the fidelity with the largest expected improvement, discounted, for the money."""

    fidelities: Sequence[Mapping[str, Any]] | None = None
    """The list; the target joins it.  By default a third and two thirds of the way to the target."""
    maximizer: Maximizer = "direct"
    hyperparameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        one_of(self.maximizer, MAXIMIZERS, "maximizer")

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        Surrogate.paper().check(problem, self.hyperparameters)
        check_fidelities(problem, self.fidelities)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        price = costs(problem, history)
        levels = ladder(problem, self.fidelities, price)
        starting = random_start(problem, history, budget, rng, price, design="uniform", fidelities=levels)
        if starting is not None:
            return starting
        known = on_levels(history, levels)
        if not known.complete:  # the results so far are at fidelities that no level has
            z = levels[int(rng.integers(len(levels)))]
            return start_query(problem, history, rng, price, z, design="uniform")

        belief = self._belief(problem, known, levels, rng)
        queried = problem.space.to_unit(list({point_key(t.x): t.x for t in known.finished}.values()))
        mu, sigma = belief.moments(queried)
        best = float(mu[int(np.argmax(mu - sigma))])  # the mean at x**
        promise = Promise(belief, best, np.array([price.target / price.of(z) for z in levels]))
        anchors = queried[np.argsort(-mu, kind="stable")[:5]]
        ranked = MAXIMIZERS[self.maximizer](promise, problem.space, rng, anchors)
        u, z = first_free(problem, history, ranked, lambda u: dict(levels[promise.level(u)]), others=levels)
        return Suggestion(problem.space.from_unit(u), z, self._why(problem, history, belief, u, z, levels))

    def _belief(self, problem: Problem, known: History, levels: list[Point], rng: np.random.Generator) -> Belief:
        encoding = Encoding(Problem(problem.space, direction=problem.direction), "se")
        reached = np.array([levels.index(t.z) for t in [*known.finished, *known.running]])
        if self.hyperparameters is not None:
            return _known(problem, known, levels, reached, encoding, self.hyperparameters)
        stored = next((t.why["fits"] for t in reversed(known.chosen) if "fits" in t.why), None)
        is_stale = stored is None or stored["levels"] != [list(z.values()) for z in levels]
        record: dict[str, Any] | None = None
        if stored is None or is_stale or Surrogate.paper().is_due(problem, known, stored):
            previous = None if stored is None or is_stale else np.array(stored["theta"])
            record = stored = _fit(known, levels, reached, encoding, previous, rng)
        standard = Standardisation(stored["location"], stored["scale"])
        data = collect(encoding, known, standard)
        kappa, h, eta2 = unpack(np.array(stored["theta"]), len(levels))
        return Belief.build(
            problem, encoding, standard, data, reached, autoregressive(kappa), h, eta2, float(np.median(data.y)), record
        )

    def _why(
        self, problem: Problem, history: History, belief: Belief, u: FloatArray, z: Point, levels: list[Point]
    ) -> dict[str, Any]:
        weight = beta(len(history.chosen) + 1, len(problem.space), float(np.sum(1.0 / belief.h[0])))
        m = levels.index(z) if z in levels else None
        if m is None:
            reason = OFF_THE_LIST
        elif len(levels) == 1:
            reason = "The largest expected improvement."
        elif m == len(levels) - 1:
            reason = "The target fidelity: it promises the largest improvement for its cost."
        else:
            reason = (
                f"Fidelity {m + 1} of {len(levels)}: it promises the largest improvement at the target for its cost."
            )
        level = {} if m is None else {"level": m + 1}
        why = explain(belief, history, u, phase="model", reason=reason, beta=weight, acquisition="log_ei", **level)
        if belief.record is not None:
            why |= {"refit": True, "fits": belief.record}
        return why


# The model --------------------------------------------------------------------------------------------------------


def autoregressive(kappa: FloatArray) -> FloatArray:  # (M,) -> (T, M, M)
    """Return the covariance of the levels when each is the one below plus an independent difference."""
    reaches = np.arange(len(kappa))[None, :] >= np.arange(len(kappa))[:, None]  # (T, M)
    return np.asarray(kappa[:, None, None] * (reaches[:, :, None] & reaches[:, None, :]))


def unpack(theta: FloatArray, M: int) -> tuple[FloatArray, FloatArray, float]:
    """Return kappa (M,), h (M, d) and the variance on the diagonal, the constant jitter included."""
    kappa, h = np.exp(theta[:M]), np.exp(theta[M:-1]).reshape(M, -1)
    return kappa, h, math.exp(theta[-1]) + JITTER * float(kappa.sum())


def log_likelihood(
    theta: FloatArray, encoding: Encoding, data: Data, level: NDArray[np.int_], M: int
) -> tuple[float, FloatArray]:
    """Return the log marginal likelihood of the autoregressive model, and its gradient by theta."""
    kappa, h, eta2 = unpack(theta, M)
    n, d = len(data.y), h.shape[1]
    radial = encoding.kernel.radial[0]
    K = np.zeros((n, n))
    parts = []
    for t in range(M):
        rows = np.flatnonzero(level >= t)
        a = radial.scaled(h[t], data.X[rows])
        C = kappa[t] * np.exp(-0.5 * squared_distances(a, a))
        K[np.ix_(rows, rows)] += C
        parts.append((rows, a, C))
    K[np.diag_indices(n)] += eta2 + (0.0 if data.noise is None else data.noise)
    L, _ = linalg.factor(K)
    alpha = linalg.solve(L, data.y)
    value = -0.5 * (float(data.y @ alpha) + linalg.log_determinant(L) + n * math.log(2.0 * math.pi))
    W = np.outer(alpha, alpha) - linalg.invert(L)
    trace = float(np.trace(W))
    gradient = np.zeros_like(theta)
    for t, (rows, a, C) in enumerate(parts):
        A = W[np.ix_(rows, rows)] * C
        gradient[t] = 0.5 * (float(A.sum()) + JITTER * kappa[t] * trace)
        # half of sum_rc A_rc (a_r - a_c)^2 of every column, from sums and one product
        by_column = A.sum(axis=1) @ (a * a) - np.einsum("ij,ij->j", a, A @ a)
        np.add.at(gradient, M + t * d + np.array(radial.bandwidths), by_column)
    gradient[-1] = 0.5 * math.exp(theta[-1]) * trace
    return value, gradient


def _fit(
    known: History,
    levels: list[Point],
    level: NDArray[np.int_],
    encoding: Encoding,
    previous: FloatArray | None,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Learn hyper-parameters; the record is stored with the trial and is all that later models need."""
    M = len(levels)
    standard = standardise(known.scores(encoding.problem.direction))
    data = collect(encoding, known, standard)
    prior = _prior(encoding.prior(informative=False), M)
    first = prior.mean if previous is None else previous
    theta = fit_theta(
        lambda theta: log_likelihood(theta, encoding, data, level[: len(data.y)], M),
        prior=prior,
        starts=[first, prior.draw(rng), prior.draw(rng)],
    )
    return {
        "theta": theta.tolist(),
        "levels": [list(z.values()) for z in levels],
        "location": standard.location,
        "scale": standard.scale,
        "results": len(known.finished),
        "iteration": len(known.chosen),
    }


def _prior(one: Prior, M: int) -> Prior:
    """Return the box and the starting point of all levels from those of one GP; it has no opinion inside the box."""

    def spread(values: FloatArray, of_differences: float) -> FloatArray:
        kappa, h, eta2 = values[0], values[1:-1], values[-1]
        return np.array([kappa, *[of_differences] * (M - 1), *np.tile(h, M), eta2])

    smallest = math.log(_SMALLEST_DIFFERENCE)
    return Prior(
        spread(one.mean, math.log(0.1)),
        spread(one.deviation, math.inf),
        spread(one.low, smallest),
        spread(one.high, float(one.high[0])),
    )


def _known(
    problem: Problem,
    known: History,
    levels: list[Point],
    level: NDArray[np.int_],
    encoding: Encoding,
    hyperparameters: Mapping[str, Any],
) -> Belief:
    """Return the belief under a GP that the user knows: its own covariance of the levels, in one term."""
    model = Surrogate.paper().known(problem, known, hyperparameters)
    d = len(problem.space)
    Z = problem.fidelity.to_unit(levels)
    features = np.hstack([np.zeros((len(levels), model.encoding.x_width)), model.encoding.z_features(Z)])
    B = model.kappa0 * model.encoding.kernel.value(model.h, features, features)
    standard = Standardisation(0.0, 1.0)
    data = collect(encoding, known, standard)
    mean = sign(problem.direction) * float(hyperparameters["mean"])
    return Belief.build(problem, encoding, standard, data, level, B[None], model.h[None, :d], model.eta2, mean, None)


@dataclass(frozen=True)
class Belief:
    """The joint posterior of all levels, in standardised units and so that more is better."""

    problem: Problem
    encoding: Encoding
    standard: Standardisation
    F: FloatArray  # (n, D), the pending points last
    level: NDArray[np.int_]  # (n,)
    B: FloatArray  # (T, M, M)
    h: FloatArray  # (T, d)
    eta2: float
    m: float
    L: FloatArray  # (n, n)
    alpha: FloatArray  # (n,), zero for the pending points
    record: dict[str, Any] | None
    """What a refit for this very belief learned."""
    fit: None = None

    @classmethod
    def build(
        cls,
        problem: Problem,
        encoding: Encoding,
        standard: Standardisation,
        data: Data,
        level: NDArray[np.int_],
        B: FloatArray,
        h: FloatArray,
        eta2: float,
        m: float,
        record: dict[str, Any] | None,
    ) -> Belief:
        """Condition on the results, then on the mean at what is pending, which leaves all means as they are."""
        F = np.vstack([data.X, data.pending])
        belief = cls(problem, encoding, standard, F, level, B, h, eta2, m, np.empty((0, 0)), np.empty(0), record)
        K = belief._cross(F)[level, np.arange(len(F)), :]  # row i: f of level i at x_i with all
        K[np.diag_indices(len(K))] += eta2
        n = len(data.y)
        if data.noise is not None:
            K[np.arange(n), np.arange(n)] += data.noise
        L, jitter = linalg.factor(K[:n, :n])
        alpha = np.concatenate([linalg.solve(L, data.y - m), np.zeros(len(data.pending))])
        if len(data.pending):
            L = linalg.extend(L, K[:n, n:], K[n:, n:] + jitter * np.eye(len(data.pending)))
        return replace(belief, eta2=eta2 + jitter, L=L, alpha=alpha)

    @cached_property
    def _weights(self) -> FloatArray:  # (T, M, n)
        """How much of each term every level shares with every result."""
        return self.B[:, :, self.level]

    @cached_property
    def _scaled(self) -> list[FloatArray]:
        return [self.encoding.kernel.radial[0].scaled(h, self.F) for h in self.h]

    @cached_property
    def _stacked(self) -> tuple[FloatArray, FloatArray]:  # (T, n, D), (T, D)
        """The same, and what scales a single query."""
        per_bandwidth = [1.0 / self.encoding.kernel.radial[0].scale(h) for h in self.h]
        return np.array(self._scaled), np.array(per_bandwidth)

    def _cross(self, F: FloatArray) -> FloatArray:  # (q, D) -> (M, q, n)
        k = np.zeros((self.B.shape[1], len(F), len(self.F)))
        for weights, h, scaled in zip(self._weights, self.h, self._scaled, strict=True):
            E = np.exp(-0.5 * squared_distances(self.encoding.kernel.radial[0].scaled(h, F), scaled))
            k += weights[:, None, :] * E
        return k

    @cached_property
    def _prior(self) -> tuple[FloatArray, FloatArray]:  # (M,), (M,)
        """Variance of every level, and covariance with the target, at one x before any result."""
        total = self.B.sum(axis=0)
        return np.diagonal(total), total[:, -1]

    def joint(self, U: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:  # (q, d) -> (q,), (M, q), (M, q)
        """Return the mean of the target, and of every level the variance and the covariance with the target."""
        k = self._cross(self.encoding.x_features(U))
        M, q, n = k.shape
        V = linalg.whiten(self.L, k.reshape(M * q, n).T).reshape(n, M, q)
        own, shared = (prior[:, None] for prior in self._prior)
        variance = own - np.einsum("nmq,nmq->mq", V, V)
        covariance = shared - np.einsum("nmq,nq->mq", V, V[:, -1])
        return self.m + k[-1] @ self.alpha, np.maximum(variance, 1e-14 * own), covariance

    def joint_at(self, u: FloatArray) -> tuple[float, list[float], list[float]]:  # (d,) -> scalar, (M,), (M,)
        """Return the same at one point, several times faster."""
        X, per_bandwidth = self._stacked
        f = self.encoding.x_features(u[None, :])[0] if self.problem.space.has_choices else u
        difference = X - (f * per_bandwidth)[:, None, :]
        E = np.exp(-0.5 * np.einsum("tnj,tnj->tn", difference, difference))
        k = np.einsum("tmn,tn->mn", self._weights, E)
        V = linalg.whiten(self.L, k.T)  # (n, M)
        own, shared = self._prior
        variance = np.maximum(own - np.einsum("nm,nm->m", V, V), 1e-14 * own)
        return self.m + float(k[-1] @ self.alpha), variance.tolist(), (shared - V[:, -1] @ V).tolist()

    def moments(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (q, d) -> mu (q,), sigma (q,)
        mu, variance, _ = self.joint(U)
        return mu, np.sqrt(variance[-1])

    def value_as_told(self, standardised: float) -> float:
        return finite(sign(self.problem.direction) * (self.standard.location + self.standard.scale * standardised))

    def deviation_as_told(self, standardised: float) -> float:
        return finite(self.standard.scale * standardised)

    def hyperparameters(self) -> dict[str, Any]:
        """Return the GP of the target in the user's units, with the bandwidths of its first term, and all terms."""
        scale = self.standard.scale
        terms = [
            {"levels": [[finite(b * scale * scale) for b in row] for row in B.tolist()], "h_x": h.tolist()}
            for B, h in zip(self.B, self.h, strict=True)
        ]
        return {
            "kappa0": finite(float(self._prior[0][-1]) * scale * scale),
            "eta2": finite(self.eta2 * scale * scale),
            "mean": self.value_as_told(self.m),
            "h_x": self.h[0].tolist(),
            "terms": terms,
        }


# The acquisition --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Promise:
    """The logarithm of the acquisition of [H06] at the best level of every x: what the maximiser maximises."""

    belief: Belief
    best: float
    per_cost: FloatArray  # (M,), cost_{M-1} / cost_m

    def value(self, U: FloatArray) -> FloatArray:  # (q, d) -> (q,)
        return np.asarray(np.max(self._by_level(*self.belief.joint(U)), axis=0))

    def value_at(self, u: FloatArray) -> float:  # (d,)
        return max(self._by_level_at(u))

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (q, d) -> (q,), (q, d)
        """Differentiate by differences: a few starts of few dimensions do not pay for the formula."""
        q, d = U.shape
        up, down = (np.clip(U[:, None, :] + step * np.eye(d), 0.0, 1.0) for step in (_STEP, -_STEP))  # (q, d, d)
        values = self.value(np.vstack([U, up.reshape(-1, d), down.reshape(-1, d)]))
        rise = (values[q : q + q * d] - values[q + q * d :]).reshape(q, d)
        return values[:q], rise / np.einsum("qjj->qj", up - down)

    def level(self, u: FloatArray) -> int:  # (d,)
        """Return the level to query at x."""
        return int(np.argmax(self._by_level_at(u)))

    def _by_level(self, mu: FloatArray, variance: FloatArray, covariance: FloatArray) -> FloatArray:  # (M, q)
        """Return the sum of the four factors' logarithms."""
        improvement = acquisition.log_ei(mu, np.sqrt(variance[-1]), self.best)[0]
        correlation = np.maximum(covariance / np.sqrt(variance * variance[-1]), _UNCORRELATED)
        total = improvement + np.log(correlation) + np.array(self._log_per_cost)[:, None]
        if self.belief.eta2 > 0.0:  # 1 - 1 / sqrt(1 + r), with all its digits where r is small
            total += np.log(-np.expm1(-0.5 * np.log1p(variance / self.belief.eta2)))
        return np.asarray(total)

    def _by_level_at(self, u: FloatArray) -> list[float]:  # (d,) -> (M,)
        """Return the same at one point, in plain numbers."""
        mu, variances, covariances = self.belief.joint_at(u)
        target = variances[-1]
        improvement = acquisition.log_ei_at(mu, math.sqrt(target), self.best)
        eta2 = self.belief.eta2
        total = []
        for variance, covariance, factor in zip(variances, covariances, self._log_per_cost, strict=True):
            correlation = max(covariance / math.sqrt(variance * target), _UNCORRELATED)
            discount = math.log(-math.expm1(-0.5 * math.log1p(variance / eta2))) if eta2 > 0.0 else 0.0
            total.append(improvement + math.log(correlation) + factor + discount)
        return total

    @cached_property
    def _log_per_cost(self) -> list[float]:
        return [math.log(factor) for factor in self.per_cost]
