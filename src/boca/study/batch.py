"""Trials that are chosen together: all of them from the results that the first one read.

Results that are told while the others are chosen neither enter nor invalidate these choices.  A trial that another
process adds does: the next choice then begins another batch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.trial import History, Suggestion, Trial
from boca.strategies.base import SharesBatches
from boca.study.storage import Snapshot


class Batch:
    """What the trials of one batch read, and what they share."""

    def __init__(self, strategy: SharesBatches) -> None:
        self._strategy = strategy
        self._begun: Snapshot | None = None
        self._members: list[Trial] = []
        self._shared: Any = None

    def read(self, now: Snapshot, waiting: Sequence[Trial] = ()) -> Snapshot:
        """Return what the next choice reads: the study as the batch began, with its trials so far as running.

        Trials that are chosen and not stored yet are `waiting`: they count as running too.
        """
        if self._begun is None or len(now.history) + len(waiting) != self._count:
            self.end()
            self._begun = Snapshot(now.history.joined(waiting), now.event, now.queue) if waiting else now
        if not self._members:
            return self._begun
        return Snapshot(self._begun.history.joined(self._members), self._begun.event, now.queue)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        """Return the next choice of the strategy."""
        suggestion, self._shared = self._strategy.suggest_member(problem, history, budget, rng, self._shared)
        return suggestion

    def unless_joined(self, stands: Callable[[History], bool]) -> Callable[[History], bool]:
        """Return whether a choice still stands, and no other trial has the number that it was made for."""
        count = self._count
        return lambda history: len(history) == count and stands(history)

    def add(self, trial: Trial) -> None:
        """Count a trial that was claimed as one of the batch."""
        self._members.append(trial)

    def end(self) -> None:
        """Let the next choice read the study as it is then."""
        self._begun, self._members, self._shared = None, [], None

    @property
    def _count(self) -> int:
        assert self._begun is not None
        return len(self._begun.history) + len(self._members)
