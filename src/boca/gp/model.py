"""The Gaussian process: a posterior from data, and the same posterior as a function of some columns.

    symbol   shape    meaning
    X        (n, D)   inputs of the observations
    y        (n,)     observations
    A        (m, D)   query points
    kappa0            scale of the kernel
    h        (H,)     length scales, then the parameters of the factors and terms of the kernel
    eta2              variance on the diagonal, jitter included
    noise    (n,)     further variance of single observations
    m                 constant prior mean
    K        (n, n)   kappa0 C + diag(eta2 + noise), held as its Cholesky factor
    alpha    (n,)     K^-1 (y - m); (n, k) given k draws of the latent function at some points, with equal variances

Nothing mutates: conditioning returns another GP.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike

from boca.gp import linalg
from boca.gp.kernels import Kernel, augmented, blocks, covariance
from boca.gp.linalg import Factor, FloatArray, IntArray

Chain: TypeAlias = Callable[[FloatArray | float, FloatArray], FloatArray]
"""From derivatives by mean (m,) or (m, k) and by variance (m,) to derivatives by the free columns (m, free)."""

_SINGLE_EPSILON = float(np.finfo(np.float32).eps)
_SINGLE_ERROR_OF_MEAN = 2.0 * _SINGLE_EPSILON  # of the sum of |alpha k|: an upper bound of the errors seen ...
_SINGLE_ERROR_OF_VARIANCE = 4.0 * _SINGLE_EPSILON  # ... and of the prior variance times the spread of the factor
_LARGEST_SQUARABLE = 1e15  # largest magnitude whose squared sum still fits in single precision
_LEAST_VARIANCE = 1e-14  # of kappa0: far below any real variance, but positive after rounding
_NOISE_OF_DRAWS = 1e-4  # of eta2, at points with drawn values: K has a factor even if two nearly coincide


def gls_mean(factor: Factor, y: FloatArray) -> float:
    """Return the generalized least-squares estimate of a constant mean."""
    whitened = factor.whiten(np.column_stack([np.ones_like(y), y]))
    return float(whitened[:, 0] @ whitened[:, 1] / (whitened[:, 0] @ whitened[:, 0]))


@dataclass(frozen=True)
class GP:
    """A posterior with fixed hyperparameters; `GP.build` is the way to make one."""

    kernel: Kernel
    kappa0: float
    h: FloatArray
    eta2: float
    m: float
    X: FloatArray
    factor: Factor
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
        """Condition a prior on data; `m=None` estimates the mean by generalized least squares."""
        diagonal = np.full(len(y), eta2) if noise is None else eta2 + noise
        level = kappa0 * float(
            np.mean(kernel.diagonal(h, X))
        )  # without the noise, which is huge where an observation has no weight
        factor, jitter = linalg.factor(covariance(kernel, kappa0, h, X, diagonal), level=level)
        mean = gls_mean(factor, y) if m is None else m
        return cls(kernel, kappa0, h, eta2 + jitter, mean, X, factor, factor.solve(y - mean))

    def fantasize(self, A: FloatArray, noise: FloatArray | float = 0.0) -> GP:  # A (m, D), noise (m,)
        """Return the GP after observing its own mean at A: the variance shrinks, the mean stays the same everywhere.

        `noise` is added to eta2 at A.
        """
        if not len(A):
            return self
        alpha = np.concatenate([self.alpha, np.zeros(len(A))])
        return replace(self, X=np.vstack([self.X, A]), factor=self._extended(A, self.eta2 + noise), alpha=alpha)

    def given_draws(self, A: FloatArray, normal: FloatArray) -> tuple[GP, FloatArray]:  # A (a, D), normal (a, k)
        """Return the GP given draws of the latent function at A, and the draws (a, k), one per column of `normal`.

        The draws differ in the values at A, not in the variances.  Whitened, they are `normal` itself.
        """
        n = len(self.X)
        factor = self._extended(A, _NOISE_OF_DRAWS * self.eta2)
        whitened = np.repeat(self.factor.multiply_transposed(self.alpha)[:, None], normal.shape[1], axis=1)
        values = self.posterior(A)[0][:, None] + np.tril(factor.L[n:, n:]) @ normal
        alpha = factor.solve_transposed(np.vstack([whitened, normal]))
        return replace(self, X=np.vstack([self.X, A]), factor=factor, alpha=alpha), values

    def _extended(self, A: FloatArray, noise: FloatArray | float) -> Factor:  # A (m, D), noise (m,)
        """Return the factor with observations at A, with this noise, after the others."""
        B = self.kappa0 * self.kernel.value(self.h, self.X, A)
        C = self.kappa0 * self.kernel.value(self.h, A, A)
        C[np.diag_indices(len(A))] = self.kappa0 * self.kernel.diagonal(self.h, A) + noise
        return self.factor.extended(B, C)

    def posterior(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, D) -> mean (m,), variance (m,)
        """Return mean and variance of the latent function, without noise.  [K17, eq. 1]"""
        mean, V = self._whitened(A)
        return mean, _clipped(self.kappa0 * self.kernel.diagonal(self.h, A) - np.einsum("ij,ij->j", V, V), self.kappa0)

    def covariance_with(
        self, A: FloatArray, b: FloatArray
    ) -> tuple[FloatArray, FloatArray, float]:  # (m, D), (D,) -> (m,), (m,), a number
        """Return posterior variances at A, covariances with the point b, and the variance at b."""
        _, V = self._whitened(np.vstack([A, b]))
        every = self.kappa0 * self.kernel.diagonal(self.h, np.vstack([A, b])) - np.einsum("ij,ij->j", V, V)
        variance = _clipped(every, self.kappa0)
        prior = self.kappa0 * self.kernel.value(self.h, A, b[None, :])[:, 0]
        return variance[:-1], prior - V[:, -1] @ V[:, :-1], float(variance[-1])

    def paired(
        self, A: FloatArray, B: FloatArray, of: IntArray, prior: FloatArray
    ) -> tuple[FloatArray, FloatArray]:  # (m, D), (k, D), (m,), (m,) -> (m,), (m,)
        """Return posterior variances at A, and the covariance of every row i of A with row `of[i]` of B.

        `prior` has the prior covariances of these pairs, kappa0 included.
        """
        V, W = self._whitened(A)[1], self._whitened(B)[1]
        variance = self.kappa0 * self.kernel.diagonal(self.h, A) - np.einsum("ij,ij->j", V, V)
        return _clipped(variance, self.kappa0), prior - np.einsum("ij,ij->j", V, W[:, of])

    def _whitened(self, A: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, D) -> mean (m,), V (n, m)
        k = self.kernel.value(self.h, self.X, A)  # (n, m)
        k *= self.kappa0
        return self.m + self.alpha @ k, self.factor.whiten(k)

    def leave_one_out(self) -> FloatArray:  # (n,)
        """Return the log density of every observation given all others, in closed form."""
        precision = np.diagonal(self.factor.inverse())
        return np.asarray(0.5 * (np.log(precision / (2.0 * math.pi)) - self.alpha**2 / precision))

    def log_likelihood(self, y: FloatArray) -> float:
        """Return the log marginal likelihood of the data that the GP was built on."""
        fit = float((y - self.m) @ self.alpha)
        return -0.5 * (fit + self.factor.log_determinant() + len(y) * math.log(2.0 * math.pi))


def _clipped(variance: FloatArray, kappa0: float) -> FloatArray:
    """Replace variances that rounding made negative."""
    return np.maximum(variance, _LEAST_VARIANCE * kappa0)


@dataclass(frozen=True)
class PosteriorSlice:
    """The posterior as a function of the first `free` columns, the rest held at `held`.

    The contribution of the held columns is computed once, so that many evaluations touch only the free ones.  A radial
    factor must act on free or on held columns only, other factors on held ones, and terms must be zero at `held`.
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
        held_radial = tuple(r for r in self.gp.kernel.radial if min(r.columns) >= self.free)
        held_kernel = replace(self.gp.kernel, radial=held_radial, terms=())
        anchor = np.concatenate([np.zeros(self.free), self.held])[None, :]
        return self.gp.kappa0 * held_kernel.value(self.gp.h, self.gp.X, anchor)[:, 0]

    @cached_property
    def prior_variance(self) -> float:
        anchor = np.concatenate([np.zeros(self.free), self.held])[None, :]
        return self.gp.kappa0 * float(self.gp.kernel.diagonal(self.gp.h, anchor)[0])

    @cached_property
    def _augmented(self) -> list[FloatArray]:  # (n, columns + 2) for each radial factor
        return [augmented(r.scaled(self.gp.h, self.gp.X)) for r in self._free_kernel.radial]

    @cached_property
    def _scales(self) -> list[FloatArray]:  # (columns,) for each radial factor
        return [r.scale(self.gp.h) for r in self._free_kernel.radial]

    def _scaled(self, F: FloatArray) -> list[FloatArray]:  # (m, free) -> (m, columns) for each radial factor
        return [F[:, r.where] / scale for r, scale in zip(self._free_kernel.radial, self._scales, strict=True)]

    @cached_property
    def _weighted_alpha(self) -> FloatArray:  # (n,) or (n, k)
        return (self.gp.alpha.T * self._weights).T

    def _correlations(self, F: FloatArray, *, single: bool = False) -> FloatArray:  # (m, free) -> (m, n)
        pairs = list(zip(self._scaled(F), self._augmented, strict=True))
        return self._free_kernel.product(self.gp.h, pairs, F, self.gp.X, single=single)

    def means(self, F: FloatArray) -> FloatArray:  # (m, free) -> (m,) or (m, k)
        """Return the posterior mean alone, which needs no triangular solve."""
        mean = np.empty((len(F), *self.gp.alpha.shape[1:]))
        for i, j in blocks(len(F), len(self.gp.X)):
            mean[i:j] = self.gp.m + self._correlations(F[i:j]) @ self._weighted_alpha
        return mean

    def moments(self, F: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, free) -> (m,) or (m, k), (m,)
        """Return mean and variance."""
        mean, explained = self._mean_and_explained(F, self.gp.factor)
        return mean, _clipped(self.prior_variance - explained, self.gp.kappa0)

    def upper_bounds(
        self, F: FloatArray, leading: int
    ) -> tuple[FloatArray, FloatArray]:  # (m, free) -> (m,) or (m, k), (m,)
        """Return upper bounds of mean and variance for a fraction of their cost.

        The variance is that given only the `leading` observations, which is never below that given all; its factor is a
        block of the whole one.  If K is far enough from singular, both are computed in single precision, and an upper
        bound of the rounding errors is added.
        """
        factor = self.gp.factor.block(0, min(leading, len(self.gp.X)))
        is_single = self._fits_single and factor.W is not None
        mean, explained = self._mean_and_explained(F, factor, single=is_single)
        variance = self.prior_variance - explained
        if is_single:
            mean += _SINGLE_ERROR_OF_MEAN * np.abs(self._weighted_alpha).sum(axis=0)
            variance += _SINGLE_ERROR_OF_VARIANCE * self.prior_variance * factor.spread
        return mean, _clipped(variance, self.gp.kappa0)

    @cached_property
    def _fits_single(self) -> bool:
        """Whether single precision can hold all numbers and their squares."""
        largest = float(np.max(np.abs(self._weighted_alpha), initial=0.0))
        return 1.0 / _LARGEST_SQUARABLE < self.prior_variance < _LARGEST_SQUARABLE and largest < _LARGEST_SQUARABLE

    def _mean_and_explained(
        self, F: FloatArray, factor: Factor, *, single: bool = False
    ) -> tuple[FloatArray, FloatArray]:  # (m, free) -> mean (m,) or (m, k), (m,)
        """Return the mean, and by how much the observations that the factor holds, the first, reduce the variance."""
        k = len(factor.L)
        number: DTypeLike = np.float32 if single else np.float64
        alpha, weights = (a.astype(number, copy=False) for a in (self._weighted_alpha, self._weights[:k]))
        mean, explained = np.empty((len(F), *self.gp.alpha.shape[1:])), np.empty(len(F))
        for i, j in blocks(len(F), len(self.gp.X)):
            C = self._correlations(F[i:j], single=single)
            mean[i:j] = self.gp.m + C @ alpha
            V = factor.whiten((C[:, :k] * weights).T)
            explained[i:j] = np.einsum("ij,ij->j", V, V)
        return mean, explained

    def moments_and_chain(self, F: FloatArray) -> tuple[FloatArray, FloatArray, Chain]:  # (m, free)
        """Return both moments, and the chain rule from derivatives by them to derivatives by the free columns."""
        slopes: list[FloatArray | float] = []
        pairs = list(zip(self._scaled(F), self._augmented, strict=True))
        C = self._free_kernel.product(self.gp.h, pairs, F, self.gp.X, slopes=slopes)
        mean = self.gp.m + C @ self._weighted_alpha
        V = self.gp.factor.whiten((C * self._weights).T)
        variance = _clipped(self.prior_variance - np.einsum("ij,ij->j", V, V), self.gp.kappa0)

        def chain(by_mean: FloatArray | float, by_variance: FloatArray) -> FloatArray:  # -> (m, free)
            alpha = self._weighted_alpha.reshape(len(C.T), -1)
            by_correlation = np.broadcast_to(by_mean, mean.shape).reshape(len(C), -1) @ alpha.T
            by_correlation += self.gp.factor.solve_transposed(V).T * (-2.0 * by_variance[:, None] * self._weights)
            by_correlation *= C
            gradient = np.zeros_like(F)
            for radial, scale, g, (A, X) in zip(self._free_kernel.radial, self._scales, slopes, pairs, strict=True):
                G = (by_correlation * g) @ X  # by s, the squared distance, times x and times 1
                k = len(scale)
                gradient[:, radial.where] = (2.0 / scale) * (A * G[:, k : k + 1] - G[:, :k])
            return gradient

        return mean, variance, chain
