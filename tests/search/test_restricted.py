"""The maximum over a space that is no box, against brute force and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boca import Candidates, Choice, Float, Int, Space
from boca.search.maximizer import check_maximizer, direct, sobol
from support.spaces import PIPELINE, grid_of, is_exact, random_space

NOWHERE = np.empty((0, 0))


class Function:
    """A smooth function of the coordinates that are active, with its gradient."""

    def __init__(self, space, seed=0):
        rng = np.random.default_rng(seed)
        self.peak, self.level = rng.random(len(space)), rng.standard_normal(len(space))
        self.tilt = rng.standard_normal(len(space))

    def value(self, U):
        active = U >= 0.0
        return np.where(active, self.level + self.tilt * U - 3.0 * np.square(U - self.peak), 0.0).sum(axis=1)

    def value_and_gradient(self, U):
        return self.value(U), np.where(U >= 0.0, self.tilt - 6.0 * (U - self.peak), 0.0)


def maximum(space, function, seed=0, anchors=None):
    anchors = np.empty((0, len(space))) if anchors is None else anchors
    return sobol(function, space, np.random.default_rng(seed), anchors)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(0, 10**6))
def test_a_small_discrete_space_is_searched_exactly(seed):
    space = random_space(np.random.default_rng(seed), finite=True)
    function = Function(space, seed)
    every = function.value(space.to_unit(grid_of(space)))
    found = maximum(space, function)
    assert function.value(found[:1])[0] == pytest.approx(every.max(), abs=1e-12)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.integers(0, 10**6))
def test_all_that_is_returned_exists_and_is_feasible(seed):
    space = random_space(np.random.default_rng(seed))
    found = maximum(space, Function(space, seed), seed)
    points = [space.from_unit(u) for u in found]
    assert np.array_equal(space.snap(found), found)
    assert all(is_exact(space, x) and space.violated(x) is None for x in points)
    values = Function(space, seed).value(found)
    assert np.all(np.diff(values) <= 1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_the_best_branch_is_found_with_its_maximum(seed):
    function = Function(PIPELINE, seed)
    best = -np.inf  # each active coordinate on its own, on a fine grid of its values
    for branch in PIPELINE.branches:
        for layout in branch.layouts:
            total = 0.0
            for j, parameter in enumerate(PIPELINE.values()):
                if branch.active[j]:
                    u = parameter.axis(100_001) if np.isnan(layout[j]) else layout[j : j + 1]
                    total += np.max(function.level[j] + function.tilt[j] * u - 3.0 * (u - function.peak[j]) ** 2)
            best = max(best, total)
    assert function.value(maximum(PIPELINE, function)[:1])[0] == pytest.approx(best, abs=1e-6)


class Plane:
    """A plane, whose maximum is at the border."""

    def __init__(self, slope):
        self.slope = np.array(slope)

    def value(self, U):
        return U @ self.slope

    def value_and_gradient(self, U):
        return self.value(U), np.tile(self.slope, (len(U), 1))


@pytest.mark.parametrize("seed", range(3))
def test_the_maximum_on_the_border_of_a_disc(seed):
    space = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)).where("a ** 2 + b ** 2 <= 0.25")
    found = maximum(space, Plane([3.0, 4.0]), seed)
    assert Plane([3.0, 4.0]).value(found[:1])[0] == pytest.approx(2.5, abs=2e-3)  # slope times the radius


def test_the_maximum_in_a_set_of_a_ten_thousandth_of_the_volume():
    space = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0), c=Float(0.0, 1.0)).where(
        lambda x: abs(x["a"] + x["b"] - 1.0) < 5e-5, "a thin band", example={"a": 0.5, "b": 0.5, "c": 0.5}
    )
    found = maximum(space, Plane([1.0, 0.5, 0.2]), anchors=space.to_unit([space.example]))
    assert np.all(space.feasible(found))
    assert Plane([1.0, 0.5, 0.2]).value(found[:1])[0] == pytest.approx(1.2, abs=0.05)


def test_integers_under_a_constraint_end_on_the_best_feasible_lattice_point():
    space = Space(a=Int(0, 60), b=Int(0, 60)).where("3 * a + 4 * b <= 100")
    u = space.to_unit([{"a": a, "b": b} for a in range(61) for b in range(61) if 3 * a + 4 * b <= 100])
    plane = Plane([1.0, 1.1])
    assert plane.value(maximum(space, plane)[:1])[0] == pytest.approx(plane.value(u).max(), abs=1e-12)


def test_the_rows_of_a_list_are_ranked():
    rows = [{"a": float(a), "k": k} for a in np.linspace(0, 1, 50) for k in ("x", "y")]
    space = Candidates(rows)
    function = Function(space)
    found = maximum(space, function)
    assert np.array_equal(np.sort(function.value(found))[::-1], function.value(found))
    assert len(found) == 100


def test_direct_refuses_what_is_no_box():
    for space in (PIPELINE, Space(a=Float(0, 1)).where("a <= 0.5"), Candidates([{"a": 1}, {"a": 2}])):
        with pytest.raises(ValueError, match="divides a box"):
            check_maximizer("direct", space)
        with pytest.raises(ValueError, match="divides a box"):
            direct(Function(space), space, np.random.default_rng(0), NOWHERE)
        check_maximizer("sobol", space)
    check_maximizer("direct", Space(a=Float(0, 1), k=Choice([0, 1])))
