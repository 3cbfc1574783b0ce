"""The information gap of any kernel and radius, against formulas and against what a query leaves unknown."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boca import theory
from boca.domain.errors import InvalidInput
from boca.theory.gap import correlation

R = np.linspace(0.0, 3.0, 13)


def test_of_the_squared_exponential_it_is_the_closed_form_and_below_its_bound():
    for h in (0.1, 1.0, 4.0):
        xi = theory.information_gap("se", R, h=h)
        np.testing.assert_allclose(xi, np.sqrt(-np.expm1(-((R / h) ** 2))), rtol=1e-9, atol=1e-7)
        assert np.all(xi <= R / h + 1e-7)


def test_of_the_matern_kernel_it_is_the_closed_form():
    s = math.sqrt(5.0) * R / 0.7
    phi = (1.0 + s + s * s / 3.0) * np.exp(-s)
    np.testing.assert_allclose(theory.information_gap("matern52", R, h=0.7), np.sqrt(1.0 - phi**2), atol=1e-7)


def test_of_any_function_it_is_the_deviation_that_a_query_without_noise_leaves():
    """f(z*) given g(z) has variance 1 - phi^2: the Schur complement of the 2 x 2 covariance."""
    for phi in (lambda r: np.exp(-r), lambda r: 1.0 / (1.0 + r * r)):
        xi = theory.information_gap(phi, R, h=2.0)
        left = [np.linalg.inv(np.linalg.inv([[1.0, k], [k, 1.0 + 1e-12]]))[0, 0] - k * k for k in phi(R / 2.0)[1:]]
        np.testing.assert_allclose(xi[1:] ** 2, left, rtol=1e-6)


@pytest.mark.parametrize(
    ("kernel", "r", "h", "words"),
    [
        ("se", [-1.0], 1.0, "positive"),
        ("se", [1.0], 0.0, "positive"),
        ("cubic", [1.0], 1.0, "kernel"),
        (lambda r: 2.0 - r, [0.0], 1.0, "must be a correlation"),
    ],
)
def test_what_is_no_kernel_or_no_distance_is_refused(kernel, r, h, words):
    with pytest.raises(InvalidInput, match=words):
        theory.information_gap(kernel, r, h=h)


def test_a_correlation_by_name_divides_by_the_length_scales():
    A, B = np.random.default_rng(0).random((2, 4, 3))
    h = np.array([0.2, 0.5, 2.0])
    direct = np.exp(-0.5 * (((A[:, None] - B[None]) / h) ** 2).sum(axis=2))
    np.testing.assert_allclose(correlation("se", A, B, h), direct, rtol=1e-12)
    with pytest.raises(InvalidInput, match="length scales"):
        correlation("se", A, B, -1.0)
