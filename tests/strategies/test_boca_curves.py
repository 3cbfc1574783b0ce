"""New runs and paused ones compete in one decision: which wins, when the target is due, and what is never done."""

from __future__ import annotations

import time

import numpy as np
import pytest

import boca
from boca import History
from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.trial import point_key
from boca.strategies import boca_curves
from boca.strategies.boca_curves import Runs
from support.runs import SPACE, score, studied, trained, training_problem

PROBLEM = training_problem()
OPT = studied(trials=60, budget=12)
HISTORY = OPT.history
MODELLED = [t for t in HISTORY if t.phase in ("model", "final")]


def runs(history=HISTORY, problem=PROBLEM, total=12.0, spent=6.0, **fields):
    cost = problem.target_cost
    budget = Budget(total * cost, total * cost / 10, spent * cost)
    return Runs(boca.Boca(**fields), problem, history, budget, costs(problem, history), np.random.default_rng(0))


# A study ------------------------------------------------------------------------------------------------------------


def test_the_start_is_eight_new_runs_to_an_eighth_of_the_cost():
    first = HISTORY[:8]
    assert all(t.phase == "start" and t.planned == {"epochs": 2} and t.continues is None for t in first)
    assert first[0].x == PROBLEM.middle
    assert len({point_key(t.x) for t in first}) == 8


def test_the_best_of_the_start_goes_to_the_end_at_once():
    ninth = HISTORY[8]
    assert PROBLEM.is_target(ninth.z)
    assert ninth.continues is not None
    assert ninth.why["acquisition"] == "best_mean"
    assert "no run has reached it" in ninth.why["reason"]


def test_new_runs_and_paused_ones_both_win():
    by = [t for t in MODELLED if t.why["acquisition"] == "knowledge"]
    assert {t.continues is None for t in by} == {True, False}


def test_a_run_goes_on_from_its_checkpoint_and_only_that_is_paid():
    for trial in HISTORY:
        if trial.continues is None:
            assert trial.start == 0
            assert trial.cost == pytest.approx(PROBLEM.step(trial.z))
            continue
        before = HISTORY[trial.continues]
        assert before.x == trial.x
        assert trial.start == before.saved == PROBLEM.step(before.z) < PROBLEM.step(trial.z)
        assert trial.cost == pytest.approx(PROBLEM.step(trial.z) - PROBLEM.step(before.z))


def test_nothing_is_trained_twice_and_no_run_is_continued_twice():
    continued = [t.continues for t in HISTORY if t.continues is not None]
    assert len(set(continued)) == len(continued)
    new = [point_key(t.x) for t in HISTORY if t.continues is None]
    assert len(set(new)) == len(new)


def test_runs_pause_at_rungs():
    assert {PROBLEM.step(t.z) for t in HISTORY} <= {1, 2, 4, 8, 16}


def test_a_result_at_the_target_comes_at_least_every_one_and_a_half_targets():
    since, started = 0.0, False
    for trial in HISTORY:
        if PROBLEM.is_target(trial.z):
            since, started = 0.0, True
        else:
            since += trial.cost
            assert not started or since <= 1.5 * PROBLEM.target_cost * (1 + 1e-9)


def test_the_budget_is_spent_and_not_overshot():
    spent = sum(t.cost for t in HISTORY)
    assert 11.0 * PROBLEM.target_cost < spent <= 12.0 * PROBLEM.target_cost * (1 + 1e-9)
    assert any(t.phase == "final" for t in HISTORY)


def test_it_finds_the_optimum():
    at_a = [score({"a": 0.3, "b": b}, 16) for b in np.linspace(0.0, 1.0, 400)]
    assert max(at_a) - OPT.best.value < 0.01


def test_from_half_of_the_budget_on_every_other_query_refines_the_best():
    late = [t for t in MODELLED if t.why["acquisition"] == "log_ei"]
    assert len(late) >= 3
    spent = np.cumsum([t.cost for t in HISTORY])
    assert all(spent[t.number - 1] >= 0.5 * 12 * PROBLEM.target_cost for t in late)


# Why -----------------------------------------------------------------------------------------------------------------


