"""Maximize a function on the unit cube of a space, exactly on its lattice.

There are two maximizers with one signature: `sobol` (quasi-random candidates, of which the best are refined together)
and `direct` (the paper's choice, for a box).  Both return points that exist, best first: if one is not allowed, take
the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, TypeAlias

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.space import BoolArray, FloatArray, Space
from boca.search import restricted, sampling
from boca.search.ascent import ascend
from boca.search.direct import minimize
from boca.search.objective import Objective, screened
from boca.search.objective import merged as _merged
from boca.search.objective import ranked as _ranked

Maximizer: TypeAlias = Literal["sobol", "direct"]

SOBOL_POINTS = 768  # all over the space
NEIGHBORS = 256  # perturbations of the anchors: with the former, 1,024 candidates
STARTS = 8  # of the local search: candidates with the highest values
STARTS_PER_GROUP = STARTS // 2  # half from all over the space, half from the neighborhood of the anchors
LISTED_UP_TO = 1024  # points: no more than the candidates, so every point of such a space is one
DIRECT_EVALUATIONS = 6000  # of one run of DIRECT
DIRECT_COMBINATIONS = 64  # of choices, each of which takes a run of its own
_MOST_ROUNDINGS = 64  # of one point to the lattice: in many dimensions there are 2^d
_BLOCK = 2**24  # numbers in a table of features: 128 MB, above that of choices among 4,000 options
_LATTICE_STEPS = 32  # a guard against long walks
_SWITCHED_SHARE = 0.2  # of the choices of a perturbed point: most keep the options of the anchor


def sobol(
    objective: Objective, space: Space, rng: np.random.Generator, anchors: FloatArray
) -> FloatArray:  # anchors (a, d) -> (k, d)
    """Maximize from quasi-random points and from the neighborhood of the anchors."""
    if not space.is_box:
        return restricted.maximize(objective, space, rng, anchors, _shifted(space, rng, SOBOL_POINTS))
    if space.size <= LISTED_UP_TO:
        return _ranked(objective, space.points())[0]
    far = space_filling(space, rng, SOBOL_POINTS)
    near = np.vstack([anchors, _perturbed(space, anchors, rng)])
    groups = [_screened(objective, far), _screened(objective, near)]
    starts = np.vstack([points[:STARTS_PER_GROUP] for points, _ in groups])
    refined = _refined(objective, starts, frozen=_is_choice(space))
    if any(parameter.levels is not None for parameter in space.values()):
        refined = _to_lattice(objective, space, refined)
    return _merged([_ranked(objective, refined), *groups])


def direct(objective: Objective, space: Space, rng: np.random.Generator, anchors: FloatArray) -> FloatArray:
    """Maximize by DIRECT, once per combination of choices; if there are too many, by `sobol`."""
    check_maximizer("direct", space)
    choice = _is_choice(space)
    options = [parameter.to_unit(parameter.options) for parameter in space.values() if parameter.options]
    combinations = list(itertools.islice(itertools.product(*options), DIRECT_COMBINATIONS + 1))
    if len(combinations) > DIRECT_COMBINATIONS or choice.all():
        return sobol(objective, space, rng, anchors)
    found = []
    for combination in combinations:
        u = np.empty(len(space))
        u[choice] = combination
        found.append(_local_search(objective, space, _direct_point(objective, space, u, free=~choice), fixed=choice))
    points, values = _ranked(objective, np.array(found))
    substitutes = _ranked(objective, space_filling(space, rng, SOBOL_POINTS))
    return np.vstack([points[:1], _merged([(points[1:], values[1:]), substitutes])])


MAXIMIZERS: Mapping[str, Callable[[Objective, Space, np.random.Generator, FloatArray], FloatArray]] = {
    "sobol": sobol,
    "direct": direct,
}


def check_maximizer(maximizer: Maximizer, space: Space) -> None:
    """Refuse a maximizer that does not know this kind of space."""
    if maximizer == "direct" and not space.is_box:
        raise InvalidInput(
            f"The maximizer 'direct' divides a box, and this space has {space.restriction}. "
            "Use maximizer='sobol', as boca.Boca() does."
        )


def _is_choice(space: Space) -> BoolArray:
    return np.array([not parameter.is_ordered for parameter in space.values()])


def _screened(objective: Objective, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (k, d), (k,)
    return screened(objective, U, STARTS_PER_GROUP)


def _direct_point(objective: Objective, space: Space, u: FloatArray, *, free: BoolArray) -> FloatArray:  # (d,) -> (d,)
    """Return the best point that DIRECT finds along the free coordinates of u."""

    def loss(F: FloatArray) -> FloatArray:  # (m, free) -> (m,)
        U = np.tile(u, (len(F), 1))
        U[:, free] = F
        return -objective.value(U if space.is_continuous else space.snap(U))

    best = u.copy()
    best[free] = minimize(loss, int(free.sum()), evaluations=DIRECT_EVALUATIONS)
    return np.asarray(space.snap(best[None, :])[0])


@cache
def _sobol_points(d: int) -> FloatArray:
    from scipy.stats import qmc

    m = SOBOL_POINTS.bit_length()
    return np.asarray(qmc.Sobol(d, scramble=False).random_base2(m)[:SOBOL_POINTS])


def space_filling(space: Space, rng: np.random.Generator, count: int) -> FloatArray:  # (count, d)
    """Return at most `SOBOL_POINTS` points all over the space: a Sobol sequence with a random shift modulo 1."""
    V = _shifted(space, rng, count)
    return space.snap(V) if space.is_box else sampling.spread(space, V, rng)


def _shifted(space: Space, rng: np.random.Generator, count: int) -> FloatArray:  # (count, d)
    return np.asarray((_sobol_points(len(space))[:count] + rng.random(len(space))) % 1.0)


def _perturbed(space: Space, anchors: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return points around the anchors, at distances from a thousandth to a third of the cube."""
    if not len(anchors):
        return np.empty((0, len(space)))
    base = anchors[rng.integers(len(anchors), size=NEIGHBORS)]
    width = 10.0 ** rng.uniform(-3.0, -0.5, size=(NEIGHBORS, 1))
    moved = np.clip(base + width * rng.standard_normal(base.shape), 0.0, 1.0)
    choice = _is_choice(space)
    if choice.any():
        switched = rng.random(base.shape) < _SWITCHED_SHARE
        moved = np.where(choice, np.where(switched, rng.random(base.shape), base), moved)
    return space.snap(moved)


