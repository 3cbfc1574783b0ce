"""DIRECT: global search of the unit cube by dividing rectangles, every round of it in one batch.

[J93] Jones, Perttunen, Stuckman: Lipschitzian Optimization Without the Lipschitz Constant, 1993.

    symbol   shape    meaning
    C        (n, d)   centres of the rectangles that fill the cube
    T        (n, d)   how often each side was cut in three; within a rectangle these differ by one at most
    f        (n,)     loss at the centres
    depth             cuts of all sides of a rectangle together, which fix its size: half the diagonal
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.space import FloatArray

IntArray: TypeAlias = NDArray[np.int_]
Loss: TypeAlias = Callable[[FloatArray], FloatArray]  # (m, d) -> (m,)

EPSILON = 1e-4  # share of the least loss by which a rectangle must promise to improve it
SMALLEST = 1e-6  # size of the best rectangle at which the search ends
_EQUAL = 1e-13  # losses that differ by no more than this are equal, and their rectangles divided together


def minimise(loss: Loss, d: int, *, evaluations: int) -> FloatArray:  # (d,)
    """Return the best point found; the round that exceeds the number of evaluations is completed, and the last."""
    C, T = np.full((1, d), 0.5), np.zeros((1, d), dtype=np.int_)
    heaps = {0: [(float(loss(C)[0]), 0)]}  # by depth: losses and rows, the least loss first
    while True:
        (_, best), depth = min((heap[0], depth) for depth, heap in heaps.items())
        if len(C) > evaluations or size(depth, d) < SMALLEST:
            return np.asarray(C[best])
        chosen = []
        for depth in potentially_optimal({depth: heap[0][0] for depth, heap in heaps.items()}, d):
            chosen += _best_of(heaps, depth)
        rows = [row for _, row in chosen]
        T[rows], T_new, C_new, f_new = divided(loss, C[rows], T[rows])
        n = len(C)
        C, T = np.concatenate([C, C_new]), np.concatenate([T, T_new])
        new = zip(f_new.tolist(), range(n, len(C)), strict=True)
        depths = [*T[rows].sum(axis=1).tolist(), *T_new.sum(axis=1).tolist()]
        for depth, rectangle in zip(depths, [*chosen, *new], strict=True):
            heappush(heaps.setdefault(depth, []), rectangle)


def _best_of(heaps: dict[int, list[tuple[float, int]]], depth: int) -> list[tuple[float, int]]:
    """Take the rectangles of the least loss out of those of one size."""
    heap = heaps[depth]
    limit = heap[0][0] + _EQUAL
    best = []
    while heap and heap[0][0] <= limit:
        best.append(heappop(heap))
    if not heap:
        del heaps[depth]
    return best


@cache
def size(depth: int, d: int) -> float:
    """Return half the diagonal: of d sides, `depth % d` are cut once more than the others."""
    more = depth % d
    return 0.5 * math.sqrt(d - more + more / 9.0) / 3.0 ** (depth // d)


def potentially_optimal(least: Mapping[int, float], d: int) -> list[int]:
    """Return the depths, of those with these least losses, that are the best for some slope K > 0.  [J93, def. 3.1]

    At slope K a rectangle may hold a loss of f - K size: it must be on the lower right of the convex hull of sizes and
    losses.  And it must promise less than the least loss of all by a share of EPSILON.
    """
    hull: list[tuple[int, float]] = []  # depth, and the slope to the larger one before: the largest K
    for depth in sorted(least):
        if hull and least[depth] >= least[hull[-1][0]]:
            continue
        slope = math.inf
        while hull:
            last, before = hull[-1]
            slope = (least[last] - least[depth]) / (size(last, d) - size(depth, d))
            if slope <= before:
                break
            hull.pop()
        hull.append((depth, slope))
    wanted = least[hull[-1][0]] - EPSILON * abs(least[hull[-1][0]])
    return [depth for depth, K in hull if least[depth] - K * size(depth, d) <= wanted]


def divided(loss: Loss, C: FloatArray, T: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Cut rectangles (k, d) in three along all their longest sides, first where the better of the new points is.

    Returns the cuts of the middle thirds (k, d), then cuts (m, d), centres (m, d) and losses (m,) of the outer ones.
    A side that is cut earlier leaves larger outer thirds: the best new points get the largest rectangles.
    """
    fewest = T.min(axis=1)
    longest = fewest[:, None] == T
    row, side = np.nonzero(longest)
    step = np.zeros((len(row), C.shape[1]))
    step[np.arange(len(row)), side] = 1.0 / 3.0 ** (fewest[row] + 1)
    centres = np.concatenate([C[row] + step, C[row] - step])
    f = loss(centres)
    better = np.full(C.shape, np.inf)
    better[row, side] = f.reshape(2, -1).min(axis=0)
    turn = better.argsort(axis=1, kind="stable").argsort(axis=1)
    outer = T[row] + (turn[row] <= turn[row, side][:, None])
    return T + longest, np.concatenate([outer, outer]), centres, f
