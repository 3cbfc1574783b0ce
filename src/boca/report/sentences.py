"""What a study has to say in sentences: what was found, what it cost, and what its reader should be warned of.

All of it is plain text with numbers in it; whoever puts it on a page escapes it.
"""

from __future__ import annotations

import math

import numpy as np

from boca.accounting.ledger import Ledger
from boca.domain.space import Choice, Parameter
from boca.plots import data
from boca.plots.study import StudyView
from boca.render import advice, option, point, text

_FEW = 5  # queries before it means something that a fidelity never moved
_UNINFORMATIVE = 0.95  # information gap of the middle query below the target
_AT_BOUND = 0.01  # distance of the logarithms


# What was found and paid ------------------------------------------------------------------------------------------


def findings(study: StudyView) -> list[tuple[str, str]]:
    """Return the results, each with its heading."""
    best, advised = study.best, study.recommendation
    found = []
    if best is None:
        found.append(("Best at the target", "Nothing was completed at the target."))
    else:
        found.append(("Best at the target", f"{best.value:.8g} at {point(best.x)} (trial {best.number})"))
    if advised is None:
        found.append(("Recommended", study.why_no_model))
    else:
        found.append(("Recommended", f"{point(advised.x)}: {advice(advised.mean, advised.std, advised.verified)}"))
    return [*found, ("Cost", costs(study))]


def costs(study: StudyView) -> str:
    """Return what the queries cost and what as many at the target would have."""
    ledger = study.ledger
    paid = [t for t in study.history.finished if not t.added]
    brought = sum(t.added for t in study.history)
    words = [f"{_count(len(paid), 'query', 'queries')} cost {_money(ledger, ledger.spent)}."]
    each = ledger.target
    if paid and each is not None and study.problem.fidelity:
        about = "" if ledger.is_exact else "about "
        total = len(paid) * each
        words.append(
            f"As many at the target alone would have cost {about}{len(paid)} × {_amount(each)} = "
            f"{_money(ledger, total)}, "
            f"{total / ledger.spent:.3g} times that."
            if ledger.spent > 0
            else f"As many at the target alone would have cost {about}{_money(ledger, total)}."
        )
    if study.limit is not None:
        unit = {"targets": "queries at the target", "seconds": "seconds", "cost": "in cost"}[study.limit.unit]
        words.append(f"The budget was {text(study.limit.amount)} {unit}.")
    if brought:
        words.append(f"{_count(brought, 'result was', 'results were')} brought along and not charged.")
    return " ".join(words)


def _money(ledger: Ledger, amount: float) -> str:
    return _amount(amount) if ledger.unit == "cost" else f"{_amount(amount)} {ledger.unit}"


def _amount(amount: float) -> str:
    """Return six digits, and large whole numbers as people write them."""
    return f"{amount:,.0f}" if 1e5 <= amount < 1e13 else f"{amount:.6g}"


def _count(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


# What was searched ------------------------------------------------------------------------------------------------


def kind(parameter: Parameter) -> str:
    """Return what a parameter may be, in words."""
    if isinstance(parameter, Choice):
        return "one of " + ", ".join(option(value) for value in parameter.choices)
    name = "a whole number" if parameter.levels is not None else "a number"
    scale = ", on a log scale" if parameter.log else ""
    return f"{name} from {option(parameter.low)} to {option(parameter.high)}{scale}"


# Warnings ---------------------------------------------------------------------------------------------------------


def warnings(study: StudyView) -> list[str]:
    """Return what a reader should know before trusting the results."""
    told = study.ledger.warnings(queued=0) if study.said is None else study.said
    caveat = [] if study.caveat is None else [study.caveat]
    return [*told, *caveat, *_running(study), *_never_moved(study), *_at_bounds(study), *_uninformative(study)]


def _running(study: StudyView) -> list[str]:
    n = len(study.history.running)
    return [f"{_count(n, 'trial is', 'trials are')} still out: the numbers here may change."] if n else []


def _never_moved(study: StudyView) -> list[str]:
    queries = [t for t in study.history if not t.added]
    if len(queries) < _FEW:
        return []
    found = []
    for name in study.problem.fidelity:
        values = {t.z[name] for t in queries}
        if len(values) == 1:
            (value,) = values
            is_target = value == study.problem.target[name]
            where = "its target" if is_target else "which is not its target"
            found.append(
                f"The fidelity {text(name)} never moved: all {len(queries)} queries had {option(value)}, {where}."
                + (" It saved nothing." if is_target else "")
            )
    return found


def _at_bounds(study: StudyView) -> list[str]:
    model = study.model
    if model is None or getattr(study.strategy, "hyperparameters", None) is not None:
        return []
    numbers = model.hyperparameters()
    h = [*numbers["h_x"], *numbers.get("h_z", [])]
    names = [*study.problem.space, *study.problem.fidelity][: len(h)]
    lowest, highest = data.bandwidth_bounds(study)
    found = []
    for j, name in enumerate(names):
        is_fidelity = name in study.problem.fidelity
        who = f"The bandwidth of {'the fidelity ' if is_fidelity else ''}{text(name)}"
        if math.log(h[j]) >= math.log(highest) - _AT_BOUND:
            means = (
                "the model takes low values to tell almost as much as high ones"
                if is_fidelity
                else "the model sees at most a slow and even change along it, and may be too sure far from the trials"
            )
            found.append(f"{who} is at its upper bound: {means}.")
        elif abs(math.log(h[j]) - math.log(lowest)) <= _AT_BOUND:  # far below: a fidelity that is switched off
            means = (
                "to the model, results at one value say nothing about another"
                if is_fidelity
                else "the model finds no likeness between neighbours, as with too few results or too much noise"
            )
            found.append(f"{who} is at its lower bound: {means}.")
    return found


def _uninformative(study: StudyView) -> list[str]:
    gap = data.information_gap(study)
    if isinstance(gap, data.Note):
        return []
    below = gap.bought[~gap.marks.at_target]
    if not len(below) or np.median(below) <= _UNINFORMATIVE:
        return []
    return [
        f"The lower fidelities say little about the target: the middle one of {_count(len(below), 'query', 'queries')} "
        f"below it leaves an information gap of {np.median(below):.3f}, and 1 is no information."
    ]
