"""DIRECT: global search of the unit cube by dividing rectangles, one batch of evaluations per round.

[J93] Jones, Perttunen, Stuckman: Lipschitzian Optimization Without the Lipschitz Constant, 1993.

    symbol   shape    meaning
    C        (n, d)   centers of the rectangles that fill the cube
    T        (n, d)   how often each side was cut in three; within a rectangle, these differ by at most one
    f        (n,)     loss at the centers
    depth             number of cuts of a rectangle, over all sides; it determines the size, half the diagonal
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from boca.domain.space import FloatArray, IntArray

Loss: TypeAlias = Callable[[FloatArray], FloatArray]  # (m, d) -> (m,)

LEAST_IMPROVEMENT = 1e-4  # of the least loss, by which a rectangle may improve it if it is divided: as in [J93]
SMALLEST_RECTANGLE = 1e-6  # at this size of the best one the search ends: its location is known to six digits
_EQUAL_LOSSES = 1e-13  # apart at most: rounding must not decide which of several equal rectangles is divided


def minimize(loss: Loss, d: int, *, evaluations: int) -> FloatArray:  # (d,)
    """Return the best point found; the round that exceeds the number of evaluations is completed."""
    C, T = np.full((1, d), 0.5), np.zeros((1, d), dtype=np.int_)
    heaps = {0: [(float(loss(C)[0]), 0)]}  # by depth: losses and rows, the least loss first
    while True:
        (_, best), depth = min((heap[0], depth) for depth, heap in heaps.items())
        if len(C) > evaluations or size(depth, d) < SMALLEST_RECTANGLE:
            return np.asarray(C[best])
        chosen = []
        for depth in potentially_optimal({depth: heap[0][0] for depth, heap in heaps.items()}, d):
            chosen += _best_of(heaps, depth)
        rows = [row for _, row in chosen]
        T[rows], T_new, C_new, f_new = divide(loss, C[rows], T[rows])
        n = len(C)
        C, T = np.concatenate([C, C_new]), np.concatenate([T, T_new])
        new = zip(f_new.tolist(), range(n, len(C)), strict=True)
        depths = [*T[rows].sum(axis=1).tolist(), *T_new.sum(axis=1).tolist()]
        for depth, rectangle in zip(depths, [*chosen, *new], strict=True):
            heappush(heaps.setdefault(depth, []), rectangle)


def _best_of(heaps: dict[int, list[tuple[float, int]]], depth: int) -> list[tuple[float, int]]:
    """Remove and return the rectangles with the least loss among those of one size."""
    heap = heaps[depth]
    limit = heap[0][0] + _EQUAL_LOSSES
    best = []
    while heap and heap[0][0] <= limit:
        best.append(heappop(heap))
    if not heap:
        del heaps[depth]
    return best


@cache
def size(depth: int, d: int) -> float:
    """Return half the diagonal; `depth % d` sides were cut once more than the others."""
    more = depth % d
    return 0.5 * math.sqrt(d - more + more / 9.0) / 3.0 ** (depth // d)


def potentially_optimal(least: Mapping[int, float], d: int) -> list[int]:
    """Return the depths whose least loss is the best for some slope K > 0.  [J93, def. 3.1]

    At slope K, the loss in a rectangle may be as low as f - K size: so a best one is on the lower right of the convex
    hull of sizes and losses.  That loss must also be below the least of all by a share of LEAST_IMPROVEMENT.
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
    wanted = least[hull[-1][0]] - LEAST_IMPROVEMENT * abs(least[hull[-1][0]])
    return [depth for depth, K in hull if least[depth] - K * size(depth, d) <= wanted]


def divide(loss: Loss, C: FloatArray, T: IntArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Cut rectangles (k, d) in three along all their longest sides, first along those with the best new points.

    Returns the cuts of the middle thirds (k, d), then cuts (m, d), centers (m, d) and losses (m,) of the outer ones.
    The earlier a side is cut, the larger its outer thirds: the best new points get the largest rectangles.
    """
    fewest = T.min(axis=1)
    longest = fewest[:, None] == T
    row, side = np.nonzero(longest)
    step = np.zeros((len(row), C.shape[1]))
    step[np.arange(len(row)), side] = 1.0 / 3.0 ** (fewest[row] + 1)
    centers = np.concatenate([C[row] + step, C[row] - step])
    f = loss(centers)
    better = np.full(C.shape, np.inf)
    better[row, side] = f.reshape(2, -1).min(axis=0)
    turn = better.argsort(axis=1, kind="stable").argsort(axis=1)
    outer = T[row] + (turn[row] <= turn[row, side][:, None])
    return T + longest, np.concatenate([outer, outer]), centers, f
