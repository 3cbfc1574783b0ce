"""What a study has found: the best observed, and the point to use."""

from __future__ import annotations

import math

import pytest

import boca
from boca import Boca, Float, Problem, RandomSearch, Space, targets
from support.studies import SPACE, Anywhere, f, optimizer

# What was found -------------------------------------------------------------------------------------------------------


def test_best_is_none_before_the_first_complete_trial_at_the_target():
    opt = optimizer(strategy=Anywhere())
    assert opt.best is None
    opt.enqueue({"a": 0.5})
    out = opt.ask()
    assert opt.best is None
    other = opt.ask()
    opt.tell(other, 100.0)
    assert opt.best is None
    opt.tell(out, 1.0)
    assert opt.best.number == out.number
    assert opt.best.value == 1.0


def test_best_is_the_smallest_value_when_minimising():
    problem = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: z["n"], direction="minimize")
    opt = optimizer(problem)
    for trial, value in zip(opt.ask(3), (2.0, -1.0, 0.0), strict=True):
        opt.tell(trial, value)
    assert opt.best.value == -1.0


@pytest.mark.parametrize("strategy", [Boca(), boca.GPEI(maximizer="sobol"), RandomSearch(), Anywhere()])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_recommendation_is_a_point_that_was_run(strategy, direction):
    problem = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: z["n"], direction=direction)
    turn = 1.0 if direction == "maximize" else -1.0
    opt = optimizer(problem, targets(20), strategy=strategy)
    assert opt.recommend() is None
    opt.ask()
    assert opt.recommend() is None
    opt.fail(opt.ask(), "lost")
    assert opt.recommend() is None
    for _ in range(10):
        trial = opt.ask()
        opt.tell(trial, turn * f(trial))
        advice = opt.recommend()
        told = [t for t in opt.history if t.state == "complete"]
        assert advice.x in [t.x for t in told]
        assert advice.verified == any(t.x == advice.x and t.z == problem.target for t in told)
        assert math.isfinite(advice.mean)
        assert advice.std > 0.0
    close = min((t.x["a"] for t in told), key=lambda a: abs(a - 0.3))
    assert abs(opt.recommend().x["a"] - 0.3) <= abs(close - 0.3) + 0.15
    assert opt.recommend().mean == pytest.approx(turn * 0.1, abs=0.1)


def test_a_recommendation_that_ran_at_a_lower_fidelity_only_is_not_verified():
    opt = optimizer(strategy=Boca())
    for a in (0.1, 0.3, 0.6, 0.9):
        opt.add({"a": a}, {"n": 0.5}, -((a - 0.3) ** 2))
    advice = opt.recommend()
    assert advice.x == {"a": 0.3}
    assert advice.verified is False
    opt.add({"a": 0.3}, None, 0.0)
    assert opt.recommend().x == {"a": 0.3}
    assert opt.recommend().verified is True


def test_nothing_completed_at_the_target_is_a_warning():
    opt = optimizer(strategy=Anywhere())
    opt.tell(opt.ask(), 1.0)
    assert any("Nothing was completed at the target" in sentence for sentence in opt.warnings)
    opt.enqueue({"a": 0.5})
    opt.tell(opt.ask(), 1.0)
    assert opt.warnings == ()


# The same query always gives the same value ---------------------------------------------------------------------------


def test_nothing_worse_than_what_was_seen_is_recommended_if_values_repeat():
    problem = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: z["n"], deterministic=True)
    opt = optimizer(problem, strategy=Boca())
    opt.add({"a": 0.9}, {"n": 0.2}, 50.0)  # cheap results promise more than the target has shown
    opt.add({"a": 0.8}, {"n": 0.2}, 49.0)
    assert not opt.recommend().verified
    opt.add({"a": 0.1}, None, 3.0)
    opt.add({"a": 0.2}, None, 4.0)
    advice = opt.recommend()
    assert (advice.x, advice.mean, advice.std, advice.verified) == ({"a": 0.2}, 4.0, 0.0, True)


EVERY_KIND = [Boca(), boca.GPUCB(maximizer="sobol"), boca.MFGPUCB(maximizer="sobol"), RandomSearch()]


@pytest.mark.parametrize("strategy", EVERY_KIND)
def test_nothing_is_run_twice_if_values_repeat(strategy):
    """A space of four points with two fidelities: the study ends when all that it wants is known."""
    space, fidelity = Space(k=boca.Int(1, 4)), Space(n=boca.Int(1, 2))
    problem = Problem(space, fidelity, cost=lambda z: z["n"], deterministic=True)
    opt = boca.Optimizer(problem, budget=targets(20), strategy=strategy, seed=1)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, math.sin(trial.x["k"]) + 0.01 * trial.z["n"])
    run = [(t.x["k"], t.z["n"]) for t in opt.history]
    assert len(set(run)) == len(run) >= 4
    assert {k for k, n in run if n == 2} == {1, 2, 3, 4}
