"""Maximise a function on the unit cube of a space, exactly on its lattice.

Two ways, one signature: `sobol` (quasi-random candidates, then the best of them refined together) and `direct`
(the paper's choice).  Both return rows of points that exist, best first, so that a caller who may not use the first
takes the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from boca.domain.space import FloatArray, Space
from boca.search.ascent import climb
from boca.search.direct import minimise

Maximizer: TypeAlias = Literal["sobol", "direct"]
BoolArray: TypeAlias = NDArray[np.bool_]

SOBOL_POINTS = 768
NEIGHBOURS = 256  # perturbations of the anchors: with the above, 1,024 candidates
STARTS = 8
EACH = STARTS // 2  # from all over the space, and from the neighbourhood of the anchors
SCREENED = 64  # candidates whose values are computed at a time, the highest bounds first
ENUMERABLE = 1024  # points: a smaller space is searched completely
DIRECT_EVALUATIONS = 6000
DIRECT_COMBINATIONS = 64


class Objective(Protocol):
    """What can be maximised: many points at once, with and without derivatives."""

    def value(self, U: FloatArray, /) -> FloatArray: ...  # (m, d) -> (m,)
    def value_and_gradient(self, U: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...  # (m, d) -> (m,), (m, d)


@runtime_checkable
class Bounded(Objective, Protocol):
    """An objective that can say for less than its value what the value does not exceed."""

    def bound(self, U: FloatArray, /) -> FloatArray | None:  # (m, d) -> (m,)
        """Return upper bounds of the values; None where they would cost no less."""


def sobol(
    objective: Objective, space: Space, rng: np.random.Generator, anchors: FloatArray
) -> FloatArray:  # anchors (a, d) -> (k, d)
    """Maximise from quasi-random points and from the neighbourhood of the anchors."""
    if space.size <= ENUMERABLE:
        return _ranked(objective, space.points())[0]
    far = scattered(space, rng, SOBOL_POINTS)
    near = np.vstack([anchors, _perturbed(space, anchors, rng)])
    groups = [_screened(objective, far), _screened(objective, near)]
    starts = np.vstack([points[:EACH] for points, _ in groups])
    refined = _refine(objective, starts, frozen=_is_choice(space))
    if any(parameter.levels is not None for parameter in space.values()):
        refined = _to_lattice(objective, space, refined)
    return _merged([_ranked(objective, refined), *groups])


def direct(objective: Objective, space: Space, rng: np.random.Generator, anchors: FloatArray) -> FloatArray:
    """Maximise by DIRECT, once for every combination of choices; with too many of those, by `sobol`."""
    choice = _is_choice(space)
    options = [parameter.to_unit(parameter.options) for parameter in space.values() if parameter.options]
    combinations = list(itertools.islice(itertools.product(*options), DIRECT_COMBINATIONS + 1))
    if len(combinations) > DIRECT_COMBINATIONS or choice.all():
        return sobol(objective, space, rng, anchors)
    found = []
    for combination in combinations:
        u = np.empty(len(space))
        u[choice] = combination
        found.append(_climbed(objective, space, _divided(objective, space, u, free=~choice), fixed=choice))
    points, values = _ranked(objective, np.array(found))
    substitutes = _ranked(objective, scattered(space, rng, SOBOL_POINTS))
    return np.vstack([points[:1], _merged([(points[1:], values[1:]), substitutes])])


MAXIMIZERS: Mapping[str, Callable[[Objective, Space, np.random.Generator, FloatArray], FloatArray]] = {
    "sobol": sobol,
    "direct": direct,
}


def _is_choice(space: Space) -> BoolArray:
    return np.array([not parameter.is_ordered for parameter in space.values()])


def _ranked(objective: Objective, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (m, d), (m,)
    """Return the rows with their values, best first."""
    values = objective.value(U)
    order = np.argsort(-values, kind="stable")
    return U[order], values[order]


def _screened(objective: Objective, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (k, d), (k,)
    """Return the rows that may be among the best `EACH`, with their values, best first; the others are not valued."""
    bound = objective.bound(U) if isinstance(objective, Bounded) else None
    if bound is None:
        return _ranked(objective, U)
    order = np.argsort(-bound, kind="stable")
    points, bound = U[order], bound[order]
    values = np.empty(0)
    while len(values) < len(points):
        k = len(values)
        if k >= EACH and np.partition(values, -EACH)[-EACH] >= bound[k]:
            break
        values = np.concatenate([values, objective.value(points[k : k + SCREENED])])
    best = np.argsort(-values, kind="stable")
    return points[best], values[best]


def _merged(groups: list[tuple[FloatArray, FloatArray]]) -> FloatArray:  # (k, d)
    """Return all rows of all groups, best first; of equals the one in the earlier group."""
    values = np.concatenate([values for _, values in groups])
    return np.vstack([points for points, _ in groups])[np.argsort(-values, kind="stable")]


def _divided(objective: Objective, space: Space, u: FloatArray, *, free: BoolArray) -> FloatArray:  # (d,) -> (d,)
    """Return the best point that DIRECT finds along the free coordinates of u."""

    def loss(F: FloatArray) -> FloatArray:  # (m, free) -> (m,)
        U = np.tile(u, (len(F), 1))
        U[:, free] = F
        return -objective.value(U if space.is_continuous else space.snap(U))

    best = u.copy()
    best[free] = minimise(loss, int(free.sum()), evaluations=DIRECT_EVALUATIONS)
    return np.asarray(space.snap(best[None, :])[0])


@cache
def _sobol_points(d: int) -> FloatArray:
    from scipy.stats import qmc

    m = SOBOL_POINTS.bit_length()
    return np.asarray(qmc.Sobol(d, scramble=False).random_base2(m)[:SOBOL_POINTS])


def scattered(space: Space, rng: np.random.Generator, count: int) -> FloatArray:  # (count, d)
    """Return at most `SOBOL_POINTS` points all over the space: Sobol's, moved round the torus, elsewhere each time."""
    return space.snap((_sobol_points(len(space))[:count] + rng.random(len(space))) % 1.0)


