"""The Cholesky factor of a covariance matrix, and what can be done with it: extend, whiten, solve, invert.

K  (n, n)  symmetric positive definite
L  (n, n)  its lower Cholesky factor, in Fortran order; what lies above the diagonal is never read
W  (n, n)  L^-1, likewise: a product with it takes between a quarter and all of the time of a solve with L, depending
           on the processor

SciPy is imported where it is used: imported here, its linear algebra would be two thirds of the time of `import boca`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]

JITTER_STEPS = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # tried in turn; with the last, any kernel matrix has a factor

_PRODUCTS_UP_TO_SPREAD = 1e3  # beyond this spread, products with W lose digits that solves keep
_INVERSE_FROM_COLUMN_SHARE = 0.25  # of n: with fewer columns, computing an inverse costs more than it saves
_INVERTED_WHOLE_UP_TO = 64  # rows: splitting smaller triangles in halves takes longer


@dataclass(frozen=True)
class Factor:
    """The Cholesky factor of K, with its inverse if products with that are as accurate as solves."""

    L: FloatArray

    @cached_property
    def spread(self) -> float:
        """Largest over smallest entry on the diagonal of L: how close to singular K is."""
        diagonal = np.diagonal(self.L)
        return float(np.max(diagonal, initial=0.0) / np.min(diagonal, initial=np.inf))

    @cached_property
    def W(self) -> FloatArray | None:  # noqa: N802
        """L^-1, computed when many columns first need it; None if K is too close to singular for products."""
        return _inverse(self.L) if self.spread <= _PRODUCTS_UP_TO_SPREAD else None

    @cached_property
    def _single(self) -> NDArray[np.float32]:
        """W in single precision."""
        if self.W is None:
            raise np.linalg.LinAlgError("the kernel matrix is too close to singular for single precision")
        return self.W.astype(np.float32, order="F")

    def block(self, start: int, end: int) -> Factor:
        """Return the block of L from row and column `start` to `end`; with start 0, the factor of that block of K."""
        if end - start == len(self.L):
            return self
        return Factor(np.asfortranarray(self.L[start:end, start:end]))

    def extended(self, B: FloatArray, C: FloatArray) -> Factor:
        """Return the factor of [[K, B], [B', C]] without factoring K again.

        B is (n, m), C is (m, m); the result has n + m rows.
        """
        n, m = B.shape
        V = self.whiten(B)  # (n, m)
        corner, _ = factor(C - V.T @ V, level=float(np.mean(np.diagonal(C))))
        L = np.zeros((n + m, n + m), order="F")
        L[:n, :n] = self.L
        L[n:, :n] = V.T
        L[n:, n:] = corner.L
        return Factor(L)

    def whiten(self, B: FloatArray) -> FloatArray:  # (n, m) -> (n, m)
        """Return L^-1 B, in single precision if B is; that needs W."""
        return self._applied(B, transposed=False)

    def solve_transposed(self, B: FloatArray) -> FloatArray:  # (n, m) -> (n, m)
        """Return L^-T B."""
        return self._applied(B, transposed=True)

    def _applied(self, B: FloatArray, *, transposed: bool) -> FloatArray:
        from scipy.linalg.blas import dtrmm, dtrsm, strmm

        if B.dtype == np.float32:
            return np.asarray(strmm(1.0, self._single, B, lower=1, trans_a=transposed))
        is_inverted = "W" in self.__dict__ or B.shape[1] >= _INVERSE_FROM_COLUMN_SHARE * len(self.L)
        if is_inverted and self.W is not None:
            return np.asarray(dtrmm(1.0, self.W, B, lower=1, trans_a=transposed))
        return np.asarray(dtrsm(1.0, self.L, B, lower=1, trans_a=transposed))

    def multiply_transposed(self, b: FloatArray) -> FloatArray:  # (n,) -> (n,)
        """Return L' b, which `solve_transposed` takes back to b."""
        from scipy.linalg.blas import dtrmv

        return np.asarray(dtrmv(self.L, b, lower=1, trans=1))

    def solve(self, B: FloatArray) -> FloatArray:  # (n,) or (n, m) -> the same shape
        """Return K^-1 B."""
        from scipy.linalg.lapack import dpotrs

        x, _ = dpotrs(self.L, B, lower=1)
        return np.asarray(x).reshape(B.shape)

    def inverse(self) -> FloatArray:  # (n, n)
        """Return the lower triangle of K^-1; the entries above the diagonal are undefined."""
        from scipy.linalg.lapack import dlauum, dpotri

        K_inv, _ = dpotri(self.L, lower=1) if self.W is None else dlauum(self.W, lower=1)
        return np.asarray(K_inv)

    def log_determinant(self) -> float:
        """Return log det K."""
        return 2.0 * float(np.sum(np.log(np.diagonal(self.L))))


def factor(K: FloatArray, level: float | None = None) -> tuple[Factor, float]:
    """Return the factor of K (n, n) and what was added to its diagonal; only the lower triangle is read.

    The jitter is the smallest of `JITTER_STEPS`, times `level` or the mean diagonal, with which K has a factor.
    """
    from scipy.linalg.lapack import dpotrf

    if level is None:
        level = float(np.mean(np.diagonal(K))) if len(K) else 0.0
    for step in JITTER_STEPS:
        jitter = step * level
        A = np.array(K, order="F")
        A[np.diag_indices(len(K))] += jitter
        L, info = dpotrf(A, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return Factor(L), jitter
    raise np.linalg.LinAlgError("the kernel matrix is not positive definite even with a jitter of 1 %")


def _inverse(L: FloatArray) -> FloatArray:  # (n, n) -> (n, n)
    """Return L^-1, by halves: most of it is then products, and takes half of LAPACK's time at n = 1000."""
    W = np.zeros(L.shape, order="F")
    if len(L):
        _fill_inverse(W, L)
    return W


def _fill_inverse(W: FloatArray, L: FloatArray) -> None:  # (n, n), (n, n)
    from scipy.linalg.blas import dtrmm
    from scipy.linalg.lapack import dtrtri

    if len(L) <= _INVERTED_WHOLE_UP_TO:
        inverse, _ = dtrtri(L, lower=1)
        W[...] = np.tril(inverse)  # memory above the diagonal may hold numbers that single precision does not
        return
    k = len(L) // 2
    _fill_inverse(W[:k, :k], L[:k, :k])
    _fill_inverse(W[k:, k:], L[k:, k:])
    corner = dtrmm(-1.0, W[k:, k:], L[k:, :k], lower=1)
    W[k:, :k] = dtrmm(1.0, W[:k, :k], corner, side=1, lower=1, overwrite_b=1)
