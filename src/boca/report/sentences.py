"""What the report says in sentences: what was found, what it cost, and what to know before trusting it.

All of it is plain text; the page escapes it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boca.domain.space import Parameter
from boca.domain.words import expected, option, point, text
from boca.plots import model_data
from boca.plots.axis import Note
from boca.plots.study import StudyView
from boca.strategies.base import knows_gp
from boca.study.recommendation import nothing_best

_UNMOVED_SAID_FROM_TRIALS = 5  # fewer can agree in a fidelity by chance
_UNINFORMATIVE_ABOVE = 0.95  # information gap of the median trial below the target; 1 is no information
_AT_BOUND = 0.01  # distance in logarithms: a hundredth of the bound, where the search for the maximum stops


# What was found, and what it cost ---------------------------------------------------------------------------------


_MOST_MEMBERS = 12  # trials of a front in a sentence


def findings(study: StudyView) -> list[tuple[str, str]]:
    """Return the results, each with its heading."""
    best, advised = study.best, study.recommendation
    found = []
    if study.problem.objectives and study.front:
        found += [(f"Front, {_count(len(study.front), 'trial', 'trials')}", _members(study))]
    elif best is None:
        words = nothing_best(study.problem, study.history)
        found.append(("Best at the target", f"{words[0].upper()}{words[1:]}."))
    else:
        outcomes = f"; {point(best.outcomes)}" if best.outcomes else ""
        found.append(("Best at the target", f"{text(best.value)} at {point(best.x)} (trial {best.number}){outcomes}"))
        if study.believed is not None:
            words = (
                f"{expected(*study.believed)}; the values carry noise, so the highest mean counts, not the best value"
            )
            found.append(("Believed there", words))
    if study.problem.subject_to:
        limits = ", ".join(f"{text(name)} {limit}" for name, limit in study.problem.subject_to.items())
        kept = len(study.history.feasible(study.problem))
        at = sum(study.problem.is_target(t.z) for t in study.history.complete)
        found.append(
            ("Limits", f"{limits}: {_count(kept, 'trial', 'trials')} of {at} at the target within all of them")
        )
    if study.problem.objectives:
        untried = [one for one in study.recommended_front if not one.verified]
        found += [("Recommended, not run at the target", f"{point(one.x)}: {one.words}") for one in untried]
    elif advised is None:
        found.append(("Recommended", study.why_no_model))
    else:
        found.append(("Recommended", f"{point(advised.x)}: {advised.words}"))
    return [*found, ("Cost", costs(study))]


def _members(study: StudyView) -> str:
    """Return the trials of a front in words, the first ones if there are many."""
    shown = [f"{point(t.outcomes)} at {point(t.x)} (trial {t.number})" for t in study.front[:_MOST_MEMBERS]]
    more = len(study.front) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])


def costs(study: StudyView) -> str:
    """Return what the trials cost."""
    ledger = study.ledger
    paid = [t for t in study.history.finished if not t.added]
    imported = sum(t.added for t in study.history)
    words = [f"{_count(len(paid), 'trial', 'trials')} cost {ledger.spent_in_words}."]
    if imported:
        words.append(f"{_count(imported, 'imported result was', 'imported results were')} not charged.")
    return " ".join(words)


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


# What was searched ------------------------------------------------------------------------------------------------


def kind(parameter: Parameter) -> str:
    """Return the range of a parameter, in words."""
    active = "" if parameter.when is None else f", when {_condition(parameter.when)}"
    if parameter.ends is None:
        return "one of " + ", ".join(option(value) for value in parameter.options) + active
    low, high = parameter.ends
    name = {"int": "an integer", "steps": "steps"}.get(parameter.kind, "a number")
    scale = ", on a log scale" if parameter.log else ""
    return f"{name} from {option(low)} to {option(high)}{scale}{active}"


def _condition(when: Mapping[str, Sequence[Any]]) -> str:
    return " and ".join(f"{text(name)} is {' or '.join(map(option, values))}" for name, values in when.items())


# Warnings ---------------------------------------------------------------------------------------------------------


def warnings(study: StudyView) -> list[str]:
    """Return what to know before trusting the results."""
    told = study.ledger.warnings(queued=0) if study.said is None else study.said
    caveat = [] if study.caveat is None else [study.caveat]
    return [*told, *caveat, *_running(study), *_never_moved(study), *_at_bounds(study), *_uninformative(study)]


def _running(study: StudyView) -> list[str]:
    n = len(study.history.running)
    return [f"{_count(n, 'trial is', 'trials are')} still running: the numbers here may change."] if n else []


def _never_moved(study: StudyView) -> list[str]:
    trials = [t for t in study.history if not t.added]
    if len(trials) < _UNMOVED_SAID_FROM_TRIALS:
        return []
    found = []
    for name in study.problem.fidelity:
        values = {t.z[name] for t in trials}
        if len(values) == 1:
            (value,) = values
            is_target = value == study.problem.target[name]
            where = "which is the target, so it saved nothing" if is_target else "which is not the target"
            found.append(
                f"The fidelity {text(name)} never moved: all {len(trials)} trials had {option(value)}, {where}."
            )
    return found


def _at_bounds(study: StudyView) -> list[str]:
    model = study.model
    if model is None or knows_gp(study.strategy):
        return []
    numbers = model.hyperparameters()
    h = [*numbers["h_x"], *numbers.get("h_z", [])]
    names = [*study.problem.space, *study.problem.fidelity][: len(h)]
    lowest, highest = model_data.length_scale_bounds(study)
    found = []
    for j, name in enumerate(names):
        is_fidelity = name in study.problem.fidelity
        what = f"The length scale of {'the fidelity ' if is_fidelity else ''}{text(name)}"
        if math.log(h[j]) >= math.log(highest) - _AT_BOUND:
            found.append(f"{what} is at its upper bound: {_MEANS['upper', is_fidelity]}.")
        elif abs(math.log(h[j]) - math.log(lowest)) <= _AT_BOUND:  # far below: a fidelity that is switched off
            found.append(f"{what} is at its lower bound: {_MEANS['lower', is_fidelity]}.")
    return found


# The bound, whether it is that of a fidelity -> what it means
_MEANS = {
    ("upper", True): "to the model, low values say almost as much about the target as high ones",
    ("upper", False): "the model sees at most a slow, even change along it, and may be too certain far from the trials",
    ("lower", True): "to the model, results at one value say nothing about another",
    ("lower", False): "the model finds neighbors unrelated, which too few results or too much noise can cause",
}


def _uninformative(study: StudyView) -> list[str]:
    gap = model_data.information_gap(study)
    if isinstance(gap, Note):
        return []
    below = gap.queried[~gap.marks.at_target]
    if not len(below) or np.median(below) <= _UNINFORMATIVE_ABOVE:
        return []
    return [
        f"The lower fidelities say little about the target: the median information gap of "
        f"{_count(len(below), 'trial', 'trials')} below it is {np.median(below):.3f}, and 1 is no information."
    ]