def _perturbed(space: Space, anchors: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return points around the anchors, at distances from a thousandth to a third of the cube."""
    if not len(anchors):
        return np.empty((0, len(space)))
    base = anchors[rng.integers(len(anchors), size=NEIGHBOURS)]
    width = 10.0 ** rng.uniform(-3.0, -0.5, size=(NEIGHBOURS, 1))
    moved = np.clip(base + width * rng.standard_normal(base.shape), 0.0, 1.0)
    choice = _is_choice(space)
    if choice.any():
        switched = rng.random(base.shape) < 0.2
        moved = np.where(choice, np.where(switched, rng.random(base.shape), base), moved)
    return space.snap(moved)


def _refine(objective: Objective, starts: FloatArray, frozen: BoolArray) -> FloatArray:  # (k, d) -> (k, d)
    """Climb from all starts at once, in the coordinates that are not frozen."""
    return starts if frozen.all() else climb(objective.value_and_gradient, starts, frozen)


def _to_lattice(objective: Objective, space: Space, U: FloatArray) -> FloatArray:
    """End on points that exist: the better neighbours of every row, and single steps from the best one."""
    parameters = list(space.values())
    rounded: list[tuple[float, ...]] = []
    for u in U:
        sides = [parameter.around(u[j]) for j, parameter in enumerate(parameters)]
        rounded.extend(itertools.islice(itertools.product(*sides), 64))
    snapped = _ranked(objective, space.snap(np.vstack([np.array(rounded), U])))[0][: len(U)]
    discrete = np.array([parameter.levels is not None for parameter in parameters])
    if not discrete.all():
        snapped = _refine(objective, snapped, frozen=discrete)
    best = _ranked(objective, snapped)[0][0]
    return np.vstack([_climbed(objective, space, best, fixed=np.zeros(len(space), dtype=bool)), snapped])


def _climbed(objective: Objective, space: Space, best: FloatArray, *, fixed: BoolArray) -> FloatArray:  # (d,) -> (d,)
    """Go to the best point one discrete step away, as long as there is a better one; `fixed` coordinates stay."""
    parameters = list(space.values())
    discrete = np.array([parameter.levels is not None for parameter in parameters])
    for _ in range(32):
        steps = [(j, side) for j, q in enumerate(parameters) if not fixed[j] for side in q.adjacent(best[j])]
        neighbours = np.tile(best, (len(steps) + 1, 1))
        for row, (j, side) in enumerate(steps, start=1):
            neighbours[row, j] = side
        top = int(np.argmax(objective.value(neighbours))) if steps else 0
        if top == 0:
            break
        best = neighbours[top]
        if not discrete.all():
            best = _refine(objective, best[None, :], frozen=discrete)[0]
    return best
