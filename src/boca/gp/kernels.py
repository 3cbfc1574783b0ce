"""Kernels: products of radial factors, each with one length scale per dimension, times other factors, plus terms.

A factor multiplies, a term is added; each declares its parameters.  This module has two: `Jump`, a factor that
separates one class of inputs from the rest, and `Trend`, a term that is linear in features which vanish at an origin.

    symbol   shape    meaning
    A, B     (n, D)   inputs, one row per point
    h        (H,)     length scales, of which column j is divided by h[bandwidths[j]]; then what factors and terms have
    r^2      (n, m)   squared distance in length scales
    s        (n, m)   the same in units in which phi is simplest
    phi      (n, m)   correlation of one factor, phi(0) = 1

A categorical coordinate enters as indicator columns scaled by 1/sqrt(2) that share one length scale in a squared
exponential factor, which is exp(-[a != b] / (2 h^2)).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.gp.linalg import FloatArray
from boca.gp.parameters import Block, strength

BLOCK_ROWS = 128  # at most, however short they are
BLOCK_NUMBERS = 2**16  # of a block: half a megabyte, which stays in the processor's cache
_LEAST_BLOCK_ROWS = 16  # however long they are: many small blocks cost more than the cache saves

_LARGEST_STRENGTH = 20.0  # of a jump or a trend: exp(-20) is no correlation at all
_STRENGTH_RATE = 2.0  # of the exponential prior on either, which holds a strength at zero unless the data support it


def augmented(B: FloatArray) -> FloatArray:  # (m, D) -> (m, D + 2)
    """Return the rows (b, 1, |b|^2), from which `squared_distances` takes one product."""
    D = B.shape[1]
    L = np.empty((len(B), D + 2))
    L[:, :D] = B
    L[:, D] = 1.0
    np.einsum("ij,ij->i", B, B, out=L[:, D + 1])
    return L


def squared_distances(
    A: FloatArray, B: FloatArray, unit: float = 1.0, *, single: bool = False
) -> FloatArray:  # (n, D), (m, D + 2) -> (n, m)
    """Return unit |a - b|^2 for all pairs with augmented b, as the product with (-2a, |a|^2, 1): one pass, not four.

    Rounding leaves some distances below zero: their absolute value takes a fifth of the time of clipping.  `single`
    returns single precision.  The product itself is in double precision, because large numbers cancel in it.
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
    """Return sum_rc M_rc (a_r - b_c)^2 in every column, without an (n, m) array per dimension."""
    squares = M.sum(axis=1) @ (A * A) + M.sum(axis=0) @ (B * B)
    return np.asarray(squares - 2.0 * np.einsum("ij,ij->j", A, M @ B))


class Shape(Protocol):
    """A correlation as a function of the squared distance; it overwrites its arguments.

    With arrays of this size, the time goes into passes through memory.
    """

    unit: ClassVar[float]
    """s divided by the squared distance, chosen so that phi is as simple as possible."""

    def parts(self, s: FloatArray, /) -> tuple[FloatArray, FloatArray | None]:
        """Return e and p with phi = p exp(e), so that a product of factors needs a single exp; p is None for 1."""
        ...

    def slope(self, e: FloatArray, p: FloatArray | None, /) -> FloatArray | float:
        """Return d log(phi) / d r^2 from the parts of phi; it is finite at r = 0."""
        ...


