"""One study of a database: what `Storage` promises, as short transactions."""

from __future__ import annotations

import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from boca.domain.attempt import DIED, LEFT, LOST, Attempt
from boca.domain.errors import BocaError, InvalidTrial, StorageFailed
from boca.domain.reasons import Reasons
from boca.domain.runs import RunEvent
from boca.domain.space import Point
from boca.domain.trial import History, Trial
from boca.study.storage.base import CHANGES_CHOICES, Lease, Queued, Report, Snapshot
from boca.study.storage.file_guard import FileChanged
from boca.study.storage.owner import Owner
from boca.study.storage.reader import understood
from boca.study.storage.rescue import Held, rescue
from boca.study.storage.rows import LAYOUTS, Found, object_of, trials_of
from boca.study.storage.schema import VERSION, Dumped, attempts, observations, queue, studies, trials
from boca.study.storage.transitions import (
    LET_GO,
    as_json,
    attempt_of,
    clock,
    end_of,
    ended,
    has_ended,
    imported_before,
    refuse_record,
    refuse_report,
    refuse_result,
    refuse_unstorable,
    retried,
    storable,
    taken_over,
)

if TYPE_CHECKING:
    from boca.study.storage.sql import Database

T = TypeVar("T")

_UNREADABLE = "The reasons were lost with the file that they were stored in."
_DELETED = "The study is gone: another process deleted it."
_LOADED_ONE_BY_ONE = 8  # reasons; code that reads more of them soon reads all

# What is stored when a trial is made, and what may change later: a result never moves a point.
_MADE = ("x", "planned", "overhead", "asked", "seen", "pending", "version", "continues")
_CLOCK = ("began", "ended", "host", "process", "worker")
_RUN = ("start", "reached", "events")
_CHANGEABLE = ("cost", "state", "seconds", "reason", "told", "attempt", "output", "notes", *_CLOCK, *_RUN)

# The statements of every trial, built once: building one costs more than running it.
_LAYOUT = LAYOUTS[VERSION]
_OF_STUDY = trials.c.study == sa.bindparam("study")
_OF_TRIAL = _OF_STUDY & (trials.c.number == sa.bindparam("trial"))
_HOLD = (
    sa.select(studies.c.trials, studies.c.event, studies.c.choice)
    .where(studies.c.id == sa.bindparam("study"))
    .with_for_update()
)
_EXISTS = sa.select(studies.c.id).where(studies.c.id == sa.bindparam("study"))
_CHANGED = _LAYOUT.select("output", "notes").where(_OF_STUDY, trials.c.event > sa.bindparam("since"))
_ONE = _LAYOUT.select("output", "notes").where(_OF_TRIAL)
_BY_TOKEN = _LAYOUT.select("output", "notes").where(_OF_STUDY, trials.c.token == sa.bindparam("token"))
_WHY = sa.select(_LAYOUT["why"]).where(_OF_TRIAL)
_REASONS = sa.select(trials.c.number, _LAYOUT["why"].label("why")).where(
    _OF_STUDY, trials.c.number >= sa.bindparam("since")
)
_BEGAN = sa.select(trials.c.began).where(_OF_TRIAL)
_WAITING = (
    sa.select(queue.c.id, queue.c.x, queue.c.z).where(queue.c.study == sa.bindparam("study")).order_by(queue.c.id)
)
_HELD = sa.select(trials.c.number, trials.c.owner, trials.c.driver, trials.c.until).where(
    trials.c.state == "running", trials.c.driver.is_not(None)
)
_ATTEMPTS = (
    sa.select(*(attempts.c[field.name] for field in fields(Attempt)))
    .where(attempts.c.study == sa.bindparam("study"), attempts.c.trial == sa.bindparam("trial"))
    .order_by(attempts.c.position)
)
_INSERT = trials.insert()
_OBSERVE = observations.insert()
_UPDATE = trials.update().where(trials.c.study == sa.bindparam("of"), trials.c.number == sa.bindparam("trial"))
_COUNT = studies.update().where(studies.c.id == sa.bindparam("of"))

