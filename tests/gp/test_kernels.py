"""Kernels against their formulas written out pair by pair, and their slopes against finite differences."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boca.gp.kernels import (
    BLOCK_NUMBERS,
    BLOCK_ROWS,
    Custom,
    Kernel,
    Radial,
    augmented,
    blocks,
    covariance,
    squared_distances,
)

PHI = {
    "se": lambda r: math.exp(-r * r / 2.0),
    "matern52": lambda r: (1.0 + math.sqrt(5.0) * r + 5.0 * r * r / 3.0) * math.exp(-math.sqrt(5.0) * r),
}


def scaled_distance(a, b, h):
    return math.sqrt(sum(((x - y) / w) ** 2 for x, y, w in zip(a, b, h, strict=True)))


def by_hand(profile, h, A, B):
    return np.array([[PHI[profile](scaled_distance(a, b, h)) for b in B] for a in A])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_squared_distances_are_those_of_every_pair(rng):
    A, B = rng.standard_normal((6, 4)), rng.standard_normal((9, 4))
    expected = np.array([[np.sum((a - b) ** 2) for b in B] for a in A])
    np.testing.assert_allclose(squared_distances(A, augmented(B)), expected, rtol=1e-12)
    np.testing.assert_allclose(squared_distances(A, augmented(B), 5.0), 5.0 * expected, rtol=1e-12)


def test_squared_distances_are_never_negative_and_vanish_on_equal_rows(rng):
    A = 1e3 * rng.standard_normal((200, 3))
    s = squared_distances(A, augmented(A))
    assert np.all(s >= 0.0)
    assert np.max(np.diagonal(s)) < 1e-8


def test_the_two_profiles_have_the_values_of_their_formulas_at_one_bandwidth():
    A, B = np.array([[0.0]]), np.array([[0.3]])
    h = np.array([0.3])
    se = Kernel((Radial("se", (0,), (0,)),)).value(h, A, B)[0, 0]
    matern = Kernel((Radial("matern52", (0,), (0,)),)).value(h, A, B)[0, 0]
    assert se == pytest.approx(0.6065306597126334, rel=1e-14)
    assert matern == pytest.approx(0.5239941088318203, rel=1e-14)


@pytest.mark.parametrize("profile", ["se", "matern52"])
def test_a_radial_factor_has_one_bandwidth_a_dimension(profile, rng):
    A, B = rng.random((5, 3)), rng.random((4, 3))
    h = np.array([0.2, 0.7, 3.0])
    kernel = Kernel((Radial(profile, (0, 1, 2), (0, 1, 2)),))
    np.testing.assert_allclose(kernel.value(h, A, B), by_hand(profile, h, A, B), rtol=1e-12)


@pytest.mark.parametrize("profile", ["se", "matern52"])
def test_a_radial_factor_looks_at_its_own_columns_and_bandwidths(profile, rng):
    A, B = rng.random((5, 4)), rng.random((3, 4))
    h = np.array([0.2, 0.7, 3.0])
    kernel = Kernel((Radial(profile, (3, 1), (2, 0)),))
    np.testing.assert_allclose(kernel.value(h, A, B), by_hand(profile, h[[2, 0]], A[:, [3, 1]], B[:, [3, 1]]))


def test_a_kernel_is_the_product_of_its_factors(rng):
    A, B = rng.random((5, 4)), rng.random((6, 4))
    h = np.array([0.3, 0.5, 0.8])

    def polynomial(P, Q):
        return (1.0 + P @ Q.T) ** 2

    kernel = Kernel(
        (Radial("matern52", (0, 1), (0, 1)), Radial("se", (2,), (2,))),
        (Custom(polynomial, lambda P: (1.0 + P[:, 0] ** 2) ** 2, (3,)),),
    )
    expected = (
        by_hand("matern52", h[:2], A[:, :2], B[:, :2])
        * by_hand("se", h[2:], A[:, 2:3], B[:, 2:3])
        * (1.0 + A[:, 3:] @ B[:, 3:].T) ** 2
    )
    np.testing.assert_allclose(kernel.value(h, A, B), expected, rtol=1e-12)


def test_two_matern_factors_multiply(rng):
    A, B = rng.random((5, 2)), rng.random((6, 2))
    h = np.array([0.3, 0.5])
    kernel = Kernel((Radial("matern52", (0,), (0,)), Radial("matern52", (1,), (1,))))
    expected = by_hand("matern52", h[:1], A[:, :1], B[:, :1]) * by_hand("matern52", h[1:], A[:, 1:], B[:, 1:])
    np.testing.assert_allclose(kernel.value(h, A, B), expected, rtol=1e-12)


def test_a_kernel_without_factors_is_one_everywhere(rng):
    np.testing.assert_array_equal(
        Kernel(()).value(np.empty(0), rng.random((2, 1)), rng.random((3, 1))), np.ones((2, 3))
    )
    assert Kernel(()).size == 0


def test_size_counts_bandwidths_not_columns():
    assert Kernel((Radial("se", (0, 1, 2), (0, 1, 1)), Radial("se", (3,), (4,)))).size == 5


@pytest.mark.parametrize("custom", [False, True])
def test_the_diagonal_is_that_of_the_matrix(custom, rng):
    A = rng.random((7, 3))
    factors = (
        (
            Custom(lambda P, Q: 0.3 + P @ Q.T, lambda P: 0.3 + P[:, 0] ** 2, (2,)),
            Custom(lambda P, Q: (P @ Q.T) ** 2, lambda P: P[:, 0] ** 4, (0,)),
        )
        if custom
        else ()
    )
    kernel = Kernel((Radial("matern52", (0, 1), (0, 1)),), factors)
    h = np.array([0.3, 0.6])
    np.testing.assert_allclose(kernel.diagonal(h, A), np.diagonal(kernel.value(h, A, A)), rtol=1e-9)


@pytest.mark.parametrize("profile", ["se", "matern52"])
def test_slopes_are_the_derivatives_of_the_logarithm_by_the_squared_distance(profile):
    radial = Radial(profile, (0,), (0,))
    square = np.array([[1e-4, 1e-2, 0.3, 1.0, 5.0, 40.0]])

    def log_phi(square):
        e, p = radial.shape.parts(radial.shape.unit * square)
        return e + (0.0 if p is None else np.log(p))

    step = 1e-5 * square
    expected = (log_phi(square + step) - log_phi(square - step)) / (2.0 * step)
    found = radial.shape.slope(*radial.shape.parts(radial.shape.unit * square))
    np.testing.assert_allclose(np.broadcast_to(found, square.shape), expected, rtol=1e-6)


def test_the_matern_slope_is_finite_where_two_points_coincide():
    radial = Radial("matern52", (0,), (0,))
    e, p = radial.shape.parts(np.zeros((1, 1)))
    g = radial.shape.slope(e, p)
    assert e[0, 0] == 0.0
    assert p[0, 0] == 1.0
    assert g[0, 0] == pytest.approx(-5.0 / 6.0, rel=1e-15)


def test_far_points_are_uncorrelated_without_overflow():
    A, B = np.array([[0.0]]), np.array([[1.0]])
    for profile in PHI:
        assert Kernel((Radial(profile, (0,), (0,)),)).value(np.array([1e-5]), A, B)[0, 0] == 0.0


@pytest.mark.parametrize("columns", [0, 1, 200, 1_000, 10_000, 10**9])
@pytest.mark.parametrize("n", [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS, 3 * BLOCK_ROWS + 5])
def test_blocks_cover_every_row_once_and_are_small(n, columns):
    rows = [row for i, j in blocks(n, columns) for row in range(i, j)]
    assert rows == list(range(n))
    assert all(0 < j - i <= BLOCK_ROWS for i, j in blocks(n, columns))
    assert all((j - i) * columns <= BLOCK_NUMBERS or j - i <= 16 for i, j in blocks(n, columns))


@pytest.mark.parametrize(
    "n", [1, 5, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS - 1, 2 * BLOCK_ROWS, 2 * BLOCK_ROWS + 1]
)
@pytest.mark.parametrize("profile", ["se", "matern52"])
def test_the_covariance_is_filled_in_its_lower_triangle_whatever_the_blocks(n, profile, rng):
    X = rng.random((n, 3))
    h = np.array([0.3, 0.6, 1.0])
    diagonal = rng.random(n)
    kernel = Kernel(
        (Radial(profile, (0, 1), (0, 1)),), (Custom(lambda P, Q: 1.0 + P @ Q.T, lambda P: 1.0 + P[:, 0] ** 2, (2,)),)
    )
    K = covariance(kernel, 2.5, h, X, diagonal)
    expected = 2.5 * kernel.value(h, X, X) + np.diag(diagonal)
    np.testing.assert_allclose(np.tril(K), np.tril(expected), rtol=1e-12, atol=1e-14)
