"""A database, opened so that nothing can be written to it: no table made or migrated, no lock that a writer waits for.

`Database` in `sql.py` prepares what it opens.  A reader must not: SQLite refuses writes to a file opened
with mode=ro and creates none, and PostgreSQL refuses them in a transaction that is READ ONLY.

What is stored may be damaged: a disk, a copy cut short, a hand.  That is an error of one study, and of its reasons only
for who looks at them.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args
from urllib.parse import quote

import sqlalchemy as sa

from boca.domain.errors import BocaError, InvalidInput, StorageFailed
from boca.domain.problem import Problem
from boca.domain.trial import History, State, Trial
from boca.study import spec as specs
from boca.study.storage import schema
from boca.study.storage.location import location
from boca.study.storage.schema import queue, studies, trials
from boca.study.storage.sql import parsed, sqlite_path

T = TypeVar("T")

_TRIES = 3  # looks that a change of the file may have spoilt, before one more counts in any case
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite puts beside a file
_BUSY = 2.0  # seconds to wait for a file: a reader of a write-ahead log does not wait at all
# Seconds to wait for a server, and milliseconds for one that falls silent: the next look comes soon.
_PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 10_000}

# Of a trial, the ledger of its writers apart; reasons and outputs are the bulk of it, which not every look needs.
_HEAVY = ("why", "output")
_OF_WRITERS = ("study", "token", "owner", "driver", "until", "began")
# JSON comes as text: where it makes no sense, it is to be known of which trial it is.
_WHOLE = [
    sa.type_coerce(c, sa.Text).label(c.name) if isinstance(c.type, schema.Json) else c
    for c in trials.c
    if c.name not in _OF_WRITERS
]
_LIGHT = [c for c in _WHOLE if c.name not in _HEAVY]
_NUMBERS = ("cost", "value", "noise", "seconds", "overhead", "asked", "told", "attempt")
_PARTS = ("space", "fidelity", "target", "direction", "target_cost", "strategy", "seed", "budget")  # of a description


class Damaged(StorageFailed):
    """A study that is there and cannot be understood."""

    def __init__(self, name: str, words: str) -> None:
        super().__init__(f"The study {name!r} cannot be understood: {words} Restore it from a copy, or delete it.")
        self.name = name


@contextlib.contextmanager
def understood(name: str) -> Iterator[None]:
    """Say of which study it is, where something stored makes no sense."""
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
    """A study as its row says: `spec` is text, so that nobody parses what did not change."""

    id: int
    name: str
    created: float
    event: int
    spec: str
    trials: int  # how many there are

    @property
    def key(self) -> str:
        """What tells this study from another one of its name: one made after it was deleted, or in another file."""
        return f"{self.id}-{self.created!r}"


@dataclass(frozen=True)
class StoredStudy:
    """A study with its trials, as they were at one moment."""

    row: Row
    history: History

    @property
    def name(self) -> str:
        return self.row.name

    @cached_property
    def spec(self) -> Mapping[str, Any]:
        with understood(self.name):
            return described(self.name, _object(self.row.spec, "its description"))

    @cached_property
    def problem(self) -> Problem:
        with understood(self.name):
            return specs.problem_of(self.spec)


class Times(NamedTuple):
    """When a trial that is out was handed out, and until when it is held: None where without a limit."""

    began: float
    until: float | None


class Reader:
    """Reads studies, each time in one transaction that sees one moment."""

    def __init__(self, storage: str) -> None:
        """Open a storage that is there, by its URL or its file."""
        self.url = location(storage)
        parts = parsed(self.url)
        file = sqlite_path(self.url)
        if file is None and parts.get_backend_name() == "sqlite":
            raise InvalidInput(f"The storage must name a file; got {storage!r}.")
        if file is not None and not Path(file).is_file():
            raise InvalidInput(f"The storage must be there; there is no file {file!r}.")
        self._file = None if file is None else Path(file).absolute()
        self.place = parts.set(query={}).render_as_string(hide_password=True)
        try:
            self._engine = _of_server(parts) if self._file is None else _of_file(self._file)
        except (sa.exc.ArgumentError, ImportError) as error:
            raise InvalidInput(
                f"The storage must be a URL of a database that can be opened, or a file; got {self.place} ({error})."
            ) from error

    def close(self) -> None:
        self._engine.dispose()

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run statements that change nothing, or say what is wrong with the database right now."""
        for is_last in (*[False] * _TRIES, True):
            seen = self._stamp()
            try:
                with self._engine.connect() as connection:
                    self._refuse_other_tables(schema.version_of(connection))
                    found = work(connection)
            except sa.exc.DBAPIError as error:
                if is_last or self._stamp() == seen:
                    raise StorageFailed(f"The database {self.place} cannot be read: {error.orig}") from error
            except Damaged:
                if is_last or self._stamp() == seen:
                    raise
            else:
                if is_last or self._stamp() == seen:
                    return found
        raise AssertionError("the last try returns or raises")

    def _stamp(self) -> tuple[int, int] | None:
        """Return what tells a file from itself after a change: one that was at rest may have been read half changed."""
        if self._file is None:
            return None
        try:
            now = self._file.stat()
        except OSError:
            raise StorageFailed(f"The storage must be there; there is no file {str(self._file)!r}.") from None
        return now.st_mtime_ns, now.st_size

    def _refuse_other_tables(self, version: int | None) -> None:
        if version is None:
            raise StorageFailed(
                f"The database {self.place} must hold studies of boca; it has no tables of it, and gets none. "
                "Give the storage that the study was made in."
            )
        schema.refuse_newer(version)
        if version < schema.VERSION:
            raise StorageFailed(
                f"The tables of {self.place} are of version {version}, from an older boca, and must be of "
                f"{schema.VERSION}. To look changes nothing; to go on with a study brings them up to date."
            )

    # What is read -------------------------------------------------------------------------------------------------

    def studies(self) -> list[StoredStudy | Damaged]:
        """Return all studies in the order in which they were made, and for one that is damaged what is wrong with it.

        Reasons are loaded when somebody looks at them.
        """
        return self.read(lambda c: [self._light(c, row) for row in self.rows(c)])

    def _light(self, connection: sa.Connection, row: Row) -> StoredStudy | Damaged:
        try:
            study = StoredStudy(row, _history(row, [trial for _, trial in self.changed(connection, row, 0)]))
            _ = study.problem
        except Damaged as error:
            return error
        return study

    def study(self, name: str) -> StoredStudy:
        """Return one study with everything that is stored of its trials."""

        def work(connection: sa.Connection) -> StoredStudy:
            row = self._named(connection, name)
            found = sa.select(*_WHOLE).where(trials.c.study == row.id).order_by(trials.c.number)
            return StoredStudy(row, _history(row, [self._whole(row, one) for one in connection.execute(found)]))

        return self.read(work)

    def row(self, name: str) -> Row:
        """Return what is stored of a study apart from its trials."""
        return self.read(lambda c: self._named(c, name))

    def _named(self, connection: sa.Connection, name: str) -> Row:
        rows = {row.name: row for row in self.rows(connection)}
        if name not in rows:
            known = ", ".join(rows) or "none"
            raise InvalidInput(f"There must be a study of the name {name!r}; the database has: {known}.")
        return rows[name]

    def rows(self, connection: sa.Connection) -> list[Row]:
        """Return all studies in the order in which they were made."""
        text = sa.type_coerce(studies.c.spec, sa.Text).label("spec")
        columns = (studies.c.id, studies.c.name, studies.c.created, studies.c.event, text, studies.c.trials)
        return [Row(*row) for row in connection.execute(sa.select(*columns).order_by(studies.c.id))]

    def changed(self, connection: sa.Connection, study: Row, since: int) -> list[tuple[int, Trial]]:
        """Return the trials that changed after an event, each with the event of its last change."""
        found = sa.select(*_LIGHT).where(trials.c.study == study.id, trials.c.event > since).order_by(trials.c.number)
        return [(row.event, self._trial(study, row)) for row in connection.execute(found)]

    def times(self, connection: sa.Connection, study: int, numbers: Sequence[int]) -> dict[int, Times]:
        """Return since when trials are out and until when they are held."""
        found = sa.select(trials.c.number, trials.c.began, trials.c.until).where(
            trials.c.study == study, trials.c.number.in_(numbers[:500])
        )
        return {row.number: Times(row.began, row.until) for row in connection.execute(found)}

    def queues(self, connection: sa.Connection) -> dict[int, int]:
        """Return how many points wait for their turn, by study."""
        found = sa.select(queue.c.study, sa.func.count()).group_by(queue.c.study)
        return {row[0]: row[1] for row in connection.execute(found)}

    def heavy(self, study: Row, number: int) -> dict[str, Any] | None:
        """Return the reasons and the output of one trial; None where it is gone."""
        found = sa.select(*(c for c in _WHOLE if c.name in _HEAVY)).where(
            trials.c.study == study.id, trials.c.number == number
        )
        row = self.read(lambda c: c.execute(found).one_or_none())
        if row is None:
            return None
        with understood(study.name):
            return {"why": _object(row.why, f"why of trial {number}"), "output": row.output}

    def _whole(self, study: Row, row: sa.Row[Any, Any]) -> Trial:
        trial = self._trial(study, row)
        with contextlib.suppress(InvalidInput):  # whoever looks at the reasons is told
            trial.__dict__["why"] = _object(row.why, "why")
        return trial

    def _trial(self, study: Row, row: sa.Row[Any, Any]) -> Trial:
        with understood(study.name):
            values = _values(row)
        return Trial.stored(lambda: self._why(study, values["number"]), phase=row.phase, **values)

    def _why(self, study: Row, number: int) -> dict[str, Any]:
        found = self.heavy(study, number)
        if found is None:
            raise StorageFailed("The study must be there; somebody deleted it.")
        return dict(found["why"])


