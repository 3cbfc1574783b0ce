"""Maximize over a space that is no box: in every branch, within known constraints, among the rows of a list.

Candidates come from every branch.  The best of each, and the best of all, are refined by quasi-Newton steps in the
numbers that are active there.  Steps that leave the feasible points are shortened, and a search along the border
follows.  The result ends on the lattice, with its neighbors in other branches compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boca.domain.space import BoolArray, FloatArray, Space
from boca.search import sampling
from boca.search.ascent import ascend
from boca.search.objective import Objective, merged, ranked, screened

NEIGHBORS = 256  # points around the anchors
STARTS_PER_GROUP = 4  # of the local search, beside the best of every branch: from everywhere, and from near the anchors
MOST_BRANCHES = 16  # whose best point is refined: those with the highest values
ALL_VALUED_UP_TO = 2048  # rows of a list: of a longer one, those whose bounds are low are not valued
_LIST_KEPT = 1024  # rows of a long list, the best ones: the first of them may have been run already
_LATTICE_STEPS = 32  # a guard against long walks
_ROUNDINGS = 64  # of one point to the lattice
_BORDER_WIDTHS = (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4)  # of the moves along a border, one round each
_BORDER_MOVES = 48  # of a round


def maximize(
    objective: Objective, space: Space, rng: np.random.Generator, anchors: FloatArray, V: FloatArray
) -> FloatArray:  # anchors (a, d), V (m, d) -> (k, d)
    """Return points that exist and satisfy every constraint, best first; V are numbers all over the unit cube."""
    if space.is_list:
        return _ranked_rows(objective, space)
    if space.size <= len(V):
        return ranked(objective, space.points())[0]
    far = sampling.spread(space, V, rng)
    anchors = anchors[space.feasible(anchors)] if len(anchors) else anchors
    near = np.vstack([anchors, sampling.around(space, anchors, rng, NEIGHBORS)])
    if space.constraints and len(far) < len(V) // 4:  # a chain that knows the best results as well
        far = sampling.chain(space, np.vstack([far, near]), rng, len(V) // 2)
    by_branch = [_by_branch(objective, space, group) for group in (far, near)]
    inside = _Inside(objective, space)
    refined = _refined(inside, space, _starts(by_branch))
    if any(parameter.levels is not None for parameter in space.values()):
        refined = _to_lattice(inside, space, refined)
    if space.constraints:
        refined = _along_border(inside, space, refined, rng)
    groups = [ranked(inside, refined), *(group for groups in by_branch for group in groups)]
    kept = [(U[values > -np.inf], values[values > -np.inf]) for U, values in groups]
    return merged(kept)


@dataclass(frozen=True)
class _Inside:
    """An objective that is minus infinity where a constraint does not hold."""

    objective: Objective
    space: Space

    def value(self, U: FloatArray) -> FloatArray:
        return self._within(U, self.objective.value(U))

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        value, gradient = self.objective.value_and_gradient(U)
        return self._within(U, value), gradient

    def _within(self, U: FloatArray, value: FloatArray) -> FloatArray:
        return np.where(self.space.feasible(U), value, -np.inf) if self.space.constraints else value


def _ranked_rows(objective: Objective, space: Space) -> FloatArray:
    """Return the rows of a list, best first; of a long list, the best ones alone."""
    rows = space.points()
    if len(rows) <= ALL_VALUED_UP_TO:
        return ranked(objective, rows)[0]
    return screened(objective, rows, _LIST_KEPT)[0][:_LIST_KEPT]


def _by_branch(objective: Objective, space: Space, U: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Return the points of each branch with their values, best first; those that cannot be among the best are left."""
    owner = sampling.branch_of(space, U)
    return [screened(objective, U[owner == b], STARTS_PER_GROUP) for b in np.unique(owner)]


