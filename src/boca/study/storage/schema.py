"""The tables, their version, and the way from an older version to this one.

Points, reasons and specifications are JSON without NaN; a number that is no number never gets here.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from boca.domain.errors import StorageFailed

VERSION = 1


class Json(sa.types.TypeDecorator[Any]):
    """JSON as text, the same in every database: no NaN, no infinity."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        return None if value is None else json.dumps(value, allow_nan=False, separators=(",", ":"))

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        try:
            return None if value is None else json.loads(value)
        except (ValueError, TypeError) as error:
            raise StorageFailed(
                f"The database must hold JSON where JSON was put; got {value!r:.40}. "
                "It is damaged: restore it from a copy."
            ) from error


metadata = sa.MetaData()

meta = sa.Table("boca_meta", metadata, sa.Column("version", sa.Integer, nullable=False))

studies = sa.Table(
    "boca_studies",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("spec", Json, nullable=False),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("trials", sa.Integer, nullable=False, default=0),  # how many there are: the next number
    sa.Column("event", sa.Integer, nullable=False, default=0),  # the number of the last change to a trial
    sqlite_autoincrement=True,  # else SQLite gives the id of a deleted study to the next one
)

trials = sa.Table(
    "boca_trials",
    metadata,
    sa.Column("study", sa.ForeignKey("boca_studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("event", sa.Integer, nullable=False),  # of its last change
    sa.Column("x", Json, nullable=False),
    sa.Column("z", Json, nullable=False),
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("phase", sa.String(16), nullable=False),
    sa.Column("why", Json, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("value", sa.Double),
    sa.Column("noise", sa.Double),
    sa.Column("seconds", sa.Double),
    sa.Column("overhead", sa.Double, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("asked", sa.Integer, nullable=False),
    sa.Column("told", sa.Integer),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("output", sa.Text),
    sa.Column(
        "token", sa.String(32), nullable=False
    ),  # of the last write: a write whose answer got lost is not repeated
    sa.Column("owner", Json),
    sa.Column("driver", sa.String(32)),
    sa.Column("until", sa.Double),
    sa.Column("began", sa.Double),  # when this attempt was handed out, by the clock of who has it
    sa.CheckConstraint("state IN ('running', 'complete', 'failed')"),
    sa.CheckConstraint("(state = 'complete') = (value IS NOT NULL)"),
    sa.Index("boca_trials_by_event", "study", "event"),
)

queue = sa.Table(
    "boca_queue",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.ForeignKey("boca_studies.id", ondelete="CASCADE"), nullable=False),
    sa.Column("x", Json, nullable=False),
    sa.Column("z", Json, nullable=False),
    sa.Column("token", sa.String(32), nullable=False),
    sqlite_autoincrement=True,  # else a taken point's id is the next one's, and who takes late takes that
)

# From a version to the next one: statements on the tables as they then were.
MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {}


def version_of(connection: sa.Connection) -> int | None:
    """Return the version of the tables that are there; None where there are none."""
    if not sa.inspect(connection).has_table(meta.name):
        return None
    versions = connection.execute(sa.select(meta.c.version)).scalars().all()
    if len(versions) != 1 or not isinstance(versions[0], int):
        raise StorageFailed(
            f"The table {meta.name} must hold one number, the version of the tables; got {list(versions)!r:.40}. "
            "The database is damaged: restore it from a copy."
        )
    return versions[0]


def create(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    connection.execute(meta.insert().values(version=VERSION))


def refuse_newer(version: int) -> None:
    if version > VERSION:
        raise StorageFailed(
            f"The database must have a schema of version {VERSION} or older; it has {version}, from a newer boca. "
            "Use that one, or another database."
        )


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring tables of an older version up to this one, a step at a time."""
    for step in range(version, VERSION):
        MIGRATIONS[step](connection)
    connection.execute(meta.update().values(version=VERSION))
