"""Climbing from many starts at once: to maxima that are known, and to those that scipy finds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from boca.gp.kernels import Kernel, Radial
from boca.gp.model import GP, PosteriorSlice
from boca.search import acquisition
from boca.search.ascent import MOST_ROUNDS, ascend


def free(d):
    return np.zeros(d, dtype=bool)


def quadratic(seed, d, *, center, condition=10.0):
    """A concave one with its top, which is zero, at the center, and axes of its own."""
    rng = np.random.default_rng(seed)
    Q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    M = (Q * np.geomspace(1.0, condition, d)) @ Q.T

    def both(U):
        away = U - center
        return -0.5 * np.einsum("ij,jk,ik->i", away, M, away), -away @ M

    return both


def wave(d, seed, *, length=0.3, features=30):
    """A smooth random function with many tops."""
    rng = np.random.default_rng(seed)
    W, phase = rng.standard_normal((features, d)) / length, rng.uniform(0, 2 * math.pi, features)
    a = rng.standard_normal(features) / math.sqrt(features)
    return lambda U: (np.cos(U @ W.T + phase) @ a, -(np.sin(U @ W.T + phase) * a) @ W)


def starts(k, d, seed=0):
    """Points of the cube, many coordinates of them on its faces."""
    rng = np.random.default_rng(seed)
    S = rng.random((k, d))
    S[rng.random((k, d)) < 0.2] = 0.0
    S[rng.random((k, d)) < 0.2] = 1.0
    return S


class Counted:
    """A function that knows how often and with how many rows it was asked, and that all of them were in the cube."""

    def __init__(self, both):
        self.both, self.sizes = both, []

    def __call__(self, U):
        assert U.ndim == 2
        assert np.all((U >= 0.0) & (U <= 1.0))
        self.sizes.append(len(U))
        return self.both(U)


def by_scipy(both, start):
    """Return the value that L-BFGS-B reaches from one start."""
    found = minimize(
        lambda u: tuple(-part[0] for part in both(u[None, :])),
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * len(start),
        options={"maxiter": 300, "ftol": 1e-13, "gtol": 1e-9},
    )
    return -found.fun


# Known maxima ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 8])
@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_every_start_finds_the_top_of_a_concave_quadratic(k, d):
    center = np.random.default_rng(d).uniform(0.1, 0.9, d)
    both, S = quadratic(d, d, center=center), np.random.default_rng(k).random((k, d))
    found = ascend(Counted(both), S, free(d))
    assert found.shape == (k, d)
    value = both(found)[0]
    assert np.max(value) > -5e-6
    np.testing.assert_allclose(found[int(np.argmax(value))], center, atol=1e-3)
    for row in range(k):  # together, one that is behind may be given up; alone, none is
        assert both(ascend(both, S[row : row + 1], free(d)))[0][0] > -5e-6


@pytest.mark.parametrize("seed", range(12))
def test_a_top_beyond_the_bounds_is_met_on_them(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    both = quadratic(seed, d, center=rng.uniform(-0.5, 1.5, d))
    S = starts(6, d, seed)
    best = max(by_scipy(both, s) for s in S)
    assert np.max(both(ascend(Counted(both), S, free(d)))[0]) == pytest.approx(best, abs=1e-4)


def test_a_corner_is_met_exactly():
    both = quadratic(0, 3, center=np.array([2.0, -1.0, 3.0]), condition=1.0)
    np.testing.assert_array_equal(ascend(both, np.full((1, 3), 0.5), free(3)), [[1.0, 0.0, 1.0]])


def test_the_curvature_is_learned():
    """Steepest ascent would need hundreds of rounds for axes 300 times as steep as others."""
    both = Counted(quadratic(3, 6, center=np.full(6, 0.5), condition=300.0))
    found = ascend(both, np.full((1, 6), 0.2), free(6))
    np.testing.assert_allclose(found[0], 0.5, atol=1e-3)
    assert len(both.sizes) < 45


def test_starts_do_not_know_of_each_other():
    """A start that finds the highest top is not led astray by seven others, nor by their order."""
    both, S = wave(3, 5), np.random.default_rng(1).random((8, 3))
    together = ascend(both, S, free(3))
    best = int(np.argmax(both(together)[0]))
    np.testing.assert_allclose(ascend(both, S[best : best + 1], free(3))[0], together[best], atol=1e-9)
    np.testing.assert_allclose(ascend(both, S[::-1], free(3))[::-1][best], together[best], atol=1e-9)


# Frozen coordinates ---------------------------------------------------------------------------------------------------


def test_frozen_coordinates_stay_to_the_bit_and_the_others_reach_their_top():
    center = np.array([0.3, 0.6, 0.4, 0.7])
    both = quadratic(2, 4, center=center)
    S = np.random.default_rng(3).random((5, 4))
    frozen = np.array([False, True, False, True])
    found = ascend(Counted(both), S, frozen)
    np.testing.assert_array_equal(found[:, frozen], S[:, frozen])
    _, gradient = both(found)
    best = int(np.argmax(both(found)[0]))
    inside = (found[best] > 0.0) & (found[best] < 1.0) & ~frozen
    np.testing.assert_allclose(gradient[best, inside], 0.0, atol=1e-2)
    for row in range(5):  # each alone, so that none is given up for another
        alone = ascend(both, S[row : row + 1], frozen)[0]
        fixed = minimize(
            lambda v, row=row: -float(both(np.where(frozen, S[row], np.insert(v, [1, 2], 0.0))[None, :])[0][0]),
            S[row, ~frozen],
            bounds=[(0.0, 1.0)] * 2,
            method="L-BFGS-B",
        )
        assert both(alone[None, :])[0][0] == pytest.approx(-fixed.fun, abs=1e-4)


def test_with_all_frozen_nothing_moves():
    S = np.random.default_rng(4).random((3, 2))
    np.testing.assert_array_equal(ascend(quadratic(0, 2, center=np.zeros(2)), S, ~free(2)), S)


def test_a_slope_along_a_frozen_coordinate_does_not_count():
    """It is steep there, and flat elsewhere: there is nothing to do."""
    both = Counted(lambda U: (100.0 * U[:, 0], np.tile([100.0, 0.0], (len(U), 1))))
    S = np.random.default_rng(5).random((3, 2))
    np.testing.assert_array_equal(ascend(both, S, np.array([True, False])), S)
    assert len(both.sizes) == 1


# Never worse ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_no_start_ends_lower_than_it_began(seed):
    rng = np.random.default_rng(seed)
    d, scale = int(rng.integers(1, 7)), 10.0 ** rng.uniform(-3, 3)
    inner = wave(d, seed, length=float(rng.choice([0.05, 0.3, 1.0])))
    both = Counted(lambda U: tuple(scale * part for part in inner(U)))
    S = starts(8, d, seed)
    found = ascend(both, S, free(d))
    assert np.all((found >= 0.0) & (found <= 1.0))
    assert np.all(inner(found)[0] >= inner(S)[0])
    assert len(both.sizes) <= MOST_ROUNDS + 1


def test_a_step_that_the_bounds_bend_downhill_is_not_taken():
    """In a long valley across the cube, what is left of a step behind the bound may go down."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 7))
        both = quadratic(seed, d, center=rng.uniform(-1.0, 2.0, d), condition=1e4)
        S = starts(6, d, seed)
        assert np.all(both(ascend(both, S, free(d)))[0] >= both(S)[0])