def test_why_says_what_each_promised_and_for_how_much():
    by = next(t for t in MODELLED if t.why["acquisition"] == "knowledge" and t.continues is not None)
    run = by.why["run"]
    new, going_on = run["new"], run["going_on"]
    assert going_on["trial"] == by.continues
    assert going_on["log_gain_per_cost"] >= new["log_gain_per_cost"]
    assert run["from_step"] == by.start
    assert run["cost"] == pytest.approx(by.cost)
    assert f"Trial {by.continues} continues from step {by.start}" in by.why["reason"]
    assert "a new run." in by.why["reason"]
    assert "curve_noise" not in by.why["hyperparameters"] or by.why["hyperparameters"]["curve_noise"] > 0.0


def test_every_decision_is_made_again_from_what_it_read():
    spent = 0.0
    for trial in HISTORY:
        read = HISTORY.read_by(trial)
        budget = Budget(12 * PROBLEM.target_cost, 1.2 * PROBLEM.target_cost, spent)
        spent += trial.cost
        if trial.number % 5 == 0 or trial.phase == "final":
            again = boca.Boca().suggest(PROBLEM, read, budget, np.random.default_rng([0, trial.number]))
            assert (again.x, again.z, again.continues) == (trial.x, trial.planned, trial.continues)
            assert again.why == trial.why


# Candidates ----------------------------------------------------------------------------------------------------------


def test_queries_are_judged_by_their_best_rung_and_go_to_the_next():
    state = runs()
    query = state.query(np.array([0.1, 0.2]), PROBLEM.target, None)
    assert PROBLEM.step(state.near(query).z) == 2
    trial = next(t for t in state.open if PROBLEM.step(t.z) == 4)
    near = state.near(state.query(np.array([0.1, 0.2]), PROBLEM.target, trial))
    assert (PROBLEM.step(near.z), near.start, near.cost) == (8, 4, pytest.approx(4.0))


def test_running_runs_are_no_candidates_and_no_point_is_begun_twice():
    opt = studied(trials=12, budget=12)
    out = [opt.ask() for _ in range(5)]
    assert len({point_key(t.x) for t in out}) == 5
    state = runs(opt.history)
    assert not {t.number for t in state.open} & {t.number for t in out}
    assert not {t.continues for t in out} & {t.number for t in state.open}


def test_trials_asked_for_together_share_the_first_ones_model():
    opt = studied(trials=12, budget=12)
    batch = opt.ask(3)
    assert len({(point_key(t.x)) for t in batch}) == 3
    assert {t.why.get("batch") for t in batch} == {batch[0].number}


def test_running_rows_lie_at_the_planned_step():
    opt = studied(trials=12, budget=12)
    trial = opt.ask()
    opt.report(trial, trial.start + 1, 0.0)
    model = boca.Surrogate().model(PROBLEM, opt.history, np.random.default_rng(0))
    assert len(model.data.pending) == 1
    root = opt.history.chain(opt.history[trial.number])[0].number
    assert model.data.pending[0, -1] == root


def test_without_checkpoints_nothing_is_continued_and_runs_go_all_the_way():
    opt = studied(trials=25, budget=12, saves=False)
    assert all(t.continues is None and t.start == 0 for t in opt.history)
    again = [t for t in opt.history if "again, from the beginning" in t.why["reason"]]
    assert all(t.cost == pytest.approx(PROBLEM.step(t.z)) for t in again)
    assert opt.best is not None


def test_evaluations_that_never_report_are_decided_as_before():
    opt = boca.Optimizer(PROBLEM, budget=boca.targets(12), seed=0)
    for _ in range(12):
        trial = opt.ask()
        opt.tell(trial, score(trial.x, PROBLEM.step(trial.planned)))
    assert not boca_curves.applies(boca.Boca(), PROBLEM, opt.history)
    assert "run" not in opt.history[-1].why


@pytest.mark.parametrize("fields", [{"curves": False}, {"success": True}])
def test_it_can_be_turned_off(fields):
    assert not boca_curves.applies(boca.Boca(**fields), PROBLEM, HISTORY)
    assert boca_curves.applies(boca.Boca(), PROBLEM, HISTORY)


