"""What is believed after a history: a Gaussian process over (x, z), with the way back to the user's units.

symbol   meaning
d, p     parameters of the domain and of the fidelity space
s        shrink: bandwidths h_x are divided by it
mu, sigma  posterior mean and deviation of f = g(z*, .), in standardised units and so that more is better
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import History, sign
from boca.gp import fit as gp_fit
from boca.gp.fitc import IntArray, compressed, spread
from boca.gp.model import GP, Section
from boca.model.encoding import Encoding

EXACT = 1200  # results up to which the posterior is exact ...
ACTIVE = 800  # ... and through how many it is approximated beyond
UNBOUNDED = 64  # results up to which every candidate is valued
LEADING = 128  # results that bound what a candidate may promise, where there are twice as many and more
PROMISING = 256  # results among whose x the best is looked for, where there are more
_GOLDEN = 0.6180339887498949
_NO_REACH = 1e-9  # bandwidth of a fidelity that is switched off: with it, results elsewhere say nothing of the target
_LARGEST_NOISE = 1e12  # standardised: such a result says nothing, and infinity would break the factor


@dataclass(frozen=True)
class Data:
    """What a GP is conditioned on, in standardised units."""

    X: FloatArray  # (n, D)
    y: FloatArray  # (n,)
    noise: FloatArray | None  # (n,)
    pending: FloatArray  # (m, D)

    def taken(self, rows: IntArray) -> Data:
        """Return these results, in this order."""
        noise = None if self.noise is None else self.noise[rows]
        return replace(self, X=self.X[rows], y=self.y[rows], noise=noise)

    def with_rise(self, encoding: Encoding, rise: float) -> Data:
        """Return the results with noise that grows away from the target."""
        if rise == 0.0:
            return self
        return replace(self, noise=(0.0 if self.noise is None else self.noise) + rise * encoding.away(self.X))

    def at_target(self, encoding: Encoding) -> Data:
        """Return the results at the target, and what is out there."""
        kept = self.taken(np.flatnonzero(encoding.is_target(self.X)))
        return replace(kept, pending=self.pending[encoding.is_target(self.pending)])

    def thinned(self, count: int) -> Data:
        """Return at most so many results, evenly from the first told to the last."""
        n = len(self.y)
        if n <= count:
            return self
        spread = np.argsort(np.arange(n) * _GOLDEN % 1.0, kind="stable")  # in step with no cycle of results
        return self.taken(np.sort(spread[:count]))


def collect(encoding: Encoding, history: History, standard: gp_fit.Standardisation) -> Data:
    """Return all results, in the order in which they were told, and what is out."""
    return Data(
        encoding.features([t.x for t in history.finished], [t.z for t in history.finished]),
        standard.apply(history.scores(encoding.problem.direction)),
        _noise(history, standard.scale),
        encoding.pending(history),
    )


def _noise(history: History, scale: float) -> FloatArray | None:  # (n,)
    """Return the variances that the user told with single results, standardised; None where there are none."""
    if all(t.noise is None for t in history.finished):
        return None
    return np.minimum([(t.noise or 0.0) / scale / scale for t in history.finished], _LARGEST_NOISE)


@dataclass(frozen=True)
class Model:
    """A GP over (x, z) with the way back to the user's units."""

    problem: Problem
    encoding: Encoding
    standard: gp_fit.Standardisation
    data: Data
    kappa0: float
    h: FloatArray
    eta2: float
    mean: float | None
    fit: dict[str, Any] | None = None
    """What a refit for this very model learned; None when an earlier one served."""
    rise: float = 0.0
    """By how much the variance of the noise grows from the target to the far end of all fidelities."""
    guard: float | None = None
    """Nats by which the target is predicted better without the other fidelities, where they are switched off for it."""
    shrink: float = 1.0

    def shrunk(self, s: float) -> Model:
        """Return the model with the domain's bandwidths divided by s: the same data, less confidence between them."""
        if s == 1.0:
            return self
        h = self.h.copy()
        h[: len(self.problem.space)] /= s
        return replace(self, h=h, shrink=self.shrink * s)

    def at_target(self) -> Model:
        """Return the model with the same hyper-parameters and the results at the target alone, and their own mean."""
        data = self.data.at_target(self.encoding)
        return replace(self, data=data, mean=None if self.mean is None else float(np.median(data.y)))

    @cached_property
    def gp(self) -> GP:
        """The posterior given all results, those tied most to the target first: the leading ones bound variances."""
        data = self.data.taken(np.argsort(-self._ties(self.data.X), kind="stable"))
        condition = GP.build if len(data.y) <= EXACT else partial(compressed, active=self._active(data))
        told = condition(
            self.encoding.kernel,
            data.X,
            data.y,
            kappa0=self.kappa0,
            h=self.h,
            eta2=self.eta2,
            m=self.mean,
            noise=data.noise,
        )
        return told.imagine(data.pending, self.rise * self.encoding.away(data.pending))

    def _ties(self, X: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        """Return the correlation of every result's fidelity with the target."""
        here = X.copy()
        here[:, : self.encoding.x_width] = 0.0
        star = np.concatenate([np.zeros(self.encoding.x_width), self.encoding.target])
        return self.encoding.kernel.value(self.h, here, star[None, :])[:, 0]

    def _active(self, data: Data) -> IntArray:  # (ACTIVE,)
        """Return the results through which all others speak: the best at the target, and others far from each other."""
        at_target = np.flatnonzero(self.encoding.is_target(data.X))
        best = at_target[np.argsort(-data.y[at_target], kind="stable")][: ACTIVE // 2]
        return np.sort(spread(self.encoding.kernel, self.h, data.X, best, ACTIVE))

    @cached_property
    def section(self) -> Section:
        """The posterior of f = g(z*, .).  [K17, eq. 5]"""
        return Section(self.gp, self.encoding.x_width, self.encoding.target)

    def drawn(self, U: FloatArray, normal: FloatArray) -> tuple[Section, FloatArray]:  # (a, d), (a, k)
        """Return the posterior of f given draws of it at U, one a column of `normal`, and the draws (a, k)."""
        x = self.encoding.x_features(U)
        gp, values = self.gp.drawn(np.hstack([x, np.tile(self.encoding.target, (len(x), 1))]), normal)
        return Section(gp, self.encoding.x_width, self.encoding.target), values

    def moments(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mu (m,), sigma (m,)
        mean, variance = self.section.moments(self.encoding.x_features(U))
        return mean, np.sqrt(variance)

    def means(self, U: FloatArray) -> FloatArray:  # (m, d) -> mu (m,)
        return self.section.means(self.encoding.x_features(U))

    def noise(self, A: FloatArray) -> FloatArray:  # (m, D) -> (m,)
        """Return the variance of the noise of a query."""
        return self.gp.eta2 + self.rise * self.encoding.away(A)

    def at(self, u: FloatArray, Z: FloatArray) -> FloatArray:  # (d,), (m, p) -> (m, D)
        """Return the features of one x at many fidelities."""
        x = self.encoding.x_features(u[None, :])
        return np.hstack([np.repeat(x, len(Z), axis=0), self.encoding.z_features(Z)])

    @cached_property
    def queried(self) -> FloatArray:  # (k, d)
        """The x that were ever run, each once, in unit coordinates."""
        return self._distinct(self.data.X)

    def _distinct(self, X: FloatArray) -> FloatArray:  # (n, D) -> (k, d)
        x = X[:, : self.encoding.x_width]
        _, first = np.unique(x, axis=0, return_index=True)
        return self.encoding.x_unit(x[np.sort(first)])

    def anchors(self, count: int = 5) -> FloatArray:  # (count, d)
        """Return the queried x of highest posterior mean at the target; of many, among those that promise most."""
        return self._best_queried[:count]

    @cached_property
    def _best_queried(self) -> FloatArray:  # (k, d)
        X = self.data.X
        if len(X) > PROMISING:  # what a result by itself lets expect at the target is for free
            expected = self._ties(X) * (self.data.y - self.gp.m)
            X = X[np.sort(np.argsort(-expected, kind="stable")[:PROMISING])]
        x = self._distinct(X)
        return x[np.argsort(-self.means(x), kind="stable")]

    def rough_moments(self, U: FloatArray, exact: int) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mu, sigma (m,)
        """Return mu and sigma, which may be too large except at so many points where f may be highest."""
        leading = leading_of(self.section)
        if leading is None:
            return self.moments(U)
        mean, variance = self.section.at_most(self.encoding.x_features(U), leading)
        sigma = np.sqrt(variance)
        highest = np.argsort(-(mean + 2.0 * sigma), kind="stable")[:exact]
        mean[highest], sigma[highest] = self.moments(U[highest])
        return mean, sigma

    def diameter(self) -> float:
        """Return the L1 diameter of the domain, each dimension divided by its bandwidth."""
        return float(np.sum(1.0 / self.h[: len(self.problem.space)]))

    def value_as_told(self, standardised: float) -> float:
        """Return a mean or a bound in the user's units."""
        return finite(sign(self.problem.direction) * (self.standard.location + self.standard.scale * standardised))

    def deviation_as_told(self, standardised: float) -> float:
        return finite(self.standard.scale * standardised)

    def hyperparameters(self) -> dict[str, Any]:
        """Return the numbers that define this GP in the user's units: with the results, they are the model."""
        d, p = len(self.problem.space), len(self.problem.fidelity)
        scale = self.standard.scale
        numbers: dict[str, Any] = {
            "kappa0": finite(self.kappa0 * scale * scale),
            "eta2": finite(self.gp.eta2 * scale * scale),
            "mean": self.value_as_told(self.gp.m),
            "h_x": self.h[:d].tolist(),
        }
        if not self.encoding.fidelity_kernel:
            numbers["h_z"] = self.h[d : d + p].tolist() if self.guard is None else [_NO_REACH] * p
        kernel = self.encoding.kernel
        if kernel.jump is not None and self.h[kernel.jump.strength] > 0.0:
            numbers["jump"] = float(self.h[kernel.jump.strength])
        if kernel.trend is not None and self.h[kernel.trend.strength] > 0.0:
            numbers["trend"] = finite(float(self.h[kernel.trend.strength]) * self.kappa0 * scale * scale)
        if self.rise > 0.0 and self.guard is None:
            numbers["noise_rise"] = finite(self.rise * scale * scale)
        return numbers


def leading_of(section: Section) -> int | None:
    """Return how many results are to bound the others; None where bounds would cost no less than values."""
    n = len(section.gp.X)
    if n <= UNBOUNDED:
        return None
    return n if n <= 2 * LEADING else LEADING


def finite(value: float) -> float:
    """Return a float that JSON knows, where squares of 1e300 overflow."""
    return float(np.clip(value, -np.finfo(float).max, np.finfo(float).max))
