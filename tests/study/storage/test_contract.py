"""What every storage does: one suite for memory, SQLite and PostgreSQL.

`place.study()` opens one more handle on the same study, as another process would.
"""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import sqlalchemy as sa

from boca.domain.errors import InvalidInput, InvalidTrial
from boca.domain.observation import Observation
from boca.domain.runs import RunEvent
from boca.domain.trial import Trial
from boca.study.storage import Lease, Owner, Report
from support.trials import made as trial_of

DEAD = replace(Owner.me(), started="in another life")
WHY = {"reason": "Because.", "phase": "start"}


def draft(a=0.5, **more):
    return trial_of(**{"number": 0, "x": {"a": a}, "z": {"n": 1.0}, "cost": 1.0, "why": WHY} | more)


def claim(study, a=0.5, *, lease=None, **more):
    trial = study.claim(draft(a, seen=study.read().event, **more), lease=lease)
    assert trial is not None
    return trial


def complete(trial, value=1.0, **more):
    noise = more.pop("noise", None)
    return replace(trial, **more).completed(value, noise=noise)


def failed(trial, reason="It did not work.", **more):
    return replace(trial, state="failed", reason=reason, **more)


def seen(study):
    """Everything that a reader sees, the reasons included."""
    now = study.read()
    return [everything(trial) for trial in now.history], now.event, now.queue


def everything(trial):
    """All that is stored of a trial but its clock, which the tests of attempts read."""
    return {name: value for name, value in trial.to_json().items() if name not in ("began", "ended")}


# Claims ---------------------------------------------------------------------------------------------------------------


def test_a_new_study_is_empty(place):
    now = place.study().read()
    assert (len(now.history), now.event, now.queue) == (0, 0, ())


def test_numbers_have_no_gap_whoever_claims_or_adds(place):
    one, other = place.study(), place.study()
    stored = [claim(one, 0.1), claim(other, 0.2), other.add(complete(draft(0.3))), one.add(complete(draft(0.4)))]
    stored.append(claim(other, 0.5))
    assert [trial.number for trial in stored] == [0, 1, 2, 3, 4]
    assert [trial.x["a"] for trial in stored] == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert seen(one) == seen(other)
    assert list(one.read().history) == stored


def test_what_a_claim_returns_is_what_is_stored(place):
    study = place.study()
    trial = claim(study, 0.25, overhead=0.125)
    assert (trial.number, trial.state, trial.attempt, trial.asked, trial.told) == (0, "running", 0, 1, None)
    assert (trial.x, trial.z, trial.cost, trial.why, trial.overhead) == ({"a": 0.25}, {"n": 1.0}, 1.0, WHY, 0.125)
    assert everything(place.study().read().history[0]) == everything(trial)


@pytest.mark.parametrize("change", ["claim", "finish", "add", "again", "take_over"])
def test_a_claim_on_what_is_no_longer_true_is_refused_and_stores_nothing(place, change):
    one, other = place.study(), place.study()
    lease = Lease()
    trial = claim(one, lease=Lease(owner=DEAD))
    before = one.read().event
    _ = {
        "claim": lambda: claim(other),
        "finish": lambda: other.finish(complete(trial)),
        "add": lambda: other.add(complete(draft())),
        "again": lambda: other.retry(trial, lease),
        "take_over": lambda: other.take_over(lease, max_retries=2),
    }[change]()
    now = seen(other)
    assert one.claim(draft(0.75, seen=before)) is None
    assert seen(one) == seen(other) == now
    assert one.claim(draft(0.75, seen=one.read().event)) is not None


def test_a_claim_that_need_not_be_up_to_date_is_decided_on_the_history_of_that_moment(place):
    one, other = place.study(), place.study()
    before = one.read().event
    claim(other, 0.1)
    other.finish(complete(claim(other, 0.2), 7.0))
    asked = []

    def affords(answer):
        return lambda history: asked.append([(t.x["a"], t.state, t.value) for t in history]) or answer

    now = seen(other)
    assert one.claim(draft(0.75, seen=before), affords=affords(False)) is None
    assert seen(one) == seen(other) == now
    trial = one.claim(draft(0.75, seen=before), affords=affords(True))
    assert (trial.number, trial.x["a"], trial.asked) == (2, 0.75, 4)
    assert asked == [[(0.1, "running", None), (0.2, "complete", 7.0)]] * 2


def test_an_error_while_the_money_is_counted_stores_nothing(place):
    study = place.study()
    claim(study)
    now = seen(study)
    with pytest.raises(ZeroDivisionError):
        study.claim(draft(seen=0), affords=lambda history: 1 / 0)
    assert seen(study) == now
    assert claim(study).number == 1


