"""The hypervolume: by brute force on a grid, by inclusion and exclusion, and by Monte Carlo."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boca.domain.hypervolume import Region, growth, hypervolume, in_order, undominated


def by_inclusion_and_exclusion(Y, reference):
    """Return the volume of a union of boxes, as the alternating sum over all their intersections."""
    total = 0.0
    for size in range(1, len(Y) + 1):
        for some in itertools.combinations(Y, size):
            total += (-1) ** (size + 1) * np.prod(np.maximum(np.min(some, axis=0) - reference, 0.0))
    return total


def on_grid(Y, reference, top):
    """Count the unit cells between the reference and the points, whose coordinates are integers."""
    cells = itertools.product(*(range(low, high) for low, high in zip(reference, top, strict=True)))
    return sum(any(all(c + 1 <= y for c, y in zip(cell, point, strict=True)) for point in Y) for cell in cells)


def cloud(n, m, seed):
    return np.random.default_rng(seed).random((n, m))


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_volume_of_the_union_of_boxes(m, seed):
    Y, reference = cloud(8, m, seed), np.full(m, 0.1)
    assert hypervolume(Y, reference) == pytest.approx(by_inclusion_and_exclusion(Y, reference), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 4).flatmap(lambda m: st.lists(st.tuples(*[st.integers(0, 4)] * m), min_size=0, max_size=7)))
def test_it_counts_the_cells_of_a_grid_with_ties_and_points_on_the_reference(points):
    m = len(points[0]) if points else 2
    Y = np.array(points, dtype=float).reshape(-1, m)
    assert hypervolume(Y, np.full(m, 1.0)) == pytest.approx(on_grid(points, [1] * m, [4] * m), abs=1e-9)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_it_agrees_with_monte_carlo(m):
    Y = cloud(30, m, 0)
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    drawn = np.random.default_rng(1).random((40_000, m))
    below = np.mean([(point <= Y).all(axis=1).any() for point in drawn])
    assert hypervolume(Y, np.zeros(m)) == pytest.approx(below, abs=4 * np.sqrt(below * (1 - below) / len(drawn)))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_order_of_the_points_does_not_matter(m):
    Y, reference = cloud(12, m, 2), np.full(m, 0.05)
    rng = np.random.default_rng(0)
    found = [growth(Y[rng.permutation(len(Y))], reference)[-1] for _ in range(4)]
    assert found == pytest.approx([hypervolume(Y, reference)] * 4, rel=1e-12)


def test_points_that_are_dominated_or_not_above_the_reference_add_nothing():
    Y = np.array([[2.0, 2.0], [1.5, 1.5], [3.0, 0.0], [2.0, 2.0], [0.5, 9.0]])
    assert growth(Y, np.array([1.0, 1.0])).tolist() == [1.0] * 5
    assert hypervolume(np.empty((0, 2)), np.zeros(2)) == 0.0
    assert hypervolume(np.array([[0.0, 5.0]]), np.zeros(2)) == 0.0


@pytest.mark.parametrize("m", [2, 3, 4])
def test_the_boxes_are_disjoint_and_hold_exactly_what_no_point_dominates(m):
    Y, reference = cloud(15, m, 3), np.full(m, 0.1)
    region = Region.above(reference, Y)
    drawn = np.random.default_rng(4).uniform(0.1, 1.3, (2000, m))
    inside = np.sum(np.all((drawn[:, None] > region.low) & (drawn[:, None] <= region.high), axis=2), axis=1)
    dominated = (drawn[:, None] <= Y).all(axis=2).any(axis=1)
    assert inside.tolist() == (~dominated).astype(int).tolist()


@pytest.mark.parametrize("m", [2, 3, 4])
def test_a_gain_is_the_difference_of_two_hypervolumes(m):
    Y, reference = cloud(10, m, 5), np.full(m, 0.2)
    new = 1.2 * cloud(6, m, 6)
    gains = Region.above(reference, Y).gain(new)
    assert gains == pytest.approx(
        [hypervolume(np.vstack([Y, y]), reference) - hypervolume(Y, reference) for y in new], abs=1e-12
    )


def test_undominated_points_by_brute_force():
    Y = np.round(3 * cloud(40, 3, 7))
    expected = [not any((other >= y).all() and (other > y).any() for other in Y) for y in Y]
    assert undominated(Y).tolist() == expected
    assert undominated(np.empty((0, 3))).tolist() == []
    assert undominated(np.array([[1e17, 1.0], [1e17, 2.0], [0.0, 3.0]])).tolist() == [False, True, True]
    assert undominated(np.ones((3, 2))).tolist() == [True] * 3


def test_the_middle_of_a_front_comes_first_and_leaves_few_boxes():
    Y = np.abs(np.random.default_rng(0).standard_normal((60, 4)))
    Y /= np.linalg.norm(Y, axis=1, keepdims=True)
    reference = np.zeros(4)
    sorted_by_one = Y[np.argsort(Y[:, 3])]
    few = Region.above(reference, in_order(Y, reference))
    assert 10 * len(few.low) < len(Region.above(reference, sorted_by_one).low)
    assert in_order(np.empty((0, 2)), np.zeros(2)).shape == (0, 2)
