"""What every storage does, in the words of the optimizer.

A storage keeps one study: its trials, the queue of points that the user asked for, and a number for every event.
`claim` and `add` make a trial, `take_over` and `retry` hand one out once more, `report` and `record` say what a run
that passes through steps has done, and `finish` ends it: each is an event.
`renew`, `release` and `hand_back` change who holds a trial and are no events.  All of it is durable when the call
returns.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boca.domain.attempt import Attempt
from boca.domain.observation import Observation
from boca.domain.runs import RunEvent
from boca.domain.space import Point
from boca.domain.trial import History, Trial
from boca.study.storage.owner import Owner


@dataclass(frozen=True)
class Queued:
    """A point that the user asked for and that is not handed out yet."""

    id: int
    x: Point
    z: Point


@dataclass(frozen=True)
class Snapshot:
    """A study at one moment: `event` is the number of the last change to one of its trials, reports included."""

    history: History
    event: int
    queue: tuple[Queued, ...]


CHANGES_CHOICES = frozenset({"dropped"})
"""What may happen to a run so that a choice which did not read it does not stand."""


@dataclass(frozen=True)
class Report:
    """What a run reported at a step: nothing, if it had reported that step before it was handed out again."""

    step: int
    told: tuple[Observation, ...]


@dataclass(frozen=True)
class Lease:
    """The terms on which one driver claims: a claim ends unless it is renewed, since its owner may die silently.

    A process may have more than one driver, in sequence or in threads; `driver` tells them apart.
    """

    owner: Owner = field(default_factory=Owner.me)
    driver: str = field(default_factory=lambda: uuid.uuid4().hex)
    seconds: float = 60.0


class Storage(Protocol):
    """Where one study lives."""

    def read(self) -> Snapshot:
        """Return the study as it is now."""
        ...

    def claim(
        self,
        draft: Trial,
        *,
        affords: Callable[[History], bool] | None = None,
        queued: Queued | None = None,
        lease: Lease | None = None,
    ) -> Trial | None:
        """Store a new running trial and return it with its number, or None if another claim came in between.

        Args:
            draft: the trial; `seen` is the last event that its choice read, and nothing may have changed since.
            affords: if it is given, changes since then do not matter if it accepts the history of the moment.
            queued: the queued point that this trial takes from the queue.
            lease: the terms on which the driver holds the trial; None holds it until it is told.
        """
        ...

    def report(self, trial: Trial, reports: Sequence[Report]) -> Trial:
        """Store what a running trial reported, one event for each report, and return the trial as it is then.

        A report does not invalidate what is being chosen.  Raise InvalidTrial if the trial no longer runs, or is
        running in another attempt, and InvalidInput if a step is not beyond the last one of this attempt.
        """
        ...

    def record(self, trial: Trial, event: RunEvent) -> Trial:
        """Store something that happened to a run beside its reports, and return the trial as it is then.

        A checkpoint and a stop are of a running trial, in this attempt; a checkpoint may be dropped at any time.
        """
        ...

    def finish(self, trial: Trial) -> Trial:
        """Store the result of a running trial and return it with the number of the event.

        Raise InvalidTrial if the trial no longer runs, or is running in another attempt.
        """
        ...

    def add(self, draft: Trial) -> Trial:
        """Store a finished trial as the next one and return it with its number."""
        ...

    def add_many(self, drafts: Sequence[Trial]) -> Sequence[Trial]:
        """Store imported results as the next trials, all of them or none; return a trial for each.

        For what an earlier import has stored that is the trial which it made: done again, an import changes nothing.
        """
        ...

    def enqueue(self, x: Point, z: Point) -> None: ...

    def enqueue_chosen(self, choose: Callable[[Snapshot], Sequence[tuple[Point, Point]]]) -> int:
        """Queue the points that `choose` returns for the study as it is now; nothing changes in between.

        Return how many they are.
        """
        ...

    def seconds_out(self, number: int) -> float | None:
        """Return the seconds since a running trial was handed out; None if only the process that has it knows."""
        ...

    def load_reasons(self) -> None:
        """Load the reasons of all trials that were read, so that they outlive the storage."""
        ...

    def take_over(self, lease: Lease, *, max_retries: int, limit: int | None = None) -> Sequence[Trial]:
        """Take over the trials of owners that are dead and of leases that have ended, at most `limit`; return them.

        One that was taken over `max_retries` times already fails instead.  A trial that was released or handed back is
        always taken over, since no process died of it; a released one continues in the same attempt.
        """
        ...

    def retry(self, trial: Trial, lease: Lease) -> Trial:
        """Begin another attempt of a running trial whose worker died while its driver lives; return it.

        Its `overhead` is stored as it is given, since the seconds of the attempt that died are part of it.
        """
        ...

    def hand_back(self, trial: Trial) -> bool:
        """Leave a running trial to the next driver, unless it is held; return whether it is left."""
        ...

    def is_held_by_others(self, lease: Lease) -> bool:
        """Whether other drivers have running trials."""
        ...

    def renew(self, lease: Lease) -> None:
        """Extend all leases of this driver from now."""
        ...

    def release(self, lease: Lease) -> None:
        """End all leases of this driver: the next driver takes over what it leaves running, in the same attempt."""
        ...

    def attempts(self, number: int) -> Sequence[Attempt]:
        """Return the attempts of a trial that ended without a result, in the order in which they ended."""
        ...

    def close(self) -> None: ...