def test_events_have_one_strictly_increasing_order(place):
    study, lease = place.study(), Lease()
    events = [study.read().event]

    def happened(trial, event):
        assert event == study.read().event == place.study().read().event
        events.append(event)
        return trial

    first = claim(study, lease=Lease(owner=DEAD))
    happened(first, first.asked)
    second = claim(study, lease=lease)
    happened(second, second.asked)
    added = study.add(complete(draft()))
    happened(added, added.asked)
    assert added.told == added.asked
    (first,) = study.take_over(lease, max_retries=2)
    events.append(study.read().event)
    second = study.retry(second, lease)
    events.append(study.read().event)
    for trial in (complete(second), failed(first)):
        done = study.finish(trial)
        happened(done, done.told)
    assert events == sorted(set(events))
    assert [trial.number for trial in study.read().history.finished] == [2, 1, 0]


# The queue ------------------------------------------------------------------------------------------------------------


def test_the_queue_keeps_its_order_and_its_doubles_for_everybody(place):
    one, other = place.study(), place.study()
    for k, study in zip((3, 1, 2, 1), itertools.cycle((one, other))):
        study.enqueue({"a": k / 10}, {"n": 0.5})
    queue = one.read().queue
    assert [(queued.x, queued.z) for queued in queue] == [({"a": a}, {"n": 0.5}) for a in (0.3, 0.1, 0.2, 0.1)]
    assert len({queued.id for queued in queue}) == 4
    assert other.read().queue == queue


def test_a_queued_point_has_one_taker(place):
    one, other = place.study(), place.study()
    one.enqueue({"a": 0.1}, {"n": 1.0})
    one.enqueue({"a": 0.2}, {"n": 1.0})
    first, second = one.read().queue
    assert one.claim(draft(0.1, seen=0), queued=first).number == 0
    assert other.read().queue == (second,)
    now = seen(other)
    assert other.claim(draft(0.1, seen=1), queued=first) is None
    assert other.claim(draft(0.1, seen=0), queued=first, affords=lambda history: True) is None
    assert seen(one) == seen(other) == now
    assert other.claim(draft(0.2, seen=1), queued=second).number == 1
    assert one.read().queue == ()


def test_who_comes_late_for_a_queued_point_does_not_take_the_next_one(place):
    study = place.study()
    study.enqueue({"a": 0.1}, {"n": 1.0})
    (first,) = study.read().queue
    claim(study, 0.1)
    assert study.claim(draft(0.1, seen=1), queued=first).number == 1
    study.enqueue({"a": 0.2}, {"n": 1.0})
    assert study.claim(draft(0.1, seen=-1), queued=first, affords=lambda history: True) is None
    assert [queued.x for queued in study.read().queue] == [{"a": 0.2}]


def test_a_claim_that_is_refused_leaves_the_point_in_the_queue(place):
    study = place.study()
    study.enqueue({"a": 0.1}, {"n": 1.0})
    queue = study.read().queue
    claim(study)
    assert study.claim(draft(0.1, seen=0), queued=queue[0]) is None
    assert study.claim(draft(0.1, seen=0), queued=queue[0], affords=lambda history: False) is None
    assert study.read().queue == queue


def test_queueing_is_no_change_to_a_trial(place):
    study = place.study()
    study.enqueue({"a": 0.1}, {"n": 1.0})
    assert study.read().event == 0
    assert study.claim(draft(seen=0)) is not None


# Results --------------------------------------------------------------------------------------------------------------


def test_a_result_is_there_for_everybody_when_the_call_returns(place):
    one, other = place.study(), place.study()
    first, second = claim(one, 0.1), claim(one, 0.2)
    told = one.finish(complete(second, -2.5, noise=0.25, seconds=3.5, cost=0.75, output="epoch 1\n"))
    lost = other.finish(failed(first, "Out of memory.", seconds=1.0))
    assert (told.number, told.state, told.value, told.told) == (1, "complete", -2.5, 3)
    assert (lost.number, lost.state, lost.value, lost.reason, lost.told) == (0, "failed", None, "Out of memory.", 4)
    for study in (one, other, place.study()):
        assert [everything(t) for t in study.read().history] == [everything(lost), everything(told)]
    assert told.output == "epoch 1\n"


def test_a_trial_has_one_result(place):
    one, other = place.study(), place.study()
    trial, bad = claim(one, 0.1), claim(one, 0.2)
    one.finish(complete(trial, 1.0))
    one.finish(failed(bad))
    now = seen(one)
    for again in (complete(trial, 2.0), complete(trial, 1.0), failed(trial)):
        with pytest.raises(InvalidTrial, match=r"Trial 0 .*\(value 1\.0\).*opt\.add"):
            other.finish(again)
    for again in (complete(bad, 2.0), failed(bad)):
        with pytest.raises(InvalidTrial, match=r"Trial 1 .*\(failure 'It did.*opt\.add"):
            other.finish(again)
    assert seen(other) == seen(one) == now


def test_only_the_last_attempt_may_bring_a_result(place):
    one, other = place.study(), place.study()
    lease = Lease()
    first = claim(one, lease=Lease(owner=DEAD))
    (second,) = other.take_over(lease, max_retries=2)
    now = seen(one)
    for late in (complete(first), failed(first)):
        with pytest.raises(InvalidTrial, match=r"attempt 1 .* only attempt 2 .*opt\.add"):
            one.finish(late)
    assert seen(one) == now
    assert other.finish(complete(second, 3.0)).value == 3.0


