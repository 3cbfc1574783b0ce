"""The ledger: what the trials of a study have cost, and what may still be bought."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from boca.accounting import cost as cost_models
from boca.domain.budget import Budget, Limit
from boca.domain.problem import Problem
from boca.domain.trial import History, Trial

_START_SHARE = 0.1  # of the limit
_ENDLESS_START = 1  # targets a dimension (and one) for the start of a study without a budget
_BLIND = 32  # trials out at once while money is counted in seconds and none has been measured


@dataclass(frozen=True)
class Ledger:
    """What a history has cost, and what may still be bought, under a limit in its own unit."""

    problem: Problem
    history: History
    limit: Limit | None
    first: Limit | None = None
    """What the study was made with, where it is another now: the start is a share of that one for ever."""

    @cached_property
    def costs(self) -> cost_models.Costs:
        return cost_models.costs(self.problem, self.history)

    @cached_property
    def seconds(self) -> cost_models.Seconds | None:
        return cost_models.seconds(self.problem, self.history)

    # In the unit of the limit -----------------------------------------------------------------------------------

    @property
    def unit(self) -> Literal["cost", "seconds", "targets"]:
        """What is counted: units of a declared cost, seconds, or shares of a target until one is measured."""
        if self.is_exact:
            return "cost"
        has_no_seconds = self.limit is None or self.limit.unit == "targets"
        return "targets" if has_no_seconds and self.seconds is None else "seconds"

    @property
    def counts_seconds(self) -> bool:
        """Whether money is seconds whatever the cost is: those of evaluations and of choices."""
        return self.limit is not None and self.limit.unit == "seconds"

    @property
    def is_exact(self) -> bool:
        """Whether it is known what a query will be charged, and not learned."""
        return self.problem.has_declared_cost and not self.counts_seconds

    def charge(self, trial: Trial) -> float:
        """Return what a trial was charged: nothing while it is out, or where it was brought along."""
        if trial.added or trial.state == "running":
            return 0.0
        if self.counts_seconds:
            return _took(trial)
        return 0.0 if self._is_unmeasured else self.worth(trial)

    @cached_property
    def spent(self) -> float:
        return math.fsum(self.charge(t) for t in self.history.finished)

    @cached_property
    def reserved(self) -> float | None:
        """What trials that are out are expected to cost; None where nothing says so yet."""
        running = self.history.running
        if self._is_unmeasured:
            return None if running else 0.0
        if self.counts_seconds:
            assert self.seconds is not None
            return math.fsum(self.seconds.of(t.z) for t in running)
        return math.fsum(self.worth(t) for t in running)

    @cached_property
    def total(self) -> float:
        """What there is of the limit: in targets of a learned cost, at least one more until the first was run.

        Cheap results may have let a target look far cheaper than it is, and what is spent worth many of them.
        """
        if self.limit is None:
            return math.inf
        total = self._worth(self.limit)
        if self.limit.unit == "targets" and not self.is_exact and self._is_target_untried:
            one_more = min(self.limit.amount, 1.0) * self.costs.target
            total = max(total, self.spent + (self.reserved or 0.0) + one_more)
        return total

    @cached_property
    def _is_target_untried(self) -> bool:
        return not any(self.problem.is_target(trial.z) for trial in self.history)

    def _worth(self, limit: Limit) -> float:
        return limit.amount * (self.costs.target if limit.unit == "targets" else 1.0)

    @property
    def left(self) -> float:
        return self.total - self.spent - (self.reserved or 0.0)

    @property
    def target(self) -> float | None:
        """What one query at the target is charged; None where nothing says so yet."""
        if self._is_unmeasured:
            return None
        return self.seconds.target if self.counts_seconds and self.seconds else self.costs.target

    @property
    def _is_unmeasured(self) -> bool:
        """Whether money is counted in seconds and no result has told yet how many a query takes."""
        if self.is_exact or self.limit is None or self.limit.unit == "targets":
            return False
        return self.seconds is None

    # In cost units ------------------------------------------------------------------------------------------------

    def worth(self, trial: Trial) -> float:
        """Return what a query like this one costs, whoever paid for it."""
        return cost_models.amount(trial, self.problem, self.costs)

    @cached_property
    def budget(self) -> Budget:
        """Return the money in cost units."""
        first = self.first or self.limit
        if self.limit is None:
            if first is None or first.unit == "seconds":
                start = _ENDLESS_START * (len(self.problem.space) + 1) * self.costs.target
            else:
                start = _START_SHARE * self._worth(first)
            return Budget(math.inf, start, self.spent, self.reserved or 0.0)
        if self._is_unmeasured:  # anything may be bought, at random, until the first result says what it costs
            return Budget(math.inf, math.inf)
        assert first is not None
        rate = self._rate
        start = _START_SHARE * self._worth(first)
        return Budget(self.total / rate, start / rate, self.spent / rate, (self.reserved or 0.0) / rate)

    @property
    def _rate(self) -> float:
        """Return what of the limit a cost unit is: of seconds, by a slow query at the target."""
        if not self.counts_seconds:
            return 1.0
        assert self.seconds is not None
        return self.seconds.pessimistic(self.problem.target) / self.costs.pessimistic(self.problem.target)

    # What follows -------------------------------------------------------------------------------------------------

    def warnings(self, *, queued: int) -> list[str]:
        """Return what the user should know; `queued` points wait and cannot be paid."""
        found = []
        failed = [t for t in self.history if t.state == "failed"]
        unit = " s" if self.counts_seconds else ""
        has_best = self.history.best(self.problem) is not None
        if not has_best and self.target is not None and self.total < self.target * (1.0 - 1e-9):
            found.append(
                f"The budget of {self.total:.6g}{unit} does not buy one query at the target, which costs "
                f"{self.target:.6g}: the recommendation is unverified."
            )
        elif self.history.complete and not has_best:
            found.append("Nothing was completed at the target: there is no best value, only a recommendation.")
        if self.spent > self.total * (1.0 + 1e-9):
            found.append(
                f"Trials cost {self.spent - self.total:.6g}{unit} more than the budget of {self.total:.6g}: "
                "their cost was learned or corrected only after they were handed out."
            )
        guard = self.history.chosen[-1].why.get("guard") if self.history.chosen else None
        if guard is not None:
            found.append(
                "Cheaper fidelities are switched off: results at the target are predicted better without them "
                f"(by {guard:.2g} nats)."
            )
        if failed:
            found.append(f"{len(failed)} of {len(self.history)} trials failed, the last with: {failed[-1].reason}")
        if queued:
            points = "1 queued point has" if queued == 1 else f"{queued} queued points have"
            found.append(f"{points} not been run: more than is left.")
        return found

    def affords(self, z: Mapping[str, Any]) -> bool:
        """Whether a query at z fits: exactly where the cost is declared, with nine chances in ten where learned.

        The first query at the target needs one chance in two: a study that ends without it has bought nothing.
        """
        if self.limit is None:
            return True
        if self._is_unmeasured:
            took = math.fsum(_took(t) for t in self.history.finished if not t.added)
            return took < self.limit.amount and len(self.history.running) < _BLIND
        is_first = self.problem.is_target(z) and self._is_target_untried
        if self.counts_seconds:
            assert self.seconds is not None
            return (self.seconds.of(z) if is_first else self.seconds.pessimistic(z)) <= self.left
        return self.budget.affords(self.costs.of(z) if is_first else self.costs.pessimistic(z))


def _took(trial: Trial) -> float:
    """Return the seconds of an evaluation and of its choice."""
    return (trial.seconds or 0.0) + trial.overhead
