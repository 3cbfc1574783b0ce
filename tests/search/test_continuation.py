"""What a query tells about the best mean, against written-out formulas and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import boca
from boca.search.continuation import ImprovementBelow, best_of_others, log_gains
from support.runs import studied

OPT = studied(trials=14, budget=8)
PROBLEM = OPT.problem
MODEL = boca.Surrogate(guard=None).model(PROBLEM, OPT.history, np.random.default_rng(0))
U = np.random.default_rng(1).random((5, 2))
NEW = float(len(OPT.history))


def gains(points, of, steps, curves, best):
    Z = PROBLEM.fidelity.to_unit([{"epochs": s} for s in steps])
    return log_gains(MODEL, points, np.array(of), Z, np.array(curves), np.array(best))


def test_the_gain_is_the_formula():
    steps, best = [2, 8, 16], float(MODEL.means(U[:1])[0]) + 0.1
    got = gains(U[:1], [0, 0, 0], steps, [NEW] * 3, [best])
    star = np.concatenate([MODEL.encoding.x_features(U[:1])[0], MODEL.encoding.target])
    for k, step in enumerate(steps):
        at = MODEL.encoding.features(U[:1], PROBLEM.fidelity.to_unit([{"epochs": step}]), np.array([NEW]))
        tau2, covariance, _ = MODEL.gp.covariance_with(at, star)
        s = abs(covariance[0]) / math.sqrt(tau2[0] + MODEL.noise(at)[0])
        u = -abs(MODEL.means(U[:1])[0] - best) / s
        assert got[k] == pytest.approx(math.log(s * (norm.pdf(u) + u * norm.cdf(u))), rel=1e-6)


def test_the_gain_is_how_much_the_best_mean_rises_when_results_are_drawn():
    best = float(np.max(MODEL.means(MODEL.queried)))
    points = U[np.argsort(-MODEL.means(U))][:1]
    (got,) = gains(points, [0], [4], [NEW], [best])
    at = MODEL.encoding.features(points, PROBLEM.fidelity.to_unit([{"epochs": 4}]), np.array([NEW]))
    star = np.concatenate([MODEL.encoding.x_features(points)[0], MODEL.encoding.target])
    tau2, covariance, _ = MODEL.gp.covariance_with(at, star)
    move = covariance[0] / math.sqrt(tau2[0] + MODEL.noise(at)[0])
    mu = MODEL.means(points)[0]
    drawn = mu + move * np.random.default_rng(0).standard_normal(400_000)
    assert math.exp(got) == pytest.approx(np.mean(np.maximum(drawn, best)) - max(mu, best), rel=0.05)


def test_a_later_step_tells_more():
    got = gains(U, [0, 0, 0, 0], [1, 4, 8, 16], [NEW] * 4, [0.0] * 5)
    assert (np.diff(got) > 0.0).all()


def test_the_best_of_the_others_leaves_a_point_itself_out():
    mu, known = np.array([0.1, 0.9, 0.5]), np.array([[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]])
    np.testing.assert_array_equal(best_of_others(mu, known, known), [0.9, 0.5, 0.9])
    np.testing.assert_array_equal(best_of_others(mu[:1], known[:1], known[:1]), [0.1])


def test_improvement_below_the_target_has_the_derivatives_of_finite_differences():
    formula = ImprovementBelow(0.4, 0.6)
    mu, sigma, step = np.array([-1.0, 0.3, 0.9]), np.array([0.2, 0.5, 1.0]), 1e-6
    _, by_mu, by_sigma = formula(mu, sigma)
    np.testing.assert_allclose(
        by_mu, (formula(mu + step, sigma)[0] - formula(mu - step, sigma)[0]) / (2 * step), rtol=1e-5
    )
    np.testing.assert_allclose(
        by_sigma, (formula(mu, sigma + step)[0] - formula(mu, sigma - step)[0]) / (2 * step), rtol=1e-5
    )