def test_the_starts_are_left_as_they_were():
    S = np.random.default_rng(6).random((4, 3))
    kept = S.copy()
    ascend(wave(3, 0), S, free(3))
    np.testing.assert_array_equal(S, kept)


def test_all_points_of_a_round_are_asked_for_at_once():
    both = Counted(wave(2, 0))
    ascend(both, np.random.default_rng(7).random((8, 2)), free(2))
    assert both.sizes[0] == both.sizes[1] == 8
    assert all(later <= earlier for earlier, later in zip(both.sizes, both.sizes[1:], strict=False))
    assert len(both.sizes) < MOST_ROUNDS


# Functions that are not kind ------------------------------------------------------------------------------------------


def test_on_a_plateau_a_start_stays_and_the_others_climb():
    def both(U):
        rising = U[:, 0] > 0.5
        value = np.where(rising, -((U[:, 0] - 0.8) ** 2) - (U[:, 1] - 0.3) ** 2, -1.0)
        slope = -2.0 * (U - [0.8, 0.3])
        return value, np.where(rising[:, None], slope, 0.0)

    S = np.array([[0.2, 0.2], [0.6, 0.6], [0.1, 0.9]])
    found = ascend(Counted(both), S, free(2))
    np.testing.assert_array_equal(found[[0, 2]], S[[0, 2]])
    np.testing.assert_allclose(found[1], [0.8, 0.3], atol=1e-3)


