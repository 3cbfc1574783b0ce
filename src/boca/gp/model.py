"""The Gaussian process: a posterior from data, and the same posterior along some of its inputs.

    symbol   shape    meaning
    X        (n, D)   inputs of the observations
    y        (n,)     observations
    A        (m, D)   query points
    kappa0            scale of the kernel
    h        (H,)     bandwidths
    eta2              variance on the diagonal, jitter included
    noise    (n,)     further known variance of single observations
    m                 constant prior mean
    L        (n, n)   Cholesky factor of kappa0 C + diag(eta2 + noise)
    alpha    (n,)     K^-1 (y - m)

Nothing mutates: conditioning returns another GP.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from boca.gp import linalg
from boca.gp.kernels import FloatArray, Kernel, Radial, blocks, covariance


def gls_mean(L: FloatArray, y: FloatArray) -> float:
    """Return the generalised least-squares estimate of a constant mean."""
    whitened = linalg.whiten(L, np.column_stack([np.ones_like(y), y]))
    return float(whitened[:, 0] @ whitened[:, 1] / (whitened[:, 0] @ whitened[:, 0]))


@dataclass(frozen=True)
class GP:
    """A posterior with fixed hyper-parameters; `GP.build` is the way to make one."""

    kernel: Kernel
    kappa0: float
    h: FloatArray
    eta2: float
    m: float
    X: FloatArray
    L: FloatArray
    alpha: FloatArray

    @classmethod
    def build(
        cls,
        kernel: Kernel,
        X: FloatArray,
        y: FloatArray,
        *,
        kappa0: float,
        h: FloatArray,
        eta2: float,
        m: float | None = None,
        noise: FloatArray | None = None,
    ) -> GP:
        """Condition a prior on data; `m=None` estimates the mean by generalised least squares."""
        diagonal = np.full(len(y), eta2) if noise is None else eta2 + noise
        L, jitter = linalg.factor(covariance(kernel, kappa0, h, X, diagonal))
        mean = gls_mean(L, y) if m is None else m
        return cls(kernel, kappa0, h, eta2 + jitter, mean, X, L, linalg.solve(L, y - mean))

    def imagine(self, A: FloatArray) -> GP:  # (m, D)
        """Return the GP after observing its own mean at A: the variance there goes, the mean stays everywhere."""
        if not len(A):
            return self
        B = self.kappa0 * self.kernel.value(self.h, self.X, A)
        C = self.kappa0 * self.kernel.value(self.h, A, A)
        C[np.diag_indices(len(A))] = self.kappa0 * self.kernel.diagonal(A) + self.eta2
        return replace(
            self,
            X=np.vstack([self.X, A]),
            L=linalg.extend(self.L, B, C),
            alpha=np.concatenate([self.alpha, np.zeros(len(A))]),
        )

    def posterior(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, D) -> mean (m,), variance (m,)
        """Return mean and variance of the latent function, without noise.  [K17, eq. 1]"""
        mean, V = self._whitened(A)
        return mean, _positive(self.kappa0 * self.kernel.diagonal(A) - np.einsum("ij,ij->j", V, V), self.kappa0)

    def covariance_with(self, A: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return posterior variances at A (m, D) and covariances with the one point b (D,), both (m,)."""
        _, V = self._whitened(np.vstack([A, b]))
        prior = self.kappa0 * self.kernel.value(self.h, A, b[None, :])[:, 0]
        variance = self.kappa0 * self.kernel.diagonal(A) - np.einsum("ij,ij->j", V[:, :-1], V[:, :-1])
        return _positive(variance, self.kappa0), prior - V[:, -1] @ V[:, :-1]

    def _whitened(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:
        k = self.kernel.value(self.h, self.X, A)  # (n, m)
        k *= self.kappa0
        return self.m + self.alpha @ k, linalg.whiten(self.L, k)

    def log_likelihood(self, y: FloatArray) -> float:
        """Return the log marginal likelihood of the data that the GP was built on."""
        fit = float((y - self.m) @ self.alpha)
        return -0.5 * (fit + linalg.log_determinant(self.L) + len(y) * math.log(2.0 * math.pi))


def _positive(variance: FloatArray, kappa0: float) -> FloatArray:
    """Clip what rounding made negative to a floor far below any real variance."""
    return np.maximum(variance, 1e-14 * kappa0)


@dataclass(frozen=True)
class Section:
    """The posterior as a function of the first `free` columns, the rest held at `held`.

    What the held columns contribute is computed once, so the many evaluations of a maximiser touch only the free
    ones.  Radial factors must lie wholly on one side, and custom ones on the held side.
    """

    gp: GP
    free: int
    held: FloatArray  # (D - free,)

    @cached_property
    def _free_kernel(self) -> Kernel:
        return Kernel(tuple(r for r in self.gp.kernel.radial if max(r.columns) < self.free))

    @cached_property
    def _weights(self) -> FloatArray:  # (n,)
        """kappa0 times the correlation of every observation with the held values."""
        held_kernel = Kernel(
            tuple(r for r in self.gp.kernel.radial if min(r.columns) >= self.free), self.gp.kernel.custom
        )
        anchor = np.concatenate([np.zeros(self.free), self.held])[None, :]
        return self.gp.kappa0 * held_kernel.value(self.gp.h, self.gp.X, anchor)[:, 0]

    @cached_property
    def prior_variance(self) -> float:
        anchor = np.concatenate([np.zeros(self.free), self.held])[None, :]
        return self.gp.kappa0 * float(self.gp.kernel.diagonal(anchor)[0])

    @cached_property
    def _scaled(self) -> list[FloatArray]:
        return [r.scaled(self.gp.h, self.gp.X) for r in self._free_kernel.radial]

    @cached_property
    def _weighted_alpha(self) -> FloatArray:
        return self.gp.alpha * self._weights

    @cached_property
    def _inverse(self) -> FloatArray:
        """diag(w) K^-1 diag(w), so that correlations alone enter the quadratic form."""
        return linalg.invert(self.gp.L) * np.outer(self._weights, self._weights)

    def _correlations(
        self, F: FloatArray
    ) -> tuple[FloatArray, list[FloatArray | float], list[FloatArray]]:  # (m, free) -> (m, n)
        queries = [r.scaled(self.gp.h, F) for r in self._free_kernel.radial]
        C, slopes = self._free_kernel.value_and_slopes(list(zip(queries, self._scaled, strict=True)), F, self.gp.X)
        return C, slopes, queries

    def means(self, F: FloatArray) -> FloatArray:  # (m, free) -> (m,)
        """Return the posterior mean alone, which needs no triangular solve."""
        mean = np.empty(len(F))
        for i, j in blocks(len(F)):
            mean[i:j] = self.gp.m + self._correlations(F[i:j])[0] @ self._weighted_alpha
        return mean

    def moments(self, F: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, free) -> mean (m,), variance (m,)
        mean, explained = np.empty(len(F)), np.empty(len(F))
        for i, j in blocks(len(F)):
            C, _, _ = self._correlations(F[i:j])
            mean[i:j] = self.gp.m + C @ self._weighted_alpha
            C *= self._weights
            V = linalg.whiten(self.gp.L, C.T)
            explained[i:j] = np.einsum("ij,ij->j", V, V)
        return mean, _positive(self.prior_variance - explained, self.gp.kappa0)

    @cached_property
    def _queries(self) -> list[tuple[Radial, slice | list[int], FloatArray, FloatArray]]:
        """What a single evaluation needs of every free factor: itself, its columns, 1 / h, and the scaled data."""
        factors = zip(self._free_kernel.radial, self._scaled, strict=True)
        return [(radial, radial.where, 1.0 / radial.scale(self.gp.h), X) for radial, X in factors]

    def moments_at(self, f: FloatArray) -> tuple[float, float]:  # (free,) -> mean, variance
        """Return both moments at one point: what thousands of single evaluations need, several times faster."""
        exponent: FloatArray | float = 0.0
        k = self._weights
        for radial, where, per_bandwidth, X in self._queries:
            difference = X - f[where] * per_bandwidth
            e, p, _ = radial.parts(np.einsum("ij,ij->i", difference, difference))
            exponent = exponent + e
            k = k if p is None else k * p
        k = k * np.exp(exponent)
        v = linalg.whiten_vector(self.gp.L, k)
        variance = self.prior_variance - float(v @ v)
        return self.gp.m + float(k @ self.gp.alpha), max(variance, 1e-14 * self.gp.kappa0)

    def moments_and_gradients(
        self, F: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:  # mean, variance (m,), d mean, d variance (m, free)
        """Return both moments with their derivatives by the free columns.

        It goes through the explicit inverse: one product instead of two triangular solves an evaluation.  That
        loses digits where K is nearly singular, which a search for a starting point can afford and a decision
        cannot: decide with `moments`.
        """
        C, slopes, queries = self._correlations(F)
        Q = C @ self._inverse  # (m, n)
        mean = self.gp.m + C @ self._weighted_alpha
        variance = _positive(self.prior_variance - np.einsum("ij,ij->i", Q, C), self.gp.kappa0)
        by_mean_and_variance = np.concatenate([np.broadcast_to(self._weighted_alpha, Q.shape), -2.0 * Q])
        by_mean_and_variance *= np.tile(C, (2, 1))
        gradients = np.zeros((2, *F.shape))
        for radial, g, A, X in zip(self._free_kernel.radial, slopes, queries, self._scaled, strict=True):
            columns = list(radial.columns)
            scale = radial.scale(self.gp.h)
            slope = g if isinstance(g, float) else np.tile(g, (2, 1))
            G = (by_mean_and_variance * slope).reshape(2, len(F), -1)  # by s, the squared distance
            gradients[:, :, columns] = 2.0 / scale * (A * G.sum(axis=2)[:, :, None] - G @ X)
        return mean, variance, gradients[0], gradients[1]
