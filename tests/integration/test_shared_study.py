"""Many processes on one study: no number twice, no gap, no result lost, no money spent twice, and an end for all."""

from __future__ import annotations

import math
import os
from collections import Counter
from dataclasses import dataclass

import pytest

import boca
from boca import Float, Optimizer, Problem, RandomSearch, Space, Suggestion, targets
from boca.study.storage import Lease
from support.places import together

SPACE = Space(a=Float(0, 1), b=Float(-5, 5))
FIDELITY = Space(n=Float(0.1, 1))


def price(z):
    return z["n"]


PROBLEM = Problem(SPACE, FIDELITY, cost=price)


def objective(x, z):
    return x["a"] * x["b"] + z["n"]


@dataclass(frozen=True)
class Anywhere:
    """A random x at a random z, so that what is left of the money is never a round sum."""

    def suggest(self, problem, history, budget, rng):
        x, z = (s.from_unit(s.snap(rng.random((1, len(s))))[0]) for s in (problem.space, problem.fidelity))
        return Suggestion(x, z, {"reason": "Anywhere will do.", "phase": "start"})


def drives(k, url, strategy, budget):
    """Run the study to its end as one of many, and return the numbers of the trials that were evaluated here."""
    mine = []
    result = boca.maximize(
        objective,
        SPACE,
        FIDELITY,
        cost=price,
        budget=budget,
        strategy=strategy,
        seed=0,
        storage=url,
        callbacks=lambda optimizer, trial: mine.append(trial.number),
    )
    return mine, result.spent, len(result.history)


def asks_and_tells(k, url, strategy, budget):
    """The same by hand, several at a time and told in another order."""
    opt = Optimizer(PROBLEM, budget=budget, strategy=strategy, seed=0, storage=url)
    mine = []
    while trials := opt.ask(1 + k % 3):
        for trial in reversed(trials):
            opt.tell(trial, objective(trial.x, trial.z))
            mine.append(trial.number)
    spent, count = opt.spent, len(opt.history)
    opt.storage.close()
    return mine, spent, count


def check(database, shares, strategy, budget):
    """Hold the study against what every process says that it did."""
    opt = database.optimizer(PROBLEM, budget=budget, strategy=strategy, seed=0)
    history = opt.history
    assert [trial.number for trial in history] == list(range(len(history)))
    assert Counter(number for mine, *_ in shares for number in mine) == Counter(range(len(history)))
    for trial in history:
        assert (trial.state, trial.attempt) == ("complete", 0)
        assert trial.value == objective(trial.x, trial.z)
        assert trial.cost == price(trial.z)
    assert opt.spent == math.fsum(trial.cost for trial in history) <= opt.budget.total * (1 + 1e-12)
    assert opt.budget.left < 1.0 + 1e-9  # the next one did not fit
    events = [trial.asked for trial in history] + [trial.told for trial in history]
    assert sorted(events) == list(range(1, 2 * len(history) + 1))
    assert len({(trial.x["a"], trial.x["b"]) for trial in history}) == len(history)  # nobody had the same idea
    return history


@pytest.mark.parametrize(
    ("processes", "trials"),
    [(2, 80), (8, 48), *(pytest.param(n, 200 * n, marks=pytest.mark.faults) for n in (2, 8))],
)
def test_processes_that_drive_one_study_share_its_trials(database, processes, trials):
    shares = together(processes, drives, database.url, RandomSearch(), targets(trials), timeout=1500.0)
    history = check(database, shares, RandomSearch(), targets(trials))
    assert len(history) == trials
    assert sum(bool(mine) for mine, *_ in shares) > 1
    assert {(spent, count) for _, spent, count in shares} == {(trials, trials)}  # each came back when all was done


@pytest.mark.parametrize("work", [drives, asks_and_tells])
def test_the_budget_is_not_overshot_by_many_who_look_at_it_at_once(database, work):
    shares = together(3, work, database.url, Anywhere(), targets(12))
    check(database, shares, Anywhere(), targets(12))