def test_an_added_result_is_nobodys_trial(place):
    study = place.study()
    claim(study)
    added = study.add(complete(draft(0.25, why={"reason": "ImportedResult.", "phase": "added"}), 4.0))
    assert (added.number, added.state, added.value, added.added) == (1, "complete", 4.0, True)
    assert added.asked == added.told == study.read().event == 2
    assert not study.is_held_by_others(Lease())
    assert list(study.take_over(Lease(), max_retries=2)) == []
    with pytest.raises(InvalidTrial, match="already has its result"):
        study.finish(complete(added, 5.0))


# Leases ---------------------------------------------------------------------------------------------------------------


def test_the_trial_of_a_dead_owner_is_taken_over_at_once(place):
    one, other = place.study(), place.study()
    first = claim(one, lease=Lease(owner=DEAD, seconds=3600.0))
    lease = Lease()
    (taken,) = other.take_over(lease, max_retries=2)
    assert everything(taken) == everything(first) | {"attempt": 1}
    assert everything(one.read().history[0]) == everything(taken)
    assert one.read().event == 2
    assert list(one.take_over(Lease(), max_retries=2)) == []  # whoever has it now lives
    assert one.is_held_by_others(Lease())
    assert not one.is_held_by_others(lease)


def test_a_lease_that_has_ended_is_taken_over_even_of_another_machine(place):
    study = place.study()
    elsewhere = replace(Owner.me(), machine="elsewhere")
    claim(study, 0.1, lease=Lease(owner=elsewhere, seconds=-1.0))
    claim(study, 0.2, lease=Lease(owner=elsewhere, seconds=3600.0))
    claim(study, 0.3, lease=Lease(seconds=-1.0))
    taken = study.take_over(Lease(), max_retries=2)
    assert [(trial.number, trial.attempt) for trial in taken] == [(0, 1), (2, 1)]


def test_what_needs_no_taking_over_is_left_alone(place):
    study, lease = place.study(), Lease()
    claim(study, 0.1)  # without a lease: its result may come in two days
    claim(study, 0.2, lease=Lease())  # another driver, which lives
    claim(study, 0.3, lease=lease)
    claim(study, 0.4, lease=replace(lease, seconds=-1.0))  # mine, late with the renewal: I know best whether I live
    study.finish(complete(claim(study, 0.5, lease=Lease(owner=DEAD))))
    now = seen(study)
    assert list(study.take_over(lease, max_retries=2)) == []
    assert seen(study) == now


def test_two_that_come_at_once_do_not_both_take_over(place):
    one, other = place.study(), place.study()
    for a in (0.1, 0.2, 0.3):
        claim(one, a, lease=Lease(owner=DEAD))
    taken = [study.take_over(Lease(), max_retries=2) for study in (one, other)]
    assert [[trial.number for trial in trials] for trials in taken] == [[0, 1, 2], []]


@pytest.mark.parametrize(("max_retries", "times"), [(0, "once"), (1, "2 times"), (3, "4 times")])
def test_a_trial_that_kills_whoever_has_it_fails_in_the_end(place, max_retries, times):
    study = place.study()
    other = claim(study, 0.9, lease=Lease())
    claim(study, 0.1, lease=Lease(owner=DEAD))
    for attempt in range(1, max_retries + 1):
        (taken,) = study.take_over(Lease(owner=DEAD), max_retries=max_retries)
        assert (taken.number, taken.attempt) == (1, attempt)
    assert list(study.take_over(Lease(), max_retries=max_retries)) == []
    dead = study.read().history[1]
    assert (dead.state, dead.value, dead.attempt) == ("failed", None, max_retries)
    assert dead.reason == f"The process that evaluated this trial died {times}."
    assert dead.told == study.read().event
    assert dead.why == WHY
    assert everything(study.read().history[0]) == everything(other)
    with pytest.raises(InvalidTrial, match="already has its result"):
        study.finish(complete(dead))


def test_another_attempt_is_begun_by_who_holds_the_trial_and_by_nobody_else(place):
    study, lease = place.study(), Lease()
    first = claim(study, lease=lease)
    second = study.retry(first, lease)
    assert everything(second) == everything(first) | {"attempt": 1}
    assert everything(place.study().read().history[0]) == everything(second)
    assert not study.is_held_by_others(lease)
    first, second = second, study.retry(replace(second, overhead=2.5), lease)  # what the attempts took so far
    assert everything(second) == everything(first) | {"attempt": 2, "overhead": 2.5}
    assert everything(place.study().read().history[0]) == everything(second)
    now = seen(study)
    with pytest.raises(InvalidTrial, match="handed out again"):
        study.retry(first, lease)
    assert seen(study) == now
    study.finish(complete(second))
    with pytest.raises(InvalidTrial, match="already has its result"):
        study.retry(second, lease)


