"""The model of MF-SKO: a joint Gaussian process of all levels.

[H06] Huang, Allen, Notz, Miller: Sequential Kriging Optimization Using Multiple-Fidelity Evaluations, 2006.

The symbols are those of `boca.strategies.mf_sko`.  The kernel is the sum over t of B_t[a, b] exp(-|x - x'|^2 / 2),
the covariance of f_a(x) and f_b(x') with |.| in length scales h_t.  In the autoregressive model, B_t[a, b] is kappa_t
if both levels reach t, and else 0.  A known GP has one term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, IntArray, Point
from boca.domain.trial import History, sign
from boca.gp import linalg
from boca.gp.fit import JITTER, Standardization, fit_theta, pair_weights, standardize
from boca.gp.kernels import Radial, augmented, blocks, squared_distances, weighted_squares
from boca.gp.linalg import Factor
from boca.gp.parameters import Block, Prior
from boca.model.dataset import Dataset, TrainingData
from boca.model.encoding import Encoding
from boca.model.fit_record import Fit, is_flat
from boca.model.hyperparameters import finite
from boca.model.surrogate import Surrogate

_LEAST_DIFFERENCE_SCALE = 1e-6  # of the variance: levels may agree far better than f_0 varies
_LEAST_VARIANCE = 1e-14  # of the prior variance: positive after rounding
_SYMMETRY_TOLERANCE = 1e-8  # of the largest covariance that a user gives
_LEAST_EIGENVALUE = -1e-6  # likewise


@dataclass(frozen=True)
class JointFit:
    """What a refit of the joint model learned, as stored in `why["fits"]`."""

    fit: Fit
    levels: tuple[tuple[Any, ...], ...]
    """The values of every fidelity in the list."""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> JointFit:
        return cls(Fit.from_json({**stored, "count": 0}), tuple(tuple(values) for values in stored["levels"]))

    def to_json(self) -> dict[str, Any]:
        described = self.fit.to_json()
        del described["count"]  # every refit makes the same starts
        return {**described, "levels": [list(values) for values in self.levels]}


def autoregressive(kappa: FloatArray) -> FloatArray:  # (M,) -> (T, M, M)
    """Return the covariance of the levels if each is the one below plus an independent difference."""
    reaches = np.arange(len(kappa))[None, :] >= np.arange(len(kappa))[:, None]  # (T, M)
    return np.asarray(kappa[:, None, None] * (reaches[:, :, None] & reaches[:, None, :]))


def unpack(theta: FloatArray, M: int) -> tuple[FloatArray, FloatArray, float]:
    """Return kappa (M,), h (M, d) and the variance on the diagonal, the constant jitter included."""
    kappa, h = np.exp(theta[:M]), np.exp(theta[M:-1]).reshape(M, -1)
    return kappa, h, math.exp(theta[-1]) + JITTER * float(kappa.sum())


def log_likelihood(
    theta: FloatArray, encoding: Encoding, data: TrainingData, level: IntArray, M: int
) -> tuple[float, FloatArray]:
    """Return the log marginal likelihood of the autoregressive model, and its gradient by theta.

    With the results in order of their levels, term t of the kernel is a block at the end of K.  As in `gp.fit`, only
    one triangle of each matrix is touched, in blocks of rows.
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
        b = augmented(a)
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
            G = pair_weights(alpha, K_inv, first + i, first + j)
            G *= rows
            off_diagonal += float(G.sum())
            by_column += weighted_squares(G, a[i:j], a[i:])
        gradient[t] = off_diagonal + 0.5 * kappa[t] * (float(on_diagonal[first:].sum()) + JITTER * trace)
        np.add.at(gradient, M + t * d + np.array(radial.bandwidths), by_column)
    gradient[-1] = 0.5 * math.exp(theta[-1]) * trace
    return value, gradient


def fit_levels(
    dataset: Dataset,
    levels: tuple[tuple[Any, ...], ...],
    level: IntArray,
    encoding: Encoding,
    previous: JointFit | None,
    rng: np.random.Generator,
) -> JointFit:
    """Learn hyperparameters; later models need only what is returned, which is stored with the trial."""
    M, scores = len(levels), dataset.scores
    standard = standardize(scores)
    data = dataset.encoded(encoding, standard)
    prior = Prior.from_blocks(_blocks(encoding, M), informative=False)
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
    return JointFit(fit, levels)


def _blocks(encoding: Encoding, M: int) -> list[Block]:
    """Return the blocks of all levels in the order of theta: those of one GP, and of M - 1 differences."""
    of_one = {block.name: block for block in encoding.blocks}
    kappa0, h = of_one["kappa0"], of_one["h_x"]
    difference = replace(
        kappa0, name="differences", size=M - 1, mean=math.log(0.1), low=math.log(_LEAST_DIFFERENCE_SCALE)
    )
    return [kappa0, difference, replace(h, size=M * h.size), of_one["eta2"]]


