"""What may be spent: as a user says it, and as a strategy is told of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from boca.domain.errors import InvalidInput
from boca.domain.space import finite_number


@dataclass(frozen=True)
class Limit:
    """What a user is ready to spend, in the unit in which it was said."""

    amount: float
    unit: Literal["targets", "seconds", "cost"]

    def __post_init__(self) -> None:
        amount = finite_number(self.amount, "The budget")
        if amount <= 0:
            raise InvalidInput(f"The budget must be positive; got {self.amount!r}.")
        object.__setattr__(self, "amount", amount)


def targets(n: float) -> Limit:
    """Return a budget of n evaluations' worth at the target fidelity."""
    return Limit(n, "targets")


def seconds(s: float) -> Limit:
    """Return a budget of wall-clock seconds: evaluations and the time to choose them, summed over workers."""
    return Limit(s, "seconds")


@dataclass(frozen=True)
class Budget:
    """What a strategy may know of the money, in cost units: all of it, the share of the start, what is gone."""

    total: float
    start: float
    spent: float = 0.0
    reserved: float = 0.0

    @property
    def left(self) -> float:
        return self.total - self.spent - self.reserved

    def affords(self, cost: float) -> bool:
        """Whether a query of this cost fits; sums of floats may miss the total by rounding, money may not."""
        return cost <= self.left + 1e-12 * self.total if math.isfinite(self.total) else True
