"""Hyper-parameters from data: priors, the marginal likelihood with its gradient, multi-start L-BFGS-B.

This is the one place where y is standardised.

    theta             log kappa0, log of all bandwidths, log eta2, all for standardised y; strengths of jump and trend;
                      the rise of the noise where it has one
    away   (n,)       how far a fidelity is from the target: the noise there is eta2 + rise * away
    G      (n, n)     alpha alpha' - K^-1, twice the derivative of the likelihood by K
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.gp import linalg
from boca.gp.kernels import FloatArray, Kernel, blocks, lifted, weighted_squares
from boca.gp.model import GP, gls_mean

JITTER = 1e-8  # of kappa0, always added: it costs nothing beside a noise of 1e-6 and saves the ladder


ROUNDING = 1e-13  # of the largest value: a spread below this is none
_SMALLEST = 4.0 * float(np.finfo(float).tiny)  # a scale that can be halved and divided by


@dataclass(frozen=True)
class Standardisation:
    """y = location + scale * standardised y."""

    location: float
    scale: float

    def apply(self, y: FloatArray) -> FloatArray:
        """Return (y - location) / scale, halved on the way so that 1e308 - (-1e308) does not overflow."""
        return (0.5 * y - 0.5 * self.location) / (0.5 * self.scale)


def standardise(y: FloatArray) -> Standardisation:
    """Return median and standard deviation; a constant y keeps its unit."""
    size = float(np.max(np.abs(y)))
    if size == 0.0:
        return Standardisation(0.0, 1.0)
    unit = 2.0 ** (math.frexp(size)[1] - 1)  # a power of two: dividing by it is exact and cannot overflow
    w = y / unit
    location, spread = float(np.median(w)), float(np.std(w))
    scale = spread if spread > ROUNDING else 1.0
    return Standardisation(location * unit, max(scale * unit, _SMALLEST))


@dataclass(frozen=True)
class Prior:
    """Independent priors on theta, and its box: normal ones, and exponential ones where there is a rate.

    An infinite deviation and no rate is no prior at all.  An exponential one holds a strength at zero exactly, unless
    the likelihood rises there faster than its rate.
    """

    mean: FloatArray
    deviation: FloatArray
    low: FloatArray
    high: FloatArray
    rate: FloatArray | float = 0.0

    @property
    def is_curved(self) -> bool:
        """Whether there is a prior on every entry."""
        return bool(np.all(np.isfinite(self.deviation) | (np.asarray(self.rate) > 0.0)))

    def log_density(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the log density up to a constant, with its gradient."""
        r = (theta - self.mean) / self.deviation
        return -0.5 * float(r @ r) - float(np.sum(self.rate * theta)), -r / self.deviation - self.rate

    def with_rise(self, *, highest: float, rate: float) -> Prior:
        """Return the prior with the rise of the noise at its end."""
        return Prior(
            np.append(self.mean, 0.0),
            np.append(self.deviation, math.inf),
            np.append(self.low, 0.0),
            np.append(self.high, highest),
            np.append(np.broadcast_to(self.rate, self.mean.shape), rate),
        )

    def clip(self, theta: FloatArray) -> FloatArray:
        return np.clip(theta, self.low, self.high)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw a start for the search: from the prior, or around its mean where it is flat."""
        width = np.where(np.isfinite(self.deviation), self.deviation, 1.0)
        return self.clip(self.mean + width * rng.standard_normal(len(self.mean)))


def unpack(theta: FloatArray, kernel: Kernel) -> tuple[float, FloatArray, float]:
    """Return kappa0, h and the variance on the diagonal, the constant jitter included."""
    kappa0, end = math.exp(theta[0]), 1 + kernel.size
    h = np.concatenate([np.exp(theta[1:end]), theta[end + 1 : end + 1 + kernel.strengths]])
    return kappa0, h, math.exp(theta[end]) + JITTER * kappa0


def log_likelihood(
    theta: FloatArray,
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    noise: FloatArray,
    *,
    mean: float | None,
    away: FloatArray | None = None,
) -> tuple[float, FloatArray]:
    """Return the log marginal likelihood of y and its gradient by theta.

    `mean=None` maximises over a constant mean on the way; the gradient is the same, because the mean is optimal.
    """
    n = len(y)
    kappa0, h, diagonal = unpack(theta, kernel)
    triangle = Triangle.build(kernel, kappa0, h, X)
    signal = kappa0 * kernel.diagonal(h, X)
    triangle.K[np.diag_indices(n)] = signal + diagonal + noise + (0.0 if away is None else theta[-1] * away)
    factor, _ = linalg.factor(triangle.K, level=float(np.mean(signal)))
    m = gls_mean(factor, y) if mean is None else mean
    alpha = factor.solve(y - m)
    value = -0.5 * (float((y - m) @ alpha) + factor.log_determinant() + n * math.log(2.0 * math.pi))

    K_inv = factor.inverse()
    on_diagonal = alpha * alpha - np.diagonal(K_inv)  # of G
    trace = float(on_diagonal.sum())
    by_kappa0, by_h = triangle.gradient(alpha, K_inv)
    if kernel.trend is not None and triangle.phi is not None:
        by_h[kernel.trend.strength] += 0.5 * kappa0 * float(on_diagonal @ np.square(triangle.phi).sum(axis=1))
    gradient = np.zeros_like(theta)
    noisy = kernel.size + 1  # where log eta2 is: after the bandwidths, before the strengths
    gradient[0] = by_kappa0 + 0.5 * (float(on_diagonal @ signal) + JITTER * kappa0 * trace)
    gradient[1:noisy] = by_h[: kernel.size]
    gradient[noisy] = 0.5 * math.exp(theta[noisy]) * trace
    gradient[noisy + 1 : noisy + 1 + kernel.strengths] = by_h[kernel.size :]
    if away is not None:
        gradient[-1] = 0.5 * float(on_diagonal @ away)
    return value, gradient


@dataclass(frozen=True)
class Triangle:
    """The lower triangle of kappa0 C, and what its gradient needs of every block of its rows.

    Matrices are symmetric, and one triangle of each is all that is ever touched: with Fortran order, the lower triangle
    of K is rows i.. of its transpose from column i on.
    """

    kernel: Kernel
    kappa0: float
    h: FloatArray
    X: FloatArray
    K: FloatArray  # (n, n) in Fortran order; its diagonal is left to the caller
    scaled: list[FloatArray]  # X in bandwidths, (n, columns) a radial factor
    phi: FloatArray | None  # features of the trend
    products: list[FloatArray]  # kappa0 C without its trend, a block of rows each
    slopes: list[list[FloatArray | float]]  # d log(phi) / d r^2 of every radial factor, likewise

    @classmethod
    def build(cls, kernel: Kernel, kappa0: float, h: FloatArray, X: FloatArray) -> Triangle:
        n = len(X)
        K = np.empty((n, n), order="F")
        scaled = [r.scaled(h, X) for r in kernel.radial]
        pairs = [(a, lifted(a)) for a in scaled]
        phi = None if kernel.trend is None else kernel.trend.features(X)
        products, slopes = [], []
        for i, j in blocks(n, n):
            g: list[FloatArray | float] = []
            C = kernel.product(h, [(a[i:j], b[i:]) for a, b in pairs], X[i:j], X[i:], slopes=g)
            C *= kappa0
            K.T[i:j, i:] = C
            if kernel.trend is not None and phi is not None:
                K.T[i:j, i:] += (kappa0 * h[kernel.trend.strength] * phi[i:j]) @ phi[i:].T
            products.append(C)
            slopes.append(g)
        return cls(kernel, kappa0, h, X, K, scaled, phi, products, slopes)

    def gradient(self, alpha: FloatArray, K_inv: FloatArray) -> tuple[float, FloatArray]:  # -> by log kappa0, by h (H,)
        """Return what the entries off the diagonal contribute: by logs of kappa0 and bandwidths, and by strengths."""
        kernel, X, phi = self.kernel, self.X, self.phi
        by_kappa0, by_h = 0.0, np.zeros(kernel.size + kernel.strengths)
        for (i, j), C, slopes in zip(blocks(len(X), len(X)), self.products, self.slopes, strict=True):
            G = pairs_of(alpha, K_inv, i, j)
            if kernel.trend is not None and phi is not None:
                by_strength = self.kappa0 * float(np.einsum("ij,ij->", phi[i:j], G @ phi[i:]))
                by_h[kernel.trend.strength] += by_strength
                by_kappa0 += self.h[kernel.trend.strength] * by_strength
            G *= C
            by_kappa0 += float(G.sum())
            if kernel.jump is not None:
                by_h[kernel.jump.strength] -= float(G[kernel.jump.apart(X[i:j], X[i:])].sum())
            for radial, a, slope in zip(kernel.radial, self.scaled, slopes, strict=True):
                by_column = weighted_squares(G * slope, a[i:j], a[i:])
                np.add.at(by_h, list(radial.bandwidths), -2.0 * by_column)
        return by_kappa0, by_h


def pairs_of(alpha: FloatArray, K_inv: FloatArray, i: int, j: int) -> FloatArray:  # (n,), (n, n) -> (j - i, n - i)
    """Return rows i to j of G from column i on, zero on the diagonal and below: every pair is there once."""
    G = np.multiply(alpha[i:j, None], alpha[i:])
    G -= K_inv.T[i:j, i:]
    np.copyto(G[:, : j - i], 0.0, where=_up_to_diagonal(j - i))  # what is there means nothing, and may be no number
    return G


@cache
def _up_to_diagonal(rows: int) -> NDArray[np.bool_]:  # (rows, rows)
    return np.tri(rows, dtype=bool)


Likelihood: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]
"""A log likelihood of theta with its gradient."""


def log_posterior(likelihood: Likelihood, prior: Prior, theta: FloatArray) -> tuple[float, FloatArray]:
    """Return the log of likelihood times prior, up to a constant, and its gradient by theta."""
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
) -> FloatArray:  # theta (H + 2,)
    """Return the theta of largest posterior density found from the given starts; y is standardised."""
    known = np.zeros(len(y)) if noise is None else noise
    return fit_theta(lambda theta: log_likelihood(theta, kernel, X, y, known, mean=mean), prior=prior, starts=starts)


def fit_theta(likelihood: Likelihood, *, prior: Prior, starts: Sequence[FloatArray]) -> FloatArray:
    """Return the theta of largest posterior density for any log likelihood that comes with its gradient.

    Where priors bend the posterior along every entry, a slope of 0.03 nats an e-fold is within thousandths of a nat of
    the top, and the search stops.  A likelihood alone has ridges, along which it goes on.
    """
    from scipy.optimize import minimize

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = log_posterior(likelihood, prior, theta)
        return -value, -gradient

    bounds = np.column_stack([prior.low, prior.high])
    options = {"maxiter": 60, "ftol": 1e-8, "gtol": 0.03 if prior.is_curved else 1e-4}
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
    """Return the GP that theta describes, on standardised y."""
    kappa0, h, diagonal = unpack(theta, kernel)
    return GP.build(kernel, X, y, kappa0=kappa0, h=h, eta2=diagonal, m=mean, noise=noise)
