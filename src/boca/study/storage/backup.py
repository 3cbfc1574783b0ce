"""A copy of a database in one SQLite file, made while drivers may be writing to it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa

from boca.domain.errors import InvalidInput, StorageFailed
from boca.study.storage import schema
from boca.study.storage.location import file_url
from boca.study.storage.reader import Reader

_ROWS = 500  # read and written at a time: a row may be tens of kilobytes


def back_up(storage: str, file: Path) -> Path:
    """Copy all studies of a storage, as they are at one moment, to a new SQLite file, and return its path.

    Nothing waits for it.  The file appears under its name only when it is whole.
    """
    if file.exists():
        raise InvalidInput(f"{str(file)!r} already exists, and a backup replaces nothing. Name another file.")
    if not file.absolute().parent.is_dir():
        raise InvalidInput(f"There is no folder {str(file.absolute().parent)!r} for the backup. Create it first.")
    part = file.with_name(f"{file.name}.part")
    part.unlink(missing_ok=True)
    try:
        with closing(Reader(storage)) as reader:
            reader.read(lambda connection: _copy(connection, part))
        _check(part)
        os.replace(part, file)
    except (OSError, sqlite3.Error) as error:
        raise StorageFailed(f"The backup {str(file)!r} cannot be written: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    return file


def _copy(connection: sa.Connection, part: Path) -> None:
    part.unlink(missing_ok=True)  # of a try before
    if connection.dialect.name == "sqlite":
        with closing(sqlite3.connect(part)) as target:
            connection.connection.driver_connection.backup(target)  # type: ignore[union-attr]
        return
    version = schema.version_of(connection)
    if version != schema.VERSION:
        raise InvalidInput(
            f"The database has tables of version {version}, and only version {schema.VERSION} can be copied to a file. "
            "Open a study in it with this boca first, or use pg_dump."
        )
    engine = sa.create_engine(file_url(str(part)))
    with engine.begin() as target:
        schema.metadata.create_all(target)
        for table in schema.metadata.sorted_tables:
            rows = connection.execute(sa.select(table)).mappings()
            while found := rows.fetchmany(_ROWS):
                target.execute(table.insert(), [dict(row) for row in found])
    engine.dispose()


def _check(part: Path) -> None:
    with closing(sqlite3.connect(part)) as copy:
        if copy.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise StorageFailed("The copy is damaged, as the database may be: check it with `boca show`.")
