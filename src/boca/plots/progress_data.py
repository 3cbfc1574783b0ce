"""The progress of several runs as one curve with a band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray
from boca.domain.trial import sign
from boca.plots.axis import Note
from boca.plots.study import StudyView
from boca.plots.trial_data import BestSoFar, progress

_QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Band:
    """The best at the target of several runs against the budget spent: the median, and the middle half of the runs."""

    spent: FloatArray  # (m,)
    median: FloatArray  # (m,)
    low: FloatArray  # (m,), NaN before it is known, as high is
    high: FloatArray  # (m,)
    runs: int
    unit: str


def band(studies: Sequence[StudyView]) -> Band | Note:
    """Return the median and the quartiles of several runs, from the median's first result to the end of the shortest.

    A run without a result at the target counts as worse than any other.
    """
    directions = {seen.problem.direction for seen in studies}
    if len(directions) != 1:
        raise InvalidInput("The runs must all maximize or all minimize; got both. Draw them in two plots.")
    found = [progress(seen) for seen in studies]
    told = [each for each in found if isinstance(each, BestSoFar)]
    units = {each.unit for each in told}
    if len(units) > 1:
        raise InvalidInput(
            f"The budgets of the runs must be counted in one unit; got {sorted(units)}. Draw them in several plots."
        )
    if not told:
        return Note("No trial is complete at the target yet.")
    turn = sign(directions.pop())
    places = np.unique(np.concatenate([each.spent for each in told]))
    places = places[places <= min(each.spent[-1] for each in told)]
    curves = np.full((len(found), len(places)), -np.inf)  # larger is better
    for curve, each in zip(curves, found, strict=True):
        if isinstance(each, BestSoFar):
            last = np.searchsorted(each.spent, places, side="right") - 1
            curve[last >= 0] = turn * each.best[last[last >= 0]]
    quarters = [turn * np.quantile(curves, share, axis=0, method="lower") for share in _QUARTILES]
    worst, median, upper = (np.where(np.isfinite(values), values, np.nan) for values in quarters)
    is_known = np.isfinite(median)
    if not is_known.any():
        return Note("Fewer than half of the runs have a result at the target yet.")
    low, high = (worst, upper) if turn > 0 else (upper, worst)
    return Band(places[is_known], median[is_known], low[is_known], high[is_known], len(found), told[0].unit)
