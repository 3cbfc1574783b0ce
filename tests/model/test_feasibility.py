"""The probability of feasibility: closed forms, Monte Carlo, and which results it comes from."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from boca import AtLeast, AtMost, Float, Optimizer, Problem, RandomSearch, Space, Surrogate
from boca.model.dataset import Dataset
from boca.model.feasibility import Feasibility

SPACE = Space(a=Float(0.0, 1.0), b=Float(-1.0, 1.0))
FIDELITY = Space(n=Float(0.0, 1.0))


def problem(**limits):
    return Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"], subject_to=limits)


def known(of, count=14, *, outcome, at_target=lambda k: k % 2 == 0, seed=0):
    """Return the history of a study with this many results."""
    rng = np.random.default_rng(seed)
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    for k in range(count):
        x = SPACE.from_unit(rng.random(2))
        z = {"n": 1.0} if at_target(k) else {"n": float(rng.random())}
        opt.add(x, z, {"value": x["a"], **outcome(x, z)})
    return opt.history


def after(of, history, **more):
    return Feasibility.after(of, history, Surrogate(), np.random.default_rng(0), **more)


@pytest.mark.parametrize(("limit", "turn"), [(AtMost(0.4), -1.0), (AtLeast(0.4), 1.0)])
def test_the_probability_is_that_of_a_normal(limit, turn):
    """In units as told: a warp of the outcome, or a value for failures, would move it against the limit."""
    of = problem(c=limit)
    found = after(of, known(of, outcome=lambda x, z: {"c": math.sin(3 * x["a"]) + 0.1 * z["n"] + x["b"]}))
    U = np.random.default_rng(1).random((40, 2))
    model = found.outcomes[0].model
    mu, sigma = model.moments(U)
    mean = np.array([model.value_as_told(m) for m in mu])
    std = np.array([model.interval_as_told(m, s) for m, s in zip(mu, sigma, strict=True)])
    exact = stats.norm.cdf(turn * (mean - limit.bound) / std)
    np.testing.assert_allclose(found.probability(U), exact, rtol=1e-9, atol=1e-12)
    assert np.ptp(exact) > 0.5


def test_two_limits_multiply_as_draws_of_both_say():
    of = problem(c=AtMost(0.6), e=AtLeast(-0.2))
    history = known(of, outcome=lambda x, z: {"c": math.sin(4 * x["a"]), "e": math.cos(5 * x["b"])}, count=6)
    found = after(of, history)
    U, rng = np.random.default_rng(2).random((30, 2)), np.random.default_rng(3)
    inside = np.ones((200_000, 30), dtype=bool)
    for outcome in found.outcomes:
        mu, sigma = outcome.model.moments(U)
        inside &= mu + sigma * rng.standard_normal(inside.shape) >= outcome.bound
    p = inside.mean(axis=0)
    assert np.all(np.abs(found.probability(U) - p) < 5.0 * np.sqrt(np.maximum(p * (1 - p), 1e-5) / len(inside)))
    assert np.ptp(p) > 0.3


def test_what_is_told_at_cheap_fidelities_says_something_about_the_target():
    of = problem(c=AtMost(0.5))
    cheap = known(of, outcome=lambda x, z: {"c": x["a"] + 0.02 * z["n"]}, count=20, at_target=lambda k: k < 3)
    low, high = after(of, cheap).probability(np.array([[0.1, 0.5], [0.9, 0.5]]))
    assert low > 0.95
    assert high < 0.05


def test_an_outcome_that_is_the_same_everywhere_has_a_model_of_x_alone():
    of = problem(c=AtMost(0.5, at="any"))
    found = after(of, known(of, outcome=lambda x, z: {"c": x["a"]}, at_target=lambda k: False))
    assert found.outcomes[0].is_everywhere_alike
    assert found.why(np.array([0.2, 0.2]))["outcomes"]["c"]["hyperparameters"]["h_z"] == []
    assert found.probability(np.array([[0.1, 0.5]]))[0] > 0.95


def test_only_trials_that_told_it_count():
    of = problem(c=AtMost(0.5))
    history = known(of, outcome=lambda x, z: {"c": x["a"]} if z["n"] == 1.0 else {})
    data = Dataset.of_outcome(of, history, "c")
    assert len(data.scores) == 7
    assert not after(of, history).outcomes[0].tells_below
    assert np.all(data.Z == 1.0)
    assert data.bound == -0.5  # more is better inside


def test_without_two_results_nothing_is_known():
    of = problem(c=AtMost(0.5))
    found = after(of, known(of, count=1, outcome=lambda x, z: {"c": 3.0}))
    assert not found
    np.testing.assert_array_equal(found.probability(np.zeros((3, 2))), 1.0)
    assert found.why(np.zeros(2)) == {}


def test_equal_results_take_their_scale_from_the_limit():
    of = problem(c=AtMost(10.0))
    for value, feasible in ((9.0, True), (500.0, False)):
        history = known(of, count=4, outcome=lambda x, z, value=value: {"c": value})
        p = after(of, history).probability(np.random.default_rng(0).random((20, 2)))
        assert np.all(p > 0.5) if feasible else np.all(p < 0.5)
        assert np.all(np.isfinite(p))


def test_missing_values_of_the_objective_have_no_row():
    of = problem(c=AtMost(0.5))
    opt = Optimizer(of, budget=None, seed=0)
    for a in (0.1, 0.4, 0.9):
        opt.add({"a": a, "b": 0.0}, None, {"value": a if a < 0.5 else None, "c": a})
    assert len(Dataset.from_history(of, opt.history).scores) == 2
    assert len(Dataset.of_outcome(of, opt.history, "c").scores) == 3


def failing(count=30):
    of = Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"])
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=1)
    for _ in range(count):
        trial = opt.ask()
        if trial.x["a"] > 0.6:
            opt.fail(trial, "out of memory")
        else:
            opt.tell(trial, trial.x["b"])
    return of, opt.history


def test_success_is_modelled_where_trials_fail():
    of, history = failing()
    found = after(of, history, success=True)
    (outcome,) = found.outcomes
    assert outcome.name == "success"
    low, high = found.probability(np.array([[0.2, 0.5], [0.95, 0.5]]))
    assert low > 0.9
    assert high < 0.1
    assert not after(of, history)


def test_with_a_success_model_failures_carry_no_value():
    of, history = failing()
    every, told = (Dataset.from_history(of, history, failures=f) for f in ("worst", None))
    assert len(every.scores) == 30
    assert len(told.scores) == len(history.complete)
    assert Dataset.of_success(of, history).scores.tolist() == [float(t.state == "complete") for t in history.finished]


def test_without_failures_there_is_nothing_to_model():
    of = Problem(SPACE)
    opt = Optimizer(of, budget=None, seed=0)
    opt.add({"a": 0.5, "b": 0.0}, None, 1.0)
    assert not after(of, opt.history, success=True)


def test_what_why_says_is_in_the_units_of_the_user():
    of = problem(c=AtMost(0.4))
    found = after(of, known(of, outcome=lambda x, z: {"c": 100.0 * x["a"]}))
    u = SPACE.to_unit([{"a": 0.7, "b": 0.0}])[0]
    said = found.why(u)
    assert said["feasible"] == said["outcomes"]["c"]["probability"]
    assert said["outcomes"]["c"]["mean"] == pytest.approx(70.0, abs=5.0)
    assert said["outcomes"]["c"]["limit"] == 0.4
