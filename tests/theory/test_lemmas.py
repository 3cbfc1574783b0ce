"""Every inequality holds where its smaller side can be computed, and is tight where the proof says so."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from boca import theory
from boca.gp.kernels import Kernel, Radial
from boca.gp.model import GP

RNG = np.random.default_rng(2)


def posterior_of(X, *, h=(0.4, 0.4), kappa0=2.0, eta2=0.1):
    kernel = Kernel((Radial("se", (0, 1), (0, 1)),))
    return GP.build(kernel, X, np.zeros(len(X)), kappa0=kappa0, h=np.array(h), eta2=eta2, m=0.0)


def test_the_gaussian_tail_is_below_its_bound_and_meets_it_at_nought():
    epsilon = np.linspace(0.0, 6.0, 61)
    assert np.all(norm.sf(epsilon) <= theory.gaussian_tail_bound(epsilon) + 1e-15)
    assert theory.gaussian_tail_bound(0.0) == norm.sf(0.0)


@pytest.mark.parametrize("s", [1, 3, 20])
def test_the_variance_given_observations_at_one_point(s):
    """The bound is the value at the point itself, and above it elsewhere."""
    gp = posterior_of(np.tile([0.3, 0.4], (s, 1)))
    A = np.vstack([[0.3, 0.4], RNG.random((50, 2))])
    phi = np.exp(-0.5 * np.sum(((A - [0.3, 0.4]) / 0.4) ** 2, axis=1))
    bound = theory.point_variance_bound(phi, s, kappa0=2.0, eta2=0.1)
    variance = gp.posterior(A)[1]
    assert np.all(variance <= bound + 1e-9)
    assert variance[0] == pytest.approx(bound[0], rel=1e-6)


def test_the_variance_in_a_region():
    for s in (1, 4, 30):
        region = np.array([0.2, 0.5]) + 0.15 * RNG.random((s, 2))
        A = np.array([0.2, 0.5]) + 0.15 * RNG.random((40, 2))
        variance = posterior_of(np.vstack([region, RNG.random((5, 2))])).posterior(A)[1]
        phi = math.exp(-0.5 * (0.15 / 0.4) ** 2)
        assert np.all(variance <= theory.region_variance_bound(phi, phi, s, kappa0=2.0, eta2=0.1))


def test_the_deviation_of_f_where_g_is_known():
    """Column 0 is x, column 1 is z, and z* = 1."""
    for _ in range(20):
        gp = posterior_of(RNG.random((12, 2)), h=(0.3, 1.5))
        x, z = RNG.random((2, 30))
        tau = np.sqrt(gp.posterior(np.column_stack([x, z]))[1])
        sigma = np.sqrt(gp.posterior(np.column_stack([x, np.ones(30)]))[1])
        xi = theory.information_gap("se", 1.0 - z, h=1.5)
        assert np.all(sigma <= theory.deviation_bound(tau, xi, kappa0=2.0) + 1e-9)


def test_the_bound_holds_at_the_points_asked_as_often_as_promised():
    """Over t = 1, 2, ... two tails of sqrt(beta_t) add up to less than delta / 3."""
    delta = 0.3
    both = sum(2.0 * norm.sf(math.sqrt(theory.least_beta(t, delta))) for t in range(1, 20_000))
    by_the_lemma = math.fsum(2.0 * delta / (math.pi**2 * t**2) for t in range(1, 20_000))
    assert both <= by_the_lemma <= delta / 3.0


def test_the_beta_of_the_theorem_covers_the_discretization():
    """beta_t >= 2 log(|G_t| pi^2 t^2 / 2 delta) where the grid is that of the theorem's own constant."""
    constants = theory.Theorem(delta=0.1, a=1.0, b=1.0, r=1.0)
    assert theory.discretization_size(3, 1, constants) == pytest.approx(9.0 * math.sqrt(60.0))
    assert theory.discretization_size(3, 2, constants) == pytest.approx((9.0 * 2.0 * math.sqrt(120.0)) ** 2)
    needed = [2.0 * math.log(theory.discretization_size(t, 1, constants)) + theory.least_beta(t, 0.1) for t in (1, 9)]
    given = [theory.theorem_beta(t, 1, constants) for t in (1, 9)]
    np.testing.assert_allclose(np.subtract(needed, given), needed[0] - given[0])  # t enters both alike


