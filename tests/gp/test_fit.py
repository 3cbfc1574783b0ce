"""Likelihood and gradient against scikit-learn and finite differences; what a fit finds; the scale of y."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from boca.gp import fit as gp_fit
from boca.gp.fit import JITTER, Standardization, log_likelihood, standardize, unpack
from boca.gp.kernels import BLOCK_ROWS, Custom, Jump, Kernel, Radial, Trend
from boca.gp.model import GP
from boca.gp.parameters import Prior

KERNELS = {
    "se": Kernel((Radial("se", (0, 1, 2), (0, 1, 2)),)),
    "matern52": Kernel((Radial("matern52", (0, 1, 2), (0, 1, 2)),)),
    "product": Kernel((Radial("matern52", (0, 1), (0, 1)), Radial("se", (2,), (2,)))),
    "shared": Kernel((Radial("matern52", (0,), (0,)), Radial("se", (1, 2), (1, 1)))),
    "custom": Kernel(
        (Radial("matern52", (0, 1), (0, 1)),),
        (Custom(lambda P, Q: 0.5 + np.minimum(P, Q.T), lambda P: 0.5 + P[:, 0], (2,)),),
    ),
    "jump": Kernel((Radial("matern52", (0, 1), (0, 1)), Radial("se", (2,), (2,))), factors=(Jump(3, 3),)),
    "trend": Kernel((Radial("se", (0, 1, 2), (0, 1, 2)),), terms=(Trend((1, 2), (1.0, 0.3), 3),)),
    "both": Kernel((Radial("matern52", (0, 1), (0, 1)),), factors=(Jump(3, 2),), terms=(Trend((2, 3), (1.0, 1.0), 3),)),
}
SIZES = (5, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS, 2 * BLOCK_ROWS + 7)


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n)
    return np.column_stack([X, rng.random(n) < 0.3]), y  # the last column tells two classes apart


def some_theta(kernel):
    logs = np.log([1.7, *(0.4, 0.7, 1.2)[: kernel.size], 0.05])
    return np.concatenate([logs, (0.8, 1.5)[: kernel.strengths]])


def value_only(theta, name, X, y, noise, mean):
    return log_likelihood(theta, KERNELS[name], X, y, noise, mean=mean)[0]


def finite_differences(function, theta, step=1e-5):
    return np.array(
        [(function(theta + step * e) - function(theta - step * e)) / (2 * step) for e in np.eye(len(theta))]
    )


def covariance_by_hand(theta, kernel, X, noise):
    end = 1 + kernel.size
    kappa0, eta2 = math.exp(theta[0]), math.exp(theta[end])
    h = np.concatenate([np.exp(theta[1:end]), theta[end + 1 :]])
    return kappa0 * kernel.value(h, X, X) + np.diag(eta2 + 1e-8 * kappa0 + noise)


# Likelihood -----------------------------------------------------------------------------------------------------------


def test_theta_holds_logarithms_and_a_constant_jitter_joins_the_noise():
    kappa0, h, diagonal = unpack(np.log([4.0, 0.2, 0.5, 0.01]), Kernel((Radial("se", (0, 1), (0, 1)),)))
    assert kappa0 == pytest.approx(4.0)
    np.testing.assert_allclose(h, [0.2, 0.5])
    assert diagonal == pytest.approx(0.01 + 4.0 * JITTER, rel=1e-14)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("mean", [0.0, -0.8])
def test_the_likelihood_is_the_normal_density_of_the_data(name, mean):
    X, y = data(30)
    noise = np.random.default_rng(1).random(30)
    theta = some_theta(KERNELS[name])
    K = covariance_by_hand(theta, KERNELS[name], X, noise)
    expected = multivariate_normal(np.full(30, mean), K).logpdf(y)
    assert value_only(theta, name, X, y, noise, mean) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", SIZES)
def test_the_likelihood_of_any_number_of_blocks_is_that_of_slogdet_and_inverse(name, n):
    X, y = data(n)
    theta = some_theta(KERNELS[name])
    K = covariance_by_hand(theta, KERNELS[name], X, np.zeros(n))
    expected = -0.5 * (y @ np.linalg.inv(K) @ y + np.linalg.slogdet(K)[1] + n * math.log(2 * math.pi))
    assert value_only(theta, name, X, y, np.zeros(n), 0.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_the_model_that_theta_describes_has_the_likelihood_of_theta(name):
    X, y = data(30)
    noise = np.random.default_rng(2).random(30)
    theta = some_theta(KERNELS[name])
    for mean in (None, 0.3):
        gp = gp_fit.build(KERNELS[name], X, y, theta, noise=noise, mean=mean)
        assert gp.log_likelihood(y) == pytest.approx(value_only(theta, name, X, y, noise, mean), rel=1e-10)
        assert gp.eta2 == unpack(theta, KERNELS[name])[2]


def test_a_result_with_endless_noise_leaves_the_likelihood_of_the_others_alone_also_where_they_need_a_jitter():
    """Equal rows of a kernel so large that no constant jitter is seen beside it."""
    large = Kernel(
        (Radial("se", (0,), (0,)),),
        (Custom(lambda P, Q: np.full((len(P), len(Q)), 1e12), lambda P: np.full(len(P), 1e12), (1,)),),
    )
    X, y, theta = np.ones((6, 2)), np.linspace(-1.0, 1.0, 6), np.log([1.0, 0.3, 1e-6])
    noise = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1e30])
    value = log_likelihood(theta, large, X, y, noise, mean=0.0)[0]
    others = log_likelihood(theta, large, X[:5], y[:5], noise[:5], mean=0.0)[0]
    assert value == pytest.approx(others - 0.5 * math.log(2.0 * math.pi * 1e30), rel=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_noise_that_rises_is_noise_on_the_diagonal(name):
    X, y = data(30)
    away, noise = X[:, 1], np.random.default_rng(2).random(30)
    theta = some_theta(KERNELS[name])
    rising = log_likelihood(np.append(theta, 0.7), KERNELS[name], X, y, noise, mean=None, shapes=[away])[0]
    assert rising == pytest.approx(value_only(theta, name, X, y, noise + 0.7 * away, None), rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [30, BLOCK_ROWS + 1])
def test_the_gradient_by_the_rise_is_that_of_finite_differences(name, n):
    X, y = data(n)
    how = {"mean": None, "shapes": [X[:, 1]]}
    theta = np.append(some_theta(KERNELS[name]), 0.4)

    def value(theta):
        return log_likelihood(theta, KERNELS[name], X, y, np.zeros(n), **how)[0]

    found = log_likelihood(theta, KERNELS[name], X, y, np.zeros(n), **how)[1]
    np.testing.assert_allclose(found, finite_differences(value, theta), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_with_a_free_mean_the_likelihood_is_the_largest_over_constant_means(name):
    X, y = data(30)
    theta = some_theta(KERNELS[name])
    K_inv = np.linalg.inv(covariance_by_hand(theta, KERNELS[name], X, np.zeros(30)))
    best = K_inv.sum(axis=0) @ y / K_inv.sum()
    free = value_only(theta, name, X, y, np.zeros(30), None)
    assert free == pytest.approx(value_only(theta, name, X, y, np.zeros(30), best), rel=1e-11)
    assert free > value_only(theta, name, X, y, np.zeros(30), best + 0.05)
    assert free > value_only(theta, name, X, y, np.zeros(30), best - 0.05)


# Gradient -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("mean", [None, 0.4])
def test_the_gradient_is_the_finite_difference_of_the_likelihood(name, n, mean):
    X, y = data(n)
    noise = 0.1 * np.random.default_rng(3).random(n)
    theta = some_theta(KERNELS[name])
    _, gradient = log_likelihood(theta, KERNELS[name], X, y, noise, mean=mean)
    expected = finite_differences(lambda t: value_only(t, name, X, y, noise, mean), theta)
    np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=2e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_the_gradient_is_right_where_points_coincide(name):
    X, y = data(20)
    X, y = np.vstack([X, X, X[:3]]), np.concatenate([y, y + 0.1, y[:3] - 0.2])
    theta = some_theta(KERNELS[name])
    _, gradient = log_likelihood(theta, KERNELS[name], X, y, np.zeros(43), mean=None)
    expected = finite_differences(lambda t: value_only(t, name, X, y, np.zeros(43), None), theta)
    np.testing.assert_allclose(gradient, expected, rtol=2e-6, atol=2e-5)


def test_the_constant_jitter_is_part_of_the_gradient_by_the_scale():
    """Where noise is at its floor and the scale at its ceiling, the jitter is ten times the noise."""
    X, y = data(10)
    theta = np.log([1e3, 0.1, 0.1, 0.1, 1e-6])
    X[1] = X[0]
    _, gradient = log_likelihood(theta, KERNELS["se"], X, y, np.zeros(10), mean=0.0)
    expected = finite_differences(lambda t: value_only(t, "se", X, y, np.zeros(10), 0.0), theta, step=1e-4)
    np.testing.assert_allclose(gradient[[0, -1]], expected[[0, -1]], rtol=1e-3)
    assert gradient[0] > 5.0 * gradient[-1]


@pytest.mark.parametrize("name", ["se", "matern52"])
@pytest.mark.parametrize("n", [4, 50, BLOCK_ROWS + 30])
def test_likelihood_and_gradient_are_those_of_scikit_learn(name, n):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    X, y = data(n)
    theta = some_theta(KERNELS[name])
    h = np.exp(theta[1:-1])
    kernel = ConstantKernel(math.exp(theta[0])) * (RBF(h) if name == "se" else Matern(h, nu=2.5))
    kernel += WhiteKernel(math.exp(theta[-1]))
    jitter = JITTER * math.exp(theta[0])
    other = GaussianProcessRegressor(kernel, alpha=jitter, optimizer=None).fit(X[:, :3], y)
    expected, slope = other.log_marginal_likelihood(theta, eval_gradient=True)
    value, gradient = log_likelihood(theta, KERNELS[name], X, y, np.zeros(n), mean=0.0)
    assert value == pytest.approx(expected, rel=1e-10)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-5)


# What a fit finds -----------------------------------------------------------------------------------------------------


@pytest.fixture
def prior():
    return Prior(
        mean=np.log([1.0, 0.5, 0.5, 1.0, 0.01]),
        deviation=np.array([1.5, 1.0, 1.0, 1.0, 2.0]),
        low=np.log([1e-2, 0.01, 0.01, 0.01, 1e-6]),
        high=np.log([1e3, 10.0, 10.0, 10.0, 2.0]),
    )


def flat(prior):
    return Prior(prior.mean, np.full(5, np.inf), prior.low, prior.high)


def posterior_density(theta, name, X, y, prior, noise=None):
    known = np.zeros(len(y)) if noise is None else noise
    value, gradient = log_likelihood(theta, KERNELS[name], X, y, known, mean=None)
    density, slope = prior.log_density(theta)
    return value + density, gradient + slope


def projected(gradient, theta, prior):
    """Leave out what points out of the box."""
    outwards = ((theta <= prior.low) & (gradient < 0)) | ((theta >= prior.high) & (gradient > 0))
    return np.where(outwards, 0.0, gradient)


@pytest.mark.parametrize("name", ["se", "matern52", "product"])
@pytest.mark.parametrize("informative", [True, False])
@pytest.mark.parametrize("n", [6, 40, BLOCK_ROWS + 10])
def test_the_fitted_theta_is_stationary_and_beats_random_ones(name, informative, n, prior):
    prior = prior if informative else flat(prior)
    X, y = data(n, seed=n)
    y = standardize(y).apply(y)
    rng = np.random.default_rng(1)
    starts = [prior.mean, prior.draw(rng), prior.draw(rng)]
    theta = gp_fit.fit(KERNELS[name], X, y, prior=prior, starts=starts)
    assert np.all(theta >= prior.low)
    assert np.all(theta <= prior.high)
    value, gradient = posterior_density(theta, name, X, y, prior)
    assert np.max(np.abs(projected(gradient, theta, prior))) < (0.03 if informative else 0.02)
    others = [rng.uniform(prior.low, prior.high) for _ in range(60)] + [
        theta + 0.05 * rng.standard_normal(5) for _ in range(20)
    ]
    short = 1e-3 if informative else 1e-6  # priors let the search stop that much below the top
    assert all(posterior_density(prior.clip(other), name, X, y, prior)[0] <= value + short for other in others)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("roughly", "short"), [(False, 0.01), (True, 0.1)])
def test_a_search_that_priors_let_stop_early_is_near_the_top(prior, seed, roughly, short):
    X, y = data(90, seed=seed)
    y = standardize(y).apply(y)
    theta = gp_fit.fit(KERNELS["product"], X, y, prior=prior, starts=[prior.mean], roughly=roughly)

    def loss(theta):
        value, gradient = posterior_density(theta, "product", X, y, prior)
        return -value, -gradient

    bounds = np.column_stack([prior.low, prior.high])
    top = minimize(loss, theta, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
    assert 0.0 <= loss(theta)[0] - top.fun < short


def test_a_search_stops_early_only_where_a_prior_bends_every_entry(prior):
    assert prior.is_curved
    assert not flat(prior).is_curved


def test_a_fit_takes_the_best_of_its_starts(prior):
    """Noise explains everything from one start, the function from the other."""
    X, y = data(12, seed=5)
    y = standardize(y).apply(y)
    box = flat(prior)
    noisy, wavy = np.log([0.01, 10.0, 10.0, 10.0, 1.0]), np.log([1.0, 0.3, 1.0, 1.0, 0.01])
    found = {
        key: posterior_density(gp_fit.fit(KERNELS["se"], X, y, prior=box, starts=starts), "se", X, y, box)[0]
        for key, starts in {"noisy": [noisy], "wavy": [wavy], "both": [noisy, wavy], "swapped": [wavy, noisy]}.items()
    }
    assert abs(found["noisy"] - found["wavy"]) > 0.1  # else the test says nothing
    assert found["both"] == found["swapped"] == max(found["noisy"], found["wavy"])


def test_a_fit_recovers_the_process_that_drew_the_data(prior):
    rng = np.random.default_rng(7)
    X = rng.random((250, 3))
    truth = np.log([1.0, 0.2, 0.5, 1.5, 0.02])
    K = covariance_by_hand(truth, KERNELS["product"], X, np.zeros(250))
    y = np.linalg.cholesky(K) @ rng.standard_normal(250)
    theta = gp_fit.fit(KERNELS["product"], X, y, prior=flat(prior), starts=[prior.mean], mean=0.0)
    np.testing.assert_allclose(theta[1:3], truth[1:3], atol=0.35)
    assert theta[-1] == pytest.approx(truth[-1], abs=0.3)
    assert theta[3] > theta[2]


def test_a_fit_counts_known_noise_apart_from_the_noise_it_learns(prior):
    """Half the data carry a known variance of 4: told, they leave the learned noise small."""
    rng = np.random.default_rng(8)
    X = rng.random((120, 3))
    noise = np.where(np.arange(120) % 2, 4.0, 0.0)
    y = np.sin(6.0 * X[:, 0]) + np.sqrt(noise + 0.01) * rng.standard_normal(120)
    told = gp_fit.fit(KERNELS["se"], X, y, prior=prior, starts=[prior.mean], noise=noise)
    untold = gp_fit.fit(KERNELS["se"], X, y, prior=prior, starts=[prior.mean])
    assert math.exp(told[-1]) < 0.1
    assert math.exp(untold[-1]) > 0.5


def test_a_fit_of_constant_data_keeps_inside_the_box(prior):
    X, _ = data(10)
    for box in (prior, flat(prior)):
        theta = gp_fit.fit(KERNELS["product"], X, np.zeros(10), prior=box, starts=[prior.mean])
        assert np.all((theta >= box.low) & (theta <= box.high))


def test_a_model_is_built_with_what_theta_says():
    X, y = data(15)
    theta = some_theta(KERNELS["product"])
    A = np.random.default_rng(9).random((5, 3))
    kappa0, h, diagonal = unpack(theta, KERNELS["product"])
    direct = GP.build(KERNELS["product"], X, y, kappa0=kappa0, h=h, eta2=diagonal, m=0.1)
    built = gp_fit.build(KERNELS["product"], X, y, theta, mean=0.1)
    np.testing.assert_array_equal(built.posterior(A), direct.posterior(A))


# The scale of y -------------------------------------------------------------------------------------------------------


def test_y_is_standardized_by_median_and_standard_deviation():
    y = np.array([1.0, 2.0, 4.0, 9.0, 3.0])
    standard = standardize(y)
    assert standard.location == 3.0
    assert standard.scale == pytest.approx(np.std(y), rel=1e-15)
    np.testing.assert_allclose(standard.apply(y), (y - 3.0) / np.std(y), rtol=1e-15)


def test_the_median_is_met_exactly():
    rng = np.random.default_rng(2)
    for n in range(1, 30, 2):
        y = 10.0 ** rng.uniform(-100, 100) * rng.standard_normal(n)
        assert standardize(y).location == np.median(y)


@pytest.mark.parametrize("seed", range(5))
def test_what_was_standardized_comes_back(seed):
    rng = np.random.default_rng(seed)
    y = 10.0 ** rng.uniform(-8, 8) * rng.standard_normal(20) + 10.0 ** rng.uniform(-8, 8)
    standard = standardize(y)
    np.testing.assert_allclose(standard.location + standard.scale * standard.apply(y), y, rtol=1e-12)


@pytest.mark.parametrize("power", [-900, -60, -1, 1, 3, 60, 900])
def test_units_that_differ_by_a_power_of_two_give_the_same_bits(power):
    y = np.random.default_rng(0).standard_normal(21) + 5.0
    factor = 2.0**power
    plain, scaled = standardize(y), standardize(factor * y)
    np.testing.assert_array_equal(scaled.apply(factor * y), plain.apply(y))
    assert scaled.location == factor * plain.location
    assert scaled.scale == factor * plain.scale


def test_turning_the_sign_turns_the_standardized_values():
    y = np.random.default_rng(1).standard_normal(20)
    np.testing.assert_array_equal(standardize(-y).apply(-y), -standardize(y).apply(y))


@pytest.mark.parametrize(
    "y",
    [
        [1e300, -1e300, 3e299],
        [1e308, -1e308],
        [1.7e308, -1.7e308, 1.7e308, 0.0],
        [1e-300, 3e-300, -2e-300],
        [1e300, 1e-300, 0.0, -1.0],
        [1e300] * 5 + [0.0],
    ],
)
def test_values_at_the_ends_of_the_range_keep_their_order_and_a_spread_of_one(y):
    y = np.array(y)
    standard = standardize(y)
    assert math.isfinite(standard.location)
    assert 0.0 < standard.scale < math.inf
    w = standard.apply(y)
    assert np.all(np.isfinite(w))
    assert np.std(w) == pytest.approx(1.0, rel=1e-9)
    assert np.all(np.diff(w[np.argsort(y, kind="stable")]) >= 0.0)


@pytest.mark.parametrize("y", [[5e-324, 0.0], [5e-324] * 3, [1e-310, 2e-310, -1e-310], [5e-324, 0.0, 0.0, 0.0, 0.0]])
def test_values_below_the_normal_range_stay_finite(y):
    y = np.array(y)
    standard = standardize(y)
    assert standard.scale > 0.0
    assert np.all(np.isfinite(standard.apply(y)))


@pytest.mark.parametrize("value", [0.0, 1.0, -7.3, 1e300, -1e308, 1e-300, 0.1])
@pytest.mark.parametrize("n", [1, 2, 7])
def test_constant_values_become_zeros_in_a_unit_of_their_size(value, n):
    y = np.full(n, value)
    standard = standardize(y)
    np.testing.assert_array_equal(standard.apply(y), np.zeros(n))
    assert standard.location == value
    if value:
        assert 0.5 * abs(value) <= standard.scale <= abs(value)
    else:
        assert standard.scale == 1.0


def test_a_spread_that_is_rounding_is_no_spread():
    y = np.array([0.1 + 0.2, 0.3, 0.3])
    assert standardize(y).scale > 0.1
    assert np.max(np.abs(standardize(y).apply(y))) < 1e-14


def test_a_spread_that_is_small_but_real_is_one():
    y = 1.0 + 1e-9 * np.array([0.0, 1.0, 2.0, 5.0])
    assert standardize(y).scale == pytest.approx(np.std(y), rel=1e-5)


def test_differences_of_the_largest_floats_do_not_overflow():
    w = Standardization(1.7e308, 1e308).apply(np.array([-1.7e308, 1.7e308]))
    np.testing.assert_allclose(w, [-3.4, 0.0])
