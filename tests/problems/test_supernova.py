"""The likelihood of the supernovae against closed forms, an explicit sum, and quadrature, one supernova at a time."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import boca
from boca import problems
from boca.domain.budget import seconds
from boca.domain.errors import InvalidInput
from boca.domain.space import Float, Int
from boca.problems import data
from boca.problems.supernova import log_likelihood, luminosity_distance

LIGHT = 299_792.458
UNIVERSES = [  # H0, Omega_M, Omega_Lambda: open, flat, closed, and the corners of the box
    (70.0, 0.3, 0.2),
    (70.0, 0.3, 0.7),
    (66.0, 0.3, 0.85),
    (60.0, 0.0, 0.0),
    (80.0, 1.0, 0.0),
    (80.0, 0.0, 1.0),
    (60.0, 1.0, 1.0),
]
# The maximum over the box, by differential evolution and by 20 starts of Nelder-Mead on Gauss-Legendre quadrature.
BEST = {"H0": 65.818205, "Omega_M": 0.325971, "Omega_Lambda": 0.846366}
BEST_VALUE = 0.0720842


def made_up(n=192):  # (n, 3)
    """Draw supernovae of a flat universe, in no order."""
    rng = np.random.default_rng(5)
    z = rng.uniform(0.016, 1.755, n).round(3)
    sigma = rng.uniform(0.13, 0.43, n).round(2)
    mu = 5 * np.log10(luminosity_distance(z, 70.0, 0.3, 0.7, G=1000)) + 25 + sigma * rng.standard_normal(n)
    return np.column_stack([z, mu.round(2), sigma])


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """The problem on made-up data."""
    content = "".join(f"{z} {mu} {sigma}\n" for z, mu, sigma in made_up().tolist()).encode()
    (tmp_path / "supernova").mkdir()
    (tmp_path / "supernova" / "davis2007.txt").write_bytes(content)
    monkeypatch.setenv("BOCA_DATA", str(tmp_path))
    monkeypatch.setitem(data._SHA256, "supernova", data._sha256([content]))
    return problems.get("supernova", seed=3)


@pytest.fixture(scope="module")
def real():
    try:
        data.locate("supernova")
    except InvalidInput as error:
        pytest.skip(f"no data: {error}")
    return problems.get("supernova")


def rate(t, Omega_M, Omega_Lambda):
    return math.sqrt(Omega_M * (1 + t) ** 3 + (1 - Omega_M - Omega_Lambda) * (1 + t) ** 2 + Omega_Lambda)


def distance(z, integral, H0, Omega_M, Omega_Lambda):
    Omega_k = 1 - Omega_M - Omega_Lambda
    if abs(Omega_k) < 1e-12:
        proper = integral
    elif Omega_k > 0:
        proper = math.sinh(math.sqrt(Omega_k) * integral) / math.sqrt(Omega_k)
    else:
        proper = math.sin(math.sqrt(-Omega_k) * integral) / math.sqrt(-Omega_k)
    return (1 + z) * LIGHT / H0 * proper


def by_quadrature(z, H0, Omega_M, Omega_Lambda):
    from scipy.integrate import quad

    integral, _ = quad(lambda t: 1 / rate(t, Omega_M, Omega_Lambda), 0, z, epsabs=1e-13, epsrel=1e-13)
    return distance(z, integral, H0, Omega_M, Omega_Lambda)


def by_trapezoids(z, H0, Omega_M, Omega_Lambda, G):
    heights = [1 / rate(z * k / (G - 1), Omega_M, Omega_Lambda) for k in range(G)]
    integral = sum((a + b) / 2 for a, b in itertools.pairwise(heights)) * z / (G - 1)
    return distance(z, integral, H0, Omega_M, Omega_Lambda)


def density(mu, sigma, d_L):
    residual = mu - (5 * math.log10(d_L) + 25)
    return math.log(math.exp(-((residual / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi)))


# --- what the problem declares ------------------------------------------------------------------------------


def test_the_problem_of_the_paper(bench):
    assert list(bench.problem.space.items()) == [
        ("H0", Float(60, 80)),
        ("Omega_M", Float(0, 1)),
        ("Omega_Lambda", Float(0, 1)),
    ]
    assert list(bench.problem.fidelity.items()) == [("N", Int(50, 192)), ("G", Int(100, 1_000_000, log=True))]
    assert bench.problem.target == {"N": 192, "G": 1_000_000}
    assert bench.problem.cost({"N": 60, "G": 700}) == 42_000
    assert bench.problem.direction == "maximize"
    assert bench.budget == seconds(90)
    assert (bench.name, bench.seed, bench.noise_variance) == ("supernova", 3, 0.0)
    assert (bench.optimum, bench.maximizer, bench.hyperparameters) == (None, None, None)


def test_an_observation_is_the_value(bench):
    x, z = {"H0": 70.0, "Omega_M": 0.3, "Omega_Lambda": 0.7}, {"N": 100, "G": 200}
    assert bench.observe(x, z, np.random.default_rng(0)) == bench.value(x, z)


def test_the_supernovae_are_a_prefix_of_one_order_whatever_the_seed(bench):
    x = {"H0": 70.0, "Omega_M": 0.3, "Omega_Lambda": 0.7}
    table = bench.function.table
    assert sorted(map(tuple, table)) == sorted(map(tuple, made_up()))
    np.testing.assert_array_equal(problems.get("supernova", seed=9).function.table, table)
    for N in (50, 51, 192):
        each = [log_likelihood(row[None, :], 70.0, 0.3, 0.7, G=100) for row in table[:N]]
        assert bench.value(x, {"N": N, "G": 100}) == pytest.approx(np.mean(each), rel=1e-12)


def test_the_order_is_pinned(bench):
    expected = [127, 18, 88, 85, 41]
    np.testing.assert_array_equal(bench.function.table[:5], made_up()[expected])


def test_another_process_gets_the_same_value(bench):
    x, z = {"H0": 70.0, "Omega_M": 0.3, "Omega_Lambda": 0.7}, {"N": 100, "G": 1000}
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(bench.value, x, z).result() == bench.value(x, z)


# --- distances ----------------------------------------------------------------------------------------------

REDSHIFTS = np.array([0.016, 0.1, 0.5, 1.0, 1.755])


def test_einstein_and_de_sitter():
    exact = (1 + REDSHIFTS) * 2 * LIGHT / 70 * (1 - 1 / np.sqrt(1 + REDSHIFTS))
    np.testing.assert_allclose(luminosity_distance(REDSHIFTS, 70.0, 1.0, 0.0, G=1_000_000), exact, rtol=1e-12)


def test_the_empty_universe():
    exact = LIGHT / 65 * REDSHIFTS * (1 + REDSHIFTS / 2)
    np.testing.assert_allclose(luminosity_distance(REDSHIFTS, 65.0, 0.0, 0.0, G=1_000_000), exact, rtol=1e-12)


def test_nothing_but_dark_energy_makes_the_integrand_flat():
    exact = LIGHT / 80 * REDSHIFTS * (1 + REDSHIFTS)
    np.testing.assert_allclose(luminosity_distance(REDSHIFTS, 80.0, 0.0, 1.0, G=2), exact, rtol=1e-14)


@pytest.mark.parametrize("universe", UNIVERSES)
@pytest.mark.parametrize("G", [2, 3, 100, 257])
def test_the_trapezoid_rule_point_by_point(universe, G):
    expected = [by_trapezoids(z, *universe, G) for z in REDSHIFTS.tolist()]
    np.testing.assert_allclose(luminosity_distance(REDSHIFTS, *universe, G=G), expected, rtol=1e-13)


@pytest.mark.parametrize("universe", UNIVERSES)
def test_on_a_fine_grid_the_integral_is_that_of_quadrature(universe):
    expected = [by_quadrature(z, *universe) for z in REDSHIFTS.tolist()]
    np.testing.assert_allclose(luminosity_distance(REDSHIFTS, *universe, G=1_000_000), expected, rtol=1e-11)


def test_twice_the_points_leave_a_quarter_of_the_error():
    universe = (70.0, 0.3, 0.7)
    exact = by_quadrature(1.755, *universe)
    errors = [luminosity_distance(REDSHIFTS[-1:], *universe, G=G)[0] - exact for G in (101, 201, 401, 801)]
    np.testing.assert_allclose(np.divide(errors[:-1], errors[1:]), 4.0, rtol=1e-3)


@pytest.mark.parametrize("block", [1, 7, 1000, 4096, 1 << 20])
def test_the_size_of_the_blocks_changes_nothing_but_rounding(block):
    expected = luminosity_distance(REDSHIFTS, 66.0, 0.3, 0.85, G=3001)
    np.testing.assert_allclose(luminosity_distance(REDSHIFTS, 66.0, 0.3, 0.85, G=3001, block=block), expected, 1e-13)


def test_the_curvature_vanishes_smoothly():
    flat = luminosity_distance(REDSHIFTS, 70.0, 0.25, 0.75, G=1000)
    for curvature in (1e-16, 1e-12, 1e-8, 1e-5):
        for sign in (-1, 1):
            curved = luminosity_distance(REDSHIFTS, 70.0, 0.25, 0.75 + sign * curvature, G=1000)
            np.testing.assert_allclose(curved, flat, rtol=2 * curvature + 1e-14)


# --- likelihood ---------------------------------------------------------------------------------------------


def test_the_mean_log_density_by_hand():
    # one tenth of the light's way in a universe of dark energy: d_L = 1000 Mpc, so that the modulus is 40
    H0, z = 0.11 * LIGHT / 1000, 0.1
    table = np.array([[z, 40.0, 0.5], [z, 41.0, 0.5], [z, 39.5, 0.25]])
    constant = -math.log(math.sqrt(2 * math.pi))
    each = [constant + math.log(2), constant + math.log(2) - 2, constant + math.log(4) - 2]
    assert log_likelihood(table, H0, 0.0, 1.0, G=2) == pytest.approx(sum(each) / 3, rel=1e-13)


@pytest.mark.parametrize("universe", UNIVERSES)
def test_the_likelihood_is_the_mean_of_normal_densities(universe):
    table = made_up(20)
    expected = np.mean([density(mu, sigma, by_quadrature(z, *universe)) for z, mu, sigma in table.tolist()])
    assert log_likelihood(table, *universe, G=100_000) == pytest.approx(expected, rel=1e-8)


def test_no_universe_of_the_box_is_impossible():
    corners = [(a, b) for a in (0.0, 0.5, 1.0) for b in (0.0, 0.5, 1.0)]
    t = np.linspace(0.0, 1.755, 1000)
    for Omega_M, Omega_Lambda in corners:
        Omega_k = 1 - Omega_M - Omega_Lambda
        E2 = Omega_M * (1 + t) ** 3 + Omega_k * (1 + t) ** 2 + Omega_Lambda
        assert E2.min() > 1 - 1e-12
        assert math.sqrt(abs(Omega_k)) * 1.755 < math.pi
        assert np.all(luminosity_distance(REDSHIFTS, 70.0, Omega_M, Omega_Lambda, G=100) > 0)


def test_a_supernova_from_before_the_bounce_counts_minus_a_thousand():
    # Omega_M = 0, Omega_Lambda = 2: E^2 = 2 - (1+z)^2, which is zero at z = 0.41
    near, far = [0.1, 38.0, 0.2], [1.0, 43.0, 0.2]
    assert math.isnan(luminosity_distance(np.array([1.0]), 70.0, 0.0, 2.0, G=100)[0])
    alone = log_likelihood(np.array([near]), 70.0, 0.0, 2.0, G=100)
    assert alone == pytest.approx(density(38.0, 0.2, by_quadrature(0.1, 70.0, 0.0, 2.0)), rel=1e-5)
    assert log_likelihood(np.array([far]), 70.0, 0.0, 2.0, G=100) == -1000
    assert log_likelihood(np.array([near, far]), 70.0, 0.0, 2.0, G=100) == pytest.approx((alone - 1000) / 2)


def test_an_expansion_that_is_zero_on_the_grid_is_no_universe():
    # Omega_M = 0, Omega_Lambda = 4/3: E^2 = (4 - (1+z)^2)/3, which is zero at the last point, z = 1
    assert log_likelihood(np.array([[1.0, 43.0, 0.2]]), 70.0, 0.0, 4 / 3, G=101) == -1000


def test_a_distance_that_is_not_positive_counts_minus_a_thousand():
    universe = (70.0, 0.05, 1.2234)  # it loiters: E^2 stays above 0, and light goes more than half way round
    assert luminosity_distance(np.array([3.0]), *universe, G=20_001)[0] < 0
    assert log_likelihood(np.array([[3.0, 45.0, 0.2]]), *universe, G=20_001) == -1000


def test_a_supernova_that_is_only_absurd_counts_no_less():
    assert log_likelihood(np.array([[0.5, 1e6, 0.1]]), 70.0, 0.3, 0.7, G=100) == -1000


# --- the data of the paper ----------------------------------------------------------------------------------


def test_the_real_value_at_the_target(real):
    x = {"H0": 68.0, "Omega_M": 0.4, "Omega_Lambda": 0.7}
    table = data.supernovae(data.locate("supernova"))
    each = [density(mu, sigma, by_quadrature(z, *x.values())) for z, mu, sigma in table.tolist()]
    assert table.shape == (192, 3)
    assert real.value(x) == pytest.approx(np.mean(each), abs=1e-11)


def test_the_real_maximum(real):
    """Where an optimiser of its own, on an integral of its own, finds the most."""
    from scipy.optimize import minimize

    z, mu, sigma = real.function.table.T
    nodes, weights = np.polynomial.legendre.leggauss(40)
    t = 1 + z[:, None] * (nodes + 1) / 2

    def loss(x):
        H0, Omega_M, Omega_Lambda = x
        Omega_k = 1 - Omega_M - Omega_Lambda
        integral = z / 2 * ((Omega_M * t**3 + Omega_k * t**2 + Omega_Lambda) ** -0.5 @ weights)
        root = np.emath.sqrt(Omega_k)  # a complex root turns sinh into sin
        d_L = (1 + z) * LIGHT / H0 * np.real(np.sinh(root * integral) / root)
        residual = (mu - 5 * np.log10(d_L) - 25) / sigma
        return np.mean(residual**2 / 2 + np.log(sigma * math.sqrt(2 * math.pi)))

    box = [(60, 80), (0, 1), (0, 1)]
    starts = [(70, 0.3, 0.6), (62, 0.8, 0.1), (75, 0.1, 0.95)]
    options = {"xatol": 1e-8, "fatol": 1e-13}
    found = [minimize(loss, start, bounds=box, method="Nelder-Mead", options=options) for start in starts]
    best = min(found, key=lambda result: result.fun)
    assert -best.fun == pytest.approx(BEST_VALUE, abs=1e-7)
    np.testing.assert_allclose(best.x, list(BEST.values()), rtol=1e-4)
    assert real.value(BEST, {"N": 192, "G": 10_000}) == pytest.approx(BEST_VALUE, abs=1e-7)


def test_the_real_densities_stay_far_above_the_least(real):
    corners = [(H0, a, b) for H0 in (60.0, 80.0) for a in (0.0, 0.5, 1.0) for b in (0.0, 0.5, 1.0)]
    each = [log_likelihood(row[None, :], *corner, G=100) for corner in corners for row in real.function.table]
    assert min(each) > -50


@pytest.mark.slow
def test_a_long_run_finds_the_real_maximum(real):
    """A study of a hundred evaluations' worth, on a grid as good as the finest, ends where the other optimiser does."""
    space, fidelity = real.problem.space, real.problem.fidelity
    found = [
        boca.maximize(
            real.function,
            space,
            fidelity,
            cost=real.problem.cost,
            target={"N": 192, "G": 20_000},
            budget=boca.targets(100),
            seed=seed,
        ).value
        for seed in range(2)
    ]
    assert max(found) <= BEST_VALUE + 1e-7
    assert min(found) > BEST_VALUE - 1e-4
