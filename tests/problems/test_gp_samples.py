"""Draws have the distribution of the process, and their optimum is the largest value."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from boca import problems
from problems.names import SAMPLES, xs, zs


@pytest.fixture(scope="module")
def draws():
    """Many draws of either kind."""
    return {name: [problems.get(name, seed=seed) for seed in range(400)] for name in SAMPLES}


def table(benches, z, at):  # (seeds, points)
    return np.array([[bench.value(xs(x), zs(z)) for x in at] for bench in benches])


APART = (0.0, 17 / 49, 34 / 49, 1.0)  # nodes whose values are independent: at most exp(-6) between neighbours


@pytest.mark.parametrize("name", SAMPLES)
def test_draws_have_mean_zero_variance_one_and_the_kernel_in_x(draws, name):
    values = table(draws[name], 1.0, APART)
    n = values.size
    assert abs(values.mean()) < 5 / math.sqrt(n)
    assert abs((values**2).mean() - 1) < 5 * math.sqrt(2 / n)
    for steps in (3, 5, 8):
        beside = table(draws[name], 1.0, [abs(x - steps / 49) for x in APART])
        expected = math.exp(-((steps / 4.9) ** 2) / 2)  # h_x = 0.1 is 4.9 nodes
        assert abs((values * beside).mean() - expected) < 5 * math.sqrt((1 + expected**2) / n)


def test_fidelities_of_smooth_draws_agree_and_those_of_rough_draws_do_not(draws):
    def correlation(name, z):
        target, other = table(draws[name], 1.0, APART), table(draws[name], z, APART)
        return np.corrcoef(target.ravel(), other.ravel())[0, 1]

    s_e = 1 / math.sqrt(4 * 400)
    assert correlation("gp-smooth", 0.9) > 0.99  # exp(-0.005) = 0.995
    assert correlation("gp-smooth", 0.0) == pytest.approx(math.exp(-0.5), abs=5 * s_e)
    assert abs(correlation("gp-rough", 0.9)) < 5 * s_e
    assert correlation("gp-rough", 48 / 49) == pytest.approx(math.exp(-((100 / 49) ** 2) / 2), abs=5 * s_e)


@pytest.mark.parametrize("name", SAMPLES)
def test_between_the_nodes_a_draw_is_the_bicubic_spline(name):
    from scipy.interpolate import CubicSpline

    bench = problems.get(name, seed=5)
    nodes = np.linspace(0.0, 1.0, 50)
    G = np.array([[bench.value(xs(x), zs(z)) for x in nodes] for z in nodes])
    for z, x in np.random.default_rng(0).random((20, 2)):
        expected = CubicSpline(nodes, CubicSpline(nodes, G, axis=1)(x))(z)  # first along x, then along z
        assert bench.value(xs(x), zs(z)) == pytest.approx(float(expected), abs=1e-10)


@pytest.mark.parametrize(("name", "h_z"), [("gp-smooth", 1.0), ("gp-rough", 0.01)])
def test_the_process_is_told(name, h_z):
    expected = {"kappa0": 1.0, "eta2": 0.05, "mean": 0.0, "h_x": [0.1], "h_z": [h_z]}
    assert problems.get(name, seed=3).hyperparameters == expected


def test_a_seed_is_a_draw():
    x, z = xs(0.123), zs(0.456)
    for name in SAMPLES:
        again = [problems.get(name, seed=seed).value(x, z) for seed in (0, 1, 0, 1)]
        assert again[:2] == again[2:]
        assert again[0] != again[1]


def test_smooth_and_rough_of_one_seed_are_different_draws(draws):
    smooth, rough = (table(draws[name], 1.0, APART).ravel() for name in SAMPLES)
    assert abs(np.corrcoef(smooth, rough)[0, 1]) < 5 / math.sqrt(len(smooth))


@pytest.mark.parametrize("name", SAMPLES)
def test_the_optimum_of_a_sample_is_the_largest_value_on_a_fine_grid_refined(name):
    from scipy.optimize import minimize_scalar

    at_ends = 0
    for seed in range(12):
        bench = problems.get(name, seed=seed)
        grid = np.linspace(0.0, 1.0, 1001)
        values = [bench.value(xs(x)) for x in grid]
        top = int(np.argmax(values))
        inner = minimize_scalar(
            lambda x, bench=bench: -bench.value(xs(x)),
            bounds=(grid[max(top - 1, 0)], grid[min(top + 1, 1000)]),
            method="bounded",
            options={"xatol": 1e-10},
        )
        assert bench.optimum == pytest.approx(max(max(values), -inner.fun), abs=1e-12)
        at_ends += bench.maximizer["x1"] in (0.0, 1.0)
    assert at_ends > 0  # otherwise this seed range would not show that the ends are looked at


def test_the_spline_code_is_loaded_only_for_a_draw():
    code = "import sys, boca.problems; boca.problems.get('branin'); print('scipy.interpolate' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
