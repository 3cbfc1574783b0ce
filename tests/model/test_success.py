"""The model of success, read with caution."""

from __future__ import annotations

import numpy as np
import pytest

from boca import Float, Optimizer, Problem, RandomSearch, Space, Surrogate
from boca.domain.trial import History
from boca.model.feasibility import Feasibility
from boca.model.outcome_model import OutcomeModel

PROBLEM = Problem(Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)))


def failing(count: int) -> History:
    """Return trials that fail where a > 0.6."""
    opt = Optimizer(PROBLEM, budget=None, strategy=RandomSearch(), seed=1)
    for _ in range(count):
        trial = opt.ask()
        if trial.x["a"] > 0.6:
            opt.fail(trial, "out of memory")
        else:
            opt.tell(trial, trial.x["b"])
    return opt.history


def success(history: History, caution: float) -> OutcomeModel:
    rng = np.random.default_rng(0)
    found = Feasibility.after(PROBLEM, history, Surrogate(), rng, success=True, caution=caution)
    (outcome,) = found.outcomes
    return outcome


def test_caution_goes_less_far_from_what_succeeded():
    history = failing(12)
    U = np.random.default_rng(1).random((500, 2))
    far, near = (success(history, caution) for caution in (0.0, 12.0))
    allowed = [float(np.mean(outcome.probability(U) >= outcome.least)) for outcome in (far, near)]
    assert 0.0 < allowed[1] < allowed[0]
    succeeded = PROBLEM.space.to_unit([t.x for t in history.complete])
    assert near.probability(succeeded).min() > 0.9


def test_every_failure_adds_to_what_is_believed():
    history = failing(30)
    failures = sum(t.state == "failed" for t in history)
    believed = success(history, 0.0).model.h[:2]
    np.testing.assert_allclose(success(history, 12.0).model.h[:2], believed * failures / (failures + 12.0))


def test_failures_by_chance_bar_no_region():
    opt = Optimizer(PROBLEM, budget=None, strategy=RandomSearch(), seed=1)
    rng = np.random.default_rng(0)
    for _ in range(40):
        trial = opt.ask()
        if rng.random() < 0.25:
            opt.fail(trial, "node died")
        else:
            opt.tell(trial, trial.x["b"])
    outcome = success(opt.history, 12.0)
    assert np.max(outcome.probability(outcome.model.queried)) >= outcome.least  # a query is possible somewhere


def test_more_than_certain_is_certain():
    outcome = success(failing(30), 12.0)
    assert outcome.model.value_as_told(outcome.highest) == pytest.approx(1.0)
    assert success(failing(30), 0.0).highest == np.inf  # as studies had it before there was caution
