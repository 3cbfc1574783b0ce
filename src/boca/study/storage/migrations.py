"""The way from the tables of an older version to those of this one, a version at a time.

A migration uses the tables and the names as they were when it was written, never `schema.py`, which goes on changing.
To add one: raise `VERSION` in `schema.py`, write `_to_N` here, enter it in `MIGRATIONS`, and keep a database of the
version before as a fixture (`tests/study/storage/test_schema1.py` shows how).

SQLite enforces foreign keys here.  A migration that rebuilds a table to which another one refers must copy the rows of
both, since dropping the one deletes the rows of the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from boca.domain.errors import StorageFailed
from boca.study.storage import schema, schema1
from boca.study.storage.owner import Owner


def migrate(connection: sa.Connection, version: int) -> None:
    """Bring tables of an older version up to this one; the caller has made a backup."""
    for step in range(version, schema.VERSION):
        MIGRATIONS[step](connection)
    connection.execute(schema.meta.update().values(version=schema.VERSION))


def described(spec: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the description of a study that tables of this version hold, in today's words."""
    return schema1.described(spec) if version == 1 else dict(spec)


def refuse_leases(connection: sa.Connection, now: float) -> None:
    """Raise while a driver holds a trial: it would go on writing to tables that are gone."""
    rows = connection.exec_driver_sql(
        "SELECT s.name, t.number, t.owner, t.until FROM boca_trials t JOIN boca_studies s ON s.id = t.study "
        "WHERE t.state = 'running' AND t.driver IS NOT NULL AND t.driver != '' ORDER BY s.id, t.number"
    )
    for name, number, stored, until in rows.all():
        owner = Owner(**json.loads(stored))
        if until < now or owner.is_dead():
            continue
        raise StorageFailed(
            f"Process {owner.pid} on {owner.host} runs trial {number} of study {name!r} with an older boca. "
            "The tables can be brought up to date when no driver runs. Stop that process, then try again."
        )


# From 1 to 2: observations have a table of their own, and strategies are stored by registered name ------------------


def _to_2(connection: sa.Connection) -> None:
    connection.exec_driver_sql("DROP INDEX boca_trials_by_event")
    connection.exec_driver_sql("ALTER TABLE boca_trials RENAME TO boca_trials_1")
    for table in _TABLES_2:
        connection.exec_driver_sql(table)
    for study, text in connection.exec_driver_sql("SELECT id, spec FROM boca_studies").all():
        spec = json.dumps(schema1.described(json.loads(text)), separators=(",", ":"))
        connection.execute(sa.text("UPDATE boca_studies SET spec = :spec WHERE id = :id"), {"spec": spec, "id": study})
        _copy_pending(connection, study)
    same = "study, number, event, x, cost, phase, why, state, seconds, overhead, reason, asked, told, attempt, output"
    held = "token, owner, driver, until, began"
    connection.exec_driver_sql(
        f"INSERT INTO boca_trials ({same}, {held}, planned, seen, pending) "
        f"SELECT {same}, {held}, z, asked - 1, "
        "(SELECT p.pending FROM boca_pending_1 p WHERE p.study = t.study AND p.number = t.number) "
        "FROM boca_trials_1 t"
    )
    connection.exec_driver_sql(
        "INSERT INTO boca_observations (study, trial, position, outcome, value, noise, seconds, told) "
        "SELECT study, number, 0, 'value', value, noise, seconds, told FROM boca_trials_1 WHERE value IS NOT NULL"
    )
    connection.exec_driver_sql("DROP TABLE boca_pending_1")
    connection.exec_driver_sql("DROP TABLE boca_trials_1")


def _copy_pending(connection: sa.Connection, study: int) -> None:
    rows = connection.execute(
        sa.text("SELECT number, asked, told, why FROM boca_trials_1 WHERE study = :id ORDER BY number"), {"id": study}
    ).all()
    pending = schema1.pending([(row.number, row.asked, row.told, row.why) for row in rows])
    if pending:
        connection.execute(
            sa.text("INSERT INTO boca_pending_1 VALUES (:study, :number, :pending)"),
            [{"study": study, "number": n, "pending": json.dumps(list(p))} for n, p in pending.items()],
        )


