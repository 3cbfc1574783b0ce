"""Studies in a database: SQLite for one machine, PostgreSQL for many.

A write is one short transaction that holds the row of the study, so that events have one order, trial numbers no gap,
and whoever reads sees a prefix of what happened.  Reads ask only for what changed since the last one.

A write carries a token.  Where the answer to a commit got lost, the write is tried again and finds its token there: it
is never done twice.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from boca.domain.errors import InvalidInput, StorageFailed
from boca.domain.space import Point
from boca.domain.trial import History, Trial
from boca.study.storage import schema
from boca.study.storage.base import Lease, Queued, Snapshot
from boca.study.storage.owner import Owner
from boca.study.storage.schema import queue, studies, trials
from boca.study.storage.transitions import LET_GO, refuse_no_json, refuse_no_number, refuse_result, storable, taken_over

T = TypeVar("T")

_URLS = "a URL: 'sqlite:///study.db' or 'postgresql+psycopg://user@host/name' (pip install 'boca[postgres]')"
_BUSY = 120.0  # seconds to wait for other writers of a file: 16 of them starved one for 13
_PATIENCE = 600.0  # seconds to wait for a server that is down
_REFUSALS = ("authentication failed", "does not exist", "pg_hba.conf", "resolve host", "not permitted")
_COLLISIONS = ("40001", "40P01")  # PostgreSQL's for two transactions of which one has to begin again
_DELETED = "The study must be there; somebody deleted it."
_FEW = 8  # trials whose reasons are loaded one by one: whoever looks at more soon looks at all
_MIGRATION_LOCK = 0x626F6361  # "boca", for PostgreSQL's advisory lock

# What a read needs; the reasons, the bulk of a row, are loaded when somebody looks at them.
_HIDDEN = ("study", "why", "token", "owner", "driver", "until", "began")
_LIGHT = [column for column in trials.c if column.name not in _HIDDEN]

# What is said of a trial when it is made, and what may change later: a result never moves a point.
_ASKED = ("x", "z", "overhead", "asked")
_TOLD = ("cost", "state", "value", "noise", "seconds", "reason", "told", "attempt", "output")

# The statements of every trial, built once: building one costs more than running it.
_HOLD = sa.select(studies.c.trials, studies.c.event).where(studies.c.id == sa.bindparam("study")).with_for_update()
_THERE = sa.select(studies.c.id).where(studies.c.id == sa.bindparam("study"))
_CHANGED = (
    sa.select(*_LIGHT)
    .where(trials.c.study == sa.bindparam("study"), trials.c.event > sa.bindparam("since"))
    .order_by(trials.c.number)
)
_ONE = sa.select(*_LIGHT).where(trials.c.study == sa.bindparam("study"), trials.c.number == sa.bindparam("trial"))
_WHY = sa.select(trials.c.why).where(trials.c.study == sa.bindparam("study"), trials.c.number == sa.bindparam("trial"))
_REASONS = sa.select(trials.c.number, trials.c.why).where(
    trials.c.study == sa.bindparam("study"), trials.c.number >= sa.bindparam("since")
)
_BEGAN = sa.select(trials.c.began).where(
    trials.c.study == sa.bindparam("study"), trials.c.number == sa.bindparam("trial")
)
_WAITING = (
    sa.select(queue.c.id, queue.c.x, queue.c.z).where(queue.c.study == sa.bindparam("study")).order_by(queue.c.id)
)
_HELD = sa.select(trials.c.number, trials.c.owner, trials.c.driver, trials.c.until).where(
    trials.c.state == "running", trials.c.driver.is_not(None)
)
_INSERT = trials.insert()
_UPDATE = trials.update().where(trials.c.study == sa.bindparam("of"), trials.c.number == sa.bindparam("trial"))
_COUNT = studies.update().where(studies.c.id == sa.bindparam("of"))
_CLOCK = sa.select(sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Double))

# Who holds a trial that is out without a lease, or has its result.
_NOBODY = {"owner": None, "driver": None, "until": None}

log = logging.getLogger("boca")


def parsed(url: str) -> sa.URL:
    """Return a URL in its parts, or say what one looks like."""
    try:
        return sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:
        raise InvalidInput(f"storage must be {_URLS}; got {_without_password(url)!r} ({error}).") from error


def sqlite_path(url: str) -> str | None:
    """Return the file of a URL of SQLite; None for other databases and for one in memory."""
    parts = parsed(url)
    is_file = parts.get_backend_name() == "sqlite" and parts.database not in (None, "", ":memory:")
    return parts.database if is_file else None


class Database:
    """An open database with the tables in it: where studies are found, made and deleted."""

    def __init__(self, url: str) -> None:
        self.url = parsed(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and sqlite_path(url) is None:
            raise InvalidInput(f"storage must name a file; got {url!r}. To keep a study in memory give storage=None.")
        try:
            self._engine = _engine(self.url)
        except (sa.exc.ArgumentError, ImportError) as error:
            raise InvalidInput(f"storage must be {_URLS}; got {_without_password(url)!r} ({error}).") from error
        weakref.finalize(self, self._engine.dispose)  # connections end with whoever had them
        self._was_there = False
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._engine.dispose()

    # Transactions -------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yield a connection on which every statement stands for itself."""
        with self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run statements that change nothing, again where the connection was lost."""

        def once() -> T:
            with self.reading() as connection:
                return work(connection)

        return self._patiently(once)

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run a transaction, again where the connection was lost: `work` must know its own traces."""

        def once() -> T:
            with self._engine.connect() as connection:
                writing = connection.execution_options(boca_writes=True)
                with writing.begin():
                    return work(writing)

        return self._patiently(once)

    def _patiently(self, once: Callable[[], T]) -> T:
        """Wait for a server that is down; a file that cannot be written is an error at once."""
        began = time.monotonic()
        pause = 0.1
        while True:
            try:
                result = once()
                self._was_there = True
                return result
            except sa.exc.DBAPIError as error:
                if self.is_sqlite or time.monotonic() - began > _PATIENCE or not self._is_worth_waiting(error):
                    raise StorageFailed(self._words(error)) from error
                if pause == 0.1:
                    log.warning("Waiting for the database, at most %.0f minutes: %s", _PATIENCE / 60, error.orig)
            time.sleep(pause)
            pause = min(2.0 * pause, 5.0)

    def _is_worth_waiting(self, error: sa.exc.DBAPIError) -> bool:
        """Whether the next try may succeed: a server that never knew us will not change its mind."""
        if getattr(error.orig, "sqlstate", None) in _COLLISIONS:
            return True
        is_refusal = any(sign in str(error.orig) for sign in _REFUSALS)
        return _is_absent(error) and (self._was_there or not is_refusal)

    def _words(self, error: sa.exc.DBAPIError) -> str:
        place = self.url.render_as_string(hide_password=True)
        return (
            f"The database {place} must be readable and writable; it said: {error.orig}. "
            "What was acknowledged before is stored; go on when the cause is gone."
        )

    # Tables -------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Create the tables, or bring those that are there up to date; many processes may start at once."""
        version = self.read(schema.version_of)
        if version == schema.VERSION:
            return
        if version is not None:
            schema.refuse_newer(version)

        def prepare(connection: sa.Connection) -> None:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            there = schema.version_of(connection)
            if there is None:
                schema.create(connection)
            elif there < schema.VERSION:
                self._back_up(connection, there)
                schema.migrate(connection, there)

        self.write(prepare)

    def _back_up(self, connection: sa.Connection, version: int) -> None:
        """Keep the tables of an older version: a copy of the file, or copies of the tables beside them."""
        if not self.is_sqlite:
            there = set(sa.inspect(connection).get_table_names())
            for table in there & set(schema.metadata.tables):
                connection.execute(sa.text(f"CREATE TABLE {table}_v{version} AS SELECT * FROM {table}"))
            return
        copy = f"{self.url.database}.v{version}.backup"
        Path(f"{copy}.part").unlink(missing_ok=True)
        with self.reading() as other:  # this one has the lock, so that nobody changes what another reader copies
            other.exec_driver_sql("VACUUM INTO ?", (f"{copy}.part",))
        os.replace(f"{copy}.part", copy)

    # Studies ------------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all studies, in the order in which they were made."""
        statement = sa.select(studies.c.name).order_by(studies.c.id)
        return self.read(lambda c: list(c.execute(statement).scalars()))

    def spec(self, name: str) -> dict[str, Any] | None:
        """Return what is stored of a study's problem; None where there is no such study."""
        statement = sa.select(studies.c.spec).where(studies.c.name == name)
        return self.read(lambda c: c.execute(statement).scalar_one_or_none())

    def create(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Make a study unless there is one of this name, and return what is stored of it."""

        def work(connection: sa.Connection) -> dict[str, Any]:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            there = connection.execute(sa.select(studies.c.spec).where(studies.c.name == name)).scalar_one_or_none()
            if there is not None:
                return dict(there)
            connection.execute(studies.insert().values(name=name, spec=spec, created=time.time(), trials=0, event=0))
            return spec

        return self.write(work)

    def change(self, name: str, spec: dict[str, Any]) -> None:
        """Replace what is stored of a study's problem."""
        self.write(lambda c: c.execute(studies.update().where(studies.c.name == name).values(spec=spec)))

    def delete(self, name: str) -> None:
        """Remove a study with all its trials."""
        self.write(lambda c: c.execute(studies.delete().where(studies.c.name == name)))

    def study(self, name: str) -> Sql:
        identity = self.read(lambda c: c.execute(sa.select(studies.c.id).where(studies.c.name == name)).scalar())
        if identity is None:
            known = ", ".join(self.names()) or "none"
            raise InvalidInput(f"There must be a study of the name {name!r}; the database has: {known}.")
        return Sql(self, int(identity))


class Sql:
    """One study of a database."""

    def __init__(self, database: Database, identity: int) -> None:
        self._database = database
        self._id = identity
        self._trials: list[Trial] = []
        self._history = History()
        self._event = 0
        self._looks = 0  # at reasons that had to be loaded
        self._lock = threading.Lock()  # of what was read: a driver may have threads

    def read(self) -> Snapshot:
        def work(connection: sa.Connection) -> Snapshot:
            history, event = self._refresh(connection)
            queued = tuple(Queued(row.id, row.x, row.z) for row in connection.execute(_WAITING, {"study": self._id}))
            return Snapshot(history, event, queued)

        return self._database.read(work)

    def claim(
        self,
        draft: Trial,
        *,
        seen: int,
        affords: Callable[[History], bool] | None = None,
        queued: Queued | None = None,
        lease: Lease | None = None,
    ) -> Trial | None:
        token = uuid.uuid4().hex
        refuse_no_number(draft)

        def work(connection: sa.Connection) -> Trial | None:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            if study.event != seen and (affords is None or not affords(self._refresh(connection)[0])):
                return None
            if queued is not None:
                taken = connection.execute(queue.delete().where(queue.c.id == queued.id, queue.c.study == self._id))
                if not taken.rowcount:
                    return None
            trial = replace(draft, number=study.trials, asked=study.event + 1)
            self._insert(connection, trial, token, self._handed_out(connection, lease))
            return trial

        return self._database.write(work)

    def add(self, draft: Trial) -> Trial:
        refuse_no_number(draft)
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            trial = replace(draft, number=study.trials, asked=study.event + 1, told=study.event + 1)
            self._insert(connection, trial, token, _NOBODY)
            return trial

        return self._database.write(work)

    def finish(self, trial: Trial) -> Trial:
        refuse_no_number(trial)
        trial = replace(trial, output=storable(trial.output), reason=storable(trial.reason))
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            stored = self._load(connection, trial.number)
            refuse_result(stored, trial)
            finished = replace(trial, told=study.event + 1)
            self._update(connection, finished, token, _NOBODY, event=study.event + 1)
            return finished

        return self._database.write(work)

    def enqueue(self, x: Point, z: Point) -> None:
        refuse_no_json(x, "x")
        refuse_no_json(z, "z")
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> None:
            self._hold(connection)
            if connection.execute(sa.select(queue.c.id).where(queue.c.token == token)).first() is None:
                connection.execute(queue.insert().values(study=self._id, x=x, z=z, token=token))

        self._database.write(work)

    def seconds_out(self, number: int) -> float | None:
        """Return the time since the attempt began, by the clocks of who asked and of who wants to know."""
        which = {"study": self._id, "trial": number}
        began = self._database.read(lambda c: c.execute(_BEGAN, which).scalar_one_or_none())
        return None if began is None else max(time.time() - began, 0.0)

    def load_reasons(self) -> None:
        with self._lock:
            missing = {trial.number: trial for trial in self._trials if "why" not in trial.__dict__}
        if missing:
            which = {"study": self._id, "since": min(missing)}
            for number, why in self._database.read(lambda c: c.execute(_REASONS, which).all()):
                if number in missing:
                    missing[number].__dict__["why"] = why

    def take_over(self, lease: Lease, *, max_retries: int, limit: int | None = None) -> Sequence[Trial]:
        """Look first without a lock: there is seldom anything to take over."""
        held = _HELD.where(trials.c.study == self._id, trials.c.driver != lease.driver).order_by(trials.c.number)

        def abandoned(connection: sa.Connection) -> list[Any]:
            now = self._now(connection)
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
                trial = self._load(connection, row.number)
                trial = taken_over(trial, driver=row.driver, until=row.until, max_retries=max_retries)
                event += 1
                if trial.state == "running":
                    self._update(connection, trial, token, self._handed_out(connection, lease), event=event)
                    taken.append(trial)
                else:
                    self._update(connection, replace(trial, told=event), token, _NOBODY, event=event)
            return taken

        return self._database.write(work)

    def retry(self, trial: Trial, lease: Lease) -> Trial:
        token = uuid.uuid4().hex

        def work(connection: sa.Connection) -> Trial:
            study = self._hold(connection)
            if done := self._written(connection, token):
                return done[0]
            refuse_result(self._load(connection, trial.number), trial)
            again = replace(trial, attempt=trial.attempt + 1)
            terms = self._handed_out(connection, lease) | {"overhead": again.overhead}
            self._update(connection, again, token, terms, event=study.event + 1)
            return again

        return self._database.write(work)

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
            if row is not None and not _has_ended(row, self._now(connection)):
                return False
            terms = _terms(Lease(driver=""), LET_GO)
            return connection.execute(trials.update().where(this).values(**terms)).rowcount > 0

        return self._database.write(work)

    def renew(self, lease: Lease) -> None:
        self._set_ends(lease, lambda connection: self._now(connection) + lease.seconds)

    def release(self, lease: Lease) -> None:
        self._set_ends(lease, lambda _: LET_GO)

    def close(self) -> None:
        self._database.close()

    # How ----------------------------------------------------------------------------------------------------------

    def _set_ends(self, lease: Lease, until: Callable[[sa.Connection], float]) -> None:
        mine = (trials.c.study == self._id) & (trials.c.driver == lease.driver) & (trials.c.state == "running")

        def work(connection: sa.Connection) -> None:
            # whoever changes several trials holds the study, or two of them wait for each other; one that was deleted
            # has no leases
            connection.execute(_HOLD, {"study": self._id})
            connection.execute(trials.update().where(mine).values(until=until(connection)))

        self._database.write(work)

    def _now(self, connection: sa.Connection) -> float:
        """Return the time by which leases end, of one clock for all: the server's, or that of the file's machine."""
        return time.time() if self._database.is_sqlite else float(connection.execute(_CLOCK).scalar_one())

    def _handed_out(self, connection: sa.Connection, lease: Lease | None) -> dict[str, Any]:
        terms = _NOBODY if lease is None else _terms(lease, self._now(connection) + lease.seconds)
        return terms | {"began": time.time()}

    def _hold(self, connection: sa.Connection) -> sa.Row[Any, Any]:
        """Return the row of the study, which no other writer can have until this transaction ends."""
        row = connection.execute(_HOLD, {"study": self._id}).one_or_none()
        if row is None:
            raise StorageFailed(_DELETED)
        return row

    def _written(self, connection: sa.Connection, token: str) -> list[Trial]:
        """Return the trials of a write that was done before its answer got lost."""
        if self._database.is_sqlite:
            return []  # a file answers or raises
        found = sa.select(*_LIGHT).where(trials.c.study == self._id, trials.c.token == token)
        return [self._trial(row) for row in connection.execute(found.order_by(trials.c.number))]

    def _insert(self, connection: sa.Connection, trial: Trial, token: str, terms: dict[str, Any]) -> None:
        event = trial.asked
        values = _columns(trial, *_ASKED, *_TOLD) | terms
        values |= {"study": self._id, "number": trial.number, "why": trial.why}
        connection.execute(_INSERT, values | {"event": event, "token": token, "phase": trial.phase})
        connection.execute(_COUNT, {"of": self._id, "event": event, "trials": trial.number + 1})

    def _update(
        self, connection: sa.Connection, trial: Trial, token: str, terms: dict[str, Any], *, event: int
    ) -> None:
        values = _columns(trial, *_TOLD) | terms | {"event": event, "token": token}
        connection.execute(_UPDATE, values | {"of": self._id, "trial": trial.number})
        connection.execute(_COUNT, {"of": self._id, "event": event})

    def _refresh(self, connection: sa.Connection) -> tuple[History, int]:
        """Take in what changed since the last read, and return what is known now."""
        with self._lock:
            self._take_in(connection)
            return self._history, self._event

    def _take_in(self, connection: sa.Connection) -> None:
        rows = connection.execute(_CHANGED, {"study": self._id, "since": self._event}).all()
        if not rows:
            if connection.execute(_THERE, {"study": self._id}).first() is None:
                raise StorageFailed(_DELETED)
            return
        for row in rows:
            trial = self._trial(row)
            if row.number < len(self._trials):
                before = self._trials[row.number].__dict__
                if "why" in before:  # reasons never change
                    trial.__dict__["why"] = before["why"]
                self._trials[row.number] = trial
            else:
                self._trials.append(trial)
        self._event = max(row.event for row in rows)
        self._history = History(self._trials)

    def _load(self, connection: sa.Connection, number: int) -> Trial:
        return self._trial(connection.execute(_ONE, {"study": self._id, "trial": number}).one())

    def _trial(self, row: sa.Row[Any, Any]) -> Trial:
        values = {name: value for name, value in row._mapping.items() if name not in ("event", "phase")}
        return Trial.stored(lambda: self._why(values["number"]), phase=row.phase, **values)

    def _why(self, number: int) -> dict[str, Any]:
        """Return the reasons of a trial; whoever looks at one after the other gets those that are left at once."""
        self._looks += 1
        if self._looks > _FEW:
            self.load_reasons()
        known = self._trials[number].__dict__ if number < len(self._trials) else {}
        if "why" in known:  # it was loaded since, or the trial has changed since
            return dict(known["why"])
        which = {"study": self._id, "trial": number}
        why = self._database.read(lambda c: c.execute(_WHY, which).scalar_one_or_none())
        if why is None:
            raise StorageFailed(_DELETED)
        return dict(why)


def _columns(trial: Trial, *names: str) -> dict[str, Any]:
    return {name: getattr(trial, name) for name in names}


def _terms(lease: Lease, until: float) -> dict[str, Any]:
    return {"owner": lease.owner.to_json(), "driver": lease.driver, "until": until}


def _has_ended(held: Any, now: float) -> bool:
    return bool(held.until < now) or Owner(**held.owner).is_dead()


def _without_password(url: str) -> str:
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)


def _is_absent(error: sa.exc.DBAPIError) -> bool:
    """Whether the server could not be reached, as against a statement that it refused."""
    if error.connection_invalidated:
        return True
    said = str(error.orig).lower()
    return any(
        sign in said
        for sign in ("connection", "starting up", "shutting down", "terminating", "could not connect", "closed")
    )


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    engine = sa.create_engine(url, connect_args={"timeout": _BUSY, "check_same_thread": False})

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are ours, see below
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(1000 * _BUSY)}")
        _switch_to_wal(cursor)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("boca_writes"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # a lock that is taken late is a lock that is refused

    return engine


def _switch_to_wal(cursor: Any) -> None:
    """Switch the file to a write-ahead log; SQLite does not wait for others here, so this does."""
    import sqlite3

    began = time.monotonic()
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() - began > _BUSY:
                raise
        time.sleep(0.05)
