"""DIRECT against its definition, written out rectangle by rectangle, and against another implementation of it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import Bounds
from scipy.optimize import direct as scipy_direct

from boca import problems
from boca.gp.kernels import Kernel, Radial
from boca.gp.model import GP
from boca.search.direct import LEAST_IMPROVEMENT, SMALLEST_RECTANGLE, minimize, potentially_optimal, size


def wave(d, seed, *, length=0.4, features=30):
    """A smooth random function: a draw from a Gaussian process by random Fourier features."""
    rng = np.random.default_rng(seed)
    W, phase = rng.standard_normal((features, d)) / length, rng.uniform(0, 2 * math.pi, features)
    a = rng.standard_normal(features) / math.sqrt(features)
    return lambda U: np.cos(U @ W.T + phase) @ a


def negated(name):
    """Return a problem of the library at its target as a loss on the unit cube."""
    benchmark = problems.get(name, seed=0)
    space, target = benchmark.problem.space, benchmark.problem.target
    sign = -1.0 if benchmark.problem.direction == "maximize" else 1.0
    return lambda U: np.array([sign * benchmark.function(space.from_unit(u), target) for u in U])


def lower_bound(U):
    """The lower confidence bound of a Gaussian process after thirty results: many ridges, wide plains."""
    rng = np.random.default_rng(3)
    X, y = rng.random((30, 3)), rng.standard_normal(30)
    gp = GP.build(Kernel((Radial("se", (0, 1, 2), (0, 1, 2)),)), X, y, kappa0=1.0, h=np.full(3, 0.2), eta2=1e-4, m=0.0)
    mean, variance = gp.posterior(U)
    return mean - 2.0 * np.sqrt(variance)


class Watched:
    """A loss that remembers the batches in which it was asked."""

    def __init__(self, function):
        self.function, self.batches = function, []

    def __call__(self, U):
        self.batches.append(U.copy())
        return self.function(U)

    @property
    def points(self):
        return np.vstack(self.batches)


# The definition -------------------------------------------------------------------------------------------------------


class Rectangle:
    def __init__(self, center, cuts, loss):
        self.center, self.cuts, self.loss = center, cuts, loss

    @property
    def size(self):
        return 0.5 * math.sqrt(sum(9.0**-k for k in self.cuts))


def is_potentially_optimal(r, rectangles, least):
    """Definition 3.1 of [J93]: some K > 0 for which nothing promises less than r, and r less than what is known."""
    low, high = 0.0, math.inf
    for other in rectangles:
        if math.isclose(other.size, r.size, rel_tol=1e-12):
            if other.loss < r.loss - 1e-13:
                return False
        elif other.size < r.size:
            low = max(low, (r.loss - other.loss) / (r.size - other.size))
        else:
            high = min(high, (other.loss - r.loss) / (other.size - r.size))
    return high > 0.0 and low <= high and r.loss - high * r.size <= least - LEAST_IMPROVEMENT * abs(least)


def by_the_book(loss, d, evaluations):
    """Return all points that DIRECT evaluates, one rectangle after another."""

    def at(center):
        return float(loss(np.array([center]))[0])

    rectangles = [Rectangle((0.5,) * d, (0,) * d, at((0.5,) * d))]
    while len(rectangles) <= evaluations:
        least = min(rectangles, key=lambda r: r.loss)
        if least.size < SMALLEST_RECTANGLE:
            break
        for r in [r for r in rectangles if is_potentially_optimal(r, rectangles, least.loss)]:
            longest = [j for j in range(d) if r.cuts[j] == min(r.cuts)]
            new = {}
            for j in longest:
                step = 3.0 ** -(r.cuts[j] + 1)
                moved = [tuple(c + way * step * (i == j) for i, c in enumerate(r.center)) for way in (1, -1)]
                new[j] = [(center, at(center)) for center in moved]
            for j in sorted(longest, key=lambda j: min(value for _, value in new[j])):
                r.cuts = tuple(k + (i == j) for i, k in enumerate(r.cuts))
                rectangles += [Rectangle(center, r.cuts, value) for center, value in new[j]]
    return np.array([r.center for r in rectangles])


def as_set(points):
    return {tuple(point) for point in np.round(points, 9)}


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_it_evaluates_the_points_of_the_definition_and_no_others(d, seed):
    loss = Watched(wave(d, seed))
    minimize(loss, d, evaluations=250)
    expected = by_the_book(loss.function, d, 250)
    assert len(loss.points) == len(expected)
    assert as_set(loss.points) == as_set(expected)


def test_equal_rectangles_are_divided_together():
    """What mirrors every coordinate mirrors the points, up to rounding that differs on the two sides."""
    loss = Watched(lambda U: np.cos(9.0 * np.abs(U - 0.5)) @ np.array([1.0, 0.8, 0.5]))
    minimize(loss, 3, evaluations=200)
    for j in range(3):
        mirrored = np.where(np.arange(3) == j, 1.0 - loss.points, loss.points)
        assert as_set(mirrored) == as_set(loss.points)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_the_size_is_half_the_diagonal(d):
    cuts = [[k + (j < more) for j in range(d)] for k in range(4) for more in range(d)]
    expected = [Rectangle(None, row, None).size for row in cuts]
    np.testing.assert_allclose([size(sum(row), d) for row in cuts], expected, rtol=1e-14)
    assert np.all(np.diff(expected) < 0.0)


def test_only_the_lower_right_of_the_hull_is_divided():
    """Sizes 1/2, 1/6, 1/18 in one dimension: the middle one counts where it lies below the line between the others."""
    assert potentially_optimal({0: 1.0, 1: 0.26, 2: 0.0}, 1) == [0, 2]
    assert potentially_optimal({0: 1.0, 1: 0.24, 2: 0.0}, 1) == [0, 1, 2]
    assert potentially_optimal({0: 1.0, 1: 1.0, 2: 0.0}, 1) == [0, 2]
    assert potentially_optimal({0: 1.0, 1: 0.24, 2: 0.24}, 1) == [0, 1]
    assert potentially_optimal({0: 0.0, 1: 0.24, 2: 0.1}, 1) == [0]


def test_a_rectangle_that_can_hardly_improve_is_left_alone():
    """Near a loss of -1,000 the smallest rectangle promises a hundredth less, and a ten-thousandth is 0.1."""
    losses = {0: 0.1, 1: 0.05, 2: 0.0}
    assert potentially_optimal({depth: value - 1000.0 for depth, value in losses.items()}, 1) == [0]
    assert potentially_optimal(losses, 1) == [0, 2]


# How it goes on -------------------------------------------------------------------------------------------------------


def test_it_begins_in_the_centre_and_goes_a_third_each_way():
    loss = Watched(wave(3, 0))
    minimize(loss, 3, evaluations=6)
    first, second = loss.batches[:2]
    np.testing.assert_array_equal(first, [[0.5, 0.5, 0.5]])
    expected = [0.5 + way * np.eye(3)[j] / 3.0 for way in (1, -1) for j in range(3)]
    np.testing.assert_allclose(second, expected, rtol=1e-15)


def test_every_coordinate_is_the_middle_of_a_power_of_a_third_and_no_point_comes_twice():
    loss = Watched(wave(2, 1))
    minimize(loss, 2, evaluations=2000)
    odd = 2.0 * 3.0**14 * loss.points
    np.testing.assert_allclose(odd, np.rint(odd), atol=1e-2)
    assert np.all(np.rint(odd) % 2 == 1)
    assert len(as_set(loss.points)) == len(loss.points)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_corner_is_approached_and_never_reached(d):
    loss = Watched(lambda U: -np.sum((U - 2.0) ** 2, axis=1))  # least at the origin
    best = minimize(loss, d, evaluations=3000)
    assert np.all(loss.points > 0.0)
    assert np.all(loss.points < 1.0)
    assert np.all(best < 0.01)


def test_it_stops_where_the_best_rectangle_is_small():
    loss = Watched(lambda U: np.sum((U - 0.5) ** 2, axis=1))
    best = minimize(loss, 1, evaluations=10**6)
    np.testing.assert_array_equal(best, [0.5])
    halves = 0.5 / 3.0 ** np.arange(20)
    assert len(loss.batches) == 1 + np.flatnonzero(halves < SMALLEST_RECTANGLE)[0]


@pytest.mark.parametrize("d", [2, 6, 10])
def test_the_last_round_is_completed(d):
    loss = Watched(wave(d, 2, length=0.1))
    minimize(loss, d, evaluations=1000)
    assert sum(len(batch) for batch in loss.batches[:-1]) <= 1000 < len(loss.points)


def test_a_round_is_one_batch():
    """Six thousand points in three dimensions in a few hundred calls."""
    loss = Watched(wave(3, 0))
    minimize(loss, 3, evaluations=6000)
    assert len(loss.batches) < 300


def test_a_constant_is_searched_evenly():
    loss = Watched(lambda U: np.zeros(len(U)))
    minimize(loss, 2, evaluations=50)
    grid = np.arange(1, 18, 2) / 18.0
    assert as_set(loss.points) == as_set(list(itertools.product(grid, grid)))


# Another implementation -----------------------------------------------------------------------------------------------


LOSSES = {
    "branin": (negated("branin"), 2),
    "hartmann3": (negated("hartmann3"), 3),
    "hartmann6": (negated("hartmann6"), 6),
    "posterior": (lower_bound, 3),
}


@pytest.mark.parametrize("name", LOSSES)
def test_it_finds_what_another_implementation_finds(name):
    """SciPy divides some rectangles off the hull as well; in the end both stand at the same minimum."""
    loss, d = LOSSES[name]
    evaluations = 2000
    found = loss(minimize(loss, d, evaluations=evaluations)[None, :])[0]
    other = scipy_direct(
        lambda u: float(loss(u[None, :])[0]),
        Bounds(np.zeros(d), np.ones(d)),
        eps=LEAST_IMPROVEMENT,
        maxfun=evaluations,
        maxiter=evaluations,
        locally_biased=False,
        len_tol=SMALLEST_RECTANGLE,
        vol_tol=0.0,
    )
    spread = np.std(loss(np.random.default_rng(0).random((500, d))))
    assert found == pytest.approx(other.fun, abs=0.01 * spread)
