"""Databases of studies: SQLite for one machine, PostgreSQL for many.

A write is one short transaction that holds the row of the study, so that events have one order, trial numbers have no
gap, and every reader sees a prefix of what happened.  Reads ask only for what changed since the last one.

A write carries a token.  If the answer to a commit is lost, the write is tried again and finds its token: it is never
done twice.
"""

from __future__ import annotations

import logging
import os
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from boca.domain.errors import InvalidInput, StorageFailed
from boca.study.storage import migrations, schema
from boca.study.storage.engine import engine_of
from boca.study.storage.file_guard import FileChanged, FileGuard
from boca.study.storage.location import URLS, parsed, sqlite_path, without_password
from boca.study.storage.schema import studies
from boca.study.storage.sql_study import SqlStudy

T = TypeVar("T")

_WAIT_FOR_SERVER = 600.0  # seconds to wait for a server that is down
_REFUSALS = ("authentication failed", "does not exist", "pg_hba.conf", "resolve host", "not permitted")
_DAMAGE = ("malformed", "file is not a database", "disk I/O error")  # SQLite's words for a file that was written over
_COLLISIONS = ("40001", "40P01")  # PostgreSQL's for two transactions of which one must begin again
_MIGRATION_LOCK = 0x626F6361  # "boca", for PostgreSQL's advisory lock

log = logging.getLogger("boca")

_open: weakref.WeakSet[Database] = weakref.WeakSet()
_of_parents: list[sa.Pool] = []


