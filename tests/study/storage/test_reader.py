"""To look at a database leaves it as it was, and finds what the library itself would find."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import tempfile
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
import sqlalchemy as sa

from boca import Choice, Float, Int, Optimizer, Problem, RandomSearch, Space, Trial, targets
from boca.domain.errors import InvalidInput, StorageFailed
from boca.study.storage.location import location
from boca.study.storage.reader import Reader
from boca.study.storage.sql import Database
from support import postgres

PROBLEM = Problem(Space(a=Float(0, 1), kind=Choice(["round", None])), Space(n=Int(1, 10)), cost=lambda z: z["n"])


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/study.db"


def begin(url, name="bowl"):
    return Optimizer(PROBLEM, budget=targets(50), strategy=RandomSearch(), seed=0, storage=url, name=name)


def run(optimizer):
    """Run three trials, one of which fails and one of which stays out."""
    optimizer.tell(optimizer.ask(), 0.5, noise=0.1, seconds=2.0, output="it said so")
    optimizer.fail(optimizer.ask(), "it broke")
    optimizer.ask()
    return optimizer


def fingerprint(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def whole(trial):
    return {f.name: getattr(trial, f.name) for f in fields(Trial)}


# What is found --------------------------------------------------------------------------------------------------------


def check_that_both_find_the_same(url):
    for name in ("bowl", "other"):
        run(begin(url, name)).storage.close()
    with closing(Database(url)) as database, closing(Reader(url)) as reader:
        studies = reader.studies()
        assert [study.name for study in studies] == database.names() == ["bowl", "other"]
        for name, light in zip(database.names(), studies, strict=True):
            study, history = reader.study(name), database.study(name).read().history
            assert study.spec == light.spec == database.spec(name)
            assert [whole(t) for t in study.history] == [whole(t) for t in history]
            assert [t.phase for t in study.history] == [t.phase for t in history]
            assert [(t.number, t.x, t.z, t.state, t.why) for t in light.history] == [
                (t.number, t.x, t.z, t.state, t.why) for t in history
            ]


def test_a_file_is_read_as_the_library_reads_it(url):
    check_that_both_find_the_same(url)


def test_a_server_is_read_as_the_library_reads_it():
    check_that_both_find_the_same(postgres.server().fresh())


def test_a_study_that_is_not_there_is_told_with_those_that_are(url):
    begin(url).storage.close()
    with pytest.raises(InvalidInput, match=r"no study 'bowls'.* has: bowl"):
        Reader(url).study("bowls")


@pytest.mark.parametrize("name", ["what?.db", "a b#c.db", "100%.db", "50%25.db", "é:x@y.db"])
def test_a_file_is_found_by_its_name_whatever_that_holds(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (name, f"{tmp_path}/{name}"):
        run(begin(location(path), path)).storage.close()
        assert len(Reader(path).study(path).history) == 3
    assert [file.name for file in tmp_path.glob("*.db")] == [name]


def test_what_is_still_in_the_log_is_read(tmp_path, url):
    study = run(begin(url))
    assert (tmp_path / "study.db-wal").stat().st_size > 0
    assert len(Reader(url).study("bowl").history) == 3
    study.ask()
    assert len(Reader(url).study("bowl").history) == 4
    study.storage.close()
    reader = Reader(url)
    assert len(reader.study("bowl").history) == 4
    again = begin(url)  # the log is there again
    again.ask()
    assert len(reader.study("bowl").history) == 5
    again.storage.close()


# What is left alone ---------------------------------------------------------------------------------------------------


def test_to_look_at_a_study_at_rest_leaves_no_file_behind(tmp_path, url):
    run(begin(url)).storage.close()
    before = fingerprint(tmp_path / "study.db")
    assert len(Reader(url).study("bowl").history) == 3
    assert fingerprint(tmp_path / "study.db") == before
    assert [path.name for path in tmp_path.iterdir()] == ["study.db"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_study_in_a_folder_of_somebody_else_can_be_looked_at():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        run(begin(f"sqlite:///{folder}/study.db")).storage.close()
        reader = Reader(f"{folder}/study.db")
        os.seteuid(65534)
        try:
            assert len(reader.study("bowl").history) == 3
        finally:
            os.seteuid(0)


def test_a_database_of_another_program_stays_as_it_was(tmp_path):
    path = tmp_path / "photos.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos(id)")
        connection.commit()
    before = fingerprint(path)
    with pytest.raises(StorageFailed, match=r"no tables of boca.* was made"):
        Reader(str(path)).study("bowl")
    assert fingerprint(path) == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_is_not_there_is_an_error_and_stays_so(tmp_path):
    for storage in (f"sqlite:///{tmp_path}/none.db", f"{tmp_path}/none.db"):
        with pytest.raises(InvalidInput, match=r"There is no file .*none\.db"):
            Reader(storage)
    assert list(tmp_path.iterdir()) == []
    begin(f"sqlite:///{tmp_path}/study.db").storage.close()
    reader = Reader(f"{tmp_path}/study.db")
    (tmp_path / "study.db").unlink()
    with pytest.raises(StorageFailed, match=r"study\.db' no longer exists"):
        reader.studies()
    assert list(tmp_path.iterdir()) == []


def test_a_study_in_memory_cannot_be_looked_at():
    for storage in ("sqlite://", ":memory:", ""):
        with pytest.raises(InvalidInput, match="must name a file"):
            Reader(storage)


@pytest.mark.parametrize("storage", [None, 3, Path("study.db")])
def test_what_is_neither_a_url_nor_a_file_is_refused(storage):
    with pytest.raises(InvalidInput, match=r"must be a file or a URL, such as 'sqlite:///study\.db'"):
        Reader(storage)


def test_a_url_of_no_database_is_refused():
    with pytest.raises(InvalidInput, match="a URL of SQLite"):
        Reader("nonsense://x")


def test_a_database_without_tables_gets_none(tmp_path):
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(StorageFailed, match="no tables"):
        Reader(f"sqlite:///{path}").studies()
    assert path.read_bytes() == b""


def test_something_else_than_a_database_is_said_to_be_unreadable(tmp_path):
    path = tmp_path / "photo.db"
    path.write_bytes(b"JFIF" * 1000)
    with pytest.raises(StorageFailed, match="not a database"):
        Reader(f"sqlite:///{path}").studies()


def test_tables_of_a_newer_version_are_left_alone(tmp_path, url):
    begin(url).storage.close()
    path = tmp_path / "study.db"
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE boca_meta SET version = 99")
    connection.close()
    before = fingerprint(path)
    with pytest.raises(StorageFailed, match="version 99, from a newer boca"):
        Reader(url).studies()
    assert fingerprint(path) == before


def test_a_write_through_the_reader_is_refused_by_the_database(url):
    begin(url)
    with pytest.raises(StorageFailed, match="readonly"):
        Reader(url).read(lambda c: c.execute(sa.text("DELETE FROM boca_studies")))


def test_a_look_during_which_the_file_changed_is_repeated(url, tmp_path):
    """A file at rest is read as it lies there: if somebody writes to it meanwhile, half of what was seen may be old."""
    begin(url).storage.close()
    looks = []

    def work(connection):
        looks.append(len(reader.rows(connection)))
        if len(looks) == 1:
            os.utime(tmp_path / "study.db", ns=(1, 1))
        return looks[-1]

    with closing(Reader(url)) as reader:
        assert reader.read(work) == 1
    assert looks == [1, 1]
