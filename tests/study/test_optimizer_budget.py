"""What a study may spend and has spent: in costs, in measured seconds, and in targets of a cost that is learned."""

from __future__ import annotations

import math
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boca
from boca import Boca, Choice, Float, Int, Problem, RandomSearch, Space, seconds, targets
from boca.domain.budget import Limit
from support.studies import MEASURED, PLAIN, PROBLEM, SPACE, Anywhere, f, optimizer, run

# The budget -----------------------------------------------------------------------------------------------------------


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.floats(0.01, 10.0),
    st.floats(0.0, 100.0),
    st.floats(-3.0, 3.0),
    st.floats(0.05, 12.0),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 2**31),
)
def test_a_declared_cost_is_never_overshot(base, slope, power, amount, in_targets, workers, seed):
    problem = Problem(
        SPACE, Space(n=Float(0.1, 1), m=Int(1, 3)), cost=lambda z: base + slope * z["n"] ** power / z["m"]
    )
    unit = problem.target_cost if in_targets else 1.0
    total = amount * unit
    opt = optimizer(problem, targets(amount) if in_targets else Limit(amount, "cost"), strategy=Anywhere(), seed=seed)
    assert opt.budget.total == pytest.approx(total)
    rng = np.random.default_rng(seed)
    for _ in range(60):
        trial = opt.ask()
        assert math.fsum(problem.cost(t.z) for t in opt.history) <= total * (1 + 1e-9)
        if trial is None and not opt.running:
            break
        if trial is None or len(opt.running) >= workers:
            out = opt.running[rng.integers(len(opt.running))]
            if rng.random() < 0.2:
                opt.fail(out, "lost")
            else:
                opt.tell(out, float(rng.standard_normal()))
    assert opt.budget.spent + opt.budget.reserved <= total * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fidelities", [1, 2])
def test_a_target_that_turns_out_far_dearer_than_it_looked_is_bought_once_all_the_same(fidelities, seed):
    """Cubes: cheap results let ten targets look like less than what is spent before the first of them is run."""
    names = ["n", "m"][:fidelities]
    plane = Space(a=Float(0, 1), b=Float(-1, 1))
    problem = Problem(plane, Space({name: Int(10, 10_000, log=True) for name in names}))
    opt = optimizer(problem, targets(10), strategy=Boca(), seed=seed)
    while (trial := opt.ask()) is not None:
        share = math.prod(trial.z[name] / 10_000 for name in names)
        opt.tell(trial, -((trial.x["a"] - 0.3) ** 2) - trial.x["b"] ** 2, seconds=10.0 * share**3)
    assert opt.best is not None
    assert opt.spent > 10.0