def test_a_point_in_the_queue_is_run_once_by_one_of_many(database):
    opt = database.optimizer(PROBLEM, budget=targets(16), strategy=RandomSearch(), seed=0)
    for k in range(12):
        opt.enqueue({"a": k / 100, "b": 0.0})
    shares = together(4, drives, database.url, RandomSearch(), targets(16))
    history = check(database, shares, RandomSearch(), targets(16))
    queued = [trial.x["a"] for trial in history if trial.phase == "queued"]
    assert sorted(queued) == [k / 100 for k in range(12)]
    assert opt.storage.read().queue == ()


def claims(k, url, count):
    """Claim and finish so many trials, as fast as it goes."""
    opt = Optimizer(PROBLEM, budget=None, strategy=RandomSearch(), seed=0, storage=url)
    lease = Lease()
    mine = []
    for _ in range(count):
        trial = opt.ask(lease=lease)
        assert opt.tell(trial, objective(trial.x, trial.z)).number == trial.number
        mine.append(trial.number)
    opt.storage.close()
    return mine, os.getpid()


@pytest.mark.parametrize(
    ("processes", "count"),
    [(16, 2), pytest.param(16, 200, marks=pytest.mark.faults)],
    ids=["few", "many"],
)
def test_sixteen_that_claim_as_fast_as_they_can(database, processes, count):
    shares = together(processes, claims, database.url, count, timeout=1500.0)
    opt = database.optimizer(PROBLEM, budget=None, strategy=RandomSearch(), seed=0)
    assert [trial.number for trial in opt.history] == list(range(processes * count))
    assert Counter(number for mine, _ in shares for number in mine) == Counter(range(processes * count))
    assert all(trial.value == objective(trial.x, trial.z) for trial in opt.history)
    assert len({pid for _, pid in shares}) == processes
    assert opt.storage.read().event == 2 * processes * count


# Overtaken ------------------------------------------------------------------------------------------------------------

MEANWHILE = []  # what others do while one thinks


@dataclass(frozen=True)
class Thinker:
    """A strategy that takes its time: others come before it, with another idea or with the same."""

    def suggest(self, problem, history, budget, rng):
        others, idea = MEANWHILE.pop() if MEANWHILE else (lambda: None, 0.0)
        later, MEANWHILE[:] = MEANWHILE[:], []  # they themselves are not overtaken
        others()
        MEANWHILE[:] = later
        b = problem.space["b"].from_unit((rng.random() + idea) % 1.0)
        return Suggestion({"a": 0.5, "b": b}, {"n": 1.0}, {"reason": "Thought over.", "phase": "start"})


@pytest.fixture
def two(database):
    """Two optimisers of a study with money for five trials; the second claims while the first one thinks."""
    del MEANWHILE[:]
    yield [database.optimizer(PROBLEM, budget=targets(5), strategy=Thinker(), seed=0) for _ in range(2)]
    assert not MEANWHILE


def overtake(other, times, idea):
    """Let the other one claim so often in between, with its own idea; and return what it has claimed."""
    claimed = []
    MEANWHILE.extend([(lambda: claimed.append(other.ask()), idea)] * times)
    return claimed


def test_who_is_overtaken_again_and_again_gets_a_trial_all_the_same(two):
    slow, quick = two
    theirs = overtake(quick, 4, idea=0.3)
    trial = slow.ask()
    assert [t.number for t in theirs] == [0, 1, 2, 3]
    assert trial.number == 4
    assert slow.ask() is None
    assert slow.budget.left == 0.0


@pytest.mark.parametrize("before", [1, 2])
def test_who_is_overtaken_by_the_last_money_does_not_overshoot_it(two, before):
    """The claim that does not wait for a quiet moment any more counts the money again."""
    slow, quick = two
    quick.ask(before)
    overtake(quick, 5 - before, idea=0.3)
    assert slow.ask() is None
    assert (len(slow.history), slow.budget.left) == (5, 0.0)


def test_who_is_overtaken_by_somebody_with_the_same_idea_has_another(two):
    slow, quick = two
    theirs = overtake(quick, 4, idea=0.0)
    trial = slow.ask()
    assert trial.number == 4
    assert len({t.x["b"] for t in (*theirs, trial)}) == 5
