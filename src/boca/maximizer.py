"""Maximise a function on the unit cube of a space, exactly on its lattice.

Two ways, one signature: `sobol` (quasi-random candidates, then all the best refined in one L-BFGS-B call) and `direct`
(the paper's choice).  Both return rows of points that exist, best first, so that a caller who may not use the first
takes the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import cache
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.space import Choice, Float, FloatArray, Space

Maximizer: TypeAlias = Literal["sobol", "direct"]
BoolArray: TypeAlias = NDArray[np.bool_]

SOBOL_POINTS = 768
NEIGHBOURS = 256  # perturbations of the anchors: with the above, 1,024 candidates
STARTS = 8
ENUMERABLE = 1024  # a space with at most so many points is searched completely
DIRECT_EVALUATIONS = 6000
DIRECT_COMBINATIONS = 64


class Objective(Protocol):
    """What can be maximised: many points at once, with and without derivatives."""

    def value(self, U: FloatArray, /) -> FloatArray: ...  # (m, d) -> (m,)
    def value_at(self, u: FloatArray, /) -> float: ...  # (d,)
    def value_and_gradient(self, U: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...  # (m, d) -> (m,), (m, d)


def sobol(
    objective: Objective, space: Space, rng: np.random.Generator, anchors: FloatArray
) -> FloatArray:  # anchors (a, d) -> (k, d)
    """Maximise from quasi-random points and from the neighbourhood of the anchors."""
    if space.size <= ENUMERABLE:
        return _ranked(objective, space.points())[0]
    far = space.snap(_rotated_sobol(len(space), rng))
    near = np.vstack([anchors, _perturbed(space, anchors, rng)])
    groups = [_ranked(objective, far), _ranked(objective, near)]
    starts = np.vstack([points[: STARTS // 2] for points, _ in groups])
    refined = _refine(objective, starts, frozen=_is_choice(space))
    if any(parameter.levels is not None for parameter in space.values()):
        refined = _to_lattice(objective, space, refined)
    return _merged([_ranked(objective, refined), *groups])


def direct(objective: Objective, space: Space, rng: np.random.Generator, anchors: FloatArray) -> FloatArray:
    """Maximise by DIRECT, once for every combination of choices; with too many of those, by `sobol`."""
    from scipy.optimize import Bounds
    from scipy.optimize import direct as scipy_direct

    choice = _is_choice(space)
    options = [parameter.to_unit(parameter.choices) for parameter in space.values() if isinstance(parameter, Choice)]
    combinations = list(itertools.islice(itertools.product(*options), DIRECT_COMBINATIONS + 1))
    if len(combinations) > DIRECT_COMBINATIONS or choice.all():
        return sobol(objective, space, rng, anchors)
    found = []
    for combination in combinations:
        u = np.empty(len(space))
        u[choice] = combination

        def loss(free: FloatArray, u: FloatArray = u) -> float:
            u[~choice] = free
            return -objective.value_at(u if space.is_continuous else space.snap(u[None, :])[0])

        bounds = Bounds(np.zeros((~choice).sum()), np.ones((~choice).sum()))
        result = scipy_direct(
            loss,
            bounds,
            maxfun=DIRECT_EVALUATIONS,
            maxiter=DIRECT_EVALUATIONS,
            locally_biased=False,  # Jones et al. (1993), which the paper cites
            len_tol=1e-6,
            vol_tol=0.0,
        )
        u[~choice] = result.x
        end = space.snap(u[None, :])[0].copy()
        found.append(_climbed(objective, space, end, fixed=choice))
    points, values = _ranked(objective, np.array(found))
    substitutes = _ranked(objective, space.snap(_rotated_sobol(len(space), rng)))
    return np.vstack([points[:1], _merged([(points[1:], values[1:]), substitutes])])


MAXIMIZERS: Mapping[str, Callable[[Objective, Space, np.random.Generator, FloatArray], FloatArray]] = {
    "sobol": sobol,
    "direct": direct,
}


def _is_choice(space: Space) -> BoolArray:
    return np.array([isinstance(parameter, Choice) for parameter in space.values()])


def _ranked(objective: Objective, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (m, d), (m,)
    """Return the rows with their values, best first."""
    values = objective.value(U)
    order = np.argsort(-values, kind="stable")
    return U[order], values[order]


def _merged(groups: list[tuple[FloatArray, FloatArray]]) -> FloatArray:  # (k, d)
    """Return all rows of all groups, best first; of equals the one in the earlier group."""
    values = np.concatenate([values for _, values in groups])
    return np.vstack([points for points, _ in groups])[np.argsort(-values, kind="stable")]


@cache
def _sobol_points(d: int) -> FloatArray:
    from scipy.stats import qmc

    m = SOBOL_POINTS.bit_length()
    return np.asarray(qmc.Sobol(d, scramble=False).random_base2(m)[:SOBOL_POINTS])


def _rotated_sobol(d: int, rng: np.random.Generator) -> FloatArray:
    """Return Sobol points moved round the torus: as even as they were, elsewhere each time."""
    return (_sobol_points(d) + rng.random(d)) % 1.0


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
    """Climb from all starts at once: their sum has each one's gradient, and one call costs one overhead."""
    from scipy.optimize import minimize

    if frozen.all():
        return starts
    low = np.where(frozen, starts, 0.0)
    high = np.where(frozen, starts, 1.0)

    def loss(flat: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective.value_and_gradient(flat.reshape(starts.shape))
        return -float(value.sum()), np.where(frozen, 0.0, -gradient).ravel()

    result = minimize(
        loss,
        starts.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=np.column_stack([low.ravel(), high.ravel()]),
        options={"maxiter": 50, "ftol": 1e-9, "gtol": 1e-6},
    )
    return np.asarray(np.clip(np.reshape(result.x, starts.shape), low, high))


def _to_lattice(objective: Objective, space: Space, U: FloatArray) -> FloatArray:
    """End on points that exist: the better neighbours of every row, and single steps from the best one."""
    parameters = list(space.values())
    rounded: list[tuple[float, ...]] = []
    for u in U:
        sides = [parameter.around(u[j]) for j, parameter in enumerate(parameters)]
        rounded.extend(itertools.islice(itertools.product(*sides), 64))
    snapped = _ranked(objective, space.snap(np.vstack([np.array(rounded), U])))[0][: len(U)]
    discrete = np.array([not isinstance(parameter, Float) for parameter in parameters])
    if not discrete.all():
        snapped = _refine(objective, snapped, frozen=discrete)
    best = _ranked(objective, snapped)[0][0]
    return np.vstack([_climbed(objective, space, best, fixed=np.zeros(len(space), dtype=bool)), snapped])


def _climbed(objective: Objective, space: Space, best: FloatArray, *, fixed: BoolArray) -> FloatArray:  # (d,) -> (d,)
    """Go to the best point one discrete step away, as long as there is a better one; `fixed` coordinates stay."""
    parameters = list(space.values())
    discrete = np.array([not isinstance(parameter, Float) for parameter in parameters])
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
