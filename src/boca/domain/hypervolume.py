"""The hypervolume of a front, exactly, and what a further point would add to it; everything is maximized.

symbol     shape    meaning
Y          (n, m)   points, one column per objective
reference  (m,)     the point from which volumes are measured; a point that is not above it everywhere has none
low, high  (b, m)   corners of disjoint boxes that fill the region which no point dominates; `high` may be infinite

The hypervolume is the volume between the reference and the points.  It is the sum of what each point adds to those
before it, so that nothing is subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from boca.domain.space import BoolArray, FloatArray

_BLOCK = 2**21  # numbers in one table of points by boxes


@dataclass(frozen=True)
class Region:
    """The part of the space above a reference that no point of a front dominates."""

    low: FloatArray
    high: FloatArray

    @classmethod
    def above(cls, reference: FloatArray, front: Iterable[FloatArray] = ()) -> Region:
        """Return the region above a reference that no point of a front dominates."""
        found = cls(reference[None, :].astype(float), np.full((1, len(reference)), np.inf))
        for y in front:
            found = found.without(y)
        return found

    def without(self, y: FloatArray) -> Region:  # (m,)
        """Return the region with what y dominates cut away: every box that y cuts becomes at most m boxes."""
        is_cut = np.all(self.low < y, axis=1)
        if not is_cut.any():
            return self
        low, high = self.low[is_cut], self.high[is_cut]
        lows, highs = [self.low[~is_cut]], [self.high[~is_cut]]
        for j in range(len(y)):  # above y in objective j, and below it in those before
            rest = high[:, j] > y[j]
            piece = low[rest].copy()
            piece[:, j] = y[j]
            lows.append(piece)
            highs.append(high[rest])
            high = high.copy()
            high[:, j] = np.minimum(high[:, j], y[j])
        return Region(np.vstack(lows), np.vstack(highs))

    def gain(self, Y: FloatArray) -> FloatArray:  # (n, m) -> (n,)
        """Return the volume that each point, by itself, would add."""
        rows = max(1, _BLOCK // self.low.size)
        return np.concatenate([self._gain(Y[k : k + rows]) for k in range(0, max(len(Y), 1), rows)])

    def _gain(self, Y: FloatArray) -> FloatArray:
        sides = np.maximum(np.minimum(Y[:, None, :], self.high) - self.low, 0.0)
        return np.asarray(np.sum(np.prod(sides, axis=2), axis=1))


def undominated(Y: FloatArray) -> BoolArray:  # (n, m) -> (n,)
    """Return which points no other dominates; of equal points, none dominates another."""
    found = np.zeros(len(Y), dtype=bool)
    left = np.argsort(-np.sum(Y, axis=1), kind="stable")  # by rounding, equal sums may hide that one dominates
    while len(left):
        best, rest = left[0], left[1:]
        is_below = np.all(Y[rest] <= Y[best], axis=1) & np.any(Y[rest] < Y[best], axis=1)
        is_above = np.all(Y[rest] >= Y[best], axis=1) & np.any(Y[rest] > Y[best], axis=1)
        found[best] = not is_above.any()
        left = rest[~is_below]
    return found


def growth(Y: FloatArray, reference: FloatArray) -> FloatArray:  # (n, m) -> (n,)
    """Return the hypervolume of the first point, of the first two, and so on."""
    region, added = Region.above(reference), []
    for y in Y:
        added.append(float(region.gain(y[None, :])[0]))
        region = region.without(y) if added[-1] > 0.0 else region
    return np.cumsum(added) if added else np.zeros(0)


def hypervolume(Y: FloatArray, reference: FloatArray) -> float:  # (n, m), (m,)
    """Return the hypervolume of these points above a reference."""
    front = in_order(Y[undominated(Y)], reference)
    return float(growth(front, reference)[-1]) if len(front) else 0.0


def in_order(front: FloatArray, reference: FloatArray) -> FloatArray:  # (k, m) -> (k, m)
    """Return the points in an order in which they cut a region into few boxes: those in the middle of the front first.

    Of 100 points on a sphere, 1,448 boxes remain with four objectives, and 57,115 in the order of one objective.
    """
    if not len(front):
        return front
    above = front - reference
    least = np.min(above / np.maximum(np.max(np.abs(above), axis=0), np.finfo(float).tiny), axis=1)
    return front[np.argsort(-least, kind="stable")]
