"""A database of version 3 opens, shows what is in it, and goes on with the same suggestions.

`benchmarks/replay/schema3.py` made it.
"""

from __future__ import annotations

import lzma
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from boca import History
from boca.study.storage import Owner, migrations
from boca.study.storage.reader import Reader
from boca.study.storage.schema import VERSION
from boca.study.storage.sql import Database
from support import postgres

sys.path.insert(0, str(Path(__file__).parents[3]))  # `benchmarks` is no part of the package

from benchmarks.replay import adapter, recorded
from benchmarks.replay.schema1 import opened, read, suggestions
from benchmarks.replay.schema3 import STUDIES

HERE = Path(__file__).parent / "schema3"
EXPECTED = recorded.load(HERE / "expected.json.xz")
ROUNDING = 1e-5  # another machine adds in another order, and a fit ends where its gradient is small


def unpacked(folder):
    file = folder / "study.db"
    file.write_bytes(lzma.decompress((HERE / "study.db.xz").read_bytes()))
    return file


def rows(file, statement):
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(statement).fetchall()


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    """The file of SQLite, unpacked."""
    return f"sqlite:///{unpacked(tmp_path_factory.mktemp('schema3'))}"


@pytest.fixture(scope="module")
def server():
    """The same rows on a server."""
    url = postgres.server().fresh()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for statement in lzma.decompress((HERE / "postgres.sql.xz").read_bytes()).decode().split(";\n")[:-1]:
            connection.exec_driver_sql(statement)
    engine.dispose()
    return url


@pytest.fixture(params=["sqlite", "server"])
def url(request):
    return request.getfixturevalue(request.param)


def beyond_rounding(old, new):
    return [d for d in recorded.differences(old, new) if not recorded.is_close(d[1], d[2], ROUNDING)]


def test_who_only_looks_sees_what_was_seen(url):
    with closing(Reader(url)) as reader:
        for stored in STUDIES:
            study, seen = reader.study(stored.name), EXPECTED[stored.name]["seen"]
            history = History(study.history[: len(seen["states"])])  # another test may have asked for more
            assert [t.state for t in history] == seen["states"]
            assert [t.value for t in history] == seen["values"]
            assert [t.cost for t in history] == seen["costs"]
            assert all(t.ended is None and t.host is None and t.version is None for t in history)
            assert all((t.began is None) == t.added for t in history)
            assert study.attempts == {}


@pytest.mark.parametrize("stored", STUDIES, ids=lambda stored: stored.name)
def test_a_study_goes_on_as_it_would_have(stored, url):
    expected = EXPECTED[stored.name]
    optimizer = opened(stored, url, adapter.strategy(*stored.case.strategy))
    try:
        assert beyond_rounding(expected["seen"], read(optimizer)) == []
        found = suggestions(stored, optimizer)
        made = optimizer.history[len(expected["seen"]["states"]) :]
        assert all(t.host == Owner.me().host and t.began and t.version for t in made)
    finally:
        optimizer.storage.close()
    assert beyond_rounding(expected["next"], found) == []


def test_reading_migrates_nothing_and_opening_keeps_a_copy(tmp_path):
    file = unpacked(tmp_path)
    before = file.read_bytes()
    with closing(Reader(str(file))) as reader:
        seen = {s.name: [t.to_json() for t in s.history] for s in map(reader.study, EXPECTED)}
        assert reader.heavy(reader.row("boca"), 0)["attempts"] == []
    assert file.read_bytes() == before
    Database(f"sqlite:///{file}").close()
    assert rows(file, "SELECT version FROM boca_meta") == [(VERSION,)]
    (backup,) = tmp_path.glob("*.backup")
    assert rows(backup, "SELECT version FROM boca_meta") == [(3,)]
    for place in (file, backup):
        with closing(Reader(str(place))) as reader:
            assert {s.name: [t.to_json() for t in s.history] for s in map(reader.study, EXPECTED)} == seen


def test_the_tables_are_those_of_a_new_database(tmp_path):
    """A migrated database has every column that a new one has, and the same keys."""
    old, new = unpacked(tmp_path), tmp_path / "new.db"
    for file in (old, new):
        Database(f"sqlite:///{file}").close()
    for pragma in ("table_info", "foreign_key_list"):
        for table in ("boca_trials", "boca_attempts"):
            columns = [sorted(row[1:4] for row in rows(file, f"PRAGMA {pragma}({table})")) for file in (old, new)]
            names = [[(row[0], row[2] if pragma == "foreign_key_list" else None) for row in one] for one in columns]
            assert names[0] == names[1]


def test_a_step_of_its_own_leads_here():
    assert migrations.MIGRATIONS[3].__name__ == "_to_4"