def _history(study: Row, of_study: Sequence[Trial]) -> History:
    if [trial.number for trial in of_study] != list(range(study.trials)):
        raise Damaged(
            study.name, f"it has {study.trials} trials, which must be there from 0 on; there are {len(of_study)}."
        )
    return History(of_study)


def _values(row: sa.Row[Any, Any]) -> dict[str, Any]:
    """Return the fields of a trial, the reasons apart, or refuse what the library never wrote."""
    values = {name: value for name, value in row._mapping.items() if name not in ("event", "phase", "why")}
    of = f"of trial {row.number}"
    for name in ("x", "z"):
        values[name] = _object(values[name], f"{name} {of}")
    if row.state not in get_args(State):
        raise InvalidInput(f"state {of} must be one of {', '.join(get_args(State))}; got {row.state!r:.40}.")
    if (row.state == "complete") != (row.value is not None):
        raise InvalidInput(f"value {of} must be there where it is complete, and only there; got {row.value!r:.40}.")
    for name in _NUMBERS:
        if not isinstance(values[name], int | float | None):
            raise InvalidInput(f"{name} {of} must be a number; got {values[name]!r:.40}.")
    return values


def _object(stored: Any, what: str) -> dict[str, Any]:
    """Return a stored JSON object."""
    try:
        found = json.loads(stored)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"{what} must be a JSON object; got {stored!r:.40}.")
    return found


