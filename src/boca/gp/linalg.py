"""The linear algebra behind six verbs, factor, extend, whiten, solve, invert, log-determinant, and ways back.

K  (n, n)  symmetric positive definite
L  (n, n)  its lower Cholesky factor, in Fortran order; what lies above the diagonal is never read

SciPy is imported where it is used: its linear algebra is two thirds of the time that `import boca` would take.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]

LADDER = (0.0, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2)  # of the mean diagonal; the last makes any kernel matrix factor

_BLOCK = 128


def factor(K: FloatArray, level: float | None = None) -> tuple[FloatArray, float]:
    """Return the Cholesky factor of K (n, n) and what was added to its diagonal; the lower triangle is read.

    It climbs a ladder of jitter, in units of `level` or of the mean diagonal, only as far as it must.
    """
    from scipy.linalg.lapack import dpotrf

    if level is None:
        level = float(np.mean(np.diagonal(K))) if len(K) else 0.0
    for step in LADDER:
        jitter = step * level
        A = np.array(K, order="F")
        A[np.diag_indices(len(K))] += jitter
        L, info = dpotrf(A, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return L, jitter
    raise np.linalg.LinAlgError("the kernel matrix is not positive definite even with a jitter of 1 %")


def extend(L: FloatArray, B: FloatArray, C: FloatArray) -> FloatArray:
    """Return the factor of [[K, B], [B', C]] from that of K: new rows without a new factor.

    B is (n, m), C is (m, m); the result is (n + m, n + m).
    """
    n, m = B.shape
    V = whiten(L, B)  # (n, m)
    corner, _ = factor(C - V.T @ V, level=float(np.mean(np.diagonal(C))))
    longer = np.zeros((n + m, n + m), order="F")
    longer[:n, :n] = L
    longer[n:, :n] = V.T
    longer[n:, n:] = corner
    return longer


def whiten(L: FloatArray, B: FloatArray) -> FloatArray:  # (n, n), (n, m) -> (n, m)
    """Return L^-1 B."""
    from scipy.linalg.blas import dtrsm

    return np.asarray(dtrsm(1.0, L, B, lower=1))


def unwhiten(L: FloatArray, B: FloatArray) -> FloatArray:  # (n, n), (n, m) -> (n, m)
    """Return L^-T B."""
    from scipy.linalg.blas import dtrsm

    return np.asarray(dtrsm(1.0, L, B, lower=1, trans_a=1))


def rewhiten(L: FloatArray, b: FloatArray) -> FloatArray:  # (n, n), (n,) -> (n,)
    """Return L' b: what `unwhiten` would make b of."""
    from scipy.linalg.blas import dtrmv

    return np.asarray(dtrmv(L, b, lower=1, trans=1))


def solve(L: FloatArray, B: FloatArray) -> FloatArray:  # (n, n), (n,) or (n, m) -> the same shape
    """Return K^-1 B."""
    from scipy.linalg.lapack import dpotrs

    x, _ = dpotrs(L, B, lower=1)
    return np.asarray(x).reshape(B.shape)


def invert_lower(L: FloatArray, *, in_place: bool = False) -> FloatArray:  # (n, n) -> (n, n)
    """Return the lower triangle of K^-1, in place of L where that is allowed; above the diagonal it means nothing."""
    from scipy.linalg.lapack import dpotri

    K_inv, _ = dpotri(L, lower=1, overwrite_c=in_place)
    return np.asarray(K_inv)


def invert(L: FloatArray) -> FloatArray:  # (n, n) -> (n, n)
    """Return K^-1, both triangles filled, a block at a time: 30 times faster than by masks at n = 1000."""
    K_inv = invert_lower(L)
    for i in range(0, len(L), _BLOCK):
        j = i + _BLOCK
        K_inv[i:j, j:] = K_inv[j:, i:j].T
        corner = np.tril(K_inv[i:j, i:j])
        K_inv[i:j, i:j] = corner + np.tril(corner, -1).T
    return K_inv


def log_determinant(L: FloatArray) -> float:
    """Return log det K."""
    return 2.0 * float(np.sum(np.log(np.diagonal(L))))