def test_a_lease_that_is_renewed_does_not_end(place):
    study, lease = place.study(), Lease(seconds=-1.0)
    claim(study, 0.1, lease=lease)
    claim(study, 0.2, lease=lease)
    claim(study, 0.3, lease=Lease(seconds=-1.0))
    study.finish(complete(claim(study, 0.4, lease=lease)))
    now = study.read().event
    study.renew(replace(lease, seconds=60.0))
    assert study.read().event == now  # who holds a trial is no part of what happened
    assert [trial.number for trial in place.study().take_over(Lease(), max_retries=2)] == [2]


def test_what_is_released_is_taken_over_at_once_but_its_result_is_taken_until_then(place):
    study, lease = place.study(), Lease()
    claim(study, 0.1, lease=lease)
    second, third = claim(study, 0.2, lease=lease), claim(study, 0.3, lease=Lease())
    now = study.read().event
    study.release(lease)
    assert study.read().event == now
    study.finish(complete(second))
    assert [trial.number for trial in place.study().take_over(Lease(), max_retries=2)] == [0]
    study.finish(complete(third))


def test_what_is_released_uses_up_no_retry_however_often(place):
    """Whoever interrupts a long evaluation time and again has not seen it kill anybody."""
    study = place.study()
    lease = Lease()
    first = claim(study, lease=lease)
    for _ in range(3):
        study.release(lease)
        lease = Lease()
        (taken,) = study.take_over(lease, max_retries=0)
        assert everything(taken) == everything(first)
    assert everything(place.study().read().history[0]) == everything(first)
    study.renew(replace(lease, seconds=-1.0))  # the end of a lease, and no release
    assert list(study.take_over(Lease(), max_retries=0)) == []
    assert study.read().history[0].state == "failed"


def test_no_more_is_taken_over_than_is_wanted(place):
    study = place.study()
    for k in range(5):
        claim(study, k / 10, lease=Lease(owner=DEAD))
    taken = [study.take_over(Lease(), max_retries=2, limit=limit) for limit in (0, 1, 3, None)]
    assert [[trial.number for trial in trials] for trials in taken] == [[], [0], [1, 2, 3], [4]]


def test_what_somebody_holds_is_not_abandoned(place):
    study, lease = place.study(), Lease()
    mine = claim(study, 0.1, lease=lease)
    far = claim(study, 0.2, lease=Lease(owner=replace(Owner.me(), machine="elsewhere")))
    done = study.finish(complete(claim(study, 0.3)))
    now = seen(study)
    assert [study.hand_back(trial) for trial in (mine, far, done)] == [False] * 3
    assert list(study.take_over(lease, max_retries=2)) == list(study.take_over(Lease(), max_retries=2)) == []
    assert seen(study) == now
    assert study.finish(complete(mine)).attempt == 0


@pytest.mark.parametrize("lease", [None, Lease(owner=DEAD), Lease(seconds=-1.0)], ids=["by hand", "dead", "ended"])
def test_what_is_abandoned_is_tried_once_more_though_its_attempts_are_used_up(place, lease):
    study = place.study()
    first = claim(study, lease=lease)
    assert study.hand_back(first)
    assert study.read().event == first.asked
    assert study.is_held_by_others(Lease())
    (taken,) = study.take_over(Lease(), max_retries=0)
    assert everything(taken) == everything(first) | {"attempt": 1}
    with pytest.raises(InvalidTrial, match="handed out again"):  # somebody worked on it after all
        study.finish(complete(first))
    assert study.finish(complete(taken)).value == 1.0


def test_others_hold_what_they_have_claimed_until_its_result_comes(place):
    study, mine, theirs = place.study(), Lease(), Lease()
    claim(study, 0.1)
    claim(study, 0.2, lease=mine)
    assert not study.is_held_by_others(mine)
    trial = claim(study, 0.3, lease=theirs)
    assert study.is_held_by_others(mine)
    study.release(theirs)
    assert study.is_held_by_others(mine)  # somebody must take it over first
    study.finish(complete(trial))
    assert not study.is_held_by_others(mine)


# What is read ---------------------------------------------------------------------------------------------------------


def test_a_second_handle_sees_every_change_and_what_did_not_change_is_not_read_again(place):
    one, other = place.study(), place.study()
    lease = Lease()
    trials = [claim(one, k / 10, lease=Lease(owner=DEAD)) for k in range(4)]
    before = other.read()
    kept = [everything(trial) for trial in before.history]
    one.finish(complete(trials[1], 2.0))
    now = other.read()
    assert [new is old for new, old in zip(now.history, before.history, strict=True)] == [True, False, True, True]
    assert now.history[1].value == 2.0
    one.retry(trials[2], lease)
    claim(one, 0.9)
    later = other.read()
    assert [new is old for new, old in zip(later.history[:4], now.history, strict=True)] == [True, True, False, True]
    assert (later.history[2].attempt, len(later.history)) == (1, 5)
    assert seen(other) == seen(one)
    assert [everything(trial) for trial in before.history] == kept  # a moment that was read stays as it was
    assert other.read().history is other.read().history


