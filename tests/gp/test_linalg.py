"""The factor against NumPy's general routines, and the ladder on matrices that have no factor of their own."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from boca.gp import linalg
from boca.gp.linalg import Factor

SIZES = (1, 2, 7, 40)
HALVED = (64, 65, 129, 300)  # a triangle that is inverted whole, and some that are not


def positive_definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n + 3))
    return A @ A.T / n + 0.1 * np.eye(n)


def factored(K, by="products"):
    """Return the factor of a matrix that needs no care, with and without what makes it fast."""
    factor, _ = linalg.factor(K)
    assert factor.W is not None
    return factor if by == "products" else solving(factor)


def solving(factor):
    """Return the factor as one whose matrix is too close to singular for products."""
    other = Factor(factor.L)
    vars(other)["W"] = None
    return other


@pytest.mark.parametrize("n", SIZES)
def test_factor_is_the_cholesky_factor_and_needs_no_jitter_where_there_is_one(n):
    K = positive_definite(n)
    factor, jitter = linalg.factor(K)
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(factor.L), np.linalg.cholesky(K), rtol=1e-12, atol=1e-14)


def test_factor_reads_the_lower_triangle_alone_and_leaves_its_argument_as_it_was():
    K = positive_definite(6)
    given = np.tril(K) + np.triu(np.full((6, 6), 1e6), 1)
    before = given.copy()
    factor, _ = linalg.factor(given)
    np.testing.assert_allclose(np.tril(factor.L), np.linalg.cholesky(K), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(given, before)


@pytest.mark.parametrize("n", [2, 5, 60])
@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 3.0, 2.0**40])
def test_a_singular_matrix_gets_the_smallest_rung_in_its_own_units(n, scale):
    K = scale * np.ones((n, n))  # one point, n times, without noise
    factor, jitter = linalg.factor(K)
    assert jitter == pytest.approx(1e-10 * scale, rel=1e-12)
    lower = np.tril(factor.L)
    np.testing.assert_allclose(lower @ lower.T, K + jitter * np.eye(n), rtol=1e-12, atol=1e-13 * scale)


def test_each_rung_is_climbed_only_when_the_one_below_fails():
    """Eigenvalues just below zero, by an amount that only one rung lifts."""
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))
    for lower_rung, rung in zip(linalg.JITTER_STEPS[1:-1], linalg.JITTER_STEPS[2:], strict=True):
        eigenvalues = np.ones(8)
        eigenvalues[0] = -3.0 * lower_rung
        K = (Q * eigenvalues) @ Q.T
        _, jitter = linalg.factor(K)
        assert jitter == pytest.approx(rung * np.trace(K) / 8, rel=1e-9)


def test_what_no_jitter_can_mend_is_an_error():
    with pytest.raises(np.linalg.LinAlgError):
        linalg.factor(np.array([[1.0, 2.0], [2.0, 1.0]]))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("by", ["solves", "products"])
def test_extending_a_factor_equals_factoring_the_larger_matrix(n, m, by):
    K = positive_definite(n + m, seed=3)
    longer = factored(K[:n, :n], by=by).extended(K[:n, n:], K[n:, n:])
    np.testing.assert_allclose(np.tril(longer.L), np.linalg.cholesky(K), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(np.tril(longer.W), np.linalg.inv(np.linalg.cholesky(K)), rtol=1e-9, atol=1e-11)


def test_extending_row_by_row_equals_extending_at_once():
    K = positive_definite(9, seed=4)
    factor = factored(K[:4, :4])
    at_once = factor.extended(K[:4, 4:], K[4:, 4:])
    for n in range(4, 9):
        factor = factor.extended(K[:n, n : n + 1], K[n : n + 1, n : n + 1])
    np.testing.assert_allclose(np.tril(factor.L), np.tril(at_once.L), rtol=1e-10, atol=1e-12)


def test_extending_by_a_copy_of_a_row_without_noise_still_gives_a_factor():
    """What is left of the new corner is zero, or below zero by rounding: it must be augmented, not refused."""
    K = np.array([[1.0, 0.5, 1.0], [0.5, 1.0, 0.5], [1.0, 0.5, 1.0]])
    longer = factored(K[:2, :2]).extended(K[:2, 2:], K[2:, 2:])
    lower = np.tril(longer.L)
    assert longer.W is None
    assert np.all(np.diagonal(lower) > 0.0)
    np.testing.assert_allclose(lower @ lower.T, K, atol=1e-2)


@pytest.mark.parametrize("n", SIZES + HALVED)
@pytest.mark.parametrize("by", ["solves", "products"])
def test_whiten_solve_invert_and_log_determinant_agree_with_numpy(n, by):
    K = positive_definite(n, seed=5)
    factor = factored(K, by=by)
    rng = np.random.default_rng(6)
    b, B = rng.standard_normal(n), rng.standard_normal((n, 3))
    L = np.linalg.cholesky(K)
    for given in (B, B[:, :1]):
        np.testing.assert_allclose(factor.whiten(given), np.linalg.solve(L, given), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(factor.solve_transposed(given), np.linalg.solve(L.T, given), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(K, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(factor.solve(B), np.linalg.solve(K, B), rtol=1e-8, atol=1e-10)
    assert factor.solve(b).shape == (n,)
    assert factor.solve(B).shape == (n, 3)
    np.testing.assert_allclose(np.tril(factor.inverse()), np.tril(np.linalg.inv(K)), rtol=1e-8, atol=1e-10)
    sign, log_det = np.linalg.slogdet(K)
    assert sign == 1.0
    assert factor.log_determinant() == pytest.approx(log_det, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("noise", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_variances_keep_their_digits_however_small_the_noise(noise):
    """What a smooth kernel leaves unknown beside 200 points is as small as the noise, and the rest must not drown it.

    With little noise a product with the inverse would: it is wrong by 1 % at 1e-8, and by a factor of 1e6 at 1e-10.
    """
    t, new = np.linspace(0.0, 1.0, 200), np.linspace(0.0, 1.1, 57)
    K, k = (np.exp(-0.5 * np.subtract.outer(a, b) ** 2 / 0.1**2) for a, b in ((t, t), (t, new)))
    factor, jitter = linalg.factor(K + noise * np.eye(200))
    assert jitter == 0.0
    assert (factor.W is None) == (noise < 1e-6)
    V = factor.whiten(k)
    expected = variances_in_long_floats(K + noise * np.eye(200), k)
    np.testing.assert_allclose(1.0 - (V * V).sum(axis=0), expected, rtol=1e-4)


def variances_in_long_floats(K, k):
    K, V = K.astype(np.longdouble), k.astype(np.longdouble)
    L = np.zeros_like(K)
    for j in range(len(K)):
        L[j, j] = np.sqrt(K[j, j] - (L[j, :j] ** 2).sum())
        L[j + 1 :, j] = (K[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
        V[j] = (V[j] - L[j, :j] @ V[:j]) / L[j, j]
    return (1.0 - (V * V).sum(axis=0)).astype(float)


@pytest.mark.parametrize("by", ["solves", "products"])
def test_solving_does_not_change_its_arguments(by):
    factor = factored(positive_definite(5, seed=7), by=by)
    B = np.asfortranarray(np.random.default_rng(8).standard_normal((5, 3)))
    kept_L, kept_B = factor.L.copy(), B.copy()
    kept_W = None if factor.W is None else factor.W.copy()
    factor.whiten(B)
    factor.solve_transposed(B)
    factor.solve(B)
    factor.multiply_transposed(B[:, 0])
    factor.inverse()
    factor.extended(B, 50.0 * np.eye(3))
    np.testing.assert_array_equal(factor.L, kept_L)
    np.testing.assert_array_equal(B, kept_B)
    if kept_W is not None:
        np.testing.assert_array_equal(factor.W, kept_W)


@pytest.mark.parametrize("by", ["solves", "products"])
def test_what_lies_above_the_diagonal_of_a_factor_is_never_read(by):
    factor = factored(positive_definite(6, seed=9), by=by)
    other = Factor(spoilt(factor.L))
    vars(other)["W"] = None if factor.W is None else spoilt(factor.W)
    B = np.random.default_rng(10).standard_normal((6, 3))
    C = 50.0 * np.eye(3)
    for verb in (
        lambda f: f.whiten(B),
        lambda f: f.solve_transposed(B),
        lambda f: f.solve(B),
        lambda f: f.multiply_transposed(B[:, 0]),
        lambda f: np.tril(f.inverse()),
        lambda f: np.tril(f.extended(B, C).L),
        lambda f: f.extended(B, C).whiten(np.eye(9)),
        lambda f: f.block(1, 4).whiten(B[1:4]),
        lambda f: f.log_determinant(),
        lambda f: np.tril(Factor(f.L).W),
    ):
        np.testing.assert_array_equal(verb(other), verb(factor))


@pytest.mark.parametrize("n", [5, 161])
def test_numbers_above_the_diagonal_that_single_precision_lacks_do_no_harm(n):
    L = np.tril(np.random.default_rng(0).random((n, n)) * 0.1) + np.eye(n)
    odd = np.asfortranarray(L + np.triu(np.full((n, n), 1e200), 1))
    b = np.ones((n, 2), dtype=np.float32, order="F")
    np.testing.assert_array_equal(Factor(odd).whiten(b), Factor(np.asfortranarray(L)).whiten(b))


def test_only_many_columns_are_worth_an_inverse():
    factor, _ = linalg.factor(positive_definite(40, seed=9))
    factor.whiten(np.ones((40, 9)))
    factor.solve(np.ones((40, 40)))
    factor.block(0, 8).whiten(np.ones((8, 8)))
    factor.extended(np.zeros((40, 1)), np.ones((1, 1))).whiten(np.ones((41, 41)))
    assert "W" not in vars(factor)
    factor.whiten(np.ones((40, 10)))
    assert vars(factor)["W"] is not None


@pytest.mark.parametrize("columns", [1, 9])
def test_an_inverse_that_is_there_serves_few_columns_too(columns):
    K, B = positive_definite(40, seed=9), np.random.default_rng(10).standard_normal((40, columns))
    factor = factored(K)
    vars(factor)["W"] *= 2.0  # to tell products from solves
    np.testing.assert_allclose(factor.whiten(B), 2.0 * solving(factor).whiten(B), rtol=1e-9)


def test_a_factor_that_nobody_needs_is_gone_at_once():
    """Matrices of megabytes must not wait for the collector of cycles."""
    gc.collect()
    gc.disable()
    try:
        factor, _ = linalg.factor(positive_definite(200, seed=9))
        held = weakref.ref(factor.L), weakref.ref(factor.W)
        del factor
        assert [ref() for ref in held] == [None, None]
    finally:
        gc.enable()


def spoilt(triangle):
    n = len(triangle)
    return np.asfortranarray(np.tril(triangle) + np.triu(np.full((n, n), np.nan), 1))


@pytest.mark.parametrize("n", SIZES)
def test_rewhiten_undoes_unwhiten(n):
    K = positive_definite(n, seed=11)
    factor = factored(K)
    b = np.random.default_rng(12).standard_normal(n)
    np.testing.assert_allclose(factor.multiply_transposed(b), np.linalg.cholesky(K).T @ b, rtol=1e-12)
    np.testing.assert_allclose(factor.multiply_transposed(factor.solve_transposed(b[:, None])[:, 0]), b, rtol=1e-9)


@pytest.mark.parametrize("by", ["solves", "products"])
def test_a_leading_block_is_the_factor_of_the_leading_block(by):
    K = positive_definite(9, seed=11)
    block = factored(K, by=by).block(0, 4)
    np.testing.assert_allclose(np.tril(block.L), np.linalg.cholesky(K[:4, :4]), rtol=1e-12, atol=1e-14)
    b = np.random.default_rng(12).standard_normal((4, 3))
    np.testing.assert_allclose(block.whiten(b), np.linalg.solve(np.linalg.cholesky(K[:4, :4]), b), rtol=1e-9)


@pytest.mark.parametrize("by", ["solves", "products"])
def test_a_last_block_whitens_what_is_zero_before_it(by):
    K = positive_definite(9, seed=11)
    factor = factored(K, by=by)
    b = np.random.default_rng(12).standard_normal((5, 3))
    whole = factor.whiten(np.vstack([np.zeros((4, 3)), b]))
    np.testing.assert_allclose(np.vstack([np.zeros((4, 3)), factor.block(4, 9).whiten(b)]), whole, rtol=1e-9)


def test_the_ladder_has_the_unit_that_it_is_given():
    """Two rows that are one, and noise of 1e-4 elsewhere: the jitter is a share of that, not of the kernel."""
    _, jitter = linalg.factor(np.ones((3, 3)), level=1e-4)
    assert jitter == pytest.approx(1e-10 * 1e-4, rel=1e-12) or jitter == pytest.approx(1e-8 * 1e-4, rel=1e-12)