def test_the_paper_has_none_of_it():
    assert not boca.Boca.paper().curves
    assert not boca.Boca.paper().stop_runs
    opt = studied(trials=6, budget=6, strategy=boca.Boca.paper(maximizer="sobol"))
    assert all(t.continues is None for t in opt.history)


def test_a_run_goes_on_within_its_other_fidelities():
    problem = training_problem(share=boca.Float(0.25, 1.0))
    opt = studied(problem, trials=40, budget=10)
    continued = [t for t in opt.history if t.continues is not None]
    assert continued
    for trial in continued:
        assert trial.planned["share"] == opt.history[trial.continues].planned["share"]
    assert opt.best is not None


def test_a_list_of_candidates_and_choices_are_searched_too():
    rows = [{"a": k / 9, "b": j / 3} for k in range(10) for j in range(4)]
    for space in (boca.Candidates(rows), boca.Space(a=boca.Float(0.0, 1.0), b=boca.Choice([0.0, 0.5, 1.0]))):
        problem = boca.Problem(space, PROBLEM.fidelity, cost=lambda z: z["epochs"])
        opt = studied(problem, trials=30, budget=6)
        assert opt.best is not None
        assert any(t.continues is not None for t in opt.history)


def test_a_learned_cost_and_no_budget_will_do():
    problem = boca.Problem(SPACE, PROBLEM.fidelity)
    opt = boca.Optimizer(problem, budget=None, seed=0)
    for _ in range(14):
        trial = opt.ask()
        for step in range(trial.start + 1, problem.step(trial.planned) + 1):
            opt.report(trial, step, score(trial.x, step))
        opt.saved(trial, step, "somewhere")
        opt.tell(trial, None, seconds=0.1 * (step - trial.start))
    assert any(t.continues is not None for t in opt.history)


def test_a_run_that_failed_is_not_continued():
    opt = studied(trials=12, budget=12)
    trial = opt.ask()
    opt.report(trial, trial.start + 1, 0.0)
    opt.saved(trial, trial.start + 1, "somewhere")
    opt.fail(trial, "It broke.")
    state = runs(opt.history)
    assert trial.number not in {t.number for t in state.open}
    assert trained(opt, opt.ask()) is not None


def test_a_decision_to_stop_takes_less_than_a_tenth_of_a_suggestion():
    opt = studied(trials=30, budget=30, saves=False)
    history = opt.history
    trial = next(t for t in history if len(t.observations) > 1)
    budget = Budget(30 * PROBLEM.target_cost, 3 * PROBLEM.target_cost, 10 * PROBLEM.target_cost)

    def taken(what):
        best = np.inf
        for _ in range(3):
            began = time.process_time()
            what()
            best = min(best, time.process_time() - began)
        return best

    suggestion = taken(lambda: boca.Boca().suggest(PROBLEM, History(list(history)), budget, np.random.default_rng(0)))
    decision = taken(lambda: boca.Boca().keep_going(PROBLEM, history, trial, np.random.default_rng(0)))
    assert decision < 0.1 * suggestion


def test_a_run_goes_on_at_its_point_in_every_bit():
    space = boca.Space(a=boca.Float(1e-4, 0.1, log=True), b=boca.Float(0.1, 0.99), c=boca.Int(64, 1024, log=True))
    problem = boca.Problem(space, PROBLEM.fidelity, cost=lambda z: z["epochs"])

    def value(x, step):
        return -abs(np.log10(x["a"]) + 2.1) - (x["b"] - 0.4) ** 2 - 1.0 / step

    opt = boca.Optimizer(problem, budget=boca.targets(8), seed=0)
    while (trial := opt.ask()) is not None:
        trained(opt, trial, value=value)
    continued = [t for t in opt.history if t.continues is not None]
    assert len(continued) > 5
    assert all(t.x == opt.history[t.continues].x for t in continued)
    new = space.to_unit([t.x for t in opt.history if t.continues is None])
    apart = np.abs(new[:, None] - new[None, :]).max(axis=2) + np.eye(len(new))
    assert apart.min() > 1e-9
