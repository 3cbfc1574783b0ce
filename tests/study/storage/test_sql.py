"""What is special about a database: how it is opened, what it does when it cannot, and that nothing is done twice."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

import boca
from boca import Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.errors import InvalidInput, InvalidTrial, StorageFailed
from boca.study.storage import Lease, Owner, migrations, schema, sql, sql_study
from boca.study.storage.sql import Database
from storage.test_contract import DEAD, claim, complete, draft, everything, seen
from support.places import SPEC, on, together

PROBLEM = Problem(Space(a=Float(0, 1)))


def optimizer(url, **settings):
    settings = {"budget": targets(50), "strategy": RandomSearch(), "seed": 0} | settings
    return Optimizer(PROBLEM, storage=url, **settings)


@pytest.fixture
def file(tmp_path):
    with on("sqlite", tmp_path) as found:
        yield found


# Where it cannot be opened --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url", ["", "study.db", "sqlite:/study.db", "redis://host/1", "mysql+nodriver://u@h/d", "postgresql+nodriver://h/d"]
)
def test_a_url_that_cannot_be_meant_is_refused_with_an_example(url):
    with pytest.raises(InvalidInput, match=r"storage is .*sqlite:///study\.db"):
        optimizer(url)


@pytest.mark.parametrize("url", [7, Path("study.db"), b"sqlite:///study.db"])
def test_what_is_no_url_is_refused(url):
    with pytest.raises(InvalidInput, match=r"storage is .*URL"):
        optimizer(url)


def test_a_url_that_is_refused_is_shown_without_its_password():
    with pytest.raises(InvalidInput) as raised:
        optimizer("mysql+nodriver://user:secret@host/database")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused_because_each_thread_would_have_its_own(url):
    with pytest.raises(InvalidInput, match="storage=None"):
        optimizer(url)


def test_a_file_that_cannot_be_made_is_a_storage_that_failed(tmp_path):
    for place in (tmp_path / "no" / "such" / "place.db", tmp_path):
        with pytest.raises(StorageFailed, match="unable to open database file"):
            optimizer(f"sqlite:///{place}")


def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("These are notes, which nobody wants to lose.\n" * 100)
    with pytest.raises(StorageFailed, match="file is not a database"):
        optimizer(f"sqlite:///{file}")
    assert file.read_text() == "These are notes, which nobody wants to lose.\n" * 100


def test_a_file_that_is_damaged_is_a_storage_that_failed(file):
    study = file.study()
    for k in range(40):
        study.finish(complete(claim(study, k / 1000), output="o" * 2500))
    file.close()
    path = Path(file.url.removeprefix("sqlite:///"))
    sqlite3.connect(path).close()
    with path.open("r+b") as raw:
        raw.seek(8192)
        raw.write(os.urandom(path.stat().st_size - 8192))
    with pytest.raises(StorageFailed, match="cannot be read or written"):
        claim(file.study())


def test_a_file_that_must_not_be_written_can_be_read(file):
    claim(file.study())
    path = file.url.removeprefix("sqlite:///")
    database = Database(f"sqlite:///file:{path}?mode=ro&uri=true")
    try:
        study = database.study("study")
        assert len(study.read().history) == 1
        with pytest.raises(StorageFailed, match="readonly database"):
            claim(study)
    finally:
        database.close()
    assert len(file.study().read().history) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="NOT TESTED HERE: root may write every file")
def test_a_file_without_permission_is_a_storage_that_failed(file):
    claim(file.study())
    file.close()
    path = Path(file.url.removeprefix("sqlite:///"))
    path.chmod(0o000)
    with pytest.raises(StorageFailed, match="unable to open"):
        file.study()


def test_other_tables_in_the_database_are_left_alone(database):
    engine = sa.create_engine(database.url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE trials (id INTEGER, mine TEXT)")
        connection.exec_driver_sql("INSERT INTO trials VALUES (1, 'precious')")
    claim(database.study())
    with engine.begin() as connection:
        assert connection.exec_driver_sql("SELECT * FROM trials").all() == [(1, "precious")]
    engine.dispose()


NOW = schema.VERSION


# Versions -------------------------------------------------------------------------------------------------------------


def test_a_database_of_a_newer_version_is_refused_and_left_alone(database, monkeypatch):
    claim(database.study())
    monkeypatch.setattr(schema, "VERSION", NOW + 1)
    monkeypatch.setattr(migrations, "MIGRATIONS", {NOW: _add_note})
    database.database()
    monkeypatch.undo()
    with pytest.raises(StorageFailed, match=rf"version {NOW + 1}, from a newer boca.* up to {NOW}\."):
        database.database()
    monkeypatch.setattr(schema, "VERSION", NOW + 1)
    assert len(database.study().read().history) == 1


def _add_note(connection):
    connection.exec_driver_sql("ALTER TABLE boca_studies ADD COLUMN note TEXT")
    connection.exec_driver_sql("UPDATE boca_studies SET note = 'migrated'")


def _next_version(monkeypatch, step=_add_note):
    monkeypatch.setattr(schema, "VERSION", NOW + 1)
    monkeypatch.setattr(migrations, "MIGRATIONS", {NOW: step})


def notes(place):
    with place.database().reading() as connection:
        return connection.exec_driver_sql("SELECT version, note FROM boca_meta, boca_studies").all()


def test_an_older_file_is_migrated_and_a_copy_of_it_is_kept(file, monkeypatch):
    trial = claim(file.study())
    file.close()
    _next_version(monkeypatch)
    study = file.study()
    assert [everything(t) for t in study.read().history] == [everything(trial)]
    assert notes(file) == [(NOW + 1, "migrated")]
    monkeypatch.undo()
    path = Path(file.url.removeprefix("sqlite:///"))
    (copy,) = path.parent.glob(f"{path.name}.*backup")
    assert copy.name == f"{path.name}.v{NOW}.backup"
    with on("sqlite", path.parent) as kept:
        kept.url = f"sqlite:///{copy}"
        assert [everything(t) for t in kept.study().read().history] == [everything(trial)]


def test_older_tables_on_a_server_are_migrated_and_copies_of_them_are_kept(tmp_path, monkeypatch):
    with on("postgres", tmp_path) as place:
        trial = claim(place.study())
        place.study().enqueue({"a": 0.5}, {})
        _next_version(monkeypatch)
        assert [everything(t) for t in place.study().read().history] == [everything(trial)]
        assert notes(place) == [(NOW + 1, "migrated")]
        with place.database().reading() as connection:
            kept = {
                table: connection.exec_driver_sql(f"SELECT * FROM boca_{table}_v{NOW}").mappings().all()
                for table in ("meta", "studies", "trials", "queue")
            }
        assert [len(rows) for rows in kept.values()] == [1, 1, 1, 1]
        assert kept["meta"][0]["version"] == NOW
        assert "note" not in kept["studies"][0]
        assert kept["trials"][0]["x"] == '{"a":0.5}'


def test_a_version_with_a_new_table_can_be_migrated_to(database, monkeypatch):
    claim(database.study())
    tables = sa.MetaData()
    for table in schema.metadata.sorted_tables:
        table.to_metadata(tables)
    new = sa.Table("boca_new", tables, sa.Column("id", sa.Integer, primary_key=True))
    monkeypatch.setattr(schema, "metadata", tables)
    _next_version(monkeypatch, new.create)
    assert len(database.study().read().history) == 1


def test_a_migration_that_fails_leaves_the_database_as_it_was(database, monkeypatch):
    claim(database.study())
    before = seen(database.study())

    def breaks(connection):
        _add_note(connection)
        raise ZeroDivisionError

    _next_version(monkeypatch, breaks)
    for _ in range(2):  # a copy that is there from the first time is no obstacle
        with pytest.raises(ZeroDivisionError):
            database.database()
    monkeypatch.undo()
    assert seen(database.study()) == before
    _next_version(monkeypatch)
    database.database()
    assert notes(database) == [(NOW + 1, "migrated")]


# Many at once ---------------------------------------------------------------------------------------------------------


def _creates(k, urls):
    for url in urls:
        opt = optimizer(url, seed=None)
        trial = opt.ask()
        opt.tell(trial, float(k))
        opt.storage.close()
    return opt.seed


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_eight_processes_may_create_a_database_at_the_same_moment(kind, tmp_path):
    urls = []
    for k in range(3):
        (tmp_path / str(k)).mkdir()
        with on(kind, tmp_path / str(k)) as place:
            urls.append(place.url)
    seeds = together(8, _creates, urls)
    assert len(set(seeds)) == 1
    for url in urls:
        opt = optimizer(url, seed=None)
        assert sorted(trial.value for trial in opt.history) == [float(k) for k in range(8)]
        opt.storage.close()


def _add_note_slowly(connection):
    _add_note(connection)  # a second time, the column would be there
    time.sleep(0.3)  # the others have seen the old version by now, and wait


def _migrates(k, url):
    schema.VERSION = NOW + 1
    migrations.MIGRATIONS = {NOW: _add_note_slowly}
    database = Database(url)
    try:
        return len(database.study("study").read().history)
    finally:
        database.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_processes_that_find_an_older_version_at_the_same_moment_migrate_it_once(kind, tmp_path, monkeypatch):
    for k in range(2):
        (tmp_path / str(k)).mkdir()
        with on(kind, tmp_path / str(k)) as place:
            claim(place.study())
            place.close()
            assert together(6, _migrates, place.url) == [1] * 6
            with monkeypatch.context() as patch:
                _next_version(patch)
                assert notes(place) == [(NOW + 1, "migrated")]
            if kind == "sqlite":
                place.url = f"{place.url}.v{NOW}.backup"
                assert len(place.study().read().history) == 1  # the copy is of the older version


# A disk that is full --------------------------------------------------------------------------------------------------


def fill(url):
    """Tell results until there is no room, and return how many were acknowledged."""
    opt = optimizer(url, budget=targets(100_000))
    told = len(opt.history.complete)
    try:
        while told < 2000:
            trial = (opt.running or [opt.ask()])[0]
            opt.tell(trial, float(trial.number), output="o" * 20_000)
            told += 1
    finally:
        opt.storage.close()
        fill.told = told
    raise AssertionError("there was no end to the room")


def goes_on(url, told, steps=20):
    """Check that what was acknowledged is there, and that the study goes on."""
    opt = optimizer(url, budget=targets(100_000))
    assert [trial.value for trial in opt.history.complete] == [float(k) for k in range(told)]
    for _ in range(steps):
        trial = (opt.running or [opt.ask()])[0]
        opt.tell(trial, float(trial.number))
    assert [trial.number for trial in opt.history] == list(range(told + steps))
    opt.storage.close()


def test_a_file_that_may_not_grow_any_more_keeps_what_was_acknowledged(file):
    def limit(connection, record):
        connection.execute("PRAGMA max_page_count = 400")

    file.study("other")
    sa.event.listen(sa.Engine, "connect", limit)
    try:
        with pytest.raises(StorageFailed, match=r"full.*acknowledged before is stored"):
            fill(file.url)
        opt = optimizer(file.url, budget=targets(100_000))
        assert len(opt.history.complete) == fill.told > 10  # it can be read while there is no room
        opt.storage.close()
    finally:
        sa.event.remove(sa.Engine, "connect", limit)
    goes_on(file.url, fill.told)


@pytest.fixture
def small_disk(tmp_path):
    """A disk of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("A FULL DISK IS NOT TESTED HERE: to mount a small one needs Linux and root")
    mounted = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    if mounted.returncode:
        pytest.skip(f"A FULL DISK IS NOT TESTED HERE: {mounted.stderr.strip()}")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], timeout=30, check=True)


