"""The initial design: random queries, then the best of them again at the target, until their budget is spent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from boca.accounting.cost import Costs, amount
from boca.domain.budget import Budget
from boca.domain.objectives import best_of_several
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion, barred, best_of, point_key, unavailable
from boca.search.restricted_start import INDEX, restricted_point

Design: TypeAlias = Literal["uniform", "sobol"]
"""How x is drawn: independently, or from one scrambled Sobol sequence, which leaves smaller gaps."""

Fidelities: TypeAlias = Literal["target", "uniform", "cheap"]
"""How z is drawn.  "target": always the target.  "uniform": any fidelity that costs no more.  "cheap": with half of the
budget of the start, u^2 among the cheaper ones, which allows many points; with the other half, the best of these points
again at the target, which shows how far cheap results can be trusted.  A list of fidelities means a random one."""

LEAST_QUERIES = 2  # in the start: one result has no scale
_DRAWS_OF_A_FREE_POINT = 100  # before all points of a small space are listed
_LISTED_UP_TO = 4096  # points of a space: in a larger one, draws find a free point
_FIRST_AT_TARGET = 1.5  # of the budget of the start: what may be spent for its first query at the target
_CHEAPEST = 1.0 / 64.0  # of the target's cost: what is cheaper seldom ranks points as the target does
_DECIMALS = 9  # of a log of a ratio of costs: the same fidelities are drawn in any unit of cost
_LIKE_IN_COST = 1.2  # ratio of costs: fidelities that differ by less are drawn alike
_DRAWS_OF_A_CHEAP_FIDELITY = 100  # before one of the grid is taken

_MOST_SPENT = 0.3  # of the whole budget: a start of queries that cost next to nothing ends too, as choosing is charged


def random_start(
    problem: Problem,
    history: History,
    budget: Budget,
    rng: np.random.Generator,
    costs: Costs,
    *,
    design: Design,
    fidelities: Fidelities | Sequence[Point],
    middle: bool = False,
    spread: bool = False,
) -> Suggestion | None:
    """Return the next query of the start, or None after its end.

    Results, imported results and running trials count, so imported results replace random queries.  The first query
    that would exceed the budget of the start ends it.  [K17, app. C.1]  The first points of the problem come before
    random ones, however much they cost; with `middle`, the middle of the space does if there are none and it is cheap.
    With `spread`, a start that is "cheap" draws z evenly by the log of its cost, and no start spends more than three
    tenths of the budget, choosing included.
    """
    if history.chosen:
        return None
    if spread and fidelities == "cheap" and problem.fidelity:
        z = _spread_z(problem, budget, rng, costs)
    else:
        z = _draw_z(problem, budget, rng, costs, fidelities)
    used = sum(amount(t, problem, costs) for t in history)
    share = budget.start * (1.0 + 1e-12)
    best = None
    may_exceed = spread and not _has_target(problem, history) and not any(t.added for t in history)
    most = _FIRST_AT_TARGET * share if may_exceed else share
    if fidelities == "cheap" and used + costs.of(z) > 0.5 * share and used + costs.target <= most:
        best = _best_untried_at_target(problem, history)
        if best is not None or used + costs.target <= share:
            z = dict(problem.target)
    is_cheap = fidelities == "cheap" or not isinstance(fidelities, str)
    first = _next_of(problem.first or _middles(problem, middle and is_cheap), history)
    share = share if best is None else most
    is_paid = used + costs.of(z) > share or (spread and budget.spent > _MOST_SPENT * budget.total)
    is_over = len(history) >= LEAST_QUERIES and history.told(problem) and is_paid
    if is_over and (first is None or not problem.first):
        return None
    if first is not None:
        return _first_query(history, rng, first, z, design=design)
    return start_query(problem, history, rng, costs, z, design=design, x=best)


def _middles(problem: Problem, is_wanted: bool) -> list[Point]:
    """Return the middle of the space if it is wanted, which is cheap, and is a point that may be run."""
    is_point = is_wanted and not problem.space.is_list and problem.space.violated(problem.middle) is None
    return [problem.middle] if is_point else []


def _next_of(first: Sequence[Point], history: History) -> Point | None:
    """Return the next of the points that come first, if it was not tried at any fidelity."""
    tried = {point_key(t.x) for t in history}
    return next((x for x in first if point_key(x) not in tried), None)


def _first_query(history: History, rng: np.random.Generator, x: Point, z: Point, *, design: Design) -> Suggestion:
    """Return the query of a point that comes first."""
    count = sum(t.phase == "start" for t in history) + 1
    reason = f"Start, query {count}: a point that was named to be tried first, or the middle of the space."
    drawn = {"sobol": _sobol_seed(history, rng)} if design == "sobol" else {}
    return Suggestion(dict(x), z, {"reason": reason, "phase": "start", **drawn})


def start_query(
    problem: Problem,
    history: History,
    rng: np.random.Generator,
    costs: Costs,
    z: Point,
    *,
    design: Design,
    x: Point | None = None,
) -> Suggestion:
    """Return a query of the start at this fidelity: of the given x, or of a random one."""
    query = f"Start, query {sum(t.phase == 'start' for t in history) + 1}"
    why: dict[str, Any] = {"phase": "start"}
    if design == "sobol":
        why["sobol"] = _sobol_seed(history, rng)
    if x is not None:
        reason = (
            f"{query}: the best point that has not been run at the target, to compare its cheap result with the target."
        )
        return Suggestion(x, z, {"reason": reason, **why})
    x, z, index = _drawn(problem, history, rng, costs, z, why.get("sobol"))
    why |= {} if index is None else {INDEX: index}
    where = "the target fidelity" if problem.is_target(z) else "a random fidelity"
    share = costs.of(z) / costs.target
    reason = (
        f"{query}: a random point at {where} ({share:.3g} of the target's cost), so that the model has results to "
        "learn from."
    )
    return Suggestion(x, z, {"reason": reason, **why})


def _best_untried_at_target(problem: Problem, history: History) -> Point | None:
    """Return the x with the best result of those never run at the target; None if there are fewer than two."""
    ruled_out = {point_key(t.x) for t in history if problem.is_target(t.z)} | barred(history)
    untried = [t for t in history.complete if point_key(t.x) not in ruled_out and problem.space.violated(t.x) is None]
    if problem.subject_to and untried:  # those that break the fewest limits, as far as they were told
        least = min(len(problem.exceeded(t.outcomes)) for t in untried)
        untried = [t for t in untried if len(problem.exceeded(t.outcomes)) == least]
    best = best_of_several(problem, untried) if problem.objectives else best_of(untried, problem.direction)
    is_choice = (
        len({point_key(t.x) for t in untried}) >= 2
    )  # the best of one point is no choice: a new point tells more
    return dict(best.x) if best is not None and is_choice else None


def random_point(
    problem: Problem,
    history: History,
    rng: np.random.Generator,
    costs: Costs,
    z: Point,
    *,
    sobol_seed: int | None = None,
) -> tuple[Point, Point]:
    """Draw x for this z; points that are running or failed three times are avoided while there are others."""
    return _drawn(problem, history, rng, costs, z, sobol_seed)[:2]


def _drawn(
    problem: Problem, history: History, rng: np.random.Generator, costs: Costs, z: Point, sobol_seed: int | None
) -> tuple[Point, Point, int | None]:
    """Return x, a fidelity for it, and under constraints its index in the Sobol sequence if it comes from there."""
    if not problem.space.is_box:
        return restricted_point(problem, history, rng, [z, *substitute_fidelities(problem, costs)], sobol_seed)
    return *_drawn_in_box(problem, history, rng, costs, z, sobol_seed), None


def _drawn_in_box(
    problem: Problem, history: History, rng: np.random.Generator, costs: Costs, z: Point, sobol_seed: int | None
) -> tuple[Point, Point]:
    taken, bad = unavailable(problem, history), barred(history)
    first = None
    for attempt in range(_DRAWS_OF_A_FREE_POINT):
        if sobol_seed is not None and attempt == 0:
            u = _sobol_point(len(problem.space), sobol_seed, sum(t.phase == "start" for t in history))
        else:
            u = rng.random(len(problem.space))
        x = problem.space.from_unit(problem.space.snap(u[None, :])[0])
        if point_key(x) not in bad and (point_key(x), point_key(z)) not in taken:
            return x, z
        if first is None or point_key(first) in bad:
            first = x
    if problem.space.size <= _LISTED_UP_TO:  # nearly every point of a small space is running
        everything = [problem.space.from_unit(u) for u in rng.permutation(problem.space.points())]
        for fidelity in [z, *substitute_fidelities(problem, costs)]:
            for x in everything:
                if point_key(x) not in bad and (point_key(x), point_key(fidelity)) not in taken:
                    return x, fidelity
    return first or {}, z


def substitute_fidelities(problem: Problem, costs: Costs) -> list[Point]:
    """Return all fidelities in the order in which they may replace another: the target, cheaper ones, costlier ones."""
    is_beyond = costs.grid > costs.target
    order = np.lexsort((costs.grid, is_beyond))
    return [dict(problem.target), *(dict(problem.grid[0][i]) for i in order)]


def _draw_z(
    problem: Problem, budget: Budget, rng: np.random.Generator, costs: Costs, fidelities: Fidelities | Sequence[Point]
) -> Point:
    if not isinstance(fidelities, str):
        return dict(fidelities[int(rng.integers(len(fidelities)))])
    if fidelities == "target" or not problem.fidelity:
        return dict(problem.target)
    if fidelities == "uniform":
        return _uniform_z(problem, rng, costs)
    cheaper = np.flatnonzero(costs.grid < costs.target)
    if not len(cheaper):
        return dict(problem.target)
    for _ in range(_DRAWS_OF_A_CHEAP_FIDELITY):
        u = rng.random(len(problem.fidelity))
        z = _unit_to_z(problem, np.where(_is_choice(problem), u, u * u))  # the options of a choice have no cheap end
        if costs.of(z) < costs.target and budget.affords(costs.pessimistic(z)):
            return z
    affordable = [i for i in cheaper if budget.affords(costs.pessimistic(problem.grid[0][i]))]
    return dict(problem.grid[0][int(rng.choice(affordable or cheaper))])


def _has_target(problem: Problem, history: History) -> bool:
    return any(problem.is_target(t.z) for t in history)


def _spread_z(problem: Problem, budget: Budget, rng: np.random.Generator, costs: Costs) -> Point:
    """Draw a fidelity with its cost evenly on a log scale, from the cheapest halfway to the target."""
    ratio = costs.grid / costs.target
    cheaper = np.flatnonzero(ratio < 1.0)
    wanted = float(rng.random())
    affordable = [i for i in cheaper if budget.affords(costs.pessimistic(problem.grid[0][i]))]
    allowed = np.array(affordable or cheaper, dtype=int)
    if not len(allowed):
        return dict(problem.target)
    logs = np.round(np.log(ratio[allowed]), _DECIMALS)
    least = max(float(np.min(logs)), math.log(_CHEAPEST))
    away = np.abs(logs - (1.0 - 0.5 * wanted) * least)
    near = allowed[away <= np.min(away) + math.log(_LIKE_IN_COST)]
    return dict(problem.grid[0][int(rng.choice(near))])


def _uniform_z(problem: Problem, rng: np.random.Generator, costs: Costs) -> Point:
    """Draw any fidelity that costs no more than the target; costlier ones tell no more about f."""
    for _ in range(_DRAWS_OF_A_FREE_POINT):
        z = _unit_to_z(problem, rng.random(len(problem.fidelity)))
        if costs.of(z) <= costs.target:
            return z
    return dict(problem.target)


def _is_choice(problem: Problem) -> list[bool]:
    return [not parameter.is_ordered for parameter in problem.fidelity.values()]


def _unit_to_z(problem: Problem, u: FloatArray) -> Point:
    return problem.fidelity.from_unit(problem.fidelity.snap(u[None, :])[0])


def _sobol_seed(history: History, rng: np.random.Generator) -> int:
    """Return the seed of the study's sequence: the first trial of the start draws it, the others read it."""
    drawn = int(rng.integers(2**31))
    return next((int(t.why["sobol"]) for t in history if "sobol" in t.why), drawn)


def _sobol_point(d: int, seed: int, index: int) -> FloatArray:  # (d,)
    from scipy.stats import qmc

    engine = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed))
    if index:
        engine.fast_forward(index)
    return np.asarray(engine.random(1)[0])
