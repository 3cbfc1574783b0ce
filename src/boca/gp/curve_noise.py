"""A term for noise that all observations of one curve share: one draw per training, beside that of each observation.

    symbol   meaning
    c        the curve of an input, a number from 0 on; `NO_CURVE` for the latent function itself
    value    h[at] [c = c' and c >= 0]

An input without a curve has no covariance with any, so predictions of the latent function leave the draw out.  An input
with the curve of a training predicts what that training will show.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from boca.gp.linalg import FloatArray
from boca.gp.parameters import Block, strength

NO_CURVE = -1.0
_LARGEST = 5.0  # of kappa0: a draw with more variance than the function leaves nothing to learn
_RATE = 4.0  # of the exponential prior: its mean is a quarter of kappa0


@dataclass(frozen=True)
class CurveNoise:
    """The term; its only parameter is its variance, h[at], in units of kappa0."""

    blocks: ClassVar[tuple[Block, ...]] = (strength("curve_noise", high=_LARGEST, rate=_RATE, unit="signal"),)
    column: int
    at: int

    def prepared(self, A: FloatArray) -> FloatArray:  # (n, D) -> (n, 1)
        return A[:, self.column : self.column + 1]

    def value(self, h: FloatArray, P: FloatArray, Q: FloatArray, scale: float = 1.0) -> FloatArray:  # (n, m)
        return np.asarray((scale * h[self.at]) * _shared(P, Q))

    def diagonal(self, h: FloatArray, P: FloatArray) -> FloatArray:  # (n,)
        return np.asarray(h[self.at] * (P[:, 0] >= 0.0))

    def add_gradient(
        self, by_h: FloatArray, h: FloatArray, P: FloatArray, Q: FloatArray, G: FloatArray, scale: float = 1.0
    ) -> float:
        by_strength = scale * float(G[_shared(P, Q)].sum())
        by_h[self.at] += by_strength
        return float(h[self.at] * by_strength)

    def add_diagonal_gradient(self, by_h: FloatArray, h: FloatArray, P: FloatArray, g: FloatArray) -> None:
        by_h[self.at] += float(g[P[:, 0] >= 0.0].sum())


def _shared(P: FloatArray, Q: FloatArray) -> NDArray[np.bool_]:  # (n, 1), (m, 1) -> (n, m)
    return np.equal(P, Q.T) & (P >= 0.0)
