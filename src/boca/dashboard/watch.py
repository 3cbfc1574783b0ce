"""A thread that reads what changed in a database: requests are answered from what it read last, without waiting."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from boca.accounting.ledger import Ledger
from boca.domain.budget import Limit
from boca.domain.errors import StorageFailed
from boca.domain.problem import Problem
from boca.domain.trial import History, Trial
from boca.plots.front_data import hypervolume
from boca.plots.study import StudyView
from boca.plots.trial_data import BestSoFar
from boca.study import spec as specs
from boca.study.storage.reader import Damaged, Reader, Row, StoredStudy, understood

log = logging.getLogger("boca")

_MAX_SILENCE = 20.0  # seconds without an answer: above the time that SQLite waits for a lock
EVERY = 0.5  # seconds between two looks: a page asks every second, so a result is shown within two


@dataclass(frozen=True)
class WatchedStudy:
    """A study as it was read last."""

    row: Row
    spec: Mapping[str, Any]
    problem: Problem
    limit: Limit | None
    history: History = field(default_factory=History)
    events: tuple[int, ...] = ()  # of the last change to each trial
    event: int = 0
    queued: int = 0
    began: Mapping[int, float] = field(default_factory=dict)  # of running trials
    overdue: frozenset[int] = frozenset()  # running trials whose driver has not renewed its lease in time
    restored: int = 0  # how often a copy with fewer events took its place
    version: int = 0

    @property
    def key(self) -> str:
        """Tells this study from another of its name, and from a copy that was put in its place."""
        return f"{self.row.key}-{self.restored}"

    @cached_property
    def told(self) -> int:
        """The event of the last result: what a recommendation depends on."""
        return max((t.told or 0 for t in self.history), default=0)

    @cached_property
    def ledger(self) -> Ledger:
        return Ledger(self.problem, self.history, self.limit)

    @cached_property
    def best(self) -> Trial | None:
        return self.history.best(self.problem)

    @cached_property
    def front(self) -> list[Trial]:
        """With several objectives, the trials at the target that none dominates."""
        return self.history.front(self.problem) if self.problem.objectives else []

    @cached_property
    def volumes(self) -> list[tuple[int, float]]:
        """With several objectives, the hypervolume after each feasible trial at the target, by its number."""
        found = hypervolume(StudyView(self.problem, self.history, None)) if self.problem.objectives else None
        if not isinstance(found, BestSoFar):
            return []
        return [(trial.number, float(volume)) for trial, volume in zip(found.trials, found.value, strict=True)]


@dataclass(frozen=True)
class Broken:
    """A study that exists and cannot be read, with the reason."""

    row: Row
    reason: str
    version: int = 0


@dataclass(frozen=True)
class World:
    """All studies at the last moment at which the database could be read."""

    studies: Mapping[str, WatchedStudy | Broken] = field(default_factory=dict)  # by name
    trouble: str | None = None
    version: int = 0


class Watcher:
    """Reads what changed every half a second; `world` is replaced as a whole, never changed."""

    def __init__(self, reader: Reader, *, only: str | None = None) -> None:
        self.reader = reader
        self.world = World()
        self._only = only  # the one study to read; None for all
        self._versions = 0
        self._looked = time.monotonic()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="boca-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        self.reader.close()

    @property
    def trouble(self) -> str | None:
        """What is wrong with the database right now, a look that does not return included."""
        if self._thread is not None and time.monotonic() - self._looked > _MAX_SILENCE:
            return f"The database has not answered for {_MAX_SILENCE:.0f} seconds."
        return self.world.trouble

    def _run(self) -> None:
        while not self._stop.is_set():
            self.look()
            self._stop.wait(EVERY)

    def look(self) -> None:
        """Read what changed; the page shows what goes wrong, and the next look tries again."""
        before = self.world
        try:
            studies = self.reader.read(self._studies)
            trouble = None
        except StorageFailed as error:
            studies, trouble = dict(before.studies), str(error)
        except Exception as error:  # the page must not stand still without a word
            log.exception("The live page could not read the database.")
            studies, trouble = dict(before.studies), f"The database cannot be read: {error!r}"
        self._looked = time.monotonic()
        if studies != before.studies or trouble != before.trouble or list(studies) != list(before.studies):
            self.world = World(studies, trouble, self._next())

    def _next(self) -> int:
        self._versions += 1
        return self._versions

    def _studies(self, connection: sa.Connection) -> dict[str, WatchedStudy | Broken]:
        queues = self.reader.queues(connection)
        return {
            row.name: self._study(connection, row, queues.get(row.id, 0))
            for row in self.reader.rows(connection)
            if self._only in (None, row.name)
        }

    def _study(self, connection: sa.Connection, row: Row, queued: int) -> WatchedStudy | Broken:
        known = self.world.studies.get(row.name)
        if isinstance(known, Broken) and known.row == row:
            return known
        try:
            with understood(row.name):
                if not isinstance(known, WatchedStudy) or known.row.key != row.key:
                    known = self._begun(row)
                elif row.event < known.event:  # a backup took its place: what it lacks is gone
                    known = replace(self._begun(row), restored=known.restored + 1)
                elif known.row.spec != row.spec:  # a larger budget
                    new = self._begun(row)
                    known = replace(
                        known, row=row, spec=new.spec, problem=new.problem, limit=new.limit, version=new.version
                    )
                return self._refreshed(connection, known, row, queued)
        except Damaged as error:
            return Broken(row, str(error), self._next())

    def _begun(self, row: Row) -> WatchedStudy:
        stored = StoredStudy(row, History())
        return WatchedStudy(row, stored.spec, stored.problem, specs.limit_of(stored.spec), version=self._next())

    def _refreshed(self, connection: sa.Connection, known: WatchedStudy, row: Row, queued: int) -> WatchedStudy:
        """Return the study with what changed since, or itself if nothing did."""
        trials, events, event = list(known.history), list(known.events), known.event
        changed = self.reader.changed(connection, row, event) if row.event > event else []
        for of_trial, trial in changed:
            if trial.number < len(trials):
                trials[trial.number], events[trial.number] = trial, of_trial
            else:
                trials.append(trial)
                events.append(of_trial)
            event = max(event, of_trial)
        history = History(trials) if changed else known.history
        running = [t.number for t in history.running]
        times = self.reader.times(connection, row.id, running) if running else {}
        now = time.time()
        overdue = frozenset(number for number, (_, until) in times.items() if until is not None and until < now)
        if not changed and overdue == known.overdue and queued == known.queued and known.row == row:
            return known
        return replace(
            known,
            row=row,
            history=history,
            events=tuple(events),
            event=event,
            queued=queued,
            began={number: began for number, (began, _) in times.items()},
            overdue=overdue,
            version=self._next(),
        )
