"""The posterior against explicit inverses, against scikit-learn, and its gradients against finite differences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from boca.gp.kernels import BLOCK_ROWS, Custom, Kernel, Radial
from boca.gp.model import GP, PosteriorSlice, gls_mean

KERNELS = {
    "se": Kernel((Radial("se", (0, 1, 2), (0, 1, 2)),)),
    "matern52": Kernel((Radial("matern52", (0, 1, 2), (0, 1, 2)),)),
    "product": Kernel((Radial("matern52", (0, 1), (0, 1)), Radial("se", (2,), (2,)))),
    "custom": Kernel(
        (Radial("matern52", (0, 1), (0, 1)),),
        (Custom(lambda P, Q: 0.5 + np.minimum(P, Q.T), lambda P: 0.5 + P[:, 0], (2,)),),
    ),
}
H = {name: np.array([0.3, 0.6, 1.1])[: kernel.size] for name, kernel in KERNELS.items()}
KAPPA0, ETA2, M = 2.3, 0.04, -0.7


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(n)


def queries(m, seed=1):
    return np.random.default_rng(seed).random((m, 3))


def build(name, X, y, *, m=M, eta2=ETA2, noise=None):
    return GP.build(KERNELS[name], X, y, kappa0=KAPPA0, h=H[name], eta2=eta2, m=m, noise=noise)


class ByInverse:
    """The textbook formulas with an explicit inverse."""

    def __init__(self, name, X, *, diagonal=ETA2):
        self.kernel, self.h, self.X = KERNELS[name], H[name], X
        self.K = self.k(X, X) + np.diag(np.broadcast_to(diagonal, len(X)))
        self.K_inv = np.linalg.inv(self.K)

    def k(self, A, B):
        return KAPPA0 * self.kernel.value(self.h, A, B)

    def mean(self, A, y, m):
        return m + self.k(A, self.X) @ self.K_inv @ (y - m)

    def covariance(self, A, B):
        return self.k(A, B) - self.k(A, self.X) @ self.K_inv @ self.k(self.X, B)


# The posterior ------------------------------------------------------------------------------------------------------


def test_one_observation_by_hand():
    """kappa0 = 2, eta2 = 0.5, m = 1, y = 3 at 0, asked one bandwidth away, where the kernel is e^-1/2."""
    kernel = Kernel((Radial("se", (0,), (0,)),))
    gp = GP.build(kernel, np.zeros((1, 1)), np.array([3.0]), kappa0=2.0, h=np.array([0.2]), eta2=0.5, m=1.0)
    mean, variance = gp.posterior(np.array([[0.2]]))
    k = 2.0 * math.exp(-0.5)
    assert mean[0] == pytest.approx(1.0 + k * 2.0 / 2.5, rel=1e-14)
    assert variance[0] == pytest.approx(2.0 - k * k / 2.5, rel=1e-14)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [1, 10, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 1])
def test_the_posterior_is_that_of_the_explicit_inverse(name, n):
    X, y = data(n)
    A = queries(20)
    gp, reference = build(name, X, y), ByInverse(name, X)
    mean, variance = gp.posterior(A)
    np.testing.assert_allclose(mean, reference.mean(A, y, M), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(variance, np.diagonal(reference.covariance(A, A)), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_covariances_with_a_point_are_those_of_the_explicit_inverse(name):
    X, y = data(40)
    A, b = queries(15), queries(1, seed=2)[0]
    variance, covariance, own = build(name, X, y).covariance_with(A, b)
    reference = ByInverse(name, X)
    assert own == pytest.approx(reference.covariance(b[None, :], b[None, :])[0, 0], rel=1e-8)
    np.testing.assert_allclose(covariance, reference.covariance(A, b[None, :])[:, 0], rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(variance, np.diagonal(reference.covariance(A, A)), rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("name", KERNELS)
def test_the_covariance_of_a_point_with_itself_is_its_variance(name):
    X, y = data(30)
    b = queries(1, seed=3)[0]
    variance, covariance, own = build(name, X, y).covariance_with(b[None, :], b)
    assert covariance[0] == pytest.approx(variance[0], rel=1e-9)
    assert own == pytest.approx(variance[0], rel=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_values_are_drawn_from_the_joint_posterior(name):
    """Unit vectors as normal draws show the factor: its square is the covariance."""
    X, y = data(30)
    A = queries(5, seed=5)
    gp, reference = build(name, X, y), ByInverse(name, X)
    _, values = gp.given_draws(A, np.hstack([np.eye(5), np.zeros((5, 1))]))
    np.testing.assert_allclose(values[:, 5], reference.mean(A, y, M), rtol=1e-9, atol=1e-10)
    root = values[:, :5] - values[:, 5:]
    np.testing.assert_allclose(root @ root.T, reference.covariance(A, A), rtol=1e-3, atol=2e-4 * ETA2)


@pytest.mark.parametrize("name", KERNELS)
def test_given_its_draws_a_process_is_one_that_has_observed_them(name):
    X, y = data(30)
    A, B = queries(5, seed=5), queries(12, seed=6)
    gp, values = build(name, X, y).given_draws(A, np.random.default_rng(7).standard_normal((5, 4)))
    section = PosteriorSlice(gp, 3, np.empty(0)) if name in ("se", "matern52") else None
    for k in range(4):
        told = ByInverse(name, np.vstack([X, A]), diagonal=np.repeat([ETA2, 1e-4 * ETA2], [30, 5]))
        mean = told.mean(B, np.concatenate([y, values[:, k]]), M)
        np.testing.assert_allclose(gp.m + gp.alpha[:, k] @ told.k(gp.X, B), mean, rtol=1e-6, atol=1e-7)
        if section is not None:
            np.testing.assert_allclose(section.moments(B)[0][:, k], mean, rtol=1e-6, atol=1e-7)
            variance = np.diagonal(told.covariance(B, B))
            np.testing.assert_allclose(section.moments(B)[1], variance, rtol=1e-6, atol=1e-9)


def test_draws_at_points_that_are_known_or_nearly_the_same_are_numbers():
    X, y = data(20)
    gp = build("matern52", X, y, eta2=0.0)
    drawn, values = gp.given_draws(np.vstack([X[:3], X[:1] + 1e-9]), np.random.default_rng(0).standard_normal((4, 6)))
    np.testing.assert_allclose(values, np.tile(y[[0, 1, 2, 0]], (6, 1)).T, atol=1e-2)
    assert np.all(np.isfinite(drawn.alpha))


@pytest.mark.parametrize("name", KERNELS)
def test_known_noise_of_single_observations_joins_the_diagonal(name):
    X, y = data(25)
    noise = np.random.default_rng(4).random(25)
    A = queries(10)
    mean, variance = build(name, X, y, noise=noise).posterior(A)
    reference = ByInverse(name, X, diagonal=ETA2 + noise)
    np.testing.assert_allclose(mean, reference.mean(A, y, M), rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(variance, np.diagonal(reference.covariance(A, A)), rtol=1e-8, atol=1e-11)


def test_an_observation_with_endless_noise_counts_for_nothing():
    X, y = data(12)
    noise = np.zeros(12)
    noise[5] = 1e12
    A = queries(10)
    with_it = build("product", X, y, noise=noise).posterior(A)
    without = build("product", np.delete(X, 5, axis=0), np.delete(y, 5)).posterior(A)
    np.testing.assert_allclose(with_it, without, rtol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_an_observation_with_endless_noise_leaves_the_others_what_they_say_also_where_they_need_a_jitter(name):
    X, y = data(6)
    X, y = np.vstack([X, X, X]), np.tile(y, 3)
    noise = np.zeros(18)
    noise[5] = 1e12
    gp = build(name, X, y, eta2=0.0, noise=noise)
    assert 0.0 < gp.eta2 <= 1e-6 * 2.0 * KAPPA0
    np.testing.assert_allclose(gp.posterior(X)[0], y, atol=1e-3)


def test_the_jitter_is_in_the_unit_of_a_kernel_that_is_far_from_one():
    kernel = Kernel(
        (Radial("se", (0,), (0,)),), (Custom(lambda P, Q: 1e16 * P @ Q.T, lambda P: 1e16 * P[:, 0] ** 2, (2,)),)
    )
    gp = GP.build(kernel, np.ones((4, 3)), np.ones(4), kappa0=KAPPA0, h=np.array([0.3]), eta2=0.0, m=0.0)
    assert gp.eta2 == pytest.approx(1e-10 * 1e16 * KAPPA0)


@pytest.mark.parametrize("name", KERNELS)
def test_without_noise_the_posterior_goes_through_the_data(name):
    X, y = data(8)
    mean, variance = build(name, X, y, eta2=0.0).posterior(X)
    np.testing.assert_allclose(mean, y, atol=1e-7)
    assert np.all(variance > 0.0)
    assert np.all(variance < 1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_repeated_points_without_noise_raise_the_diagonal_and_say_so(name):
    X, y = data(6)
    gp = build(name, np.vstack([X, X, X]), np.tile(y, 3), eta2=0.0)
    assert 0.0 < gp.eta2 <= 1e-6 * 2.0 * KAPPA0
    mean, variance = gp.posterior(X)
    np.testing.assert_allclose(mean, y, atol=1e-3)
    assert np.all(variance > 0.0)


def test_far_from_the_data_the_posterior_is_the_prior():
    X, y = data(10)
    for name in ("se", "matern52", "product"):
        mean, variance = build(name, X, y).posterior(np.array([[60.0, 60.0, 60.0]]))
        assert mean[0] == pytest.approx(M, abs=1e-12)
        assert variance[0] == pytest.approx(KAPPA0, rel=1e-12)


# Against scikit-learn -----------------------------------------------------------------------------------------------


def sklearn_gp(name, X, y):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

    shape = RBF(H[name]) if name == "se" else Matern(H[name], nu=2.5)
    kernel = ConstantKernel(KAPPA0) * shape + WhiteKernel(ETA2)
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(X, y)


@pytest.mark.parametrize("name", ["se", "matern52"])
@pytest.mark.parametrize("n", [3, 60, BLOCK_ROWS + 40])
def test_the_posterior_is_that_of_scikit_learn(name, n):
    X, y = data(n)
    A = queries(20)
    gp, other = build(name, X, y), sklearn_gp(name, X, y - M)
    mean, variance = gp.posterior(A)
    other_mean, other_covariance = other.predict(A, return_cov=True)  # its covariance includes the white noise
    np.testing.assert_allclose(mean, M + other_mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(variance, np.diagonal(other_covariance) - ETA2, rtol=1e-8, atol=1e-10)
    _, covariance, _ = gp.covariance_with(A[1:], A[0])
    np.testing.assert_allclose(covariance, other_covariance[1:, 0], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", ["se", "matern52"])
def test_the_likelihood_is_that_of_scikit_learn(name):
    X, y = data(70)
    expected = sklearn_gp(name, X, y - M).log_marginal_likelihood_value_
    assert build(name, X, y).log_likelihood(y) == pytest.approx(expected, rel=1e-10)


# Likelihood and mean ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
def test_the_likelihood_is_the_normal_density_of_the_data(name):
    X, y = data(20)
    noise = np.random.default_rng(5).random(20)
    reference = ByInverse(name, X, diagonal=ETA2 + noise)
    expected = multivariate_normal(np.full(20, M), reference.K).logpdf(y)
    assert build(name, X, y, noise=noise).log_likelihood(y) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_the_estimated_mean_is_that_of_generalized_least_squares(name):
    X, y = data(30)
    K_inv = ByInverse(name, X).K_inv
    one = np.ones(30)
    expected = (one @ K_inv @ y) / (one @ K_inv @ one)
    gp = build(name, X, y, m=None)
    assert gp.m == pytest.approx(expected, rel=1e-9)
    assert gls_mean(gp.factor, y) == gp.m
    others = [build(name, X, y, m=gp.m + shift).log_likelihood(y) for shift in (-0.1, -1e-3, 1e-3, 0.1)]
    assert gp.log_likelihood(y) > max(others)


def test_the_estimated_mean_of_independent_data_is_their_average_weighted_by_precision():
    X = np.array([[0.0], [100.0], [200.0]])
    y, noise = np.array([1.0, 2.0, 6.0]), np.array([0.0, 1.0, 3.0])
    gp = GP.build(
        Kernel((Radial("se", (0,), (0,)),)), X, y, kappa0=1.0, h=np.array([1.0]), eta2=0.0, m=None, noise=noise
    )
    weights = 1.0 / np.array([1.0, 2.0, 4.0])
    assert gp.m == pytest.approx(weights @ y / weights.sum(), rel=1e-13)


# Imagined observations ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("m", [1, 4])
def test_imagining_keeps_the_mean_and_gives_the_variance_of_having_observed(name, m):
    X, y = data(30)
    P, A = queries(m, seed=6), queries(25)
    gp = build(name, X, y)
    fantasized = gp.fantasize(P)
    np.testing.assert_array_equal(fantasized.posterior(A)[0], gp.posterior(A)[0])
    reference = ByInverse(name, np.vstack([X, P]))
    np.testing.assert_allclose(
        fantasized.posterior(A)[1], np.diagonal(reference.covariance(A, A)), rtol=1e-8, atol=1e-11
    )
    assert np.all(fantasized.posterior(A)[1] <= gp.posterior(A)[1] * (1.0 + 1e-12))


@pytest.mark.parametrize("name", KERNELS)
def test_what_is_imagined_has_the_noise_that_is_said(name):
    X, y = data(30)
    P, A = queries(4, seed=6), queries(25)
    noise = np.array([0.0, 0.3, 1.0, 20.0])
    fantasized = build(name, X, y).fantasize(P, noise)
    reference = ByInverse(name, np.vstack([X, P]), diagonal=ETA2 + np.concatenate([np.zeros(30), noise]))
    np.testing.assert_allclose(
        fantasized.posterior(A)[1], np.diagonal(reference.covariance(A, A)), rtol=1e-8, atol=1e-11
    )
    np.testing.assert_array_equal(fantasized.posterior(A)[0], build(name, X, y).posterior(A)[0])


@pytest.mark.parametrize("name", KERNELS)
def test_imagining_its_own_mean_is_what_it_does(name):
    X, y = data(30)
    P, A = queries(3, seed=6), queries(25)
    gp = build(name, X, y)
    observed = build(name, np.vstack([X, P]), np.concatenate([y, gp.posterior(P)[0]]))
    np.testing.assert_allclose(gp.fantasize(P).posterior(A), observed.posterior(A), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1])
def test_the_rows_imagined_extend_the_factor_as_a_new_one_would(name, n):
    X, y = data(n)
    P = queries(3, seed=7)
    reference = ByInverse(name, np.vstack([X, P]))
    fantasized = build(name, X, y).fantasize(P)
    np.testing.assert_allclose(np.tril(fantasized.factor.L), np.linalg.cholesky(reference.K), rtol=1e-7, atol=1e-10)


def test_the_variance_at_an_imagined_point_is_what_noise_alone_leaves():
    X, y = data(20)
    P = queries(1, seed=8)
    gp = build("product", X, y)
    before = gp.posterior(P)[1][0]
    assert gp.fantasize(P).posterior(P)[1][0] == pytest.approx(before * ETA2 / (before + ETA2), rel=1e-8)


def test_imagining_nothing_changes_nothing_and_imagining_twice_is_imagining_both():
    X, y = data(20)
    P, A = queries(4, seed=9), queries(10)
    gp = build("product", X, y)
    assert gp.fantasize(np.empty((0, 3))) is gp
    np.testing.assert_allclose(
        gp.fantasize(P[:1]).fantasize(P[1:]).posterior(A), gp.fantasize(P).posterior(A), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("name", KERNELS)
def test_imagining_what_was_observed_without_noise_teaches_nothing_and_does_not_fail(name):
    X, y = data(5)
    A = queries(10)
    gp = build(name, X, y, eta2=0.0)
    again = gp.fantasize(X[:2])
    np.testing.assert_allclose(again.posterior(A), gp.posterior(A), atol=1e-4)


def test_imagining_the_only_observation_of_a_noiseless_process_again_does_not_fail():
    gp = build("se", np.full((1, 3), 0.5), np.array([1.0]), eta2=0.0)
    mean, variance = gp.fantasize(np.full((2, 3), 0.5)).posterior(np.array([[0.5, 0.5, 0.8]]))
    expected = gp.posterior(np.array([[0.5, 0.5, 0.8]]))
    assert mean[0] == pytest.approx(expected[0][0], rel=1e-9)
    assert variance[0] == pytest.approx(expected[1][0], rel=1e-3)


# The posterior along some inputs --------------------------------------------------------------------------------------


SECTIONS = {"product": 2, "custom": 2, "se": 3, "matern52": 3}  # how many columns are free


def slice_of(name, gp, held=0.85):
    free = SECTIONS[name]
    return PosteriorSlice(gp, free, np.full(3 - free, held))


def whole(name, F, held=0.85):
    return np.hstack([F, np.full((len(F), 3 - SECTIONS[name]), held)])


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("m", [1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 3])
def test_a_section_is_the_posterior_with_the_rest_held(name, m):
    X, y = data(50)
    gp = build(name, X, y)
    F = np.random.default_rng(10).random((m, SECTIONS[name]))
    np.testing.assert_allclose(slice_of(name, gp).moments(F), gp.posterior(whole(name, F)), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", SECTIONS)
def test_the_mean_of_a_section_alone_is_the_one_that_comes_with_the_variance(name):
    X, y = data(50)
    piece = slice_of(name, build(name, X, y))
    F = np.vstack([np.random.default_rng(14).random((BLOCK_ROWS + 9, SECTIONS[name])), X[:3, : SECTIONS[name]]])
    np.testing.assert_allclose(piece.means(F), piece.moments(F)[0], rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", SECTIONS)
@pytest.mark.parametrize("leading", [1, 7, 30, 99])
def test_the_leading_observations_bound_a_variance_by_what_they_leave_unknown_themselves(name, leading):
    X, y = data(30)
    noise = np.random.default_rng(15).random(30)
    F = np.random.default_rng(16).random((BLOCK_ROWS + 5, SECTIONS[name]))
    piece = slice_of(name, build(name, X, y, noise=noise))
    mean, variance = piece.moments(F)
    highest, widest = piece.upper_bounds(F, leading)
    assert np.all(highest >= mean)
    assert np.all(widest >= variance)
    np.testing.assert_allclose(highest, mean, rtol=1e-4, atol=1e-4)  # the mean is that of all
    alone = slice_of(name, build(name, X[:leading], y[:leading], noise=noise[:leading]))
    np.testing.assert_allclose(widest, alone.moments(F)[1], rtol=1e-4, atol=1e-4)


def test_more_leading_observations_bound_better_and_all_of_them_but_for_rounding():
    X, y = data(40)
    piece = slice_of("product", build("product", X, y))
    F = np.random.default_rng(17).random((50, 2))
    bounds = [piece.upper_bounds(F, k)[1] for k in (5, 10, 20, 40)]
    for wide, narrow in itertools.pairwise(bounds):
        assert np.all(narrow <= wide * (1.0 + 1e-3))
        assert np.any(narrow < 0.9 * wide)
    np.testing.assert_allclose(bounds[-1], piece.moments(F)[1], atol=1e-4)


@pytest.mark.parametrize("profile", ["se", "matern52"])
@pytest.mark.parametrize("h", [0.02, 0.3, 3.0])
@pytest.mark.parametrize("eta2", [1e-5, 1e-3, 1e-1])
def test_what_single_precision_loses_is_added(profile, h, eta2):
    """Candidates in between, beside and on the observations, with all of them leading: rounding alone is left."""
    rng = np.random.default_rng(18)
    X = rng.random((200, 3))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] * X[:, 2] + np.sqrt(eta2) * rng.standard_normal(200)
    kernel = Kernel((Radial(profile, (0, 1, 2), (0, 1, 2)),))
    gp = GP.build(kernel, X, y, kappa0=2.0, h=np.full(3, h), eta2=eta2)
    F = np.vstack([rng.random((300, 3)), np.clip(X + 1e-3 * rng.standard_normal(X.shape), 0.0, 1.0), X])
    piece = PosteriorSlice(gp, 3, np.empty(0))
    assert gp.factor.W is not None
    (mean, variance), (highest, widest) = piece.moments(F), piece.upper_bounds(F, len(X))
    assert np.all(highest >= mean)
    assert np.all(widest >= variance)
    assert np.max(highest - mean) < 1e-6 * gp.kappa0 * np.sum(np.abs(gp.alpha))
    assert np.max(widest - variance) < 1e-6 * gp.kappa0 * gp.factor.spread


@pytest.mark.parametrize(("kappa0", "eta2", "y"), [(1.0, 1e-9, 1.0), (1e40, 1e38, 1e20), (1e-40, 1e-42, 1e-20)])
def test_bounds_are_in_double_precision_where_single_would_not_do(kappa0, eta2, y):
    """A covariance close to singular, and numbers whose squares single precision does not know."""
    rng = np.random.default_rng(19)
    X = rng.random((80, 2))
    kernel = Kernel((Radial("matern52", (0, 1), (0, 1)),))
    gp = GP.build(kernel, X, y * np.sin(5.0 * X[:, 0]), kappa0=kappa0, h=np.ones(2), eta2=eta2)
    F = rng.random((40, 2))
    np.testing.assert_array_equal(
        PosteriorSlice(gp, 2, np.empty(0)).upper_bounds(F, 80), PosteriorSlice(gp, 2, np.empty(0)).moments(F)
    )


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_of_a_process_with_imagined_rows_sees_them(name):
    X, y = data(20)
    gp = build(name, X, y).fantasize(queries(3, seed=11))
    F = np.random.default_rng(12).random((7, SECTIONS[name]))
    np.testing.assert_allclose(slice_of(name, gp).moments(F), gp.posterior(whole(name, F)), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", SECTIONS)
def test_gradients_of_a_section_are_its_finite_differences(name):
    X, y = data(40)
    piece = slice_of(name, build(name, X, y))
    F = np.random.default_rng(13).random((12, SECTIONS[name]))
    mean, variance, chain = piece.moments_and_chain(F)
    d_mean, d_variance = chain(1.0, np.zeros(12)), chain(0.0, np.ones(12))
    np.testing.assert_allclose(mean, piece.moments(F)[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(variance, piece.moments(F)[1], rtol=1e-7, atol=1e-10)
    step = 1e-5
    for j in range(SECTIONS[name]):
        move = step * np.eye(SECTIONS[name])[j]
        up, down = piece.moments(F + move), piece.moments(F - move)
        np.testing.assert_allclose(d_mean[:, j], (up[0] - down[0]) / (2 * step), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(d_variance[:, j], (up[1] - down[1]) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SECTIONS)
def test_gradients_are_right_on_the_data_themselves_and_on_data_met_twice(name):
    """A Matern kernel has a kink in its third derivative only; the distance itself has one in its first."""
    X, y = data(15)
    X[:, SECTIONS[name] :] = 0.85
    X, y = np.vstack([X, X[:5]]), np.concatenate([y, y[:5] + 0.3])
    piece = slice_of(name, build(name, X, y))
    F = X[:8, : SECTIONS[name]].copy()
    _, _, chain = piece.moments_and_chain(F)
    d_mean, d_variance = chain(1.0, np.zeros(8)), chain(0.0, np.ones(8))
    assert np.all(np.isfinite(d_mean))
    step = 1e-5
    for j in range(SECTIONS[name]):
        move = step * np.eye(SECTIONS[name])[j]
        up, down = piece.moments(F + move), piece.moments(F - move)
        np.testing.assert_allclose(d_mean[:, j], (up[0] - down[0]) / (2 * step), rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(d_variance[:, j], (up[1] - down[1]) / (2 * step), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", SECTIONS)
def test_gradients_given_draws_are_their_finite_differences(name):
    X, y = data(30)
    A = queries(4, seed=21)
    gp, _ = build(name, X, y).given_draws(A, np.random.default_rng(22).standard_normal((4, 3)))
    piece = slice_of(name, gp)
    F = np.random.default_rng(23).random((9, SECTIONS[name]))
    mean, _, chain = piece.moments_and_chain(F)
    assert mean.shape == (9, 3)
    np.testing.assert_allclose(mean, piece.moments(F)[0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(mean, piece.means(F), rtol=1e-9, atol=1e-11)
    by_mean, by_variance = np.random.default_rng(24).standard_normal((9, 3)), np.random.default_rng(25).random(9)
    gradient = chain(by_mean, by_variance)
    step = 1e-5
    for j in range(SECTIONS[name]):
        move = step * np.eye(SECTIONS[name])[j]
        up, down = piece.moments(F + move), piece.moments(F - move)
        slope = (by_mean * (up[0] - down[0])).sum(axis=1) + by_variance * (up[1] - down[1])
        np.testing.assert_allclose(gradient[:, j], slope / (2 * step), rtol=1e-4, atol=1e-5)


def test_the_variance_is_level_at_the_only_observation():
    piece = PosteriorSlice(build("matern52", np.full((1, 3), 0.5), np.array([1.0])), 3, np.empty(0))
    _, _, chain = piece.moments_and_chain(np.full((1, 3), 0.5))
    np.testing.assert_array_equal(chain(1.0, np.zeros(1)), np.zeros((1, 3)))
    np.testing.assert_array_equal(chain(0.0, np.ones(1)), np.zeros((1, 3)))


def test_the_prior_variance_of_a_section_is_that_of_its_kernel():
    X, y = data(5)
    assert slice_of("custom", build("custom", X, y), held=0.85).prior_variance == pytest.approx(KAPPA0 * 1.35)
    assert slice_of("product", build("product", X, y)).prior_variance == KAPPA0


def test_a_model_of_one_row_more_has_the_likelihood_that_its_prediction_gave_it():
    """p(y, y') = p(y) p(y' | y), which ties posterior, factor and likelihood together."""
    X, y = data(21)
    first, both = build("product", X[:-1], y[:-1]), build("product", X, y)
    mean, variance = first.posterior(X[-1:])
    total = variance[0] + ETA2
    density = -0.5 * ((y[-1] - mean[0]) ** 2 / total + math.log(2.0 * math.pi * total))
    assert both.log_likelihood(y) - first.log_likelihood(y[:-1]) == pytest.approx(density, rel=1e-8)
    assert both.factor.log_determinant() - first.factor.log_determinant() == pytest.approx(math.log(total))
