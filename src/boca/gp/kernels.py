"""Kernels: products of radial factors, each with one bandwidth a dimension, and factors of the user's own.

Two things that a product of stationary factors cannot say may be added: a jump, which sets a class of inputs apart from
the rest, and a trend, which is linear in features that vanish at an origin.

    symbol   shape    meaning
    A, B     (n, D)   inputs, one row a point
    h        (H,)     bandwidths, of which column j is divided by h[bandwidths[j]]; then the strengths of jump and trend
    r^2      (n, m)   squared distance in bandwidths
    s        (n, m)   the same in units in which phi is simplest
    phi      (n, m)   correlation of one factor, phi(0) = 1

A categorical coordinate enters as indicator columns scaled by 1/sqrt(2) that share one bandwidth in a squared
exponential factor, which is exp(-[a != b] / (2 h^2)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
Profile: TypeAlias = Literal["se", "matern52"]

BLOCK = 128  # rows of a block, where so many fit ...
CACHED = 2**16  # ... with so many numbers in all: half a megabyte


def lifted(B: FloatArray) -> FloatArray:  # (m, D) -> (m, D + 2)
    """Return the rows (b, 1, |b|^2): what a matrix of distances to many points needs of them, computed once."""
    D = B.shape[1]
    L = np.empty((len(B), D + 2))
    L[:, :D] = B
    L[:, D] = 1.0
    np.einsum("ij,ij->i", B, B, out=L[:, D + 1])
    return L


def squared_distances(
    A: FloatArray, B: FloatArray, unit: float = 1.0, *, single: bool = False
) -> FloatArray:  # (n, D), (m, D + 2) -> (n, m)
    """Return unit |a - b|^2 for all pairs with lifted b, as the product with (-2a, |a|^2, 1): one pass, not four.

    What rounding leaves below zero is turned round, which takes a fifth of the time of cutting it off.  With `single`
    the outcome is in single precision; on the way, where large numbers cancel, it would lose all digits.
    """
    D = A.shape[1]
    left = np.empty((len(A), D + 2))
    np.multiply(A, -2.0 * unit, out=left[:, :D])
    np.einsum("ij,ij->i", A, A, out=left[:, D])
    left[:, D] *= unit
    left[:, D + 1] = unit
    s: FloatArray = left @ B.T
    return np.abs(s, out=np.empty(s.shape, dtype=np.float32) if single else s)


def weighted_squares(M: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, m), (n, D), (m, D) -> (D,)
    """Return sum_rc M_rc (a_r - b_c)^2 in every column, from sums and one product: no (n, m) array a dimension."""
    squares = M.sum(axis=1) @ (A * A) + M.sum(axis=0) @ (B * B)
    return np.asarray(squares - 2.0 * np.einsum("ij,ij->j", A, M @ B))


@dataclass(frozen=True)
class Radial:
    """One factor phi(r) on some columns of the input."""

    profile: Profile
    columns: tuple[int, ...]
    bandwidths: tuple[int, ...]

    @cached_property
    def where(self) -> slice | list[int]:
        """The columns as a slice where they are neighbours: a view instead of a copy."""
        first, count = self.columns[0], len(self.columns)
        return slice(first, first + count) if self.columns == tuple(range(first, first + count)) else list(self.columns)

    def scale(self, h: FloatArray) -> FloatArray:  # (columns,)
        """Return the bandwidth of every column."""
        return h[list(self.bandwidths)]

    def scaled(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n, columns)
        return A[:, self.where] / self.scale(h)

    @property
    def unit(self) -> float:
        """What s is in squared bandwidths, so that phi is exp(-s), or (1 + t + s / 3) exp(-t) with t = sqrt(s)."""
        return 0.5 if self.profile == "se" else 5.0

    def parts(self, s: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return e and p with phi = p exp(e): a product of factors then needs a single exp.  None is a p of one.

        Both are written over s and its root: arrays of this size cost what their passes through memory cost.
        """
        if self.profile == "se":
            return np.negative(s, out=s), None
        t = np.sqrt(s)
        s *= 1.0 / 3.0
        s += t
        s += 1.0
        return np.negative(t, out=t), s

    def slope(self, e: FloatArray, p: FloatArray | None) -> FloatArray | float:
        """Return d log(phi) / d r^2 from the parts of phi; it is finite at r = 0."""
        if p is None:
            return -0.5
        g = e * (5.0 / 6.0)
        g -= 5.0 / 6.0
        g /= p
        return g


