"""First-order and total Sobol indices of functions on the unit cube.

symbol   shape    meaning
A, B     (m, d)   two independent designs
AB_j     (m, d)   A with column j of B
f        (m, k)   k functions at the rows of a design
V        (k,)     their variances over the cube
S        (d, k)   first-order indices: the share of V that parameter j explains alone  [Saltelli et al. 2010]
T        (d, k)   total indices: the share that is left when all others are known  [Jansen 1999]

The designs are scrambled Sobol points with a fixed seed, so the same functions have the same indices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from boca.domain.space import FloatArray

_EVALUATIONS = 2**14  # of each function: a second for a thousand results and 64 functions
_MOST_ROWS, _LEAST_ROWS = 2**11, 2**7  # of a design: few parameters need no more, many must not have fewer
_CHUNK = 1024  # rows at a time, which bounds the memory
_FLAT = 1e-24  # of the mean square: below that, a variance is rounding

Functions = Callable[[FloatArray], FloatArray]
"""From points (m, d) to values (m, k)."""


@dataclass(frozen=True)
class Indices:
    """Both indices of every parameter, for every function; zero for a function that is constant."""

    first: FloatArray  # (d, k)
    total: FloatArray  # (d, k)


def indices(functions: Functions, d: int) -> Indices:
    """Return the Sobol indices of functions of d independent uniform parameters."""
    both = points(rows_for(d), 2 * d, seed=0)
    A, B = both[:, :d], both[:, d:]
    f_A, f_B = _values(functions, A), _values(functions, B)
    every = np.vstack([f_A, f_B])
    middle, V = every.mean(axis=0), every.var(axis=0)
    is_flat = np.square(every).mean(axis=0) * _FLAT >= V
    V = np.where(is_flat, 1.0, V)
    S, T = np.zeros((d, len(V))), np.zeros((d, len(V)))
    for j in range(d):
        AB = A.copy()
        AB[:, j] = B[:, j]
        f_AB = _values(functions, AB)
        S[j] = np.mean((f_B - middle) * (f_AB - f_A), axis=0) / V
        T[j] = np.mean(np.square(f_A - f_AB), axis=0) / (2.0 * V)
    S[:, is_flat] = T[:, is_flat] = 0.0
    return Indices(np.clip(S, 0.0, 1.0), np.minimum(T, 1.0))


def rows_for(d: int) -> int:
    """Return how many rows a design has: a power of two, fewer for more parameters."""
    exponent = int(np.log2(_EVALUATIONS / (d + 2)))
    return int(min(max(2**exponent, _LEAST_ROWS), _MOST_ROWS))


def points(count: int, d: int, *, seed: int) -> FloatArray:  # (count, d)
    """Return scrambled Sobol points; `count` is a power of two."""
    from scipy.stats import qmc

    engine = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed))
    return np.asarray(engine.random_base2(count.bit_length() - 1))


def _values(functions: Functions, U: FloatArray) -> FloatArray:  # (m, d) -> (m, k)
    return np.vstack([functions(U[i : i + _CHUNK]) for i in range(0, len(U), _CHUNK)])
