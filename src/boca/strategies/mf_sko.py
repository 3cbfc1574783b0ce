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

The kernel is a sum, cov(f_a(x), f_b(x')) = sum_t B_t[a, b] exp(-|x - x'|^2 / 2) with |.| in length scales h_t.  For the
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

from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput, one_of
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion, point_key, sign
from boca.gp import linalg
from boca.gp.fit import JITTER, Standardisation, fit_theta, pairs_of, standardise
from boca.gp.kernels import Radial, blocks, lifted, squared_distances, weighted_squares
from boca.gp.linalg import Factor
from boca.gp.parameters import Block, Prior
from boca.model.dataset import Data, Dataset
from boca.model.encoding import Encoding
from boca.model.fit_record import Fit, is_flat
from boca.model.hyperparameters import finite
from boca.model.posterior import Posterior
from boca.model.surrogate import Surrogate
from boca.search import acquisition
from boca.search.candidates import STAND_IN, best_candidate
from boca.search.initial_design import random_start, start_query
from boca.search.maximizer import MAXIMIZERS, Maximizer
from boca.strategies.base import beta, explain
from boca.strategies.ladder import check_fidelities, ladder, on_levels

_SMALLEST_DIFFERENCE = 1e-6  # scale of a difference of two levels: they may agree far better than f_0 varies
_STEP = 1e-6  # of the differences that stand in for a gradient
_KEYS = {"kappa0", "eta2", "mean", "h_x", "h_z"}  # of hyperparameters=, if they are those of one GP
_UNCORRELATED = 1e-12  # posterior correlations at and below zero: no reason to go there, but a finite logarithm


@dataclass(frozen=True)
class MFSKO:
    """Query the point and the fidelity with the largest discounted expected improvement per cost."""

    fidelities: Sequence[Mapping[str, Any]] | None = None
    """The list; the target joins it.  By default a third and two thirds of the way to the target."""
    maximizer: Maximizer = "direct"
    hyperparameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        one_of(self.maximizer, MAXIMIZERS, "maximizer")

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        check_fidelities(problem, self.fidelities)
        given = self.hyperparameters
        if isinstance(given, Mapping) and "terms" in given:
            levels = ladder(problem, self.fidelities, costs(problem, History()))
            _checked_terms(problem, given["terms"], len(levels))
            Surrogate.paper().check(Problem(problem.space), {key: given[key] for key in given if key != "terms"})
        elif isinstance(given, Mapping) and (unknown := sorted({*given} - _KEYS)):
            raise InvalidInput(
                f"hyperparameters[{unknown[0]!r}] is nothing that MFSKO knows; allowed are {sorted(_KEYS)} and 'terms'."
            )
        else:
            Surrogate.paper().check(problem, given)

    def posterior(self, problem: Problem, history: History) -> Posterior:
        levels = ladder(problem, self.fidelities, costs(problem, history))
        known, rng = on_levels(history, levels), np.random.default_rng(0)
        if not known.complete:  # all results are at fidelities that no level has
            return Surrogate.paper().model(problem, history, rng)
        return self._posterior(problem, known, levels, rng)

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

        posterior = self._posterior(problem, known, levels, rng)
        queried = problem.space.to_unit(list({point_key(t.x): t.x for t in known.finished}.values()))
        mu, sigma = posterior.moments(queried)
        best = float(mu[int(np.argmax(mu - sigma))])  # the mean at x**
        promised = PromisedImprovement(posterior, best, np.array([price.target / price.of(z) for z in levels]))
        anchors = queried[np.argsort(-mu, kind="stable")[:5]]
        ranked = MAXIMIZERS[self.maximizer](promised, problem.space, rng, anchors)
        u, z, stands_in = best_candidate(
            problem, history, ranked, lambda u: dict(levels[promised.level(u)]), others=levels
        )
        reason = STAND_IN if stands_in else _sentence(levels, z)
        return Suggestion(problem.space.from_unit(u), z, self._why(problem, history, posterior, u, z, levels, reason))

    def _posterior(
        self, problem: Problem, known: History, levels: list[Point], rng: np.random.Generator
    ) -> LevelsPosterior:
        domain = Problem(problem.space, direction=problem.direction)
        encoding, dataset = Encoding(domain, "se"), Dataset.of(domain, known)
        reached = np.array([levels.index(t.z) for t in [*known.finished, *known.running]])
        if self.hyperparameters is not None:
            return _known(problem, dataset, levels, reached, encoding, self.hyperparameters)
        last = next((t.why["fits"] for t in reversed(known.chosen) if "fits" in t.why), None)
        stored = None if last is None else LevelsFit.of_json(last)
        values = tuple(tuple(z.values()) for z in levels)
        if stored is not None and stored.levels != values:
            stored = None
        learned: LevelsFit | None = None
        if stored is None or Surrogate.paper().is_due(dataset, stored.fit):
            learned = stored = _fit(dataset, values, reached, encoding, stored, rng)
        data = dataset.encoded(encoding, stored.fit.standard)
        kappa, h, eta2 = unpack(np.array(stored.fit.theta), len(levels))
        mean = float(np.median(data.y))
        return LevelsPosterior.build(
            problem, encoding, stored.fit.standard, data, reached, autoregressive(kappa), h, eta2, mean, learned
        )

    def _why(
        self,
        problem: Problem,
        history: History,
        posterior: LevelsPosterior,
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


# The model --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LevelsFit:
    """What a refit of the joint model learned, as it is stored in `why["fits"]`."""

    fit: Fit
    levels: tuple[tuple[Any, ...], ...]
    """The values of every fidelity of the list."""

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> LevelsFit:
        return cls(Fit.of_json({**stored, "count": 0}), tuple(tuple(values) for values in stored["levels"]))

    def to_json(self) -> dict[str, Any]:
        described = self.fit.to_json()
        del described["count"]  # every refit makes the same starts
        return {**described, "levels": [list(values) for values in self.levels]}


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
    """Return the log marginal likelihood of the autoregressive model, and its gradient by theta.

    With the results in order of their levels, term t of the kernel is a block at the end of K.  As in `gp.fit`, one
    triangle of each matrix alone is touched, in blocks of rows.
    """
    kappa, h, eta2 = unpack(theta, M)
    n, d = len(data.y), h.shape[1]
    order = np.argsort(level, kind="stable")
    X, y = data.X[order], data.y[order]
    radial = encoding.kernel.radial[0]
    K = np.zeros((n, n), order="F")
    terms = []
    for t, first in enumerate(np.searchsorted(level[order], np.arange(M))):
        a = radial.scaled(h[t], X[first:])
        b = lifted(a)
        C = [kappa[t] * np.exp(-squared_distances(a[i:j], b[i:], 0.5)) for i, j in blocks(len(a), len(a))]
        for (i, j), rows in zip(blocks(len(a), len(a)), C, strict=True):
            K.T[first + i : first + j, first + i :] += rows
        terms.append((first, a, C))
    K[np.diag_indices(n)] += eta2 + (0.0 if data.noise is None else data.noise[order])
    factor, _ = linalg.factor(K)
    alpha = factor.solve(y)
    value = -0.5 * (float(y @ alpha) + factor.log_determinant() + n * math.log(2.0 * math.pi))
    K_inv = factor.inverse()
    on_diagonal = alpha * alpha - np.diagonal(K_inv)
    trace = float(on_diagonal.sum())
    gradient = np.zeros_like(theta)
    for t, (first, a, C) in enumerate(terms):
        off_diagonal = 0.0
        by_column = np.zeros(a.shape[1])
        for (i, j), rows in zip(blocks(len(a), len(a)), C, strict=True):
            G = pairs_of(alpha, K_inv, first + i, first + j)
            G *= rows
            off_diagonal += float(G.sum())
            by_column += weighted_squares(G, a[i:j], a[i:])
        gradient[t] = off_diagonal + 0.5 * kappa[t] * (float(on_diagonal[first:].sum()) + JITTER * trace)
        np.add.at(gradient, M + t * d + np.array(radial.bandwidths), by_column)
    gradient[-1] = 0.5 * math.exp(theta[-1]) * trace
    return value, gradient


def _fit(
    dataset: Dataset,
    levels: tuple[tuple[Any, ...], ...],
    level: NDArray[np.int_],
    encoding: Encoding,
    previous: LevelsFit | None,
    rng: np.random.Generator,
) -> LevelsFit:
    """Learn hyper-parameters; what is returned is stored with the trial and is all that later models need."""
    M, scores = len(levels), dataset.scores
    standard = standardise(scores)
    data = dataset.encoded(encoding, standard)
    prior = Prior.of(_blocks(encoding, M), informative=False)
    starts = [
        prior.mean if previous is None else np.array(previous.fit.theta),
        prior.draw(rng),
        prior.draw(rng),
    ]
    theta = prior.mean  # as in `Surrogate.fit`
    if not is_flat(scores):
        theta = fit_theta(
            lambda theta: log_likelihood(theta, encoding, data, level[: len(data.y)], M), prior=prior, starts=starts
        )
    fit = Fit(
        tuple(theta.tolist()),
        standard.location,
        standard.scale,
        results=len(scores),
        iteration=dataset.iterations,
        count=0,
        is_flat=is_flat(scores),
    )
    return LevelsFit(fit, levels)


def _blocks(encoding: Encoding, M: int) -> list[Block]:
    """Return the hyper-parameters of all levels in the order of theta: those of one GP, and of M - 1 differences."""
    of_one = {block.name: block for block in encoding.blocks}
    kappa0, h = of_one["kappa0"], of_one["h_x"]
    difference = replace(kappa0, name="differences", size=M - 1, mean=math.log(0.1), low=math.log(_SMALLEST_DIFFERENCE))
    return [kappa0, difference, replace(h, size=M * h.size), of_one["eta2"]]


def _known(
    problem: Problem,
    dataset: Dataset,
    levels: list[Point],
    level: NDArray[np.int_],
    encoding: Encoding,
    hyperparameters: Mapping[str, Any],
) -> LevelsPosterior:
    """Return the posterior under a GP that the user knows: its terms, or its covariance of the levels as one term."""
    d, eta2 = len(problem.space), float(hyperparameters["eta2"])
    if "terms" in hyperparameters:
        B, h = _checked_terms(problem, hyperparameters["terms"], len(levels))
    else:
        model = Surrogate.paper().known(Dataset.of(problem, History()), hyperparameters)
        Z = problem.fidelity.to_unit(levels)
        features = np.hstack([np.zeros((len(levels), model.encoding.x_width)), model.encoding.z_features(Z)])
        B = model.kappa0 * model.encoding.kernel.value(model.h, features, features)[None]
        h = model.h[None, :d]
    standard = Standardisation(0.0, 1.0)
    data = dataset.encoded(encoding, standard)
    mean = sign(problem.direction) * float(hyperparameters["mean"])
    return LevelsPosterior.build(problem, encoding, standard, data, level, B, h, eta2, mean, None)


def _checked_terms(problem: Problem, terms: Any, M: int) -> tuple[FloatArray, FloatArray]:  # B (T, M, M), h (T, d)
    """Return the terms of a mapping that a decision stored or a user wrote."""
    try:
        B = np.array([term["levels"] for term in terms], dtype=float)
        h = np.array([term["h_x"] for term in terms], dtype=float)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"hyperparameters['terms'] must be mappings with levels and h_x; got {terms!r}.") from error
    d = len(problem.space)
    fits = B.shape == (len(h), M, M) and h.shape == (len(B), d)
    if not (fits and np.isfinite(B).all() and np.isfinite(h).all() and (h > 0.0).all() and _are_covariances(B)):
        raise InvalidInput(
            f"hyperparameters['terms'] must each have a covariance of the {M} levels and {d} length scales; "
            f"got {terms!r}."
        )
    return B, h


def _are_covariances(B: FloatArray) -> bool:  # (T, M, M)
    C = B / max(float(np.max(np.abs(B))), np.finfo(float).tiny)
    return bool(np.allclose(C, C.transpose(0, 2, 1), atol=1e-8) and np.min(np.linalg.eigvalsh(C)) > -1e-6)


@dataclass(frozen=True)
class LevelsPosterior:
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
    factor: Factor  # of their covariance
    alpha: FloatArray  # (n,), zero for the pending points
    fit: LevelsFit | None
    """What a refit for this very posterior learned; None if an earlier one served."""

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
        fit: LevelsFit | None,
    ) -> LevelsPosterior:
        """Condition on the results, then on the mean at what is pending, which leaves all means as they are.

        Results are kept in order of their levels: a term that begins at a higher level is zero for those before.
        """
        n = len(data.y)
        order = np.concatenate([np.argsort(level[:n], kind="stable"), np.arange(n, len(level))])
        F, level = np.vstack([data.X, data.pending])[order], level[order]
        K = eta2 * np.eye(len(F))
        for term, bandwidths in zip(B, h, strict=True):
            scaled = encoding.kernel.radial[0].scaled(bandwidths, F)
            K += term[np.ix_(level, level)] * np.exp(-squared_distances(scaled, lifted(scaled), 0.5))
        if data.noise is not None:
            K[np.arange(n), np.arange(n)] += data.noise[order[:n]]
        factor, jitter = linalg.factor(K[:n, :n], level=float(np.max(np.diagonal(B.sum(axis=0)))))
        alpha = np.concatenate([factor.solve(data.y[order[:n]] - m), np.zeros(len(data.pending))])
        if len(data.pending):
            factor = factor.extended(K[:n, n:], K[n:, n:] + jitter * np.eye(len(data.pending)))
        return cls(problem, encoding, standard, F, level, B, h, eta2 + jitter, m, factor, alpha, fit)

    @cached_property
    def _terms(self) -> list[_Term]:
        return [_Term.build(self, B, h) for B, h in zip(self.B, self.h, strict=True)]

    @cached_property
    def _prior(self) -> tuple[FloatArray, FloatArray]:  # (M,), (M,)
        """Variance of every level, and covariance with the target, at one x before any result."""
        total = self.B.sum(axis=0)
        return np.diagonal(total), total[:, -1]

    def joint(self, U: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:  # (q, d) -> (q,), (M, q), (M, q)
        """Return the mean of the target, and of every level the variance and the covariance with the target."""
        own, shared = (prior[:, None] for prior in self._prior)
        mu = np.empty(len(U))
        explained, in_common = np.empty((2, len(own), len(U)))
        for i, j in blocks(len(U), len(self.F)):
            F = self.encoding.x_features(U[i:j])
            V = np.zeros((len(own), j - i, len(self.F)))
            for term in self._terms:
                V[term.levels, :, term.first :] += term.whitened(F)[term.kinds]
            mu[i:j] = self.m + V[-1] @ self._whitened_results
            explained[:, i:j] = np.einsum("mqn,mqn->mq", V, V)
            in_common[:, i:j] = np.einsum("mqn,qn->mq", V, V[-1])
        return mu, np.maximum(own - explained, 1e-14 * own), shared - in_common

    @cached_property
    def _whitened_results(self) -> FloatArray:  # (n,)
        return self.factor.rewhiten(self.alpha)

    def moments(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (q, d) -> mu (q,), sigma (q,)
        mu, variance, _ = self.joint(U)
        return mu, np.sqrt(variance[-1])

    def value_as_told(self, standardised: float) -> float:
        return finite(sign(self.problem.direction) * (self.standard.location + self.standard.scale * standardised))

    def deviation_as_told(self, standardised: float) -> float:
        return finite(self.standard.scale * standardised)

    def learned(self) -> dict[str, Any]:
        return {} if self.fit is None else {"fits": self.fit.to_json()}

    def hyperparameters(self) -> dict[str, Any]:
        """Return the GP of the target in the user's units, with the length scales of its first term, and all terms."""
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


@dataclass(frozen=True)
class _Term:
    """One term of the kernel between queries and results; levels that share it alike are one kind, computed once."""

    first: int  # the results before this one have no part in it
    levels: NDArray[np.int_]  # those that have
    kinds: NDArray[np.int_]  # of each of them
    weights: FloatArray  # (kinds, n - first), covariance with the level of every result
    radial: Radial
    h: FloatArray
    lifted: FloatArray  # (n - first, D + 2)
    factor: Factor  # of the same results

    @classmethod
    def build(cls, posterior: LevelsPosterior, B: FloatArray, h: FloatArray) -> _Term:
        levels = np.flatnonzero(B.any(axis=1))
        first = int(np.argmax(np.isin(posterior.level, levels)))
        rows, kinds = np.unique(B[levels], axis=0, return_inverse=True)
        radial = posterior.encoding.kernel.radial[0]
        return cls(
            first,
            levels,
            kinds.ravel(),
            rows[:, posterior.level[first:]],
            radial,
            h,
            lifted(radial.scaled(h, posterior.F[first:])),
            posterior.factor.block(first, len(posterior.F)),
        )

    def whitened(self, F: FloatArray) -> FloatArray:  # (q, D) -> (kinds, q, n - first)
        """Return L^-1 k of this term; the zeros before `first` stay zeros."""
        E = np.exp(-squared_distances(self.radial.scaled(self.h, F), self.lifted, 0.5))
        k = self.weights[:, None, :] * E
        return self.factor.whiten(k.reshape(-1, k.shape[-1]).T).T.reshape(k.shape)


# The acquisition --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PromisedImprovement:
    """The logarithm of the acquisition of [H06] at the best level of every x: what the maximiser maximises."""

    posterior: LevelsPosterior
    best: float
    per_cost: FloatArray  # (M,), cost_{M-1} / cost_m

    def value(self, U: FloatArray) -> FloatArray:  # (q, d) -> (q,)
        return np.asarray(np.max(self.by_level(U), axis=0))

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (q, d) -> (q,), (q, d)
        """Differentiate by differences: a few starts of few dimensions do not pay for the formula.

        An option has no slope, and no two values at it need be the same to the last bit.
        """
        q, d = U.shape
        numeric = self.posterior.encoding.x_numeric
        along, k = np.eye(d)[numeric], len(numeric)
        up, down = (np.clip(U[:, None, :] + step * along, 0.0, 1.0) for step in (_STEP, -_STEP))  # (q, k, d)
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
        correlation = np.maximum(covariance / np.sqrt(variance * variance[-1]), _UNCORRELATED)
        total = improvement + np.log(correlation) + np.log(self.per_cost)[:, None]
        if self.posterior.eta2 > 0.0:  # 1 - 1 / sqrt(1 + r), with all its digits where r is small
            total += np.log(-np.expm1(-0.5 * np.log1p(variance / self.posterior.eta2)))
        return np.asarray(total)
