"""Trials chosen before a worker is free: what they read, when they are discarded, that each can be replayed."""

from __future__ import annotations

import pytest

import boca
from boca import Optimizer, RandomSearch, targets
from boca.study.storage import Lease
from study.test_batch import PROBLEM, as_stored, f, made_again, study


def take(opt, ahead):
    return ahead.take(Lease(), lambda trial: None)


def tell(opt, trial):
    opt.tell(trial, f(trial))


def test_what_waits_counts_as_running_and_every_choice_can_be_made_again():
    opt = study(running=2)
    ahead = opt.ahead()
    trials = []
    for _ in range(3):
        while len(ahead) < 4:
            assert ahead.prepare(4)
        tell(opt, opt.running[0])  # what is told since neither enters nor invalidates a choice
        trials += [take(opt, ahead) for _ in range(3)]
    assert ahead.discarded == 0
    assert [t.number for t in trials] == list(range(trials[0].number, trials[0].number + 9))
    points = {(tuple(t.x.items()), tuple(t.z.items())) for t in trials}
    assert len(points) == 9
    for trial in trials:
        assert set(trial.pending) == {
            t.number for t in opt.history[: trial.number] if t.told is None or t.told > trial.seen
        }
        again = made_again(opt, trial)
        assert (again.x, again.z) == (trial.x, trial.z)
        assert as_stored(again.why) == trial.why


def test_a_strategy_that_shares_nothing_chooses_each_from_what_was_told_last():
    opt = study(strategy=RandomSearch())
    ahead = opt.ahead()
    assert ahead.prepare(4)
    tell(opt, opt.ask())  # takes the number
    assert take(opt, ahead) is None
    assert ahead.discarded == 1
    assert ahead.prepare(4)
    assert ahead.prepare(4)
    first, second = take(opt, ahead), take(opt, ahead)
    assert second.pending == (first.number,)


def test_a_trial_of_another_driver_takes_the_number():
    opt = study()
    ahead = opt.ahead()
    assert ahead.prepare(2)
    assert ahead.prepare(2)
    other = opt.ask()
    assert take(opt, ahead) is None
    assert (len(ahead), ahead.discarded) == (0, 2)
    assert ahead.prepare(2)
    assert take(opt, ahead).number == other.number + 1


def test_a_point_that_the_user_queues_comes_first():
    opt = study()
    ahead = opt.ahead()
    assert ahead.prepare(2)
    opt.enqueue({"a": 0.5, "b": 0.5})
    assert take(opt, ahead) is None
    assert ahead.prepare(2)
    assert ahead.prepare(2)
    assert take(opt, ahead).phase == "queued"
    assert take(opt, ahead).phase == "model"


def test_what_is_not_affordable_any_more_is_discarded():
    opt = Optimizer(PROBLEM, budget=4.0, strategy=RandomSearch(), seed=0)
    running = opt.ask()
    ahead = opt.ahead()
    assert ahead.prepare(2)
    opt.tell(running, 1.0, cost=3.5)
    assert take(opt, ahead) is None
    assert len(opt.history) == 1


def test_nothing_is_asked_for_twice_where_nothing_is_affordable():
    opt = Optimizer(PROBLEM, budget=targets(1), strategy=RandomSearch(), seed=0)
    opt.ask()
    ahead = opt.ahead()
    asked = []
    opt.strategy.__class__.suggest, suggest = (lambda *a: asked.append(1) or suggest(*a)), RandomSearch.suggest
    try:
        assert not ahead.prepare(2)
        assert not ahead.prepare(2)
    finally:
        RandomSearch.suggest = suggest
    assert len(asked) == 1


def test_a_check_that_raises_leaves_nothing_behind():
    opt = study()
    ahead = opt.ahead()
    assert ahead.prepare(2)
    count = len(opt.history)

    def refuse(trial):
        raise boca.BocaError("no")

    with pytest.raises(boca.BocaError):
        ahead.take(Lease(), refuse)
    assert len(opt.history) == count
