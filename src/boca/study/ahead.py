"""Trials chosen before a worker is free for them, so that it need not wait for the choice.

Such a choice reads the results told so far and counts the earlier ones of its kind as running.  It is discarded if its
number has gone to another trial, if what it costs is not affordable any more, if the run that it continues has changed,
or if the user has queued a point since.  What it read is stored with the trial, as always: it can be replayed.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from boca.domain.trial import History, Trial
from boca.strategies import Strategy
from boca.strategies.base import shares_batches
from boca.study.batch import Batch
from boca.study.storage import Lease, Queued, Snapshot, Storage

if TYPE_CHECKING:
    from boca.study.optimizer import Check

Draft: TypeAlias = tuple[Trial, Queued | None]
"""A trial that was chosen and is not stored, and the queued point that it is."""


@dataclass(frozen=True)
class Choosing:
    """What an optimizer lends: how it chooses, and what it checks."""

    storage: Storage
    strategy: Strategy
    draft: Callable[[Snapshot, Batch | None, float], Draft | None]
    stands: Callable[[Trial], Callable[[History], bool]]
    claimed: Callable[[Trial], Trial]


class Ahead:
    """Trials that wait for a worker, in the order of their numbers."""

    def __init__(self, choosing: Choosing) -> None:
        self._choosing = choosing
        self._batch = Batch(choosing.strategy) if shares_batches(choosing.strategy) else None
        self._waiting: deque[Draft] = deque()
        self._nothing: tuple[int, tuple[Queued, ...], int] | None = None  # where no further trial was affordable
        self._made = 0  # in this batch
        self.discarded = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def prepare(self, batch: int) -> bool:
        """Choose one more trial; return whether there was one.  At most `batch` trials share what they read."""
        began = time.perf_counter()
        now = self._choosing.storage.read()
        if self._waiting and not self._follows(now):
            self.clear()
        if self._nothing == (now.event, now.queue, len(self._waiting)):
            return False
        if self._made >= batch:
            self._end_batch()
        waiting = [draft for draft, _ in self._waiting]
        if self._batch is None:
            read = Snapshot(now.history.joined(waiting), now.event, now.queue) if waiting else now
        else:
            read = self._batch.read(now, waiting)
        found = self._choosing.draft(read, self._batch, began)
        if found is None:
            self._nothing = (now.event, now.queue, len(self._waiting))
            self._end_batch()
            return False
        if self._batch is not None:
            self._batch.add(found[0])
        self._waiting.append(found)
        self._made += 1
        return True

    def take(self, lease: Lease, check: Check) -> Trial | None:
        """Claim the trial that has waited longest; None if there is none, or it does not stand any more."""
        if not self._waiting:
            return None
        if not self._follows(self._choosing.storage.read()):
            self.clear()
            return None
        draft, queued = self._waiting[0]
        check(draft)
        stands = self._choosing.stands(draft)
        trial = self._choosing.storage.claim(
            draft,
            affords=lambda history: len(history) == draft.number and stands(history),
            queued=queued,
            lease=lease,
        )
        if trial is None:
            self.clear()
            return None
        self._waiting.popleft()
        return self._choosing.claimed(trial)

    def clear(self) -> None:
        """Discard what waits."""
        self.discarded += len(self._waiting)
        self._waiting.clear()
        self._end_batch()

    def _end_batch(self) -> None:
        self._made = 0
        if self._batch is not None:
            self._batch.end()

    def _follows(self, now: Snapshot) -> bool:
        """Whether what waits is next: no other trial has its numbers, and no point that was queued comes first."""
        if self._waiting[0][0].number != len(now.history):
            return False
        known = {queued.id for _, queued in self._waiting if queued is not None}
        return all(queued.id in known for queued in now.queue)
