"""A database that an earlier version wrote opens, shows what is in it, and goes on with the same suggestions.

`benchmarks/replay/schema1.py` made it: finished and half-finished studies of every strategy, with running and failed
trials, queued points and imported results.
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa

from boca import History
from boca.study.storage.reader import Reader
from support import postgres

sys.path.insert(0, str(Path(__file__).parents[3]))  # `benchmarks` is no part of the package

from benchmarks.replay import adapter, recorded
from benchmarks.replay.schema1 import STUDIES, opened, read, suggestions

HERE = Path(__file__).parent / "schema1"
EXPECTED = recorded.load(HERE / "expected.json.xz")
ROUNDING = 1e-5  # another machine adds in another order, and a fit ends where its gradient is small


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory):
    """The file of SQLite, unpacked."""
    file = tmp_path_factory.mktemp("schema1") / "study.db"
    file.write_bytes(lzma.decompress((HERE / "study.db.xz").read_bytes()))
    return f"sqlite:///{file}"


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


def without_sentence(suggestion):
    """Return a suggestion without its words, and without what is shown since and decides nothing."""
    shown = {key: value for key, value in suggestion["why"].items() if key not in ("reason", "at_bound")}
    return suggestion | {"why": shown}


def test_the_fixture_has_what_may_be_in_a_database():
    assert {s.case.strategy[0] for s in STUDIES} == {
        *("Boca", "Boca.paper", "GPUCB", "GPEI", "MFGPUCB", "MFSKO", "RandomSearch")
    }
    assert set(EXPECTED) == {s.name for s in STUDIES}
    seen = [e["seen"] for e in EXPECTED.values()]
    assert {state for s in seen for state in s["states"]} == {"running", "complete", "failed"}
    assert {phase for s in seen for phase in s["phases"]} == {"start", "model", "final", "added"}
    assert {d["why"]["phase"] for e in EXPECTED.values() for d in e["next"]} >= {"start", "model", "queued"}
    assert sum(not e["next"] for e in EXPECTED.values()) >= 2  # finished
    assert sum(len(e["next"]) > 1 for e in EXPECTED.values()) >= 15


def test_who_only_looks_sees_what_was_seen(url):
    reader = Reader(url)
    try:
        for stored in STUDIES:
            study, seen = reader.study(stored.name), EXPECTED[stored.name]["seen"]
            history = History(study.history[: len(seen["states"])])  # another test may have asked for more
            assert [t.state for t in history] == seen["states"]
            assert [t.value for t in history] == seen["values"]
            assert [t.cost for t in history] == seen["costs"]
            assert [t.phase for t in history] == [t.why["phase"] for t in history] == seen["phases"]
            best = history.best(study.problem)
            assert (None if best is None else best.number) == seen["best"]
    finally:
        reader.close()


@pytest.mark.parametrize("stored", STUDIES, ids=lambda stored: stored.name)
def test_a_study_goes_on_as_it_would_have(stored, url):
    expected = EXPECTED[stored.name]
    optimizer = opened(stored, url, adapter.strategy(*stored.case.strategy))
    try:
        before, now = expected["seen"], read(optimizer)
        # the one's recommendations come from its own model since then, the other's from the default one of today
        if stored.case.strategy[0] in ("MFSKO", "RandomSearch"):
            before, now = (seen | {"recommended": None} for seen in (before, now))
        assert beyond_rounding(before, now) == []
        found = suggestions(stored, optimizer)
    finally:
        optimizer.storage.close()
    assert len(found) == len(expected["next"])
    for old, new in zip(expected["next"], found, strict=True):
        assert beyond_rounding(without_sentence(old), without_sentence(new)) == []
