"""Correlations, and the information gap between a fidelity and the target.

symbol   shape    meaning
A, B     (n, k)   points, one per row
h        (k,)     length scales, or one number for all columns
r        (m,)     distances between z and z*
phi      (m,)     correlation, 1 at distance 0
xi       (m,)     information gap: 0 at the target, 1 where a query says nothing
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from boca.domain.errors import InvalidInput, one_of
from boca.domain.space import FloatArray
from boca.gp.kernels import Kernel, Profile, Radial

Covariance: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]  # (n, k), (m, k) -> (n, m)


def information_gap(
    kernel: Profile | Callable[[FloatArray], FloatArray], r: ArrayLike, *, h: float = 1.0
) -> FloatArray:  # (m,) -> (m,)
    """Return xi = sqrt(1 - phi(r)^2) at distances r from the target.  [K17, eq. 4]

    Args:
        kernel: "se", "matern52", or a function phi of an array of distances in length scales.
        r: distances.
        h: length scale.
    """
    distance = np.atleast_1d(np.asarray(r, dtype=float))
    if not (np.all(distance >= 0.0) and h > 0.0):
        raise InvalidInput(f"distances and h must be positive; got r={r!r} and h={h!r}. Pass distances, such as r=0.5.")
    if callable(kernel):
        phi = np.asarray(kernel(distance / h), dtype=float)
    else:
        phi = correlation(kernel, distance[:, None], np.zeros((1, 1)), h)[:, 0]
    if np.any(np.abs(phi) > 1.0):
        raise InvalidInput(
            f"phi must be a correlation, from -1 to 1; got {np.max(np.abs(phi)):.3g}. Divide it by phi(0)."
        )
    return np.asarray(np.sqrt(np.maximum(1.0 - phi * phi, 0.0)))


def correlation(
    kernel: Profile | Covariance, A: FloatArray, B: FloatArray, h: ArrayLike
) -> FloatArray:  # (n, k), (m, k) -> (n, m)
    """Return the kernel between the rows of A and B: one by name with length scales h, or a function of both."""
    if callable(kernel):
        return np.asarray(kernel(A, B), dtype=float)
    one_of(kernel, get_args(Profile), "kernel")
    columns = tuple(range(A.shape[1]))
    scales = np.broadcast_to(np.asarray(h, dtype=float), (len(columns),))
    if not np.all(scales > 0.0):
        raise InvalidInput(f"length scales must be positive; got {h!r}. Pass one number, or one per column.")
    return Kernel((Radial(kernel, columns, columns),)).value(scales, A, B)
