"""Several objectives: how they are typed, what an evaluation must return, and the front.

A trial keeps every objective as an outcome of its name, and has no `value`.  Inside, every objective is maximized:
`scores` turns those that are minimized.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from boca.domain import shorthand
from boca.domain.errors import InvalidInput
from boca.domain.hypervolume import undominated
from boca.domain.outcomes import AtLeast, AtMost, OutcomeLimit, Returned, checked_limits, plain_notes, refuse_name
from boca.domain.shorthand import Direction
from boca.domain.space import FloatArray, finite_number

if TYPE_CHECKING:
    from boca.domain.problem import Problem
    from boca.domain.trial import History, Trial

MOST_OBJECTIVES: Final = 4  # of more, nearly all points are on the front, and its hypervolume takes too long
_MARGIN = 0.1  # of what the front covers, by which a learned reference lies below its worst values

OutcomeAim: TypeAlias = str | OutcomeLimit
"""What is wanted of an outcome: "minimize" or "maximize", or a limit."""

_EXAMPLE = "outcomes={'loss': 'minimize', 'size': 'minimize', 'recall': boca.AtLeast(0.9)}"


def checked_outcomes(outcomes: object) -> tuple[dict[str, Direction], dict[str, OutcomeLimit]]:
    """Return the directions of the objectives and the limits of the other outcomes, or refuse them."""
    if not isinstance(outcomes, Mapping) or not outcomes:
        raise InvalidInput(
            f"outcomes is {outcomes!r}, and must map names to 'minimize', 'maximize' or a limit. Type {_EXAMPLE}."
        )
    directions: dict[str, Direction] = {}
    limits: dict[str, OutcomeLimit] = {}
    for name, aim in outcomes.items():
        refuse_name(name, "outcomes")
        if isinstance(aim, AtMost | AtLeast):
            limits[name] = aim
            continue
        try:
            directions[name] = shorthand.direction(aim)
        except InvalidInput:
            raise InvalidInput(
                f"outcomes[{name!r}] is {aim!r}, and must be 'minimize', 'maximize' or a limit. Type {_EXAMPLE}."
            ) from None
    if not 1 <= len(directions) <= MOST_OBJECTIVES:
        raise InvalidInput(
            f"outcomes has {len(directions)} objectives, {list(directions)}; from 1 to {MOST_OBJECTIVES} are allowed. "
            + (
                "Give at least one of them 'minimize' or 'maximize'."
                if not directions
                else "Give some of them limits, such as boca.AtMost(20.0)."
            )
        )
    return directions, limits


def checked_reference(reference: object, objectives: Mapping[str, Direction]) -> dict[str, float]:
    """Return the numbers from which the hypervolume is measured, as far as they are given, or refuse them."""
    if reference is None:
        return {}
    example = f"reference={{{next(iter(objectives), 'loss')!r}: 1.0}}"
    if not objectives:
        raise InvalidInput(
            f"reference is {reference!r}, and only several objectives have one. Leave it out, or give outcomes= with "
            "at least two objectives."
        )
    if not isinstance(reference, Mapping) or set(reference) - set(objectives):
        raise InvalidInput(
            f"reference is {reference!r}, and must map names of objectives, {list(objectives)}, to numbers. "
            f"Type {example}; what is left out is learned from the front."
        )
    return {name: finite_number(value, f"reference[{name!r}]") for name, value in reference.items()}


def merged_limits(limits: Mapping[str, OutcomeLimit], subject_to: object, objectives: Mapping[str, Direction]) -> Any:
    """Return the limits of `outcomes` and of `subject_to` together; no name may have two meanings."""
    more = checked_limits(subject_to)
    twice = [name for name in more if name in limits or name in objectives]
    if twice:
        raise InvalidInput(
            f"subject_to has {twice}, which outcomes has too; an outcome is optimized or has one limit. Remove it from "
            "subject_to, or return it under two names."
        )
    return {**limits, **more}


def returned_objectives(
    given: Any, objectives: Mapping[str, Direction], limits: Mapping[str, OutcomeLimit], *, is_target: bool | None
) -> Returned:
    """Return an evaluation's result by outcome; see `boca.domain.outcomes.returned` for the arguments.

    Every objective must be there at every fidelity.  None says that it is not known.
    """
    if not isinstance(given, Mapping):
        words = ", ".join(f"{name!r}: ..." for name in [*objectives, *limits])
        raise InvalidInput(
            f"The result is {given!r}, and must be a mapping with the objectives {list(objectives)}. Give {{{words}}}."
        )
    values: dict[str, float] = {}
    for name in [*objectives, *limits]:
        if given.get(name) is not None:
            values[name] = finite_number(given[name], name)
        elif name not in given and is_target is not None and _is_needed(limits.get(name), is_target):
            what = "An objective must be told at every fidelity"
            if name in limits:
                where = "at the target" if limits[name].at == "target" else "at every fidelity"
                what = f"An outcome with a limit must be told {where}"
            raise InvalidInput(
                f"The result has no {name!r}; it has {list(given)}. {what}. "
                f"If it is not known, give {{{name!r}: None}}."
            )
    if not values:
        raise InvalidInput("The result has no number: every outcome is None. Give one, or let the trial fail.")
    rest = {name: value for name, value in given.items() if name not in objectives and name not in limits}
    return Returned(values, plain_notes(rest))


def _is_needed(limit: OutcomeLimit | None, is_target: bool) -> bool:
    return limit is None or is_target or limit.at == "any"


def variances_by_name(given: Any, names: Sequence[str]) -> dict[str, float]:
    """Return told variances by outcome, or refuse them: with several objectives, one number alone means none."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or set(given) - set(names):
        raise InvalidInput(
            f"noise is {given!r}, and must map names of outcomes, {list(names)}, to variances. "
            f"Type noise={{{names[0]!r}: 0.01}}."
        )
    found = {name: finite_number(value, f"noise[{name!r}]") for name, value in given.items() if value is not None}
    for name, variance in found.items():
        if variance < 0.0:
            raise InvalidInput(f"noise[{name!r}] must not be negative; got {variance!r}.")
    return found


