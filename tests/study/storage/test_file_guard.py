"""A file that is removed, moved, replaced or written over while it is in use: nothing acknowledged is lost."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from pathlib import Path

import pytest

import boca
from boca import Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.errors import RunStopped, StorageFailed
from boca.study.storage.file_guard import FileChanged, FileGuard
from boca.study.storage.reader import Reader

SPACE = Space(a=Float(0, 1))
SETTINGS = {"budget": targets(300), "strategy": RandomSearch(), "seed": 0}


def opened(path, name="study"):
    return Optimizer(Problem(SPACE), storage=f"sqlite:///{path}", name=name, **SETTINGS)


def told(opt, count):
    """Tell so many results and return those that were acknowledged, by number."""
    found = {}
    for _ in range(count):
        trial = opt.ask()
        opt.tell(trial, trial.x["a"])
        found[trial.number] = trial.x["a"]
    return found


def stored(path, name="study"):
    return {t.number: t.value for t in Reader(str(path)).study(name).history if t.state == "complete"}


def is_whole(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    finally:
        connection.close()


def other(folder):
    path = folder / "other.db"
    opt = opened(path, "other")
    told(opt, 5)
    opt.storage.close()
    return path


def unlink(path, folder):
    path.unlink()


def unlink_all(path, folder):
    for file in folder.glob(f"{path.name}*"):
        file.unlink()


def move(path, folder):
    path.rename(folder / "moved.db")


def replace(path, folder):
    os.replace(other(folder), path)


def truncate(path, folder):
    os.truncate(path, path.stat().st_size // 2)


def empty(path, folder):
    os.truncate(path, 0)


def overwrite(path, folder):
    path.write_bytes(b"These are notes of somebody else. " * 4000)


def copy_over(path, folder):
    shutil.copyfile(other(folder), path)


ATTACKS = [unlink, unlink_all, move, replace, truncate, empty, overwrite, copy_over]


@pytest.mark.parametrize("is_checkpointed", [False, True])
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_acknowledged_is_in_the_file_or_in_a_copy_that_the_error_names(tmp_path, attack, is_checkpointed):
    path = tmp_path / "s.db"
    acknowledged = {}
    if is_checkpointed:
        before = opened(path)
        acknowledged |= told(before, 20)
        before.storage.close()
    opt = opened(path)
    acknowledged |= told(opt, 10)
    attack(path, tmp_path)
    try:
        for _ in range(30):
            acknowledged |= told(opt, 1)
    except StorageFailed as error:
        stopped = error
    else:  # what was damaged is in the log, from which SQLite restores it
        assert attack in (truncate, overwrite, copy_over)
        opt.storage.close()
        assert acknowledged.items() <= stored(path).items()
        assert is_whole(path)
        return
    rescued = re.search(r" in (\S+\.rescued)\b", str(stopped))[1]
    assert acknowledged.items() <= stored(rescued).items()
    assert is_whole(rescued)
    with pytest.raises(StorageFailed, match=re.escape(rescued)):  # whoever goes on hears it again
        opt.ask()
    assert len(opt.history) == len(stored(rescued)) + len(opt.running)
    opt.storage.close()
    again = opened(rescued)
    told(again, 2)
    again.storage.close()


def test_the_study_that_was_put_in_its_place_is_left_alone(tmp_path):
    path = tmp_path / "s.db"
    opt = opened(path)
    told(opt, 10)
    replace(path, tmp_path)
    with pytest.raises(StorageFailed, match="replaced"):
        told(opt, 1)
    opt.storage.close()
    assert len(stored(path, "other")) == 5
    assert is_whole(path)


def test_the_result_that_could_not_be_stored_is_in_the_copy(tmp_path):
    path = tmp_path / "s.db"
    opt = opened(path)
    told(opt, 3)
    trial = opt.ask()
    path.unlink()
    with pytest.raises(StorageFailed, match="rescued"):
        opt.tell(trial, 7.5)
    assert stored(tmp_path / "s.db.rescued")[trial.number] == 7.5


def test_a_run_stops_with_the_sentence_and_everything_found(tmp_path):
    path = tmp_path / "s.db"

    def objective(x):
        if objective.calls == 5:
            path.unlink()
        objective.calls += 1
        return x["a"]

    objective.calls = 0
    with pytest.raises(RunStopped, match=r"removed or renamed.*s\.db\.rescued") as stopped:
        boca.maximize(objective, SPACE, storage=f"sqlite:///{path}", **SETTINGS)
    assert len(stopped.value.result.history.complete) == 6
    assert len(stored(tmp_path / "s.db.rescued")) == 6
    assert not path.exists()  # no empty file takes its place
    again = boca.maximize(
        lambda x: x["a"],
        SPACE,
        storage=f"sqlite:///{tmp_path}/s.db.rescued",
        stop=lambda history: len(history) > 8,
        **SETTINGS,
    )
    assert [t.attempt for t in again.history] == [0] * len(again.history)


def test_a_file_that_is_vacuumed_or_checkpointed_by_another_is_the_same_file(tmp_path):
    path = tmp_path / "s.db"
    opt = opened(path)
    told(opt, 40)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("CREATE TABLE mine (t TEXT)")
    connection.executemany("INSERT INTO mine VALUES (?)", [("x" * 4000,)] * 200)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    told(opt, 2)
    connection.execute("DELETE FROM mine")
    connection.commit()
    connection.execute("VACUUM")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    told(opt, 5)
    opt.storage.close()
    assert len(stored(path)) == 47


def test_a_second_rescue_takes_another_name(tmp_path):
    path = tmp_path / "s.db"
    for name in ("s.db.rescued", "s.db.rescued-2"):
        opt = opened(path)
        told(opt, 2)
        unlink_all_of_study(path)
        with pytest.raises(StorageFailed, match=re.escape(name)):
            told(opt, 1)
        opt.storage.close()
        assert len(stored(tmp_path / name)) == 2


def unlink_all_of_study(path):
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)


def test_a_guard_says_nothing_before_there_is_a_file(tmp_path):
    guard = FileGuard(str(tmp_path / "s.db"))
    guard.check()
    (tmp_path / "s.db").write_bytes(b"x")
    guard.check()
    (tmp_path / "s.db").unlink()
    with pytest.raises(FileChanged, match="removed"):
        guard.check()
