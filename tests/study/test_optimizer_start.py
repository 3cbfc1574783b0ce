"""The queries that come first, and what counts as one."""

from __future__ import annotations

import math

import pytest

import boca
from boca import Boca, Float, Int, Optimizer, Problem, Space, targets
from support.studies import PROBLEM, SPACE, f, optimizer, run

# The start ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "strategy", [Boca(), Boca.paper(maximizer="sobol"), boca.GPUCB(maximizer="sobol")], ids=["default", "paper", "ucb"]
)
def test_the_start_takes_about_a_tenth_of_the_capital(strategy, seed):
    opt = optimizer(budget=targets(40), strategy=strategy, seed=seed)
    while (trial := opt.ask()).why["phase"] == "start":
        opt.tell(trial, f(trial))
    assert trial.why["phase"] == "model"
    used = math.fsum(t.cost for t in opt.history if t.why["phase"] == "start")
    assert 3.0 < used <= 4.0 * (1 + 1e-9)


@pytest.mark.parametrize("strategy", [Boca(), Boca.paper(maximizer="sobol"), boca.GPEI(maximizer="sobol")])
def test_the_start_has_at_least_two_queries(strategy):
    opt = run(optimizer(budget=targets(4), strategy=strategy))
    phases = [trial.why["phase"] for trial in opt.history]
    assert phases[:2] == ["start", "start"]
    assert phases[2] != "start"


@pytest.mark.parametrize("seed", range(4))
def test_the_default_spends_half_of_the_start_below_the_target_and_half_at_it(seed):
    opt = optimizer(budget=targets(40), strategy=Boca(), seed=seed)
    while (trial := opt.ask()).why["phase"] == "start":
        opt.tell(trial, f(trial))
    start = [t for t in opt.history if t.why["phase"] == "start"]
    at_target = [PROBLEM.is_target(t.z) for t in start]
    assert not at_target[0]  # the cheap ones come first
    assert sum(at_target) == 2
    assert 1.0 < math.fsum(t.cost for t, at in zip(start, at_target, strict=True) if not at) <= 2.0 * (1 + 1e-9)


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_default_takes_the_best_of_the_cheap_start_to_the_target(direction):
    problem = Problem(SPACE, PROBLEM.fidelity, cost=lambda z: z["n"], direction=direction)
    opt = optimizer(problem, targets(60), strategy=Boca(), seed=5)
    opt.tell(opt.ask(), 0.5)
    opt.fail(opt.ask(), "out of memory")  # charged, and no candidate
    while (trial := opt.ask()).why["phase"] == "start":
        opt.tell(trial, trial.x["a"] * (1.0 if problem.is_target(trial.z) else 3.0))
    start = [t for t in opt.history if t.why["phase"] == "start"]
    cheap = [t for t in start if t.state == "complete" and not problem.is_target(t.z)]
    best_first = sorted(cheap, key=lambda t: t.value, reverse=direction == "maximize")
    at_target = [t for t in start if problem.is_target(t.z)]
    assert len(at_target) == 3 < len(cheap)
    assert [t.x for t in at_target] == [t.x for t in best_first[:3]]
    assert all("the best point that has not been run at the target" in t.why["reason"] for t in at_target)


def test_a_start_without_results_takes_random_points_to_the_target():
    opt = optimizer(budget=targets(40), strategy=Boca(), seed=5)
    start = [t for t in opt.ask(30) if t.why["phase"] == "start"]
    at_target = [t for t in start if PROBLEM.is_target(t.z)]
    assert at_target
    assert len({t.x["a"] for t in start}) == len(start)
    assert all("a random point at the target fidelity" in t.why["reason"] for t in at_target)


def test_a_start_with_one_cheap_point_takes_another_to_the_target():
    """The best of one is no choice: a start has two points at least."""
    problem = Problem(SPACE, PROBLEM.fidelity, cost=lambda z: 0.9 + 0.1 * z["n"])
    opt = optimizer(problem, targets(20), strategy=Boca(), seed=5)
    while (trial := opt.ask()).why["phase"] == "start":
        opt.tell(trial, f(trial))
    start = [t for t in opt.history if t.why["phase"] == "start"]
    assert [problem.is_target(t.z) for t in start] == [False, True]
    assert start[0].x != start[1].x
    assert "a random point at the target fidelity" in start[1].why["reason"]


def test_a_start_takes_no_barred_point_to_the_target():
    opt = optimizer(budget=targets(40), strategy=Boca(), seed=5)
    opt.add({"a": 0.123}, {"n": 0.2}, 100.0)
    for _ in range(3):
        opt.enqueue({"a": 0.123}, {"n": 0.1})
        opt.fail(opt.ask(), "no")
    while (trial := opt.ask()).why["phase"] == "start":
        opt.tell(trial, f(trial))
        assert trial.x != {"a": 0.123}


def test_a_start_that_cannot_buy_a_target_query_stays_below_it():
    """Its first query at the target may exceed its budget of 0.6 targets by half, and that is not enough."""
    opt = run(optimizer(budget=targets(6), strategy=Boca()))
    start = [t for t in opt.history if t.why["phase"] == "start"]
    assert not any(PROBLEM.is_target(t.z) for t in start)
    assert len(start) >= 2


def test_the_start_finds_the_only_fidelity_that_it_can_pay():
    problem = Problem(SPACE, Space(n=Float(0, 1)), cost=lambda z: 0.01 if z["n"] == 0.0 else 0.9 + 0.1 * z["n"])
    for seed in range(3):
        assert optimizer(problem, targets(0.5), strategy=Boca(), seed=seed).ask().z == {"n": 0.0}


def test_trials_that_are_out_count_towards_the_start():
    opt = optimizer(budget=targets(30), strategy=Boca(), seed=1)
    opt.tell(opt.ask(), 0.0)
    while opt.ask().why["phase"] == "start":
        assert len(opt.history) < 100
    assert math.fsum(t.cost for t in opt.history if t.why["phase"] == "start") <= 3.0 * (1 + 1e-9)


def test_the_start_of_the_paper_asks_for_nothing_beyond_an_inner_target():
    problem = Problem(SPACE, Space(n=Int(1, 100)), cost=lambda z: z["n"], target={"n": 10})
    for seed in range(3):
        opt = optimizer(problem, targets(20), strategy=Boca.paper(maximizer="sobol"), seed=seed)
        run(opt)
        assert len(opt.history) >= 10
        assert all(trial.z["n"] <= 10 for trial in opt.history)


def test_a_study_without_a_budget_goes_from_the_start_to_the_model():
    opt = Optimizer(PROBLEM, budget=None, strategy=Boca(), seed=0)
    for _ in range(25):
        trial = opt.ask()
        opt.tell(trial, f(trial))
    phases = [trial.why["phase"] for trial in opt.history]
    assert phases[0] == "start"
    assert phases[-1] == "model"
    assert opt.budget.total == math.inf
