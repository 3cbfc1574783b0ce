"""What trials were charged and what is left, read from a study without the user's cost function.

A declared cost is code, and is not stored.  What each trial cost is, so only the price of a target has to be found
where a budget counts targets: that of a trial at the target, or an estimate through the others, which is called one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from boca import cost as cost_models
from boca.problem import Problem
from boca.trial import History, Trial


@dataclass(frozen=True)
class Price:
    """What a query at the target costs, and whether that is an estimate."""

    amount: float | None
    is_estimate: bool


@dataclass(frozen=True)
class Money:
    """The books of a study in the unit of its budget; None is "not known yet" or, for a total, "no end"."""

    spec: Mapping[str, Any]
    problem: Problem
    history: History

    @property
    def unit(self) -> str:
        """What one counts: seconds, the units of a declared cost, or shares of a target until one is measured."""
        if self._in_seconds:
            return "seconds"
        if self._is_declared:
            return "cost"
        return "targets" if self._is_unmeasured and self._capital_unit != "cost" else "seconds"

    def paid(self, trial: Trial) -> float:
        """Return what a finished trial was charged; one that somebody brought along was not."""
        if trial.added or trial.state == "running":
            return 0.0
        if self._in_seconds:
            return (trial.seconds or 0.0) + trial.overhead
        if self._is_unmeasured and self._capital_unit == "cost":
            return 0.0  # nothing says yet how many seconds that was
        return trial.cost if self._is_declared else cost_models.amount(trial, self.problem, self._costs)

    def may_change(self, trial: Trial) -> bool:
        """Whether what a finished trial counts for is another amount after later results.

        That of one that nobody measured follows what is learned, and that of one before the first measured result is
        a share of a target until then.
        """
        if self._is_declared or self._in_seconds or trial.added or trial.state == "running":
            return False
        return trial.seconds is None or self._first is None or (trial.told or 0) < self._first

    @cached_property
    def spent(self) -> float:
        return math.fsum(self.paid(t) for t in self.history.finished)

    @cached_property
    def reserved(self) -> float | None:
        """Return what trials that are out are expected to cost."""
        running = self.history.running
        if not running:
            return 0.0
        if self._in_seconds:
            model = self._seconds
            return None if model is None else math.fsum(model.of(t.z) for t in running)
        if self._is_unmeasured and self._capital_unit == "cost":
            return None
        if self._is_declared:
            return math.fsum(t.cost for t in running)
        return math.fsum(cost_models.amount(t, self.problem, self._costs) for t in running)

    @cached_property
    def total(self) -> float | None:
        capital = self.spec["budget"]
        if capital is None:
            return None
        if capital["unit"] != "targets":
            return float(capital["amount"])
        price = self.target.amount
        return None if price is None else float(capital["amount"]) * price

    @property
    def left(self) -> float | None:
        return None if self.total is None else self.total - self.spent - (self.reserved or 0.0)

    @cached_property
    def target(self) -> Price:
        """Return the price of a query at the target, in the unit of the budget."""
        if self._in_seconds:
            return Price(None if self._seconds is None else self._seconds.target, True)
        if not self._is_declared:
            return Price(self._costs.target, True)
        if not self.problem.fidelity:
            return Price(1.0, False)
        seen = [t.cost for t in self.history if self.problem.is_target(t.z)]
        if seen:
            return Price(seen[-1], max(seen) - min(seen) > 1e-9 * max(seen))
        if not len(self.history):
            return Price(None, True)
        known = cost_models.Learned(self.problem, tuple(self.history), tuple(t.cost for t in self.history))
        return Price(known.target, True)

    @property
    def _is_declared(self) -> bool:
        return bool(self.spec["cost"] != "measured")

    @property
    def _capital_unit(self) -> str | None:
        return None if self.spec["budget"] is None else str(self.spec["budget"]["unit"])

    @property
    def _in_seconds(self) -> bool:
        return self._capital_unit == "seconds"

    @property
    def _is_unmeasured(self) -> bool:
        """Whether cost is to be learned and no result has told anything of it."""
        return not self._is_declared and not isinstance(self._costs, cost_models.Learned)

    @cached_property
    def _first(self) -> int | None:
        """The event of the first result that was measured."""
        return min((t.told or 0 for t in self.history.complete if t.seconds is not None), default=None)

    @cached_property
    def _costs(self) -> cost_models.Costs:
        return cost_models.costs(self.problem, self.history)

    @cached_property
    def _seconds(self) -> cost_models.Seconds | None:
        return cost_models.seconds(self.problem, self.history)
