"""The joint model of MF-SKO against dense algebra: likelihood, gradient and posterior."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from boca.gp import fit as gp_fit
from boca.gp.fit import JITTER
from boca.gp.kernels import BLOCK_ROWS
from boca.gp.model import GP
from boca.strategies.mf_sko_model import autoregressive, unpack
from support.levels import (
    EVERY_M,
    EVERY_SPACE,
    NUMBERS,
    by_hand,
    data_of,
    dense_of,
    encoding_of,
    likelihood,
    posterior_of,
    setting,
    somewhere,
)


def test_theta_holds_logarithms_and_a_constant_jitter_joins_the_noise():
    kappa, h, eta2 = unpack(np.log([2.0, 0.5, 0.1, 0.2, 0.3, 0.4, 0.01]), 2)
    np.testing.assert_allclose(kappa, [2.0, 0.5])
    np.testing.assert_allclose(h, [[0.1, 0.2], [0.3, 0.4]])
    assert eta2 == pytest.approx(0.01 + 2.5 * JITTER, rel=1e-14)


@EVERY_M
def test_levels_share_the_terms_that_both_reach(M):
    kappa = np.array([1.7, 0.4, 0.15])[:M]
    np.testing.assert_array_equal(autoregressive(kappa), by_hand(kappa))


@EVERY_SPACE
@EVERY_M
@pytest.mark.parametrize("noisy", [False, True], ids=["plain", "noisy"])
def test_the_likelihood_is_the_normal_density_of_the_results(space, M, noisy):
    s = setting(space, M, noisy=noisy)
    n = len(s.y)
    expected = multivariate_normal(np.zeros(n), dense_of(s).K[:n, :n]).logpdf(s.y)
    assert likelihood(s, s.theta)[0] == pytest.approx(expected, rel=1e-10)


@EVERY_SPACE
@EVERY_M
@pytest.mark.parametrize("noisy", [False, True], ids=["plain", "noisy"])
def test_the_gradient_is_the_finite_difference_of_the_likelihood(space, M, noisy):
    s = setting(space, M, noisy=noisy)
    _, gradient = likelihood(s, s.theta)
    step = 1e-5
    moves = step * np.eye(len(s.theta))
    slope = [(likelihood(s, s.theta + e)[0] - likelihood(s, s.theta - e)[0]) / (2.0 * step) for e in moves]
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-7)
    assert np.all(np.abs(gradient) > 1e-4)  # no entry is forgotten


@EVERY_SPACE
def test_the_likelihood_of_one_level_is_that_of_an_ordinary_process(space):
    s = setting(space, 1)
    encoding, data = encoding_of(space), data_of(s)
    value, gradient = gp_fit.log_likelihood(s.theta, encoding.kernel, data.X, s.y, s.noise, mean=0.0)
    ours = likelihood(s, s.theta)
    assert ours[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(ours[1], gradient, rtol=1e-9, atol=1e-11)


@EVERY_SPACE
def test_without_results_at_it_a_level_leaves_the_likelihood_alone(space):
    """The terms that nothing reaches have no gradient but that of the jitter."""
    s = setting(space, 3)
    s = s._replace(level=np.zeros_like(s.level))
    d = len(space)
    _, gradient = likelihood(s, s.theta)
    np.testing.assert_allclose(gradient[1:3], 0.0, atol=1e-6)
    np.testing.assert_array_equal(gradient[3 + d : 3 + 3 * d], 0.0)


@EVERY_SPACE
@EVERY_M
@pytest.mark.parametrize("noisy", [False, True], ids=["plain", "noisy"])
def test_the_joint_posterior_is_that_of_dense_algebra_with_points_out(space, M, noisy):
    s = setting(space, M, noisy=noisy)
    posterior, dense = posterior_of(s, m=0.3), dense_of(s, m=0.3)
    U = np.vstack([somewhere(space, 6), space.to_unit([s.xs[0], s.pending[0]])])
    mu, variance, covariance = posterior.joint(U)
    assert variance.shape == covariance.shape == (M, len(U))
    for i, u in enumerate(U):
        expected_mu, C = dense.of_levels(space.from_unit(u))
        assert mu[i] == pytest.approx(expected_mu, rel=1e-9, abs=1e-10)
        np.testing.assert_allclose(variance[:, i], np.diagonal(C), rtol=1e-8)
        np.testing.assert_allclose(covariance[:, i], C[:, -1], rtol=1e-8, atol=1e-11)


@EVERY_SPACE
@EVERY_M
def test_more_points_than_a_block_have_the_posterior_of_each_alone(space, M):
    posterior = posterior_of(setting(space, M), m=-0.2)
    U = somewhere(space, BLOCK_ROWS + 3)
    mu, variance, covariance = posterior.joint(U)
    for i in (0, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 2):
        alone = posterior.joint(U[i : i + 1])
        assert mu[i] == pytest.approx(alone[0][0], rel=1e-10, abs=1e-12)
        np.testing.assert_allclose(variance[:, i], alone[1][:, 0], rtol=1e-10)
        np.testing.assert_allclose(covariance[:, i], alone[2][:, 0], rtol=1e-10, atol=1e-13)


@EVERY_SPACE
@EVERY_M
def test_what_is_out_takes_variance_away_and_leaves_every_mean(space, M):
    s = setting(space, M)
    U = np.vstack([somewhere(space, 6), space.to_unit(s.pending)])
    (before, wide, _), (after, narrow, _) = (posterior_of(s, pending=pending).joint(U) for pending in (False, True))
    np.testing.assert_allclose(after, before, rtol=1e-12, atol=1e-14)
    assert np.all(narrow < wide + 1e-12)
    for i, m in enumerate(s.pending_level):  # at the point and the level that are out
        assert narrow[m, 6 + i] <= 1.0 / (1.0 / s.eta2 + 1.0 / wide[m, 6 + i]) * (1.0 + 1e-9)


@EVERY_SPACE
def test_with_one_level_the_model_is_an_ordinary_process(space):
    s = setting(space, 1)
    encoding, data = encoding_of(space), data_of(s)
    gp = GP.build(
        encoding.kernel, data.X, s.y, kappa0=s.kappa[0], h=s.h[0], eta2=s.eta2, m=0.3, noise=s.noise
    ).fantasize(data.pending)
    U = somewhere(space, 8)
    mean, variance = gp.posterior(encoding.x_features(U))
    mu, own, shared = posterior_of(s, m=0.3).joint(U)
    np.testing.assert_allclose(mu, mean, rtol=1e-10)
    np.testing.assert_allclose(own[0], variance, rtol=1e-9)
    np.testing.assert_array_equal(own, shared)
    mu, sigma = posterior_of(s, m=0.3).moments(U)
    np.testing.assert_allclose(sigma, np.sqrt(variance), rtol=1e-9)


def test_with_tiny_differences_all_levels_are_one_function():
    """A result at any level is then as good as one at the target."""
    s = setting(NUMBERS, 3)
    kappa = np.array([1.7, 1e-12, 1e-12])
    U = somewhere(NUMBERS, 5)
    apart = posterior_of(s._replace(kappa=kappa)).joint(U)
    pooled = posterior_of(s._replace(kappa=kappa, level=np.full_like(s.level, 2))).joint(U)
    np.testing.assert_allclose(apart[0], pooled[0], rtol=1e-6)
    np.testing.assert_allclose(apart[1], np.tile(pooled[1][2], (3, 1)), rtol=1e-6)


def test_a_result_with_endless_noise_leaves_the_others_what_they_say_also_where_they_need_a_jitter():
    s = setting(NUMBERS, 2, n=12, noisy=False, out=0)._replace(eta2=0.0)
    noise = np.zeros(12)
    noise[11] = 1e12
    s = s._replace(xs=[*s.xs[:4], *s.xs[:4], *s.xs[:4]], y=np.tile(s.y[:4], 3), noise=noise)
    posterior = posterior_of(s)
    assert 0.0 < posterior.eta2 <= 1e-6 * float(s.kappa.sum())
