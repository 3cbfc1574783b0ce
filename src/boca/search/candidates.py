"""From ranked points to a query that may be handed out: not running, and not failed three times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from boca.accounting.cost import costs
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, barred, point_key, unavailable
from boca.search.initial_design import substitute_fidelities

_STAND_INS_TRIED = 64  # distinct x, the best ones, each at every other fidelity

STAND_IN = (
    "All candidates are already running at their chosen fidelity; another fidelity is used so that the worker is not "
    "idle."
)


class Candidate(NamedTuple):
    """A query: x in unit coordinates, its fidelity, and whether that replaces the chosen one, which is running."""

    u: FloatArray  # (d,)
    z: Point
    stands_in: bool


def first_free(
    problem: Problem, history: History, ranked: FloatArray, fidelity_of: Callable[[FloatArray], Point]
) -> tuple[FloatArray, Point]:  # ranked (k, d) -> u (d,), z
    """Return the point and the fidelity of `best_candidate`."""
    return best_candidate(problem, history, ranked, fidelity_of)[:2]


def best_candidate(
    problem: Problem,
    history: History,
    ranked: FloatArray,
    fidelity_of: Callable[[FloatArray], Point],
    *,
    others: Sequence[Point] = (),
) -> Candidate:  # ranked (k, d)
    """Return the best point with its fidelity that is not running and has not failed three times.

    If every ranked point is running at its own fidelity, another fidelity replaces it: the `others` first, then all,
    those that cost more than the target last.  If all of these are running too, return the best point that has not
    failed three times.
    """
    taken, bad = unavailable(problem, history), barred(history)

    def usable(candidates: Iterable[tuple[FloatArray, Point]]) -> tuple[FloatArray, Point] | None:
        for u, z in candidates:
            x = point_key(problem.space.from_unit(u))
            if x not in bad and (x, point_key(z)) not in taken:
                return u, z
        return None

    found = usable((u, fidelity_of(u)) for u in ranked)
    if found is not None:
        return Candidate(*found, stands_in=False)
    instead = [*map(dict, others), *substitute_fidelities(problem, costs(problem, history))]
    _, first = np.unique(ranked, axis=0, return_index=True)
    distinct = ranked[np.sort(first)[:_STAND_INS_TRIED]]
    found = usable((u, z) for z in instead for u in distinct)
    if found is not None:
        return Candidate(*found, stands_in=True)
    if problem.space.is_list:  # all of the best rows were run or are running: any other row
        found = usable((u, z) for z in instead for u in problem.space.points())
        if found is not None:
            return Candidate(*found, stands_in=True)
    u = next((u for u in ranked if point_key(problem.space.from_unit(u)) not in bad), ranked[0])
    return Candidate(u, fidelity_of(u), stands_in=False)
