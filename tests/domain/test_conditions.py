"""Conditions: which parameters are active, and that points that differ in an inactive one are the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import boca
from boca import Choice, Float, Int, Space
from boca.domain.conditions import INACTIVE, When
from boca.domain.space import parameter_from_json
from boca.errors import InvalidInput
from support.spaces import PIPELINE, grid_of, is_exact, random_points, random_space

always = settings(deadline=None, derandomize=True, max_examples=200)


@always
@given(st.integers(0, 10**6))
def test_points_hold_exactly_what_is_active(seed):
    rng = np.random.default_rng(seed)
    space = random_space(rng, constrained=False)
    for x in random_points(space, rng, 20):
        assert is_exact(space, x)
        assert space.validate(x, "x") == x


@always
@given(st.integers(0, 10**6))
def test_the_way_to_the_unit_cube_and_back_is_exact(seed):
    rng = np.random.default_rng(seed)
    space = random_space(rng, constrained=False)
    points = random_points(space, rng, 20)
    U = space.to_unit(points)
    assert np.array_equal(U >= 0.0, [[name in x for name in space] for x in points])
    assert np.array_equal(space.snap(U) < 0.0, U < 0.0)
    for x, u in zip(points, U, strict=True):
        back = space.from_unit(u)
        assert list(back) == list(x)
        assert all(back[k] == x[k] or abs(back[k] - x[k]) < 1e-9 for k in x)


@always
@given(st.integers(0, 10**6))
def test_a_finite_space_lists_every_point_once(seed):
    space = random_space(np.random.default_rng(seed), constrained=False, finite=True)
    listed = [space.from_unit(u) for u in space.points()]
    assert len(listed) == space.size
    assert sorted(map(repr, listed)) == sorted(map(repr, grid_of(space)))


def test_points_that_differ_in_an_inactive_parameter_are_one():
    given = {"kernel": "linear", "C": 1.0}
    assert PIPELINE.validate(given | {"gamma": 0.1, "degree": None}, "x") == given
    optimizer = boca.Optimizer(boca.Problem(PIPELINE), budget=None, seed=0)
    optimizer.enqueue(given | {"gamma": 0.1})
    assert optimizer.ask().x == given


def test_points_with_equal_values_of_other_parameters_are_two():
    # by position, (1, 0.5) would be both
    space = Space(g=Float(0, 1, when={"k": [0.5]}), k=Choice([0.5, 1.0]), h=Float(0, 1, when={"k": [1.0]}))
    optimizer = boca.Optimizer(boca.Problem(space), budget=None, seed=0)
    optimizer.enqueue({"g": 1.0, "k": 0.5})
    optimizer.enqueue({"k": 1.0, "h": 0.5})
    assert [optimizer.ask().why["phase"] for _ in range(2)] == ["queued", "queued"]


def test_an_active_parameter_that_is_missing_is_named_with_its_condition():
    with pytest.raises(InvalidInput, match=r"gamma.*rbf"):
        PIPELINE.validate({"kernel": "rbf", "C": 1.0}, "x")


def test_nested_conditions_close_with_their_parents():
    x = PIPELINE.validate({"kernel": "poly", "C": 1.0, "degree": 3, "shift": 0.5, "gamma": 1.0}, "x")
    assert list(x) == ["kernel", "C", "degree", "shift"]
    assert PIPELINE.to_unit([x])[0, 2] == INACTIVE
    assert "shift" not in PIPELINE.validate({"kernel": "poly", "C": 1.0, "degree": 2, "shift": 0.5}, "x")


def test_branches_are_the_sets_that_are_active_together():
    found = {tuple(np.flatnonzero(branch.active).tolist()) for branch in PIPELINE.branches}
    assert found == {(0, 1), (0, 1, 2), (0, 1, 3), (0, 1, 3, 4)}
    assert PIPELINE.widest == 4
    assert Space(a=Float(0, 1), b=Int(1, 3)).widest == 2


def test_too_many_layouts_to_list_are_sampled():
    switches = {f"s{i}": Choice([0, 1]) for i in range(14)}
    space = Space({**switches, "a": Float(0, 1, when={"s0": [1]})})
    assert {int(branch.active.sum()) for branch in space.branches} == {14, 15}


@pytest.mark.parametrize(
    ("parameters", "part"),
    [
        ({"a": Float(0, 1, when={"k": ["x"]})}, "'k'"),
        ({"k": Float(0, 1), "a": Float(0, 1, when={"k": [0.5]})}, "Float"),
        ({"k": Choice(["x", "y"]), "a": Float(0, 1, when={"k": ["z"]})}, "'z'"),
        ({"k": Choice(["x", "y"], when={"k": ["x"]})}, "'k'"),
        ({"k": Choice([0, 1], when={"l": [0]}), "l": Choice([0, 1], when={"k": [0]})}, "circle"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(parameters, part):
    with pytest.raises(InvalidInput, match=part):
        Space(parameters)


@pytest.mark.parametrize("when", [{}, {"k": "rbf"}, {"k": []}, ["k"], {1: ["x"]}, {"k": 3}])
def test_when_is_a_mapping_from_names_to_lists(when):
    with pytest.raises(InvalidInput, match="when"):
        Float(0, 1, when=when)


def test_a_condition_is_shown_stored_and_compared():
    parameter = Int(1, 5, log=True, when={"k": ["x"]})
    assert parameter_from_json(parameter.to_json()) == parameter != Int(1, 5, log=True)
    assert parameter.when == {"k": ["x"]}
    assert hash(parameter) == hash(Int(1, 5, log=True, when={"k": ("x",)}))
    assert repr(parameter) == "Int(low=1, high=5, log=True, when={'k': ['x']})"
    assert "when" not in repr(Int(1, 5))
    assert "when" not in Int(1, 5).to_json()
    assert dict(When({"k": ["x"]})) == {"k": ("x",)}


def test_fidelities_have_no_conditions():
    fidelity = Space(k=Choice([0, 1]), n=Int(1, 5, when={"k": [0]}))
    with pytest.raises(InvalidInput, match="fidelity has conditions"):
        boca.Problem(Space(a=Float(0, 1)), fidelity, target={"k": 0})
