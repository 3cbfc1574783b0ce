"""What the plots of trials show, as numbers: the progress, the fidelities that were queried, all parameters at once.

Each function returns its numbers, or a `Note` if there is nothing to draw.  Matplotlib draws them in `draw_trials`,
and Plotly in the report.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boca.domain.space import FloatArray, Parameter, Point
from boca.domain.trial import Trial, sign
from boca.domain.words import option
from boca.plots.axis import Axis, Marks, Note, marks, placed
from boca.plots.study import StudyView
from boca.plots.window import Window, window

SEVERAL = "There are several objectives, and no best value: the front and its hypervolume are shown instead."
_BEST_SHARE = 0.1  # of the trials, which parallel coordinates bring out ...
_MOST_BEST = 25  # ... and how many at most
_MAX_TICK = 12  # characters of a number beside an axis
_MAX_OPTION = 10  # characters of an option beside an axis


@dataclass(frozen=True)
class BestSoFar:
    """The best at the target against the budget spent: a staircase that ends where the spending ends."""

    spent: FloatArray  # (m,)
    best: FloatArray  # (m,)
    at: FloatArray  # (k,), what was spent when each result at the target came
    value: FloatArray  # (k,), and what it was
    trials: tuple[Trial, ...]
    unit: str


def progress(study: StudyView) -> BestSoFar | Note:
    if study.problem.objectives:
        return Note(SEVERAL)
    unit, one = counted(study)
    charges = np.cumsum([study.ledger.charge(t) for t in study.history.finished]) / one
    told = [
        (float(spent), t)
        for spent, t in zip(charges, study.history.finished, strict=True)
        if t.state == "complete" and study.problem.is_target(t.z)
    ]
    if not told:
        return Note("No trial is complete at the target yet.")
    at, trials = np.array([spent for spent, _ in told]), tuple(t for _, t in told)
    value = np.array([t.value for t in trials], dtype=float)
    turn = sign(study.problem.direction)
    best = turn * np.maximum.accumulate(turn * value)
    return BestSoFar(np.append(at, charges[-1]), np.append(best, best[-1]), at, value, trials, unit)


def counted(study: StudyView) -> tuple[str, float]:
    """Return the unit in which a budget is shown, and how much of the ledger's is one: target evaluations if possible.

    A budget that was given in seconds or cost units stays in these.
    """
    ledger = study.ledger
    is_in_targets = study.limit is None or study.limit.unit == "targets"
    if is_in_targets and (ledger.unit == "targets" or ledger.target):
        return "target evaluations", (ledger.target or 1.0) if ledger.unit != "targets" else 1.0
    return {"cost": "cost units", "targets": "target evaluations"}.get(ledger.unit, ledger.unit), 1.0


def regret(study: StudyView, optimum: float) -> BestSoFar | Note:
    """Return how far the best falls short of a known optimum, in place of the values."""
    found = progress(study)
    if isinstance(found, Note):
        return found
    turn = sign(study.problem.direction)
    best, value = (turn * (float(optimum) - values) for values in (found.best, found.value))
    return BestSoFar(found.spent, best, found.at, value, found.trials, found.unit)


@dataclass(frozen=True)
class Fidelities:
    """The fidelities that were queried, trial by trial."""

    axes: tuple[Axis, ...]
    target: Point
    marks: Marks
    unit: str


def fidelities(study: StudyView) -> Fidelities | Note:
    if not study.problem.fidelity:
        return Note("This problem has no fidelities: every query is at the target.")
    if not study.history:
        return Note("There are no trials yet.")
    axes = tuple(Axis(*item) for item in study.problem.fidelity.items())
    learned = "targets" if study.ledger.seconds is None else "seconds"
    unit = "cost" if study.problem.has_declared_cost else learned
    return Fidelities(axes, study.problem.target, marks(study), unit)


@dataclass(frozen=True)
class Column:
    """One upright axis of parallel coordinates: where its marks stand, from 0 to 1, and what they say."""

    name: str
    position: FloatArray  # (n,)
    ticks: list[tuple[float, str]]


@dataclass(frozen=True)
class Parallel:
    columns: tuple[Column, ...]
    marks: Marks
    """The complete trials only."""
    rank: FloatArray  # (n,)
    """From 0, the worst value, to 1, the best: an outlier must not make all others alike."""

    @property
    def best_share(self) -> float:
        """Which share of the trials a picture brings out: a tenth, of few trials one, of many no more than can be told
        apart."""
        return min(max(_BEST_SHARE * len(self.rank), 0.5), _MOST_BEST + 0.5) / len(self.rank)


def parallel_coordinates(study: StudyView) -> Parallel | Note:
    if study.problem.objectives:
        return Note(SEVERAL)
    shown = marks(study, complete=True)
    if not shown.trials:
        return Note("No trial is complete yet.")
    columns = [
        Column(name, placed(parameter.to_unit, name, [t.x | t.z for t in shown.trials]), _ticks(parameter))
        for name, parameter in (*study.problem.space.items(), *study.problem.fidelity.items())
    ]
    turn = sign(study.problem.direction)
    best = turn * np.max(turn * shown.value)
    useful = window(np.array([best]), shown.value, study.problem.direction)
    order = np.argsort(np.argsort(turn * shown.value, kind="stable"), kind="stable")
    return Parallel((*columns, _value_column(shown.value, useful)), shown, (order + 1.0) / len(order))


def _value_column(value: FloatArray, useful: Window | None) -> Column:
    """Return where values stand; those outside of the useful range stand at its end."""
    low, high = float(value.min()), float(value.max())
    first, last = (option(float(f"{end:.4g}"), _MAX_TICK) for end in (low, high))
    if useful is not None:
        if useful.low > low:
            low, first = useful.low, f"≤ {useful.low:.3g}"
        if useful.high < high:
            high, last = useful.high, f"≥ {useful.high:.3g}"
    if not high > low:
        return Column("value", np.full(len(value), 0.5), [(0.5, first)])
    inside = np.clip(value, low, high)
    position = (0.5 * inside - 0.5 * low) / (0.5 * high - 0.5 * low)  # halved: the range of two huge values is finite
    return Column("value", position, [(0.0, first), (1.0, last)])


def _ticks(parameter: Parameter) -> list[tuple[float, str]]:
    if parameter.options:
        return [(float(parameter.to_unit([value])[0]), option(value, _MAX_OPTION)) for value in parameter.options]
    values = sorted({parameter.from_unit(u) for u in (0.0, 0.5, 1.0)})
    return [(float(u), option(value, _MAX_TICK)) for u, value in zip(parameter.to_unit(values), values, strict=True)]