def test_threads_that_share_a_handle_see_a_history_without_gap_or_double(place):
    study, writer = place.study(), place.study()
    over = threading.Event()
    found = []

    def watch():
        try:
            while not over.is_set():
                numbers = [trial.number for trial in study.read().history]
                assert numbers == list(range(len(numbers)))
        except Exception as error:
            found.append(error)

    def linger(*_):  # between what was read and what is made of it, other threads have their turn
        if threading.current_thread() is not threading.main_thread():
            time.sleep(0.002)

    threads = [threading.Thread(target=watch) for _ in range(4)]
    sa.event.listen(sa.Engine, "after_cursor_execute", linger)
    try:
        for thread in threads:
            thread.start()
        for k in range(20):
            claim(writer, k / 100)
    finally:
        over.set()
        for thread in threads:
            thread.join()
        sa.event.remove(sa.Engine, "after_cursor_execute", linger)
    assert not found
    assert seen(study) == seen(writer)


NUMBERS = [0.1, 1 / 3, -2.5e-17, 5e-324, 1.7976931348623157e308, -1e22, 123456789.12345679, 2.0**60, -1.0]
VALUES = [*NUMBERS, 0, 1, -7, 2**52, -(2**52), 10**30, True, False, None, "", "1", "null", "NaN"]
TEXTS = [
    "größer als 中文 𝄞 \N{PILE OF POO}",
    'a "b" \\ \n\t\r\x7f\x1b[0m',
    "e\u0301\u200b\u2028",
    " '; DROP TABLE boca_trials; --",
]


def test_points_and_reasons_come_back_exactly_in_value_and_type(place):
    study = place.study()
    point = {f"name {k}": value for k, value in enumerate([*VALUES, *TEXTS])} | dict.fromkeys(TEXTS, 1)
    why = WHY | {"deep": {"list": [*NUMBERS, [], {}, [None]], "text": TEXTS}}
    fidelity = dict(reversed(point.items()))
    study.enqueue(point, fidelity)
    claim(study, x=point, z=fidelity, why=why)
    now = place.study().read()
    for x, z in ((now.history[0].x, now.history[0].z), (now.queue[0].x, now.queue[0].z)):
        assert list(map(repr, x.items())) == list(map(repr, point.items()))  # the order is kept too
        assert list(map(repr, z.items())) == list(map(repr, fidelity.items()))
    assert repr(now.history[0].why) == repr(why)


def test_results_and_costs_come_back_to_the_last_bit(place):
    study = place.study()
    for number in NUMBERS:
        trial = claim(study, cost=abs(number), overhead=abs(number))
        study.finish(complete(trial, number, noise=abs(number), seconds=abs(number)))
    for stored, number in zip(place.study().read().history, NUMBERS, strict=True):
        assert repr(stored.value) == repr(number)
        for name in ("cost", "overhead", "noise", "seconds"):
            assert repr(getattr(stored, name)) == repr(abs(number))


@pytest.mark.parametrize(
    "text", [*TEXTS, "x" * 3_000_000, "ä𝄞\n" * 200_000], ids=["wide", "signs", "marks", "sql", "long", "wide and long"]
)
def test_texts_come_back_whatever_their_length(place, text):
    study = place.study()
    told, lost = claim(study), claim(study)
    study.finish(complete(told, output=text))
    study.finish(failed(lost, text, output=text))
    stored = place.study().read().history
    assert stored[0].output == stored[1].output == stored[1].reason == text


@pytest.mark.parametrize("text", ["a\x00b", "caf\udce9", "\ud834"], ids=["nul", "byte", "half"])
def test_a_result_is_not_lost_for_what_its_output_holds(place, text):
    """Programs print bytes that are no text; Python reads them as half characters."""
    study = place.study()
    told, lost = claim(study), claim(study)
    study.finish(complete(told, 2.0, output=f"before {text} after"))
    study.finish(failed(lost, f"before {text} after"))
    stored = place.study().read().history
    assert [trial.value for trial in stored] == [2.0, None]
    for kept in (stored[0].output, stored[1].reason):
        assert kept.startswith("before ")
        assert kept.endswith(" after")


# What is never stored -------------------------------------------------------------------------------------------------

NO_NUMBERS = [math.nan, math.inf, -math.inf]


def with_number(trial, name, number):
    """Return the trial as complete, with a number of its own or of its observation replaced."""
    if name in ("value", "noise"):
        return trial.completed(**{"value": 1.0, name: number})
    return replace(complete(trial), **{name: number})


@pytest.mark.parametrize("name", ["value", "noise", "seconds", "cost"])
def test_a_result_that_is_no_number_is_refused_and_changes_nothing(place, name):
    study = place.study()
    trial = claim(study, lease=Lease())
    now = seen(study)
    for number in NO_NUMBERS:
        bad = with_number(trial, name, number)
        with pytest.raises(InvalidInput, match=name):
            study.finish(bad)
        with pytest.raises(InvalidInput, match=name):
            study.add(bad)
    assert seen(study) == seen(place.study()) == now
    assert study.finish(complete(trial)).value == 1.0


