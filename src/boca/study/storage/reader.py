"""A database, opened so that nothing can be written to it: no table made or migrated, no lock that a writer waits for.

`Database` in `sql.py` prepares what it opens.  A reader must not: SQLite refuses writes to a file opened
with mode=ro and creates none, and PostgreSQL refuses them in a transaction that is READ ONLY.

What is stored may be damaged: by a disk, a copy cut short, an edit.  Damage is confined to one study, and damaged
reasons fail only when they are read.
"""

from __future__ import annotations

import contextlib
import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import sqlalchemy as sa

from boca.domain.attempt import Attempt, Attempts
from boca.domain.errors import BocaError, InvalidInput, StorageFailed
from boca.domain.problem import Problem
from boca.domain.reasons import Reasons
from boca.domain.trial import History, Trial
from boca.study import spec as specs
from boca.study.storage import migrations, schema
from boca.study.storage.location import location, parsed, sqlite_path
from boca.study.storage.rows import LAYOUTS, Found, Layout, object_of, trials_of
from boca.study.storage.schema import FIRST_WITH_ATTEMPTS, attempts, now_of, queue, studies, trials

T = TypeVar("T")

_TRIES = 3  # reads that a change of the file may have spoilt, before one more counts in any case
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite puts beside a file
_WAIT_FOR_FILE = 2.0  # seconds; a reader of a write-ahead log does not wait at all
# Seconds to wait for a server, and milliseconds for one that falls silent: the next read comes soon.
_WAIT_FOR_SERVER = {"connect_timeout": 5, "tcp_user_timeout": 10_000}

_PARTS = ("space", "fidelity", "target", "direction", "target_cost", "strategy", "seed", "budget")  # of a description


class Damaged(StorageFailed):
    """A study that exists and cannot be read."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(f"The study {name!r} is damaged: {words} Restore it from a copy, or delete it.")
        self.name = name


@contextlib.contextmanager
def understood(name: str) -> Iterator[None]:
    """Name the study if something stored makes no sense."""
    try:
        yield
    except (StorageFailed, sa.exc.DBAPIError):
        raise
    except Exception as error:
        raise Damaged(name, str(error) if isinstance(error, BocaError) else f"{error!r}.") from error


def described(name: str, spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the description of a study, or say what it lacks."""
    missing = [part for part in _PARTS if part not in spec]
    if missing:
        raise Damaged(name, f"its description has no {', '.join(missing)}.")
    return spec


@dataclass(frozen=True)
class Row:
    """The row of a study: `spec` is text, so that it is parsed only after it changed."""

    id: int
    name: str
    created: float
    event: int
    spec: str
    trials: int  # how many there are
    version: int  # of the tables

    def description(self) -> dict[str, Any]:
        """Return the description of the study in today's words."""
        return migrations.described(object_of(self.spec, "its description"), self.version)

    @property
    def key(self) -> str:
        """What tells this study from another of its name, made after it was deleted or in another file."""
        return f"{self.id}-{self.created!r}"


@dataclass(frozen=True)
class StoredStudy:
    """A study with its trials, as they were at one moment."""

    row: Row
    history: History
    attempts: Attempts = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.row.name

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        with understood(self.name):
            return described(self.name, self.row.description())

    @cached_property
    def problem(self) -> Problem:
        with understood(self.name):
            return specs.problem_of(self.spec)


class Times(NamedTuple):
    """When a running trial was handed out, and until when it is held: None without a limit."""

    began: float
    until: float | None


