"""An output warp: one increasing map of the values at all fidelities, which magnifies differences near the best.

    symbol   meaning
    y        values to maximize, as in `Dataset.scores`
    b        anchor: the highest result at the target or near it
    s        spread: a share of the distance from b to the middle of these results
    T(y)     -log(1 + (b - y) / s) below b, (y - b) / s above it

T is smooth, rises everywhere and has an inverse.  A quarter of a real search space is often at chance, and the
interesting differences are in the top tenth: the logarithm makes the cliff between both small.  As s grows, T becomes a
straight line, so that no warp is a member of the family.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from boca.domain.space import FloatArray

_LOWEST_EXPONENT = -700.0  # of the inverse: exp(700) is still a float
_LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class Warp:
    """The map T with its two numbers."""

    anchor: float
    spread: float
    share: float
    """Of the distance from b to the middle: how it was chosen, until it is chosen again."""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Warp:
        return cls(stored["anchor"], stored["spread"], stored["share"])

    def to_json(self) -> dict[str, float]:
        return {"anchor": self.anchor, "spread": self.spread, "share": self.share}

    def apply(self, y: FloatArray) -> FloatArray:
        """Return T(y); differences are halved on the way, so that 1e308 - (-1e308) does not overflow.

        Farther from the anchor than the largest number of spreads is as far as that.
        """
        with np.errstate(over="ignore"):
            below = np.clip((0.5 * self.anchor - 0.5 * y) / (0.5 * self.spread), -_LARGEST, _LARGEST)
        return np.where(below > 0.0, -np.log1p(np.maximum(below, 0.0)), -below)

    def slope(self, y: FloatArray) -> FloatArray:
        """Return T'(y), which is at most 1 / s; both sides are quartered, so that the sum does not overflow."""
        return 0.25 / (0.25 * self.spread + np.maximum(0.25 * self.anchor - 0.25 * y, 0.0))

    def inverse(self, t: FloatArray | float) -> FloatArray:
        """Return the y with T(y) = t, or the largest number where y is beyond it; halved on the way as in `apply`."""
        below = np.expm1(-np.clip(t, _LOWEST_EXPONENT, 0.0))
        with np.errstate(over="ignore"):
            half = 0.5 * self.anchor + 0.5 * self.spread * np.where(np.asarray(t) < 0.0, -below, t)
        return np.asarray(2.0 * np.clip(half, -0.5 * _LARGEST, 0.5 * _LARGEST))

    def described(self, turn: float) -> dict[str, Any]:
        """Return the map of values as told, `turn` being -1 if they are minimized: enough to compute it by hand.

        The warped values of a minimized objective are turned too, so that they rise with the values as told.
        """
        anchor, better, worse = turn * self.anchor, *(("above", "below") if turn > 0 else ("below", "above"))
        side = "-log(1 + (anchor - y) / spread)" if turn > 0 else "log(1 + (y - anchor) / spread)"
        return {
            "kind": "log",
            "anchor": anchor,
            "spread": self.spread,
            worse: side,
            better: "(y - anchor) / spread",
            "sentence": (
                f"The model sees values on a logarithmic scale: differences of {self.spread:.3g} and more from "
                f"{anchor:.4g}, about the best value so far, count less the larger they are."
            ),
        }
