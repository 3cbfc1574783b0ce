"""The expected hypervolume improvement of a query, exactly, for objectives that are independent given x.

symbol     shape   meaning
mu, sigma  (n, m)  posterior means and deviations of the objectives, turned so that more is better
low, high  (b, m)  boxes that fill the region which no point of the front dominates
psi(a)             E[max(f - a, 0)], the expected improvement over a

The volume that f adds is the sum over boxes of the product over objectives of max(min(f, high) - low, 0).  The
objectives are independent, so its expectation is the sum of the products of psi(low) - psi(high).  All of it is done
with logarithms, which have slopes even where the improvement underflows.

[Y19] Yang, Emmerich, Deutz, Baeck: Efficient Computation of Expected Hypervolume Improvement Using Box Decomposition
Algorithms, Journal of Global Optimization 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from boca.domain.hypervolume import Region, in_order
from boca.domain.space import FloatArray, IntArray
from boca.model.objectives import Objectives
from boca.model.posterior import leading_count
from boca.search.acquisition import log_ei

_LEAST_DIFFERENCE = 1e-12  # of two logarithms: below, the difference is rounding
_COARSE_POINTS = 12  # of the front, the rest of which is left out for an upper bound
_BOUNDED_FROM_BOXES = 200  # with fewer, values cost no more than bounds
_BLOCK = 2**20  # numbers in one table of points by boxes


@dataclass(frozen=True)
class _Sides:
    """The distinct pairs of low and high in one objective, and which pair each box has."""

    low: FloatArray  # (k,)
    high: FloatArray  # (k,)
    of_box: IntArray  # (b,)

    @classmethod
    def of(cls, low: FloatArray, high: FloatArray) -> _Sides:
        pairs, of_box = np.unique(np.stack([low, high], axis=1), axis=0, return_inverse=True)
        return cls(pairs[:, 0], pairs[:, 1], of_box.reshape(-1))

    def log_expected(self, mu: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return log(psi(low) - psi(high)) and its derivatives by mu and sigma: (n,), (n,) -> (n, k) each."""
        edges, places = np.unique(np.concatenate([self.low, self.high]), return_inverse=True)
        finite = np.isfinite(edges)
        shape = (len(mu), len(edges))
        psi, by_mu, by_sigma = np.full(shape, -np.inf), np.zeros(shape), np.zeros(shape)
        found = log_ei(mu[:, None], sigma[:, None], edges[finite])
        for table, values in zip((psi, by_mu, by_sigma), found, strict=True):
            table[:, finite] = values
        a, b = np.split(places.reshape(-1), 2)
        difference = np.minimum(psi[:, b] - psi[:, a], -_LEAST_DIFFERENCE)
        ratio = np.exp(difference)
        left = -np.expm1(difference)
        slopes = ((table[:, a] - ratio * table[:, b]) / left for table in (by_mu, by_sigma))
        return psi[:, a] + np.log(left), *slopes


@dataclass(frozen=True)
class LogEHVI:
    """The logarithm of the expected hypervolume improvement over a front.  [Y19]"""

    region: Region

    @cached_property
    def _sides(self) -> list[_Sides]:
        low, high = self.region.low, self.region.high
        return [_Sides.of(low[:, j], high[:, j]) for j in range(low.shape[1])]

    def value(self, mu: FloatArray, sigma: FloatArray) -> FloatArray:  # (n, m), (n, m) -> (n,)
        rows = max(1, _BLOCK // len(self.region.low))
        blocks = [slice(k, k + rows) for k in range(0, len(mu), rows)]
        return np.concatenate([np.zeros(0), *(self._with_slopes(mu[b], sigma[b])[0] for b in blocks)])

    def __call__(self, mu: FloatArray, sigma: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the value (n,) and its derivatives by mu and sigma (n, m)."""
        value, share, sides = self._with_slopes(mu, sigma)
        by_mu, by_sigma = np.zeros_like(mu), np.zeros_like(sigma)
        for j, (of_box, expected) in enumerate(sides):
            count = expected[0].shape[1]
            weight = np.stack([np.bincount(of_box, row, count) for row in share])
            by_mu[:, j] = np.sum(weight * expected[1], axis=1)
            by_sigma[:, j] = np.sum(weight * expected[2], axis=1)
        return value, by_mu, by_sigma

    def _with_slopes(
        self, mu: FloatArray, sigma: FloatArray
    ) -> tuple[FloatArray, FloatArray, list[tuple[IntArray, tuple[FloatArray, FloatArray, FloatArray]]]]:
        """Return the values, the share of every box in them (n, b), and what the sides contribute."""
        sides = [(s.of_box, s.log_expected(mu[:, j], sigma[:, j])) for j, s in enumerate(self._sides)]
        total = np.zeros((len(mu), len(self.region.low)))
        for of_box, expected in sides:
            total += expected[0][:, of_box]
        highest = np.max(total, axis=1, keepdims=True)
        share = np.exp(total - highest)
        sums = np.sum(share, axis=1, keepdims=True)
        return (highest + np.log(sums))[:, 0], share / sums, sides


@dataclass(frozen=True)
class HypervolumeImprovement:
    """The logarithm of the expected hypervolume improvement as a function of x, as a maximizer needs it."""

    objectives: Objectives
    front: FloatArray  # (k, m)
    """What is to be improved upon, turned."""
    reference: FloatArray  # (m,)

    @cached_property
    def exact(self) -> LogEHVI:
        return LogEHVI(Region.above(self.reference, in_order(self.front, self.reference)))

    @cached_property
    def _coarse(self) -> LogEHVI:
        """The improvement over a part of the front, which is never less."""
        if len(self.exact.region.low) < _BOUNDED_FROM_BOXES:
            return self.exact
        return LogEHVI(Region.above(self.reference, in_order(self.front, self.reference)[:_COARSE_POINTS]))

    def value(self, U: FloatArray) -> FloatArray:  # (n, d) -> (n,)
        return self.exact.value(*self.objectives.moments(U))

    def bound(self, U: FloatArray) -> FloatArray | None:  # (n, d) -> (n,)
        """Return upper bounds of the values; None if they would cost no less.

        The added volume is convex in every objective, because fewer points of the front are in the way higher up.  So
        its expectation rises with every deviation, as it does with every mean, and bounds of both give one of it.
        """
        slices = [model.target_slice for model in self.objectives.models.values()]
        leading = [leading_count(each) for each in slices]
        if None in leading and self._coarse is self.exact:
            return None
        return self._coarse.value(*self.objectives.upper_bounds(U))

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (n, d) -> (n,), (n, d)
        found = []
        for model in self.objectives.models.values():
            encoding = model.encoding
            mean, variance, chain = model.target_slice.moments_and_chain(encoding.x_features(U))
            found.append((model, mean, np.sqrt(variance), chain))
        scale = np.array([model.standard.scale for model, *_ in found])
        location = np.array([model.standard.location for model, *_ in found])
        mu = location + scale * np.stack([mean for _, mean, _, _ in found], axis=1)
        sigma = scale * np.stack([deviation for _, _, deviation, _ in found], axis=1)
        value, by_mu, by_sigma = self.exact(mu, sigma)
        gradient = np.zeros_like(U)
        for j, (model, _, deviation, chain) in enumerate(found):
            slopes = chain(scale[j] * by_mu[:, j], scale[j] * by_sigma[:, j] / (2.0 * deviation))
            gradient += model.encoding.x_gradient(U, slopes)
        return value, gradient