# The front ------------------------------------------------------------------------------------------------------------


def is_told(problem: Problem, trial: Trial) -> bool:
    """Whether a complete trial has every objective."""
    if not problem.objectives:
        return trial.value is not None
    outcomes = trial.outcomes
    return all(name in outcomes for name in problem.objectives)


def scores(problem: Problem, trials: Sequence[Trial]) -> FloatArray:  # (n, m)
    """Return the objectives of trials that have them all, so that more is better."""
    turns = turns_of(problem)
    told = [trial.outcomes for trial in trials]
    return np.array([[turns[name] * each[name] for name in turns] for each in told]).reshape(len(told), len(turns))


def turns_of(problem: Problem) -> dict[str, float]:
    """Return what each objective is multiplied by so that more is better."""
    return {name: 1.0 if towards == "maximize" else -1.0 for name, towards in problem.objectives.items()}


def front(problem: Problem, history: History) -> list[Trial]:
    """Return the feasible trials at the target that none dominates, by the first objective, its best value first.

    With one objective, it is the best trial alone.
    """
    if not problem.objectives:
        best = history.best(problem)
        return [] if best is None else [best]
    trials = history.feasible(problem)
    Y = scores(problem, trials)
    kept = np.flatnonzero(undominated(Y))
    return [trials[k] for k in sorted(kept, key=lambda k: (-Y[k, 0], trials[k].number))]


def best_of_several(problem: Problem, trials: Sequence[Trial]) -> Trial | None:
    """Return the trial with the largest hypervolume of its own, the first of equals; None if none has all objectives.

    It lies in the middle of the front of these trials.
    """
    told = [trial for trial in trials if is_told(problem, trial)]
    if not told:
        return None
    Y = scores(problem, told)
    extent = np.ptp(Y, axis=0)
    share = (Y - np.min(Y, axis=0)) / np.where(extent > 0.0, extent, 1.0)
    return told[int(np.argmax(np.prod(share + _MARGIN, axis=1)))]


def reference_point(problem: Problem, Y: FloatArray, others: FloatArray | None = None) -> FloatArray:
    """Return the point (m,) from which the hypervolume is measured: as given, and learned otherwise.

    A learned number lies below the worst value on the front, by a tenth of what the front covers, and at least half of
    the way to the worst value of all points.  An early front covers little, and with a reference beside it the search
    would stay there: on ZDT1 and ZDT3 (three seeds) the hypervolume was then 0.812 and 0.725 of the whole, in place of
    0.972 and 0.867.

    Args:
        problem: the problem, with the numbers that are given.
        Y: the objectives of the points at the target, turned, (n, m).
        others: those of all results, at any fidelity, (k, m); they count for the worst value.
    """
    if not len(Y):
        learned = np.zeros(len(problem.objectives))
    else:
        best = Y[undominated(Y)]
        covered = np.ptp(best, axis=0)
        everything = np.ptp(Y, axis=0)
        own = np.maximum(np.max(np.abs(Y), axis=0), 1e-12)
        extent = np.where(covered > 0.0, covered, np.where(everything > 0.0, everything, own))
        worst = np.min(Y if others is None else np.vstack([Y, others]), axis=0)
        nadir = np.min(best, axis=0)
        learned = np.minimum(nadir - _MARGIN * extent, 0.5 * nadir + 0.5 * worst)
    turns = turns_of(problem)
    return np.array(
        [
            turn * problem.reference[name] if name in problem.reference else learned[k]
            for k, (name, turn) in enumerate(turns.items())
        ]
    )
