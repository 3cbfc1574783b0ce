"""What every storage does, in the words of the optimiser.

A storage keeps one study: its trials, the queue of points that the user asked for, and a number for every event.
`claim` and `add` make a trial, `take_over` and `retry` hand one out once more, and `finish` ends it: each is an event.
`renew`, `release` and `hand_back` change who holds a trial and are no events.  All of it is durable when the call
returns.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from boca.domain.space import Point
from boca.domain.trial import History, Trial
from boca.study.storage.owner import Owner


@dataclass(frozen=True)
class Queued:
    """A point that somebody asked for, waiting for its turn."""

    id: int
    x: Point
    z: Point


@dataclass(frozen=True)
class Snapshot:
    """A study at one moment: `event` is the number of the last change to a trial that is in it."""

    history: History
    event: int
    queue: tuple[Queued, ...]


@dataclass(frozen=True)
class Lease:
    """The terms on which one driver claims: a claim ends unless it is renewed, since its owner may die without a word.

    A process may have several drivers, one after the other or in threads; `driver` tells them apart.
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
        seen: int,
        affords: Callable[[History], bool] | None = None,
        queued: Queued | None = None,
        lease: Lease | None = None,
    ) -> Trial | None:
        """Store a new running trial and return it with its number, or None where another claim came in between.

        Nothing may have changed since event `seen`.  With `affords`, other changes do not matter as long as it says of
        the history of that moment that the money suffices.  A queued point leaves the queue with the claim.
        """
        ...

    def finish(self, trial: Trial) -> Trial:
        """Store the result of a running trial and return it with the number of the event.

        Raise InvalidTrial where the trial is not running any more, or is running in another attempt.
        """
        ...

    def add(self, draft: Trial) -> Trial:
        """Store a finished trial as the next one and return it with its number."""
        ...

    def enqueue(self, x: Point, z: Point) -> None: ...

    def seconds_out(self, number: int) -> float | None:
        """Return the seconds since a running trial was handed out; None where only who has it knows."""
        ...

    def load_reasons(self) -> None:
        """Have the reasons of all trials that were read at hand, so that they outlive the storage."""
        ...

    def take_over(self, lease: Lease, *, max_retries: int, limit: int | None = None) -> Sequence[Trial]:
        """Take over the trials of owners that are dead and of leases that have ended, at most `limit`; return them.

        One that was taken over `max_retries` times already fails instead.  What was released or abandoned is taken over
        in any case: nobody died of it.  After a release it is the same attempt that goes on.
        """
        ...

    def retry(self, trial: Trial, lease: Lease) -> Trial:
        """Begin another attempt of a running trial whose worker died while its driver lives; return it.

        Its `overhead` is stored as it is given, since the seconds of the attempt that died are part of it.
        """
        ...

    def hand_back(self, trial: Trial) -> bool:
        """Leave a running trial to the driver that comes next, unless somebody holds it; return whether that is so."""
        ...

    def is_held_by_others(self, lease: Lease) -> bool:
        """Whether other drivers have trials out."""
        ...

    def renew(self, lease: Lease) -> None:
        """Let all leases of this driver begin anew."""
        ...

    def release(self, lease: Lease) -> None:
        """End all leases of this driver: whoever comes next takes over what it leaves running, in the same attempt."""
        ...

    def close(self) -> None: ...
