"""The maximizers on functions whose maximum is known, or found by looking at every point."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from boca import Choice, Float, Int, Space
from boca.search.maximizer import DIRECT_COMBINATIONS, LISTED_UP_TO, direct, sobol


class Objective:
    """A function of rows with its gradient, as a model would offer it, and the number of points it was asked for."""

    def __init__(self, function, gradient=None):
        self.function, self.gradient = function, gradient
        self.asked = 0

    def value(self, U):
        self.asked += len(U)
        return self.function(U)

    def value_and_gradient(self, U):
        if self.gradient is not None:
            return self.value(U), self.gradient(U)
        step = 1e-6
        moves = step * np.eye(U.shape[1])
        slopes = [(self.function(U + move) - self.function(U - move)) / (2 * step) for move in moves]
        return self.value(U), np.column_stack(slopes)


def cube(d):
    return Space({f"x{i}": Float(0.0, 1.0) for i in range(d)})


def no_anchors(space):
    return np.empty((0, len(space)))


def quadratic(center, widths=1.0):
    return Objective(
        lambda U: -np.sum(((U - center) / widths) ** 2, axis=1), lambda U: -2.0 * (U - center) / np.square(widths)
    )


def wave(d, seed, *, length=0.4, features=30):
    """A smooth random function: a draw from a Gaussian process by random Fourier features."""
    rng = np.random.default_rng(seed)
    W, phase = rng.standard_normal((features, d)) / length, rng.uniform(0, 2 * math.pi, features)
    a = rng.standard_normal(features) / math.sqrt(features)
    return lambda U: np.cos(U @ W.T + phase) @ a, lambda U: -(np.sin(U @ W.T + phase) * a) @ W


def every_point(space):
    axes = [p.to_unit(p.choices if isinstance(p, Choice) else list(range(p.low, p.high + 1))) for p in space.values()]
    return np.array(list(itertools.product(*axes)))


# Known maxima ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 3, 6, 10])
def test_the_top_of_a_quadratic_inside_the_cube_is_found(d):
    center = np.random.default_rng(d).random(d)
    found = sobol(quadratic(center), cube(d), np.random.default_rng(0), no_anchors(cube(d)))
    np.testing.assert_allclose(found[0], center, atol=1e-5)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_direct_finds_the_top_of_a_quadratic(d):
    center = np.random.default_rng(d).uniform(0.1, 0.9, d)
    found = direct(quadratic(center), cube(d), np.random.default_rng(0), no_anchors(cube(d)))
    np.testing.assert_allclose(found[0], center, atol=5e-3)


@pytest.mark.parametrize("corner", list(itertools.product((0.0, 1.0), repeat=3)))
def test_a_top_outside_the_cube_is_met_exactly_at_its_corner(corner):
    center = np.array(corner) * 3.0 - 1.0  # -1 or 2
    found = sobol(quadratic(center), cube(3), np.random.default_rng(0), no_anchors(cube(3)))
    np.testing.assert_array_equal(found[0], corner)


def test_a_top_beyond_one_face_is_met_on_that_face():
    center = np.array([0.3, 1.4])
    found = sobol(quadratic(center), cube(2), np.random.default_rng(0), no_anchors(cube(2)))
    assert found[0, 0] == pytest.approx(0.3, abs=1e-5)
    assert found[0, 1] == 1.0


def test_axes_of_very_different_widths_do_not_mislead():
    center, widths = np.array([0.21, 0.64, 0.5]), np.array([1.0, 0.05, 0.2])
    found = sobol(quadratic(center, widths), cube(3), np.random.default_rng(0), no_anchors(cube(3)))
    np.testing.assert_allclose(found[0], center, atol=1e-4)


@pytest.mark.parametrize("seed", range(10))
def test_the_highest_of_many_peaks_is_found(seed):
    function, gradient = wave(2, seed, length=0.15)
    axis = np.linspace(0.0, 1.0, 301)
    grid = np.array(list(itertools.product(axis, axis)))
    found = sobol(Objective(function, gradient), cube(2), np.random.default_rng(seed), no_anchors(cube(2)))
    assert function(found[:1])[0] >= np.max(function(grid)) - 1e-9


def test_a_needle_beside_an_anchor_is_found_and_without_the_anchor_it_is_not():
    """Ten dimensions, a peak one hundredth wide: only somebody who knows where to look finds it."""
    center = np.random.default_rng(0).uniform(0.2, 0.8, 10)

    def needle(U):
        s = np.sum((U - center) ** 2, axis=1)
        return np.exp(-0.5 * s / 0.01**2) - 0.01 * np.sum((U - 0.5) ** 2, axis=1)

    anchors = center[None, :] + 0.005
    with_anchor = sobol(Objective(needle), cube(10), np.random.default_rng(1), anchors)
    without = sobol(Objective(needle), cube(10), np.random.default_rng(1), no_anchors(cube(10)))
    assert needle(with_anchor[:1])[0] > 0.9
    assert needle(without[:1])[0] < 0.1


def test_an_anchor_is_never_beaten_by_what_is_returned_first():
    rng = np.random.default_rng(2)
    for seed in range(10):
        function, gradient = wave(3, seed, length=0.1)
        anchors = rng.random((5, 3))
        found = sobol(Objective(function, gradient), cube(3), np.random.default_rng(seed), anchors)
        assert function(found[:1])[0] >= np.max(function(anchors))


# Lattices and choices -------------------------------------------------------------------------------------------------


SMALL = {
    "lattice": Space(n=Int(-3, 20), m=Int(0, 30)),
    "logarithmic": Space(n=Int(1, 512, log=True)),
    "choices": Space(a=Choice(list("uvwxyz")), b=Choice([1, 2, 3])),
    "mixed": Space(a=Choice(["u", "v", "w"]), n=Int(0, 50), flag=Choice([True, False])),
}


@pytest.mark.parametrize(("name", "maximize"), [*((name, sobol) for name in SMALL), ("choices", direct)])
def test_a_small_discrete_space_is_searched_exactly_whatever_the_function(name, maximize):
    """White noise over the points: nothing but looking at all of them finds its maximum."""
    space = SMALL[name]
    points = every_point(space)
    assert len(points) == space.size <= LISTED_UP_TO
    index = {tuple(point): i for i, point in enumerate(points)}
    for seed in range(20):
        table = np.random.default_rng(seed).standard_normal(len(points))

        def look_up(U, table=table):
            return np.array([table[index[tuple(u)]] for u in U])

        found = maximize(Objective(look_up), space, np.random.default_rng(seed), no_anchors(space))
        np.testing.assert_array_equal(found[0], points[np.argmax(table)])
        np.testing.assert_array_equal(look_up(found[: len(points)]), np.sort(table)[::-1])


LARGE = {
    "square": Space(n=Int(0, 40), m=Int(-20, 25)),
    "fine": Space(n=Int(0, 9_999)),
    "orders": Space(n=Int(1, 60, log=True), m=Int(1, 40, log=True)),
    "three": Space(n=Int(0, 12), m=Int(0, 12), k=Int(0, 12)),
    "with a choice": Space(a=Choice(["u", "v", "w"]), n=Int(0, 40), m=Int(0, 20)),
    "many choices": Space(a=Choice(list("stuvwxyz")), b=Choice(list("abcdef")), n=Int(0, 40)),
}


def on_lattice(space, function, gradient, seed):
    """Return the function of the numbers on points that exist, with a level for every combination of choices."""
    numeric = np.array([not isinstance(p, Choice) for p in space.values()])
    combinations = {tuple(u): i for i, u in enumerate(np.unique(every_point(space)[:, ~numeric], axis=0))}
    levels = np.random.default_rng(100 + seed).standard_normal(len(combinations))

    def value(U):
        U = space.snap(U)
        return function(U[:, numeric]) + levels[[combinations[tuple(u)] for u in U[:, ~numeric]]]

    def slope(U):
        full = np.zeros_like(U)
        full[:, numeric] = gradient(U[:, numeric])
        return full

    return Objective(value, slope)


@pytest.mark.parametrize("name", LARGE)
def test_a_large_lattice_is_searched_exactly_where_the_function_has_one_top(name):
    """Random quadratics with correlated axes, their centers inside the cube and outside, against every point."""
    space = LARGE[name]
    points = every_point(space)
    assert len(points) > LISTED_UP_TO
    k = sum(not isinstance(p, Choice) for p in space.values())
    for seed in range(12):
        rng = np.random.default_rng(seed)
        Q, _ = np.linalg.qr(rng.standard_normal((k, k)))
        A = (Q * rng.uniform(1.0, 3.0, k)) @ Q.T
        center = rng.uniform(-0.2, 1.2, k)
        objective = on_lattice(
            space,
            lambda V, A=A, c=center: -np.einsum("ij,jk,ik->i", V - c, A, V - c),
            lambda V, A=A, c=center: -2.0 * (V - c) @ A,
            seed,
        )
        found = sobol(objective, space, np.random.default_rng(seed), no_anchors(space))
        assert objective.function(found[:1])[0] == pytest.approx(np.max(objective.function(points)), abs=1e-12)


@pytest.mark.parametrize("name", LARGE)
def test_a_large_lattice_is_mostly_searched_exactly_where_the_function_has_many_tops(name):
    space = LARGE[name]
    points = every_point(space)
    k = sum(not isinstance(p, Choice) for p in space.values())
    gaps = []
    for seed in range(20):
        objective = on_lattice(space, *wave(k, seed, length=0.3), seed)
        found = sobol(objective, space, np.random.default_rng(seed), no_anchors(space))
        gaps.append(np.max(objective.function(points)) - objective.function(found[:1])[0])
    assert np.mean(np.array(gaps) < 1e-12) >= 0.9
    assert max(gaps) < 0.2  # the functions have deviation one


@pytest.mark.parametrize("seed", range(10))
def test_numbers_integers_and_choices_are_maximized_together(seed):
    """Against every combination of the discrete ones, with the number maximized by itself for each."""
    space = Space(a=Choice(["u", "v", "w"]), x=Float(-1.0, 3.0), n=Int(0, 9))
    function, gradient = wave(2, seed, length=0.3)
    levels = 0.3 * np.random.default_rng(seed).standard_normal(3)

    def value(U):
        U = space.snap(U)
        return function(U[:, 1:]) + levels[np.rint(2 * U[:, 0]).astype(int)]

    def slope(U):
        return np.column_stack([np.zeros(len(U)), gradient(U[:, 1:])])

    found = sobol(Objective(value, slope), space, np.random.default_rng(seed), no_anchors(space))
    best = -math.inf
    for a, n in itertools.product((0.0, 0.5, 1.0), np.arange(10) / 9.0):
        line = np.linspace(0.0, 1.0, 201)
        rows = np.column_stack([np.full(201, a), line, np.full(201, n)])
        start = line[np.argmax(value(rows))]
        low, high = max(0.0, start - 0.005), min(1.0, start + 0.005)
        climbed = minimize_scalar(
            lambda x, a=a, n=n: -value(np.array([[a, x, n]]))[0], bounds=(low, high), method="bounded"
        )
        best = max(best, -climbed.fun, np.max(value(rows)))
    assert value(found[:1])[0] >= best - 1e-7
    np.testing.assert_array_equal(space.snap(found), found)


def test_a_ridge_across_the_lattice_is_walked_to_its_end():
    """The neighbors of the continuous top are not the best lattice points on the way: single steps must go on."""
    space = Space(n=Int(0, 60), m=Int(0, 60))
    center = np.array([0.613, 0.287])

    def value(U):
        U = space.snap(U)
        return -((U[:, 0] - center[0]) ** 2) - (U[:, 1] - center[1]) ** 2 - 1.5 * np.prod(U - center, axis=1)

    def slope(U):
        return -2.0 * (U - center) - 1.5 * (U - center)[:, ::-1]

    found = sobol(Objective(value, slope), space, np.random.default_rng(0), no_anchors(space))
    assert value(found[:1])[0] == np.max(value(every_point(space)))


def test_a_function_without_a_slope_is_climbed_step_by_step():
    """Nothing but comparing neighbors leads from the best of the candidates to the top."""
    space = Space(n=Int(0, 9_999), a=Choice(["u", "v", "w"]))
    for top in (0, 137, 4_321, 9_999):
        objective = Objective(
            lambda U, top=top: -np.abs(np.rint(9_999 * U[:, 0]) - top) + 3.0 * (U[:, 1] == 0.5), np.zeros_like
        )
        found = sobol(objective, space, np.random.default_rng(top), no_anchors(space))
        assert space.from_unit(found[0]) == {"n": top, "a": "v"}


def test_all_corners_of_the_cell_around_a_continuous_top_are_compared():
    """The slope leads to (500.4, 300.6); the best lattice point around it is two steps from the nearest."""
    space = Space(n=Int(0, 1_000), m=Int(0, 1_000))
    center = np.array([0.5004, 0.3006])
    bonus = {(500, 301): 1.0, (501, 300): 5.0}

    class Rounded(Objective):
        def value(self, U):
            points = [tuple(point) for point in np.rint(1_000 * U).astype(int)]
            return self.function(U) + np.array([bonus.get(point, 0.0) for point in points])

        def value_and_gradient(self, U):
            return self.function(U), self.gradient(U)

    smooth = quadratic(center)
    found = sobol(Rounded(smooth.function, smooth.gradient), space, np.random.default_rng(0), no_anchors(space))
    assert space.from_unit(found[0]) == {"n": 501, "m": 300}


# What both return -----------------------------------------------------------------------------------------------------


SPACES = {**SMALL, **LARGE, "cube": cube(3), "one": cube(1), "half": Space(a=Choice(["u", "v"]), x=Float(0.0, 1.0))}
EVERYWHERE = pytest.mark.parametrize(
    ("name", "maximize"),
    [*((name, sobol) for name in SPACES), *((name, direct) for name in ("choices", "cube", "three", "half"))],
)


@pytest.fixture
def short_direct(monkeypatch):
    monkeypatch.setattr("boca.search.maximizer.DIRECT_EVALUATIONS", 600)


@EVERYWHERE
@pytest.mark.usefixtures("short_direct")
def test_every_row_is_a_point_that_exists(name, maximize):
    space = SPACES[name]
    function, _ = wave(len(space), 1)
    objective = Objective(lambda U: function(space.snap(U)))
    found = maximize(
        objective, space, np.random.default_rng(0), space.snap(np.random.default_rng(1).random((3, len(space))))
    )
    assert len(found) >= min(space.size, 100)
    np.testing.assert_array_equal(space.snap(found), found)
    for u in found[:50]:
        point = space.from_unit(u)
        np.testing.assert_array_equal(space.to_unit([space.validate(point, "x")])[0], u)


@EVERYWHERE
@pytest.mark.usefixtures("short_direct")
def test_rows_come_best_first_so_that_the_next_is_the_one_to_take_instead(name, maximize):
    space = SPACES[name]
    function, _ = wave(len(space), 3)
    objective = Objective(lambda U: function(space.snap(U)))
    anchors = space.snap(np.random.default_rng(1).random((3, len(space))))
    found = maximize(objective, space, np.random.default_rng(0), anchors)
    values = objective.function(found)
    if maximize is direct:  # its own answer leads; what follows are substitutes
        values = values[1:]
    assert np.all(np.diff(values) <= 1e-12)


@EVERYWHERE
@pytest.mark.usefixtures("short_direct")
def test_the_random_stream_alone_decides(name, maximize):
    space = SPACES[name]
    function, _ = wave(len(space), 4)
    objective = Objective(lambda U: function(space.snap(U)))
    anchors = space.snap(np.random.default_rng(1).random((3, len(space))))
    first = maximize(objective, space, np.random.default_rng(5), anchors)
    np.testing.assert_array_equal(maximize(objective, space, np.random.default_rng(5), anchors), first)


def test_another_stream_looks_elsewhere():
    function, gradient = wave(3, 4)
    runs = [
        sobol(Objective(function, gradient), cube(3), np.random.default_rng(s), no_anchors(cube(3))) for s in (1, 2)
    ]
    assert not np.array_equal(runs[0][-1], runs[1][-1])


# DIRECT and choices ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_direct")
def test_direct_searches_once_a_combination_of_choices():
    space = Space(a=Choice(["u", "v", "w"]), x=Float(0.0, 1.0), b=Choice([0, 1]))
    tops = {(a, b): (0.1 + 0.3 * a + 0.05 * b, 1.0 + ((5 * a + 3 * b) % 7) / 7.0) for a in range(3) for b in range(2)}

    def value(U):
        keys = [(round(2 * u[0]), round(u[2])) for u in U]
        return np.array([tops[k][1] - 50.0 * (u[1] - tops[k][0]) ** 2 for k, u in zip(keys, U, strict=True)])

    objective = Objective(value)
    found = direct(objective, space, np.random.default_rng(0), no_anchors(space))
    (a, b), (x, _) = max(tops.items(), key=lambda item: item[1][1])
    np.testing.assert_allclose(found[0], [a / 2.0, x, b], atol=1e-3)
    for (a, b), (x, _) in tops.items():
        best_of_its_kind = next(u for u in found if (round(2 * u[0]), round(u[2])) == (a, b))
        assert best_of_its_kind[1] == pytest.approx(x, abs=1e-3)


def test_direct_leaves_more_combinations_than_it_can_pay_for_to_the_other_maximizer():
    space = Space(a=Choice(list(range(5))), b=Choice(list(range(5))), c=Choice(list(range(3))), x=Float(0.0, 1.0))
    assert DIRECT_COMBINATIONS < 5 * 5 * 3
    levels = np.random.default_rng(0).standard_normal((5, 5, 3))

    def value(U):
        a, b, c = (np.rint(U[:, j] * (k - 1)).astype(int) for j, k in enumerate((5, 5, 3)))
        return levels[a, b, c] - 3.0 * (U[:, 3] - 0.37) ** 2

    rng = np.random.default_rng
    by_direct = direct(Objective(value), space, rng(1), no_anchors(space))
    np.testing.assert_array_equal(by_direct, sobol(Objective(value), space, rng(1), no_anchors(space)))
    a, b, c = np.unravel_index(np.argmax(levels), levels.shape)
    np.testing.assert_allclose(by_direct[0], [a / 4, b / 4, c / 2, 0.37], atol=1e-4)


@pytest.mark.parametrize("size", [DIRECT_COMBINATIONS, DIRECT_COMBINATIONS + 1])
def test_the_number_of_combinations_that_direct_takes_is_what_it_says(size, monkeypatch):
    monkeypatch.setattr("boca.search.maximizer.DIRECT_EVALUATIONS", 120)
    space = Space(a=Choice(list(range(size))), x=Float(0.0, 1.0))
    objective = Objective(lambda U: -((U[:, 1] - 0.4) ** 2) - U[:, 0])
    found = direct(objective, space, np.random.default_rng(0), no_anchors(space))
    other = sobol(objective, space, np.random.default_rng(0), no_anchors(space))
    same = found.shape == other.shape and np.array_equal(found, other)
    assert same == (size > DIRECT_COMBINATIONS)
    np.testing.assert_allclose(found[0], [0.0, 0.4], atol=0.02)


def test_direct_makes_six_thousand_evaluations_whatever_the_dimension():
    for d in (2, 4):
        function, _ = wave(d, 0)
        objective = Objective(function)
        direct(objective, cube(d), np.random.default_rng(0), no_anchors(cube(d)))
        assert 5_900 < objective.asked < 8_000  # the rest ranks what is returned


@pytest.mark.usefixtures("short_direct")
def test_direct_makes_as_many_evaluations_for_every_combination():
    space = Space(a=Choice(["u", "v", "w"]), x=Float(0.0, 1.0), y=Float(0.0, 1.0))
    function, _ = wave(3, 0)
    objective = Objective(function)
    direct(objective, space, np.random.default_rng(0), no_anchors(space))
    assert 3 * 500 < objective.asked < 3 * 700 + 1_600


def test_direct_on_a_lattice_finds_the_top_of_a_smooth_function():
    space = Space(n=Int(0, 40), m=Int(0, 40))
    for seed in range(2):
        function, _ = wave(2, seed, length=0.4)
        objective = Objective(lambda U, f=function: f(space.snap(U)))
        found = direct(objective, space, np.random.default_rng(0), no_anchors(space))
        best = np.max(objective.function(every_point(space)))
        assert objective.function(found[:1])[0] == pytest.approx(best, abs=1e-12)