def test_a_function_that_is_flat_everywhere_is_asked_once():
    both = Counted(lambda U: (np.zeros(len(U)), np.zeros_like(U)))
    S = np.random.default_rng(8).random((5, 3))
    np.testing.assert_array_equal(ascend(both, S, free(3)), S)
    assert both.sizes == [5]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # inf times zero, which is nan and left alone
def test_a_gradient_that_is_no_number_stops_its_own_start_alone(bad):
    both = quadratic(1, 2, center=np.array([0.4, 0.4]))

    def spoilt(U):
        value, gradient = both(U)
        return value, np.where(U[:, :1] > 0.9, bad, gradient)

    S = np.array([[0.95, 0.5], [0.1, 0.1]])
    found = ascend(spoilt, S, free(2))
    assert np.all(np.isfinite(found))
    assert both(found[:1])[0][0] >= both(S[:1])[0][0]
    np.testing.assert_allclose(found[1], [0.4, 0.4], atol=1e-3)


def test_a_gradient_that_is_lost_on_the_way_ends_the_climb_where_it_is():
    found = ascend(lambda U: (U[:, 0], np.where(U > 0.5, np.nan, 1.0)), np.array([[0.42]]), free(1))
    assert 0.5 < found[0, 0] <= 1.0


def test_values_that_are_no_numbers_are_not_climbed_to():
    """A function that ends at 0.5, as a logarithm does."""

    def both(U):
        inside = U[:, 0] < 0.5
        value = np.where(inside, np.log(np.where(inside, 0.5 - U[:, 0], 1.0)) + 20.0 * U[:, 0], np.nan)
        return value, np.where(inside, 20.0 - 1.0 / np.where(inside, 0.5 - U[:, 0], 1.0), np.nan)[:, None]

    found = ascend(both, np.array([[0.1], [0.3], [0.42]]), free(1))
    assert both(found)[0].max() == pytest.approx(both(np.array([[0.45]]))[0][0], abs=1e-4)
    assert np.all(found < 0.5)


def test_a_kink_is_approached():
    both = Counted(lambda U: (-np.abs(U - 0.37).sum(axis=1), -np.sign(U - 0.37)))
    found = ascend(both, np.random.default_rng(9).random((4, 1)), free(1))
    assert np.min(np.abs(found - 0.37)) < 0.01
    assert len(both.sizes) <= MOST_ROUNDS + 1


def test_one_start_with_a_value_that_is_no_number_does_not_stop_the_others():
    both = quadratic(4, 2, center=np.array([0.6, 0.2]))

    def spoilt(U):
        value, gradient = both(U)
        return np.where(U[:, 0] == 0.0, np.nan, value), np.where(U[:, :1] == 0.0, 0.0, gradient)

    found = ascend(spoilt, np.array([[0.0, 0.5], [0.3, 0.9]]), free(2))
    np.testing.assert_array_equal(found[0], [0.0, 0.5])
    np.testing.assert_allclose(found[1], [0.6, 0.2], atol=1e-3)


def banana(U):
    """A curved ridge, along which it takes many rounds to the top at (0.7, 0.49)."""
    a, b = U[:, 1] - U[:, 0] ** 2, 0.7 - U[:, 0]
    return -100.0 * a**2 - b**2, np.column_stack([400.0 * a * U[:, 0] + 2.0 * b, -200.0 * a])


