"""GP-UCB: the highest upper confidence bound at the target, recomputed from `why`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.strategies.base import beta

SPACE = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(-1.0, 3.0))
PROBLEM = boca.Problem(SPACE, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + z["z"], direction="minimize")


def play(strategy, trials=8):
    optimizer = boca.Optimizer(PROBLEM, budget=None, strategy=strategy, seed=1)
    rng = np.random.default_rng(0)
    for u in rng.random((6, 2)):
        x = SPACE.from_unit(u)
        optimizer.add(x, None, math.sin(5.0 * x["a"]) + x["b"] ** 2)
    for _ in range(trials):
        trial = optimizer.ask()
        optimizer.tell(trial, math.sin(5.0 * trial.x["a"]) + trial.x["b"] ** 2)
    return optimizer.history


def bound(why, told, U):
    """Return the lower confidence bound of a minimized f, by the explicit inverse."""
    numbers = why["hyperparameters"]
    h, y = np.array(numbers["h_x"]), np.array([t.value for t in told])
    X = SPACE.to_unit([t.x for t in told])

    def k(A, B):
        square = (((A[:, None] - B[None]) / h) ** 2).sum(axis=2)
        return numbers["kappa0"] * np.exp(-0.5 * square)

    inverse = np.linalg.inv(k(X, X) + numbers["eta2"] * np.eye(len(X)))
    mean = numbers["mean"] + k(U, X) @ inverse @ (y - numbers["mean"])
    variance = numbers["kappa0"] - np.einsum("ij,jk,ik->i", k(U, X), inverse, k(U, X))
    return mean - math.sqrt(why["beta"]) * np.sqrt(np.maximum(variance, 0.0))


@pytest.mark.parametrize("maximizer", ["sobol", "direct"])
def test_no_point_has_a_better_bound_than_the_one_asked(maximizer):
    history = play(boca.GPUCB(maximizer=maximizer))
    U = SPACE.snap(np.random.default_rng(2).random((2000, 2)))
    for trial in history.chosen:
        told = history.read_by(trial).finished
        own = bound(trial.why, told, SPACE.to_unit([trial.x]))[0]
        assert own == pytest.approx(trial.why["ucb"], rel=1e-6, abs=1e-6)
        assert own <= np.min(bound(trial.why, told, U)) + 2e-2


def test_all_queries_are_at_the_target_and_beta_is_the_papers():
    for t, trial in enumerate(play(boca.GPUCB(maximizer="sobol")).chosen, start=1):
        assert trial.z == PROBLEM.target
        diameter = sum(1.0 / h for h in trial.why["hyperparameters"]["h_x"])
        assert trial.why["beta"] == pytest.approx(beta(t, 2, diameter), rel=1e-12)
        assert trial.why["acquisition"] == "ucb"


@pytest.mark.parametrize("settings", [{"maximizer": "grid"}, {"surrogate": "gp"}])
def test_settings_that_are_not_allowed_are_refused(settings):
    with pytest.raises(InvalidInput, match=f"{next(iter(settings))} must be"):
        boca.GPUCB(**settings)


def test_hyperparameters_that_do_not_fit_the_problem_are_refused():
    strategy = boca.GPUCB(hyperparameters={"kappa0": 1.0, "eta2": 0.1, "mean": 0.0, "h_x": [0.3], "h_z": [1.0]})
    with pytest.raises(InvalidInput, match=r"h_x.*2 length scales"):
        boca.Optimizer(PROBLEM, budget=None, strategy=strategy)