def _starts(by_branch: list[list[tuple[FloatArray, FloatArray]]]) -> FloatArray:  # (k, d)
    """Return the best points of each group, and the best one of every branch."""
    best = [merged(groups)[:STARTS_PER_GROUP] for groups in by_branch if groups]
    firsts = [(points[0], values[0]) for groups in by_branch for points, values in groups]
    firsts.sort(key=lambda pair: -pair[1])
    of_branches: dict[bytes, FloatArray] = {}
    for u, _ in firsts:
        of_branches.setdefault((u >= 0.0).tobytes(), u)
    starts = np.vstack([*best, *list(of_branches.values())[:MOST_BRANCHES]])
    _, first = np.unique(starts, axis=0, return_index=True)
    return starts[np.sort(first)]


def _frozen(space: Space, U: FloatArray) -> BoolArray:  # (k, d) -> (k, d)
    """Return which coordinates a local search must not move: choices, what conditions name, and what is inactive."""
    fixed = np.array([not parameter.is_ordered for parameter in space.values()]) | space.switches
    return np.asarray(fixed | (U < 0.0))


def _refined(objective: Objective, space: Space, U: FloatArray, *, lattice: bool = False) -> FloatArray:
    """Search locally from all rows at once; on the lattice, discrete coordinates do not move."""
    frozen = _frozen(space, U)
    if lattice:
        frozen |= np.array([parameter.levels is not None for parameter in space.values()])
    return U if frozen.all() else ascend(objective.value_and_gradient, U, frozen)


def _to_lattice(objective: Objective, space: Space, U: FloatArray) -> FloatArray:
    """Return points that exist: the best roundings of the rows, and where single steps lead from the best of them."""
    parameters = list(space.values())
    rounded = []
    for u in U:
        sides = [[v] if v < 0.0 else parameter.around(v) for parameter, v in zip(parameters, u.tolist(), strict=True)]
        counts = np.cumprod([len(side) for side in sides])
        # of too many, the last parameters take their nearest value alone
        sides = [s if n <= _ROUNDINGS else s[:1] for s, n in zip(sides, counts.tolist(), strict=True)]
        rounded.extend(_product(sides))
    best = _refined(objective, space, ranked(objective, space.snap(np.vstack([rounded, U])))[0][: len(U)], lattice=True)
    best = ranked(objective, best)[0]
    return np.vstack([_walked(objective, space, best), best])


def _product(sides: list[list[float]]) -> list[list[float]]:
    rows: list[list[float]] = [[]]
    for side in sides:
        rows = [[*row, value] for row in rows for value in side]
    return rows


def _walked(objective: Objective, space: Space, ranked_points: FloatArray) -> FloatArray:  # (k, d) -> (d,)
    """Go to the best point one discrete step away while there is a better one, into other branches too."""
    fill = sampling.defaults(ranked_points)
    best: FloatArray = ranked_points[0]
    for _ in range(_LATTICE_STEPS):
        steps = [(j, v) for j, q in enumerate(space.values()) if best[j] >= 0.0 for v in q.adjacent(best[j])]
        neighbors = np.tile(best, (len(steps) + 1, 1))
        for row, (j, v) in enumerate(steps, start=1):
            neighbors[row, j] = v
        neighbors = sampling.snapped(space, neighbors, fill)
        top = int(np.argmax(objective.value(neighbors))) if steps else 0
        if top == 0:
            break
        best = _refined(objective, space, neighbors[top : top + 1], lattice=True)[0]
    return best


def _along_border(objective: Objective, space: Space, U: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return the rows and a point at least as good as the best of them: moves that get shorter, the best one taken.

    Quasi-Newton steps end where they meet a constraint; random ones go along it.
    """
    best = ranked(objective, U)[0][0]
    for width in _BORDER_WIDTHS:
        near = sampling.moved_by(space, best, width, rng, _BORDER_MOVES)
        best = ranked(objective, np.vstack([best, near]))[0][0]
    return np.vstack([best, U])
