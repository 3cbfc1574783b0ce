"""The budget: as a user gives it, and as a strategy sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from boca.domain.space import positive_number

_ROUNDING_OF_SUMS = 1e-12  # of the total, by which a sum of costs may exceed it


@dataclass(frozen=True)
class Limit:
    """The budget in the unit in which the user gave it."""

    amount: float
    unit: Literal["targets", "seconds", "cost"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "amount", positive_number(self.amount, "The budget"))


def targets(n: float) -> Limit:
    """Return a budget of n target evaluations: n times the cost of one evaluation at the target."""
    return Limit(n, "targets")


def seconds(s: float) -> Limit:
    """Return a budget of wall-clock seconds: evaluations and the time to choose them, summed over workers."""
    return Limit(s, "seconds")


@dataclass(frozen=True)
class Budget:
    """The budget in cost units, as a strategy sees it: the total, the part of the start, what is spent or reserved."""

    total: float
    start: float
    spent: float = 0.0
    reserved: float = 0.0

    @property
    def left(self) -> float:
        return self.total - self.spent - self.reserved

    def affords(self, cost: float) -> bool:
        """Whether a query of this cost is within what is left, up to the rounding of sums."""
        return cost <= self.left + _ROUNDING_OF_SUMS * self.total if math.isfinite(self.total) else True
