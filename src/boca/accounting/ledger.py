"""The ledger: what the trials of a study have cost, and what the budget still covers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from boca.accounting import cost as cost_models
from boca.domain.budget import Budget, Limit
from boca.domain.failure_regions import where_trials_fail
from boca.domain.failures import causes, in_words
from boca.domain.problem import Problem
from boca.domain.trial import History, Trial
from boca.domain.words import readable

_START_SHARE = 0.1  # of the budget, for the queries of the start: the paper's tenth
_START_TARGETS_PER_COORDINATE = 1  # the start without a budget, in targets: per dimension, and one for the mean
_MOST_RUNNING_WHILE_UNMEASURED = 32  # trials at once while no result says how many seconds one takes
_LEAST_SECONDS_SHOWN = 0.1  # of evaluation, beside what is spent: less is a function that costs nothing
_EQUAL_AMOUNTS = 1e-9  # relative difference of sums of costs that counts as none


@dataclass(frozen=True)
class Ledger:
    """What a history has cost, and what the budget still covers, in the unit of the budget."""

    problem: Problem
    history: History
    limit: Limit | None
    first: Limit | None = None
    """The budget with which the study was created, if it is another one now: the start remains a share of this one."""

    @cached_property
    def costs(self) -> cost_models.Costs:
        return cost_models.costs(self.problem, self.history)

    @cached_property
    def seconds(self) -> cost_models.Seconds | None:
        return cost_models.seconds(self.problem, self.history)

    # In the unit of the budget ------------------------------------------------------------------------------------

    @property
    def unit(self) -> Literal["cost", "seconds", "targets"]:
        """What is counted: units of a declared cost, seconds, or shares of a target until one is measured."""
        if self.is_exact:
            return "cost"
        has_no_seconds = self.limit is None or self.limit.unit == "targets"
        return "targets" if has_no_seconds and self.seconds is None else "seconds"

    @property
    def counts_seconds(self) -> bool:
        """Whether the budget is in seconds, of evaluations and of choosing them, whatever the cost is."""
        return self.limit is not None and self.limit.unit == "seconds"

    @property
    def is_exact(self) -> bool:
        """Whether the charge of a query is known beforehand, and not learned."""
        return self.problem.has_declared_cost and not self.counts_seconds

    def charge(self, trial: Trial) -> float:
        """Return what a trial was charged: nothing while it is running, or if it was imported."""
        if trial.added or trial.state == "running":
            return 0.0
        if self.counts_seconds:
            return _seconds_of(trial)
        return 0.0 if self._is_unmeasured else self.worth(trial)

    @cached_property
    def spent(self) -> float:
        return math.fsum(self.charge(t) for t in self.history.finished)

    @cached_property
    def reserved(self) -> float | None:
        """What the running trials are expected to cost; None if no result says so yet."""
        running = self.history.running
        if self._is_unmeasured:
            return None if running else 0.0
        if self.counts_seconds:
            assert self.seconds is not None
            return math.fsum(self.seconds.of(t.z, t.origin) for t in running)
        return math.fsum(self.worth(t) for t in running)

    @cached_property
    def total(self) -> float:
        """The whole budget; in targets of a learned cost, it covers one more target until the first one was run.

        Cheap results may have made a target look far cheaper than it is, so that what is spent looks like many of them.
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
        """What one query at the target is charged; None if no result says so yet."""
        if self._is_unmeasured:
            return None
        return self.seconds.target if self.counts_seconds and self.seconds else self.costs.target

    @property
    def _is_unmeasured(self) -> bool:
        """Whether the budget is counted in seconds, and no result says yet how many a query takes."""
        if self.is_exact or self.limit is None or self.limit.unit == "targets":
            return False
        return self.seconds is None

    # In cost units ------------------------------------------------------------------------------------------------

    def worth(self, trial: Trial) -> float:
        """Return what a query like this trial costs, charged or not."""
        return cost_models.amount(trial, self.problem, self.costs)

    @cached_property
    def budget(self) -> Budget:
        """The budget in cost units, as a strategy sees it."""
        first = self.first or self.limit
        if self.limit is None:
            if first is None or first.unit == "seconds":
                start = _START_TARGETS_PER_COORDINATE * (self.problem.space.widest + 1) * self.costs.target
            else:
                start = _START_SHARE * self._worth(first)
            return Budget(math.inf, start, self.spent, self.reserved or 0.0)
        if self._is_unmeasured:  # everything belongs to the start until the first result says what a query costs
            return Budget(math.inf, math.inf)
        assert first is not None
        rate = self._rate
        start = _START_SHARE * self._worth(first)
        return Budget(self.total / rate, start / rate, self.spent / rate, (self.reserved or 0.0) / rate)

    @property
    def _rate(self) -> float:
        """Return what one cost unit is in the unit of the budget: if that is seconds, by a slow query at the target."""
        if not self.counts_seconds:
            return 1.0
        assert self.seconds is not None
        return self.seconds.pessimistic(self.problem.target) / self.costs.pessimistic(self.problem.target)

    def affords(self, z: Mapping[str, Any], start: int = 0) -> bool:
        """Whether the budget covers a query at z: exactly if the cost is declared, else with a probability of 0.9.

        A query that goes on from a step needs what comes after.  For the first query at the target 0.5 is enough: a
        study that ends without it has no result.
        """
        if self.limit is None:
            return True
        if self._is_unmeasured:
            took = math.fsum(_seconds_of(t) for t in self.history.finished if not t.added)
            return took < self.limit.amount and len(self.history.running) < _MOST_RUNNING_WHILE_UNMEASURED
        is_first = self.problem.is_target(z) and self._is_target_untried
        if self.counts_seconds:
            assert self.seconds is not None
            return (self.seconds.of(z, start) if is_first else self.seconds.pessimistic(z, start)) <= self.left
        is_median = is_first or self.problem.has_declared_cost
        return self.budget.affords(self.costs.going_on(z, start) if is_median else self.costs.pessimistic(z, start))

    # In words -----------------------------------------------------------------------------------------------------

    def in_words(self, amount: float) -> str:
        """Return an amount in the unit of the budget, with its unit."""
        unit = {"cost": "cost units", "seconds": "s", "targets": "target evaluations"}[self.unit]
        return f"{readable(amount)} {unit}"

    @property
    def spent_in_words(self) -> str:
        """What is spent, as a share of the budget: "23.8 of 25 target evaluations (16.9 s of evaluation)"."""
        if self.limit is None:
            spent = self.in_words(self.spent)
        elif self.limit.unit == "targets":
            target = self.costs.target
            spent = f"{readable(self.spent / target)} of {readable(self.total / target)} target evaluations"
        else:
            spent = f"{readable(self.spent)} of {self.in_words(self.total)}"
        took = math.fsum(t.seconds or 0.0 for t in self.history.finished if not t.added)
        if self.unit == "seconds" or took < _LEAST_SECONDS_SHOWN:
            return spent
        return f"{spent} ({readable(took)} s of evaluation)"

    def warnings(self, *, queued: int) -> list[str]:
        """Return what the user should know, in sentences; `queued` points wait and are not affordable."""
        found = [*self._warnings_of_the_target(), *self._warnings_of_overshoot()]
        guard = self.history.chosen[-1].why.get("guard") if self.history.chosen else None
        if guard is not None:
            found.append(
                "Cheaper fidelities are switched off: results at the target are predicted better without them "
                f"(by {guard:.2g} nats)."
            )
        failed = causes(self.history)
        if failed:
            count = sum(len(cause.trials) for cause in failed)
            found.append(f"{count} of {len(self.history)} trials failed, {in_words(failed)}")
            where = where_trials_fail(self.problem, self.history)
            found += [] if where is None else [where]
        twice = [t.number for t in self.history if any(event.kind == "differs" for event in t.events)]
        if twice:
            trials = (
                f"Trial {twice[0]}" if len(twice) == 1 else f"{len(twice)} trials, of which the first is {twice[0]},"
            )
            found.append(
                f"{trials} told two values of one step, after going on from a checkpoint or in what was returned at "
                "the end; the first one is kept."
            )
        if queued == 1:
            found.append("1 queued point has not been run: it costs more than the remaining budget.")
        elif queued:
            found.append(f"{queued} queued points have not been run: each costs more than the remaining budget.")
        return found

    def _warnings_of_the_target(self) -> list[str]:
        if self.history.front(self.problem):
            return []
        if self.target is not None and self.total < self.target * (1.0 - _EQUAL_AMOUNTS):
            return [
                f"The budget of {self.in_words(self.total)} does not cover one query at the target, which costs "
                f"{self.in_words(self.target)}. The recommendation is not verified."
            ]
        if self.problem.subject_to and any(self.problem.is_target(t.z) for t in self.history.told(self.problem)):
            return [f"No trial at the target is within every limit ({self._limits}): there is no {self._sought}."]
        if self.history.complete:
            return [f"Nothing was completed at the target: there is no {self._sought}, only a recommendation."]
        return []

    @property
    def _sought(self) -> str:
        return "front" if self.problem.objectives else "best value"

    @property
    def _limits(self) -> str:
        return ", ".join(f"{name} {limit}" for name, limit in self.problem.subject_to.items())

    def _warnings_of_overshoot(self) -> list[str]:
        if self.spent <= self.total * (1.0 + _EQUAL_AMOUNTS):
            return []
        return [
            f"The trials cost {self.in_words(self.spent - self.total)} more than the budget of "
            f"{self.in_words(self.total)}, because their cost was learned or corrected after they had started."
        ]


def _seconds_of(trial: Trial) -> float:
    """Return the seconds of an evaluation and of choosing it."""
    return (trial.seconds or 0.0) + trial.overhead