@pytest.mark.parametrize("alpha", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("d", [1, 2, 6])
def test_the_terms_of_the_union_add_up_to_less_than_the_lemma_says(alpha, d):
    rho = theory.rho_0(alpha, d)
    for u in (3, 10, 100):
        terms = theory.union_bound(u, 5000, lambda t: theory.term_bound(t, d, rho_0=rho, delta=0.1))
        by_hand = sum(0.1 / math.pi**2 * t ** (-2.0 * (rho - 1.0) ** 2 * (1.0 + d)) for t in range(u + 1, 5001))
        assert terms == pytest.approx(by_hand, rel=1e-9)
        assert terms <= theory.exceedance_bound(u, alpha=alpha, delta=0.1)


def test_the_variances_at_the_target_add_up_to_less_than_the_gain_says():
    eta2, line = 0.2, np.linspace(0.0, 1.0, 60)
    for seed in range(5):
        rows = np.random.default_rng(seed).choice(60, 25)
        X = np.column_stack([line[rows], np.ones(25)])
        total = 1.0  # of the first, before any
        for t in range(1, 25):
            gp = posterior_of(X[:t], h=(0.2, 1.0), kappa0=1.0, eta2=eta2)
            total += float(gp.posterior(X[t : t + 1])[1][0])
        gain = theory.information_gain(X, h=[0.2, 1.0], eta2=eta2)
        assert total <= theory.variance_sum_bound(gain, eta2=eta2)


def test_in_regions_of_the_covering_few_observations_are_enough():
    h_x, h_z, beta, xi_far, ratio, q = 0.3, 0.8, 4.0, 0.6, 0.1, 0.2
    D = theory.covering_diameter(min(h_x, h_z), xi_far=xi_far, beta=beta, ratio=ratio, q=q)
    left = 1.0 - math.exp(-((D / h_x) ** 2)) * math.exp(-((D / h_z) ** 2))
    assert left < 0.5 * xi_far**2 * ratio ** (2.0 * q) / beta
    assert 0.5 * left < 0.5 * xi_far**2 * ratio ** (2.0 * q) / beta < 8.0 * left  # and it is not far too small


@pytest.mark.parametrize(("d", "p"), [(1, 1), (2, 1), (1, 3), (2, 0)])
def test_the_covering_covers(d, p):
    for D in (0.2, 0.45, 2.0):
        sides = [math.ceil(math.sqrt(k) / D) for k in (d, p) if k]
        assert all(math.sqrt(k) / side <= D + 1e-12 for k, side in zip([k for k in (d, p) if k], sides, strict=True))
        assert theory.covering_size(D, d=d, p=p) == math.prod(
            s**k for s, k in zip(sides, [k for k in (d, p) if k], strict=True)
        )


def test_with_the_q_of_the_paper_the_same_is_spent_at_every_fidelity():
    for d, p in ((1, 1), (3, 2), (6, 4)):
        q = 1.0 / (p + d + 2)
        spent = [r * theory.plays_bound(0.5, 100, d=d, p=p, ratio=r, q=q) for r in (0.01, 0.1, 1.0)]
        np.testing.assert_allclose(spent, 0.5 * math.log(100) ** (0.5 * (d + p + 2)))
        wrong = [r * theory.plays_bound(0.5, 100, d=d, p=p, ratio=r, q=2.0 * q) for r in (0.01, 1.0)]
        assert wrong[0] > 10.0 * wrong[1]


def test_the_tail_of_slopes_at_one_point_is_normal_and_over_a_line_below_the_assumption():
    rng = np.random.default_rng(0)
    for i, h in ((0, 0.3), (1, 0.8)):
        deviation = math.sqrt(2.0) / h
        share = theory.slope_tail(np.array([[0.2, 0.7]]), i, deviation, h=[0.3, 0.8], kappa0=2.0, draws=40_000, rng=rng)
        assert share == pytest.approx(2.0 * norm.sf(1.0), abs=0.01)
    line = np.linspace(0.0, 1.0, 80)[:, None]
    a, b = 12.0, math.sqrt(2.0) / 0.2  # a counts the bends of a draw
    for J in (5.0, 10.0, 15.0, 20.0):
        share = theory.slope_tail(line, 0, J, h=0.2, kappa0=1.0, draws=4000, rng=rng)
        assert share <= a * math.exp(-((J / b) ** 2))


def test_the_slopes_that_are_drawn_are_those_of_draws():
    """Differences of draws of f have the same share of steep ones."""
    rng = np.random.default_rng(1)
    line = np.linspace(0.0, 1.0, 400)
    K = np.exp(-0.5 * ((line[:, None] - line) / 0.2) ** 2)
    values, vectors = np.linalg.eigh(K)
    f = (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((400, 3000))
    steep = np.max(np.abs(np.diff(f, axis=0)) / (line[1] - line[0]), axis=0)
    for J in (6.0, 9.0, 12.0):
        drawn = theory.slope_tail(line[::5, None], 0, J, h=0.2, kappa0=1.0, draws=3000, rng=rng)
        assert drawn == pytest.approx(np.mean(steep > J), abs=0.04)
