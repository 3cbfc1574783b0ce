"""Problems, targets, costs and budgets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from boca import Choice, Float, Int, Problem, Space
from boca.domain.errors import InvalidInput

X = Space(a=Float(0, 1))
NT = Space(N=Int(5000, 15000), T=Int(20, 100))


def nt_cost(z):
    return z["N"] * z["T"]


# The target -----------------------------------------------------------------------------------------------------------


def test_a_name_left_out_of_the_target_takes_its_upper_bound():
    assert Problem(X, NT).target == {"N": 15000, "T": 100}
    assert Problem(X, NT, target={"T": 50}).target == {"N": 15000, "T": 50}
    assert Problem(X, NT, target={"T": 50, "N": 5000}).target == {"N": 5000, "T": 50}
    assert list(Problem(X, NT, target={"T": 50, "N": 5000}).target) == ["N", "T"]
    assert Problem(X, Space(n=Float(1, 8))).target == {"n": 8.0}


def test_the_target_is_taken_in_canonical_types():
    target = Problem(X, Space(N=Int(1, 9), f=Float(0, 2)), target={"N": np.int64(4), "f": 1}).target
    assert target == {"N": 4, "f": 1.0}
    assert [type(v) for v in target.values()] == [int, float]


def test_the_target_of_a_choice_must_be_given():
    fidelity = Space(source=Choice(["coarse", "fine"]), n=Float(1, 2))
    with pytest.raises(InvalidInput, match=r"target\['source'\].*\['coarse', 'fine'\]"):
        Problem(X, fidelity)
    assert Problem(X, fidelity, target={"source": "fine"}).target == {"source": "fine", "n": 2.0}


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (100, r"target must map names of fidelities to values; got 100"),
        (0, r"target must map names of fidelities to values; got 0"),
        ([15000, 100], r"target must map names of fidelities to values; got \[15000, 100\]"),
        ({"N": 15001}, r"target\['N'\] must lie in \[5000, 15000\]; got 15001"),
        ({"N": 6000.5}, r"target\['N'\] must be an integer"),
        ({"N": math.nan}, r"target\['N'\]"),
        ({"M": 1}, r"may only name fidelities \['N', 'T'\]; got \['M'\]"),
    ],
)
def test_a_target_outside_the_fidelities_is_refused(target, message):
    with pytest.raises(InvalidInput, match=message):
        Problem(X, NT, target=target)


def test_is_target_means_exactly_the_target():
    problem = Problem(X, Space(n=Float(0, 1), m=Int(1, 3)), target={"n": 0.3})
    assert problem.is_target({"n": 0.3, "m": 3})
    assert not problem.is_target({"n": math.nextafter(0.3, 1), "m": 3})
    assert not problem.is_target({"n": 0.3, "m": 2})


# What a problem is made of --------------------------------------------------------------------------------------------


def test_a_problem_tells_what_it_was_made_of():
    problem = Problem(X, NT, cost=nt_cost, direction="minimize")
    assert problem.space is X
    assert problem.fidelity is NT
    assert problem.direction == "minimize"
    assert problem.cost({"N": 5000, "T": 20}) == 100_000
    assert problem.target_cost == 1_500_000
    assert Problem(X).direction == "maximize"


def test_without_fidelities_every_query_is_one_target():
    for problem in (Problem(X), Problem(X, Space()), Problem(X, None, target={})):
        assert len(problem.fidelity) == 0
        assert problem.target == {}
        assert problem.is_target({})
        assert problem.cost({}) == problem.target_cost == 1.0
        assert problem.has_declared_cost
        assert problem.grid[0] == [{}]
        assert problem.grid[1].shape == (1, 0)


def test_without_fidelities_a_cost_may_still_be_declared():
    assert Problem(X, cost=lambda z: 7.0).target_cost == 7.0


@pytest.mark.parametrize("space", [None, Space(), {"a": Float(0, 1)}, Float(0, 1)])
def test_the_space_must_be_a_space_with_parameters(space):
    with pytest.raises(InvalidInput, match=r"space must be a boca.Space with at least one parameter"):
        Problem(space)


@pytest.mark.parametrize("fidelity", [{"n": Float(0, 1)}, Float(0, 1), "n"])
def test_the_fidelity_must_be_a_space(fidelity):
    with pytest.raises(InvalidInput, match=r"fidelity must be a boca.Space or None"):
        Problem(X, fidelity)


def test_a_name_may_not_be_in_both_spaces():
    with pytest.raises(InvalidInput, match=r"not in both; got \['b', 'n'\]"):
        Problem(Space(n=Float(0, 1), b=Float(0, 1), c=Int(1, 2)), Space(b=Float(0, 1), n=Int(1, 2)))


@pytest.mark.parametrize("direction", ["up", "", None, 1, "Maximize", ["max"]])
def test_the_direction_is_one_of_two(direction):
    with pytest.raises(InvalidInput, match="direction must be 'maximize' or 'minimize'"):
        Problem(X, direction=direction)


# Costs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [-1.0, 0.0, math.nan, math.inf, "3", None, True, [1.0, 2.0]])
def test_a_cost_that_is_not_positive_and_finite_is_refused_at_once(cost):
    with pytest.raises(InvalidInput, match=r"cost\(z\) must be a positive finite number; got .* at z=\{'n': 1.0\}"):
        Problem(X, Space(n=Float(0, 1)), cost=lambda z: cost)


def test_a_cost_that_is_wrong_at_the_cheap_end_alone_is_refused_at_once():
    with pytest.raises(InvalidInput, match=r"got 0.0 at z=\{'n': 0.0\}"):
        Problem(X, Space(n=Float(0, 1)), cost=lambda z: z["n"])


def test_a_cost_that_is_wrong_in_between_is_refused_when_the_problem_is_made():
    with pytest.raises(InvalidInput, match=r"got 0.0 at z=\{'n': 0.5\}"):
        Problem(X, Space(n=Float(0, 1)), cost=lambda z: abs(z["n"] - 0.5))


def test_a_cost_that_is_wrong_between_the_points_of_the_grid_is_refused_when_it_is_met():
    problem = Problem(X, Space(n=Float(0, 1)), cost=lambda z: abs(z["n"] - 0.505))
    with pytest.raises(InvalidInput, match=r"got 0.0 at z=\{'n': 0.505\}"):
        problem.cost({"n": 0.505})


def test_a_cost_that_raises_shows_its_error_when_the_problem_is_made():
    def cost(z):
        raise ZeroDivisionError("no such machine")

    said = r"at z=.*'N': 15000.* it raised ZeroDivisionError.'no such machine'"
    with pytest.raises(InvalidInput, match=said) as caught:
        Problem(X, NT, cost=cost)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("cost", [3.0, "N * T", {"N": 1}])
def test_a_cost_must_be_a_function(cost):
    with pytest.raises(InvalidInput, match="cost must be a function of z, or None to have it measured"):
        Problem(X, NT, cost=cost)


def test_a_cost_function_cannot_change_the_point():
    def cost(z):
        return z.pop("n") + 1.0

    problem = Problem(X, Space(n=Float(0, 1)), cost=cost)
    z = {"n": 0.5}
    assert problem.cost(z) == problem.cost(z) == 1.5
    assert problem.target == {"n": 1.0}


def test_costs_of_other_number_types_become_floats():
    problem = Problem(X, Space(n=Int(1, 9)), cost=lambda z: np.int64(z["n"]))
    assert problem.cost({"n": 4}) == 4.0
    assert type(problem.cost({"n": 4})) is float


def test_before_the_first_result_an_unknown_cost_is_the_product_of_the_ratios_to_the_target():
    problem = Problem(X, Space(N=Int(100, 1000), T=Float(1, 8)), target={"T": 4.0})
    assert not problem.has_declared_cost
    assert problem.target_cost == 1.0
    assert problem.cost({"N": 500, "T": 2.0}) == 0.25
    assert problem.cost({"N": 500, "T": 8.0}) == 1.0


# The fidelities among which a strategy chooses ------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 6])
def test_the_grid_of_fidelities_exists_and_has_its_corners(p):
    fidelity = Space({f"z{i}": Float(0.5, 2.0) if i % 2 else Int(1, 30) for i in range(p)})
    problem = Problem(X, fidelity, cost=lambda z: math.prod(z.values()))
    points, Z = problem.grid
    assert len(points) == len(Z) == len(problem.grid_costs)
    assert len(points) <= 4 * 1296
    assert all(fidelity.validate(z, "z") == z for z in points)
    np.testing.assert_allclose(fidelity.to_unit(points), Z, atol=1e-12)
    low, high = ({name: getattr(q, end) for name, q in fidelity.items()} for end in ("low", "high"))
    assert low in points
    assert high in points
    assert len({tuple(z.values()) for z in points}) == len(points)
    assert problem.grid_costs.tolist() == [problem.cost(z) for z in points]


def test_a_small_discrete_fidelity_is_in_the_grid_completely():
    problem = Problem(X, Space(n=Int(3, 9), s=Choice(["a", "b", "c"])), target={"s": "b"})
    assert len(problem.grid[0]) == 21
    assert {(z["n"], z["s"]) for z in problem.grid[0]} == {(n, s) for n in range(3, 10) for s in "abc"}


def fidelity_problem(fidelity, target=None):
    return Problem(X, fidelity, cost=lambda z: 1.0, target=target)


@pytest.mark.parametrize(("p", "points"), [(1, 101), (2, 21), (3, 10), (4, 6)])
def test_the_grid_has_the_points_a_dimension_that_were_settled_ends_included(p, points):
    problem = fidelity_problem(Space({f"z{i}": Float(0.0, 1.0) for i in range(p)}))
    Z = problem.grid[1]
    assert Z.shape == (points**p, p)
    assert len(np.unique(Z, axis=0)) == points**p
    for j in range(p):
        np.testing.assert_allclose(np.unique(Z[:, j]), np.linspace(0.0, 1.0, points), atol=1e-15)


def test_beyond_four_dimensions_the_grid_is_sobol_points_and_the_corners():
    problem = fidelity_problem(Space({f"z{i}": Float(0.0, 1.0) for i in range(5)}))
    rows = {tuple(z) for z in problem.grid[1]}
    corners = set(itertools.product((0.0, 1.0), repeat=5))
    assert corners <= rows
    assert 1296 <= len(rows) <= 1296 + 32
    inside = np.array(sorted(rows - corners))
    assert np.all(np.abs(np.histogram(inside[:, 2], bins=4, range=(0, 1))[0] - 324) < 20)


def test_integer_fidelities_are_on_their_lattice_and_complete_where_they_are_few():
    problem = fidelity_problem(Space(n=Int(3, 50), m=Int(1, 4)))
    points = {(z["n"], z["m"]) for z in problem.grid[0]}
    assert {m for _, m in points} == {1, 2, 3, 4}
    ns = sorted({n for n, _ in points})
    assert len(ns) == 21
    assert ns[0] == 3
    assert ns[-1] == 50
    assert all(isinstance(z["n"], int) for z in problem.grid[0])
    np.testing.assert_array_equal(problem.fidelity.to_unit(problem.grid[0]), problem.grid[1])


@pytest.mark.parametrize("log", [False, True])
def test_an_integer_fidelity_with_fewer_values_than_the_grid_has_points_is_there_completely(log):
    problem = fidelity_problem(Space(n=Int(1, 16, log=log)))
    assert sorted(z["n"] for z in problem.grid[0]) == list(range(1, 17))


def test_a_choice_of_fidelity_is_in_the_grid_with_all_its_options():
    problem = fidelity_problem(Space(s=Choice(list("abcde")), z=Float(0, 1)), target={"s": "a"})
    assert {z["s"] for z in problem.grid[0]} == set("abcde")
    assert len(problem.grid[0]) == 5 * 21


def test_without_fidelities_the_grid_is_the_target():
    problem = Problem(X)
    assert problem.grid[0] == [{}]


def test_a_swapped_space_and_fidelity_are_named():
    for swapped in ({"cost": nt_cost}, {"target": {"N": 15000}}):
        with pytest.raises(InvalidInput) as refused:
            Problem(NT, X, **swapped)
        assert "'N' is a parameter of space" in str(refused.value)
        assert "swapped" in str(refused.value)
    with pytest.raises(InvalidInput) as refused:
        Problem(X, NT, cost=lambda z: z["M"])
    assert "swapped" not in str(refused.value)


# Points to begin with, and values that repeat -------------------------------------------------------------------------

THREE = Space(lr=Float(1e-3, 1e-1, log=True), n=Int(1, 5), kind=Choice(["one", "two"]))


def test_first_points_are_filled_up_with_the_middle():
    problem = Problem(THREE, first=[{"lr": 0.05}, {}, {"n": 1, "kind": "two"}, {"lr": 0.05}])
    assert problem.middle == {"lr": pytest.approx(1e-2), "n": 3, "kind": "one"}
    assert problem.first == [
        {"lr": 0.05, "n": 3, "kind": "one"},
        problem.middle,
        {"lr": problem.middle["lr"], "n": 1, "kind": "two"},
    ]
    assert Problem(THREE).first == []


@pytest.mark.parametrize("first", [{"lr": 0.1}, "lr", 3, [3], [{"rate": 0.1}], [{"lr": 7.0}], [{"n": 2.5}]])
def test_a_wrong_first_point_is_refused(first):
    with pytest.raises(InvalidInput, match="first"):
        Problem(THREE, first=first)


def test_first_points_respect_conditions_and_constraints():
    space = Space(
        kernel=Choice(["rbf", "linear"]), C=Float(0.0, 1.0), gamma=Float(0.0, 1.0, when={"kernel": ["rbf"]})
    ).where("C + gamma <= 0.8")
    problem = Problem(space, first=[{"kernel": "linear"}, {"gamma": 0.1}])
    assert problem.first == [{"kernel": "linear", "C": 0.5}, {"kernel": "rbf", "C": 0.5, "gamma": 0.1}]
    with pytest.raises(InvalidInput, match=r"C \+ gamma <= 0.8"):
        Problem(space, first=[{"gamma": 0.9}])
    with pytest.raises(InvalidInput, match="gamma"):
        Problem(space, first=[{"kernel": "linear", "gamma": 0.1}])


def test_deterministic_is_yes_or_no():
    assert Problem(THREE, deterministic=True).deterministic
    assert not Problem(THREE).deterministic
    with pytest.raises(InvalidInput, match="deterministic must be True or False; got 1"):
        Problem(THREE, deterministic=1)
