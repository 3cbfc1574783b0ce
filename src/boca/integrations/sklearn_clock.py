"""The next trial of a search whose cost is learned: one that is expected to fit, until no full evaluation does.

`Optimizer.ask` hands out what fits nine times in ten, since its trials may be many at once and cost much each.  How
long a cross-validation takes depends on the settings as much as on the fidelity, so that nine in ten may mean three
times as long as usual: a search of a minute would end after half of it.  Here one trial runs at a time and what is
left is known before each, so what fits as expected is run.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any

import numpy as np

from boca.accounting.ledger import Ledger
from boca.domain.budget import Budget
from boca.domain.reasons import Reasons
from boca.domain.space import Point
from boca.domain.trial import Trial, barred, best_of, is_exhausted, point_key
from boca.study.optimizer import Optimizer

_LATE = 1.05  # of what is left, up to which a full evaluation may be expected to take: costs scatter by more than that
_WORTH_SAYING = 0.1  # of the budget that is left at the end, from which on a warning says why

_BEFORE_THE_LAST = "The last full evaluation is next; what it leaves of the budget is spent before it, on its point."
_QUICK = "The point with the best result below the target of those expected to fit in what is left, in full."
_TO_LEARN_COSTS = "The target seems to cost more than is left, and little is known yet of how the cost grows."
_NO_RESULT_YET = "The target seems to cost more than is left, but a search without a result there has none."
_SHARE_TO_LEARN_COSTS = 0.125  # of what is left: the target should still fit


def next_trial(optimizer: Optimizer) -> Trial | None:
    """Return the next trial of a search, or None if nothing more is expected to fit."""
    ledger = _ledger(optimizer)
    if ledger.limit is None or ledger.is_exact or ledger.target is None:
        return optimizer.ask()
    return _Asked(optimizer, ledger).trial()


def unspent(optimizer: Optimizer) -> list[str]:
    """Return a sentence on what a search has left and why, or none."""
    ledger = _ledger(optimizer)
    if ledger.limit is None or ledger.is_exact or ledger.target is None or ledger.left < _WORTH_SAYING * ledger.total:
        return []
    return [
        f"The search ended with {ledger.spent_in_words} spent: another full evaluation is expected to cost "
        f"{ledger.in_words(ledger.target)}."
    ]


def _ledger(optimizer: Optimizer) -> Ledger:
    return Ledger(optimizer.problem, optimizer.storage.read().history, optimizer.limit)


class _Asked:
    """One choice."""

    def __init__(self, optimizer: Optimizer, ledger: Ledger) -> None:
        self._optimizer = optimizer
        self._problem = optimizer.problem
        self._now = optimizer.storage.read()
        self._ledger = ledger
        self._began = time.perf_counter()

    def trial(self) -> Trial | None:
        history, problem = self._now.history, self._problem
        if is_exhausted(problem, history):
            return None
        rng = np.random.default_rng([self._optimizer.seed, len(history)])
        asked = self._optimizer.strategy.suggest(problem, history, self._as_expected(), rng)
        left = self._ledger.left
        if not problem.is_target(asked.z):
            return self._claimed(asked.x, asked.z, asked.why) if self._expected(asked.z) <= left else None
        there = self._expected(problem.target) * self._pace(asked.x)
        if there > _LATE * left:
            return self._instead(asked.x, left)
        if 0.0 < left - there < self._expected(problem.target):
            lower = self._costliest(asked.x, left - there)
            if lower is not None and history[-1].why["reason"] != _BEFORE_THE_LAST:
                return self._claimed(asked.x, lower, {"reason": _BEFORE_THE_LAST, "phase": "queued"})
        return self._claimed(asked.x, asked.z, asked.why)

    def _instead(self, x: Point, left: float) -> Trial | None:
        """Return what is run in place of x at the target, which is expected not to fit; None to end here."""
        quick = self._quick(_LATE * left)
        if quick is not None:
            return self._claimed(quick, self._problem.target, {"reason": _QUICK, "phase": "queued"})
        history = self._now.history
        if any(self._problem.is_target(t.z) for t in history):
            return None
        lower = self._costliest(x, _SHARE_TO_LEARN_COSTS * left)
        if lower is not None and not any(t.why["reason"] == _TO_LEARN_COSTS for t in history):
            return self._claimed(x, lower, {"reason": _TO_LEARN_COSTS, "phase": "queued"})
        # without a result there the search has none, and the cheapest often overstate by far what others cost
        return self._claimed(x, self._problem.target, {"reason": _NO_RESULT_YET, "phase": "queued"})

    def _as_expected(self) -> Budget:
        """Return the budget with which a strategy counts as expected.

        It compares pessimistic costs with what is left, so what is left is as much larger as they are.
        """
        budget, costs = self._ledger.budget, self._ledger.costs
        if not math.isfinite(budget.total):
            return budget
        larger = costs.pessimistic(self._problem.target) / costs.target
        return replace(budget, total=larger * budget.left + budget.spent + budget.reserved)

    def _expected(self, z: Mapping[str, Any]) -> float:
        """Return what a query at z is expected to be charged."""
        seconds = self._ledger.seconds if self._ledger.counts_seconds else None
        return self._ledger.costs.of(z) if seconds is None else seconds.of(z)

    def _pace(self, x: Mapping[str, Any]) -> float:
        """Return how many times as long as expected the trials at x took; one if there are none."""
        here = [t for t in self._now.history.complete if point_key(t.x) == point_key(x) and not t.added]
        return statistics.median(self._ledger.charge(t) / self._expected(t.z) for t in here) if here else 1.0

    def _costliest(self, x: Mapping[str, Any], spare: float) -> Point | None:
        """Return the costliest fidelity within what is to spare at which x was not run."""
        pace = self._pace(x)
        tried = {point_key(t.z) for t in self._now.history if point_key(t.x) == point_key(x)}
        grid = ((self._expected(z), z) for z in self._problem.grid[0] if point_key(z) not in tried)
        _, z = max(((cost, z) for cost, z in grid if pace * cost <= spare), key=itemgetter(0), default=(0.0, None))
        return None if z is None else dict(z)

    def _quick(self, left: float) -> Point | None:
        """Return the best of the points that were only run below the target and are expected to fit there."""
        history, usual = self._now.history, self._expected(self._problem.target)
        ruled_out = {point_key(t.x) for t in history if self._problem.is_target(t.z)} | barred(history)
        fitting = (t for t in history.complete if point_key(t.x) not in ruled_out and usual * self._pace(t.x) <= left)
        best = best_of(fitting, self._problem.direction)
        return None if best is None else dict(best.x)

    def _claimed(self, x: Mapping[str, Any], z: Mapping[str, Any], why: Mapping[str, Any]) -> Trial:
        history = self._now.history
        draft = Trial(
            number=len(history),
            x=self._problem.space.validate(x, "the strategy's x"),
            planned=self._problem.fidelity.validate(z, "the strategy's z"),
            cost=self._ledger.costs.of(z),
            reasons=Reasons.of(dict(why)),
            overhead=time.perf_counter() - self._began,
            seen=self._now.event,
        )
        trial = self._optimizer.storage.claim(draft)
        assert trial is not None  # nothing else uses this study
        return trial.copied()
