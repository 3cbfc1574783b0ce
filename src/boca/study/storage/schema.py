"""The tables, and their version.

Points, reasons and descriptions are JSON without NaN.
"""

from __future__ import annotations

import json
import time
from typing import Any

import sqlalchemy as sa

from boca.domain.errors import StorageFailed
from boca.domain.observation import OBJECTIVE

VERSION = 5
FIRST_WITH_ATTEMPTS = 4


_CLOCK = sa.select(sa.cast(sa.func.extract("epoch", sa.func.clock_timestamp()), sa.Double))


class Json(sa.types.TypeDecorator[Any]):
    """JSON as text, the same in every database: no NaN, no infinity."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> str | None:
        if value is None or isinstance(value, Dumped):
            return value
        return json.dumps(value, allow_nan=False, separators=(",", ":"))

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        try:
            return None if value is None else json.loads(value)
        except (ValueError, TypeError, RecursionError) as error:
            raise StorageFailed(
                f"The database has {value!r:.40} where JSON belongs: it is damaged. Restore it from a copy."
            ) from error


class Dumped(str):
    """A text that is JSON already."""


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
    sa.Column("choice", sa.Integer, nullable=False, default=0),  # of the last one that may change a choice
    sqlite_autoincrement=True,  # else SQLite gives the id of a deleted study to the next one
)

trials = sa.Table(
    "boca_trials",
    metadata,
    sa.Column("study", sa.ForeignKey("boca_studies.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("event", sa.Integer, nullable=False),  # of its last change
    sa.Column("x", Json, nullable=False),
    sa.Column("planned", Json, nullable=False),  # the fidelity that was handed out
    sa.Column("cost", sa.Double, nullable=False),
    sa.Column("phase", sa.String(16), nullable=False),
    sa.Column("why", Json, nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("seconds", sa.Double),
    sa.Column("overhead", sa.Double, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("asked", sa.Integer, nullable=False),
    sa.Column("told", sa.Integer),
    sa.Column("seen", sa.Integer, nullable=False),  # the last event that its choice read
    sa.Column("pending", Json, nullable=False),  # the numbers that its choice counted as running
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("output", sa.Text),
    sa.Column("notes", Json),  # NULL: none
    sa.Column("token", sa.String(32), nullable=False),  # of the last write, so that a retried write finds itself
    sa.Column("owner", Json),
    sa.Column("driver", sa.String(32)),
    sa.Column("until", sa.Double),
    sa.Column("began", sa.Double),  # when this attempt was handed out, by the clock of the process that has it
    sa.Column("ended", sa.Double),
    sa.Column("host", sa.String(255)),  # of that process
    sa.Column("process", sa.Integer),
    sa.Column("worker", sa.String(255)),  # what evaluated it: host:process
    sa.Column("version", sa.String(32)),  # of the boca that chose it
    sa.Column("start", sa.Integer, nullable=False, default=0),  # the step from which this attempt goes on
    sa.Column("reached", sa.Integer, nullable=False, default=0),  # the last step that it has reported
    sa.Column("continues", sa.Integer),  # the number of the trial that it continues
    sa.Column("events", Json),  # what happened to it beside its reports; NULL: nothing
    sa.CheckConstraint("state IN ('running', 'complete', 'failed')"),
    sa.Index("boca_trials_by_event", "study", "event"),
)

observations = sa.Table(
    "boca_observations",
    metadata,
    sa.Column("study", sa.Integer, primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),  # in the order in which it was told
    sa.Column("outcome", sa.String(255), nullable=False, default=OBJECTIVE),
    sa.Column("z", Json),  # NULL: where the trial was planned
    sa.Column("value", sa.Double),
    sa.Column("noise", sa.Double),
    sa.Column("seconds", sa.Double),
    sa.Column("told", sa.Integer, nullable=False),  # the event that stored it
    sa.ForeignKeyConstraint(["study", "trial"], ["boca_trials.study", "boca_trials.number"], ondelete="CASCADE"),
)

attempts = sa.Table(  # that ended without a result; the last one is in the row of its trial
    "boca_attempts",
    metadata,
    sa.Column("study", sa.Integer, primary_key=True),
    sa.Column("trial", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),  # in the order in which they ended
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("began", sa.Double),
    sa.Column("ended", sa.Double),
    sa.Column("host", sa.String(255)),
    sa.Column("process", sa.Integer),
    sa.Column("ending", sa.String(64), nullable=False),
    sa.ForeignKeyConstraint(["study", "trial"], ["boca_trials.study", "boca_trials.number"], ondelete="CASCADE"),
)

queue = sa.Table(
    "boca_queue",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("study", sa.ForeignKey("boca_studies.id", ondelete="CASCADE"), nullable=False),
    sa.Column("x", Json, nullable=False),
    sa.Column("z", Json, nullable=False),
    sa.Column("token", sa.String(32), nullable=False),
    sqlite_autoincrement=True,  # else the id of a taken point goes to the next one, and a late claim takes that
)


def version_of(connection: sa.Connection) -> int | None:
    """Return the version of the tables; None if there are none."""
    if not sa.inspect(connection).has_table(meta.name):
        return None
    versions = connection.execute(sa.select(meta.c.version)).scalars().all()
    if len(versions) != 1 or not isinstance(versions[0], int):
        raise StorageFailed(
            f"The table {meta.name} holds {list(versions)!r:.40}, and must hold one number, the version of the tables. "
            "The database is damaged: restore it from a copy."
        )
    return versions[0]


def now_of(connection: sa.Connection) -> float:
    """Return the time by which leases end, from one clock for all: the server's, or that of the file's machine."""
    return time.time() if connection.dialect.name == "sqlite" else float(connection.execute(_CLOCK).scalar_one())


def create(connection: sa.Connection) -> None:
    metadata.create_all(connection)
    connection.execute(meta.insert().values(version=VERSION))


def refuse_newer(version: int) -> None:
    if version < 1:
        raise StorageFailed(
            f"The database has tables of version {version}, which no boca ever wrote. "
            "It is damaged: restore it from a copy."
        )
    if version > VERSION:
        raise StorageFailed(
            f"The database has tables of version {version}, from a newer boca; this one reads up to {VERSION}. "
            "Upgrade boca, or use another database."
        )


def refuse_views(connection: sa.Connection) -> None:
    """Refuse a file in which a view has the name of a table: reading it might never end."""
    if connection.dialect.name != "sqlite":
        return
    named = "SELECT name FROM sqlite_master WHERE type = 'view' AND substr(name, 1, 5) = 'boca_'"
    if views := connection.exec_driver_sql(named).scalars().all():
        raise StorageFailed(f"The database was not made by boca: {views[0]} is a view, and must be a table.")
