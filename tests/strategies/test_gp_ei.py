"""GP-EI: the largest expected improvement at the target, recomputed from `why`."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

import boca
from boca.domain.errors import InvalidInput

SPACE = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(-1.0, 3.0))
KNOWN = {"kappa0": 2.0, "eta2": 0.01, "mean": 0.5, "h_x": [0.3, 0.4]}
PROBLEM = boca.Problem(SPACE)


def play(strategy, trials=6):
    optimizer = boca.Optimizer(PROBLEM, budget=None, strategy=strategy, seed=1)
    for u in np.random.default_rng(0).random((6, 2)):
        x = SPACE.from_unit(u)
        optimizer.add(x, None, math.sin(5.0 * x["a"]) - x["b"] ** 2)
    for _ in range(trials):
        trial = optimizer.ask()
        optimizer.tell(trial, math.sin(5.0 * trial.x["a"]) - trial.x["b"] ** 2)
    return optimizer.history


def improvement(told, U):
    """Return the expected improvement over the highest posterior mean at the x that were queried."""
    X, y = SPACE.to_unit([t.x for t in told]), np.array([t.value for t in told])

    def k(A, B):
        return 2.0 * np.exp(-0.5 * (((A[:, None] - B[None]) / [0.3, 0.4]) ** 2).sum(axis=2))

    inverse = np.linalg.inv(k(X, X) + 0.01 * np.eye(len(X)))
    best = np.max(0.5 + k(X, X) @ inverse @ (y - 0.5))
    mean = 0.5 + k(U, X) @ inverse @ (y - 0.5)
    sigma = np.sqrt(np.maximum(2.0 - np.einsum("ij,jk,ik->i", k(U, X), inverse, k(U, X)), 1e-12))
    u = (mean - best) / sigma
    return sigma * (norm.pdf(u) + u * norm.cdf(u))


def test_no_point_improves_more_than_the_one_asked():
    history = play(boca.GPEI(maximizer="sobol", hyperparameters=KNOWN))
    U = SPACE.snap(np.random.default_rng(2).random((2000, 2)))
    for trial in history.chosen:
        told = history.read_by(trial).finished
        own = improvement(told, SPACE.to_unit([trial.x]))[0]
        assert own >= np.max(improvement(told, U)) * (1.0 - 1e-6)
        assert trial.why["acquisition"] == "log_ei"
        assert "expected improvement" in trial.why["reason"]


def test_the_highest_value_is_not_the_incumbent():
    """A negative control: over the best value, which the noise makes too high, other points would be asked."""
    told = list(play(boca.GPEI(hyperparameters=KNOWN), trials=0))
    X, y = SPACE.to_unit([t.x for t in told]), np.array([t.value for t in told])
    strategy = boca.GPEI(hyperparameters=KNOWN | {"eta2": 1.0})
    model = strategy.posterior(PROBLEM, boca.History(told))
    assert np.max(model.moments(X)[0]) < np.max(y) - 0.05


@pytest.mark.parametrize("settings", [{"maximizer": "grid"}, {"surrogate": "gp"}])
def test_settings_that_are_not_allowed_are_refused(settings):
    with pytest.raises(InvalidInput, match=f"{next(iter(settings))} must be"):
        boca.GPEI(**settings)
