"""The verbs against NumPy's general routines, and the ladder on matrices that have no factor of their own."""

from __future__ import annotations

import numpy as np
import pytest

from boca.gp import linalg

SIZES = (1, 2, 7, 40)


def positive_definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n + 3))
    return A @ A.T / n + 0.1 * np.eye(n)


@pytest.mark.parametrize("n", SIZES)
def test_factor_is_the_cholesky_factor_and_needs_no_jitter_where_there_is_one(n):
    K = positive_definite(n)
    L, jitter = linalg.factor(K)
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(K), rtol=1e-12, atol=1e-14)


def test_factor_reads_the_lower_triangle_alone_and_leaves_its_argument_as_it_was():
    K = positive_definite(6)
    spoilt = np.tril(K) + np.triu(np.full((6, 6), 1e6), 1)
    before = spoilt.copy()
    L, _ = linalg.factor(spoilt)
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(K), rtol=1e-12, atol=1e-14)
    np.testing.assert_array_equal(spoilt, before)


@pytest.mark.parametrize("n", [2, 5, 60])
@pytest.mark.parametrize("scale", [2.0**-40, 1.0, 3.0, 2.0**40])
def test_a_singular_matrix_gets_the_smallest_rung_in_its_own_units(n, scale):
    K = scale * np.ones((n, n))  # one point, n times, without noise
    L, jitter = linalg.factor(K)
    assert jitter == pytest.approx(1e-10 * scale, rel=1e-12)
    lower = np.tril(L)
    np.testing.assert_allclose(lower @ lower.T, K + jitter * np.eye(n), rtol=1e-12, atol=1e-13 * scale)


def test_each_rung_is_climbed_only_when_the_one_below_fails():
    """Eigenvalues just below zero, by an amount that only one rung lifts."""
    Q, _ = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 8)))
    for lower_rung, rung in zip(linalg.LADDER[1:-1], linalg.LADDER[2:], strict=True):
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
def test_extending_a_factor_equals_factoring_the_larger_matrix(n, m):
    K = positive_definite(n + m, seed=3)
    L, _ = linalg.factor(K[:n, :n])
    longer = linalg.extend(L, K[:n, n:], K[n:, n:])
    np.testing.assert_allclose(np.tril(longer), np.linalg.cholesky(K), rtol=1e-10, atol=1e-12)


def test_extending_row_by_row_equals_extending_at_once():
    K = positive_definite(9, seed=4)
    L, _ = linalg.factor(K[:4, :4])
    at_once = linalg.extend(L, K[:4, 4:], K[4:, 4:])
    for n in range(4, 9):
        L = linalg.extend(L, K[:n, n : n + 1], K[n : n + 1, n : n + 1])
    np.testing.assert_allclose(np.tril(L), np.tril(at_once), rtol=1e-10, atol=1e-12)


def test_extending_by_a_copy_of_a_row_without_noise_still_gives_a_factor():
    """What is left of the new corner is zero, or below zero by rounding: it must be lifted, not refused."""
    K = np.array([[1.0, 0.5, 1.0], [0.5, 1.0, 0.5], [1.0, 0.5, 1.0]])
    L, _ = linalg.factor(K[:2, :2])
    lower = np.tril(linalg.extend(L, K[:2, 2:], K[2:, 2:]))
    assert np.all(np.diagonal(lower) > 0.0)
    np.testing.assert_allclose(lower @ lower.T, K, atol=1e-2)


@pytest.mark.parametrize("n", SIZES)
def test_whiten_solve_invert_and_log_determinant_agree_with_numpy(n):
    K = positive_definite(n, seed=5)
    L, _ = linalg.factor(K)
    rng = np.random.default_rng(6)
    b, B = rng.standard_normal(n), rng.standard_normal((n, 3))
    np.testing.assert_allclose(linalg.whiten(L, B), np.linalg.solve(np.linalg.cholesky(K), B), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(linalg.solve(L, b), np.linalg.solve(K, b), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(linalg.solve(L, B), np.linalg.solve(K, B), rtol=1e-8, atol=1e-10)
    assert linalg.solve(L, b).shape == (n,)
    assert linalg.solve(L, B).shape == (n, 3)
    K_inv = np.linalg.inv(K)
    np.testing.assert_allclose(linalg.invert(L), K_inv, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(np.tril(linalg.invert_lower(L)), np.tril(K_inv), rtol=1e-8, atol=1e-10)
    sign, log_det = np.linalg.slogdet(K)
    assert sign == 1.0
    assert linalg.log_determinant(L) == pytest.approx(log_det, rel=1e-11, abs=1e-11)


def test_solving_does_not_change_its_arguments():
    K = positive_definite(5, seed=7)
    L, _ = linalg.factor(K)
    B = np.asfortranarray(np.random.default_rng(8).standard_normal((5, 2)))
    kept_L, kept_B = L.copy(), B.copy()
    linalg.whiten(L, B)
    linalg.unwhiten(L, B)
    linalg.solve(L, B)
    linalg.invert(L)
    np.testing.assert_array_equal(L, kept_L)
    np.testing.assert_array_equal(B, kept_B)


@pytest.mark.parametrize("verb", ["whiten", "unwhiten", "solve", "log_determinant"])
def test_what_lies_above_the_diagonal_of_a_factor_is_never_read(verb):
    L, _ = linalg.factor(positive_definite(6, seed=9))
    spoilt = np.asfortranarray(np.tril(L) + np.triu(np.full((6, 6), np.nan), 1))
    B = [np.random.default_rng(10).standard_normal((6, 2))] if verb != "log_determinant" else []
    np.testing.assert_array_equal(getattr(linalg, verb)(spoilt, *B), getattr(linalg, verb)(L, *B))


@pytest.mark.parametrize("n", SIZES)
def test_rewhiten_undoes_unwhiten_and_reads_the_factor_alone(n):
    L, _ = linalg.factor(positive_definite(n, seed=11))
    b = np.random.default_rng(12).standard_normal(n)
    spoilt = np.asfortranarray(np.tril(L) + np.triu(np.full((n, n), np.nan), 1))
    np.testing.assert_allclose(linalg.rewhiten(spoilt, b), np.tril(L).T @ b, rtol=1e-12)
    np.testing.assert_allclose(linalg.rewhiten(L, linalg.unwhiten(L, b[:, None])[:, 0]), b, rtol=1e-9)


def test_a_leading_block_of_a_factor_is_the_factor_of_the_leading_block():
    K = positive_definite(9, seed=11)
    L, _ = linalg.factor(K)
    np.testing.assert_allclose(np.tril(L[:4, :4]), np.linalg.cholesky(K[:4, :4]), rtol=1e-12, atol=1e-14)


def test_the_ladder_has_the_unit_that_it_is_given():
    """Two rows that are one, and noise of 1e-4 elsewhere: the jitter is a share of that, not of the kernel."""
    _, jitter = linalg.factor(np.ones((3, 3)), level=1e-4)
    assert jitter == pytest.approx(1e-10 * 1e-4, rel=1e-12) or jitter == pytest.approx(1e-8 * 1e-4, rel=1e-12)
