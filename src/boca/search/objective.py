"""What a maximizer needs of a function, and how it ranks many points by it."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from boca.domain.space import FloatArray

SCREENING_BATCH = 64  # candidates whose values are computed together, in falling order of their bounds


class Objective(Protocol):
    """A function to maximize, of many points at once, with and without derivatives."""

    def value(self, U: FloatArray, /) -> FloatArray: ...  # (m, d) -> (m,)
    def value_and_gradient(self, U: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...  # (m, d) -> (m,), (m, d)


@runtime_checkable
class Bounded(Objective, Protocol):
    """An objective with upper bounds that cost less than its values."""

    def bound(self, U: FloatArray, /) -> FloatArray | None:  # (m, d) -> (m,)
        """Return upper bounds of the values; None if there are none, or they would cost no less."""


def ranked(objective: Objective, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (m, d), (m,)
    """Return the rows with their values, best first."""
    values = objective.value(U)
    order = np.argsort(-values, kind="stable")
    return U[order], values[order]


def screened(objective: Objective, U: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:  # -> (k, d), (k,)
    """Return all rows that may be among the best `count`, with their values, best first.

    Rows whose bounds rule that out are not evaluated.
    """
    bound = objective.bound(U) if isinstance(objective, Bounded) else None
    if bound is None:
        return ranked(objective, U)
    order = np.argsort(-bound, kind="stable")
    points, bound = U[order], bound[order]
    values = np.empty(0)
    while len(values) < len(points):
        k = len(values)
        if k >= count and np.partition(values, -count)[-count] >= bound[k]:
            break
        values = np.concatenate([values, objective.value(points[k : k + SCREENING_BATCH])])
    best = np.argsort(-values, kind="stable")
    return points[best], values[best]


def merged(groups: list[tuple[FloatArray, FloatArray]]) -> FloatArray:  # (k, d)
    """Return all rows of all groups, best first; of equal rows, those of the earlier group first."""
    values = np.concatenate([values for _, values in groups])
    return np.vstack([points for points, _ in groups])[np.argsort(-values, kind="stable")]