def _values(objective: Objective, space: Space, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
    """Return the values of many rows, in blocks if a table with a column for each option would be large.

    All neighbors of a choice among k options are k rows, so the table would grow with the square of k.
    """
    width = sum(len(parameter.options) or 1 for parameter in space.values())
    rows = max(1, _BLOCK // width)
    if len(U) <= rows:
        return objective.value(U)
    return np.concatenate([objective.value(U[k : k + rows]) for k in range(0, len(U), rows)])


def _refined(objective: Objective, starts: FloatArray, frozen: BoolArray) -> FloatArray:  # (k, d) -> (k, d)
    """Search locally from all starts at once, in the coordinates that are not frozen."""
    return starts if frozen.all() else ascend(objective.value_and_gradient, starts, frozen)


def _to_lattice(objective: Objective, space: Space, U: FloatArray) -> FloatArray:
    """Return points that exist: the best roundings of the rows, and where single steps lead from the best of them."""
    parameters = list(space.values())
    rounded: list[tuple[float, ...]] = []
    for u in U:
        sides = [parameter.around(u[j]) for j, parameter in enumerate(parameters)]
        rounded.extend(itertools.islice(itertools.product(*sides), _MOST_ROUNDINGS))
    snapped = _ranked(objective, space.snap(np.vstack([np.array(rounded), U])))[0][: len(U)]
    discrete = np.array([parameter.levels is not None for parameter in parameters])
    if not discrete.all():
        snapped = _refined(objective, snapped, frozen=discrete)
    best = _ranked(objective, snapped)[0][0]
    return np.vstack([_local_search(objective, space, best, fixed=np.zeros(len(space), dtype=bool)), snapped])


def _local_search(
    objective: Objective, space: Space, best: FloatArray, *, fixed: BoolArray
) -> FloatArray:  # (d,) -> (d,)
    """Go to the best point one discrete step away while there is a better one; `fixed` coordinates do not change."""
    parameters = list(space.values())
    discrete = np.array([parameter.levels is not None for parameter in parameters])
    for _ in range(_LATTICE_STEPS):
        steps = [(j, side) for j, q in enumerate(parameters) if not fixed[j] for side in q.adjacent(best[j])]
        neighbors = np.tile(best, (len(steps) + 1, 1))
        for row, (j, side) in enumerate(steps, start=1):
            neighbors[row, j] = side
        top = int(np.argmax(_values(objective, space, neighbors))) if steps else 0
        if top == 0:
            break
        best = neighbors[top]
        if not discrete.all():
            best = _refined(objective, best[None, :], frozen=discrete)[0]
    return best
