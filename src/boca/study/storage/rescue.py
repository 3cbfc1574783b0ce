"""A study saved to a file of its own, when the file that it was stored in is not there any more."""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from boca.domain.errors import StorageFailed
from boca.domain.trial import Trial
from boca.study.storage.base import Queued
from boca.study.storage.location import file_url

if TYPE_CHECKING:
    from boca.study.storage.sql import Database


@dataclass(frozen=True)
class Held:
    """What a process has of a study in memory."""

    name: str
    spec: Mapping[str, Any]
    trials: tuple[Trial, ...]
    event: int
    queue: tuple[Queued, ...]


def rescue(database: Database, held: Held, identity: int) -> tuple[Database, int]:
    """Save a study whose file is gone; return the new database, open, and the identity of the study there.

    The open file is copied if it can still be read and has all that is in memory: it has more, such as what evaluations
    printed, and the other studies.  Otherwise what is in memory is written.
    """
    from boca.study.storage.sql import Database

    assert database.url.database is not None
    path = _free_path(Path(database.url.database).absolute())
    try:
        database.copy_open_file(path)
        _check(path, held, identity)
        return Database(file_url(str(path))), identity
    except (sa.exc.SQLAlchemyError, sqlite3.Error, StorageFailed, OSError):
        path.unlink(missing_ok=True)
    saved = Database(file_url(str(path)))
    saved.create(held.name, dict(held.spec))
    study = saved.study(held.name)
    study.fill(held)
    return saved, study.identity


def _free_path(file: Path) -> Path:
    """Return a path beside the file where nothing is yet, or one for temporary files if the folder is gone."""
    folder = file.parent if os.access(file.parent, os.W_OK) else Path(tempfile.gettempdir())
    names = itertools.chain([f"{file.name}.rescued"], (f"{file.name}.rescued-{k}" for k in itertools.count(2)))
    return next(folder / name for name in names if not (folder / name).exists())


def _check(path: Path, held: Held, identity: int) -> None:
    """Raise unless a copy is whole and has every result that is in memory."""
    with closing(sqlite3.connect(path)) as connection:
        if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
            raise StorageFailed("The copy is damaged.")
        found = connection.execute("SELECT number, state FROM boca_trials WHERE study = ?", (identity,))
        stored = dict(found.fetchall())
    if any(trial.state != "running" and stored.get(trial.number) != trial.state for trial in held.trials):
        raise StorageFailed("The copy lacks results.")
