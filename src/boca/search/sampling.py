"""Points of a space that is no box: with conditions, with known constraints, or a list of rows.

symbol   shape    meaning
V        (m, d)   numbers in [0, 1], from which points are made
U        (m, d)   unit coordinates of points that exist; of inactive parameters, `INACTIVE`
"""

from __future__ import annotations

import numpy as np

from boca.domain.space import BoolArray, FloatArray, IntArray, Space

_SWITCHED = 0.2  # of the choices of a moved point: most stay as they are
_LEAST_SHARE = 0.5  # of the points that were wanted: with fewer from all over the space, a chain adds the rest
_CHAIN_MOVES = 64  # of a chain at a time
_CHAIN_ROUNDS = 40  # a guard: a chain that finds nothing new ends
_HALVINGS = (
    14  # of a move that leaves the feasible points: 2^-14 of the cube is as narrow as constraints are in practice
)
_DIFFERENCES = (-1.0, 6.0)  # powers of two: how often the difference of two points of a chain is taken as a move


def spread(space: Space, V: FloatArray, rng: np.random.Generator) -> FloatArray:  # (m, d) -> (k, d)
    """Return points all over the space, at most as many as V has rows, with a share of them in every branch.

    Under constraints, those that do not satisfy them are left out; if few do, a chain from known points adds others.
    """
    if space.is_list:
        rows = space.points()
        return rows[rng.permutation(len(rows))[: len(V)]]
    U = in_branches(space, V, rng)
    if not space.constraints:
        return U
    found = U[space.feasible(U)]
    if len(found) >= _LEAST_SHARE * len(V):
        return found
    return chain(space, np.vstack([found, _example(space)]), rng, int(_LEAST_SHARE * len(V)))


def _example(space: Space) -> FloatArray:  # (1, d) or (0, d)
    return np.empty((0, len(space))) if space.example is None else space.to_unit([space.example])


def in_branches(space: Space, V: FloatArray, rng: np.random.Generator) -> FloatArray:  # (m, d) -> (m, d)
    """Return a point for every row, a share of them in every branch; constraints may forbid them."""
    owner = _shares(space, len(V), rng)
    U = V.copy()
    for b, branch in enumerate(space.branches):
        here = np.flatnonzero(owner == b)
        layout = branch.layouts[rng.integers(len(branch.layouts), size=len(here))]
        U[here] = np.where(np.isnan(layout), V[here], layout)
    return snapped(space, U, V)


def _shares(space: Space, count: int, rng: np.random.Generator) -> IntArray:  # (count,)
    """Return a branch for each of so many points: a branch with more active parameters has more of them."""
    weight = np.array([1.0 + branch.active.sum() for branch in space.branches])
    ends = np.cumsum(weight) / weight.sum()
    return np.searchsorted(ends, (np.arange(count) + rng.random()) / count, side="right").clip(0, len(weight) - 1)


def snapped(space: Space, U: FloatArray, fill: FloatArray) -> FloatArray:  # (m, d), (m, d) or (d,) -> (m, d)
    """Return points that exist; a parameter that becomes active takes its coordinate from `fill`."""
    return space.snap(np.where(U < 0.0, fill, U) if space.optional.any() else U)


