"""The list of fidelities of the finite methods: which members it has, in what order, and the start at them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

import boca
from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput
from boca.domain.trial import History
from boca.search.initial_design import random_start
from boca.strategies.ladder import ladder

X = boca.Space(x=boca.Float(0.0, 1.0))
STRATEGIES = {"mf_gp_ucb": boca.MFGPUCB, "mf_sko": boca.MFSKO}
BOTH = pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)


def members(problem, given=None):
    return ladder(problem, given, costs(problem, History()))


def of_one(parameter, cost, **more):
    """Return the list of a problem with one fidelity z."""
    return [z["z"] for z in members(boca.Problem(X, boca.Space(z=parameter), cost=cost, **more))]


# The default list ---------------------------------------------------------------------------------------------------


def test_the_supernova_list_is_the_one_that_the_paper_prints():
    """Thirds of N on a linear scale and of G on a logarithmic one: 0.333 -> 2.15e3 and 0.667 -> 4.64e4."""
    fidelity = boca.Space(N=boca.Int(50, 192), G=boca.Int(100, 1_000_000, log=True))
    problem = boca.Problem(X, fidelity, cost=lambda z: z["N"] * z["G"])
    assert members(problem) == [{"N": 97, "G": 2154}, {"N": 145, "G": 46416}, {"N": 192, "G": 1_000_000}]


def test_the_newsgroups_list_is_the_one_that_the_paper_prints():
    fidelity = boca.Space(N=boca.Int(5000, 15000), T=boca.Int(20, 100))
    problem = boca.Problem(X, fidelity, cost=lambda z: z["N"] * z["T"])
    assert members(problem) == [{"N": 8333, "T": 47}, {"N": 11667, "T": 73}, {"N": 15000, "T": 100}]


@pytest.mark.parametrize("name", ["currin", "branin"])
def test_the_list_of_a_synthetic_problem_is_a_third_two_thirds_and_one_in_every_dimension(name):
    problem = boca.problems.get(name).problem
    for z, share in zip(members(problem), (1 / 3, 2 / 3, 1.0), strict=True):
        np.testing.assert_allclose(list(z.values()), share, rtol=1e-15)


def test_a_target_inside_is_approached_from_the_farther_end():
    low, high = of_one(boca.Float(0.1, 1.0), lambda z: z["z"], target={"z": 0.7303})[:2]
    assert low == pytest.approx(0.1 + 0.6303 / 3.0, rel=1e-14)
    assert high == pytest.approx(0.1 + 2.0 * 0.6303 / 3.0, rel=1e-14)


def test_where_cost_falls_with_the_fidelity_the_list_comes_down_from_the_top():
    assert of_one(boca.Float(0.0, 3.0), lambda z: 4.0 - z["z"], target={"z": 0.0}) == [2.0, 1.0, 0.0]


def test_the_target_closes_the_list_with_exactly_its_own_values():
    target = {"z": 0.1 + 0.2}
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 0.4)), cost=lambda z: 0.1 + z["z"], target=target)
    assert members(problem)[-1] == problem.target == target


def test_integers_of_the_list_are_on_their_lattice_and_none_is_there_twice():
    assert of_one(boca.Int(1, 4), lambda z: z["z"]) == [2, 3, 4]
    assert of_one(boca.Int(1, 3), lambda z: z["z"]) == [2, 3]  # both thirds are nearest to 2
    assert of_one(boca.Int(1, 2), lambda z: z["z"]) == [1, 2]  # and two thirds to the target
    assert all(type(z) is int for z in of_one(boca.Int(1, 100, log=True), lambda z: z["z"]))


def test_where_all_fidelities_are_options_the_list_is_all_of_those_that_are_cheaper():
    cost = {"a": 3.0, "b": 7.0, "c": 1.0, "d": 5.0, "e": 5.0}
    sources = boca.Choice(list(cost))
    assert of_one(sources, lambda z: cost[z["z"]], target={"z": "d"}) == ["c", "a", "d"]
    two = boca.Space(s=boca.Choice(["x", "y"]), t=boca.Choice([1, 2, 3]))
    problem = boca.Problem(X, two, cost=lambda z: 1.0 + (z["s"] == "y") * 10 + z["t"], target={"s": "y", "t": 3})
    assert [(z["s"], z["t"]) for z in members(problem)] == [(s, t) for s in "xy" for t in (1, 2, 3)]


def test_beside_numbers_an_option_stays_that_of_the_target():
    fidelity = boca.Space(source=boca.Choice(["sim", "lab"]), n=boca.Float(0.0, 9.0))
    problem = boca.Problem(
        X, fidelity, cost=lambda z: 1.0 + (z["source"] == "lab") + z["n"], target={"source": "lab", "n": 9.0}
    )
    assert [(z["source"], z["n"]) for z in members(problem)] == [("lab", 3.0), ("lab", 6.0), ("lab", 9.0)]


def test_where_nothing_is_cheaper_the_list_is_the_target():
    assert of_one(boca.Float(0.0, 1.0), lambda z: 2.0) == [1.0]
    assert of_one(boca.Float(0.0, 1.0), lambda z: 2.0 - z["z"]) == [1.0]
    assert of_one(boca.Choice(["a", "b"]), lambda z: 1.0, target={"z": "a"}) == ["a"]


def test_without_fidelities_the_list_is_the_target():
    assert members(boca.Problem(X)) == [{}]


# A list that the user gives -----------------------------------------------------------------------------------------


def test_a_list_that_is_given_is_put_in_order_of_cost_with_the_target_last():
    problem = boca.Problem(X, boca.Space(z=boca.Int(0, 10)), cost=lambda z: 1.0 + abs(z["z"] - 2), target={"z": 10})
    given = [{"z": 7}, {"z": 2}, {"z": np.int64(0)}, {"z": 7.0}, {"z": 10}]
    assert [z["z"] for z in members(problem, given)] == [2, 0, 7, 10]
    assert all(type(z["z"]) is int for z in members(problem, given))


def test_of_equal_cost_the_order_that_is_given_stays():
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 1.0 if z["z"] < 1.0 else 2.0)
    assert [z["z"] for z in members(problem, [{"z": 0.7}, {"z": 0.2}, {"z": 0.4}])] == [0.7, 0.2, 0.4, 1.0]


def test_members_as_dear_as_the_target_teach_nothing_that_it_would_not_and_are_left_out():
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 1.0 + z["z"], target={"z": 0.5})
    assert [z["z"] for z in members(problem, [{"z": 0.9}, {"z": 0.25}])] == [0.25, 0.5]


@dataclass(frozen=True)
class Price:
    """A cost that was learned: the middle is cheapest."""

    target: float = 5.0
    grid: tuple[float, ...] = ()

    def of(self, z):
        return 1.0 + 100.0 * (z["z"] - 0.5) ** 2

    pessimistic = of


def test_the_order_is_that_of_the_cost_as_it_is_known_now():
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 1.0)))
    given = [{"z": 0.2}, {"z": 0.4}, {"z": 0.65}]
    assert [z["z"] for z in members(problem, given)] == [0.2, 0.4, 0.65, 1.0]
    assert [z["z"] for z in ladder(problem, given, Price())] == [0.4, 0.65, 1.0]  # 0.2 is dearer than the target


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"fidelities must be a list.*got \[\]"),
        ({"n": 0.5, "m": 3}, "fidelities must be a list"),
        (0.5, "fidelities must be a list"),
        ({0.5}, "fidelities must be a list"),
        ([0.5], r"a member of fidelities must be a mapping with the names \['n', 'm'\]; got 0.5"),
        ("nm", "a member of fidelities must be a mapping"),
        ([{"n": 0.5}], r"a member of fidelities must have exactly the names .* missing: \['m'\]"),
        ([{"n": 0.5, "m": 3, "k": 1}], r"unknown: \['k'\]"),
        ([{"n": 0.5, "m": 3}, {"n": 1.5, "m": 3}], r"a member of fidelities\['n'\] must lie in \[0.0, 1.0\]; got 1.5"),
        ([{"n": 0.5, "m": 2.5}], r"a member of fidelities\['m'\] must be an integer; got 2.5"),
    ],
)
@BOTH
def test_a_list_that_cannot_be_meant_is_refused_when_the_study_is_made(strategy, given, message):
    fidelity = boca.Space(n=boca.Float(0.0, 1.0), m=boca.Int(2, 9))
    problem = boca.Problem(X, fidelity, cost=lambda z: 1.0 + z["n"])
    with pytest.raises(InvalidInput, match=message):
        boca.Optimizer(problem, budget=boca.targets(10), strategy=strategy(fidelities=given), seed=0)


@BOTH
def test_options_beyond_counting_must_be_named(strategy):
    many = boca.Space(a=boca.Choice(list("abcd")), b=boca.Choice([1, 2, 3]))
    problem = boca.Problem(X, many, cost=lambda z: z["b"], target={"a": "a", "b": 3})
    with pytest.raises(InvalidInput, match=r"has 12 points.* at most 10 .*fidelities="):
        boca.Optimizer(problem, budget=boca.targets(10), strategy=strategy(), seed=0)
    some = strategy(fidelities=[{"a": "b", "b": 1}, {"a": "c", "b": 2}])
    boca.Optimizer(problem, budget=boca.targets(10), strategy=some, seed=0)


# The start ----------------------------------------------------------------------------------------------------------


def test_the_start_draws_members_of_the_list_evenly_and_x_anywhere():
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + z["z"])
    levels = members(problem, [{"z": 0.2}, {"z": 0.25}, {"z": 0.9}])
    price = costs(problem, History())
    drawn = [
        random_start(
            problem, History(), Budget(30, 3), np.random.default_rng(i), price, design="uniform", fidelities=levels
        )
        for i in range(2000)
    ]
    counts = Counter(s.z["z"] for s in drawn)
    assert set(counts) == {0.2, 0.25, 0.9, 1.0}
    assert max(abs(count - 500) for count in counts.values()) < 5 * math.sqrt(2000 * 0.25 * 0.75)
    quarters = np.histogram([s.x["x"] for s in drawn], bins=4, range=(0.0, 1.0))[0]
    assert np.max(np.abs(quarters - 500)) < 5 * math.sqrt(2000 * 0.25 * 0.75)
    assert all(s.why["phase"] == "start" for s in drawn)


@BOTH
def test_the_start_spends_a_tenth_on_random_members_of_the_list(strategy):
    """The first query that would pass the tenth ends it: what is left of it is less than a target."""
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.2 + z["z"])
    levels = members(problem)
    seen = Counter()
    for seed in range(4):
        optimizer = boca.Optimizer(problem, budget=60.0, strategy=strategy(maximizer="sobol"), seed=seed)
        while (trial := optimizer.ask()).phase == "start":
            assert trial.z in levels
            seen[levels.index(trial.z)] += 1
            optimizer.tell(trial, math.sin(9.0 * trial.x["x"]))
        start = [t for t in optimizer.history if t.phase == "start"]
        assert 6.0 - 1.2 < sum(t.cost for t in start) <= 6.0
        assert trial.phase == "model"
    assert set(seen) == {0, 1, 2}


@BOTH
def test_a_start_without_money_has_two_queries(strategy):
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.2 + z["z"])
    optimizer = boca.Optimizer(problem, budget=boca.targets(4), strategy=strategy(maximizer="sobol"), seed=0)
    phases = []
    for _ in range(3):
        trial = optimizer.ask()
        phases.append(trial.phase)
        optimizer.tell(trial, trial.x["x"])
    assert phases == ["start", "start", "model"]


@BOTH
def test_results_at_other_fidelities_alone_do_not_make_a_model(strategy):
    """They pay for the start, but no level knows them: the list is asked first."""
    problem = boca.Problem(X, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.2 + z["z"])
    optimizer = boca.Optimizer(problem, budget=boca.targets(10), strategy=strategy(maximizer="sobol"), seed=0)
    for i in range(5):
        optimizer.add({"x": i / 4}, {"z": 0.1 * i}, float(i), cost=5.0)
    phases = []
    for _ in range(3):
        trial = optimizer.ask()
        phases.append(trial.phase)
        assert trial.z in members(problem)
        optimizer.tell(trial, trial.x["x"])
    assert phases == ["start", "model", "model"]


# When everything is out ---------------------------------------------------------------------------------------------


@BOTH
def test_where_a_point_is_out_at_its_level_the_other_members_of_the_list_come_first(strategy):
    """Two points at three fidelities: six queries that the model can learn from."""
    problem = boca.Problem(
        boca.Space(c=boca.Choice(["u", "v"])), boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + z["z"]
    )
    optimizer = boca.Optimizer(problem, budget=boca.targets(60), strategy=strategy(maximizer="sobol"), seed=0)
    for i in range(4):
        optimizer.add({"c": "uv"[i % 2]}, {"z": 1.0}, float(i), cost=20.0)
    trials = optimizer.ask(6)
    assert all(t.z in members(problem) for t in trials)


@BOTH
def test_a_fidelity_off_the_list_is_not_called_the_target(strategy):
    problem = boca.Problem(
        boca.Space(c=boca.Choice(["u", "v"])), boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + z["z"]
    )
    optimizer = boca.Optimizer(problem, budget=boca.targets(60), strategy=strategy(maximizer="sobol"), seed=0)
    for i in range(4):
        optimizer.add({"c": "uv"[i % 2]}, {"z": 1.0}, float(i), cost=20.0)
    for trial in optimizer.ask(9):
        assert problem.is_target(trial.z) or "The target fidelity" not in trial.why["reason"]
        assert trial.z in members(problem) or not {"level", "below"} & set(trial.why)