class Reader:
    """Reads studies, each time in one transaction that sees one moment."""

    def __init__(self, storage: str) -> None:
        """Open an existing storage by its URL or its file."""
        self.url = location(storage)
        parts = parsed(self.url)
        file = sqlite_path(self.url)
        if file is None and parts.get_backend_name() == "sqlite":
            raise InvalidInput(f"The storage is {storage!r}, and must name a file.")
        if file is not None and not Path(file).is_file():
            raise InvalidInput(f"There is no file {file!r}. Name the storage of an existing study.")
        self._file = None if file is None else Path(file).absolute()
        self.place = parts.set(query={}).render_as_string(hide_password=True)
        try:
            self._engine = _of_server(parts) if self._file is None else _of_file(self._file)
        except (sa.exc.ArgumentError, ImportError) as error:
            raise InvalidInput(
                f"The database {self.place} cannot be opened: {error}. Name a file, or a URL of SQLite or PostgreSQL."
            ) from error
        self._version = schema.VERSION  # what the last read found

    def close(self) -> None:
        self._engine.dispose()

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run statements that change nothing, or say what is wrong with the database."""
        for is_last in (*[False] * _TRIES, True):
            seen = self._stamp()
            try:
                with self._engine.connect() as connection:
                    self._version = self._readable(schema.version_of(connection))
                    schema.refuse_views(connection)
                    found = work(connection)
            except sa.exc.DBAPIError as error:
                if is_last or self._stamp() == seen:
                    raise StorageFailed(f"The database {self.place} cannot be read: {error.orig}") from error
            except UnicodeDecodeError as error:
                raise StorageFailed(f"The database {self.place} is damaged: it has names that are no text.") from error
            except Damaged:
                if is_last or self._stamp() == seen:
                    raise
            else:
                if is_last or self._stamp() == seen:
                    return found
        raise AssertionError("the last try returns or raises")

    def _stamp(self) -> tuple[int, int] | None:
        """Return what changes with the file: one that was at rest may have been read half changed."""
        if self._file is None:
            return None
        try:
            now = self._file.stat()
        except OSError:
            raise StorageFailed(f"The file {str(self._file)!r} no longer exists.") from None
        return now.st_mtime_ns, now.st_size

    def _readable(self, version: int | None) -> int:
        """Return the version of the tables, all of which can be read; nothing is migrated."""
        if version is None:
            raise StorageFailed(
                f"The database {self.place} has no tables of boca, and reading makes none. "
                "Name the storage in which the study was made."
            )
        schema.refuse_newer(version)
        return version

    @property
    def _layout(self) -> Layout:
        return LAYOUTS[self._version]

    # What is read -------------------------------------------------------------------------------------------------

    def studies(self) -> list[StoredStudy | Damaged]:
        """Return all studies in the order in which they were made, and for a damaged one what is wrong with it.

        Reasons are loaded when they are first read.
        """
        return self.read(lambda c: [self._light(c, row) for row in self.rows(c)])

    def _light(self, connection: sa.Connection, row: Row) -> StoredStudy | Damaged:
        try:
            return self.light(connection, row)
        except Damaged as error:
            return error

    def light(self, connection: sa.Connection, row: Row) -> StoredStudy:
        """Return a study whose reasons are loaded when they are first read; raise if it is damaged."""
        study = StoredStudy(row, _history(row, [trial for _, trial in self.changed(connection, row, 0)]))
        _ = study.problem
        return study

    def now(self, connection: sa.Connection) -> float:
        """Return the time by which leases end: the server's, or that of this machine for a file."""
        return now_of(connection)

    def study(self, name: str) -> StoredStudy:
        """Return one study with everything that is stored of its trials."""

        def work(connection: sa.Connection) -> StoredStudy:
            row = self._named(connection, name)
            light = self._layout.select("why", "output", "notes")
            found = connection.execute(light.where(self._layout["study"] == row.id))
            history = _history(row, [trial for _, trial in self._trials(row, found, self._read)])
            return StoredStudy(row, history, self.attempts(connection, row))

        return self.read(work)

    def row(self, name: str) -> Row:
        """Return what is stored of a study apart from its trials."""
        return self.read(lambda c: self._named(c, name))

    def _named(self, connection: sa.Connection, name: str) -> Row:
        rows = {row.name: row for row in self.rows(connection)}
        if name not in rows:
            known = ", ".join(rows) or "none"
            raise InvalidInput(f"There is no study {name!r} in this database, which has: {known}.")
        return rows[name]

    def rows(self, connection: sa.Connection) -> list[Row]:
        """Return all studies in the order in which they were made."""
        text = sa.type_coerce(studies.c.spec, sa.Text).label("spec")
        columns = (studies.c.id, studies.c.name, studies.c.created, studies.c.event, text, studies.c.trials)
        found = connection.execute(sa.select(*columns).order_by(studies.c.id))
        return [Row(**_sound(row._asdict()), version=self._version) for row in found]

    def changed(self, connection: sa.Connection, study: Row, since: int) -> list[tuple[int, Trial]]:
        """Return the trials that changed after an event, each with the event of its last change."""
        layout = self._layout
        found = connection.execute(layout.select().where(layout["study"] == study.id, layout["event"] > since))
        return [(row.event, trial) for row, trial in self._trials(study, found, self._unread)]

    def attempts(self, connection: sa.Connection, study: Row, number: int | None = None) -> Attempts:
        """Return the attempts of all trials, or of one, that ended without a result."""
        if self._version < FIRST_WITH_ATTEMPTS:
            return {}
        statement = sa.select(attempts).where(attempts.c.study == study.id)
        if number is not None:
            statement = statement.where(attempts.c.trial == number)
        found: dict[int, tuple[Attempt, ...]] = {}
        for row in connection.execute(statement.order_by(attempts.c.trial, attempts.c.position)):
            one = Attempt(row.attempt, row.began, row.ended, row.host, row.process, row.ending)
            found[row.trial] = (*found.get(row.trial, ()), one)
        return found

    def times(self, connection: sa.Connection, study: int, numbers: Sequence[int]) -> dict[int, Times]:
        """Return since when trials are running and until when they are held."""
        found = sa.select(trials.c.number, trials.c.began, trials.c.until).where(
            trials.c.study == study, trials.c.number.in_(numbers[:500])
        )
        return {row.number: Times(row.began, row.until) for row in connection.execute(found)}

    def queues(self, connection: sa.Connection) -> dict[int, int]:
        """Return how many points are queued, by study."""
        found = sa.select(queue.c.study, sa.func.count()).group_by(queue.c.study)
        return {row[0]: row[1] for row in connection.execute(found)}

    def heavy(self, study: Row, number: int) -> dict[str, Any] | None:
        """Return the reasons, the output and the notes of one trial; None if it is gone."""

        def work(connection: sa.Connection) -> Any:
            layout = self._layout
            columns = [layout[name].label(name) for name in ("output", "why", "notes")]
            this = (layout["study"] == study.id) & (layout["number"] == number)
            row = connection.execute(sa.select(*columns).select_from(layout.source).where(this)).first()
            return row, self.attempts(connection, study, number).get(number, ())

        row, before = self.read(work)
        if row is None:
            return None
        with understood(study.name):
            notes = {} if row.notes is None else object_of(row.notes, f"notes of trial {number}")
            return {
                "why": object_of(row.why, f"why of trial {number}"),
                "output": row.output,
                "notes": notes,
                "attempts": [attempt.to_json() for attempt in before],
            }

    def _trials(
        self, study: Row, rows: Iterable[Found], reasons: Callable[[Row, Found], Reasons]
    ) -> list[tuple[Found, Trial]]:
        with understood(study.name):
            return list(trials_of(rows, lambda row: reasons(study, row)))

    def _read(self, study: Row, row: Found) -> Reasons:
        """Return the reasons of a row that has them; damaged ones are read, and refused, when they are needed."""
        reasons = self._unread(study, row)
        with contextlib.suppress(InvalidInput):
            reasons.fill(object_of(row.why, "why"))
        return reasons

    def _unread(self, study: Row, row: Found) -> Reasons:
        number = int(row.number)
        return Reasons(row.phase, lambda: self._why(study, number))

    def _why(self, study: Row, number: int) -> dict[str, Any]:
        found = self.heavy(study, number)
        if found is None:
            raise StorageFailed("The study is gone: another process deleted it.")
        return dict(found["why"])