def test_a_full_disk_keeps_what_was_acknowledged_and_the_study_goes_on_when_there_is_room(small_disk):
    url = f"sqlite:///{small_disk / 'study.db'}"
    with pytest.raises(StorageFailed, match=r"(disk|full).*acknowledged before is stored"):
        fill(url)
    assert fill.told > 10
    room = ["mount", "-o", "remount,size=20m", str(small_disk)]
    subprocess.run(room, timeout=30, check=True)
    goes_on(url, fill.told)


def test_a_disk_that_is_full_from_the_first_moment_is_said_so(small_disk):
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"), filler.open("wb") as file:  # noqa: PT012
        while True:
            file.write(b"\0" * 4096)
            file.flush()
    url = f"sqlite:///{small_disk / 'study.db'}"
    with pytest.raises(StorageFailed, match="cannot be read or written"):
        optimizer(url)
    filler.unlink()
    goes_on(url, 0)


# A server that goes and comes -----------------------------------------------------------------------------------------


@pytest.fixture
def remote(tmp_path):
    with on("postgres", tmp_path) as found:
        yield found


class Loses:
    """A connection that breaks with the next commit, before or after the server has done it."""

    def __init__(self, monkeypatch, *, done):
        import psycopg

        self.times = 0
        self._left = 1
        self._done = done
        commit = psycopg.Connection.commit

        def broken(connection):
            if self._left:
                self._left -= 1
                self.times += 1
                if self._done:
                    commit(connection)
                connection.close()
                raise psycopg.OperationalError("consuming input failed: server closed the connection unexpectedly")
            commit(connection)

        monkeypatch.setattr(psycopg.Connection, "commit", broken)