class Database:
    """An open database with the tables in it: where studies are found, made and deleted."""

    def __init__(self, url: str) -> None:
        self.url = parsed(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite and sqlite_path(url) is None:
            raise InvalidInput(
                f"storage is {url!r}, and must name a file. To keep a study in memory, type storage=None."
            )
        database = self.url.database or ""
        # a URI has its own words for the path: such a storage is not guarded
        self.guard = FileGuard(database) if self.is_sqlite and not database.startswith("file:") else None
        try:
            self._engine = engine_of(self.url, self.guard)
        except (sa.exc.ArgumentError, ImportError) as error:
            raise InvalidInput(
                f"storage is {without_password(url)!r}, and must be {URLS}. It says: {error}."
            ) from error
        weakref.finalize(self, self._engine.dispose)  # connections end with their owner
        _open.add(self)
        self._was_there = False
        self.studies: weakref.WeakSet[SqlStudy] = weakref.WeakSet()
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._engine.dispose()

    def forget_connections(self) -> None:
        """Leave connections to the parent of this process, and open others: two cannot speak on one.

        They are kept, because closing them would end them for the parent too.
        """
        _of_parents.append(self._engine.pool)
        self._engine.dispose(close=False)
        if self.guard is not None:
            self.guard.unlock()
        for study in self.studies:
            study.unlock()

    # Transactions -------------------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Yield a connection on which every statement is a transaction of its own."""
        with self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    def read(self, work: Callable[[sa.Connection], T]) -> T:
        """Run statements that change nothing, again if the connection was lost."""

        def once() -> T:
            with self.reading() as connection:
                return work(connection)

        return self._patiently(once)

    def write(self, work: Callable[[sa.Connection], T]) -> T:
        """Run a transaction, again if the connection was lost: `work` must recognize what it did before.

        A file is checked before and after, so that nothing is acknowledged that is not in it.
        """

        def once() -> T:
            if self.guard is not None:
                self.guard.check()
            with self._engine.connect() as connection:
                writing = connection.execution_options(boca_writes=True)
                with writing.begin():
                    done = work(writing)
            if self.guard is not None:
                self.guard.check()
            return done

        return self._patiently(once)

    def copy_open_file(self, path: Path) -> None:
        """Copy the file that is open, wherever it is by now, through a connection that was made before."""
        with self._engine.connect() as connection:
            connection.connection.driver_connection.execute("VACUUM INTO ?", (str(path),))  # type: ignore[union-attr]

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
                if self.guard is not None and any(sign in str(error.orig) for sign in _DAMAGE):
                    raise FileChanged(self._words(error)) from error
                if self.is_sqlite or time.monotonic() - began > _WAIT_FOR_SERVER or not self._is_worth_waiting(error):
                    raise StorageFailed(self._words(error)) from error
                if pause == 0.1:
                    log.warning("Waiting for the database, at most %.0f minutes: %s", _WAIT_FOR_SERVER / 60, error.orig)
            time.sleep(pause)
            pause = min(2.0 * pause, 5.0)

    def _is_worth_waiting(self, error: sa.exc.DBAPIError) -> bool:
        """Whether the next try may succeed: a server that refused the first connection will refuse the next."""
        if getattr(error.orig, "sqlstate", None) in _COLLISIONS:
            return True
        is_refusal = any(sign in str(error.orig) for sign in _REFUSALS)
        return _is_absent(error) and (self._was_there or not is_refusal)

    def _words(self, error: sa.exc.DBAPIError) -> str:
        place = self.url.render_as_string(hide_password=True)
        return (
            f"The database {place} cannot be read or written; it says: {error.orig}. "
            "Every result acknowledged before is stored. Remove the cause, then run again."
        )

    # Tables -------------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Create the tables, or bring old ones up to date; many processes may start at once."""
        version = self.read(schema.version_of)
        if version == schema.VERSION:
            self.read(schema.refuse_views)
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
                migrations.refuse_leases(connection, self.now(connection))
                self._back_up(connection, there)
                migrations.migrate(connection, there)

        self.write(prepare)

    def _back_up(self, connection: sa.Connection, version: int) -> None:
        """Keep the tables of an older version: a copy of the file, or copies of the tables beside them."""
        if not self.is_sqlite:
            there = set(sa.inspect(connection).get_table_names())
            for table in there & set(migrations.tables_of(version)):
                connection.execute(sa.text(f"CREATE TABLE {table}_v{version} AS SELECT * FROM {table}"))
            return
        copy = f"{self.url.database}.v{version}.backup"
        Path(f"{copy}.part").unlink(missing_ok=True)
        with self.reading() as other:  # this one holds the lock, so that nothing changes what the other copies
            other.exec_driver_sql("VACUUM INTO ?", (f"{copy}.part",))
        os.replace(f"{copy}.part", copy)

    def now(self, connection: sa.Connection) -> float:
        """Return the time by which leases end, from one clock for all: the server's, or that of the file's machine."""
        return schema.now_of(connection)

    # Studies ------------------------------------------------------------------------------------------------------

    def names(self) -> list[str]:
        """Return the names of all studies, in the order in which they were made."""
        statement = sa.select(studies.c.name).order_by(studies.c.id)
        return self.read(lambda c: list(c.execute(statement).scalars()))

    def spec(self, name: str) -> dict[str, Any] | None:
        """Return the stored description of a study; None if there is no such study."""
        statement = sa.select(studies.c.spec).where(studies.c.name == name)
        return self.read(lambda c: c.execute(statement).scalar_one_or_none())

    def create(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        """Make a study unless there is one of this name, and return its stored description."""

        def work(connection: sa.Connection) -> dict[str, Any]:
            if not self.is_sqlite:
                connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
            there = connection.execute(sa.select(studies.c.spec).where(studies.c.name == name)).scalar_one_or_none()
            if there is not None:
                if not isinstance(there, dict):
                    raise StorageFailed(f"The study {name!r} is damaged: its description is {there!r:.40}.")
                return there
            connection.execute(studies.insert().values(name=name, spec=spec, created=time.time(), trials=0, event=0))
            return spec

        return self.write(work)

    def change(self, name: str, spec: dict[str, Any]) -> None:
        """Replace the stored description of a study."""
        self.write(lambda c: c.execute(studies.update().where(studies.c.name == name).values(spec=spec)))

    def delete(self, name: str) -> None:
        """Remove a study with all its trials."""
        self.write(lambda c: c.execute(studies.delete().where(studies.c.name == name)))

    def study(self, name: str) -> SqlStudy:
        columns = (studies.c.id, studies.c.spec)
        found = self.read(lambda c: c.execute(sa.select(*columns).where(studies.c.name == name)).one_or_none())
        if found is None:
            known = ", ".join(map(str, self.names())) or "none"
            raise InvalidInput(f"There is no study {name!r} in this database, which has: {known}.")
        return SqlStudy(self, int(found.id), name, found.spec)


def _in_child() -> None:
    for database in list(_open):
        database.forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _is_absent(error: sa.exc.DBAPIError) -> bool:
    """Whether the server could not be reached; otherwise it refused a statement."""
    if error.connection_invalidated:
        return True
    said = str(error.orig).lower()
    return any(
        sign in said
        for sign in ("connection", "starting up", "shutting down", "terminating", "could not connect", "closed")
    )