class SquaredExponential:
    """exp(-s)."""

    unit: ClassVar[float] = 0.5

    def parts(self, s: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        return np.negative(s, out=s), None

    def slope(self, e: FloatArray, p: FloatArray | None) -> FloatArray | float:
        return -0.5


class Matern52:
    """(1 + t + s / 3) exp(-t) with t = sqrt(s)."""

    unit: ClassVar[float] = 5.0

    def parts(self, s: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        t = np.sqrt(s)
        s *= 1.0 / 3.0
        s += t
        s += 1.0
        return np.negative(t, out=t), s

    def slope(self, e: FloatArray, p: FloatArray | None) -> FloatArray | float:
        assert p is not None
        g = e * (5.0 / 6.0)
        g -= 5.0 / 6.0
        return np.divide(g, p, out=g)


Profile: TypeAlias = Literal["se", "matern52"]
SHAPES: dict[Profile, Shape] = {"se": SquaredExponential(), "matern52": Matern52()}


@dataclass(frozen=True)
class Radial:
    """One factor phi(r) on some columns of the input."""

    profile: Profile
    columns: tuple[int, ...]
    bandwidths: tuple[int, ...]

    @cached_property
    def where(self) -> slice | list[int]:
        """The columns, as a slice if they are adjacent: a view instead of a copy."""
        first, count = self.columns[0], len(self.columns)
        return slice(first, first + count) if self.columns == tuple(range(first, first + count)) else list(self.columns)

    def scale(self, h: FloatArray) -> FloatArray:  # (columns,)
        """Return the length scale of every column."""
        return h[list(self.bandwidths)]

    def scaled(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n, columns)
        return A[:, self.where] / self.scale(h)

    @property
    def shape(self) -> Shape:
        return SHAPES[self.profile]


class KernelFactor(Protocol):
    """A covariance that multiplies the radial factors; its parameters are h[at:], as many as its blocks have.

    It may have length scales too, which it names in `bandwidths` as radial factors do.
    """

    @property
    def bandwidths(self) -> tuple[int, ...]: ...
    @property
    def blocks(self) -> tuple[Block, ...]: ...
    def value(self, h: FloatArray, A: FloatArray, B: FloatArray, /) -> FloatArray: ...  # (n, D), (m, D) -> (n, m)
    def exponent(self, h: FloatArray, A: FloatArray, B: FloatArray, /) -> FloatArray | None:
        """Return the log of the value if it costs less than the value: a product of factors needs a single exp."""
        ...

    def diagonal(self, h: FloatArray, A: FloatArray, /) -> FloatArray: ...  # (n, D) -> (n,)
    def add_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, B: FloatArray, G: FloatArray, /) -> None:
        """Add to `by_h` the sum of G d log(value) / dh over the pairs (a, b); G (n, m) has the kernel in it.

        The derivative by a length scale is the one by its logarithm.
        """
        ...

    def add_diagonal_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, g: FloatArray, /) -> None:
        """Add to `by_h` the sum of g d log(diagonal) / dh; g (n,) has the diagonal in it."""
        ...


class KernelTerm(Protocol):
    """A covariance that is added; it takes inputs as `prepared` returns them, computed once for many pairs."""

    @property
    def blocks(self) -> tuple[Block, ...]: ...
    def prepared(self, A: FloatArray, /) -> FloatArray: ...  # (n, D) -> (n, k)
    def value(self, h: FloatArray, P: FloatArray, Q: FloatArray, /, scale: float = 1.0) -> FloatArray:
        """Return scale times the covariance, (n, m)."""
        ...

    def diagonal(self, h: FloatArray, P: FloatArray, /) -> FloatArray: ...  # (n, k) -> (n,)
    def add_gradient(
        self, by_h: FloatArray, h: FloatArray, P: FloatArray, Q: FloatArray, G: FloatArray, /, scale: float = 1.0
    ) -> float:
        """Add to `by_h` scale times the sum of G dvalue / dh over the pairs; return scale times the sum of G value."""
        ...

    def add_diagonal_gradient(self, by_h: FloatArray, h: FloatArray, P: FloatArray, g: FloatArray, /) -> None:
        """Add to `by_h` the sum of g ddiagonal / dh; g is (n,)."""
        ...


