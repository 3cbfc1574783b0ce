"""A database, opened so that nothing can be written to it: no table made or migrated, no lock that a writer waits for.

`boca.storage.sql.Database` prepares what it opens.  Whoever only looks must not: SQLite refuses writes to a file opened
with mode=ro and creates none, and PostgreSQL refuses them in a transaction that is READ ONLY.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import sqlalchemy as sa

from boca.errors import InvalidInput, StorageFailed
from boca.storage import schema
from boca.storage.location import location
from boca.storage.schema import queue, studies, trials
from boca.storage.sql import parsed, sqlite_path
from boca.trial import History, Trial

T = TypeVar("T")

_TRIES = 3  # looks that a change of the file may have spoilt, before one more counts in any case
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite puts beside a file
_BUSY = 2.0  # seconds to wait for a file: a reader of a write-ahead log does not wait at all
# Seconds to wait for a server, and milliseconds for one that falls silent: the next look comes soon.
_PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 10_000}

# Of a trial, the books of its writers apart; reasons and outputs are the bulk of it, which not every look needs.
_HEAVY = ("why", "output")
_WHOLE = [c for c in trials.c if c.name not in ("study", "token", "owner", "driver", "until", "began")]
_LIGHT = [c for c in _WHOLE if c.name not in _HEAVY]


@dataclass(frozen=True)
class Row:
    """A study as its row says: `spec` is text, so that nobody parses what did not change."""

    id: int
    name: str
    created: float
    event: int
    spec: str

    @property
    def key(self) -> str:
        """What tells this study from another one of its name: one made after it was deleted, or in another file."""
        return f"{self.id}-{self.created!r}"


@dataclass(frozen=True)
class Stored:
    """A study with its trials, as they were at one moment."""

    name: str
    spec: dict[str, Any]
    history: History


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

    def studies(self) -> list[Stored]:
        """Return all studies in the order in which they were made; reasons are loaded when somebody looks at them."""

        def work(connection: sa.Connection) -> list[Stored]:
            return [
                Stored(row.name, json.loads(row.spec), History([t for _, t in self.changed(connection, row.id, 0)]))
                for row in self.rows(connection)
            ]

        return self.read(work)

    def study(self, name: str) -> Stored:
        """Return one study with everything that is stored of its trials."""

        def work(connection: sa.Connection) -> Stored:
            rows = {row.name: row for row in self.rows(connection)}
            if name not in rows:
                known = ", ".join(rows) or "none"
                raise InvalidInput(f"There must be a study of the name {name!r}; the database has: {known}.")
            found = sa.select(*_WHOLE).where(trials.c.study == rows[name].id).order_by(trials.c.number)
            history = History([Trial(**_values(row)) for row in connection.execute(found)])
            return Stored(name, json.loads(rows[name].spec), history)

        return self.read(work)

    def rows(self, connection: sa.Connection) -> list[Row]:
        """Return all studies in the order in which they were made."""
        text = sa.type_coerce(studies.c.spec, sa.Text).label("spec")
        found = sa.select(studies.c.id, studies.c.name, studies.c.created, studies.c.event, text).order_by(studies.c.id)
        return [Row(*row) for row in connection.execute(found)]

    def changed(self, connection: sa.Connection, study: int, since: int) -> list[tuple[int, Trial]]:
        """Return the trials that changed after an event, each with the event of its last change."""
        found = sa.select(*_LIGHT).where(trials.c.study == study, trials.c.event > since).order_by(trials.c.number)
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

    def heavy(self, study: int, number: int) -> dict[str, Any] | None:
        """Return the reasons and the output of one trial; None where it is gone."""
        found = sa.select(*(trials.c[name] for name in _HEAVY)).where(
            trials.c.study == study, trials.c.number == number
        )
        row = self.read(lambda c: c.execute(found).one_or_none())
        return None if row is None else dict(row._mapping)

    def _trial(self, study: int, row: sa.Row[Any, Any]) -> Trial:
        values = _values(row)
        return Trial.stored(lambda: self._why(study, values["number"]), phase=row.phase, **values)

    def _why(self, study: int, number: int) -> dict[str, Any]:
        found = self.heavy(study, number)
        if found is None:
            raise StorageFailed("The study must be there; somebody deleted it.")
        return dict(found["why"])


def _values(row: sa.Row[Any, Any]) -> dict[str, Any]:
    return {name: value for name, value in row._mapping.items() if name not in ("event", "phase")}


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
