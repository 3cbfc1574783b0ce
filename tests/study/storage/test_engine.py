"""How connections to a database are set up: logs, locks and waiting."""

from __future__ import annotations

import sqlite3
import threading
import time

import pytest

from storage.test_contract import claim
from support.places import on


@pytest.fixture
def file(tmp_path):
    with on("sqlite", tmp_path) as found:
        yield found


def test_a_file_is_written_ahead_and_every_commit_reaches_the_disk(file):
    file.study()
    with file.database().reading() as connection:
        settings = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "busy_timeout", "foreign_keys")
        }
    assert settings["journal_mode"] == "wal"
    assert settings["synchronous"] == 2  # FULL
    assert settings["busy_timeout"] >= 60_000
    assert settings["foreign_keys"] == 1


def test_every_connection_of_a_file_is_prepared(file):
    database = file.database()
    with database.reading() as one, database.reading() as other, database.reading() as third:
        for connection in (one, other, third):
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
            assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() >= 60_000


def test_a_file_that_somebody_holds_is_waited_for_when_it_is_opened(file):
    path = file.url.removeprefix("sqlite:///")
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("CREATE TABLE other (id INTEGER)")  # a file without a log that is written ahead
    holder.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.5, lambda: holder.execute("COMMIT")).start()
    began = time.monotonic()
    claim(file.study())
    assert time.monotonic() - began > 0.3
    holder.close()


def test_a_write_takes_its_lock_at_once_and_a_read_takes_none(file, statements):
    study = file.study()
    del statements[:]
    study.read()
    assert not [sent for sent in statements if sent.startswith(("BEGIN", "INSERT", "UPDATE", "DELETE"))]
    claim(study)
    assert statements.count("BEGIN IMMEDIATE") == 1
    other = file.study()
    with sqlite3.connect(file.url.removeprefix("sqlite:///")) as writer:
        writer.execute("BEGIN IMMEDIATE")
        assert len(other.read().history) == 1  # whoever writes does not keep others from reading
    writer.close()