def known_posterior(
    problem: Problem,
    dataset: Dataset,
    levels: list[Point],
    level: IntArray,
    encoding: Encoding,
    hyperparameters: Mapping[str, Any],
) -> JointPosterior:
    """Return the posterior with given hyperparameters: those of all terms, or those of one GP as a single term."""
    d, eta2 = len(problem.space), float(hyperparameters["eta2"])
    if "terms" in hyperparameters:
        B, h = checked_terms(problem, hyperparameters["terms"], len(levels))
    else:
        model = Surrogate.paper().known(Dataset.from_history(problem, History()), hyperparameters)
        Z = problem.fidelity.to_unit(levels)
        features = np.hstack([np.zeros((len(levels), model.encoding.x_width)), model.encoding.z_features(Z)])
        B = model.kappa0 * model.encoding.kernel.value(model.h, features, features)[None]
        h = model.h[None, :d]
    standard = Standardization(0.0, 1.0)
    data = dataset.encoded(encoding, standard)
    mean = sign(problem.direction) * float(hyperparameters["mean"])
    return JointPosterior.build(problem, encoding, standard, data, level, B, h, eta2, mean, None)


def checked_terms(problem: Problem, terms: Any, M: int) -> tuple[FloatArray, FloatArray]:  # B (T, M, M), h (T, d)
    """Return the terms of a mapping from a decision or from the user."""
    try:
        B = np.array([term["levels"] for term in terms], dtype=float)
        h = np.array([term["h_x"] for term in terms], dtype=float)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"hyperparameters['terms'] must be mappings with levels and h_x; got {terms!r}.") from error
    d = len(problem.space)
    fits = B.shape == (len(h), M, M) and h.shape == (len(B), d)
    if not (fits and np.isfinite(B).all() and np.isfinite(h).all() and (h > 0.0).all() and _are_covariances(B)):
        raise InvalidInput(
            f"hyperparameters['terms'] must each have a covariance of the {M} levels and {d} positive length scales; "
            f"got {terms!r}."
        )
    return B, h


def _are_covariances(B: FloatArray) -> bool:  # (T, M, M)
    C = B / max(float(np.max(np.abs(B))), np.finfo(float).tiny)
    is_symmetric = np.allclose(C, C.transpose(0, 2, 1), atol=_SYMMETRY_TOLERANCE)
    return is_symmetric and bool(np.min(np.linalg.eigvalsh(C)) > _LEAST_EIGENVALUE)


@dataclass(frozen=True)
class JointPosterior:
    """The joint posterior of all levels, in standardized units, larger being better."""

    problem: Problem
    encoding: Encoding
    standard: Standardization
    F: FloatArray  # (n, D), the pending points last
    level: IntArray  # (n,)
    B: FloatArray  # (T, M, M)
    h: FloatArray  # (T, d)
    eta2: float
    m: float
    factor: Factor  # of their covariance
    alpha: FloatArray  # (n,), zero for the pending points
    fit: JointFit | None
    """What a refit for this posterior learned; None if it uses an earlier refit."""

    @classmethod
    def build(
        cls,
        problem: Problem,
        encoding: Encoding,
        standard: Standardization,
        data: TrainingData,
        level: IntArray,
        B: FloatArray,
        h: FloatArray,
        eta2: float,
        m: float,
        fit: JointFit | None,
    ) -> JointPosterior:
        """Condition on the results, then on the mean at the pending points, which does not change any mean.

        Results are in order of their levels: a term that begins at a higher level is zero for those before.
        """
        n = len(data.y)
        order = np.concatenate([np.argsort(level[:n], kind="stable"), np.arange(n, len(level))])
        F, level = np.vstack([data.X, data.pending])[order], level[order]
        K = eta2 * np.eye(len(F))
        for term, bandwidths in zip(B, h, strict=True):
            scaled = encoding.kernel.radial[0].scaled(bandwidths, F)
            K += term[np.ix_(level, level)] * np.exp(-squared_distances(scaled, augmented(scaled), 0.5))
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
        """Variance of every level, and covariance with the target, at one x, before any result."""
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
        return mu, np.maximum(own - explained, _LEAST_VARIANCE * own), shared - in_common

    @cached_property
    def _whitened_results(self) -> FloatArray:  # (n,)
        return self.factor.multiply_transposed(self.alpha)

    def moments(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (q, d) -> mu (q,), sigma (q,)
        mu, variance, _ = self.joint(U)
        return mu, np.sqrt(variance[-1])

    def value_as_told(self, standardized: float) -> float:
        return finite(sign(self.problem.direction) * (self.standard.location + self.standard.scale * standardized))

    def interval_as_told(self, mean: float, deviation: float) -> float:
        return self.deviation_as_told(deviation)

    def deviation_as_told(self, standardized: float) -> float:
        return finite(self.standard.scale * standardized)

    def described(self) -> dict[str, Any]:
        return {}

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
    """One term of the kernel between queries and results; it is computed once for levels with equal covariances."""

    first: int  # the term is zero for the results before this one
    levels: IntArray  # for which the term is not zero
    kinds: IntArray  # of each of these: an index of weights
    weights: FloatArray  # (kinds, n - first), covariance with the level of every result
    radial: Radial
    h: FloatArray
    augmented: FloatArray  # (n - first, D + 2)
    factor: Factor  # of the same results

    @classmethod
    def build(cls, posterior: JointPosterior, B: FloatArray, h: FloatArray) -> _Term:
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
            augmented(radial.scaled(h, posterior.F[first:])),
            posterior.factor.block(first, len(posterior.F)),
        )

    def whitened(self, F: FloatArray) -> FloatArray:  # (q, D) -> (kinds, q, n - first)
        """Return L^-1 k of this term; the zeros before `first` stay zeros."""
        E = np.exp(-squared_distances(self.radial.scaled(self.h, F), self.augmented, 0.5))
        k = self.weights[:, None, :] * E
        return self.factor.whiten(k.reshape(-1, k.shape[-1]).T).T.reshape(k.shape)
