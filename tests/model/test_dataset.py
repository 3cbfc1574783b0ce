"""A history as arrays, and the choice of some of its rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from boca.model.dataset import TrainingData


def plain(n, noise=None):
    X, nowhere = np.arange(2.0 * n).reshape(n, 2), np.empty((0, 2))
    return TrainingData(
        X[:, :1], X, np.arange(float(n)), noise, np.arange(n) % 3 == 0, nowhere, np.zeros(0, dtype=bool)
    )


@pytest.mark.parametrize("n", [1, 29, 30])
def test_few_results_are_not_thinned(n):
    data = plain(n)
    assert data.thinned(30) is data


@pytest.mark.parametrize("n", [31, 32, 59, 60, 61, 1000])
def test_thinning_makes_an_even_choice_in_the_order_of_the_results(n):
    data = plain(n, noise=0.5 * np.arange(float(n)))
    thin = data.thinned(30)
    kept = thin.y.astype(int)
    assert len(kept) == 30
    assert kept[0] == 0
    steps = np.diff([*kept, n])
    assert steps.min() >= 1
    assert steps.max() <= 3 * math.ceil(n / 30)
    np.testing.assert_array_equal(thin.X, data.X[kept])
    np.testing.assert_array_equal(thin.noise, data.noise[kept])


@pytest.mark.parametrize("cycle", [2, 3, 4, 5])
@pytest.mark.parametrize("n", [999, 1000, 1498, 1500, 1997, 2000, 4991])
def test_thinning_is_in_step_with_no_cycle_of_results(n, cycle):
    """A grid of x and some fidelities in turn: with every third result alone, two of three fidelities would be lost."""
    kept = plain(n).thinned(500).y.astype(int)
    assert np.bincount(kept % cycle, minlength=cycle).min() > 0.8 * 500 / cycle


def test_thinning_leaves_what_is_out_alone():
    data = replace(plain(100), pending=np.ones((3, 2)), is_pending_target=np.ones(3, dtype=bool))
    assert len(data.thinned(10).pending) == 3
    assert data.thinned(10).noise is None


def test_taken_results_come_in_the_order_that_is_asked_for():
    data = plain(5, noise=np.arange(5.0)).select(np.array([3, 0]))
    np.testing.assert_array_equal(data.y, [3.0, 0.0])
    np.testing.assert_array_equal(data.noise, [3.0, 0.0])
