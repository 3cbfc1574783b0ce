"""The expected hypervolume improvement: Monte Carlo, finite differences, limits, and one objective."""

from __future__ import annotations

import numpy as np
import pytest

from boca import Float, Optimizer, Problem, RandomSearch, Space, Surrogate
from boca.domain.hypervolume import Region, in_order
from boca.model.objectives import Objectives
from boca.search.acquisition import log_ei
from boca.search.hypervolume import HypervolumeImprovement, LogEHVI


def sphere(n, m, seed=0):
    Y = np.abs(np.random.default_rng(seed).standard_normal((n, m)))
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


def formula(n, m):
    reference = np.full(m, -0.1)
    return LogEHVI(Region.above(reference, in_order(sphere(n, m), reference)))


def queries(m, count=5, seed=1):
    rng = np.random.default_rng(seed)
    return rng.random((count, m)), 0.05 + 0.4 * rng.random((count, m))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_it_is_the_mean_gain_of_draws(m):
    of = formula(10, m)
    mu, sigma = queries(m)
    normal = np.random.default_rng(2).standard_normal((40_000, m))
    for mean, deviation, value in zip(mu, sigma, np.exp(of.value(mu, sigma)), strict=True):
        gains = of.region.gain(mean + deviation * normal)
        assert value == pytest.approx(np.mean(gains), abs=4 * np.std(gains) / np.sqrt(len(gains)))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_its_slopes_are_finite_differences(m):
    of = formula(10, m)
    mu, sigma = queries(m)
    _, by_mu, by_sigma = of(mu, sigma)
    for j in range(m):
        step = np.zeros(m)
        step[j] = 1e-6
        assert by_mu[:, j] == pytest.approx((of.value(mu + step, sigma) - of.value(mu - step, sigma)) / 2e-6, rel=1e-4)
        assert by_sigma[:, j] == pytest.approx(
            (of.value(mu, sigma + step) - of.value(mu, sigma - step)) / 2e-6, rel=1e-4, abs=1e-6
        )


def test_with_one_objective_it_is_the_expected_improvement_over_the_best():
    of = LogEHVI(Region.above(np.array([0.0]), np.array([[0.3], [0.7]])))
    mu, sigma = np.array([[0.1], [0.9]]), np.array([[0.2], [0.3]])
    assert of.value(mu, sigma) == pytest.approx(log_ei(mu[:, 0], sigma[:, 0], 0.7)[0], abs=1e-9)


def test_far_below_the_front_it_underflows_and_its_logarithm_does_not():
    of = formula(10, 3)
    mu, sigma = queries(3)
    value, by_mu, by_sigma = of(mu - 50.0, sigma)
    assert np.all(np.isfinite(value))
    assert np.all(value < -1000.0)
    assert np.all(np.isfinite(by_mu))
    assert np.all(by_mu > 0.0)
    assert np.all(np.isfinite(by_sigma))


def test_certain_points_have_their_gain():
    of = formula(10, 3)
    Y = 0.4 + sphere(5, 3, seed=9)
    assert np.exp(of.value(Y, np.full(Y.shape, 1e-9))) == pytest.approx(of.region.gain(Y), rel=1e-6)


def test_blocks_change_nothing(monkeypatch):
    of = formula(30, 4)
    mu, sigma = queries(4, count=40)
    whole = of.value(mu, sigma)
    monkeypatch.setattr("boca.search.hypervolume._BLOCK", 7 * len(of.region.low))
    assert of.value(mu, sigma) == pytest.approx(whole, rel=1e-12)
    assert of.value(mu[:0], sigma[:0]).shape == (0,)


@pytest.fixture
def improvement():
    of = Problem(Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)), outcomes={"f": "minimize", "g": "maximize", "h": "max"})
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    rng = np.random.default_rng(0)
    for a, b in rng.random((12, 2)):
        opt.add({"a": a, "b": b}, None, {"f": 10 * a, "g": b - a * b, "h": np.sin(3 * a) - b})
    models = Objectives.after(of, opt.history, Surrogate(), rng)
    mu = models.means(models.queried)
    return HypervolumeImprovement(models, mu, mu.min(axis=0) - 0.1)


def test_as_a_function_of_x_its_gradient_is_a_finite_difference(improvement):
    U = np.random.default_rng(3).random((6, 2))
    value, gradient = improvement.value_and_gradient(U)
    assert value == pytest.approx(improvement.value(U), abs=1e-8)
    for j in range(2):
        step = np.zeros(2)
        step[j] = 1e-5
        slope = (improvement.value(U + step) - improvement.value(U - step)) / 2e-5
        assert gradient[:, j] == pytest.approx(slope, rel=1e-3, abs=1e-3)


def test_a_part_of_the_front_bounds_it_from_above(improvement, monkeypatch):
    U = np.random.default_rng(4).random((50, 2))
    assert improvement.bound(U) is None
    monkeypatch.setattr("boca.search.hypervolume._BOUNDED_FROM_BOXES", 1)
    monkeypatch.setattr("boca.search.hypervolume._COARSE_POINTS", 2)
    coarse = HypervolumeImprovement(improvement.objectives, improvement.front, improvement.reference)
    assert np.all(coarse.bound(U) >= improvement.value(U) - 1e-9)
    assert np.any(coarse.bound(U) > improvement.value(U) + 1e-3)


def test_with_many_results_cheap_bounds_of_the_moments_bound_it(improvement):
    of = improvement.objectives.problem
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    rng = np.random.default_rng(1)
    for a, b in rng.random((80, 2)):
        opt.add({"a": a, "b": b}, None, {"f": 10 * a, "g": b - a * b, "h": np.sin(3 * a) - b})
    models = Objectives.after(of, opt.history, Surrogate(), rng)
    mu = models.means(models.queried)
    many = HypervolumeImprovement(models, mu[:20], mu.min(axis=0) - 0.1)
    U = rng.random((60, 2))
    assert np.all(many.bound(U) >= many.value(U) - 1e-9)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_it_rises_with_every_mean_and_every_deviation(m):
    of = formula(12, m)
    mu, sigma = queries(m, count=30)
    _, by_mu, by_sigma = of(mu, sigma)
    assert np.all(by_mu > 0.0)
    assert np.all(by_sigma > -1e-9)
