"""What is believed after a history: a Gaussian process over (x, z), with the way back to the user's units.

symbol   meaning
d, p     parameters of the domain and of the fidelity space
s        shrink: the length scales h_x are divided by it
mu, sigma  posterior mean and deviation of f = g(z*, .), in standardised units and so that more is better
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import sign
from boca.gp import fit as gp_fit
from boca.gp.fitc import IntArray, compressed, spread
from boca.gp.model import GP, PosteriorSlice
from boca.gp.noise import NO_NOISE, Noise
from boca.model.dataset import Data
from boca.model.encoding import Encoding
from boca.model.fit_record import Fit
from boca.model.hyperparameters import as_told, finite

EXACT = 1200  # results up to which the posterior is exact ...
ACTIVE = 800  # ... and through how many it is approximated beyond
UNBOUNDED = 64  # results up to which every candidate is valued
LEADING = 128  # results that bound what a candidate may promise, if there are twice as many or more
PROMISING = 256  # results among whose x the best is looked for, if there are more
_NO_REACH = 1e-9  # length scale of a fidelity that is switched off: results elsewhere then say nothing of the target


class Posterior(Protocol):
    """What a strategy believes of f = g(z*, .): recommendations, plots and reports know no more of its model."""

    @property
    def problem(self) -> Problem: ...
    def moments(self, U: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...  # (m, d) -> mu (m,), sigma (m,)
    def value_as_told(self, standardised: float, /) -> float:
        """Return a mean or a bound in the user's units."""
        ...

    def deviation_as_told(self, standardised: float, /) -> float: ...
    def hyperparameters(self) -> dict[str, Any]:
        """Return the numbers that define the model of f in the user's units."""
        ...

    def learned(self) -> dict[str, Any]:
        """Return what a refit for this very posterior learned, as keys of `why`; empty if an earlier one served."""
        ...


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
    fit: Fit | None = None
    """What a refit for this very model learned; None when an earlier one served."""
    noise_terms: Noise = NO_NOISE
    """The noise beside its constant variance."""
    guard: float | None = None
    """Nats by which the target is predicted better without the other fidelities, if they are switched off for it."""
    shrink: float = 1.0

    def shrunk(self, s: float) -> Model:
        """Return the model with the domain's length scales divided by s: the same data, less sure between them."""
        if s == 1.0:
            return self
        h = self.h.copy()
        h[: len(self.problem.space)] /= s
        return replace(self, h=h, shrink=self.shrink * s)

    def at_target(self) -> Model:
        """Return the model with the same hyper-parameters and the results at the target alone, and their own mean."""
        data = self.data.at_target()
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
        return told.fantasize(data.pending, self.noise_terms.variance(data.pending))

    def _ties(self, X: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        """Return the correlation of every result's fidelity with the target."""
        here = X.copy()
        here[:, : self.encoding.x_width] = 0.0
        star = np.concatenate([np.zeros(self.encoding.x_width), self.encoding.target])
        return self.encoding.kernel.value(self.h, here, star[None, :])[:, 0]

    def _active(self, data: Data) -> IntArray:  # (ACTIVE,)
        """Return the results through which all others speak: the best at the target, and others far from each other."""
        at_target = np.flatnonzero(data.is_target)
        best = at_target[np.argsort(-data.y[at_target], kind="stable")][: ACTIVE // 2]
        return np.sort(spread(self.encoding.kernel, self.h, data.X, best, ACTIVE))

    @cached_property
    def section(self) -> PosteriorSlice:
        """The posterior of f = g(z*, .).  [K17, eq. 5]"""
        return PosteriorSlice(self.gp, self.encoding.x_width, self.encoding.target)

    def drawn(self, U: FloatArray, normal: FloatArray) -> tuple[PosteriorSlice, FloatArray]:  # (a, d), (a, k)
        """Return the posterior of f given draws of it at U, one per column of `normal`, and the draws (a, k)."""
        x = self.encoding.x_features(U)
        gp, values = self.gp.drawn(np.hstack([x, np.tile(self.encoding.target, (len(x), 1))]), normal)
        return PosteriorSlice(gp, self.encoding.x_width, self.encoding.target), values

    def moments(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mu (m,), sigma (m,)
        mean, variance = self.section.moments(self.encoding.x_features(U))
        return mean, np.sqrt(variance)

    def means(self, U: FloatArray) -> FloatArray:  # (m, d) -> mu (m,)
        return self.section.means(self.encoding.x_features(U))

    def noise(self, A: FloatArray) -> FloatArray:  # (m, D) -> (m,)
        """Return the variance of the noise of a query."""
        return self.gp.eta2 + self.noise_terms.variance(A)

    def at(self, u: FloatArray, Z: FloatArray) -> FloatArray:  # (d,), (m, p) -> (m, D)
        """Return the features of one x at many fidelities."""
        x = self.encoding.x_features(u[None, :])
        return np.hstack([np.repeat(x, len(Z), axis=0), self.encoding.z_features(Z)])

    @cached_property
    def queried(self) -> FloatArray:  # (k, d)
        """The x that were ever run, each once, in unit coordinates."""
        return _distinct(self.data.U)

    def anchors(self, count: int = 5) -> FloatArray:  # (count, d)
        """Return the queried x of highest posterior mean at the target; of many, among those that promise most."""
        return self._best_queried[:count]

    @cached_property
    def _best_queried(self) -> FloatArray:  # (k, d)
        U = self.data.U
        if len(U) > PROMISING:  # what a result by itself lets expect at the target is for free
            expected = self._ties(self.data.X) * (self.data.y - self.gp.m)
            U = U[np.sort(np.argsort(-expected, kind="stable")[:PROMISING])]
        x = _distinct(U)
        return x[np.argsort(-self.means(x), kind="stable")]

    def rough_moments(self, U: FloatArray, exact: int) -> tuple[FloatArray, FloatArray]:  # (m, d) -> mu, sigma (m,)
        """Return mu and sigma: exact at `exact` points where f may be highest, possibly too large elsewhere."""
        leading = leading_of(self.section)
        if leading is None:
            return self.moments(U)
        mean, variance = self.section.at_most(self.encoding.x_features(U), leading)
        sigma = np.sqrt(variance)
        highest = np.argsort(-(mean + 2.0 * sigma), kind="stable")[:exact]
        mean[highest], sigma[highest] = self.moments(U[highest])
        return mean, sigma

    def diameter(self) -> float:
        """Return the L1 diameter of the domain, each dimension divided by its length scale."""
        return float(np.sum(1.0 / self.h[: len(self.problem.space)]))

    def value_as_told(self, standardised: float) -> float:
        """Return a mean or a bound in the user's units."""
        return finite(sign(self.problem.direction) * (self.standard.location + self.standard.scale * standardised))

    def deviation_as_told(self, standardised: float) -> float:
        return finite(self.standard.scale * standardised)

    def hyperparameters(self) -> dict[str, Any]:
        """Return the numbers that define this GP in the user's units: with the results, they are the model.

        Strengths that are zero are absent.
        """
        scale, kappa0 = self.standard.scale, self.kappa0
        values = {"kappa0": [kappa0], "eta2": [self.gp.eta2]} | self._of_kernel() | self._of_noise()
        told: dict[str, Any] = {}
        for block in [*self.encoding.blocks, *(term.block for term in self.encoding.noise)]:
            of_block = values.get(block.name, [0.0])
            if not block.is_strength or of_block[0] > 0.0:
                told[block.name] = as_told(block, of_block, kappa0=kappa0, scale=scale)
            if block.name == "eta2":
                told["mean"] = self.value_as_told(self.gp.m)
        return told

    def learned(self) -> dict[str, Any]:
        return {} if self.fit is None else {"fit": self.fit.to_json()}

    def _of_kernel(self) -> dict[str, list[float]]:
        """Return what h holds, by block; a fidelity that is switched off reaches nowhere."""
        blocks = [block for block in self.encoding.blocks if block.name not in ("kappa0", "eta2")]
        ends = np.cumsum([block.size for block in blocks])
        values = {block.name: part.tolist() for block, part in zip(blocks, np.split(self.h, ends), strict=False)}
        if self.guard is not None and "h_z" in values:
            values["h_z"] = [_NO_REACH] * len(values["h_z"])
        return values

    def _of_noise(self) -> dict[str, list[float]]:
        if self.guard is not None:  # at the target all of it is the constant variance
            return {}
        pairs = zip(self.noise_terms.terms, self.noise_terms.strengths, strict=True)
        return {term.block.name: [value] for term, value in pairs}


def leading_of(section: PosteriorSlice) -> int | None:
    """Return how many results are to bound the others; None where bounds would cost no less than values."""
    n = len(section.gp.X)
    if n <= UNBOUNDED:
        return None
    return n if n <= 2 * LEADING else LEADING


def _distinct(U: FloatArray) -> FloatArray:  # (n, d) -> (k, d)
    """Return the rows, each once, in the order in which they first stand there."""
    _, first = np.unique(U, axis=0, return_index=True)
    return U[np.sort(first)]