_TABLES_2 = (
    "CREATE TABLE boca_pending_1 (study INTEGER NOT NULL, number INTEGER NOT NULL, pending TEXT NOT NULL, "
    "PRIMARY KEY (study, number))",
    """
    CREATE TABLE boca_trials (
        study INTEGER NOT NULL REFERENCES boca_studies (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        event INTEGER NOT NULL,
        x TEXT NOT NULL,
        planned TEXT NOT NULL,
        cost DOUBLE PRECISION NOT NULL,
        phase VARCHAR(16) NOT NULL,
        why TEXT NOT NULL,
        state VARCHAR(16) NOT NULL,
        seconds DOUBLE PRECISION,
        overhead DOUBLE PRECISION NOT NULL,
        reason TEXT,
        asked INTEGER NOT NULL,
        told INTEGER,
        seen INTEGER NOT NULL,
        pending TEXT NOT NULL,
        attempt INTEGER NOT NULL,
        output TEXT,
        token VARCHAR(32) NOT NULL,
        owner TEXT,
        driver VARCHAR(32),
        until DOUBLE PRECISION,
        began DOUBLE PRECISION,
        PRIMARY KEY (study, number),
        CHECK (state IN ('running', 'complete', 'failed'))
    )
    """,
    "CREATE INDEX boca_trials_by_event ON boca_trials (study, event)",
    """
    CREATE TABLE boca_observations (
        study INTEGER NOT NULL,
        trial INTEGER NOT NULL,
        position INTEGER NOT NULL,
        outcome VARCHAR(255) NOT NULL,
        z TEXT,
        value DOUBLE PRECISION,
        noise DOUBLE PRECISION,
        seconds DOUBLE PRECISION,
        told INTEGER NOT NULL,
        PRIMARY KEY (study, trial, position),
        FOREIGN KEY (study, trial) REFERENCES boca_trials (study, number) ON DELETE CASCADE
    )
    """,
)


# From 2 to 3: a trial may have notes ---------------------------------------------------------------------------------


def _to_3(connection: sa.Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE boca_trials ADD COLUMN notes TEXT")


# From 3 to 4: when and where every attempt ran ------------------------------------------------------------------------


def _to_4(connection: sa.Connection) -> None:
    types = {"ended": "DOUBLE PRECISION", "process": "INTEGER", "version": "VARCHAR(32)"}
    for name in ("ended", "host", "process", "worker", "version"):
        connection.exec_driver_sql(f"ALTER TABLE boca_trials ADD COLUMN {name} {types.get(name, 'VARCHAR(255)')}")
    connection.exec_driver_sql(
        """
        CREATE TABLE boca_attempts (
            study INTEGER NOT NULL,
            trial INTEGER NOT NULL,
            position INTEGER NOT NULL,
            attempt INTEGER NOT NULL,
            began DOUBLE PRECISION,
            ended DOUBLE PRECISION,
            host VARCHAR(255),
            process INTEGER,
            ending VARCHAR(64) NOT NULL,
            PRIMARY KEY (study, trial, position),
            FOREIGN KEY (study, trial) REFERENCES boca_trials (study, number) ON DELETE CASCADE
        )
        """
    )


# From 4 to 5: a trial may be a run that reports its steps, is stopped, and is continued -------------------------------


def _to_5(connection: sa.Connection) -> None:
    for column in ("start INTEGER NOT NULL DEFAULT 0", "reached INTEGER NOT NULL DEFAULT 0", "continues INTEGER"):
        connection.exec_driver_sql(f"ALTER TABLE boca_trials ADD COLUMN {column}")
    connection.exec_driver_sql("ALTER TABLE boca_trials ADD COLUMN events TEXT")
    connection.exec_driver_sql("ALTER TABLE boca_studies ADD COLUMN choice INTEGER NOT NULL DEFAULT 0")
    connection.exec_driver_sql("UPDATE boca_studies SET choice = event")


MIGRATIONS: Mapping[int, Callable[[sa.Connection], None]] = {1: _to_2, 2: _to_3, 3: _to_4, 4: _to_5}


def tables_of(version: int) -> Iterable[str]:
    """Return the tables that a version may have, which a backup copies."""
    return schema1.TABLES if version == 1 else schema.metadata.tables