@dataclass(frozen=True)
class Custom:
    """A factor without parameters, from outside: any positive semi-definite function of some columns."""

    bandwidths: ClassVar[tuple[int, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = ()
    function: Callable[[FloatArray, FloatArray], FloatArray]  # (n, k), (m, k) -> (n, m)
    variance: Callable[[FloatArray], FloatArray]  # (n, k) -> (n,), its diagonal
    columns: tuple[int, ...]

    def value(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        return self.function(A[:, list(self.columns)], B[:, list(self.columns)])

    def exponent(self, h: FloatArray, A: FloatArray, B: FloatArray) -> None:
        """Only the value is known."""

    def diagonal(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        return self.variance(A[:, list(self.columns)])

    def add_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, B: FloatArray, G: FloatArray) -> None:
        """There is nothing to learn."""

    def add_diagonal_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, g: FloatArray) -> None:
        """There is nothing to learn."""


@dataclass(frozen=True)
class Jump:
    """A factor exp(-h[at]) between inputs of two classes; a column of zeros and ones says which is which."""

    bandwidths: ClassVar[tuple[int, ...]] = ()
    blocks: ClassVar[tuple[Block, ...]] = (strength("jump", high=_LARGEST_STRENGTH, rate=_STRENGTH_RATE),)
    column: int
    at: int

    def value(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        return np.where(self.differ(A, B), np.exp(-h[self.at]), 1.0)

    def exponent(self, h: FloatArray, A: FloatArray, B: FloatArray) -> None:
        """The value costs no exp of an array."""

    def diagonal(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        return np.ones(len(A))

    def add_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, B: FloatArray, G: FloatArray) -> None:
        by_h[self.at] -= float(G[self.differ(A, B)].sum())

    def add_diagonal_gradient(self, by_h: FloatArray, h: FloatArray, A: FloatArray, g: FloatArray) -> None:
        """The diagonal is one."""

    def differ(self, A: FloatArray, B: FloatArray) -> NDArray[np.bool_]:  # (n, m)
        return np.not_equal(A[:, self.column, None], B[None, :, self.column])


@dataclass(frozen=True)
class Trend:
    """A term h[at] phi(a) . phi(b): a function that is linear in phi, with unknown slopes.

    phi are the distances from an origin and their squares, so the term is zero if either input is at the origin.
    """

    blocks: ClassVar[tuple[Block, ...]] = (
        strength("trend", high=_LARGEST_STRENGTH, rate=_STRENGTH_RATE, unit="signal"),
    )
    columns: tuple[int, ...]
    origin: tuple[float, ...]
    at: int

    def prepared(self, A: FloatArray) -> FloatArray:  # (n, D) -> phi (n, 2 columns)
        away = A[:, list(self.columns)] - np.array(self.origin)
        return np.hstack([away, away * away])

    def value(self, h: FloatArray, P: FloatArray, Q: FloatArray, scale: float = 1.0) -> FloatArray:  # (n, m)
        return np.asarray((scale * h[self.at] * P) @ Q.T)

    def diagonal(self, h: FloatArray, P: FloatArray) -> FloatArray:  # (n,)
        return np.asarray(h[self.at] * np.square(P).sum(axis=1))

    def add_gradient(
        self, by_h: FloatArray, h: FloatArray, P: FloatArray, Q: FloatArray, G: FloatArray, scale: float = 1.0
    ) -> float:
        by_strength = scale * float(np.einsum("ij,ij->", P, G @ Q))
        by_h[self.at] += by_strength
        return float(h[self.at] * by_strength)

    def add_diagonal_gradient(self, by_h: FloatArray, h: FloatArray, P: FloatArray, g: FloatArray) -> None:
        by_h[self.at] += float(g @ np.square(P).sum(axis=1))


@dataclass(frozen=True)
class Kernel:
    """The product of its factors, plus its terms; with only radial factors, it is 1 on the diagonal."""

    radial: tuple[Radial, ...]
    factors: tuple[KernelFactor, ...] = ()
    terms: tuple[KernelTerm, ...] = ()

    @property
    def size(self) -> int:
        """How many length scales there are."""
        named = [*(r.bandwidths for r in self.radial), *(f.bandwidths for f in self.factors)]
        return 1 + max((k for bandwidths in named for k in bandwidths), default=-1)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The parameters that follow the length scales in h."""
        return (
            *(b for factor in self.factors for b in factor.blocks),
            *(b for term in self.terms for b in term.blocks),
        )

    @property
    def strengths(self) -> int:
        """How many numbers follow the length scales in h."""
        return sum(block.size for block in self.blocks)

    def value(self, h: FloatArray, A: FloatArray, B: FloatArray) -> FloatArray:  # (n, D), (m, D) -> (n, m)
        scaled = [(r.scaled(h, A), augmented(r.scaled(h, B))) for r in self.radial]
        C = self.product(h, scaled, A, B)
        for term in self.terms:
            C += term.value(h, term.prepared(A), term.prepared(B))
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
        """Return the kernel without its terms.

        Args:
            h: length scales, and the parameters of the factors.
            scaled: the columns of A and B of each radial factor, in length scales, those of B augmented.
            A: inputs of the rows.
            B: inputs of the columns.
            slopes: a list that gets d log(phi) / d r^2 of every radial factor, (n, m) or a number.
            single: whether to compute in single precision, in which exp takes a fifth of the time; for kernels with
                radial factors only.
        """
        exponent: FloatArray | None = None
        C: FloatArray | None = None
        for radial, (a, b) in zip(self.radial, scaled, strict=True):
            shape = radial.shape
            e, p = shape.parts(squared_distances(a, b, shape.unit, single=single))
            if slopes is not None:
                slopes.append(shape.slope(e, p))
            exponent = e if exponent is None else np.add(exponent, e, out=exponent)
            if p is not None:
                C = p if C is None else np.multiply(C, p, out=C)
        logs = [factor.exponent(h, A, B) for factor in self.factors]
        for log in logs:
            if log is not None:
                exponent = log if exponent is None else np.add(exponent, log, out=exponent)
        if exponent is not None:
            np.exp(exponent, out=exponent)
            C = exponent if C is None else np.multiply(C, exponent, out=C)
        if C is None:
            C = np.ones((len(A), len(B)))
        for factor, log in zip(self.factors, logs, strict=True):
            if log is None:
                C *= factor.value(h, A, B)
        return C

    def diagonal(self, h: FloatArray, A: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        d = np.ones(len(A))
        for factor in self.factors:
            d *= factor.diagonal(h, A)
        for term in self.terms:
            d = d + term.diagonal(h, term.prepared(A))
        return d


def blocks(n: int, columns: int) -> Iterator[tuple[int, int]]:
    """Cut n rows into blocks that stay in the processor's cache, which is 2 to 3 times faster at n = 1000."""
    rows = max(min(BLOCK_ROWS, BLOCK_NUMBERS // max(columns, 1)), _LEAST_BLOCK_ROWS)
    for i in range(0, n, rows):
        yield i, min(i + rows, n)


def covariance(
    kernel: Kernel, kappa0: float, h: FloatArray, X: FloatArray, diagonal: FloatArray
) -> FloatArray:  # (n, n), Fortran order
    """Return kappa0 C + diag(diagonal); only the lower triangle is filled, because a factor reads no more."""
    n = len(X)
    K = np.empty((n, n), order="F")
    pairs = [(a, augmented(a)) for a in (r.scaled(h, X) for r in kernel.radial)]
    prepared = [(term, term.prepared(X)) for term in kernel.terms]
    for i, j in blocks(n, n):
        C = kernel.product(h, [(a[i:j], b[i:]) for a, b in pairs], X[i:j], X[i:])
        for term, P in prepared:
            C += term.value(h, P[i:j], P[i:])
        np.multiply(C, kappa0, out=K.T[i:j, i:])
    K[np.diag_indices(n)] = kappa0 * kernel.diagonal(h, X) + diagonal
    return K
