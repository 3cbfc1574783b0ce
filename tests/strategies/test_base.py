"""The paper's beta, the protocols of a strategy, and the keys of `why` that all models share."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca.domain.errors import InvalidInput
from boca.strategies.base import HasCheck, HasPosterior, Strategy, beta, check, explain, posterior, shares_batches


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


# Protocols ------------------------------------------------------------------------------------------------------------

PROBLEM = boca.Problem(boca.Space(x=boca.Float(0.0, 1.0)), direction="minimize")


class Refusing(boca.RandomSearch):
    def check(self, problem):
        raise InvalidInput(f"not {problem.direction}")


def study(strategy, results=6):
    optimizer = boca.Optimizer(PROBLEM, budget=None, strategy=strategy, seed=0)
    for k in range(results):
        optimizer.add({"x": k / 5}, None, math.sin(4.0 * k / 5))
    return optimizer


def test_every_strategy_of_the_library_has_the_protocol():
    for strategy in (boca.Boca(), boca.GPUCB(), boca.GPEI(), boca.MFGPUCB(), boca.MFSKO(), boca.RandomSearch()):
        assert isinstance(strategy, Strategy)
        assert isinstance(strategy, HasPosterior) == isinstance(strategy, HasCheck)
        assert isinstance(strategy, HasPosterior) == (not isinstance(strategy, boca.RandomSearch))


def test_a_strategy_may_refuse_a_problem_and_one_without_check_accepts_all():
    check(boca.RandomSearch(), PROBLEM)
    with pytest.raises(InvalidInput, match="not minimize"):
        check(Refusing(), PROBLEM)


def test_there_is_no_posterior_before_the_first_result():
    optimizer = study(boca.Boca(), results=0)
    optimizer.fail(optimizer.ask(), "lost")
    assert posterior(boca.Boca(), PROBLEM, optimizer.history) is None


def test_a_strategy_without_a_model_has_the_posterior_of_the_default():
    optimizer = study(boca.RandomSearch())
    U = np.linspace(0.0, 1.0, 5)[:, None]
    found, default = (posterior(s, PROBLEM, optimizer.history) for s in (boca.RandomSearch(), boca.Boca()))
    np.testing.assert_array_equal(found.moments(U), default.moments(U))


def test_the_posterior_leaves_running_trials_out():
    optimizer = study(boca.Boca())
    U = np.linspace(0.0, 1.0, 5)[:, None]
    before = posterior(boca.Boca(), PROBLEM, optimizer.history).moments(U)
    optimizer.enqueue({"x": 0.47})
    optimizer.ask()
    np.testing.assert_array_equal(posterior(boca.Boca(), PROBLEM, optimizer.history).moments(U), before)


def test_why_has_the_moments_in_the_users_units():
    optimizer = study(boca.RandomSearch())
    optimizer.ask()
    model = posterior(boca.Boca(), PROBLEM, optimizer.history)
    u = np.array([0.3])
    why = explain(model, optimizer.history, u, phase="model", reason="Because.", beta=4.0, more="yes")
    mu, sigma = (float(moment[0]) for moment in model.moments(u[None, :]))
    assert why["mean"] == pytest.approx(-model.standard.location - model.standard.scale * mu)
    assert why["std"] == pytest.approx(model.standard.scale * sigma)
    assert why["ucb"] == pytest.approx(why["mean"] - 2.0 * why["std"])  # minimized: the bound is the lower one
    assert (why["reason"], why["phase"], why["beta"], why["more"]) == ("Because.", "model", 4.0, "yes")
    assert why["hyperparameters"] == model.hyperparameters()
    assert why["pending"] == [6]
    assert why["refit"] == ("fit" in why)


@pytest.mark.parametrize(
    ("strategy", "shares"),
    [
        (boca.Boca(), True),
        (boca.Boca(share_batch=False), False),
        (boca.Boca.paper(), False),
        (boca.GPEI(), False),
        (boca.RandomSearch(), False),
    ],
    ids=["default", "off", "paper", "gp-ei", "random"],
)
def test_the_default_alone_shares_what_chooses_a_batch(strategy, shares):
    assert shares_batches(strategy) is shares
