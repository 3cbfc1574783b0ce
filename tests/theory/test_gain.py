"""Information in three ways, and its greedy growth against all subsets."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from boca import theory
from boca.domain.errors import InvalidInput

X = np.random.default_rng(0).random((9, 2))


def laplace(A, B):
    return np.exp(-np.abs(A[:, None] - B[None]).sum(axis=2))


@pytest.mark.parametrize("kernel", ["se", "matern52", laplace])
@pytest.mark.parametrize("eta2", [0.01, 1.0])
def test_the_gain_is_the_sum_over_variances_and_the_difference_of_two_entropies(kernel, eta2):
    settings = {"kernel": kernel, "h": [0.3, 0.6], "kappa0": 2.0, "eta2": eta2}
    whole = theory.information_gain(X, **settings)
    assert theory.information_gain_by_variances(X, **settings) == pytest.approx(whole, rel=1e-9)
    K = 2.0 * theory.gap.correlation(kernel, X, X, [0.3, 0.6])
    values = np.linalg.eigvalsh(K)
    entropy_of_y = 0.5 * np.sum(np.log(2.0 * math.pi * math.e * (values + eta2)))
    entropy_of_noise = 0.5 * len(X) * math.log(2.0 * math.pi * math.e * eta2)
    assert whole == pytest.approx(entropy_of_y - entropy_of_noise, rel=1e-9)


def test_one_and_two_points_in_closed_form():
    one = theory.information_gain(X[:1], eta2=0.25, kappa0=3.0)
    assert one == pytest.approx(0.5 * math.log(1.0 + 3.0 / 0.25))
    twice = theory.information_gain(np.repeat(X[:1], 2, axis=0), eta2=0.25, kappa0=3.0)
    assert twice == pytest.approx(0.5 * math.log(1.0 + 2.0 * 3.0 / 0.25))  # two observations of one number


@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("kernel", ["se", "matern52"])
def test_greedy_growth_is_between_its_guarantee_and_the_best_subset(n, kernel):
    settings = {"kernel": kernel, "h": 0.4, "eta2": 0.05}
    grown = theory.greedy_gain(X, n, **settings)
    best = max(theory.information_gain(X[list(rows)], **settings) for rows in itertools.combinations(range(9), n))
    assert len(set(grown.chosen)) == n
    assert grown.gains[-1] == pytest.approx(theory.information_gain(X[grown.chosen], **settings), rel=1e-9)
    assert (1.0 - 1.0 / math.e) * best <= grown.gains[-1] <= best + 1e-12
    assert grown.at_most[-1] >= best


def test_every_greedy_step_takes_the_point_of_largest_gain():
    settings = {"h": 0.4, "eta2": 0.05}
    grown = theory.greedy_gain(X, 9, **settings)
    assert np.all(np.diff(grown.gains, n=2) <= 1e-9)  # submodular: each step adds less than the one before
    for t in range(3):
        before = list(grown.chosen[:t])
        gains = {i: theory.information_gain(X[[*before, i]], **settings) for i in range(9) if i not in before}
        assert max(gains, key=gains.get) == grown.chosen[t]


def test_a_longer_length_scale_has_less_to_tell():
    gains = [theory.information_gain(X, h=h, eta2=0.05) for h in (0.01, 0.15, 0.5, 5.0)]
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize(
    ("points", "n", "settings", "words"),
    [
        (X, 0, {"eta2": 0.1}, "n must be"),
        (X, 10, {"eta2": 0.1}, "n must be"),
        (X, 2, {"eta2": 0.0}, "eta2"),
        (X[:, 0], 2, {"eta2": 0.1}, "one row per point"),
    ],
)
def test_wrong_arguments_are_refused(points, n, settings, words):
    with pytest.raises(InvalidInput, match=words):
        theory.greedy_gain(points, n, **settings)