def test_of_starts_on_the_way_to_the_same_top_only_the_best_goes_on():
    together = Counted(banana)
    found = ascend(together, np.array([[0.1, 0.01], [0.1, 0.011], [0.101, 0.01]]), free(2))
    np.testing.assert_allclose(found[int(np.argmax(banana(found)[0]))], [0.7, 0.49], atol=1e-3)
    assert len(together.sizes) > 8
    assert set(together.sizes[:5]) == {3}
    assert set(together.sizes[-3:]) == {1}


def test_starts_that_differ_where_they_are_frozen_are_on_the_way_to_different_tops():
    frozen = np.array([False, False, True])

    def both(U):  # the higher the frozen coordinate, the higher the top
        value, gradient = banana(U)
        return value + U[:, 2], np.column_stack([gradient, np.ones(len(U))])

    found = ascend(both, np.array([[0.1, 0.01, 0.5], [0.05, 0.1, 0.500001]]), frozen)
    np.testing.assert_allclose(found[:, :2], [[0.7, 0.49], [0.7, 0.49]], atol=2e-3)


def test_a_start_that_comes_by_one_without_a_value_goes_on():
    """That one is no top, and nobody's twin."""

    def spoilt(U):
        value, gradient = banana(U)
        is_spoilt = U[:, 0] == 0.689
        return np.where(is_spoilt, np.nan, value), np.where(is_spoilt[:, None], 0.0, gradient)

    found = ascend(spoilt, np.array([[0.689, 0.48], [0.1, 0.01]]), free(2))
    np.testing.assert_allclose(found[1], [0.7, 0.49], atol=1e-3)


# Against scipy, on what it is for ------------------------------------------------------------------------------------


def posterior(seed, d, formula, *, eta2):
    """A formula of the moments of a process on results of which half lie close together, as in a run."""
    rng = np.random.default_rng(seed)
    X = rng.random((60, d))
    X[30:] = np.clip(rng.random(d) + 0.05 * rng.standard_normal((30, d)), 0.0, 1.0)
    y = np.sin(X @ rng.uniform(1.0, 6.0, d)) + X[:, 0] ** 2
    h = np.exp(rng.normal(math.log(0.4 * math.sqrt(d)), 0.7, d))
    kernel = Kernel((Radial("matern52", tuple(range(d)), tuple(range(d))),))
    section = PosteriorSlice(GP.build(kernel, X, y, kappa0=1.5, h=h, eta2=eta2), d, np.empty(0))
    best = float(np.max(section.means(X)))

    def both(U):
        mean, variance, chain = section.moments_and_chain(U)
        sigma = np.sqrt(variance)
        value, by_mu, by_sigma = formula(mean, sigma, best)
        return value, chain(by_mu, by_sigma / (2.0 * sigma))

    center = X[int(np.argmax(y))]
    near = np.clip(center + 10.0 ** rng.uniform(-3.0, -0.5, (64, 1)) * rng.standard_normal((64, d)), 0.0, 1.0)
    candidates = [rng.random((192, d)), near]
    return both, np.vstack([C[np.argsort(-both(C)[0])[:4]] for C in candidates])


FORMULAS = {
    "ucb": lambda mu, sigma, best: acquisition.ucb(mu, sigma, 4.0),
    "log_ei": lambda mu, sigma, best: acquisition.log_ei(mu, sigma, best),
    "mean": lambda mu, sigma, best: (mu, 1.0, np.zeros_like(mu)),
}


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("eta2", [1e-6, 1e-2])
def test_the_best_of_the_tops_is_that_of_scipy(formula, eta2):
    """In all of 60 cases to 1e-4 when this was written; two a formula may miss a top by the luck of a long step."""
    missed = 0
    for seed in range(10):
        d = (1, 2, 3, 6, 8)[seed % 5]
        both, S = posterior(seed, d, FORMULAS[formula], eta2=eta2)
        found = ascend(Counted(both), S, free(d))
        best = max(by_scipy(both, s) for s in S)
        missed += np.max(both(found)[0]) < best - 1e-4
    assert missed <= 2
