"""The models of several objectives: one each, in the user's units, turned so that more is better."""

from __future__ import annotations

import numpy as np
import pytest

from boca import Float, Optimizer, Problem, RandomSearch, Space, Surrogate
from boca.model.objectives import Objectives

SPACE = Space(a=Float(0.0, 1.0))
FIDELITY = Space(n=Float(0.0, 1.0))
TWO = {"loss": "minimize", "speed": "maximize"}


def studied(count=9, **more):
    of = Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"], outcomes=TWO)
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    for k in range(count):
        a = k / (count - 1)
        opt.add({"a": a}, {"n": 1.0 if k % 3 else 0.4}, {"loss": 100 * (a - 0.3) ** 2, "speed": 5 * a, **more})
    return of, opt.history


def objectives(of, history):
    return Objectives.after(of, history, Surrogate(), np.random.default_rng(0))


def test_moments_are_turned_and_in_the_users_units():
    of, history = studied()
    models = objectives(of, history)
    U = np.array([[0.125], [0.875]])
    mu, sigma = models.moments(U)
    assert mu[:, 0] == pytest.approx([-100 * (0.125 - 0.3) ** 2, -100 * (0.875 - 0.3) ** 2], abs=2.0)
    assert mu[:, 1] == pytest.approx([5 * 0.125, 5 * 0.875], abs=0.3)
    assert sigma.shape == (2, 2)
    assert np.all(sigma > 0.0)
    assert models.means(U) == pytest.approx(mu)
    assert models.as_told(mu[0]) == pytest.approx({"loss": -mu[0, 0], "speed": mu[0, 1]})


def test_why_is_in_the_users_units_and_has_the_fit_of_a_refit():
    of, history = studied()
    said = objectives(of, history).why(np.array([0.25]))
    assert [*said] == ["loss", "speed"]
    assert said["loss"]["mean"] == pytest.approx(100 * (0.25 - 0.3) ** 2, abs=2.0)
    assert {"mean", "std", "hyperparameters", "fit"} <= set(said["loss"])


def test_a_running_trial_makes_its_neighborhood_certain():
    of, history = studied(5)
    models = objectives(of, history)
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    trial = opt.ask()
    joined = models.joined([trial])
    U = of.space.to_unit([trial.x])
    assert np.all(joined.moments(U)[1] < models.moments(U)[1])
    assert joined.moments(U)[0] == pytest.approx(models.moments(U)[0], abs=1e-6)


def test_the_queried_points_are_those_of_all_objectives():
    of, history = studied(5)
    models = objectives(of, history)
    assert sorted(models.queried[:, 0]) == pytest.approx([k / 4 for k in range(5)])
    assert models.diameter() > 0.0
