"""The books of the page are those of the optimiser, which has the cost function."""

from __future__ import annotations

import pytest

from boca import Float, Int, Problem, Space, seconds, targets
from dashboard.conftest import begin

MEASURED = Problem(Space(a=Float(0, 1)), Space(n=Int(1, 10)))


def drive(study, trials, out=1):
    for _ in range(trials):
        trial = study.ask()
        study.tell(trial, trial.x["a"], seconds=0.1 * trial.z.get("n", 1))
    if out:
        study.ask(out)
    return study


def test_a_declared_cost_is_what_trials_say(url, page_of):
    study = begin(url, budget=targets(20))
    study.add({"a": 0.5, "kind": "flat"}, None, 1.0, cost=10.0)  # imported, not charged
    study.fail(study.ask(), "it broke")
    drive(study, 6, out=2)
    told = page_of(url).study()["budget"]
    assert told["unit"] == "cost"
    assert told["spent"] == pytest.approx(study.budget.spent)
    assert told["reserved"] == pytest.approx(study.budget.reserved)
    assert told["total"] == pytest.approx(study.budget.total)
    assert told["left"] == pytest.approx(study.budget.left)
    assert told["target"] == 10
    assert not told["is_estimate"]


def test_the_price_of_a_target_that_was_never_queried_is_known(url, page_of):
    begin(url, budget=targets(20))
    told = page_of(url).study()["budget"]
    assert (told["target"], told["total"], told["left"]) == (10, 200, 200)
    assert not told["is_estimate"]


def test_a_learned_cost_is_the_one_of_the_optimiser(url, page_of):
    study = begin(url, problem=MEASURED, budget=targets(20))
    study.fail(study.ask(), "before anything was measured")
    page = page_of(url)
    early = page.study()
    assert early["budget"]["unit"] == "targets"
    assert early["budget"]["spent"] == pytest.approx(study.budget.spent)
    drive(study, 5, out=2)
    page.look()
    answer = page.study()
    told = answer["budget"]
    assert told["unit"] == "seconds"
    assert told["is_estimate"]
    for name in ("spent", "reserved", "total", "left"):
        assert told[name] == pytest.approx(getattr(study.budget, name)), name
    paid = dict(zip(answer["trials"]["number"], answer["trials"]["paid"], strict=True)) | dict(answer["repriced"])
    assert sum(paid.values()) == pytest.approx(study.budget.spent)
    assert [number for number, _ in answer["repriced"]] == [0]


def test_what_nobody_measured_is_priced_again_without_being_told_again(url, page_of):
    study = begin(url, problem=MEASURED, budget=targets(20))
    study.fail(study.ask(), "before anything was measured")
    page = page_of(url)
    before = page.study()
    drive(study, 2, out=0)
    page.look()
    after = page.study(key=before["key"], since=before["event"])
    assert 0 not in after["trials"]["number"]
    assert [number for number, _ in after["repriced"]] == [0]
    assert after["repriced"] != before["repriced"]


def test_seconds_count_the_time_to_choose_too(url, page_of):
    study = begin(url, problem=MEASURED, budget=seconds(60))
    study.ask()
    page = page_of(url)
    early = page.study()["budget"]
    assert (early["unit"], early["total"], early["spent"], early["reserved"]) == ("seconds", 60, 0, None)
    drive(study, 5)
    page.look()
    told = page.study()["budget"]
    assert told["spent"] == pytest.approx(study.spent)
    budget = study.budget
    rate = 60 / budget.total
    assert told["reserved"] == pytest.approx(budget.reserved * rate)
    assert told["left"] == pytest.approx(budget.left * rate)


def test_seconds_as_a_plain_number_are_not_known_before_one_is_measured(url, page_of):
    study = begin(url, problem=MEASURED, budget=30.0)
    study.fail(study.ask(), "it broke")
    study.ask()
    page = page_of(url)
    told = page.study()["budget"]
    assert (told["unit"], told["total"], told["spent"], told["reserved"]) == ("seconds", 30, 0, None)
    drive(study, 3, out=0)
    page.look()
    assert page.study()["budget"]["spent"] == pytest.approx(study.budget.spent)


def test_a_study_without_a_budget_has_no_end(url, page_of):
    study = drive(begin(url, budget=None), 2, out=0)
    told = page_of(url).study()["budget"]
    assert (told["total"], told["left"], told["limit"]) == (None, None, None)
    assert told["spent"] == pytest.approx(study.spent)
