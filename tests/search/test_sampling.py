"""Points of spaces with conditions and constraints: they exist, are feasible, and reach everywhere."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boca import Choice, Float, Int, Space
from boca.search.sampling import around, branch_of, chain, defaults, in_branches, moved_by, snapped, spread
from support.spaces import PIPELINE, is_exact, random_space

always = settings(deadline=None, derandomize=True, max_examples=200)


def exists(space, U):
    points = [space.from_unit(u) for u in U]
    return np.array_equal(space.snap(U), U) and all(is_exact(space, x) and not space.violated(x) for x in points)


@always
@given(st.integers(0, 10**6))
def test_all_points_exist_and_satisfy_the_constraints(seed):
    rng = np.random.default_rng(seed)
    space = random_space(rng)
    U = spread(space, rng.random((48, len(space))), rng)
    assert len(U)
    assert exists(space, U)
    assert exists(space, around(space, U[:2], rng, 16))
    assert exists(space, moved_by(space, U[0], 0.1, rng, 8))
    assert exists(space, chain(space, U[:1], rng, 24))


def test_every_branch_has_its_share():
    rng = np.random.default_rng(0)
    U = in_branches(PIPELINE, rng.random((100, 5)), rng)
    _, counts = np.unique(branch_of(PIPELINE, U), return_counts=True)
    # 3, 4, 4 and 5 of 16: one more than the active parameters
    assert np.all(np.abs(np.sort(counts) - 100 * np.array([3, 4, 4, 5]) / 16) <= 1.0)


@pytest.mark.parametrize("d", [2, 5])
def test_a_chain_follows_a_set_of_a_ten_thousandth_of_the_volume(d):
    # |a + b - 1| < 5e-5 is 1e-4 of the square; a thin band, along which the chain must go from one end to the other
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(d)}).where(
        lambda x: abs(x["x0"] + x["x1"] - 1.0) < 5e-5, "a thin band", example={f"x{i}": 0.5 for i in range(d)}
    )
    U = chain(space, space.to_unit([space.example]), np.random.default_rng(0), 256)
    assert len(U) >= 256
    assert np.all(np.abs(U[:, :2].sum(axis=1) - 1.0) < 5e-5)
    assert U[:, 0].min() < 0.2
    assert U[:, 0].max() > 0.8


def test_a_chain_reaches_all_of_a_discrete_set():
    space = Space(a=Int(0, 20), b=Int(0, 20)).where("a + b == 20")
    U = chain(space, space.to_unit([{"a": 10, "b": 10}]), np.random.default_rng(1), 50)
    assert len(np.unique(U, axis=0)) >= 15


def test_what_becomes_active_takes_a_given_coordinate():
    U = PIPELINE.to_unit([{"kernel": "linear", "C": 1.0}])
    U[0, 0] = 0.0  # rbf
    assert snapped(PIPELINE, U, np.full(5, 0.25))[0, 2] == 0.25
    assert PIPELINE.snap(U)[0, 2] == 0.5


def test_defaults_are_those_of_the_best_point_that_has_them():
    ranked = np.array([[0.0, 0.1, -1.0], [0.5, 0.2, 0.7], [1.0, 0.3, 0.9]])
    assert defaults(ranked).tolist() == [0.0, 0.1, 0.7]
    assert defaults(np.array([[0.0, -1.0]])).tolist() == [0.0, 0.5]


def test_without_a_feasible_anchor_there_is_nothing_around():
    space = Space(a=Float(0, 1), k=Choice([0, 1])).where("a <= 0.5")
    assert len(around(space, np.array([[0.9, 0.0]]), np.random.default_rng(0), 8)) == 0
    assert len(around(space, np.empty((0, 2)), np.random.default_rng(0), 8)) == 0
