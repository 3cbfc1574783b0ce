"""A database of version 4 opens, shows what is in it, and goes on with the same suggestions.

`benchmarks/replay/schema4.py` made it.
"""

from __future__ import annotations

import lzma
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from boca import Optimizer, Problem, RandomSearch, Space, Steps, targets
from boca.domain.errors import InvalidInput
from boca.study.storage import migrations
from boca.study.storage.reader import Reader
from boca.study.storage.schema import VERSION
from boca.study.storage.sql import Database
from support import postgres

sys.path.insert(0, str(Path(__file__).parents[3]))  # `benchmarks` is no part of the package

from benchmarks.replay import adapter, recorded
from benchmarks.replay.schema1 import opened, read, suggestions
from benchmarks.replay.schema4 import EPOCHS, STUDIES

HERE = Path(__file__).parent / "schema4"
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
    return f"sqlite:///{unpacked(tmp_path_factory.mktemp('schema4'))}"


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


def test_who_only_looks_sees_what_was_seen(url):
    with closing(Reader(url)) as reader:
        for stored in STUDIES:
            seen = EXPECTED[stored.name]["seen"]
            history = reader.study(stored.name).history[: len(seen["states"])]  # another test may have asked for more
            assert [t.state for t in history] == seen["states"]
            assert [t.value for t in history] == seen["values"]
            assert all((t.start, t.reached, t.continues, t.events) == (0, 0, None, ()) for t in history)


@pytest.mark.parametrize("stored", STUDIES, ids=lambda stored: stored.name)
def test_a_study_goes_on_as_it_would_have(stored, url):
    expected = EXPECTED[stored.name]
    optimizer = opened(stored, url, adapter.strategy(*stored.case.strategy))
    try:
        found = read(optimizer), suggestions(stored, optimizer)
    finally:
        optimizer.storage.close()
    for old, new in zip((expected["seen"], expected["next"]), found, strict=True):
        differences = recorded.differences(old, new)
        assert [d for d in differences if not recorded.is_close(d[1], d[2], ROUNDING)] == []


def test_reading_migrates_nothing_and_opening_keeps_a_copy(tmp_path):
    file = unpacked(tmp_path)
    before = file.read_bytes()
    with closing(Reader(str(file))) as reader:
        seen = {s.name: [t.to_json() for t in s.history] for s in map(reader.study, EXPECTED)}
    assert file.read_bytes() == before
    Database(f"sqlite:///{file}").close()
    assert rows(file, "SELECT version FROM boca_meta") == [(VERSION,)]
    assert len(rows(file, "SELECT 1 FROM boca_studies WHERE choice != event")) == 0
    (backup,) = tmp_path.glob("*.backup")
    assert rows(backup, "SELECT version FROM boca_meta") == [(4,)]
    for place in (file, backup):
        with closing(Reader(str(place))) as reader:
            assert {s.name: [t.to_json() for t in s.history] for s in map(reader.study, EXPECTED)} == seen


def test_the_tables_are_those_of_a_new_database(tmp_path):
    old, new = unpacked(tmp_path), tmp_path / "new.db"
    for file in (old, new):
        Database(f"sqlite:///{file}").close()
    for table in ("boca_trials", "boca_studies", "boca_observations"):
        columns = [sorted(row[1] for row in rows(file, f"PRAGMA table_info({table})")) for file in (old, new)]
        assert columns[0] == columns[1]


def test_an_integer_fidelity_becomes_steps_if_a_change_is_permitted(tmp_path):
    url = f"sqlite:///{unpacked(tmp_path)}"

    def resumed(fidelity, **more):
        problem = Problem(EPOCHS.space, Space(epochs=fidelity), cost=lambda z: float(z["epochs"]))
        settings = {"budget": targets(9), "strategy": RandomSearch(), "storage": url, "name": "epochs"}
        return Optimizer(problem, **settings, **more)

    with pytest.raises(InvalidInput, match=r"epochs was an Int and is Steps.*allow_change=True"):
        resumed(Steps(1, 9))
    with pytest.raises(InvalidInput, match="original settings"):
        resumed(Steps(1, 8), allow_change=True)  # other bounds
    changed = resumed(Steps(1, 9), allow_change=True)
    trial = changed.running[0]
    assert changed.report(trial, 3, 0.5)
    changed.storage.close()
    again = resumed(Steps(1, 9))
    assert again.running[0].reached == 3
    again.storage.close()


def test_a_step_of_its_own_leads_here():
    assert migrations.MIGRATIONS[4].__name__ == "_to_5"
