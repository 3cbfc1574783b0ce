"""The budget: as a user gives it, and as a strategy sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from boca.domain.errors import doubt
from boca.domain.space import positive_number
from boca.domain.words import readable

_FEW_TARGETS = 2  # target evaluations: with fewer there is nothing to choose between
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


def limit_of(budget: Limit | float | None, target_cost: float | None) -> Limit | None:
    """Return the budget that a user gave; a number is in cost units, of which few may be a mistake.

    Args:
        budget: as the user gave it.
        target_cost: of one evaluation at the target; None if it is not known yet.
    """
    if isinstance(budget, Limit) or budget is None:
        return budget
    limit = Limit(budget, "cost")
    buys = math.inf if target_cost is None else limit.amount / target_cost
    if buys < _FEW_TARGETS:
        meant = limit.amount if limit.amount >= _FEW_TARGETS else 30
        doubt(
            f"budget={budget!r} is in cost units and buys {readable(buys)} of a target evaluation, which costs "
            f"{readable(target_cost or 0.0)}. Did you mean budget=boca.targets({meant:g})?"
        )
    return limit


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
