"""The ledger: what is charged, what is left, what the budget covers, and the sentences about it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

import boca
from boca.accounting.ledger import Ledger
from boca.domain.budget import Limit, seconds, targets
from boca.domain.trial import History
from support.trials import made

SPACE = boca.Space(x=boca.Float(0.0, 1.0), y=boca.Float(0.0, 1.0))
SIZE = boca.Space(n=boca.Int(1, 10))
DECLARED = boca.Problem(SPACE, SIZE, cost=lambda z: 2.0 * z["n"])
MEASURED = boca.Problem(SPACE, SIZE)
TARGET, CHEAP = {"n": 10}, {"n": 1}


def trial(number, z, *, took=1.0, cost=None, state="complete", phase="start", overhead=0.0, why=None):
    is_running = state == "running"
    return made(
        number,
        {"x": 0.5, "y": 0.1 * number},
        z,
        took if cost is None else cost,
        {"phase": phase, **(why or {})},
        state,
        1.0 if state == "complete" else None,
        reason="it broke" if state == "failed" else None,
        seconds=None if is_running else took,
        overhead=overhead,
        asked=number,
        told=None if is_running else number + 1,
    )


def ledger(problem, trials, limit, **more):
    return Ledger(problem, History(trials), limit, **more)


# Charges --------------------------------------------------------------------------------------------------------------


def test_a_declared_cost_is_charged_for_what_has_finished_and_reserved_for_what_is_running():
    trials = [
        trial(0, CHEAP, cost=2.0),
        trial(1, TARGET, cost=20.0, state="failed"),
        trial(2, TARGET, cost=20.0, state="running"),
        trial(3, TARGET, cost=20.0, phase="added"),
    ]
    books = ledger(DECLARED, trials, targets(3))
    assert [books.charge(t) for t in trials] == [2.0, 20.0, 0.0, 0.0]
    assert (books.spent, books.reserved, books.total, books.left) == (22.0, 20.0, 60.0, 18.0)
    assert (books.unit, books.is_exact, books.counts_seconds) == ("cost", True, False)
    assert books.affords({"n": 9})
    assert not books.affords(TARGET)


def test_a_budget_in_seconds_charges_evaluations_and_the_time_to_choose_them():
    trials = [trial(0, TARGET, took=5.0, cost=20.0, overhead=1.5), trial(1, TARGET, took=7.0, phase="added")]
    books = ledger(DECLARED, trials, seconds(60.0))
    assert books.spent == 6.5
    assert books.total == 60.0
    assert (books.unit, books.is_exact) == ("seconds", False)


def test_without_a_budget_everything_is_affordable():
    books = ledger(DECLARED, [trial(0, TARGET, cost=20.0)], None)
    assert books.total == books.left == math.inf
    assert books.affords(TARGET)
    assert books.budget.start == 3 * 20.0  # a target per dimension, and one


def test_before_the_first_result_seconds_are_unknown_and_the_start_is_open():
    running = [trial(k, TARGET, state="running") for k in range(3)]
    books = ledger(MEASURED, running, seconds(60.0))
    assert books.reserved is None
    assert books.target is None
    assert books.spent == 0.0
    assert math.isinf(books.budget.start)
    assert books.affords(TARGET)
    many = [trial(k, TARGET, state="running") for k in range(32)]
    assert not ledger(MEASURED, many, seconds(60.0)).affords(TARGET)


def test_failures_alone_use_up_a_budget_in_seconds():
    failed = [trial(0, TARGET, took=61.0, state="failed")]
    assert not ledger(MEASURED, failed, seconds(60.0)).affords(CHEAP)


def test_the_start_is_a_tenth_of_the_budget_with_which_the_study_was_created():
    assert ledger(DECLARED, [], targets(10)).budget.start == pytest.approx(20.0)
    assert ledger(DECLARED, [], targets(30), first=targets(10)).budget.start == pytest.approx(20.0)


def test_a_learned_cost_covers_one_target_until_the_first_was_run():
    cheap = [trial(k, CHEAP, took=100.0) for k in range(4)]
    books = ledger(MEASURED, cheap, targets(0.5))
    assert books.total == pytest.approx(max(books.spent + 0.5 * books.costs.target, 0.5 * books.costs.target))
    tried = ledger(MEASURED, [*cheap, trial(4, TARGET, took=1000.0)], targets(0.5))
    assert tried.total == pytest.approx(0.5 * tried.costs.target)


def test_the_budget_of_a_strategy_is_in_cost_units_also_if_it_was_given_in_seconds():
    trials = [trial(k, TARGET, took=10.0, cost=20.0) for k in range(5)]
    books = ledger(DECLARED, trials, seconds(100.0))
    assert books.budget.total / books.budget.spent == pytest.approx(books.total / books.spent)
    assert 60.0 < books.budget.spent < 100.0  # less than five targets of 20 units: a slow query is the measure


# Words ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "limit", "words"),
    [
        (DECLARED, targets(25), "2 of 25 target evaluations (33.8 s of evaluation)"),
        (DECLARED, Limit(5000.0, "cost"), "40 of 5,000 cost units (33.8 s of evaluation)"),
        (DECLARED, None, "40 cost units (33.8 s of evaluation)"),
        (DECLARED, seconds(600.0), "34.3 of 600 s"),
        (MEASURED, Limit(600.0, "cost"), "33.8 of 600 s"),
        (MEASURED, None, "33.8 s"),
    ],
)
def test_what_is_spent_has_a_unit_and_is_a_share_of_the_budget(problem, limit, words):
    declared = problem.has_declared_cost
    trials = [trial(k, TARGET, took=16.90001, cost=20.0 if declared else 16.90001, overhead=0.25) for k in range(2)]
    assert ledger(problem, trials, limit).spent_in_words == words


def test_nothing_is_spent_before_the_first_result():
    assert ledger(MEASURED, [], targets(25)).spent_in_words == "0 of 25 target evaluations"
    assert ledger(MEASURED, [], seconds(9.0)).spent_in_words == "0 of 9 s"


def test_a_budget_below_one_target_is_said_with_both_amounts():
    (said,) = ledger(DECLARED, [], targets(0.8)).warnings(queued=0)
    assert "16 cost units" in said
    assert "20 cost units" in said


def test_results_without_one_at_the_target_are_said():
    (said,) = ledger(DECLARED, [trial(0, CHEAP, cost=2.0)], targets(3)).warnings(queued=0)
    assert "Nothing was completed at the target" in said
    assert ledger(DECLARED, [trial(0, TARGET, cost=20.0)], targets(3)).warnings(queued=0) == []


def test_an_overshoot_is_said_by_its_amount():
    trials = [trial(k, TARGET, took=40.0, cost=20.0) for k in range(2)]
    (said,) = ledger(DECLARED, trials, seconds(60.0)).warnings(queued=0)
    assert "20 s more than the budget of 60 s" in said


def test_failures_queued_points_and_the_switched_off_fidelities_are_said():
    chosen = trial(0, TARGET, cost=20.0, phase="model", why={"guard": 0.4321})
    books = ledger(DECLARED, [chosen, trial(1, TARGET, cost=20.0, state="failed")], targets(9))
    guard, failed = books.warnings(queued=0)
    assert "0.43 nats" in guard
    assert failed.startswith("1 of 2 trials failed")
    assert failed.endswith("it broke")
    assert books.warnings(queued=1)[-1].startswith("1 queued point has")
    assert books.warnings(queued=3)[-1].startswith("3 queued points have")


def test_a_trial_that_was_not_charged_for_is_worth_its_cost_all_the_same():
    imported = trial(0, TARGET, cost=20.0, phase="added")
    books = ledger(DECLARED, [imported], targets(3))
    assert (books.charge(imported), books.worth(imported)) == (0.0, 20.0)
    assert books.worth(replace(imported, cost=7.0)) == 7.0