@pytest.mark.parametrize("name", ["x", "z", "why", "cost", "overhead"])
def test_a_draft_with_what_is_no_number_is_refused_and_changes_nothing(place, name):
    study = place.study()
    study.enqueue({"a": 0.1}, {"n": 1.0})
    now = seen(study)
    (queued,) = study.read().queue
    for number in NO_NUMBERS:
        bad = {"x": {"a": number}, "z": {"n": number}, "why": WHY | {"deep": [{"b": number}]}}.get(name, number)
        with pytest.raises(InvalidInput, match=name):
            study.claim(draft(**{"seen": 0, name: bad}), queued=queued)
        if name in "xz":
            with pytest.raises(InvalidInput, match=name):
                study.enqueue(**{"x": {"a": 0.1}, "z": {"n": 1.0}} | {name: bad})
    assert seen(study) == seen(place.study()) == now


def test_reasons_that_are_no_json_are_refused_and_change_nothing(place):
    study = place.study()
    for bad in ({1, 2}, object(), 1j, b"bytes"):
        with pytest.raises(InvalidInput, match="why"):
            study.claim(draft(why=WHY | {"bad": bad}, seen=0))
    assert len(study.read().history) == 0


# Time -----------------------------------------------------------------------------------------------------------------


def test_a_lease_lasts_as_long_as_it_says(place):
    """On another machine only the clock can tell; here a process that lives keeps its trials."""
    study = place.study()
    claim(study, lease=Lease(seconds=0.5, owner=replace(Owner.me(), machine="elsewhere")))
    began = time.monotonic()
    while not (taken := study.take_over(Lease(), max_retries=2)):
        time.sleep(0.02)
    assert 0.3 < time.monotonic() - began < 30.0
    assert [trial.number for trial in taken] == [0]


def test_everything_that_is_stored_can_be_written_as_json(place):
    study = place.study()
    study.finish(complete(claim(study)))
    (trial,) = place.study().read().history
    assert Trial.from_json(json.loads(json.dumps(trial.to_json(), allow_nan=False))) == trial


# Imports and retries, whole and once ----------------------------------------------------------------------------------


def imported(a, value):
    return draft(a, why={"phase": "added", "reason": "Imported."}).completed(value)


def test_an_import_is_stored_whole_and_once(place):
    study = place.study()
    claim(study, 0.1)
    rows = [imported(0.1, 1.0), imported(0.2, 2.0), imported(0.2, 2.0), imported(0.2, 3.0)]
    stored = study.add_many(rows)
    assert [(t.number, t.value) for t in stored] == [(1, 1.0), (2, 2.0), (3, 2.0), (4, 3.0)]
    assert [t.number for t in study.add_many(rows)] == [1, 2, 3, 4]
    new = place.study().add_many([*rows, imported(0.2, 2.0)])[-1]  # measured a third time
    history = place.study().read().history
    assert [t.number for t in history] == list(range(6))
    assert [(t.asked, t.told) for t in history[1:]] == [(k, k) for k in range(2, 7)]
    assert everything(new) == everything(history[5])


def test_a_mistake_in_an_import_stores_nothing_of_it(place):
    study = place.study()
    with pytest.raises(InvalidInput):
        study.add_many([imported(0.1, 1.0), imported(0.2, math.inf)])
    assert len(study.read().history) == 0


def test_two_who_queue_what_is_not_queued_queue_it_once(place):
    study = place.study()
    points = [({"a": k / 10}, {"n": 1.0}) for k in range(5)]

    def missing(now):
        queued = [(q.x, q.z) for q in now.queue]
        return [point for point in points if point not in queued]

    gate = threading.Barrier(2)

    def queue_them(study):
        gate.wait(10)
        return study.enqueue_chosen(missing)

    with ThreadPoolExecutor(2) as pool:
        assert sum(pool.map(queue_them, [study, place.study()])) == 5
    assert len(study.read().queue) == 5


# Outcomes and notes ---------------------------------------------------------------------------------------------------


def test_every_outcome_of_a_trial_is_stored_in_its_order(place):
    one, other = place.study(), place.study()
    trial = claim(one)
    done = replace(trial, notes={"host": "n1", "curve": [1.0, None]}).observed(
        {"value": 1.5, "latency": 20.0, "size": 3.0}, noise={"latency": 0.5}
    )
    finished = other.finish(done)
    assert [o.outcome for o in finished.observations] == ["latency", "size", "value"]
    assert (finished.value, finished.outcomes, finished.noises) == (
        1.5,
        {"latency": 20.0, "size": 3.0},
        {"latency": 0.5},
    )
    assert finished.notes == {"host": "n1", "curve": [1.0, None]}
    assert seen(one) == seen(other)
    assert everything(place.study().read().history[0]) == everything(finished)