def test_what_has_to_be_imported_first_is_no_time_to_choose():
    script = """
import sys, time, boca
opt = boca.Optimizer(boca.Problem(boca.Space(a=boca.Float(0, 1))), budget=boca.seconds(9), seed=0)
clock, loaded = time.perf_counter, []
time.perf_counter = lambda: loaded.append("scipy.stats" in sys.modules) or clock()
assert "scipy" not in sys.modules
opt.ask()
print(loaded[0])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


def test_a_sum_of_floats_does_not_lose_a_trial_to_rounding():
    problem = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: 0.1)
    assert len(run(optimizer(problem, targets(3))).history) == 3
    assert len(run(optimizer(problem, 0.3)).history) == 3
    assert len(run(optimizer(problem, 0.7)).history) == 7


def test_nothing_affordable_is_none_and_with_trials_out_it_means_not_now():
    opt = optimizer(budget=targets(2))
    first, second = opt.ask(2)
    assert opt.ask() is None
    opt.tell(first, 1.0, cost=0.5)
    assert opt.ask() is None
    opt.tell(second, 1.0, cost=0.5)
    third = opt.ask()
    assert third is not None
    opt.tell(third, 1.0)
    assert opt.ask() is None


def test_the_same_question_is_not_thought_about_twice():
    asked = []

    @dataclass(frozen=True)
    class Counted:
        def suggest(self, *arguments):
            asked.append(1)
            return Anywhere().suggest(*arguments)

    opt = optimizer(PLAIN, targets(2), strategy=Counted())
    first, second = opt.ask(3)
    assert len(asked) == 3  # the third of them was refused
    assert [opt.ask() for _ in range(5)] == [None] * 5
    assert len(asked) == 3
    opt.enqueue({"a": 0.5})
    assert opt.ask() is None
    assert len(asked) == 4  # another queue is another question
    opt.tell(first, 1.0)
    assert opt.ask() is None
    assert len(asked) == 5  # and so is a result
    opt.tell(second, 1.0, cost=0.5)
    assert opt.ask() is None


def test_a_trial_that_does_not_pass_the_check_is_not_handed_out():
    opt = optimizer()
    opt.enqueue({"a": 0.5})

    def check(trial):
        raise ZeroDivisionError(trial.x["a"])

    with pytest.raises(ZeroDivisionError, match=r"0\.5"):
        opt.ask(check=check)
    assert len(opt.history) == 0
    assert opt.ask(check=lambda trial: None).x == {"a": 0.5}


def test_a_cost_that_is_told_replaces_the_expected_one():
    opt = optimizer()
    done = opt.tell(opt.ask(), 1.0, cost=2.5)
    assert done.cost == 2.5
    assert opt.budget.spent == opt.spent == 2.5
    assert opt.budget.left == 7.5
    failed = opt.fail(opt.ask(), "lost", cost=0.25)
    assert failed.cost == 0.25
    assert opt.budget.spent == 2.75


def test_a_budget_is_in_targets_or_in_cost_units():
    problem = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: 5.0 * z["n"])
    assert optimizer(problem, targets(10)).budget.total == 50.0
    assert optimizer(problem, 10).budget.total == 10.0
    assert optimizer(problem, targets(10)).budget.start == 5.0
    assert optimizer(PLAIN, targets(10)).budget.total == 10.0
    assert len(run(optimizer(PLAIN, targets(10))).history) == 10


@pytest.mark.parametrize(
    ("amount", "low", "power", "seed"),
    [
        (1, 0.1, 1, 0),
        (1.5, 0.1, 1, 1),
        (2, 0.5, 1, 2),
        (2.7, 0.02, 3, 3),
        (4, 0.3, 2, 4),
        (5.25, 0.1, 1, 5),
        (6, 1, 1, 6),
    ],
)
def test_the_default_ends_with_one_final_query_at_the_target_within_the_budget(amount, low, power, seed):
    problem = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: low + z["n"] ** power)
    opt = run(optimizer(problem, targets(amount), strategy=Boca(), seed=seed))
    last = opt.history[-1]
    assert last.z == problem.target
    phases = [trial.why["phase"] for trial in opt.history]
    assert phases.count("final") == (1 if len(phases) > 1 else 0)
    assert len(phases) == 1 or phases[-1] == "final"
    assert opt.budget.spent <= opt.budget.total * (1 + 1e-9)
    assert opt.budget.left < problem.target_cost
    assert opt.best is not None


def test_the_final_query_comes_even_after_failures():
    opt = optimizer(budget=targets(3), strategy=Boca())
    while (trial := opt.ask()) is not None:
        if trial.number % 3 == 1:
            opt.fail(trial, "lost")
        else:
            opt.tell(trial, f(trial))
    assert [t.why["phase"] for t in opt.history].count("final") == 1
    assert opt.history[-1].why["phase"] == "final"
    assert opt.history[-1].z == PROBLEM.target
    assert opt.budget.spent <= opt.budget.total * (1 + 1e-9)


def test_the_default_keeps_its_last_query_with_several_trials_out():
    opt = optimizer(budget=targets(4), strategy=Boca(), seed=2)
    for _ in range(200):
        trial = opt.ask()
        assert opt.budget.left >= -1e-9
        if trial is None and not opt.running:
            break
        if trial is None or len(opt.running) == 3:
            opt.tell(opt.running[-1], f(opt.running[-1]))
    finals = [trial for trial in opt.history if trial.why["phase"] == "final"]
    assert len(finals) == 1
    assert finals[0].z == PROBLEM.target


def test_a_query_off_the_target_is_never_called_final():
    problem = Problem(
        Space(kind=Choice(["a", "b"])),
        Space(source=Choice(["coarse", "fine"])),
        cost=lambda z: 1.0 if z["source"] == "fine" else 0.1,
        target={"source": "fine"},
    )
    opt = optimizer(problem, targets(3), strategy=Boca())
    for kind, value in (("a", 1.0), ("b", 2.0), ("a", 1.0), ("b", 2.0)):
        opt.add({"kind": kind}, {"source": "coarse"}, value)
    for kind in ("a", "b"):
        opt.enqueue({"kind": kind})
    out = opt.ask(6)  # both points are out at the target, and the money for a third query there is kept
    assert [trial.why["phase"] for trial in out[:2]] == ["queued", "queued"]
    finals = [trial for trial in out if trial.why["phase"] == "final"]
    assert len(finals) <= 1
    assert all(trial.z == problem.target for trial in finals)
    others = [trial for trial in out[2:] if trial.z != problem.target]
    assert others
    assert not any("target query" in trial.why["reason"] for trial in others)


@pytest.mark.parametrize("strategy", [Boca.paper(maximizer="sobol"), boca.GPUCB(maximizer="sobol"), RandomSearch()])
def test_the_paper_and_the_baselines_keep_nothing(strategy):
    opt = run(optimizer(budget=targets(5), strategy=strategy))
    assert "final" not in [trial.why["phase"] for trial in opt.history]
    assert opt.budget.spent <= opt.budget.total * (1 + 1e-9)


def test_a_budget_of_one_target_buys_one_query_there():
    for strategy in (Boca(), RandomSearch(), boca.GPUCB(maximizer="sobol")):
        opt = run(optimizer(budget=targets(1), strategy=strategy))
        assert [trial.z for trial in opt.history] == [PROBLEM.target]
        assert opt.best.number == 0
        assert opt.warnings == ()


@pytest.mark.parametrize("strategy", [Boca(), Boca.paper(maximizer="sobol"), RandomSearch(), Anywhere()])
def test_a_budget_below_one_target_has_no_best_and_a_warning(strategy):
    opt = run(optimizer(budget=targets(0.6), strategy=strategy))
    assert opt.best is None
    assert opt.budget.spent <= 0.6
    assert all(trial.z != PROBLEM.target for trial in opt.history)
    assert any("does not cover one query at the target" in sentence for sentence in opt.warnings)
    if len(opt.history):
        assert opt.recommend().verified is False


def test_a_budget_below_one_target_is_no_warning_where_a_result_there_was_brought():
    opt = optimizer(budget=targets(0.6))
    opt.add({"a": 0.4}, {"n": 0.5}, 2.0)
    assert any("does not cover one query at the target" in sentence for sentence in opt.warnings)
    opt.add({"a": 0.4}, PROBLEM.target, 1.0)
    assert opt.best.value == 1.0
    assert opt.warnings == ()


def test_a_budget_below_one_target_is_spent_below_it_also_where_a_result_there_was_brought():
    for seed in range(3):
        opt = optimizer(budget=targets(0.6), strategy=Boca(), seed=seed)
        opt.add({"a": 0.4}, PROBLEM.target, 1.0)
        asked = run(opt).history[1:]
        assert asked
        assert all(trial.z != PROBLEM.target for trial in asked)


# A cost that is measured ----------------------------------------------------------------------------------------------


def test_an_unknown_cost_is_a_ratio_at_first_and_then_what_was_measured():
    opt = optimizer(MEASURED, strategy=Anywhere())
    trial = opt.ask()
    assert trial.cost == pytest.approx(trial.z["n"])
    done = opt.tell(trial, 1.0, seconds=20.0 * trial.z["n"])
    assert done.seconds == done.cost == 20.0 * trial.z["n"]
    assert opt.budget.spent == done.cost
    assert opt.budget.total == pytest.approx(200.0, rel=0.25)


def test_time_between_ask_and_tell_is_measured():
    opt = optimizer(MEASURED)
    trial = opt.ask()
    time.sleep(0.02)
    done = opt.tell(trial, 1.0)
    assert done.seconds >= 0.02
    assert done.cost == done.seconds
    assert done.overhead > 0.0


def test_how_the_cost_grows_is_learned():
    opt = optimizer(MEASURED, targets(100), strategy=Anywhere())
    for _ in range(25):
        trial = opt.ask()
        opt.tell(trial, f(trial), seconds=8.0 * trial.z["n"] ** 2)
    for _ in range(5):
        trial = opt.ask()
        assert trial.cost == pytest.approx(8.0 * trial.z["n"] ** 2, rel=0.3)
    assert opt.budget.total == pytest.approx(800.0, rel=0.1)


def test_costs_of_results_that_were_brought_are_learned_from():
    opt = optimizer(MEASURED, targets(10), strategy=Anywhere())
    for n in (0.2, 0.5, 1.0):
        opt.add({"a": n}, {"n": n}, 0.0, 60.0 * n)
    assert opt.budget.total == pytest.approx(600.0, rel=0.1)
    assert opt.budget.spent == 0.0
    trial = opt.ask()
    assert trial.cost == pytest.approx(60.0 * trial.z["n"], rel=0.2)


def test_a_failure_before_the_first_result_does_not_end_a_study_with_a_measured_cost():
    opt = optimizer(MEASURED, targets(30), strategy=Boca())
    opt.fail(opt.ask(), "lost", cost=600.0)  # seconds: a target may well take an hour
    trial = opt.ask()
    assert trial is not None
    opt.tell(trial, 0.0, seconds=3600.0 * trial.z["n"])
    assert opt.budget.spent == 600.0 + opt.history[1].cost
    assert opt.ask() is not None


@pytest.mark.parametrize("unit", [0.001, 1000.0])
def test_trials_that_went_out_before_the_first_result_are_reserved_at_what_they_are_expected_to_cost(unit):
    opt = optimizer(MEASURED, targets(30), strategy=Boca())
    first, second, third = opt.ask(3)
    opt.tell(first, 0.0, seconds=unit * first.z["n"])
    expected = unit * (second.z["n"] + third.z["n"])
    assert opt.budget.reserved == pytest.approx(expected, rel=0.7)
    assert opt.ask() is not None


@pytest.mark.parametrize("unit", [0.001, 1000.0])
def test_the_start_is_a_tenth_of_the_capital_whatever_a_target_takes(unit):
    opt = optimizer(MEASURED, targets(60), strategy=Boca())
    opt.add({"a": 0.5}, {"n": 0.5}, 0.0)  # nobody remembers how long it took
    while (trial := opt.ask()).why["phase"] == "start":
        opt.tell(trial, f(trial), seconds=unit * trial.z["n"])
    used = sum(t.z["n"] for t in opt.history if t.why["phase"] == "start")
    assert 4.0 < used < 7.0


@pytest.mark.parametrize("seed", range(6))
def test_the_default_keeps_its_last_query_when_the_cost_is_learned(seed):
    opt = run(optimizer(MEASURED, targets(8), strategy=Boca(), seed=seed), seconds=lambda t: 2.0 * t.z["n"])
    assert opt.history[-1].why["phase"] == "final"
    assert opt.history[-1].z == MEASURED.target
    assert opt.budget.spent <= opt.budget.total


def test_a_learned_cost_that_was_wrong_is_admitted():
    opt = optimizer(MEASURED, targets(2))
    first, second = opt.ask(2)
    opt.tell(first, 0.0, seconds=1.0)
    opt.tell(second, 0.0, seconds=100.0)
    assert opt.ask() is None
    assert opt.budget.spent == 101.0
    overshoot = opt.budget.spent - opt.budget.total
    assert overshoot > 0
    assert any(f"{overshoot:.3g} s more than the budget" in sentence for sentence in opt.warnings)


# A budget in seconds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("problem", [PROBLEM, MEASURED, PLAIN], ids=["declared", "measured", "plain"])
@pytest.mark.parametrize("strategy", [Boca(), RandomSearch()], ids=["boca", "random"])
def test_seconds_are_spent_on_evaluations_and_on_choosing_them(problem, strategy):
    opt = optimizer(problem, seconds(300.0), strategy=strategy)
    run(opt, seconds=lambda t: 20.0 * t.z.get("n", 1.0))
    assert opt.spent == pytest.approx(math.fsum(t.seconds + t.overhead for t in opt.history), rel=1e-12)
    assert opt.spent > math.fsum(t.seconds for t in opt.history)
    assert 200.0 < opt.spent <= 300.0


def test_seconds_that_are_gone_buy_nothing():
    opt = optimizer(MEASURED, seconds(10.0))
    opt.tell(opt.ask(), 1.0, seconds=100.0)
    assert opt.ask() is None
    assert opt.spent > 100.0


def test_seconds_of_failures_alone_are_spent_as_well():
    opt = optimizer(MEASURED, seconds(0.01))
    trial = opt.ask()
    time.sleep(0.02)
    opt.fail(trial, "lost")
    assert opt.spent > 0.01
    assert opt.ask() is None


def test_results_that_were_brought_take_no_seconds():
    opt = optimizer(MEASURED, seconds(100.0))
    opt.add({"a": 0.5}, {"n": 1.0}, 1.0, 30.0)
    opt.add({"a": 0.6}, {"n": 1.0}, 1.0, 30.0)
    opt.add({"a": 0.7}, {"n": 1.0}, 1.0, 30.0)
    opt.add({"a": 0.8}, {"n": 1.0}, 1.0, 30.0)
    assert opt.spent == 0.0
    assert opt.ask() is not None


CHEAP = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 100)))


@pytest.mark.parametrize("took", [0.0, 1e-9, 1e-7])
def test_evaluations_that_take_no_time_use_up_a_budget_of_targets(took):
    opt = boca.Optimizer(CHEAP, budget=boca.targets(5), seed=0)
    while (trial := opt.ask()) is not None:
        assert trial.number < 50
        opt.tell(trial, trial.x["a"], seconds=took)
    assert opt.best is not None


def test_evaluations_that_take_no_time_reach_the_target_within_seconds():
    opt = boca.Optimizer(CHEAP, budget=boca.seconds(1.0), seed=0)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, trial.x["a"], seconds=0.0)
    assert opt.best is not None
