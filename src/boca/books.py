"""The books: what the trials of a study have cost, and what may still be bought."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from boca import cost as cost_models
from boca.problem import Budget, Capital, Problem
from boca.trial import History, Trial

_START_SHARE = 0.1  # of the capital
_ENDLESS_START = 1  # targets a dimension (and one) for the start of a study without a budget
_BLIND = 32  # trials out at once while money is counted in seconds and none has been measured


@dataclass(frozen=True)
class Books:
    """What a history has cost, and what may still be bought, under a capital in its own unit."""

    problem: Problem
    history: History
    capital: Capital | None

    @cached_property
    def costs(self) -> cost_models.Costs:
        return cost_models.costs(self.problem, self.history)

    @cached_property
    def budget(self) -> Budget:
        """Return the money in cost units."""
        spent = math.fsum(self._amount(t) for t in self.history.finished if not t.added)
        reserved = math.fsum(self._amount(t) for t in self.history.running)
        target = self.costs.target
        if self.capital is None:
            return Budget(math.inf, _ENDLESS_START * (len(self.problem.space) + 1) * target, spent, reserved)
        if self._is_unmeasured:  # anything may be bought, at random, until the first result says what it costs
            return Budget(math.inf, math.inf)
        if self.capital.unit == "seconds":
            return self._from_seconds(self.capital.amount)
        total = self.capital.amount * (target if self.capital.unit == "targets" else 1.0)
        return Budget(total, _START_SHARE * total, spent, reserved)

    def _from_seconds(self, amount: float) -> Budget:
        """Return seconds as cost units, at the rate of a slow query at the target."""
        model = self.seconds
        assert model is not None
        rate = model.pessimistic(self.problem.target) / self.costs.pessimistic(self.problem.target)
        total = amount / rate
        reserved = math.fsum(model.of(t.z) for t in self.history.running) / rate
        return Budget(total, _START_SHARE * total, self._seconds_spent() / rate, reserved)

    @property
    def _is_unmeasured(self) -> bool:
        """Whether money is counted in seconds and no result has told yet how many a query takes."""
        if self.capital is None or self.capital.unit == "targets":
            return False
        return (self.capital.unit == "seconds" or not self.problem.has_declared_cost) and self.seconds is None

    @cached_property
    def seconds(self) -> cost_models.Seconds | None:
        return cost_models.seconds(self.problem, self.history)

    def _amount(self, trial: Trial) -> float:
        return cost_models.amount(trial, self.problem, self.costs)

    def _seconds_spent(self) -> float:
        return math.fsum((t.seconds or 0.0) + t.overhead for t in self.history.finished if not t.added)

    @property
    def spent(self) -> float:
        in_seconds = self.capital is not None and self.capital.unit == "seconds"
        return self._seconds_spent() if in_seconds else self.budget.spent

    def warnings(self, *, queued: int) -> list[str]:
        found = []
        failed = [t for t in self.history if t.state == "failed"]
        total, target, unit = self._in_its_own_unit()
        if total < target * (1.0 - 1e-9):
            found.append(
                f"The budget of {total:.6g}{unit} does not buy one query at the target, which costs {target:.6g}: "
                "the recommendation is unverified."
            )
        elif self.history.complete and self.history.best(self.problem) is None:
            found.append("Nothing was completed at the target: there is no best value, only a recommendation.")
        if self.spent > total * (1.0 + 1e-9):
            found.append(
                f"Trials cost {self.spent - total:.6g}{unit} more than the budget of {total:.6g}: "
                "their cost was learned or corrected only after they were handed out."
            )
        if failed:
            found.append(f"{len(failed)} of {len(self.history)} trials failed, the last with: {failed[-1].reason}")
        if queued:
            points = "1 queued point was" if queued == 1 else f"{queued} queued points were"
            found.append(f"{points} never run: more than was left.")
        return found

    def _in_its_own_unit(self) -> tuple[float, float, str]:
        """Return all the money, the cost of a target query, and the unit: seconds or cost units."""
        if self.capital is not None and self.capital.unit == "seconds":
            return self.capital.amount, self.seconds.target if self.seconds else 0.0, " s"
        return self.budget.total, self.costs.target, ""

    def affords(self, z: Mapping[str, Any]) -> bool:
        """Whether a query at z fits: exactly where the cost is declared, with nine chances in ten where learned."""
        if self.capital is None:
            return True
        if self._is_unmeasured:
            return self._seconds_spent() < self.capital.amount and len(self.history.running) < _BLIND
        if self.capital.unit == "seconds":
            assert self.seconds is not None
            out = math.fsum(self.seconds.of(t.z) for t in self.history.running)
            return self.seconds.pessimistic(z) <= self.capital.amount - self._seconds_spent() - out
        return self.budget.affords(self.costs.pessimistic(z))