def test_a_complete_trial_may_lack_the_objective(place):
    study = place.study()
    finished = study.finish(claim(study).observed({"latency": 30.0}))
    assert (finished.state, finished.value) == ("complete", None)
    added = study.add(draft(0.7).observed({"latency": 3.0, "value": 1.0}))
    assert added.value == 1.0
    assert everything(place.study().read().history[0]) == everything(finished)


def test_notes_that_are_no_json_are_refused_and_change_nothing(place):
    study = place.study()
    trial = claim(study)
    with pytest.raises(InvalidInput, match="notes"):
        study.finish(replace(trial, notes={"bad": math.nan}).completed(1.0))
    assert study.read().history[0].state == "running"


# The clock ------------------------------------------------------------------------------------------------------------


def test_a_trial_says_when_and_where_it_ran(place):
    study, lease, before = place.study(), Lease(), time.time()
    claimed = claim(study, lease=lease, version="1.2")
    assert before <= claimed.began <= time.time()
    assert (claimed.ended, claimed.host, claimed.process) == (None, lease.owner.host, lease.owner.pid)
    done = study.finish(complete(replace(claimed, began=None, host="elsewhere"), worker="node:7"))
    for trial in (done, place.study().read().history[0]):
        assert (trial.began, trial.host, trial.process) == (claimed.began, lease.owner.host, lease.owner.pid)
        assert trial.began <= trial.ended <= time.time()
        assert (trial.worker, trial.version) == ("node:7", "1.2")
    assert study.attempts(0) == []


def test_a_trial_that_is_asked_by_hand_belongs_to_the_process_that_asked(place):
    trial = claim(place.study())
    assert (trial.host, trial.process) == (Owner.me().host, Owner.me().pid)


def test_an_imported_result_ran_nowhere(place):
    added = place.study().add(complete(draft(why=WHY | {"phase": "added"})))
    assert (added.began, added.ended, added.host, added.process) == (None, None, None, None)


def test_every_attempt_is_kept_with_its_end(place):
    study = place.study()
    dead = Lease(owner=replace(DEAD, pid=4711), seconds=3600.0)
    first = claim(study, lease=dead)
    (second,) = place.study().take_over(own := Lease(), max_retries=2)
    third = study.retry(second, own)
    study.release(own)
    (fourth,) = place.study().take_over(Lease(), max_retries=2)
    study.finish(complete(fourth))
    kept = study.attempts(0)
    assert [(a.attempt, a.ending) for a in kept] == [
        (0, "the driver died"), (1, "the worker died"), (2, "the driver stopped"),
    ]  # fmt: skip
    assert [a.began for a in kept] == [first.began, second.began, third.began]
    assert [a.process for a in kept] == [4711, own.owner.pid, own.owner.pid]
    assert kept[0].ended is None  # nothing was left that could notice
    assert all(a.began <= a.ended <= time.time() for a in kept[1:])
    last = place.study().read().history[0]
    assert last.attempt == 2
    assert last.began == fourth.began >= kept[-1].ended


def test_a_trial_that_is_given_up_has_an_end(place):
    claim(place.study(), lease=Lease(owner=DEAD, seconds=3600.0))
    assert place.study().take_over(Lease(), max_retries=0) == []
    (trial,) = place.study().read().history
    assert trial.state == "failed"
    assert trial.began <= trial.ended


# Runs that pass through steps -----------------------------------------------------------------------------------------

PLANNED = {"n": 9}


def reports(*steps, value=lambda step: 0.1 * step):
    return [Report(s, (Observation({"n": s}, value(s), 0.01, 0.5),)) for s in steps]


def running(study, *, lease=None, **more):
    return claim(study, z=PLANNED, lease=lease, **more)


def steps(trial):
    return [o.z["n"] for o in trial.observations]


def test_reports_are_events_that_every_process_sees(place):
    one, other = place.study(), place.study()
    trial = running(one)
    one.report(trial, reports(2))
    stored = one.report(trial, reports(3, 7))
    assert (steps(stored), stored.reached, [o.told for o in stored.observations]) == ([2, 3, 7], 7, [2, 3, 4])
    assert seen(one) == seen(other) == seen(place.study())
    assert everything(other.read().history[0]) == everything(stored)
    done = other.finish(replace(stored, state="complete"))
    assert (done.told, done.value, done.z, done.noise) == (5, 0.1 * 7, {"n": 7}, 0.01)
    assert everything(one.read().history[0]) == everything(done)


@pytest.mark.parametrize("step", [3, 2])
def test_a_step_that_does_not_rise_is_refused_and_stores_nothing(place, step):
    study = place.study()
    trial = running(study)
    study.report(trial, reports(3))
    now = seen(study)
    for given in (reports(step), reports(4, step)):
        with pytest.raises(InvalidInput, match=f"step {step}"):
            place.study().report(trial, given)
        assert seen(study) == seen(place.study()) == now


