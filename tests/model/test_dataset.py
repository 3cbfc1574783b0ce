"""A history as arrays, and the choice of some of its rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca.gp.fit import Standardization
from boca.model.dataset import Dataset, TrainingData
from boca.model.encoding import Encoding


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


# From a history -------------------------------------------------------------------------------------------------------

SPACE, FIDELITY = boca.Space(x=boca.Float(0.0, 10.0)), boca.Space(z=boca.Float(0.0, 2.0))


def study(direction="maximize"):
    """Return a study with three results, the second at the target, a failure, and two running trials."""
    problem = boca.Problem(SPACE, FIDELITY, cost=lambda z: 1.0 + z["z"], direction=direction)
    optimizer = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    for x, z, value in ((1.0, 0.5, 3.0), (4.0, 2.0, -2.0), (9.0, 1.0, 7.0)):
        optimizer.add({"x": x}, {"z": z}, value)
    for x, z in ((2.0, 2.0), (3.0, 2.0), (5.0, 0.0)):
        optimizer.enqueue({"x": x}, {"z": z})
    optimizer.fail(optimizer.ask(), "lost")
    optimizer.ask(2)
    return optimizer


@pytest.mark.parametrize(("direction", "scores"), [("maximize", [3, -2, 7, -2]), ("minimize", [-3, 2, -7, -7])])
def test_scores_are_to_be_maximized_and_a_failure_has_the_worst(direction, scores):
    optimizer = study(direction)
    dataset = Dataset.from_history(optimizer.problem, optimizer.history)
    np.testing.assert_array_equal(dataset.scores, scores)
    np.testing.assert_allclose(dataset.U[:, 0], [0.1, 0.4, 0.9, 0.2], rtol=1e-15)
    np.testing.assert_allclose(dataset.Z[:, 0], [0.25, 1.0, 0.5, 1.0], rtol=1e-15)
    np.testing.assert_allclose(np.hstack(dataset.running), [[0.3, 1.0], [0.5, 0.0]], rtol=1e-15)
    assert dataset.variances is None
    assert dataset.results == 4


def test_results_are_in_the_order_in_which_they_were_told():
    optimizer = study()
    first, second = optimizer.running
    optimizer.tell(second, 11.0)
    optimizer.tell(first, 12.0)
    dataset = Dataset.from_history(optimizer.problem, optimizer.history)
    np.testing.assert_array_equal(dataset.scores[-2:], [11.0, 12.0])
    np.testing.assert_allclose(dataset.U[-2:, 0], [0.5, 0.3], rtol=1e-15)


def test_one_told_variance_gives_the_others_none_of_their_own():
    optimizer = study()
    optimizer.tell(optimizer.running[0], 1.0, noise=0.25)
    dataset = Dataset.from_history(optimizer.problem, optimizer.history)
    np.testing.assert_array_equal(dataset.variances, [0.0, 0.0, 0.0, 0.0, 0.25])
    data = dataset.encoded(Encoding(optimizer.problem, "se"), Standardization(1.0, 2.0))
    np.testing.assert_allclose(data.noise, [0.0, 0.0, 0.0, 0.0, 0.0625])
    np.testing.assert_allclose(data.y, (dataset.scores - 1.0) / 2.0)


def test_data_at_the_target_are_those_and_what_runs_there():
    optimizer = study()
    dataset = Dataset.from_history(optimizer.problem, optimizer.history)
    data = dataset.encoded(Encoding(optimizer.problem, "se"), Standardization(0.0, 1.0))
    np.testing.assert_array_equal(data.is_target, [False, True, False, True])
    here = data.at_target()
    np.testing.assert_array_equal(here.y, [-2.0, -2.0])
    np.testing.assert_allclose(here.pending, [[0.3, 1.0]], rtol=1e-15)


def test_iterations_are_the_trials_that_a_model_chose():
    optimizer = boca.Optimizer(study().problem, budget=None, strategy=boca.Boca(), seed=0)
    for k in range(5):
        optimizer.add({"x": 2.0 * k}, None, math.sin(k))
    assert Dataset.from_history(optimizer.problem, optimizer.history).iterations == 0
    assert optimizer.ask().phase == "model"
    assert Dataset.from_history(optimizer.problem, optimizer.history).iterations == 1
