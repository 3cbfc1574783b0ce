"""From an older version of the tables to today's: what is kept, what is refused, and what old settings mean now."""

from __future__ import annotations

import itertools
import json
import lzma
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from boca import Boca
from boca.domain.errors import StorageFailed
from boca.study.storage import Owner, migrations, schema1
from boca.study.storage.reader import Reader
from boca.study.storage.schema import VERSION
from boca.study.storage.sql import Database

OLD = Path(__file__).parent / "schema1" / "study.db.xz"
SWITCHES = ("learn_maximum", "improve_at_target", "improve_on_draws", "doubt_fidelities")


@pytest.fixture
def file(tmp_path):
    """A database of version 1."""
    path = tmp_path / "study.db"
    path.write_bytes(lzma.decompress(OLD.read_bytes()))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE boca_trials SET until = 0 WHERE until IS NOT NULL")  # its driver is long gone
        connection.commit()
    return path


def rows(path, statement, *values):
    with closing(sqlite3.connect(path)) as connection:
        found = connection.execute(statement, values).fetchall()
        connection.commit()
        return found


def opened(path):
    database = Database(f"sqlite:///{path}")
    database.close()


def test_reading_migrates_nothing(file):
    before = file.read_bytes()
    with closing(Reader(str(file))) as reader:
        study = reader.study("boca")
        assert len(reader.studies()) > 20
    assert study.spec["strategy"]["type"] == "boca"
    assert [t.planned for t in study.history] == [t.z for t in study.history]
    assert file.read_bytes() == before
    assert rows(file, "SELECT version FROM boca_meta") == [(1,)]


def test_a_reader_sees_the_same_before_and_after(file):
    def everything():
        with closing(Reader(str(file))) as reader:
            return {study.name: [t.to_json() | {"pending": None} for t in study.history] for study in reader.studies()}

    before = everything()
    opened(file)
    assert rows(file, "SELECT version FROM boca_meta") == [(VERSION,)]
    assert everything() == before


def test_a_backup_is_kept_and_can_be_read(file):
    values = rows(file, "SELECT study, number, value FROM boca_trials ORDER BY study, number")
    opened(file)
    (backup,) = file.parent.glob("*.backup")
    assert rows(backup, "SELECT version FROM boca_meta") == [(1,)]
    assert rows(backup, "SELECT study, number, value FROM boca_trials ORDER BY study, number") == values
    with closing(Reader(str(backup))) as reader:
        assert reader.study("boca").history.complete


def test_what_a_decision_read_is_stored(file):
    opened(file)
    with closing(Reader(str(file))) as reader:
        histories = [study.history for study in reader.studies()]
    chosen = [(history, trial) for history in histories for trial in history.chosen]
    assert len(chosen) > 100
    for history, trial in chosen:
        assert trial.seen == trial.asked - 1
        assert list(trial.pending) == trial.why["pending"]
        assert [t.number for t in history.read_by(trial).running] == trial.why["pending"]
    assert any(trial.pending for _, trial in chosen)


def test_a_choice_without_a_model_counts_what_was_running_then():
    told = [(0, 1, 4, "{}"), (1, 2, 3, "{}"), (2, 5, None, "{}"), (3, 6, None, '{"pending":[1]}')]
    assert schema1.pending(told) == {0: (), 1: (0,), 2: (), 3: (1,)}


def hold(path, owner, until):
    """Let a driver hold a running trial."""
    rows(
        path,
        "UPDATE boca_trials SET owner = ?, driver = 'one', until = ? WHERE state = 'running' AND number = "
        "(SELECT min(number) FROM boca_trials WHERE state = 'running')",
        json.dumps(owner.to_json()),
        until,
    )


def test_a_driver_that_runs_is_named_and_nothing_is_migrated(file):
    hold(file, Owner.me(), 4e9)
    with pytest.raises(StorageFailed, match=f"Process {Owner.me().pid} on .*older boca"):
        opened(file)
    assert rows(file, "SELECT version FROM boca_meta") == [(1,)]
    assert rows(file, "SELECT count(*) FROM sqlite_master WHERE name = 'boca_observations'") == [(0,)]
    assert list(file.parent.glob("*.backup")) == []


@pytest.mark.parametrize(
    ("owner", "until"),
    [(Owner.me(), 1.0), (replace(Owner.me(), started="in another life"), 4e9)],
    ids=["lease ended", "process died"],
)
def test_a_driver_that_is_gone_is_no_obstacle(file, owner, until):
    hold(file, owner, until)
    opened(file)
    assert rows(file, "SELECT version FROM boca_meta") == [(VERSION,)]


def old_turn(k, *, improve, draw, check):
    """Return what chose x for query k at the target, as version 1 had it."""
    turn = ("log_ei", "aim", "log_noisy_ei", "ucb_alone")[k % 4]
    if turn == "ucb_alone":
        return turn if check else "aim"
    if turn == "aim" or not improve:
        return "aim"
    return turn if draw else "log_ei"


@pytest.mark.parametrize("values", list(itertools.product([False, True], repeat=4)))
def test_four_switches_are_aims_and_turns(values):
    learn, improve, draw, check = values
    stored = {"type": "boca.strategies.boca.Boca", "first_c": 0.5, **dict(zip(SWITCHES, values, strict=True))}
    now = schema1.described({"strategy": stored})["strategy"]
    assert not now.keys() & set(SWITCHES)
    assert (now["type"], now["first_c"]) == ("boca", 0.5)
    made = Boca(aims=now["aims"], target_turns=now["target_turns"])
    assert list(made.target_turns) == now["target_turns"]  # the form in which a study stores it
    assert [made.target_turns[k % len(made.target_turns)] for k in range(8)] == [
        old_turn(k, improve=improve, draw=draw, check=check) for k in range(8)
    ]
    assert made.aims == (("ucb", "max_value") if learn else ("ucb",))


def test_a_switch_that_did_not_exist_yet_is_a_new_field():
    stored = {"type": "boca.strategies.boca.Boca", "learn_maximum": True, "improve_at_target": True}
    now = schema1.described({"strategy": stored})["strategy"]
    assert now == {"type": "boca", "aims": ["ucb", "max_value"]}


def test_every_version_before_this_one_has_a_migration():
    from boca.study.storage import schema

    assert set(migrations.MIGRATIONS) == set(range(1, schema.VERSION))
