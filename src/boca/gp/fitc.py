"""Many results in the form of few: a GP on thousands of observations that costs what one on a thousand does.

The posterior given all n results is approximated from the values u of the latent function at an active set of a results
(FITC, Snelson and Ghahramani 2006): what u leaves unknown of a result counts as noise of its own.

    symbol   shape    meaning
    U        (a, D)   inputs of the active results
    lam      (n,)     variance of a result given u: what u leaves unknown, and the noise
    A        (a, n)   L_u^-1 K_uf diag(lam)^-1/2, with L_u the Cholesky factor of K_uu
    Q        (a, a)   A A'
    R        (a, a)   L_u Q^-1 L_u', the noise of the a pseudo-results that say the same as all n; below lam of theirs

An exact GP on the pseudo-results, whose covariance is K_uu + R, has this very posterior.  So all that a GP can do
is done by the same code.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.gp import linalg
from boca.gp.kernels import Kernel, covariance
from boca.gp.linalg import FloatArray
from boca.gp.model import GP

IntArray: TypeAlias = NDArray[np.intp]

_LEAST_NOISE = 1e-8  # of kappa0
_COLUMNS = 1024  # results handled at a time: the (a, n) array is never whole


def spread(kernel: Kernel, h: FloatArray, X: FloatArray, first: IntArray, count: int) -> IntArray:  # (count,)
    """Return indices of the `first` rows of X, then of those farthest from all taken before, in length scales."""
    scaled = np.hstack([r.scaled(h, X) for r in kernel.radial]) if kernel.radial else np.zeros((len(X), 1))
    square = np.einsum("ij,ij->i", scaled, scaled)
    chosen = list(first[:count]) or [0]
    nearest = np.full(len(X), np.inf)
    for k in range(count):
        if k == len(chosen):
            chosen.append(int(np.argmax(nearest)))
        away = scaled @ (-2.0 * scaled[chosen[k]])
        away += square
        away += square[chosen[k]]
        np.minimum(nearest, np.maximum(away, 0.0, out=away), out=nearest)
        nearest[chosen[k]] = -1.0  # a twin of a chosen row may follow, the row itself may not
    return np.array(chosen, dtype=np.intp)


def compressed(
    kernel: Kernel,
    X: FloatArray,
    y: FloatArray,
    active: IntArray,
    *,
    kappa0: float,
    h: FloatArray,
    eta2: float,
    m: float | None = None,
    noise: FloatArray | None = None,
) -> GP:
    """Return the GP on all of X and y through the results at `active`; `m=None` estimates the mean."""
    U = X[active]
    eta2 = max(eta2, _LEAST_NOISE * kappa0)  # with none at all, u would leave nothing unknown of an active result
    known = np.zeros(len(y)) if noise is None else noise
    K_uu = covariance(kernel, kappa0, h, U, np.zeros(len(U)))
    of_u, jitter = linalg.factor(K_uu, level=1e-2 * eta2)
    targets = np.column_stack([np.ones_like(y), y])
    Q = np.zeros((len(U), len(U)))
    a = np.zeros((len(U), 2))
    b = np.zeros((2, 2))
    for i in range(0, len(y), _COLUMNS):
        rows = slice(i, i + _COLUMNS)
        A = of_u.whiten(kappa0 * kernel.value(h, U, X[rows]))
        left = np.maximum(kappa0 * kernel.diagonal(h, X[rows]) - np.einsum("ij,ij->j", A, A), 0.0)
        root = 1.0 / np.sqrt(left + eta2 + known[rows])
        A *= root
        v = targets[rows] * root[:, None]
        Q += A @ A.T
        a += A @ v
        b += v.T @ v
    of_b, _ = linalg.factor(Q + np.eye(len(U)))
    w = of_b.whiten(a)
    if m is None:  # generalised least squares, K^-1 by the identity of Woodbury
        inner = b - w.T @ w
        m = float(inner[0, 1] / inner[0, 0])
    alpha = of_u.unwhiten(of_b.solve(a @ np.array([[-m], [1.0]])))[:, 0]
    of_q, _ = linalg.factor(Q)
    T = of_q.whiten(np.tril(of_u.L).T)
    K_uu = np.tril(K_uu) + T.T @ T
    K_uu[np.diag_indices(len(U))] += jitter
    factor, _ = linalg.factor(K_uu)
    return GP(kernel, kappa0, h, eta2, m, U, factor, alpha)
