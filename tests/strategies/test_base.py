"""The paper's beta, the protocols of a strategy, and the keys of `why` that all models share."""

from __future__ import annotations

import math

import pytest

import boca
from boca.strategies.base import beta


def test_beta_is_the_one_that_the_paper_runs():
    """0.5 d log(2 l t + 1): with d = 2, l = 10, t = 7 it is log 141."""
    assert beta(7, 2, 10.0) == pytest.approx(4.948759890378168, rel=1e-15)
    assert beta(1, 1, 0.5) == pytest.approx(0.34657359027997264, rel=1e-15)
    assert beta(1, 4, (math.e - 1.0) / 2.0) == pytest.approx(2.0, rel=1e-15)


def test_beta_grows_with_iterations_dimensions_and_diameter():
    assert beta(2, 3, 5.0) > beta(1, 3, 5.0)
    assert beta(1, 4, 5.0) > beta(1, 3, 5.0)
    assert beta(1, 3, 6.0) > beta(1, 3, 5.0)


def test_the_diameter_is_the_sum_of_inverse_bandwidths_choices_included():
    """A choice has the L1 diameter 1/h, as a number has: l = 1/0.5 + 1/0.25 + 1/2."""
    problem = boca.Problem(boca.Space(x=boca.Float(-5, 10), c=boca.Choice(["u", "v", "w"]), n=boca.Int(0, 7)))
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.5, 0.25, 2.0]}
    optimizer = boca.Optimizer(problem, budget=boca.targets(5), strategy=boca.Boca(hyperparameters=known), seed=0)
    for i in range(3):
        optimizer.add({"x": i, "c": "uvw"[i], "n": i}, None, float(i))
    trial = optimizer.ask()
    assert trial.phase == "model"
    assert trial.why["beta"] == pytest.approx(0.5 * 3 * math.log(2.0 * 6.5 * 1.0 + 1.0), rel=1e-14)