def _of_file(file: Path) -> sa.Engine:
    """Return an engine that opens the file for every look: a file that was replaced is then the new one."""

    def connect() -> sqlite3.Connection:
        mode = "mode=ro&immutable=1" if _is_at_rest(file) else "mode=ro"
        return sqlite3.connect(
            f"file:{quote(str(file))}?{mode}", uri=True, timeout=_BUSY, isolation_level=None, check_same_thread=False
        )

    engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool)

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN")  # one moment for all statements; it takes no lock of a writer

    return engine


def _is_at_rest(file: Path) -> bool:
    """Whether a file that is written through a log has nothing in its log: then all is in the file.

    SQLite would make a log to read it, leave that behind, and fail where the folder is another's.  Whoever begins to
    write now writes to a log; the file itself changes megabytes later.
    """
    try:
        with file.open("rb") as content:
            has_log = content.read(20)[18:] == b"\2\2"
        log = Path(f"{file}-wal")
        return has_log and not (log.exists() and log.stat().st_size)
    except OSError:
        return False  # SQLite says what is wrong


def refuse_to_replace(file: Path, what: str) -> None:
    """Refuse to write over a SQLite database or its log: whoever gives the storage as the file loses all studies."""
    path = os.path.realpath(file)
    for database in {path, *(path.removesuffix(end) for end in _BESIDE)}:
        if _is_database(Path(database)):
            raise InvalidInput(
                f"{what} must not be a database: {database} is one, and would be lost. Name another file."
            )


def _is_database(file: Path) -> bool:
    try:
        if not file.is_file():
            return False  # nothing is there, or a terminal, which would keep a reader waiting
        with file.open("rb") as content:
            return content.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False  # whoever writes says what is wrong


def _of_server(url: sa.URL) -> sa.Engine:
    return sa.create_engine(
        url,
        pool_pre_ping=True,
        isolation_level="REPEATABLE READ",
        execution_options={"postgresql_readonly": True},
        connect_args=_PATIENCE if url.get_driver_name().startswith("psycopg") else {},
    )