def around(space: Space, anchors: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:  # (a, d) -> (k, d)
    """Return points around the anchors, at distances from a thousandth to a third of the cube.

    A move that leaves the feasible points is halved until it does not.
    """
    anchors = anchors[space.feasible(anchors)] if len(anchors) else anchors
    if not len(anchors):
        return np.empty((0, len(space)))
    base = anchors[rng.integers(len(anchors), size=count)]
    width = 10.0 ** rng.uniform(-3.0, -0.5, size=(count, 1))
    return _halved(space, base, width * rng.standard_normal(base.shape), rng)[0]


def moved_by(space: Space, u: FloatArray, width: float, rng: np.random.Generator, count: int) -> FloatArray:
    """Return feasible points around one, in moves of about this width: (d,) -> (count, d)."""
    base = np.tile(u, (count, 1))
    return _halved(space, base, width * rng.standard_normal(base.shape), rng)[0]


def chain(space: Space, known: FloatArray, rng: np.random.Generator, count: int) -> FloatArray:  # (a, d) -> (k, d)
    """Return feasible points reached from known ones, which are among them: at most `count`, or as many as are known.

    Half of the moves go along the difference of two points of the chain, so that they follow a thin set, whatever its
    direction and its width; the others go anywhere.
    """
    pool = np.unique(known, axis=0)
    for _ in range(_CHAIN_ROUNDS):
        if len(pool) >= count or not len(pool):
            break
        base, one, other = (pool[rng.integers(len(pool), size=_CHAIN_MOVES)] for _ in range(3))
        anywhere = 10.0 ** rng.uniform(-3.0, 0.0, size=(_CHAIN_MOVES, 1)) * rng.standard_normal(base.shape)
        along = 2.0 ** rng.uniform(*_DIFFERENCES, size=(_CHAIN_MOVES, 1)) * (one - other)
        both = (one >= 0.0) & (other >= 0.0)
        goes_along = (rng.random((_CHAIN_MOVES, 1)) < 0.5) & both.any(axis=1, keepdims=True)
        moved, is_new = _halved(space, base, np.where(goes_along, np.where(both, along, 0.0), anywhere), rng)
        pool = np.unique(np.vstack([pool, moved[is_new]]), axis=0)
    return pool


def _halved(
    space: Space, base: FloatArray, move: FloatArray, rng: np.random.Generator
) -> tuple[FloatArray, BoolArray]:  # (m, d), (m, d) -> (m, d), (m,)
    """Return base + move, with moves halved until they are feasible, and which points differ from their base."""
    found, left = base.copy(), np.arange(len(base))
    fill = rng.random(base.shape)
    for halving in range(_HALVINGS if space.constraints else 1):
        tried = _moved(space, base[left], move[left] * 0.5**halving, fill[left], rng)
        may = space.feasible(tried)
        found[left[may]] = tried[may]
        left = left[~may]
        if not len(left):
            break
    return found, np.any(found != base, axis=1)


def _moved(
    space: Space, base: FloatArray, move: FloatArray, fill: FloatArray, rng: np.random.Generator
) -> FloatArray:  # (m, d) -> (m, d)
    """Return points that exist near base + move; now and then a discrete parameter takes a step or another option."""
    U = np.where(base < 0.0, base, np.clip(base + move, 0.0, 1.0))
    for j, parameter in enumerate(space.values()):
        if parameter.levels is None:
            continue
        goes = (rng.random(len(U)) < _SWITCHED) & (base[:, j] >= 0.0)
        if not parameter.is_ordered:
            U[:, j] = np.where(goes, parameter.snap(rng.random(len(U))), base[:, j])
        elif goes.any():
            for i in np.flatnonzero(goes):
                beside = parameter.adjacent(base[i, j])
                U[i, j] = beside[int(rng.integers(len(beside)))] if beside else base[i, j]
    return snapped(space, U, fill)


def defaults(ranked: FloatArray) -> FloatArray:  # (k, d) -> (d,)
    """Return a coordinate for every parameter: that of the best point where it is active, or else the middle."""
    active = ranked >= 0.0
    first = np.argmax(active, axis=0)
    value = ranked[first, np.arange(ranked.shape[1])]
    return np.where(active.any(axis=0), value, 0.5)


def branch_of(space: Space, U: FloatArray) -> IntArray:  # (m, d) -> (m,)
    """Return a number for the set of active parameters of each point: the same set, the same number."""
    if not space.optional.any():
        return np.zeros(len(U), dtype=np.intp)
    return np.unique(U >= 0.0, axis=0, return_inverse=True)[1].reshape(-1)