def _prepared(place, name="study"):
    study = place.study(name)
    study.enqueue({"a": 0.1}, {"n": 1.0})
    dead = [claim(study, 0.2, lease=Lease(owner=DEAD)), claim(study, 0.3, lease=Lease(owner=DEAD))]
    return study, dead


WRITES = {
    "claim": lambda study, dead, lease: [study.claim(draft(0.7, seen=2), lease=lease)],
    "claim of a queued point": lambda study, dead, lease: [
        study.claim(draft(0.1, seen=2), queued=study.read().queue[0], lease=lease)
    ],
    "late claim": lambda study, dead, lease: [study.claim(draft(0.7, seen=0), affords=lambda history: True)],
    "add": lambda study, dead, lease: [study.add(complete(draft(0.7)))],
    "finish": lambda study, dead, lease: [study.finish(complete(dead[0], 2.0))],
    "fail": lambda study, dead, lease: [study.finish(replace(dead[0], state="failed", reason="Why not."))],
    "again": lambda study, dead, lease: [study.retry(dead[1], lease)],
    "take_over": lambda study, dead, lease: study.take_over(lease, max_retries=2),
    "give up": lambda study, dead, lease: study.take_over(lease, max_retries=0),
    "enqueue": lambda study, dead, lease: study.enqueue({"a": 0.9}, {"n": 1.0}),
    "renew": lambda study, dead, lease: study.renew(lease),
    "release": lambda study, dead, lease: study.release(lease),
}


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    """One place on the server for many short studies."""
    with on("postgres", tmp_path_factory.mktemp("line")) as found:
        yield found


