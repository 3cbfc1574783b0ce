"""The first points of a space that is no box: the next one of a Sobol sequence, or one that a chain reaches."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from boca.domain.constraints import first_feasible
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point, Space
from boca.domain.trial import History, barred, point_key, unavailable
from boca.search.sampling import chain

INDEX = "sobol_index"
"""The key of `why` that has the index of a point in the Sobol sequence of its study."""

_TRIES = 4096  # points of a sequence, or independent draws: then a chain from a known point is quicker
_CHAIN_LENGTH = 256  # of which a free one is drawn at random
_LISTED_UP_TO = 4096  # points of a space: in a larger one, draws find a free point


def restricted_point(
    problem: Problem,
    history: History,
    rng: np.random.Generator,
    fidelities: Sequence[Point],
    sobol_seed: int | None,
) -> tuple[Point, Point, int | None]:
    """Return a point that exists and satisfies every constraint, its fidelity, and its index in the Sobol sequence.

    Args:
        problem: with the space.
        history: points that are running or failed three times are avoided while there are others.
        rng: for what is random.
        fidelities: the one that is wanted, then those that may replace it.
        sobol_seed: of the sequence; None draws independently.
    """
    space, taken, bad = problem.space, unavailable(problem, history), barred(history)

    def is_free(x: Point, z: Point) -> bool:
        return point_key(x) not in bad and (point_key(x), point_key(z)) not in taken

    wanted = fidelities[0]
    if not space.is_list:
        if sobol_seed is None:
            found, index = _uniform(space, rng, lambda x: is_free(x, wanted)), None
        else:
            found, index = _next_of_sequence(space, history, sobol_seed, lambda x: is_free(x, wanted))
        if found is not None:
            return found, wanted, index
    points = [space.from_unit(u) for u in rng.permutation(_reachable(space, history, rng))]
    for z in fidelities:
        for x in points:
            if is_free(x, z):
                return x, z, None
    allowed = [x for x in points if point_key(x) not in bad]
    return (allowed or points)[0], wanted, None


def _next_of_sequence(
    space: Space, history: History, seed: int, is_free: Callable[[Point], bool]
) -> tuple[Point | None, int | None]:
    """Return the next feasible point of the study's sequence that is free, with its index."""
    skip = 1 + max((int(t.why[INDEX]) for t in history if INDEX in t.why), default=-1)
    end = skip + _TRIES
    while skip < end:
        found = first_feasible(space, skip=skip, tries=end - skip, seed=seed)
        if found is None:
            break
        index, u = found
        x = space.from_unit(u)
        if is_free(x):
            return x, index
        skip = index + 1
    return None, None


def _uniform(space: Space, rng: np.random.Generator, is_free: Callable[[Point], bool]) -> Point | None:
    for _ in range(_TRIES):
        x = space.from_unit(space.snap(rng.random((1, len(space))))[0])
        if space.violated(x) is None and is_free(x):
            return x
    return None


def _reachable(space: Space, history: History, rng: np.random.Generator) -> FloatArray:  # (k, d)
    """Return all points of a small space; of a large one, points that a chain reaches from known ones."""
    if space.is_list or space.size <= _LISTED_UP_TO:
        return space.points()
    known = [dict(x) for x in {point_key(t.x): t.x for t in history}.values() if space.violated(x) is None]
    known += [space.example] if space.example is not None else []
    return chain(space, space.to_unit(known), rng, _CHAIN_LENGTH)
