"""Several studies in one chart: the best value at the target so far, against what was spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from boca.dashboard.watch import WatchedStudy
from boca.domain.trial import sign


def curve(study: WatchedStudy) -> dict[str, Any]:
    """Return the staircase of one study.

    `x` is what was spent when a better result came, and at the end, in the unit of the ledger; `target` is what one
    target evaluation costs in that unit, None if that is not known yet.
    """
    ledger, better = study.ledger, sign(study.problem.direction)
    feasible = {trial.number for trial in study.history.feasible(study.problem)}
    spent, best = 0.0, None
    x, y = [], []
    for trial in study.history.finished:
        spent += ledger.charge(trial)
        value = trial.value
        if trial.number in feasible and value is not None and (best is None or better * value > better * best):
            best = value
            x.append(spent)
            y.append(value)
    if best is not None:
        x.append(spent)
        y.append(best)
    return {
        "name": study.row.name,
        "direction": study.problem.direction,
        "unit": ledger.unit,
        "target": 1.0 if ledger.unit == "targets" else ledger.target,
        "x": x,
        "y": y,
    }


def curves(studies: Sequence[WatchedStudy]) -> dict[str, Any]:
    """Return the staircases of several studies, in the order in which they were asked for."""
    return {"curves": [curve(study) for study in studies]}
