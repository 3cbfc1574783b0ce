"""The page keeps up with a database, leaves it as it was, and survives what happens to it."""

from __future__ import annotations

import hashlib
import shutil
import sqlite3

import pytest
import sqlalchemy as sa

from boca.dashboard import watch
from boca.domain.errors import StorageFailed
from dashboard.conftest import begin, run
from support import postgres


def fingerprint(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_looking_changes_no_byte(tmp_path, url, page_of, journal):
    study = run(begin(url), 4)
    study.storage.close()
    path = tmp_path / "study.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")  # the library would switch DELETE back
    connection.close()
    before = fingerprint(path)
    page = page_of(url)
    assert page.study()["counts"]["trials"] == 4
    assert page.get("/api/trial?name=bowl&number=1").status_code == 200
    page.look()
    assert fingerprint(path) == before
    assert [p.name for p in tmp_path.iterdir()] == ["study.db"]


def test_a_writer_neither_waits_for_the_page_nor_makes_it_wait(tmp_path, url, page_of):
    study = begin(url)
    page = page_of(url)
    writer = sqlite3.connect(tmp_path / "study.db", timeout=0, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    page.look()
    assert page.watcher.world.trouble is None
    writer.execute("ROLLBACK")
    with page.watcher.reader._engine.connect() as reading:
        reading.execute(sa.text("SELECT * FROM boca_studies")).all()  # in the middle of a look
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE boca_studies SET created = created + 1")
        writer.execute("COMMIT")
    writer.close()
    study.ask()
    page.look()
    assert page.study()["counts"]["trials"] == 1


def test_a_path_with_signs_of_a_url_in_it_is_found(tmp_path, page_of):
    folder = tmp_path / "a b#c%d"
    folder.mkdir()
    url = f"sqlite:///{folder}/e?f.db".replace("%", "%25").replace("?", "%3F")
    begin(url)
    assert page_of(url).study()["counts"]["trials"] == 0


def test_a_database_that_goes_away_is_told_and_one_that_comes_back_is_shown(tmp_path, url, page_of):
    study = run(begin(url), 3)
    page = page_of(url)
    known = page.get("/api/study?name=bowl")
    study.storage.close()
    path = tmp_path / "study.db"
    path.rename(tmp_path / "away.db")
    page.look()
    told = page.get("/api/study?name=bowl", headers={"If-None-Match": known.headers["etag"]})
    assert told.status_code == 200
    assert "no longer exists" in told.json()["trouble"]
    assert told.json()["counts"]["trials"] == 3  # what is known stays
    assert "no longer exists" in page.get("/api/studies").json()["trouble"]
    assert page.get("/api/trial?name=bowl&number=0").status_code == 503
    (tmp_path / "away.db").rename(path)
    page.look()
    assert page.study()["trouble"] is None
    run(begin(url), 1)
    page.look()
    assert page.study()["counts"]["trials"] == 4


def test_a_file_that_was_replaced_is_the_new_one(tmp_path, url, page_of):
    run(begin(url), 3).storage.close()
    page = page_of(url)
    assert page.study()["counts"]["trials"] == 3
    for part in tmp_path.glob("study.db*"):
        part.unlink()
    run(begin(url, seed=5), 1)
    page.look()
    assert page.study()["counts"]["trials"] == 1


def test_a_backup_that_was_put_back_is_what_is_shown(tmp_path, url, page_of):
    run(begin(url), 3).storage.close()
    path = tmp_path / "study.db"
    path.rename(tmp_path / "old.db")
    shutil.copy(tmp_path / "old.db", path)
    run(begin(url), 5).storage.close()
    page = page_of(url)
    before = page.study()
    assert before["counts"]["trials"] == 8
    (tmp_path / "old.db").replace(path)
    page.look()
    after = page.study(key=before["key"], since=before["event"])
    assert after["counts"]["trials"] == 3
    assert after["trials"]["number"] == [0, 1, 2]
    assert after["key"] != before["key"]  # the page begins anew
    run(begin(url), 1).storage.close()
    page.look()
    assert page.study(key=after["key"], since=after["event"])["trials"]["number"] == [3]


def test_a_database_that_falls_silent_is_told(url, page_of, monkeypatch):
    begin(url)
    page = page_of(url)
    with page.client:
        assert page.get("/api/studies").json()["trouble"] is None
        tag = page.get("/api/studies").headers["etag"]
        monkeypatch.setattr(watch, "_MAX_SILENCE", -1.0)
        assert "has not answered" in page.get("/api/studies", headers={"If-None-Match": tag}).json()["trouble"]
        assert "has not answered" in page.study()["trouble"]


def test_the_thread_keeps_up_by_itself(url, page_of):
    study = begin(url)
    page = page_of(url)
    with page.client:  # begins and ends the thread
        study.ask()
        for _ in range(100):
            if page.study()["counts"]["trials"] == 1:
                break
            page.watcher._stop.wait(0.05)
        assert page.study()["counts"]["trials"] == 1
    assert not page.watcher._thread.is_alive()


@pytest.fixture
def server():
    yield postgres.server()
    postgres.remove()


def test_postgres_is_read_in_a_transaction_that_may_not_write(server, page_of):
    url = server.fresh()
    study = run(begin(url), 3)
    page = page_of(url)
    assert page.study()["counts"]["trials"] == 3
    with pytest.raises(StorageFailed, match="read-only transaction"):
        page.watcher.reader.read(lambda c: c.execute(sa.text("DELETE FROM boca_studies")))
    study.ask()
    page.look()
    assert page.study()["trials"]["number"] == [0, 1, 2, 3]
    server.stop()
    page.look()
    assert page.watcher.world.trouble is not None
    server.start()
    page.look()
    page.look()  # the first one may find a connection that is gone
    assert page.watcher.world.trouble is None
    assert page.study()["counts"]["trials"] == 4
    study.storage.close()