def _sound(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a study with values that can be compared and shown; a wrong count is none, which is told."""
    known = dict(row)
    if not isinstance(known["name"], str):
        known["name"] = ascii(known["name"])
    for name in ("trials", "event"):
        if not isinstance(known[name], int):
            known[name] = -1
    if not isinstance(known["created"], int | float) or not math.isfinite(known["created"]):
        known["created"] = 0.0
    return known


def _history(study: Row, of_study: Sequence[Trial]) -> History:
    is_whole = len(of_study) == study.trials  # a number that is wrong may be larger than any memory
    if not is_whole or [trial.number for trial in of_study] != list(range(len(of_study))):
        raise Damaged(study.name, f"it must have {study.trials} trials, numbered from 0; it has {len(of_study)}.")
    return History(of_study)


def _of_file(file: Path) -> sa.Engine:
    """Return an engine that opens the file for every read: a file that was replaced is then the new one."""

    def connect() -> sqlite3.Connection:
        mode = "mode=ro&immutable=1" if _is_at_rest(file) else "mode=ro"
        return sqlite3.connect(
            f"file:{quote(str(file))}?{mode}",
            uri=True,
            timeout=_WAIT_FOR_FILE,
            isolation_level=None,
            check_same_thread=False,
        )

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")  # one moment for all statements; it takes no lock of a writer

    return engine


def _is_at_rest(file: Path) -> bool:
    """Whether a file that is written through a log has an empty log: then everything is in the file.

    To read it, SQLite would make a log, leave that behind, and fail in a folder of another user.  A writer that begins
    now writes to a log; the file itself changes megabytes later.
    """
    try:
        with file.open("rb") as content:
            has_log = content.read(20)[18:] == b"\2\2"
        log = Path(f"{file}-wal")
        return has_log and not (log.exists() and log.stat().st_size)
    except OSError:
        return False  # SQLite says what is wrong


def refuse_to_replace(file: Path, what: str) -> None:
    """Refuse to write over a SQLite database or its log: all studies would be lost."""
    path = os.path.realpath(file)
    for database in {path, *(path.removesuffix(end) for end in _BESIDE)}:
        if _is_database(Path(database)):
            raise InvalidInput(f"{what} is {database}, a database that would be lost. Name another file.")


def _is_database(file: Path) -> bool:
    try:
        if not file.is_file():
            return False  # missing, or a terminal, which would keep a reader waiting
        with file.open("rb") as content:
            return content.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False  # writing says what is wrong


def _of_server(url: sa.URL) -> sa.Engine:
    return sa.create_engine(
        url,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        execution_options={"postgresql_readonly": True},
        connect_args=_WAIT_FOR_SERVER if url.get_driver_name().startswith("psycopg") else {},
    )
