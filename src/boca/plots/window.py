"""The useful part of an axis of values.

One outlier must not flatten a curve.  So the axis ends where the results stop being typical, and what lies beyond is
counted instead of drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from boca.domain.problem import Direction
from boca.domain.space import FloatArray
from boca.domain.trial import sign

_TYPICAL = 6.0  # times the median distance from the best: a result that is further off is an outlier
_EDGE = 0.06  # of the height, free above and below


@dataclass(frozen=True)
class Window:
    """The useful part of the axis of values."""

    low: float
    high: float
    beyond: int
    """How many results lie outside."""


def window(best: FloatArray, values: FloatArray, direction: Direction | None) -> Window | None:  # (m,), (k,)
    """Return the part of the axis in which a curve of the best can be read; None if that is all of it."""
    turn = sign(direction)
    top = float(np.max(turn * best))
    with np.errstate(over="ignore"):  # two huge values may be infinitely far from each other
        distance = top - turn * np.concatenate([values, best])
    of_values = distance[: len(values)]
    positive = of_values[of_values > 0.0]
    if not len(positive):
        return None
    typical = distance <= _TYPICAL * float(np.quantile(positive, 0.5, method="lower"))
    beyond = int(np.sum(~typical[: len(values)]))
    if not beyond:
        return None
    reach = float(np.max(distance[typical]))
    if not np.isfinite(reach):
        return None
    ends = sorted((turn * (top + _EDGE * reach), turn * (top - (1.0 + _EDGE) * reach)))
    return Window(ends[0], ends[1], beyond)
