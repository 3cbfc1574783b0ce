"""Hyperparameters from data: the marginal likelihood with its gradient, multi-start L-BFGS-B.

This is the one place where y is standardized.

    theta             log kappa0, log of all length scales, log eta2, all for standardized y; then the parameters of the
                      factors and terms of the kernel, then the strengths of the components of the noise
    shapes (n, k)     variances of the components of the noise at strength one
    G      (n, n)     alpha alpha' - K^-1, twice the derivative of the likelihood by K
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.gp import linalg
from boca.gp.kernels import Kernel, KernelTerm, augmented, blocks, weighted_squares
from boca.gp.linalg import FloatArray
from boca.gp.model import GP, gls_mean
from boca.gp.parameters import Block, Prior

JITTER = 1e-8  # of kappa0, always added: far below the least noise, and mostly enough to factor K at the first attempt
RELATIVE_ROUNDING = 1e-13  # of the largest value: a smaller spread is rounding, not information
SMALLEST_SCALE = 4.0 * float(np.finfo(float).tiny)  # can be halved and divided by without underflow
_MOST_STEPS = 60  # of L-BFGS-B
_LEAST_RELATIVE_GAIN = 1e-8  # of a step of L-BFGS-B; the search ends below it
_LEAST_SLOPE_WITH_PRIORS = 0.03  # nats per unit of theta: within thousandths of a nat of a top that priors curve
_LEAST_SLOPE_TO_COMPARE = 0.1  # nats per unit of theta: within hundredths of a nat of the top, enough to compare models
_LEAST_SLOPE = 1e-4  # without priors, when the likelihood has ridges along which the search must continue


@dataclass(frozen=True)
class Standardization:
    """y = location + scale * standardized y."""

    location: float
    scale: float

    def apply(self, y: FloatArray) -> FloatArray:
        """Return (y - location) / scale, halved on the way so that 1e308 - (-1e308) does not overflow."""
        return (0.5 * y - 0.5 * self.location) / (0.5 * self.scale)


def standardize(y: FloatArray) -> Standardization:
    """Return median and standard deviation of y; the scale of a constant y is its magnitude."""
    size = float(np.max(np.abs(y)))
    if size == 0.0:
        return Standardization(0.0, 1.0)
    unit = 2.0 ** (math.frexp(size)[1] - 1)  # a power of two: dividing by it is exact and cannot overflow
    w = y / unit
    location, spread = float(np.median(w)), float(np.std(w))
    scale = spread if spread > RELATIVE_ROUNDING else 1.0
    return Standardization(location * unit, max(scale * unit, SMALLEST_SCALE))


@dataclass(frozen=True)
class Theta:
    """The parts of theta, as views of it: the one place that knows their order."""

    all: FloatArray
    kappa0: FloatArray  # (1,), a log
    scales: FloatArray  # (kernel.size,), logs of the length scales
    eta2: FloatArray  # (1,), a log
    strengths: FloatArray  # (kernel.strengths,)
    noise: FloatArray  # the rest: a strength for each component of the noise

    @classmethod
    def split(cls, kernel: Kernel, theta: FloatArray) -> Theta:
        ends = np.cumsum([1, kernel.size, 1, kernel.strengths])
        return cls(theta, *np.split(theta, ends))


def theta_blocks(kappa0: Block, scales: Sequence[Block], eta2: Block, kernel: Kernel) -> tuple[Block, ...]:
    """Return the blocks in the order of theta, without those of the noise."""
    return (kappa0, *scales, eta2, *kernel.blocks)


def unpack(theta: FloatArray, kernel: Kernel) -> tuple[float, FloatArray, float]:
    """Return kappa0, h and the variance on the diagonal, the constant jitter included."""
    parts = Theta.split(kernel, theta)
    kappa0 = math.exp(parts.kappa0[0])
    return kappa0, np.concatenate([np.exp(parts.scales), parts.strengths]), math.exp(parts.eta2[0]) + JITTER * kappa0


def log_likelihood(
    theta: FloatArray,
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    noise: FloatArray,
    *,
    mean: float | None,
    shapes: Sequence[FloatArray] = (),
) -> tuple[float, FloatArray]:
    """Return the log marginal likelihood of y and its gradient by theta, which ends with a strength for each shape.

    `mean=None` maximizes over a constant mean too; that does not change the gradient, because the mean is optimal.
    """
    n = len(y)
    kappa0, h, diagonal = unpack(theta, kernel)
    triangle = Triangle.build(kernel, kappa0, h, X)
    signal = kappa0 * kernel.diagonal(h, X)
    parts = Theta.split(kernel, theta)
    rising = sum((strength * shape for strength, shape in zip(parts.noise, shapes, strict=True)), start=np.zeros(n))
    triangle.K[np.diag_indices(n)] = signal + diagonal + noise + rising
    factor, _ = linalg.factor(triangle.K, level=float(np.mean(signal)))
    m = gls_mean(factor, y) if mean is None else mean
    alpha = factor.solve(y - m)
    value = -0.5 * (float((y - m) @ alpha) + factor.log_determinant() + n * math.log(2.0 * math.pi))

    K_inv = factor.inverse()
    on_diagonal = alpha * alpha - np.diagonal(K_inv)  # of G
    trace = float(on_diagonal.sum())
    by_kappa0, by_h = triangle.gradient(alpha, K_inv)
    of_diagonal = np.zeros_like(by_h)
    for term, P in triangle.terms:
        term.add_diagonal_gradient(of_diagonal, h, P, on_diagonal)
    if kernel.factors:
        weights = on_diagonal * replace(kernel, terms=()).diagonal(h, X)
        for factor_of_kernel in kernel.factors:
            factor_of_kernel.add_diagonal_gradient(of_diagonal, h, X, weights)
    by_h += 0.5 * kappa0 * of_diagonal
    gradient = Theta.split(kernel, np.zeros_like(theta))
    gradient.kappa0[:] = by_kappa0 + 0.5 * (float(on_diagonal @ signal) + JITTER * kappa0 * trace)
    gradient.scales[:] = by_h[: kernel.size]
    gradient.eta2[:] = 0.5 * math.exp(parts.eta2[0]) * trace
    gradient.strengths[:] = by_h[kernel.size :]
    gradient.noise[:] = [0.5 * float(on_diagonal @ shape) for shape in shapes]
    return value, gradient.all


@dataclass(frozen=True)
class Triangle:
    """The lower triangle of kappa0 C, and what its gradient needs of every block of rows.

    Matrices are symmetric, and only one triangle of each is touched.  In Fortran order, the lower triangle of K is rows
    i.. of its transpose from column i on.
    """

    kernel: Kernel
    kappa0: float
    h: FloatArray
    X: FloatArray
    K: FloatArray  # (n, n) in Fortran order; the caller fills its diagonal
    scaled: list[FloatArray]  # X in length scales, (n, columns) for each radial factor
    terms: list[tuple[KernelTerm, FloatArray]]  # with `prepared(X)`
    products: list[FloatArray]  # kappa0 C without its terms, by blocks of rows
    slopes: list[list[FloatArray | float]]  # d log(phi) / d r^2 of every radial factor, by blocks of rows

    @classmethod
    def build(cls, kernel: Kernel, kappa0: float, h: FloatArray, X: FloatArray) -> Triangle:
        n = len(X)
        K = np.empty((n, n), order="F")
        scaled = [r.scaled(h, X) for r in kernel.radial]
        pairs = [(a, augmented(a)) for a in scaled]
        terms = [(term, term.prepared(X)) for term in kernel.terms]
        products, slopes = [], []
        for i, j in blocks(n, n):
            g: list[FloatArray | float] = []
            C = kernel.product(h, [(a[i:j], b[i:]) for a, b in pairs], X[i:j], X[i:], slopes=g)
            C *= kappa0
            K.T[i:j, i:] = C
            for term, P in terms:
                K.T[i:j, i:] += term.value(h, P[i:j], P[i:], scale=kappa0)
            products.append(C)
            slopes.append(g)
        return cls(kernel, kappa0, h, X, K, scaled, terms, products, slopes)

    def gradient(self, alpha: FloatArray, K_inv: FloatArray) -> tuple[float, FloatArray]:  # -> by log kappa0, by h (H,)
        """Return the gradient of the entries off the diagonal by logs of kappa0 and length scales, and by strengths."""
        kernel, h, X = self.kernel, self.h, self.X
        by_kappa0, by_h = 0.0, np.zeros(kernel.size + kernel.strengths)
        for (i, j), C, slopes in zip(blocks(len(X), len(X)), self.products, self.slopes, strict=True):
            G = pair_weights(alpha, K_inv, i, j)
            for term, P in self.terms:
                by_kappa0 += term.add_gradient(by_h, h, P[i:j], P[i:], G, scale=self.kappa0)
            G *= C
            by_kappa0 += float(G.sum())
            for factor in kernel.factors:
                factor.add_gradient(by_h, h, X[i:j], X[i:], G)
            for radial, a, slope in zip(kernel.radial, self.scaled, slopes, strict=True):
                by_column = weighted_squares(G * slope, a[i:j], a[i:])
                np.add.at(by_h, list(radial.bandwidths), -2.0 * by_column)
        return by_kappa0, by_h


def pair_weights(alpha: FloatArray, K_inv: FloatArray, i: int, j: int) -> FloatArray:  # (n,), (n, n) -> (j - i, n - i)
    """Return rows i to j of G from column i on, zero on and below the diagonal: every pair counts once."""
    G = np.multiply(alpha[i:j, None], alpha[i:])
    G -= K_inv.T[i:j, i:]
    np.copyto(G[:, : j - i], 0.0, where=_up_to_diagonal(j - i))  # undefined there, and possibly not a number
    return G


@cache
def _up_to_diagonal(rows: int) -> NDArray[np.bool_]:  # (rows, rows)
    return np.tri(rows, dtype=bool)


Likelihood: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
"""A log likelihood of theta with its gradient."""


def log_posterior(likelihood: Likelihood, prior: Prior, theta: FloatArray) -> tuple[float, FloatArray]:
    """Return the log of likelihood times prior up to a constant, and its gradient by theta."""
    value, gradient = likelihood(theta)
    density, slope = prior.log_density(theta)
    return value + density, gradient + slope


def fit(
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    *,
    prior: Prior,
    starts: Sequence[FloatArray],
    noise: FloatArray | None = None,
    mean: float | None = None,
    roughly: bool = False,
) -> FloatArray:  # theta (H + 2,)
    """Return the theta with the largest posterior density found from the starts; y is standardized.

    `roughly` ends the search where a model can be compared with others, if priors curve the density.
    """
    known = np.zeros(len(y)) if noise is None else noise
    return fit_theta(
        lambda theta: log_likelihood(theta, kernel, X, y, known, mean=mean), prior=prior, starts=starts, roughly=roughly
    )


def fit_theta(
    likelihood: Likelihood, *, prior: Prior, starts: Sequence[FloatArray], roughly: bool = False
) -> FloatArray:
    """Return the theta with the largest posterior density found from the starts, for any likelihood with a gradient."""
    from scipy.optimize import minimize

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = log_posterior(likelihood, prior, theta)
        return -value, -gradient

    bounds = np.column_stack([prior.low, prior.high])
    curved = _LEAST_SLOPE_TO_COMPARE if roughly else _LEAST_SLOPE_WITH_PRIORS
    slope = curved if prior.is_curved else _LEAST_SLOPE
    options = {"maxiter": _MOST_STEPS, "ftol": _LEAST_RELATIVE_GAIN, "gtol": slope}
    results = [
        minimize(loss, prior.clip(start), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        for start in starts
    ]
    best = min(results, key=lambda r: float(r.fun))
    return prior.clip(np.asarray(best.x, dtype=float))


def build(
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    theta: FloatArray,
    *,
    noise: FloatArray | None = None,
    mean: float | None = None,
) -> GP:
    """Return the GP that theta describes, on standardized y."""
    kappa0, h, diagonal = unpack(theta, kernel)
    return GP.build(kernel, X, y, kappa0=kappa0, h=h, eta2=diagonal, m=mean, noise=noise)
