"""`why` of a decision about runs: which candidates competed, what each promised for its cost, and the sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from boca.accounting.cost import Costs
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, Suggestion
from boca.domain.words import readable
from boca.model.posterior import Model
from boca.search.candidates import STAND_IN
from boca.strategies.base import beta, explain

if TYPE_CHECKING:
    from boca.strategies.boca_curves import By, Query, Runs

_LEAST_RATIO, _LARGEST_RATIO = 1.005, 1e6  # of two rates, in a sentence


def suggestion(runs: Runs, model: Model, chosen: Query, by: By, rivals: Sequence[Query]) -> Suggestion:
    """Return a decision with its reasons.

    Args:
        runs: the runs of the study.
        model: the posterior that chose.
        chosen: the query.
        by: what chose it.
        rivals: the best new run and the best one that goes on, as far as there are any.
    """
    problem, history = runs.problem, runs.history
    at_end = by == "mean" and problem.is_target(chosen.z)
    why = explain(
        model,
        history,
        chosen.u,
        phase="final" if at_end else "model",
        reason=_sentence(runs, chosen, by, rivals),
        beta=beta(len(history.chosen) + 1, problem.space.widest, model.diameter()),
        acquisition=by,
        **model.warnings(),
    )
    told = {"new" if rival.before is None else "going_on": _numbers(runs, model, rival) for rival in rivals}
    why["run"] = {"from_step": chosen.start, "cost": chosen.cost, "shrink": model.shrink, **told}
    continues = chosen.before.number if chosen.before is not None and chosen.start else None
    x = problem.space.from_unit(chosen.u) if chosen.before is None else dict(chosen.before.x)  # in every bit
    return Suggestion(x, chosen.z, why, continues)


def stand_in(x: Point, z: Point) -> Suggestion:
    return Suggestion(x, z, {"reason": STAND_IN, "phase": "start"})


def of_start(problem: Problem, history: History, price: Costs, z: Point) -> str:
    """Return the sentence of a new run of the start."""
    count = sum(t.phase == "start" for t in history) + 1
    share = f"{readable(price.of(z) / price.target)} of the target's cost"
    return (
        f"Start, query {count}: a new run to {_step(problem, z)} ({share}), so that the model has curves to learn from."
    )


def _numbers(runs: Runs, model: Model, query: Query) -> dict[str, Any]:
    """Return what a rival promised: its gain in the units of the values, or of the warped ones, and its cost."""
    before = {} if query.before is None else {"trial": query.before.number}
    gain = model.deviation_as_told(math.exp(query.log_gain))
    return before | {"z": query.z, "gain": gain, "cost": query.cost, "log_gain_per_cost": query.log_rate}


def _sentence(runs: Runs, chosen: Query, by: By, rivals: Sequence[Query]) -> str:
    what = _what(runs, chosen)
    if by == "mean":
        return f"{what}: the budget is nearly spent, and the model expects this point to be the best."
    if by == "best_mean":
        is_first = not any(runs.problem.is_target(t.planned) for t in runs.history)
        because = "no run has reached it" if is_first else "enough was spent below it since its last result"
        return f"{what}: {because}, and the model expects this one to be the best."
    if by == "log_ei":
        return f"{what}, where the largest improvement on the best is expected: half of the budget is for refining it."
    other = next((rival for rival in rivals if (rival.before is None) != (chosen.before is None)), None)
    if other is None:
        missing = "no run is paused" if chosen.before is None else "no new point is left"
        return f"{what}: it promises the most for its cost, and {missing}."
    own = next(rival for rival in rivals if rival is not other)
    than = "continuing a paused run" if chosen.before is None else "a new run"
    return f"{what}: for its cost it promises {_times(own.log_rate - other.log_rate)} {than}."


def _times(log_ratio: float) -> str:
    ratio = math.exp(min(max(log_ratio, 0.0), math.log(_LARGEST_RATIO)))
    if ratio < _LEAST_RATIO:
        return "as much as"
    more = "more than " if ratio >= _LARGEST_RATIO else ""
    return f"{more}{readable(round(ratio, 2) if ratio < 10.0 else round(ratio))} times as much as"


def _what(runs: Runs, chosen: Query) -> str:
    problem = runs.problem
    share = f"{readable(chosen.cost / runs.price.target)} of the target's cost"
    to = _step(problem, chosen.z)
    if chosen.before is None:
        return f"A new run to {to} ({share})"
    if not chosen.start:
        return f"The point of trial {chosen.before.number} again, from the beginning to {to} ({share})"
    return f"Trial {chosen.before.number} continues from step {chosen.start} to {to} ({share})"


def _step(problem: Problem, z: Point) -> str:
    return "the target" if problem.is_target(z) else f"{problem.steps} = {problem.step(z)}"
