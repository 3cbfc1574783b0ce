"""Noise that the observations of one curve share: its formula, its gradient, its closed form, what it leaves out."""

from __future__ import annotations

import numpy as np
import pytest

from boca.gp import fit as gp_fit
from boca.gp.curve_noise import NO_CURVE, CurveNoise
from boca.gp.kernels import Kernel, Radial
from boca.gp.model import GP, PosteriorSlice

RNG = np.random.default_rng(0)
CURVES = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0, NO_CURVE], 5)
X = np.column_stack([np.repeat(RNG.random(6), 5), np.tile(np.linspace(0.0, 1.0, 5), 6), CURVES])
Y = RNG.standard_normal(len(X))
KERNEL = Kernel((Radial("matern52", (0,), (0,)), Radial("se", (1,), (1,))), terms=(CurveNoise(2, 2),))


def numbers(strength):
    return np.array([0.4, 0.7, strength])


def test_it_is_one_variance_within_a_curve_and_nothing_between():
    plain = KERNEL.value(numbers(0.0), X, X)
    added = KERNEL.value(numbers(0.3), X, X) - plain
    same = np.equal.outer(CURVES, CURVES) & (CURVES >= 0.0)[:, None]
    np.testing.assert_allclose(added, np.where(same, 0.3, 0.0), atol=1e-15)
    np.testing.assert_allclose(KERNEL.diagonal(numbers(0.3), X), 1.0 + 0.3 * (CURVES >= 0.0))


def test_its_gradient_is_that_of_finite_differences():
    theta = np.array([0.3, np.log(0.4), np.log(0.7), np.log(0.05), 0.4])
    noise = np.zeros(len(Y))

    def value(at):
        return gp_fit.log_likelihood(at, KERNEL, X, Y, noise, mean=None)[0]

    gradient = gp_fit.log_likelihood(theta, KERNEL, X, Y, noise, mean=None)[1]
    for j in range(len(theta)):
        step = np.zeros(len(theta))
        step[j] = 1e-6
        assert gradient[j] == pytest.approx((value(theta + step) - value(theta - step)) / 2e-6, rel=1e-4, abs=1e-6)


def test_its_likelihood_is_the_closed_form():
    theta = np.array([0.3, np.log(0.4), np.log(0.7), np.log(0.05), 0.4])
    kappa0, h, eta2 = gp_fit.unpack(theta, KERNEL)
    same = np.equal.outer(CURVES, CURVES) & (CURVES >= 0.0)[:, None]
    K = kappa0 * (Kernel(KERNEL.radial).value(h, X, X) + 0.4 * same) + eta2 * np.eye(len(X))
    by_hand = -0.5 * (Y @ np.linalg.solve(K, Y) + np.linalg.slogdet(2.0 * np.pi * K)[1])
    got = gp_fit.log_likelihood(theta, KERNEL, X, Y, np.zeros(len(Y)), mean=0.0)[0]
    assert got == pytest.approx(by_hand, rel=1e-10)


def test_a_flat_prior_on_one_curve_has_the_posterior_of_repeated_measurements():
    """Five reports of one curve, with a function that does not move: they tell no more than one does of its draw."""
    x = np.column_stack([np.full(5, 0.5), np.full(5, 0.5), np.zeros(5)])
    y = np.full(5, 2.0)
    gp = GP.build(KERNEL, x, y, kappa0=1.0, h=numbers(0.5), eta2=1e-10, m=0.0)
    latent = np.array([[0.5, 0.5, NO_CURVE]])
    mean, variance = gp.posterior(latent)
    assert mean[0] == pytest.approx(2.0 / 1.5, rel=1e-6)  # shrunk, however many reports there are
    assert variance[0] == pytest.approx(1.0 - 1.0 / 1.5, rel=1e-6)
    own, spread = gp.posterior(np.array([[0.5, 0.5, 0.0]]))
    assert own[0] == pytest.approx(2.0, rel=1e-6)  # the next report of that curve has the same draw
    assert spread[0] < 1e-6


def test_the_target_slice_leaves_the_draw_out():
    gp = GP.build(KERNEL, X, Y, kappa0=1.3, h=numbers(0.4), eta2=0.05)
    slice_ = PosteriorSlice(gp, 1, np.array([1.0, NO_CURVE]))
    at = RNG.random((7, 1))
    mean, variance = slice_.moments(at)
    expected = gp.posterior(np.hstack([at, np.tile([1.0, NO_CURVE], (7, 1))]))
    np.testing.assert_allclose(mean, expected[0], rtol=1e-10)
    np.testing.assert_allclose(variance, expected[1], rtol=1e-8)


def test_a_fit_finds_a_draw_per_curve_and_none_where_there_is_none():
    rng = np.random.default_rng(1)
    curves = np.repeat(np.arange(30.0), 4)
    inputs = np.column_stack([np.repeat(rng.random(30), 4), np.tile(np.linspace(0.0, 1.0, 4), 30), curves])
    smooth = np.sin(3.0 * inputs[:, 0]) + 0.5 * inputs[:, 1]
    blocks = gp_fit.theta_blocks(
        gp_fit.Block("kappa0", deviation=1.5, low=-5.0, high=7.0),
        [gp_fit.Block("h", 2, mean=-1.0, deviation=1.0, low=-4.0, high=2.3)],
        gp_fit.Block("eta2", mean=-4.6, deviation=2.0, low=-14.0, high=0.7),
        KERNEL,
    )
    prior = gp_fit.Prior.from_blocks(blocks)
    found = []
    for deviation in (0.0, 0.3):
        y = smooth + np.repeat(deviation * rng.standard_normal(30), 4) + 0.02 * rng.standard_normal(120)
        theta = gp_fit.fit(KERNEL, inputs, y, prior=prior, starts=[prior.mean])
        found.append(float(theta[-1] * np.exp(theta[0])))
    assert found[0] < 0.01
    assert 0.04 < found[1] < 0.2


def test_paired_covariances_are_those_of_the_whole_posterior():
    gp = GP.build(KERNEL, X, Y, kappa0=1.3, h=numbers(0.4), eta2=0.05)
    A, B = X[[0, 7, 12]] + np.array([0.01, 0.02, 0.0]), np.array([[0.2, 1.0, NO_CURVE], [0.7, 1.0, NO_CURVE]])
    of = np.array([1, 0, 1])
    prior = np.array([1.3 * KERNEL.value(gp.h, A[i : i + 1], B[k : k + 1])[0, 0] for i, k in enumerate(of)])
    variance, covariance = gp.paired(A, B, of, prior)
    for i, k in enumerate(of):
        tau2, expected, _ = gp.covariance_with(A[i : i + 1], B[k])
        assert variance[i] == pytest.approx(tau2[0], rel=1e-10)
        assert covariance[i] == pytest.approx(expected[0], rel=1e-8)
