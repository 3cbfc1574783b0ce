"""How connections to SQLite and PostgreSQL are set up for writing."""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa

from boca.study.storage.file_guard import FileGuard

BUSY = 120.0  # seconds to wait for other writers of a file: with 16 of them one waited 13


def engine_of(url: sa.URL, guard: FileGuard | None = None) -> sa.Engine:
    """Return an engine for writing; a guard is asked before and after every connection to its file."""
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True, isolation_level="READ COMMITTED")
    engine = sa.create_engine(url, connect_args={"timeout": BUSY, "check_same_thread": False})

    if guard is not None:

        @sa.event.listens_for(engine, "do_connect")
        def check(*_: Any) -> None:
            guard.check()  # or SQLite would make an empty file in place of one that is gone

    @sa.event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are ours, see below
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {int(1000 * BUSY)}")
        _switch_to_wal(cursor)
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        if connection.get_execution_options().get("boca_writes"):
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # a lock that is taken later may be refused

    return engine


def _switch_to_wal(cursor: Any) -> None:
    """Switch the file to a write-ahead log; SQLite does not wait for other writers here, so this does."""
    import sqlite3

    began = time.monotonic()
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() - began > BUSY:
                raise
        time.sleep(0.05)