_UNHELD: dict[str, Any] = {"owner": None, "driver": None, "until": None}


class SqlStudy:
    """One study of a database."""

    def __init__(self, database: Database, identity: int, name: str, spec: Mapping[str, Any]) -> None:
        self._database = database
        self._id = identity
        self._name = name
        self._spec = spec
        self._queue: tuple[Queued, ...] = ()  # as it was read last
        self._fresh: dict[int, Trial] = {}  # what was stored since the last read
        self._lost: FileChanged | None = None  # why nothing is stored any more
        self._trials: list[Trial] = []
        self._history = History()
        self._event = 0
        self._loads = 0  # of reasons, one by one
        self._lock = threading.Lock()  # on what was read: a driver may have threads
        database.studies.add(self)

    def read(self) -> Snapshot:
        def work(connection: sa.Connection) -> Snapshot:
            history, event = self._refresh(connection)
            queued = connection.execute(_WAITING, {"study": self._id})
            self._queue = tuple(Queued(row.id, row.x, row.z) for row in queued)
            return Snapshot(history, event, self._queue)

        try:
            return self._database.read(work)
        except FileChanged as error:
            if self._lost is None and self._trials:
                raise self._rescued(error) from error
            return Snapshot(self._history, self._event, self._queue)

    def claim(
        self,
        draft: Trial,
        *,
        affords: Callable[[History], bool] | None = None,
        queued: Queued | None = None,
        lease: Lease | None = None,
    ) -> Trial | None:
        refuse_unstorable(draft)
        why = Dumped(as_json(draft.why, "why"))
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial | None:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            if study.choice > draft.seen and (affords is None or not affords(self._refresh(connection)[0])):
                return None
            if queued is not None:
                taken = connection.execute(queue.delete().where(queue.c.id == queued.id, queue.c.study == self._id))
                if not taken.rowcount:
                    return None
            asked = study.event + 1
            trial = replace(draft.dated(asked), number=study.trials, asked=asked, **clock(lease))
            self._insert(connection, trial, why, token, self._held_by(connection, lease))
            return trial

        return self._write(work)

    def add(self, draft: Trial) -> Trial:
        refuse_unstorable(draft)
        why = Dumped(as_json(draft.why, "why"))
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            event = study.event + 1
            trial = replace(draft.stored_at(event), number=study.trials, asked=event)
            self._insert(connection, trial, why, token, _UNHELD)
            return trial

        return self._write(work, is_result=True)

    def add_many(self, drafts: Sequence[Trial]) -> Sequence[Trial]:
        for draft in drafts:
            refuse_unstorable(draft)
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> list[Trial]:
            study = self._hold(connection)
            if self._written(connection, token):  # all are there now
                return [t for t in imported_before(self._refresh(connection)[0], drafts) if t is not None]
            stored: list[Trial] = []
            new: list[Trial] = []
            for draft, known in zip(drafts, imported_before(self._refresh(connection)[0], drafts), strict=True):
                if known is None:
                    event = study.event + 1 + len(new)
                    known = replace(draft.stored_at(event), number=study.trials + len(new), asked=event)
                    new.append(known)
                stored.append(known)
            if new:
                rows = [self._row(t, Dumped(as_json(t.why, "why")), token, _UNHELD) for t in new]
                connection.execute(_INSERT, rows)
                self._observe(connection, [row for trial in new for row in self._observed(trial)])
                count = {"event": new[-1].asked, "choice": new[-1].asked, "trials": study.trials + len(new)}
                connection.execute(_COUNT, {"of": self._id, **count})
            return stored

        return self._write(work, is_result=True)

    def report(self, trial: Trial, reports: Sequence[Report]) -> Trial:
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            stored = self._load(connection, trial.number)
            refuse_report(stored, trial, reports)
            event, known = study.event, len(stored.observations)
            for report in reports:
                event += 1
                stored = stored.reported(report.step, report.told).dated(event)
            refuse_unstorable(replace(stored, observations=stored.observations[known:]))
            self._observe(connection, self._observed(stored, known))
            of = {"of": self._id, "trial": trial.number}
            connection.execute(_UPDATE, of | {"reached": stored.reached, "event": event, "token": token})
            connection.execute(_COUNT, {"of": self._id, "event": event})
            return stored

        return self._write(work, is_result=True)

    def record(self, trial: Trial, event: RunEvent) -> Trial:
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            stored = self._load(connection, trial.number)
            refuse_record(stored, trial, event)
            number = study.event + 1
            happened = stored.happened(event).dated(number)
            refuse_unstorable(replace(happened, observations=()))
            of = {"of": self._id, "trial": trial.number, "events": _events(happened)}
            connection.execute(_UPDATE, of | {"event": number, "token": token})
            choice = {"choice": number} if event.kind in CHANGES_CHOICES else {}
            connection.execute(_COUNT, {"of": self._id, "event": number} | choice)
            return happened

        return self._write(work, is_result=True)

    def finish(self, trial: Trial) -> Trial:
        refuse_unstorable(trial)
        trial = replace(trial, output=storable(trial.output), reason=storable(trial.reason))
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            stored = self._load(connection, trial.number)
            refuse_result(stored, trial)
            finished = ended(trial.stored_at(study.event + 1), stored)
            self._update(connection, finished, token, _UNHELD, event=study.event + 1)
            return finished

        return self._write(work, is_result=True)

    def enqueue(self, x: Point, z: Point) -> None:
        point = {"x": Dumped(as_json(x, "x")), "z": Dumped(as_json(z, "z"))}
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> None:
            self._hold(connection)
            if connection.execute(sa.select(queue.c.id).where(queue.c.token == token)).first() is None:
                connection.execute(queue.insert().values(study=self._id, token=token, **point))

        self._write(work)

    def enqueue_chosen(self, choose: Callable[[Snapshot], Sequence[tuple[Point, Point]]]) -> int:
        def work(connection: sa.Connection) -> int:
            self._hold(connection)
            history, event = self._refresh(connection)
            waiting = connection.execute(_WAITING, {"study": self._id})
            now = Snapshot(history, event, tuple(Queued(row.id, row.x, row.z) for row in waiting))
            points = [{"x": Dumped(as_json(x, "x")), "z": Dumped(as_json(z, "z"))} for x, z in choose(now)]
            for point in points:
                connection.execute(queue.insert().values(study=self._id, token=uuid.uuid4().hex, **point))
            return len(points)

        return self._write(work)

    def seconds_out(self, number: int) -> float | None:
        """Return the time since the attempt began, by the clocks of the process that asked and of this one."""
        which = {"study": self._id, "trial": number}
        began = self._database.read(lambda c: c.execute(_BEGAN, which).scalar_one_or_none())
        return None if began is None else max(time.time() - began, 0.0)

    def load_reasons(self) -> None:
        with self._lock:
            missing = {trial.number: trial.reasons for trial in self._trials if not trial.reasons.is_loaded}
        if missing:
            which = {"study": self._id, "since": min(missing)}
            for number, why in self._database.read(lambda c: c.execute(_REASONS, which).all()):
                if number in missing:
                    missing[number].fill(object_of(why, f"why of trial {number}"))

    def take_over(self, lease: Lease, *, max_retries: int, limit: int | None = None) -> Sequence[Trial]:
        """Look first without a lock: there is seldom anything to take over."""
        held = _HELD.where(trials.c.study == self._id, trials.c.driver != lease.driver).order_by(trials.c.number)

        def abandoned(connection: sa.Connection) -> list[Any]:
            now = self._database.now(connection)
            return [row for row in connection.execute(held).all() if _has_ended(row, now)]

        if not self._database.read(abandoned):
            return []
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> list[Trial]:
            event = self._hold(connection).event
            taken = self._written(connection, token)
            if taken:
                return [trial for trial in taken if trial.state == "running"]
            for row in abandoned(connection):
                if limit is not None and len(taken) >= limit:
                    break
                stored = self._load(connection, row.number)
                trial = taken_over(
                    stored, driver=row.driver, until=row.until, max_retries=max_retries, owner=Owner(**row.owner)
                )
                event += 1
                if trial.state == "running":
                    self._keep_attempt(connection, stored, LEFT if row.until == LET_GO else LOST)
                    trial = replace(trial.handed_out_again().dated(event), **clock(lease))
                    self._update(connection, trial, token, self._held_by(connection, lease), event=event)
                    taken.append(trial)
                else:
                    trial = ended(replace(trial, told=event), stored)
                    self._update(connection, trial, token, _UNHELD, event=event)
            return taken

        return self._write(work)

    def retry(self, trial: Trial, lease: Lease) -> Trial:
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            stored = self._load(connection, trial.number)
            refuse_result(stored, trial)
            self._keep_attempt(connection, ended(stored, stored), DIED)
            another = retried(stored, trial.overhead).dated(study.event + 1)
            another = replace(another, **clock(lease))
            terms = self._held_by(connection, lease) | {"overhead": another.overhead}
            self._update(connection, another, token, terms, event=study.event + 1)
            return another

        return self._write(work)

    def is_held_by_others(self, lease: Lease) -> bool:
        held = sa.select(trials.c.number).where(
            trials.c.study == self._id, trials.c.state == "running", trials.c.driver != lease.driver
        )
        return self._database.read(lambda c: c.execute(held.limit(1)).first()) is not None

    def hand_back(self, trial: Trial) -> bool:
        this = (trials.c.study == self._id) & (trials.c.number == trial.number) & (trials.c.state == "running")

        def work(connection: sa.Connection) -> bool:
            self._hold(connection)
            row = connection.execute(_HELD.where(this)).one_or_none()
            if row is not None and not _has_ended(row, self._database.now(connection)):
                return False
            terms = _terms(Lease(driver=""), LET_GO)
            return connection.execute(trials.update().where(this).values(**terms)).rowcount > 0

        return self._write(work)

    def renew(self, lease: Lease) -> None:
        self._set_ends(lease, lambda connection: end_of(lease, self._database.now(connection)))

    def release(self, lease: Lease) -> None:
        self._set_ends(lease, lambda _: LET_GO, ended=time.time())

    def attempts(self, number: int) -> Sequence[Attempt]:
        which = {"study": self._id, "trial": number}
        return [Attempt(*row) for row in self._database.read(lambda c: c.execute(_ATTEMPTS, which).all())]

    def close(self) -> None:
        self._database.close()

    # How ----------------------------------------------------------------------------------------------------------

    def _write(self, work: Callable[[sa.Connection], T], *, is_result: bool = False) -> T:
        """Run a transaction; if the file is not the one that was opened, save what there was, and raise."""
        try:
            if self._lost is None:
                done = self._database.write(work)
                if isinstance(done, Trial):
                    self._fresh[done.number] = done
                return done
            lost = self._lost
        except FileChanged as error:
            lost = self._rescued(error)
        if is_result:  # it is known now, and may have taken days
            with suppress(InvalidTrial, StorageFailed):
                self._database.write(work)
        raise lost

    def _rescued(self, error: FileChanged) -> FileChanged:
        """Save the study to a file of its own, from which it is read from here on; return the error to raise."""
        with suppress(StorageFailed):
            self._database.read(self._refresh)
            self.load_reasons()
        with self._lock:
            if self._lost is not None:
                return self._lost
            guard = self._database.guard
            assert guard is not None
            held = self._held()
            try:
                self._database, self._id = rescue(self._database, held, self._id)
            except (OSError, sa.exc.SQLAlchemyError, sqlite3.Error, BocaError) as failure:
                self._lost = FileChanged(f"{error} A copy of what is in memory could not be written: {failure}")
                return self._lost
            guard.remove_log()
            self._lost = self._farewell(error, str(self._database.url.database))
            return self._lost

    def _held(self) -> Held:
        trials = {trial.number: trial for trial in self._trials} | self._fresh
        event = max([self._event, *(t.last_event for t in self._fresh.values())])
        return Held(self._name, self._spec, tuple(trials[k] for k in sorted(trials)), event, self._queue)

    def _farewell(self, error: FileChanged, path: str) -> FileChanged:
        return FileChanged(
            f"{error} Nothing more is written to it. Every result of the study {self._name!r} up to now is in {path}. "
            f"To continue, put that file in its place, or use {path} as the storage."
        )

    def unlock(self) -> None:
        """Replace the lock, which another thread of the parent may have held when this process was forked.

        What that thread was reading may be half taken in: everything is read again.
        """
        self._lock = threading.Lock()
        self._trials, self._history, self._event = [], History(), 0

    @property
    def identity(self) -> int:
        return self._id

    def fill(self, held: Held) -> None:
        """Store trials as they were in another database; running ones are left to the next driver."""

        def work(connection: sa.Connection) -> None:
            self._hold(connection)
            for trial in held.trials:
                reasons = {"reason": _UNREADABLE, "phase": trial.phase}
                why = Dumped(as_json(trial.why if trial.reasons.is_loaded else reasons, "why"))
                terms = _terms(Lease(), LET_GO) if trial.state == "running" else _UNHELD
                token = uuid.uuid4().hex
                self._insert(connection, trial, why, token, terms)
                event = max(trial.last_event, 1)
                connection.execute(_UPDATE, {"of": self._id, "trial": trial.number, "event": event})
            for queued in held.queue:
                point = {"x": queued.x, "z": queued.z, "token": uuid.uuid4().hex}
                connection.execute(queue.insert().values(study=self._id, **point))
            connection.execute(
                _COUNT, {"of": self._id, "event": held.event, "choice": held.event} | {"trials": len(held.trials)}
            )

        self._database.write(work)

    def _set_ends(self, lease: Lease, until: Callable[[sa.Connection], float], **more: float) -> None:
        def work(connection: sa.Connection) -> None:
            # a change of more than one trial holds the study, or two such changes wait for each other; a study that
            # was deleted has no leases
            connection.execute(_HOLD, {"study": self._id})
            mine = (trials.c.study == self._id) & (trials.c.driver == lease.driver) & (trials.c.state == "running")
            connection.execute(trials.update().where(mine).values(until=until(connection), **more))

        self._database.write(work)

    def _held_by(self, connection: sa.Connection, lease: Lease | None) -> dict[str, Any]:
        return _UNHELD if lease is None else _terms(lease, end_of(lease, self._database.now(connection)))

    def _keep_attempt(self, connection: sa.Connection, trial: Trial, ending: str) -> None:
        """Store an attempt that gave no result, before the row of its trial has the next one."""
        known = connection.execute(_ATTEMPTS, {"study": self._id, "trial": trial.number}).all()
        row = asdict(attempt_of(trial, ending))
        connection.execute(attempts.insert().values(study=self._id, trial=trial.number, position=len(known), **row))

    def _hold(self, connection: sa.Connection) -> sa.Row[Any, Any, Any]:
        """Return the row of the study, which no other writer can have until this transaction ends."""
        row = connection.execute(_HOLD, {"study": self._id}).one_or_none()
        if row is None:
            raise StorageFailed(_DELETED)
        if not isinstance(row.trials, int) or not isinstance(row.event, int):
            raise StorageFailed(f"The study {self._name!r} is damaged: it counts {row.trials!r:.40} trials.")
        if self._database.guard is not None:
            self._database.guard.note(self._id, row.event)
        return row

    def _written(self, connection: sa.Connection, token: str) -> list[Trial]:
        """Return the trials of a write that was done before its answer was lost."""
        if self._database.is_sqlite:
            return []  # a file answers or raises
        rows = connection.execute(_BY_TOKEN, {"study": self._id, "token": token})
        return [trial for _, trial in self._found(rows)]

    def _insert(self, connection: sa.Connection, trial: Trial, why: Dumped, token: str, terms: dict[str, Any]) -> None:
        connection.execute(_INSERT, self._row(trial, why, token, terms))
        self._observe(connection, self._observed(trial))
        count = {"event": trial.asked, "choice": trial.asked, "trials": trial.number + 1}
        connection.execute(_COUNT, {"of": self._id} | count)

    def _row(self, trial: Trial, why: Dumped, token: str, terms: dict[str, Any]) -> dict[str, Any]:
        values = _columns(trial, *_MADE, *_CHANGEABLE) | terms | {"event": trial.asked, "token": token}
        return values | {"study": self._id, "number": trial.number, "why": why, "phase": trial.phase}

    def _update(
        self, connection: sa.Connection, trial: Trial, token: str, terms: dict[str, Any], *, event: int
    ) -> None:
        values = _columns(trial, *_CHANGEABLE) | terms | {"event": event, "token": token}
        connection.execute(_UPDATE, values | {"of": self._id, "trial": trial.number})
        if trial.told == event:
            known = sum(o.told != event for o in trial.observations)
            self._observe(connection, self._observed(trial, known))
        connection.execute(_COUNT, {"of": self._id, "event": event, "choice": event})

    def _observe(self, connection: sa.Connection, rows: list[dict[str, Any]]) -> None:
        if rows:
            connection.execute(_OBSERVE, rows)

    def _observed(self, trial: Trial, known: int = 0) -> list[dict[str, Any]]:
        """Return the rows of the observations of a trial after those that are known."""
        return [
            {
                "study": self._id,
                "trial": trial.number,
                "position": position,
                "outcome": told.outcome,
                "z": None if told.z == trial.planned else told.z,
                "value": told.value,
                "noise": told.noise,
                "seconds": told.seconds,
                "told": told.told,
            }
            for position, told in enumerate(trial.observations[known:], start=known)
        ]

    def _refresh(self, connection: sa.Connection) -> tuple[History, int]:
        """Take in what changed since the last read, and return what is known now."""
        with self._lock:
            self._take_in(connection)
            return self._history, self._event

    def _take_in(self, connection: sa.Connection) -> None:
        rows = connection.execute(_CHANGED, {"study": self._id, "since": self._event}).all()
        if not rows:
            if connection.execute(_EXISTS, {"study": self._id}).first() is None:
                raise StorageFailed(_DELETED)
            return
        with understood(self._name):
            event = max(row.event for row in rows)
            for row, trial in self._found(rows):
                if row.number < len(self._trials):
                    self._trials[row.number] = trial
                else:
                    self._trials.append(trial)
        self._event = event
        self._history = History(self._trials)
        self._fresh.clear()

    def _load(self, connection: sa.Connection, number: int) -> Trial:
        rows = connection.execute(_ONE, {"study": self._id, "trial": number}).all()
        ((_, trial),) = self._found(rows)
        return trial

    def _found(self, rows: Iterable[Found]) -> Iterable[tuple[Found, Trial]]:
        return trials_of(rows, self._reasons)

    def _reasons(self, row: Found) -> Reasons:
        """Return the reasons of a trial: those that were read before, since they never change."""
        number = int(row.number)
        if number < len(self._trials):
            return self._trials[number].reasons
        return Reasons(row.phase, lambda: self._why(number))

    def _why(self, number: int) -> dict[str, Any]:
        """Return the reasons of a trial; code that reads one after the other gets the rest at once."""
        self._loads += 1
        if self._loads > _LOADED_ONE_BY_ONE:
            self.load_reasons()
            if number < len(self._trials) and self._trials[number].reasons.is_loaded:
                return self._trials[number].why
        which = {"study": self._id, "trial": number}
        why = self._database.read(lambda c: c.execute(_WHY, which).scalar_one_or_none())
        if why is None:
            raise StorageFailed(_DELETED)
        return object_of(why, f"why of trial {number}")


def _columns(trial: Trial, *names: str) -> dict[str, Any]:
    found = {name: getattr(trial, name) for name in names}
    found |= {"events": _events(trial)} if "events" in found else {}
    return {name: None if name == "notes" and not value else value for name, value in found.items()}


def _events(trial: Trial) -> list[dict[str, Any]] | None:
    return [event.to_json() for event in trial.events] or None


def _terms(lease: Lease, until: float) -> dict[str, Any]:
    return {"owner": lease.owner.to_json(), "driver": lease.driver, "until": until}


def _has_ended(held: Any, now: float) -> bool:
    return has_ended(Owner(**held.owner), held.driver, held.until, now)
