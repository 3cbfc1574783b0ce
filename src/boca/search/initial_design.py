"""The initial design: random queries, then the best of them at the target, until a tenth of the budget is spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from boca.accounting.cost import Costs, amount
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion, barred, best_of, occupied, point_key

Design: TypeAlias = Literal["uniform", "sobol"]
"""How x is drawn: independently, or along one scrambled Sobol sequence, which leaves smaller holes."""

Fidelities: TypeAlias = Literal["target", "uniform", "cheap"]
"""How z is drawn: always the target; anywhere that costs no more than it; or "cheap", u^2 among those cheaper than the
target until half of the share is gone, which buys many points, and with the other half the best of these again at the
target, which tells what they are worth.  A list instead means a random member of it."""

AT_LEAST = 2  # queries: a model of one result knows nothing of scales
_ATTEMPTS = 100  # draws of a point that may be handed out, before all points are listed
_LISTABLE = 4096  # points of a space that are listed if draws find none that is free


def random_start(
    problem: Problem,
    history: History,
    budget: Budget,
    rng: np.random.Generator,
    costs: Costs,
    *,
    design: Design,
    fidelities: Fidelities | Sequence[Point],
) -> Suggestion | None:
    """Return the next query of the start, or None when it is over.

    Results, imported results and running trials count, so imported results replace random ones.  The first query that
    would pass the share of the start ends it for good.  [K17, app. C.1]
    """
    if history.chosen:
        return None
    z = _draw_z(problem, budget, rng, costs, fidelities)
    used = sum(amount(t, problem, costs) for t in history)
    share = budget.start * (1.0 + 1e-12)
    best = None
    if fidelities == "cheap" and used + costs.of(z) > 0.5 * share and used + costs.target <= share:
        z, best = dict(problem.target), _best_elsewhere(problem, history)
    if len(history) >= AT_LEAST and history.complete and used + costs.of(z) > share:
        return None
    return start_query(problem, history, rng, costs, z, design=design, x=best)


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
    """Return a query at the given fidelity: of the given x, or of a random one."""
    query = f"Start, query {sum(t.phase == 'start' for t in history) + 1}"
    why: dict[str, Any] = {"phase": "start"}
    if design == "sobol":
        why["sobol"] = _sobol_seed(history, rng)
    if x is not None:
        reason = f"{query}: the best point not yet run at the target, to learn what cheap results are worth there."
        return Suggestion(x, z, {"reason": reason, **why})
    x, z = random_point(problem, history, rng, costs, z, sobol_seed=why.get("sobol"))
    where = "the target fidelity" if problem.is_target(z) else "a random fidelity"
    share = costs.of(z) / costs.target
    reason = (
        f"{query}: a random point at {where} ({share:.3g} of the target's cost), so that the model has results to "
        "learn from."
    )
    return Suggestion(x, z, {"reason": reason, **why})


def _best_elsewhere(problem: Problem, history: History) -> Point | None:
    """Return the x with the best result of those never tried at the target; None unless there are two of them."""
    ruled_out = {point_key(t.x) for t in history if problem.is_target(t.z)} | barred(history)
    untried = [t for t in history.complete if point_key(t.x) not in ruled_out]
    best = best_of(untried, problem.direction)
    is_choice = len({point_key(t.x) for t in untried}) >= 2  # the best of one is as good as any, and teaches less
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
    """Draw x for this z; what is running or has failed too often is not drawn while there is anything else."""
    taken, bad = occupied(history), barred(history)
    first = None
    for attempt in range(_ATTEMPTS):
        if sobol_seed is not None and attempt == 0:
            u = _sobol_point(len(problem.space), sobol_seed, sum(t.phase == "start" for t in history))
        else:
            u = rng.random(len(problem.space))
        x = problem.space.from_unit(problem.space.snap(u[None, :])[0])
        if point_key(x) not in bad and (point_key(x), point_key(z)) not in taken:
            return x, z
        if first is None or point_key(first) in bad:
            first = x
    if problem.space.size <= _LISTABLE:  # a small space, nearly all of it running: look at every point
        everything = [problem.space.from_unit(u) for u in rng.permutation(problem.space.points())]
        for fidelity in [z, *by_preference(problem, costs)]:
            for x in everything:
                if point_key(x) not in bad and (point_key(x), point_key(fidelity)) not in taken:
                    return x, fidelity
    return first or {}, z


def by_preference(problem: Problem, costs: Costs) -> list[Point]:
    """Return all fidelities in the order in which they may stand in for another: the target, cheaper, costlier."""
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
    for _ in range(100):
        u = rng.random(len(problem.fidelity))
        z = _unit_to_z(problem, np.where(_is_choice(problem), u, u * u))  # options have no cheap end
        if costs.of(z) < costs.target and budget.affords(costs.pessimistic(z)):
            return z
    affordable = [i for i in cheaper if budget.affords(costs.pessimistic(problem.grid[0][i]))]
    return dict(problem.grid[0][int(rng.choice(affordable or cheaper))])


def _uniform_z(problem: Problem, rng: np.random.Generator, costs: Costs) -> Point:
    """Draw any fidelity that costs no more than the target: what lies beyond it answers no question."""
    for _ in range(_ATTEMPTS):
        z = _unit_to_z(problem, rng.random(len(problem.fidelity)))
        if costs.of(z) <= costs.target:
            return z
    return dict(problem.target)


def _is_choice(problem: Problem) -> list[bool]:
    return [not parameter.is_ordered for parameter in problem.fidelity.values()]


def _unit_to_z(problem: Problem, u: FloatArray) -> Point:
    return problem.fidelity.from_unit(problem.fidelity.snap(u[None, :])[0])


def _sobol_seed(history: History, rng: np.random.Generator) -> int:
    """Return the seed of this study's sequence: the first trial of the start drew it, the others read it."""
    drawn = int(rng.integers(2**31))
    return next((int(t.why["sobol"]) for t in history if "sobol" in t.why), drawn)


def _sobol_point(d: int, seed: int, index: int) -> FloatArray:  # (d,)
    from scipy.stats import qmc

    engine = qmc.Sobol(d, scramble=True, rng=np.random.default_rng(seed))
    if index:
        engine.fast_forward(index)
    return np.asarray(engine.random(1)[0])
