"""The aims and turns of BOCA by name: what they maximize, and that each can be used."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca.model.dataset import Dataset
from boca.search.acquisition import UCB, BoundAcquisition, LogInformation
from boca.strategies.boca_turns import AIMS, TURNS

FIDELITY = boca.Space(z=boca.Float(0.0, 1.0))
KNOWN = {"kappa0": 1.0, "eta2": 0.01, "mean": -0.3, "h_x": [0.5, 0.5], "h_z": [0.7]}


@pytest.fixture
def model():
    """Return a model of a hill with results at and below the target."""
    problem = boca.Problem(
        boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0)), FIDELITY, cost=lambda z: 0.1 + z["z"]
    )
    optimizer, rng = boca.Optimizer(problem, budget=boca.targets(99), seed=0), np.random.default_rng(0)
    for k, u in enumerate(rng.random((12, 2))):
        optimizer.add(problem.space.from_unit(u), {"z": 1.0 if k % 2 else 0.4}, -float(np.sum((u - 0.5) ** 2)))
    return boca.Surrogate().known(Dataset.from_history(optimizer.problem, optimizer.history), KNOWN)


def test_the_first_aim_is_the_bound_of_the_paper(model):
    assert AIMS["ucb"].formula(model, 4.0, np.random.default_rng(0)) == UCB(4.0)


def test_the_second_aim_draws_maxima_above_what_was_seen(model):
    formula = AIMS["max_value"].formula(model, 4.0, np.random.default_rng(0))
    assert isinstance(formula, LogInformation)
    assert np.min(formula.maxima) > np.max(model.means(model.queried)) - 0.5


def test_the_turn_of_the_target_alone_does_not_read_cheaper_results(model):
    objective = TURNS["ucb_alone"].objective(model, 4.0, np.random.default_rng(0))
    assert len(objective.model.data.y) == 6
    assert np.all(objective.model.data.is_target)


@pytest.mark.parametrize("name", TURNS)
def test_a_turn_is_an_acquisition_with_words(name, model):
    turn = TURNS[name]
    objective = turn.objective(model, 4.0, np.random.default_rng(0))
    assert isinstance(objective, BoundAcquisition)
    assert np.all(np.isfinite(objective.value(np.random.default_rng(1).random((20, 2)))))
    assert turn.does[0].islower()
    assert not turn.does.endswith(".")


@pytest.mark.parametrize("aim", AIMS)
@pytest.mark.parametrize("turn", ["aim", *TURNS])
def test_each_can_be_the_only_one(aim, turn):
    problem = boca.Problem(boca.Space(a=boca.Float(0.0, 1.0)), FIDELITY, cost=lambda z: 0.1 + z["z"])
    strategy = boca.Boca(aims=(aim,), target_turns=(turn,), target_every=None, verify_cheap=False)
    optimizer = boca.Optimizer(problem, budget=boca.targets(6), strategy=strategy, seed=0)
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, -((trial.x["a"] - 0.3) ** 2) * trial.z["z"])
    used = {t.why["acquisition"] for t in optimizer.history if t.phase == "model"}
    assert used <= {aim, turn} - {"aim"}
    assert optimizer.best is not None


def test_beside_the_best_point_there_is_no_improvement_over_draws():
    """With noise there is one over the best mean, query after query."""
    space = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0))
    optimizer = boca.Optimizer(boca.Problem(space), budget=boca.targets(99), seed=0)
    rng = np.random.default_rng(0)
    for x in [{"a": 0.5, "b": 0.5}] * 4 + [space.from_unit(u) for u in rng.random((15, 2))]:
        optimizer.add(x, None, -((x["a"] - 0.5) ** 2) - (x["b"] - 0.5) ** 2 + 0.1 * float(rng.standard_normal()))
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": -0.3, "h_x": [0.5, 0.5]}
    model = boca.Surrogate().known(Dataset.from_history(optimizer.problem, optimizer.history), known)
    best = model.anchors(1)
    elsewhere = rng.random((200, 2))
    plain, drawn = (TURNS[name].objective(model, 1.0, rng) for name in ("log_ei", "log_noisy_ei"))
    assert plain.value(best + 1e-4)[0] > np.max(plain.value(elsewhere)) - 3.0
    assert drawn.value(best + 1e-4)[0] < np.max(drawn.value(elsewhere)) - 5.0
