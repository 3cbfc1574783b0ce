"""The start of a study: which points, at which fidelities, and when it ends."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest, qmc

import boca
from boca.accounting.cost import costs
from boca.search.initial_design import random_point, random_start, substitute_fidelities

SPACE, FIDELITY = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0)), boca.Space(z=boca.Float(0.0, 1.0))
PROBLEM = boca.Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + 0.9 * z["z"], target={"z": 0.8})
RANDOM = np.random.default_rng


def study(problem=PROBLEM, results=(), budget=None):
    optimizer = boca.Optimizer(problem, budget=budget, strategy=boca.RandomSearch(), seed=0)
    for x, z, value in results:
        optimizer.add(x, z, value)
    return optimizer


def start(optimizer, *, total=100.0, seed=0, design="uniform", fidelities="uniform"):
    problem, history = optimizer.problem, optimizer.history
    return random_start(
        problem,
        history,
        boca.Budget(total, 0.1 * total),
        RANDOM(seed),
        costs(problem, history),
        design=design,
        fidelities=fidelities,
    )


def grown(optimizer, total, **how):
    """Follow the start to its end; return its points and fidelities."""
    found = []
    while (suggestion := start(optimizer, total=total, seed=len(found), **how)) is not None:
        found.append((suggestion.x, suggestion.z))
        optimizer.add(suggestion.x, suggestion.z, float(sum(suggestion.x.values())))
    return found


def test_the_start_ends_before_it_exceeds_its_budget():
    for total in (30.0, 60.0):
        found = grown(study(), total)
        spent = sum(PROBLEM.cost(z) for _, z in found)
        assert 0.1 * total - 1.0 < spent <= 0.1 * total


def test_there_are_at_least_two_queries():
    assert len(grown(study(), 0.5)) == 2


def test_a_start_of_queries_that_cost_nothing_ends_with_what_choosing_them_cost():
    free = boca.Problem(SPACE, FIDELITY, cost=lambda z: 1e-6, target={"z": 0.8})
    results = [({"a": 0.1 * k, "b": 0.5}, {"z": 0.8}, 1.0) for k in range(5)]
    assert spread(study(free, results), 100.0, spent=29.0) is not None
    assert spread(study(free, results), 100.0, spent=31.0) is None
    assert start(study(free, results)) is not None  # as before, where the start is the paper's


def test_imported_results_replace_random_ones():
    results = [({"a": 0.1 * k, "b": 0.5}, {"z": 0.8}, 1.0) for k in range(5)]
    assert start(study(results=results), total=5.0 * PROBLEM.target_cost) is None
    assert start(study(results=results), total=100.0 * PROBLEM.target_cost) is not None


def test_uniform_fidelities_cost_no_more_than_the_target():
    drawn = [start(study(), seed=seed).z["z"] for seed in range(60)]
    assert max(drawn) <= 0.8
    assert np.std(drawn) > 0.15


def test_a_list_of_fidelities_is_drawn_from():
    members = [{"z": 0.2}, {"z": 0.8}]
    drawn = [start(study(), seed=seed, fidelities=members).z for seed in range(20)]
    assert all(z in members for z in drawn)
    assert members[0] in drawn
    assert members[1] in drawn


def test_the_second_half_of_a_cheap_start_is_the_best_of_them_at_the_target():
    optimizer = study()
    found = grown(optimizer, 60.0, fidelities="cheap")
    spent = np.cumsum([PROBLEM.cost(z) for _, z in found])
    first = next(k for k, (_, z) in enumerate(found) if z == PROBLEM.target)
    again = [x for x, z in found if z == PROBLEM.target]
    assert [z for _, z in found[first : first + len(again)]] == [PROBLEM.target] * len(again)
    assert spent[first - 1] <= 3.0 < spent[first - 1] + 1.0  # half of the budget of the start
    assert spent[first + len(again) - 1] + PROBLEM.target_cost > 6.0  # one more would exceed it
    best = sorted((x for x, _ in found[:first]), key=lambda x: -sum(x.values()))
    assert again == best[: len(again)]
    assert len(again) >= 2


def test_cheap_fidelities_are_squares_of_uniform_numbers_below_the_target():
    drawn = np.array([start(study(), seed=[7, k], fidelities="cheap").z["z"] for k in range(300)])
    assert kstest(np.sqrt(drawn / 0.8), "uniform").pvalue > 0.01
    assert kstest(drawn / 0.8, "uniform").pvalue < 1e-6  # a negative control


def test_sobol_points_are_those_of_one_scrambled_sequence():
    strategy = boca.Boca(start_fidelities="target")
    optimizer = boca.Optimizer(PROBLEM, budget=boca.targets(1000), strategy=strategy, seed=3)
    trials = optimizer.ask(8)
    (seed,) = {trial.why["sobol"] for trial in trials}
    sequence = qmc.Sobol(2, scramble=True, rng=RANDOM(seed)).random(8)
    np.testing.assert_allclose([list(t.x.values()) for t in trials], sequence, rtol=1e-12)


def test_points_that_run_or_failed_three_times_are_avoided_while_there_are_others():
    problem = boca.Problem(boca.Space(c=boca.Choice(["u", "v", "w"])))
    optimizer = study(problem)
    for _ in range(3):
        optimizer.enqueue({"c": "u"})
        optimizer.fail(optimizer.ask(), "no")
    optimizer.enqueue({"c": "v"})
    optimizer.ask()
    history = optimizer.history
    for seed in range(20):
        x, _ = random_point(problem, history, RANDOM(seed), costs(problem, history), {})
        assert x == {"c": "w"}


@pytest.mark.parametrize("target", [1, 2, 3])
def test_substitutes_are_the_target_then_cheaper_ones_then_costlier_ones(target):
    problem = boca.Problem(SPACE, boca.Space(n=boca.Int(1, 3)), cost=lambda z: float(z["n"]), target={"n": target})
    found = [z["n"] for z in substitute_fidelities(problem, costs(problem, boca.History()))]
    cheaper = [n for n in (1, 2, 3) if n <= target]
    assert found == [target, *cheaper, *(n for n in (1, 2, 3) if n > target)]


# Points that come first -----------------------------------------------------------------------------------------------


def test_first_points_come_before_random_ones_and_are_all_tried():
    """Even if they cost more than the start: whoever names points wants them tried."""
    named = [{"a": 0.25}, {"a": 0.5, "b": 0.125}, {"b": 0.75}]
    problem = boca.Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + 0.9 * z["z"], first=named)
    for strategy in (boca.Boca(), boca.GPUCB(), boca.Boca.paper()):
        optimizer = boca.Optimizer(problem, budget=boca.targets(8), strategy=strategy, seed=1)
        for trial in (optimizer.ask() for _ in range(5)):
            optimizer.tell(trial, trial.x["a"])
        assert [t.x for t in optimizer.history[:3]] == problem.first
        assert all(t.phase == "start" for t in optimizer.history[:3])
        assert optimizer.history[3].x not in problem.first or problem.is_target(optimizer.history[3].z)


def test_the_middle_comes_first_if_it_is_asked_for():
    optimizer = study()
    problem, history, price = PROBLEM, optimizer.history, costs(PROBLEM, optimizer.history)
    how = {"design": "sobol", "fidelities": "cheap"}
    middle = random_start(problem, history, boca.Budget(100.0, 10.0), RANDOM(0), price, **how, middle=True)
    assert middle.x == {"a": 0.5, "b": 0.5}
    assert not problem.is_target(middle.z)
    plain = random_start(problem, history, boca.Budget(100.0, 10.0), RANDOM(0), price, **how)
    assert plain.x != middle.x
    assert plain.z == middle.z


def test_the_middle_is_no_first_point_where_a_constraint_forbids_it():
    space = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0)).where("a + b <= 0.5")
    problem = boca.Problem(space, boca.Space(n=boca.Int(1, 9)), cost=lambda z: z["n"])
    rows = boca.Candidates([{"a": 0.1}, {"a": 0.2}, {"a": 0.9}])
    for searched in (problem, boca.Problem(rows, boca.Space(n=boca.Int(1, 9)), cost=lambda z: z["n"])):
        optimizer = boca.Optimizer(searched, budget=boca.targets(20), seed=0)
        first = optimizer.ask()
        assert searched.space.violated(first.x) is None
        assert "middle" not in first.why["reason"]


# Costs that are spread evenly -----------------------------------------------------------------------------------------

EPOCHS = boca.Problem(SPACE, boca.Space(epoch=boca.Int(1, 64)), cost=lambda z: z["epoch"], target={"epoch": 64})


def spread(optimizer, total, *, spent=0.0, seed=0):
    problem, history = optimizer.problem, optimizer.history
    price = costs(problem, history)
    budget = boca.Budget(total, 0.1 * total, spent)
    return random_start(problem, history, budget, RANDOM(seed), price, design="sobol", fidelities="cheap", spread=True)


def test_costs_are_even_on_a_log_scale_from_the_cheapest_halfway_to_the_target():
    fine = boca.Problem(SPACE, FIDELITY, cost=lambda z: 64.0 ** z["z"])
    z = np.array([spread(study(fine), 1e9, seed=seed).z["z"] for seed in range(400)])
    assert kstest(2.0 * z, "uniform").pvalue > 0.001
    assert np.max(z) <= 0.54
    costs_of_epochs = {spread(study(EPOCHS), 1e9, seed=seed).z["epoch"] for seed in range(100)}
    assert costs_of_epochs <= set(range(1, 10))
    assert {1, 2, 4, 8} <= costs_of_epochs


def test_what_costs_less_than_a_64th_is_not_drawn():
    many = boca.Problem(SPACE, boca.Space(n=boca.Int(1, 10_000, log=True)), cost=lambda z: z["n"])
    drawn = [spread(study(many), 1e9, seed=seed).z["n"] for seed in range(60)]
    assert 100 < min(drawn) < 200
    assert max(drawn) < 1_500


def test_half_of_a_spread_start_is_cheap_and_then_the_best_is_run_at_the_target():
    """15 targets: a start of 1.5, of which 0.75 is cheap; the first query at the target may exceed it by half."""
    optimizer, found = study(EPOCHS), []
    while (suggestion := spread(optimizer, 15 * 64.0, seed=len(found))) is not None:
        found.append(suggestion)
        optimizer.enqueue(suggestion.x, suggestion.z)  # imported results would replace the start
        optimizer.tell(optimizer.ask(), float(sum(suggestion.x.values())))
    *cheap, last = found
    assert EPOCHS.is_target(last.z)
    assert not any(EPOCHS.is_target(s.z) for s in cheap)
    assert 0.6 * 64 < sum(s.z["epoch"] for s in cheap) <= 0.75 * 64
    assert last.x == max((s.x for s in cheap), key=lambda x: sum(x.values()))
