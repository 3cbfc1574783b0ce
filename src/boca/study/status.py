"""How a study stands: who works on it, what runs, what it has spent, and when it is expected to end."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cached_property

import sqlalchemy as sa

from boca.accounting.ledger import Ledger
from boca.domain.failures import Cause, causes
from boca.domain.trial import Trial
from boca.study import spec
from boca.study.storage.holders import Holder, holders
from boca.study.storage.reader import Reader, Row, StoredStudy

_PACE_TRIALS = 50  # finished last, from which the pace is told: old ones may have had other workers


@dataclass(frozen=True)
class Driver:
    """A process that has running trials."""

    host: str | None
    process: int | None
    since: float | None
    """When the first of its trials in this study was handed out."""
    running: tuple[int, ...]
    life: str


@dataclass(frozen=True)
class Status:
    """One study at one moment."""

    study: StoredStudy
    holders: dict[int, Holder]
    queued: int
    now: float

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.study.problem, self.study.history, spec.limit_of(self.study.spec))

    @cached_property
    def drivers(self) -> tuple[Driver, ...]:
        """What has running trials, each process once, in the order of their first trials."""
        groups: dict[tuple[str, str | None, int | None], list[int]] = {}
        for number, holder in sorted(self.holders.items()):
            trial = self.study.history[number]
            host, process = (trial.host, trial.process) if holder.host is None else (holder.host, holder.process)
            groups.setdefault((holder.life, host, process), []).append(number)
        return tuple(
            Driver(host, process, self._since(host, process, numbers), tuple(numbers), life)
            for (life, host, process), numbers in groups.items()
        )

    def _since(self, host: str | None, process: int | None, numbers: list[int]) -> float | None:
        mine = [t for t in self.study.history if (t.host, t.process) == (host, process) and host is not None]
        mine += [self.study.history[number] for number in numbers]
        return min((t.began for t in mine if t.began is not None), default=None)

    @property
    def is_worked_on(self) -> bool:
        return any(holder.works for holder in self.holders.values())

    @property
    def is_spent(self) -> bool:
        """Whether the budget covers no further query: the cheapest that was run costs more than what is left."""
        ledger = self.ledger
        if not math.isfinite(ledger.total) or not self.study.history.finished:
            return False
        least = min((ledger.charge(t) for t in self.study.history.finished if not t.added), default=0.0)
        return ledger.left < least or ledger.left <= 1e-9 * ledger.total

    @property
    def last(self) -> Trial | None:
        """The trial that ended last."""
        finished = self.study.history.finished
        return finished[-1] if finished else None

    @property
    def causes(self) -> list[Cause]:
        return causes(self.study.history)

    @property
    def seconds_left(self) -> float | None:
        """How long the rest of the budget lasts at the pace of the last trials; None if nothing tells."""
        ledger = self.ledger
        recent = [t for t in self.study.history.finished[-_PACE_TRIALS:] if t.began is not None and t.ended is not None]
        left = max(ledger.total - ledger.spent, 0.0)
        if not recent or not math.isfinite(left) or not self.is_worked_on:
            return None
        took = self.now - min(t.began for t in recent if t.began is not None)
        gained = math.fsum(ledger.charge(t) for t in recent)
        return left * took / gained if gained > 0.0 and took > 0.0 else None

    @property
    def words(self) -> str:
        """What is going on, in a word or two."""
        if self.is_worked_on:
            return "running"
        return "finished" if self.is_spent else "stopped"


def statuses(storage: str, name: str | None = None) -> list[Status]:
    """Return the studies of a storage, or one of them, as they are at one moment."""
    reader = Reader(storage)
    try:
        if name is not None:
            reader.row(name)  # or an error that lists the others
        return reader.read(
            lambda connection: [
                _status(reader, connection, row) for row in reader.rows(connection) if name in (None, row.name)
            ]
        )
    finally:
        reader.close()


def _status(reader: Reader, connection: sa.Connection, row: Row) -> Status:
    study = reader.light(connection, row)
    return Status(study, holders(reader, connection, row), reader.queues(connection).get(row.id, 0), time.time())