def test_a_report_of_a_finished_trial_or_of_another_attempt_is_refused(place):
    study, lease = place.study(), Lease()
    trial = running(study, lease=lease)
    study.report(trial, reports(3))
    again = study.retry(trial, lease)
    with pytest.raises(InvalidTrial, match="attempt 1"):
        study.report(trial, reports(4))
    with pytest.raises(InvalidTrial, match="attempt 1"):
        study.record(trial, RunEvent("checkpoint", 4, path="here"))
    study.finish(complete(again))
    now = seen(study)
    with pytest.raises(InvalidTrial, match="already has its result"):
        study.report(again, reports(4))
    with pytest.raises(InvalidTrial, match="already has its result"):
        study.record(again, RunEvent("stopped", 4, why={"reason": "Enough."}))
    assert seen(study) == now


def test_a_claim_is_not_invalidated_by_reports_checkpoints_and_stops_but_by_a_checkpoint_that_is_gone(place):
    one, other = place.study(), place.study()
    trial = running(one)
    before = one.read().event
    other.report(trial, reports(3))
    other.record(trial, RunEvent("checkpoint", 3, path="here", seconds=0.5))
    other.record(trial, RunEvent("stopped", 3, why={"reason": "Enough."}, seen=before + 1))
    assert one.read().event == before + 3
    assert one.claim(draft(0.75, seen=before)) is not None
    before = one.read().event
    other.record(trial, RunEvent("dropped", 3))
    assert one.claim(draft(0.85, seen=before)) is None


def test_what_happened_to_a_run_is_stored_with_it(place):
    study = place.study()
    trial = running(study)
    study.report(trial, reports(3))
    study.record(trial, RunEvent("checkpoint", 3, path="here", seconds=0.5))
    stopped = study.record(trial, RunEvent("stopped", 3, why={"reason": "Enough.", "mean": 0.25}, seen=2))
    assert (stopped.stop.why, stopped.stop.seen, stopped.stop.told) == ({"reason": "Enough.", "mean": 0.25}, 2, 4)
    study.finish(replace(stopped, state="complete"))
    study.record(trial, RunEvent("dropped", 3))
    (read,) = place.study().read().history
    assert [(e.kind, e.step, e.told) for e in read.events] == [
        ("checkpoint", 3, 3),
        ("stopped", 3, 4),
        ("dropped", 3, 6),
    ]
    assert (read.checkpoint, read.state) == (None, "complete")


@pytest.mark.parametrize("again", ["retry", "take_over", "released"])
def test_a_run_that_is_handed_out_again_goes_on_from_its_checkpoint(place, again):
    study, lease = place.study(), Lease()
    first = Lease(owner=DEAD) if again == "take_over" else Lease()
    trial = running(study, lease=first)
    study.report(trial, reports(2, 3))
    study.record(trial, RunEvent("checkpoint", 2, path="here"))
    study.report(trial, reports(4))
    if again == "retry":
        taken = study.retry(trial, first)
    else:
        if again == "released":
            study.release(first)
        (taken,) = study.take_over(lease, max_retries=2)
    assert (taken.start, taken.reached, taken.attempt) == (2, 2, int(again != "released"))
    assert steps(taken) == [2, 3, 4]
    assert everything(place.study().read().history[0]) == everything(taken)
    with pytest.raises(InvalidInput, match="continues from step 2"):
        study.report(taken, reports(2))
    study.report(taken, [Report(3, ())])  # it was reported before
    done = study.report(taken, reports(5))
    assert (steps(done), done.reached) == ([2, 3, 4, 5], 5)


def test_a_run_without_a_checkpoint_starts_again(place):
    study, lease = place.study(), Lease()
    trial = running(study, lease=lease)
    study.report(trial, reports(2))
    again = study.retry(trial, lease)
    assert (again.start, again.reached, steps(again)) == (0, 0, [2])


def test_a_failed_run_keeps_its_reports(place):
    study = place.study()
    trial = running(study)
    stored = study.report(trial, reports(2, 3))
    lost = study.finish(failed(stored))
    assert (steps(lost), lost.value, lost.z) == ([2, 3], None, {"n": 3})
    assert everything(place.study().read().history[0]) == everything(lost)


def test_a_trial_that_continues_another_says_so(place):
    study = place.study()
    event = RunEvent("continued", 3, path="here")
    trial = running(study, continues=0, start=3, reached=3, events=(event,))
    (read,) = place.study().read().history
    assert (read.continues, read.start, read.reached, read.origin, read.checkpoint) == (0, 3, 3, 3, "here")
    assert read.events[0].told == trial.asked
    assert everything(read) == everything(trial)


def test_a_report_that_cannot_be_stored_changes_nothing(place):
    study = place.study()
    trial = running(study)
    now = seen(study)
    for bad in (math.nan, math.inf):
        with pytest.raises(InvalidInput, match="value is"):
            study.report(trial, reports(2, 3, value=lambda s, bad=bad: bad if s == 3 else 0.5))
    assert seen(study) == seen(place.study()) == now