def written(place, name, write, lost=None):
    """Return what a write returned, and what is there afterwards."""
    study, dead = _prepared(place, name)
    with pytest.MonkeyPatch.context() as patch:
        breaks = lost and Loses(patch, done=lost == "answer")
        returned = write(study, dead, Lease())
    assert breaks is None or breaks.times == 1
    trials, event, queue = seen(study)
    assert (trials, event, queue) == seen(place.study(name))
    return returned and [everything(t) for t in returned], trials, event, [q.x for q in queue]


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_a_write_whose_answer_got_lost_is_done_once(line, write):
    """The same write on a line that holds and on one that breaks: nobody sees a difference."""
    name = f"{id(write)}"
    outcome = written(line, f"{name} holds", write)
    assert written(line, f"{name} loses the answer", write, "answer") == outcome
    assert written(line, f"{name} loses the commit", write, "commit") == outcome


@pytest.mark.parametrize("done", [True, False])
def test_tables_and_studies_whose_answer_got_lost_are_made_once(remote, monkeypatch, done):
    with monkeypatch.context() as patch:
        Loses(patch, done=done)
        database = remote.database()
    with monkeypatch.context() as patch:
        Loses(patch, done=done)
        assert database.create("study", SPEC) == SPEC
    assert database.names() == ["study"]


def test_a_refusal_is_a_refusal_on_a_line_that_breaks_too(remote, monkeypatch):
    study, dead = _prepared(remote)
    study.finish(complete(dead[0]))
    now = seen(study)
    Loses(monkeypatch, done=True)
    with pytest.raises(InvalidTrial):
        study.finish(complete(dead[0], 2.0))
    assert study.claim(draft(seen=0)) is None
    assert seen(study) == now


def test_leases_end_by_the_clock_of_the_server_whatever_that_of_a_machine_says(remote, monkeypatch):
    one, other = remote.study(), remote.study()
    elsewhere = Lease(owner=replace(Owner.me(), machine="elsewhere"))
    claim(one, lease=elsewhere)
    now = time.time()
    monkeypatch.setattr("boca.study.storage.sql_study.time.time", lambda: now + 3600.0)
    assert list(other.take_over(Lease(), max_retries=2)) == []
    other.renew(elsewhere)
    monkeypatch.setattr("boca.study.storage.sql_study.time.time", lambda: now - 3600.0)
    other.renew(elsewhere)
    monkeypatch.undo()
    assert list(other.take_over(Lease(), max_retries=2)) == []


