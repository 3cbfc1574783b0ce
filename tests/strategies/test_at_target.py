"""One decision of a method that queries only the target, with an acquisition of the test."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca.model.surrogate import Surrogate
from boca.search.acquisition import UCB, Mean
from boca.search.candidates import STAND_IN
from boca.strategies.at_target import suggest_at_target
from boca.strategies.base import beta

SPACE, FIDELITY = boca.Space(x=boca.Float(0.0, 1.0)), boca.Space(z=boca.Float(0.0, 1.0))
PROBLEM = boca.Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["z"])
KNOWN = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.2], "h_z": [1.0]}


def study(n, problem=PROBLEM):
    optimizer = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    for k in range(n):
        optimizer.add({"x": k / 9}, None, math.sin(6.0 * k / 9))
    return optimizer


def suggest(history, formula, problem=PROBLEM, *, start=1.0, hyperparameters=KNOWN):
    return suggest_at_target(
        problem,
        history,
        boca.Budget(100.0, start),
        np.random.default_rng(0),
        Surrogate.paper(),
        "sobol",
        hyperparameters=hyperparameters,
        acquisition="mine",
        formula=formula,
        reason="Because.",
    )


def test_the_start_comes_first_at_the_target():
    suggestion = suggest(study(3).history, lambda model, weight: pytest.fail("no model is needed"), start=50.0)
    assert suggestion.why["phase"] == "start"
    assert suggestion.z == PROBLEM.target


def test_the_highest_acquisition_is_suggested_with_its_name_and_reason():
    history = study(8).history
    suggestion = suggest(history, lambda model, weight: Mean())
    model = Surrogate.paper().model(PROBLEM, history, np.random.default_rng(0), hyperparameters=KNOWN)
    grid = np.linspace(0.0, 1.0, 2001)[:, None]
    assert suggestion.x["x"] == pytest.approx(float(grid[np.argmax(model.means(grid)), 0]), abs=1e-3)
    assert (suggestion.why["acquisition"], suggestion.why["reason"]) == ("mine", "Because.")
    assert suggestion.why["phase"] == "model"


def test_the_formula_gets_the_model_and_beta():
    history, seen = study(8).history, []
    suggest(history, lambda model, weight: seen.append((model, weight)) or UCB(weight))
    model, weight = seen[0]
    assert weight == beta(1, 1, model.diameter()) == pytest.approx(0.5 * math.log(2.0 * 5.0 + 1.0))
    assert model.hyperparameters() == KNOWN


def test_a_substitute_says_that_it_is_one():
    problem = boca.Problem(boca.Space(x=boca.Choice([0, 1])), FIDELITY, cost=lambda z: 0.1 + z["z"])
    optimizer = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    for x in (0, 1, 0):
        optimizer.add({"x": x}, None, float(x))
    optimizer.ask(2)
    suggestion = suggest(optimizer.history, lambda model, weight: Mean(), problem)
    assert suggestion.z != problem.target
    assert suggestion.why["reason"] == STAND_IN
