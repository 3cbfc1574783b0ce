"""A factor for inputs that approach an origin: an axis that is learned, and a part that fades towards the origin.

    symbol   meaning
    q        distance from the origin along one column, as a share of the largest possible: 0 there, 1 far away
    w        +-q^a, the learned axis: a < 1 stretches the end near the origin, a > 1 the far end
    h        length scale along w
    s, l     strength and length of the part that fades: s q q' exp(-|q - q'| / l), with the sign of the side
    R        product of squared exponentials of w / h over all columns
    value    R + sum over columns of the parts that fade

With a = 1 and s = 0 it is the squared exponential of the distances.  The part that fades is zero at the origin, so it
may make far inputs unlike each other and unlike the origin without a word about what is near.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from boca.gp.linalg import FloatArray
from boca.gp.parameters import Block

_LEAST_VALUE = 1e-300
_LEAST_SHARE = 1e-12  # of q inside a logarithm; at the origin, w does not depend on a
_AXIS_DEVIATION = 0.7  # of log a: a factor of two either way
_AXIS_BOUND = 2.0  # of log a: beyond, all of the axis would be near one end
_FADE_RATE = 1.0  # of the exponential prior on a strength, whose mean is then the variance at the origin
_LARGEST_FADE = 10.0
_LENGTH = Block(
    "fade_length",
    mean=math.log(0.5),
    deviation=0.7,
    low=math.log(0.05),
    high=math.log(5.0),
    unit="log",
    by_parameter=True,
)


@dataclass(frozen=True)
class Converging:
    """The factor; its parameters are h[bandwidths], and log a, s and log l of every column from h[at] on."""

    columns: tuple[int, ...]
    origin: tuple[float, ...]
    reach: tuple[float, ...]
    """The largest distance from the origin, by column."""
    bandwidths: tuple[int, ...]
    at: int
    fades: bool = True

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        k = len(self.columns)
        axis = Block(
            "axis", k, deviation=_AXIS_DEVIATION, low=-_AXIS_BOUND, high=_AXIS_BOUND, unit="log", by_parameter=True
        )
        if not self.fades:
            return (axis,)
        fade = Block("fade", k, low=0.0, high=_LARGEST_FADE, rate=_FADE_RATE, by_parameter=True)
        return (axis, fade, replace(_LENGTH, size=k))

    def value(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        P, Q = self._sides(A), self._sides(B)
        value = self._radial(h, P, Q)
        for j in range(len(self.columns)):
            s, length = self._fade(h, j)
            if s > 0.0:
                value += s * self._fading(P[:, j], Q[:, j], length)[0]
        return value

    def exponent(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray | None:  # (n, D), (m, D) -> (n, m)
        """Return the log of the value, which joins those of the radial factors; None if there are parts that fade."""
        return None if self.fades else self._log_radial(h, self._sides(A), self._sides(B))

    def diagonal(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        if not self.fades:
            return np.ones(len(A))
        strengths = np.array([self._fade(h, j)[0] for j in range(len(self.columns))])
        return np.asarray(1.0 + np.square(self._sides(A)) @ strengths)

    def embedded(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n, columns)
        """Return the learned axes in length scales, between whose points distances make sense."""
        return self._axes(h, self._sides(A))[0] / h[list(self.bandwidths)]

    def add_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, B: FloatArray, G: FloatArray) -> None:
        P, Q = self._sides(A), self._sides(B)
        (W, dW), (V, dV) = self._axes(h, P), self._axes(h, Q)
        parts = []
        M = by_value = G
        if self.fades:
            R = self._radial(h, P, Q)
            value = R.copy()
            for j in range(len(self.columns)):
                s, length = self._fade(h, j)
                part, away = self._fading(P[:, j], Q[:, j], length)
                parts.append((part, away, s, length))
                if s > 0.0:
                    value += s * part
            by_value = G / np.maximum(value, _LEAST_VALUE)  # where the factor underflows, so does G
            M = by_value * R
        rows, columns = M.sum(axis=1), M.sum(axis=0)
        MV, MdV = M @ V, M @ dV
        scales = h[list(self.bandwidths)]
        square = rows @ (W * W) + columns @ (V * V) - 2.0 * np.einsum("ij,ij->j", W, MV)
        cross = rows @ (W * dW) + columns @ (V * dV) - np.einsum("ij,ij->j", W, MdV) - np.einsum("ij,ij->j", dW, MV)
        for j, k in enumerate(self.bandwidths):
            by_h[k] += square[j] / scales[j] ** 2
            by_h[self.at + j] -= cross[j] / scales[j] ** 2
        for j, (part, away, s, length) in enumerate(parts):
            part *= by_value
            by_h[self._fade_at + j] += float(part.sum())
            if s > 0.0:
                by_h[self._length_at + j] += s * float(np.einsum("ij,ij->", part, away)) / length

    def add_diagonal_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, g: FloatArray) -> None:
        if self.fades:
            by_h[self._fade_at : self._length_at] += (g / self.diagonal(h, A)) @ np.square(self._sides(A))

    @property
    def _fade_at(self) -> int:
        return self.at + len(self.columns)

    @property
    def _length_at(self) -> int:
        return self.at + 2 * len(self.columns)

    def _fade(self, h: FloatArray, j: int) -> tuple[float, float]:
        """Return strength and length of the part of column j that fades."""
        return (float(h[self._fade_at + j]), math.exp(h[self._length_at + j])) if self.fades else (0.0, 1.0)

    def _sides(self, A: FloatArray) -> FloatArray:  # (n, D) -> (n, columns)
        """Return q with the sign of the side of the origin."""
        return np.asarray((A[:, list(self.columns)] - np.array(self.origin)) / np.array(self.reach))

    def _axes(self, h: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray]:  # (n, columns)
        """Return w, and its derivative by log a."""
        a = np.exp(h[self.at : self.at + len(self.columns)])
        q = np.abs(P)
        log_q = np.log(np.maximum(q, _LEAST_SHARE))
        W = np.where(q > 0.0, np.sign(P) * np.exp(a * log_q), 0.0)
        return W, W * a * log_q

    def _radial(self, h: FloatArray, P: FloatArray, Q: FloatArray) -> FloatArray:  # (n, m)
        r2 = self._log_radial(h, P, Q)
        return np.exp(r2, out=r2)

    def _log_radial(self, h: FloatArray, P: FloatArray, Q: FloatArray) -> FloatArray:  # (n, m)
        scales = math.sqrt(2.0) * h[list(self.bandwidths)]
        W, V = self._axes(h, P)[0] / scales, self._axes(h, Q)[0] / scales
        r2 = np.subtract.outer(W[:, 0], V[:, 0])
        np.square(r2, out=r2)
        for j in range(1, len(self.columns)):
            away = np.subtract.outer(W[:, j], V[:, j])
            r2 += np.square(away, out=away)
        return np.negative(r2, out=r2)

    def _fading(self, p: FloatArray, q: FloatArray, length: float) -> tuple[FloatArray, FloatArray]:  # (n, m) each
        """Return the part of one column that fades, for a strength of one, and the distances in it."""
        away = np.abs(p[:, None] - q[None, :])
        part = np.exp(away * (-1.0 / length))
        part *= p[:, None]
        part *= q[None, :]
        return part, away
