"""One study of a database: what belongs to it, what a result may change, and when reasons are loaded."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
import sqlalchemy as sa

from boca import Float, Optimizer, Problem, RandomSearch, Space, seconds, targets
from boca.domain.errors import InvalidInput, InvalidTrial, StorageFailed
from boca.study.storage import Lease, schema
from storage.test_contract import DEAD, claim, complete, draft

PROBLEM = Problem(Space(a=Float(0, 1)))


def optimizer(url, **settings):
    settings = {"budget": targets(50), "strategy": RandomSearch(), "seed": 0} | settings
    return Optimizer(PROBLEM, storage=url, **settings)


def test_a_study_and_its_queue_go_with_it(database):
    study = database.study("one")
    study.enqueue({"a": 0.1}, {})
    claim(study)
    claim(database.study("two"))
    everything_else = database.database()
    everything_else.delete("one")
    assert everything_else.names() == ["two"]
    with pytest.raises(InvalidInput, match=r"no study 'one'.* has: two"):
        everything_else.study("one")
    with pytest.raises(StorageFailed, match="another process deleted it"):
        study.claim(draft(seen=1))
    again = database.study("one").read()
    assert (len(again.history), again.event, again.queue) == (0, 0, ())


def test_an_optimiser_of_a_deleted_study_does_not_write_to_one_of_its_name(database):
    old = database.optimizer(PROBLEM, budget=targets(50), strategy=RandomSearch(), seed=0)
    trial = old.ask()
    assert old.running == (trial,)
    database.database().delete("study")
    new = database.optimizer(PROBLEM, budget=targets(50), strategy=RandomSearch(), seed=0)
    theirs = new.ask()
    for write in (
        old.ask,
        lambda: old.tell(trial, 1.0),
        lambda: old.fail(trial, "it broke"),
        lambda: old.add({"a": 0.5}, None, 1.0),
        lambda: old.enqueue({"a": 0.5}),
    ):
        with pytest.raises(StorageFailed, match="another process deleted it"):
            write()
    now = new.storage.read()
    assert (list(now.history), now.event, now.queue) == ([theirs], 1, ())


def test_when_an_attempt_was_handed_out_is_stored_and_stays(database):
    study, lease = database.study(), Lease()
    kept = database.database()

    def began():
        return kept.read(
            lambda c: c.execute(sa.select(schema.trials.c.began).order_by(schema.trials.c.number)).scalars().all()
        )

    before = time.time()
    first = claim(study, 0.1, lease=lease)
    claim(study, 0.2, lease=Lease(owner=DEAD))
    study.add(complete(draft(0.3)))
    one, other, added = began()
    assert before <= one <= other <= time.time()
    assert added is None
    again = study.retry(first, lease)
    study.take_over(lease, max_retries=2)
    assert other < began()[0] < began()[1] <= time.time()
    now = began()
    study.finish(complete(again))
    study.renew(lease)
    assert began() == now


def test_a_result_does_not_move_its_point(database):
    study, lease = database.study(), Lease()
    first, second = claim(study, 0.1, lease=lease), claim(study, 0.2, lease=lease)
    study.finish(replace(complete(first), x={"a": 9.0}, planned={}, overhead=7.0))
    study.retry(replace(second, x={"a": 9.0}, planned={}), lease)
    stored = database.study().read().history
    assert [(t.x, t.z, t.overhead) for t in stored] == [({"a": 0.1}, {"n": 1.0}, 0.0), ({"a": 0.2}, {"n": 1.0}, 0.0)]
    assert [(t.state, t.attempt) for t in stored] == [("complete", 0), ("running", 1)]


def test_an_edit_of_a_trial_that_is_out_is_refused_and_does_not_reach_the_disk(database):
    asked = database.optimizer(PROBLEM, budget=targets(9), seed=0).ask()
    other = database.optimizer(PROBLEM, budget=targets(9), seed=0)
    trial = other.running[0]
    trial.x["a"] = 0.25
    with pytest.raises(InvalidTrial, match="your code changed it"):
        other.tell(trial, 1.0)
    other.tell(trial.number, 1.0)
    assert database.optimizer(PROBLEM, budget=targets(9), seed=0).history[0].x == asked.x


def test_seconds_are_those_from_ask_to_tell_whoever_asked(database):
    def opened():
        return database.optimizer(PROBLEM, budget=seconds(60.0), seed=0)

    first, second, third = opened().ask(3)
    time.sleep(0.2)
    told = opened().tell(first.number, 1.0)
    failed = opened().fail(second, "no")
    said = opened().tell(third, 1.0, seconds=5.0)
    assert all(0.2 <= trial.seconds < 5.0 for trial in (told, failed))
    assert said.seconds == 5.0
    assert opened().spent == pytest.approx(sum(t.seconds + t.overhead for t in opened().history))


def test_a_clock_that_goes_back_gives_no_time_below_zero(database, monkeypatch):
    trial = database.optimizer(PROBLEM, budget=seconds(60.0), seed=0).ask()
    now = time.time()
    monkeypatch.setattr("boca.study.storage.sql_study.time.time", lambda: now - 3600.0)
    assert database.optimizer(PROBLEM, budget=seconds(60.0), seed=0).tell(trial, 1.0).seconds == 0.0


def test_studies_of_one_database_do_not_meet(database):
    one, other = database.study("one"), database.study("two")
    one.enqueue({"a": 0.5}, {})
    trial = claim(one, 0.1, lease=Lease(owner=DEAD))
    assert [claim(other, k / 10).number for k in range(3)] == [0, 1, 2]
    assert other.read().queue == ()
    assert list(other.take_over(Lease(), max_retries=2)) == []
    assert not other.is_held_by_others(Lease())
    (queued,) = one.read().queue
    assert other.claim(draft(0.5, seen=3), queued=queued) is None
    one.finish(complete(trial))
    assert one.read().event == 2
    assert [t.state for t in other.read().history] == ["running"] * 3


# What is read ---------------------------------------------------------------------------------------------------------


def reads(statements):
    """How often trials were read without their reasons, and how often reasons were read."""
    of_trials = [sent for sent in statements if sent.startswith("SELECT") and "FROM boca_trials" in sent]
    columns = [{name.strip() for name in sent[7 : sent.index(" FROM ")].split(",")} for sent in of_trials]
    return sum("boca_trials.x AS x" in c for c in columns), sum(
        not {name.split(" ")[0] for name in c}.isdisjoint({"boca_trials.why"}) for c in columns
    )


def test_reasons_are_loaded_one_by_one_when_somebody_looks(database, statements):
    writer, reader = database.study(), database.study()
    for k in range(5):
        trial = claim(writer, k / 10, why={"reason": f"Reason {k}.", "phase": "model"})
        writer.finish(complete(trial))
    del statements[:]
    history = reader.read().history
    assert [trial.phase for trial in history] == ["model"] * 5
    assert repr(history)
    assert history.finished == history.complete
    assert not any(trial.reasons.is_loaded for trial in history)
    assert reads(statements) == (1, 0)
    assert history[3].why["reason"] == "Reason 3."
    assert history[3].why["reason"] == "Reason 3."
    assert reads(statements) == (1, 1)
    assert reader.read().history[3].why is history[3].why
    claim(writer)
    assert reader.read().history[3].reasons.is_loaded
    assert reads(statements)[1] == 1


def test_whoever_looks_at_many_reasons_gets_those_that_are_left_at_once(database, statements):
    writer, reader = database.study(), database.study()
    for k in range(40):
        claim(writer, k / 100, why={"reason": f"Reason {k}.", "phase": "model"})
    history = reader.read().history
    writer.finish(complete(writer.read().history[39]))
    del statements[:]
    assert reader.read().history[39].state == "complete"
    assert [trial.why["reason"] for trial in history] == [f"Reason {k}." for k in range(40)]
    assert [trial.why["reason"] for trial in reader.read().history] == [f"Reason {k}." for k in range(40)]
    assert reads(statements)[1] <= 10


def test_reasons_that_were_loaded_outlive_the_study_and_others_are_missed(database, statements):
    study = database.study()
    for k in range(20):
        study.add(complete(draft(k / 100, why={"reason": f"Reason {k}.", "phase": "added"})))
    whole, light = database.study(), database.study()
    known, unknown = whole.read().history, light.read().history
    del statements[:]
    whole.load_reasons()
    whole.load_reasons()
    assert reads(statements) == (0, 1)
    database.database().delete("study")
    assert [trial.why["reason"] for trial in known] == [f"Reason {k}." for k in range(20)]
    with pytest.raises(StorageFailed, match="another process deleted it"):
        _ = unknown[0].why


def test_reasons_that_were_loaded_stay_when_the_trial_changes(database, statements):
    writer, reader = database.study(), database.study()
    trial = claim(writer)
    assert reader.read().history[0].why["reason"] == "Because."
    writer.finish(complete(trial))
    del statements[:]
    now = reader.read().history[0]
    assert (now.state, now.why["reason"]) == ("complete", "Because.")
    assert reads(statements) == (1, 0)


def test_a_read_asks_only_for_what_changed(database):
    writer, reader = database.study(), database.study()
    trials = [claim(writer, k / 100) for k in range(30)]
    reader.read()
    fetched = []

    def note(connection, cursor, statement, parameters, context, executemany):
        if "FROM boca_trials" in statement and "boca_trials.x" in statement:
            fetched.append(parameters)

    writer.finish(complete(trials[7]))
    claim(writer)
    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        before = reader.read().event
        reader.read()
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    since = [max(p.values() if isinstance(p, dict) else p) for p in fetched]
    assert since == [30, before]
