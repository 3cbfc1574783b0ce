"""A factor for inputs that approach an origin: its formula, its special case, its gradient."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boca.gp import fit as gp_fit
from boca.gp.converging import Converging
from boca.gp.fitc import farthest_points
from boca.gp.kernels import Kernel, Radial, Trend

ORIGIN, REACH = (1.0, 0.7), (1.0, 0.7)
RNG = np.random.default_rng(0)
X = RNG.random((60, 4))
X[:20, 2:] = ORIGIN


def factor(fades=True):
    return Converging((2, 3), ORIGIN, REACH, (2, 3), 4, fades)


def numbers(*, log_a=(0.0, 0.0), s=(0.0, 0.0), log_l=(-0.7, -0.7)):
    """Return h: length scales of x, then of z, then the factor's own."""
    return np.array([0.4, 0.5, 0.6, 0.9, *log_a, *s, *log_l])


def test_without_its_parts_it_is_the_squared_exponential():
    h = numbers()
    plain = Kernel((Radial("se", (2, 3), (2, 3)),))
    scaled = X / np.array([1.0, 1.0, *REACH])
    np.testing.assert_allclose(factor().value(h, X, X), plain.value(h, scaled, scaled), rtol=1e-12)
    np.testing.assert_array_equal(factor().diagonal(h, X), 1.0)


def test_it_is_the_formula():
    h = numbers(log_a=(0.5, -0.4), s=(0.7, 0.2), log_l=(-0.5, 0.1))
    a, s, length = np.exp(h[4:6]), h[6:8], np.exp(h[8:10])
    for x, y in X[:, None][[0, 21, 40, 59]][:, [0, 0]]:
        y = X[33]
        q, r = ((v[2:] - ORIGIN) / np.array(REACH) for v in (x, y))
        w, v = (np.sign(side) * np.abs(side) ** a for side in (q, r))
        by_hand = math.exp(-0.5 * np.sum(((w - v) / h[2:4]) ** 2))
        by_hand += np.sum(s * q * r * np.exp(-np.abs(q - r) / length))
        assert factor().value(h, x[None], y[None])[0, 0] == pytest.approx(by_hand, rel=1e-12)
        assert factor().diagonal(h, x[None])[0] == pytest.approx(1.0 + np.sum(s * q * q), rel=1e-12)


def test_what_fades_says_nothing_at_the_origin():
    with_it, without = numbers(s=(3.0, 5.0)), numbers()
    np.testing.assert_allclose(
        factor().value(with_it, X, X[:1]), factor().value(without, X, X[:1]), rtol=1e-12, atol=1e-15
    )


def test_it_is_a_covariance():
    h = numbers(log_a=(1.0, -1.0), s=(4.0, 2.0))
    K = factor().value(h, X, X)
    np.testing.assert_allclose(np.diagonal(K), factor().diagonal(h, X), rtol=1e-12)
    assert np.min(np.linalg.eigvalsh(K)) > -1e-10


@pytest.mark.parametrize("fades", [True, False])
@pytest.mark.parametrize("s", [(0.7, 0.2), (0.0, 0.0)])
def test_the_likelihood_has_its_gradient(fades, s):
    made = factor(fades)
    place = 4 + sum(block.size for block in made.blocks)
    kernel = Kernel((Radial("matern52", (0, 1), (0, 1)),), (made,), (Trend((2, 3), ORIGIN, place),))
    own = [0.3, -0.4, *([*s, -0.5, 0.1] if fades else []), 0.3]
    theta = np.array([0.3, -0.5, -0.2, 0.1, -0.4, -3.0, *own])
    y, none = RNG.standard_normal(len(X)), np.zeros(len(X))

    def likelihood(at):
        return gp_fit.log_likelihood(at, kernel, X, y, none, mean=None)

    _, gradient = likelihood(theta)
    step = 1e-6
    for k in range(len(theta)):
        up, down = theta.copy(), theta.copy()
        up[k] += step
        down[k] -= 0.0 if theta[k] == 0.0 else step  # a strength is not negative
        numeric = (likelihood(up)[0] - likelihood(down)[0]) / (up[k] - down[k])
        assert gradient[k] == pytest.approx(numeric, rel=1e-3, abs=2e-3)


def test_far_results_are_told_apart_along_its_axis():
    """The active set of many results is spread over the fidelities too."""
    kernel = Kernel((Radial("se", (0, 1), (0, 1)),), (factor(),))
    same_x = np.hstack([np.full((30, 2), 0.5), RNG.random((30, 2))])
    chosen = farthest_points(kernel, numbers(), same_x, np.array([0]), 6)
    assert len({tuple(row) for row in same_x[chosen]}) == 6
    assert np.ptp(same_x[chosen][:, 2]) > 0.6