@dataclass(frozen=True)
class Custom:
    """A covariance that somebody else wrote: any positive semi-definite function of some columns."""

    function: Callable[[FloatArray, FloatArray], FloatArray]  # (n, k), (m, k) -> (n, m)
    variance: Callable[[FloatArray], FloatArray]  # (n, k) -> (n,), its diagonal
    columns: tuple[int, ...]

    def value(self, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        return self.function(A[:, list(self.columns)], B[:, list(self.columns)])

    def diagonal(self, A: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        return self.variance(A[:, list(self.columns)])


@dataclass(frozen=True)
class Jump:
    """A factor exp(-h[strength]) between inputs of two classes, told by a column of zeros and ones."""

    column: int
    strength: int

    def value(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        return np.where(self.apart(A, B), np.exp(-h[self.strength]), 1.0)

    def apart(self, A: FloatArray, B: FloatArray) -> NDArray[np.bool_]:  # (n, m)
        return np.not_equal(A[:, self.column, None], B[None, :, self.column])


@dataclass(frozen=True)
class Trend:
    """A term h[strength] phi(a) . phi(b): a function that is linear in phi, with slopes that are not known.

    phi are the distances from an origin and their squares, so the term vanishes where either input is there.
    """

    columns: tuple[int, ...]
    origin: tuple[float, ...]
    strength: int

    def features(self, A: FloatArray) -> FloatArray:  # (n, D) -> (n, 2 columns)
        away = A[:, list(self.columns)] - np.array(self.origin)
        return np.hstack([away, away * away])

    def value(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        return np.asarray((h[self.strength] * self.features(A)) @ self.features(B).T)

    def diagonal(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        return np.asarray(h[self.strength] * np.square(self.features(A)).sum(axis=1))


@dataclass(frozen=True)
class Kernel:
    """The product of its factors, plus a trend; with radial factors alone it is 1 on the diagonal."""

    radial: tuple[Radial, ...]
    custom: tuple[Custom, ...] = ()
    jump: Jump | None = None
    trend: Trend | None = None

    @property
    def size(self) -> int:
        """How many bandwidths there are."""
        return 1 + max((max(r.bandwidths) for r in self.radial), default=-1)

    @property
    def strengths(self) -> int:
        """How many numbers follow the bandwidths in h."""
        return (self.jump is not None) + (self.trend is not None)

    def value(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        scaled = [(r.scaled(h, A), lifted(r.scaled(h, B))) for r in self.radial]
        C = self.product(h, scaled, A, B)
        if self.trend is not None:
            C += self.trend.value(h, A, B)
        return C

    def product(
        self,
        h: FloatArray,
        scaled: Sequence[tuple[FloatArray, FloatArray]],
        A: FloatArray,
        B: FloatArray,
        *,
        slopes: list[FloatArray | float] | None = None,
        single: bool = False,
    ) -> FloatArray:  # (n, m)
        """Return the kernel without its trend.

        `scaled` are the columns of A and B that belong to each radial factor, in bandwidths, those of B lifted.  Into
        `slopes`, where it is given, goes d log(phi) / d r^2 of every radial factor, (n, m) or a number.  `single` is
        for radial factors alone: an exp in single precision takes a fifth of the time.
        """
        exponent: FloatArray | None = None
        C: FloatArray | None = None
        for radial, (a, b) in zip(self.radial, scaled, strict=True):
            e, p = radial.parts(squared_distances(a, b, radial.unit, single=single))
            if slopes is not None:
                slopes.append(radial.slope(e, p))
            exponent = e if exponent is None else np.add(exponent, e, out=exponent)
            if p is not None:
                C = p if C is None else np.multiply(C, p, out=C)
        if exponent is not None:
            np.exp(exponent, out=exponent)
            C = exponent if C is None else np.multiply(C, exponent, out=C)
        if C is None:
            C = np.ones((len(A), len(B)))
        for custom in self.custom:
            C *= custom.value(A, B)
        if self.jump is not None:
            C *= self.jump.value(h, A, B)
        return C

    def diagonal(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        d = np.ones(len(A))
        for custom in self.custom:
            d *= custom.diagonal(A)
        return d if self.trend is None else d + self.trend.diagonal(h, A)


def blocks(n: int, columns: int) -> Iterator[tuple[int, int]]:
    """Cut n rows into blocks whose temporaries stay in the processor's cache: 2 to 3 times faster at n = 1000."""
    rows = max(min(BLOCK, CACHED // max(columns, 1)), 16)
    for i in range(0, n, rows):
        yield i, min(i + rows, n)


def covariance(
    kernel: Kernel, kappa0: float, h: FloatArray, X: FloatArray, diagonal: FloatArray
) -> FloatArray:  # (n, n), Fortran order
    """Return kappa0 C + diag(diagonal): its lower triangle alone is filled, which is all that a factor reads."""
    n = len(X)
    K = np.empty((n, n), order="F")
    pairs = [(a, lifted(a)) for a in (r.scaled(h, X) for r in kernel.radial)]
    for i, j in blocks(n, n):
        C = kernel.product(h, [(a[i:j], b[i:]) for a, b in pairs], X[i:j], X[i:])
        if kernel.trend is not None:
            C += kernel.trend.value(h, X[i:j], X[i:])
        np.multiply(C, kappa0, out=K.T[i:j, i:])
    K[np.diag_indices(n)] = kappa0 * kernel.diagonal(h, X) + diagonal
    return K
