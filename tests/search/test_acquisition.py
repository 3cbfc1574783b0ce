"""Acquisition functions against their definitions, by quadrature where the plain formula cancels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

import boca
from boca.model.surrogate import Surrogate
from boca.search.acquisition import (
    BoundAcquisition,
    LogBoundImprovement,
    LogFeasible,
    drawn_maxima,
    log_ei,
    log_information,
    log_noisy_ei,
    ucb,
)

U = np.array([-1e4, -2e3, -1001.0, -999.0, -300.0, -40.0, -10.0, -5.0, -2.0, -1.001, -0.999, -0.5, 0.0, 0.7, 3.0, 40.0])


def log_h_by_quadrature(u):
    """Return log of the integral of t phi(t - u) over t > 0, with phi(u) taken out so that nothing underflows."""
    width = 1.0 / max(1.0, -u)  # how far the integrand reaches

    def integrand(v):
        t = width * v
        return width * t * math.exp(-0.5 * t * t + t * u)

    top = 60.0 if u <= 0 else 60.0 + u
    integral, error = quad(integrand, 0.0, top, epsabs=0.0, epsrel=1e-12, limit=400, points=[1.0, max(1.0, u)])
    assert error < 1e-9 * integral
    return -0.5 * u * u - 0.5 * math.log(2.0 * math.pi) + math.log(integral)


def test_ucb_is_the_mean_plus_the_root_of_beta_deviations():
    value, by_mu, by_sigma = ucb(np.array([1.0, -2.0]), np.array([0.5, 3.0]), 4.0)
    np.testing.assert_array_equal(value, [2.0, 4.0])
    np.testing.assert_array_equal(by_mu, [1.0, 1.0])
    np.testing.assert_array_equal(by_sigma, [2.0, 2.0])


def test_ucb_without_exploration_is_the_mean():
    mu = np.array([0.3, -1.0])
    np.testing.assert_array_equal(ucb(mu, np.array([1.0, 2.0]), 0.0)[0], mu)


@pytest.mark.parametrize("u", [-5.0, -3.0, -1.5, -1.0, -0.3, 0.0, 1.0, 4.0, 30.0])
@pytest.mark.parametrize(("sigma", "best"), [(1.0, 0.0), (0.02, -3.0), (50.0, 7.0)])
def test_log_ei_is_the_logarithm_of_the_plain_formula_where_that_is_stable(u, sigma, best):
    mu = best + sigma * u
    plain = (mu - best) * norm.cdf(u) + sigma * norm.pdf(u)
    assert log_ei(np.array([mu]), np.array([sigma]), best)[0][0] == pytest.approx(math.log(plain), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("u", [u for u in U if u < 35.0])
def test_log_ei_is_the_logarithm_of_the_integral_of_the_improvement(u):
    value = log_ei(np.array([u]), np.ones(1), 0.0)[0][0]
    assert value == pytest.approx(log_h_by_quadrature(u), rel=1e-12, abs=2e-9)


@pytest.mark.parametrize("u", [-1e2, -1e4, -1e6])
def test_log_ei_far_below_follows_its_asymptotic_series(u):
    """log h(u) = log phi(u) - 2 log|u| + log(1 - 3/u^2 + 15/u^4 - ...)."""
    value, by_mu, by_sigma = log_ei(np.array([u]), np.ones(1), 0.0)
    series = norm.logpdf(u) - 2.0 * math.log(-u) + math.log1p(-3.0 / u**2 + 15.0 / u**4 - 105.0 / u**6)
    assert value[0] == pytest.approx(series, rel=1e-14, abs=1e-8)
    assert by_mu[0] == pytest.approx(-u * (1.0 + 2.0 / u**2), rel=1e-3)
    assert by_sigma[0] == pytest.approx(u * u * (1.0 + 3.0 / u**2), rel=1e-3)


@pytest.mark.parametrize("u", U)
@pytest.mark.parametrize("sigma", [1.0, 0.03, 20.0])
def test_the_derivatives_of_log_ei_are_its_finite_differences(u, sigma):
    best = 0.4
    mu = best + sigma * u
    _, by_mu, by_sigma = log_ei(np.array([mu]), np.array([sigma]), best)

    def value(mu, sigma):
        return log_ei(np.array([mu]), np.array([sigma]), best)[0][0]

    # a step that moves the logarithm by about 1e-3: long enough to stand out of its rounding
    step_mu = min(1e-4 * sigma, 1e-3 / by_mu[0]) if u > -50 else 1e-2 / by_mu[0]
    step_sigma = min(1e-4 * sigma, 1e-3 / by_sigma[0]) if u > -50 else 1e-2 / by_sigma[0]
    if u > 0.0:
        step_mu, step_sigma = 1e-4 * sigma, 1e-4 * sigma
    rounding = 4e-16 * abs(value(mu, sigma))
    slope_mu = (value(mu + step_mu, sigma) - value(mu - step_mu, sigma)) / (2 * step_mu)
    slope_sigma = (value(mu, sigma + step_sigma) - value(mu, sigma - step_sigma)) / (2 * step_sigma)
    assert by_mu[0] == pytest.approx(slope_mu, rel=1e-4, abs=10 * rounding / step_mu)
    assert by_sigma[0] == pytest.approx(slope_sigma, rel=1e-4, abs=10 * rounding / step_sigma)


def test_log_ei_rises_with_the_mean_over_all_regimes():
    mu = np.concatenate([-np.logspace(5, -3, 400), np.logspace(-3, 3, 100)])
    value, by_mu, by_sigma = log_ei(mu, np.ones_like(mu), 0.0)
    assert np.all(np.diff(value) > 0.0)
    assert np.all(by_mu > 0.0)
    assert np.all(by_sigma >= 0.0)


@pytest.mark.parametrize("gap", [-3.0, -0.1, 0.0])
def test_log_ei_rises_with_the_deviation_where_no_improvement_is_expected(gap):
    sigma = np.logspace(-4, 2, 300)
    value, _, by_sigma = log_ei(np.full_like(sigma, gap), sigma, 0.0)
    assert np.all(np.diff(value) > 0.0)
    assert np.all(by_sigma > 0.0)


def test_a_sure_improvement_is_worth_its_size():
    assert math.exp(log_ei(np.array([5.0]), np.array([1e-6]), 2.0)[0][0]) == pytest.approx(3.0, rel=1e-12)


def test_log_ei_does_not_depend_on_the_unit():
    """Values in another unit move the logarithm by that of the unit, and nothing else."""
    mu, sigma = np.array([-3.0, 0.2, 1.5, -800.0]), np.array([0.5, 1.0, 0.1, 0.7])
    plain = log_ei(mu, sigma, 0.25)[0]
    scaled = log_ei(1024.0 * mu, 1024.0 * sigma, 256.0)[0]
    np.testing.assert_allclose(scaled, plain + math.log(1024.0), rtol=1e-14)


def test_the_improvement_over_one_draw_is_the_plain_one():
    mu, sigma = np.linspace(-300.0, 5.0, 30), np.linspace(0.1, 2.0, 30)
    plain, by_mu, by_sigma = log_ei(mu, sigma, 0.3)
    value, by_mus, by_sigmas = log_noisy_ei(mu[:, None], sigma, np.array([0.3]))
    np.testing.assert_allclose(value, plain, rtol=1e-14)
    np.testing.assert_allclose(by_mus[:, 0], by_mu, rtol=1e-14)
    np.testing.assert_allclose(by_sigmas, by_sigma, rtol=1e-14)


def test_the_improvement_over_draws_is_the_mean_over_them():
    rng = np.random.default_rng(0)
    mu, sigma, best = rng.standard_normal((20, 5)), rng.uniform(0.1, 2.0, 20), rng.standard_normal(5)
    value = log_noisy_ei(mu, sigma, best)[0]
    u = (mu - best) / sigma[:, None]
    plain = np.mean(sigma[:, None] * (norm.pdf(u) + u * norm.cdf(u)), axis=1)
    np.testing.assert_allclose(value, np.log(plain), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("gap", [0.0, 3.0, 80.0, 2e3])
def test_the_derivatives_of_the_improvement_over_draws_are_its_finite_differences(gap):
    """Far below the best, one draw alone counts, and nothing underflows."""
    rng = np.random.default_rng(1)
    mu, sigma, best = rng.standard_normal((6, 4)) - gap, rng.uniform(0.5, 2.0, 6), rng.standard_normal(4)
    value, by_mu, by_sigma = log_noisy_ei(mu, sigma, best)
    assert np.all(np.isfinite(value))
    assert np.all(by_mu >= 0.0)
    assert np.all(by_sigma > 0.0)
    step = 1e-4 / max(gap, 1.0)
    for k in range(4):
        move = step * np.eye(4)[k]
        slope = (log_noisy_ei(mu + move, sigma, best)[0] - log_noisy_ei(mu - move, sigma, best)[0]) / (2 * step)
        np.testing.assert_allclose(by_mu[:, k], slope, rtol=1e-4, atol=1e-4)
    slope = (log_noisy_ei(mu, sigma + step, best)[0] - log_noisy_ei(mu, sigma - step, best)[0]) / (2 * step)
    np.testing.assert_allclose(by_sigma, slope, rtol=1e-4, atol=1e-4)


def test_acquisitions_take_many_points_at_once_as_if_one_by_one():
    mu, sigma = U.copy(), np.linspace(0.5, 2.0, len(U))
    together = np.array(log_ei(mu, sigma, 0.1))
    apart = np.array([log_ei(mu[i : i + 1], sigma[i : i + 1], 0.1) for i in range(len(U))])[:, :, 0].T
    np.testing.assert_allclose(together, apart, rtol=1e-13)


@pytest.mark.parametrize("u", [-1e7, -1e80, -1e150, 1e80, 1e200])
def test_log_ei_of_any_finite_model_gives_no_warning_and_no_nan(u):
    """A GP whose hyperparameters the user fixed is not standardized, and results may lie anywhere."""
    assert not np.any(np.isnan(log_ei(np.array([u]), np.ones(1), 0.0)))


# Information about the maximum ------------------------------------------------------------------------------------


@pytest.mark.parametrize("eta2", [1e-8, 0.01, 3.0])
@pytest.mark.parametrize("gap", [0.0, 0.3, 1.0, 2.5, 6.0])
def test_information_is_the_logarithm_of_what_a_known_maximum_leaves_of_an_observations_variance(gap, eta2):
    """f below its maximum is a truncated normal variable; with independent noise, variances add."""
    sigma, mu, top = 0.7, -0.4, -0.4 + 0.7 * gap
    left = sigma**2 * truncnorm.var(-np.inf, gap) + eta2
    value = log_information(np.array([mu]), np.array([sigma]), eta2, np.array([top]))[0][0]
    assert math.exp(value) == pytest.approx(-0.5 * math.log(left / (sigma**2 + eta2)), rel=1e-6)


def test_information_is_averaged_over_the_maxima():
    mu, sigma, tops = np.array([0.2, -1.0]), np.array([0.5, 2.0]), np.array([0.3, 1.0, 4.0])
    one_by_one = [np.exp(log_information(mu, sigma, 0.1, tops[i : i + 1])[0]) for i in range(3)]
    np.testing.assert_allclose(
        np.exp(log_information(mu, sigma, 0.1, tops)[0]), np.mean(one_by_one, axis=0), rtol=1e-12
    )


@pytest.mark.parametrize("eta2", [1e-6, 0.1])
@pytest.mark.parametrize("gap", [0.1, 1.0, 5.0, 15.0, 30.0])
def test_the_derivatives_of_information_are_its_finite_differences(gap, eta2):
    sigma, tops = 0.3, np.array([1.0, 1.0 + 0.3 * gap])
    mu = 1.0 - 0.3 * gap
    _, by_mu, by_sigma = log_information(np.array([mu]), np.array([sigma]), eta2, tops)

    def value(mu, sigma):
        return log_information(np.array([mu]), np.array([sigma]), eta2, tops)[0][0]

    step = 1e-6
    slopes = [(value(mu + a, sigma + b) - value(mu - a, sigma - b)) / (2 * step) for a, b in ((step, 0), (0, step))]
    np.testing.assert_allclose([by_mu[0], by_sigma[0]], slopes, rtol=1e-5)


@pytest.mark.parametrize("eta2", [1e-6, 0.1])
@pytest.mark.parametrize("mu", [-2.0, 0.0, 0.9, 1.0, 1.3, 5.0])
def test_information_never_falls_with_the_deviation(mu, eta2):
    """So a deviation that is too large gives a bound; a mean above a maximum counts as it."""
    sigma = np.logspace(-3, 2, 400)
    value, by_mu, by_sigma = log_information(np.full_like(sigma, mu), sigma, eta2, np.array([1.0, 1.2]))
    assert np.all(np.diff(value) >= 0.0)
    assert np.all(by_sigma >= 0.0)
    assert np.all(by_mu >= 0.0)
    assert (mu >= 1.2) == bool(np.all(by_mu == 0.0))


@pytest.mark.parametrize("mu", [-1e9, -1e80, 0.0, 1e80])
def test_information_of_any_finite_model_gives_no_warning_and_no_nan(mu):
    assert np.all(np.isfinite(log_information(np.array([mu]), np.ones(1), 0.01, np.array([0.5, 2.0]))))


def test_drawn_maxima_have_the_quartiles_of_the_maximum_of_independent_values():
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(size=200), rng.uniform(0.05, 1.0, 200)
    drawn = drawn_maxima(mu, sigma, rng, 40_000)
    true = np.max(mu + sigma * rng.standard_normal((20_000, 200)), axis=1)
    np.testing.assert_allclose(np.quantile(drawn, [0.25, 0.5, 0.75]), np.quantile(true, [0.25, 0.5, 0.75]), atol=0.03)


def test_no_drawn_maximum_is_below_the_highest_mean():
    mu, sigma = np.array([0.0, 3.0, 1.0]), np.array([2.0, 1.0, 1e-9])
    drawn = drawn_maxima(mu, sigma, np.random.default_rng(1), 1000)
    assert np.min(drawn) == 3.0
    assert np.mean(drawn > 3.0) > 0.3


@pytest.mark.parametrize("sigma", [1e-7, 1e7])
def test_maxima_are_drawn_in_any_unit(sigma):
    mu = np.zeros(50)
    drawn = drawn_maxima(mu, np.full(50, sigma), np.random.default_rng(2), 9)
    unit = drawn_maxima(mu, np.ones(50), np.random.default_rng(2), 9)
    np.testing.assert_allclose(drawn / sigma, unit, rtol=1e-9)


# Bound to a model -------------------------------------------------------------------------------------------------


FORMULAS = {
    "ucb": lambda mu, sigma: ucb(mu, sigma, 3.0),
    "log_ei": lambda mu, sigma: log_ei(mu, sigma, 0.8),
    "information": lambda mu, sigma: log_information(mu, sigma, 0.01, np.array([2.5, 3.0, 4.0])),
}


@pytest.fixture(scope="module", params=[Surrogate(), Surrogate.paper()], ids=["matern", "se"])
def model(request):
    space = boca.Space(a=boca.Float(0.0, 1.0), kind=boca.Choice(["u", "v", "w"]), b=boca.Float(-1.0, 1.0))
    problem = boca.Problem(space, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + z["z"])
    optimizer = boca.Optimizer(problem, budget=boca.targets(5), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(25):
        x = space.from_unit(space.snap(rng.random((1, 3)))[0])
        z = {"z": float(rng.random())}
        optimizer.add(x, z, math.sin(4.0 * x["a"]) - x["b"] ** 2 + (x["kind"] == "v") + 0.2 * z["z"])
    return request.param.model(problem, optimizer.history, np.random.default_rng(1))


@pytest.mark.parametrize("name", FORMULAS)
def test_a_promise_is_its_formula_of_the_moments_of_the_model(model, name):
    promise = BoundAcquisition(model, FORMULAS[name])
    U = model.problem.space.snap(np.random.default_rng(2).random((40, 3)))
    expected = FORMULAS[name](*model.moments(U))[0]
    np.testing.assert_array_equal(promise.value(U), expected)
    # by way of the explicit inverse, which loses digits where noise is small
    np.testing.assert_allclose(promise.value_and_gradient(U)[0], expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_the_gradient_of_a_promise_is_its_finite_difference_and_zero_along_choices(model, name):
    has_its_finite_differences(BoundAcquisition(model, FORMULAS[name]))


def test_the_gradient_of_a_promise_given_draws_is_its_finite_difference_too(model):
    section, values = model.given_draws(model.anchors(), np.random.default_rng(4).standard_normal((5, 8)))
    highest = np.max(values, axis=0)
    promise = BoundAcquisition(model, lambda mu, sigma: log_noisy_ei(mu, sigma, highest), section)
    has_its_finite_differences(promise, rtol=1e-3)  # without noise, slopes of 1e6 bend within a step


def has_its_finite_differences(promise, *, rtol=1e-4):
    """Check values and gradients at twenty points of the space that the model has."""
    U = promise.model.problem.space.snap(np.random.default_rng(3).uniform(0.05, 0.95, (20, 3)))
    value, gradient = promise.value_and_gradient(U)
    np.testing.assert_allclose(promise.value(U), value, rtol=1e-3, atol=1e-5)
    step = 1e-5
    for j in (0, 2):
        move = step * np.eye(3)[j]
        slope = (promise.value(U + move) - promise.value(U - move)) / (2 * step)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=rtol, atol=1e-4)
    np.testing.assert_array_equal(gradient[:, 1], np.zeros(20))


# Limits on outcomes ---------------------------------------------------------------------------------------------------


def slopes(formula, mu, sigma, step=1e-6):
    by_mu = (formula(mu + step, sigma)[0] - formula(mu - step, sigma)[0]) / (2 * step)
    by_sigma = (formula(mu, sigma + step)[0] - formula(mu, sigma - step)[0]) / (2 * step)
    return by_mu, by_sigma


@pytest.mark.parametrize("formula", [LogFeasible(0.3), LogFeasible(0.3, 0.2, 0.75), LogBoundImprovement(2.0, 0.4)])
def test_the_slopes_of_limited_formulas_are_finite_differences(formula):
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(0.0, 2.0, 60), rng.uniform(0.05, 2.0, 60)
    value, by_mu, by_sigma = formula(mu, sigma)
    for found, exact in zip((by_mu, by_sigma), slopes(formula, mu, sigma), strict=True):
        np.testing.assert_allclose(found * np.ones(60), exact, rtol=1e-5, atol=1e-7)
    assert np.all(np.isfinite(value))


def test_the_probability_of_feasibility_is_exact_far_into_the_tail():
    mu, sigma = np.array([-40.0, -5.0, 0.3, 2.0, 60.0]), np.full(5, 1.0)
    np.testing.assert_allclose(LogFeasible(0.3)(mu, sigma)[0], norm.logcdf(mu - 0.3), rtol=1e-12)
    far, by_mu, _ = LogFeasible(0.0)(np.array([-1e6]), np.array([1.0]))
    assert np.isfinite(far).all()
    assert by_mu[0] == pytest.approx(1e6, rel=1e-6)


def test_an_improved_bound_counts_once_it_is_above_the_best():
    formula = LogBoundImprovement(4.0, 1.0)
    value = formula(np.array([3.0, -100.0]), np.array([0.5, 0.5]))[0]
    assert value[0] == pytest.approx(math.log(3.0 / 0.1), rel=1e-9)  # mu + 2 sigma - best, in tenths
    assert value[1] == pytest.approx(-100.0 / 0.1, rel=1e-9)
    assert (LogFeasible.rises, LogBoundImprovement.rises) == (False, True)