def test_who_renews_and_who_takes_over_do_not_wait_for_each_other(remote, monkeypatch):
    """PostgreSQL moves a row that is changed: the two may come to the same rows in another order."""
    one, other = remote.study(), remote.study()
    lease = Lease(owner=replace(Owner.me(), machine="elsewhere"))
    trials = [claim(one, k / 10, lease=lease) for k in range(2)]
    one.retry(trials[0], lease)  # now its row lies behind the other one
    one.renew(replace(lease, seconds=-1.0))
    begun, update = threading.Event(), sql_study.SqlStudy._update

    def slow(*given, **more):
        update(*given, **more)
        begun.set()
        time.sleep(0.3)  # longer than the other one takes to come to where it has to wait

    monkeypatch.setattr(sql_study.SqlStudy, "_update", slow)
    monkeypatch.setattr(sql, "_COLLISIONS", ())  # a collision that is mended by another try is one too
    with ThreadPoolExecutor(1) as pool:
        taken = pool.submit(other.take_over, Lease(), max_retries=9)
        assert begun.wait(60.0)
        one.renew(lease)
        assert [trial.number for trial in taken.result(60.0)] == [0, 1]


@pytest.mark.parametrize("state", ["40001", "40P01"])
def test_a_transaction_that_the_server_gave_up_for_another_one_is_tried_again(remote, state):
    tries = []

    def work(connection):
        tries.append(connection)
        if len(tries) == 1:
            connection.execute(sa.text(f"DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$"))
        return len(tries)

    assert remote.database().write(work) == 2


def test_connections_that_the_server_ended_are_replaced(remote):
    study, (first, _) = _prepared(remote)
    study.read()
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'boca'"
    from support.postgres import server

    server().execute(end)
    assert study.finish(complete(first, 2.0)).value == 2.0
    server().execute(end)
    assert study.read().history[0].value == 2.0
    server().execute(end)
    assert study.read().history[1].why["reason"] == "Because."
    assert claim(study).number == 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda url: url.replace("/postgres?", "/nosuchdatabase?"), "nosuchdatabase"),
        (lambda url: url.replace("boca@", "nobody@"), "nobody"),
        (lambda url: url.replace("127.0.0.1", "no.such.host.invalid"), "no.such.host.invalid"),
    ],
    ids=["database", "user", "host"],
)
def test_a_server_that_does_not_know_us_is_not_waited_for(remote, change, words, monkeypatch):
    monkeypatch.setattr("boca.study.storage.sql._WAIT_FOR_SERVER", 20.0)
    began = time.monotonic()
    with pytest.raises(StorageFailed, match=words):
        optimizer(change(remote.url))
    assert time.monotonic() - began < 10.0


def test_isolation_that_somebody_set_for_the_whole_server_is_no_obstacle(remote):
    remote.url += "%20-cdefault_transaction_isolation%3Dserializable"
    one, other = remote.study(), remote.study()
    failures = []

    def claims(study):
        try:
            for _ in range(10):
                study.claim(draft(seen=-1), affords=lambda history: True)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=claims, args=(study,)) for study in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [trial.number for trial in remote.study().read().history] == list(range(20))


def test_a_run_waits_for_a_server_that_is_down_and_goes_on(server, remote):
    """Once in order, once as if the machine had lost its power."""
    steps = threading.Semaphore(0)

    def objective(x):
        steps.release()
        time.sleep(0.01)
        return x["a"]

    results = []
    settings = {"budget": targets(60), "strategy": RandomSearch(), "seed": 0}
    run = threading.Thread(
        target=lambda: results.append(boca.maximize(objective, PROBLEM.space, storage=remote.url, **settings)),
        daemon=True,
    )
    run.start()
    for how in (signal.SIGINT, signal.SIGQUIT):
        for _ in range(10):
            assert steps.acquire(timeout=60.0)
        server.stop(how)
        time.sleep(0.5)
        assert run.is_alive()
        server.start()
    run.join(timeout=90.0)
    assert not run.is_alive()
    undisturbed = boca.maximize(lambda x: x["a"], PROBLEM.space, **settings)
    assert [(t.x, t.value, t.attempt) for t in results[0].history] == [
        (t.x, t.value, t.attempt) for t in undisturbed.history
    ]


# Forks ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.skipif(not hasattr(os, "fork"), reason="NOT TESTED HERE: this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_fork_opens_its_own_connections(kind, tmp_path):
    with on(kind, tmp_path) as place:
        opt = place.optimizer(PROBLEM, budget=targets(500), strategy=RandomSearch(), seed=0)
        opt.tell(opt.ask(), 0.0)
        children = []
        for _ in range(4):
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    for _ in range(8):
                        opt.tell(opt.ask(), 1.0)
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        for _ in range(8):
            opt.tell(opt.ask(), 1.0)
        assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
        assert [(t.number, t.state) for t in opt.history] == [(k, "complete") for k in range(41)]
