"""Budgets: as a user gives them, and as a strategy sees them."""

from __future__ import annotations

import dataclasses
import math

import pytest

import boca
from boca import Budget, seconds, targets
from boca.domain.budget import Limit, limit_of
from boca.domain.errors import Doubtful, InvalidInput


@pytest.mark.parametrize("make", [targets, seconds])
@pytest.mark.parametrize("amount", [0, -1, math.nan, math.inf, "10", None, True])
def test_a_budget_must_be_positive_and_finite(make, amount):
    with pytest.raises(InvalidInput, match="budget must be"):
        make(amount)


def test_capitals_are_equal_by_amount_and_unit():
    assert targets(30) == targets(30.0)
    assert targets(30) != seconds(30)
    assert targets(30) != targets(31)
    assert targets(30).amount == 30.0


def test_what_is_left_is_what_is_neither_spent_nor_reserved():
    budget = Budget(total=10.0, start=1.0, spent=3.0, reserved=2.0)
    assert budget.left == 5.0
    assert Budget(10.0, 1.0).left == 10.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.spent = 0.0


def test_a_query_that_costs_all_that_is_left_is_affordable_and_a_dearer_one_is_not():
    budget = Budget(total=1.0, start=0.1, spent=math.fsum([0.1] * 7))
    assert budget.affords(0.3)  # 1 - 0.7 is less than 0.3 in floating point
    assert not budget.affords(0.3 + 1e-9)
    assert Budget(math.inf, 1.0).affords(1e300)


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (20, ["budget=20 ", "buys 0.2 of a target evaluation", "costs 100", "boca.targets(20)"]),
        (199.0, ["buys 1.99", "boca.targets(199)"]),
        (1, ["buys 0.01", "boca.targets(30)"]),
    ],
)
def test_a_number_that_buys_less_than_two_target_evaluations_warns_at_once(amount, words):
    problem = boca.Problem(boca.Space(a=(0.0, 1.0)), boca.Space(n=(1, 100)), cost=lambda z: z["n"])
    with pytest.warns(Doubtful) as caught:
        opt = boca.Optimizer(problem, budget=amount)
    assert opt.limit == Limit(amount, "cost")
    (warning,) = caught
    assert warning.filename == __file__
    assert [word for word in words if word not in str(warning.message)] == []
    with pytest.warns(Doubtful) as caught:
        boca.maximize(lambda x, z: 1.0, problem.space, problem.fidelity, cost=problem.cost, budget=amount, seed=0)
    assert caught[0].filename == __file__


def test_other_budgets_do_not_warn():
    assert limit_of(200, 100.0) == Limit(200, "cost")
    assert limit_of(20, None) == Limit(20, "cost")  # seconds that are not known yet
    assert limit_of(targets(1), 100.0) == targets(1)
    assert limit_of(Limit(20, "cost"), 100.0) == Limit(20, "cost")
    assert limit_of(None, 100.0) is None
