"""A run ends when no query is worth its price: the rule against integrals, the Gittins index, and whole runs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

import boca
from boca.domain.errors import InvalidInput
from boca.execution import stopping
from boca.gp import fit as gp_fit
from boca.model.warp import Warp
from support.strategies import EARLIER

LINE = boca.Space(a=boca.Float(0.0, 1.0))
KNOWN = {"kappa0": 2.0, "eta2": 0.1, "mean": 0.5, "h_x": [0.2], "h_z": [0.8]}
TWO = boca.Problem(LINE, boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + 0.9 * z["z"] ** 2)


def told(problem, strategy, n=8, *, sign=1.0):
    """Return a study with n results at the target, and one more that the model chose."""
    optimizer = boca.Optimizer(problem, budget=None, strategy=strategy, seed=0)
    for a in np.linspace(0.05, 0.95, n):
        optimizer.add({"a": a}, problem.target, sign * math.sin(5.0 * a))
    trial = optimizer.ask()
    optimizer.tell(trial, sign * math.sin(5.0 * trial.x["a"]))
    return optimizer


def improvement(mean, deviation, best):
    """Return the expected improvement as an integral over a fine grid."""
    t = np.linspace(-9.0, 9.0, 20_001)
    return float(np.trapezoid(np.maximum(mean + deviation * t - best, 0.0) * norm.pdf(t), t))


def gittins(mean, deviation, cost):
    """Return the g over which the expected improvement is worth the cost exactly."""

    def gain(g):
        u = (mean - g) / deviation
        return deviation * (u * norm.cdf(u) + norm.pdf(u)) - cost

    return brentq(gain, mean - 2.0 * cost - 9.0 * deviation, mean + 12.0 * deviation)


def explicit(problem, history, u, z):
    """Return the mean of f at x, and by how much a query at z moves it, from the explicit inverse."""
    X = np.array([[t.x["a"], t.z.get("z", 1.0)] for t in history])
    y = np.array([t.value for t in history])

    def k(A, B):
        return 2.0 * np.exp(-0.5 * (((A[:, None] - B[None]) / [0.2, 0.8]) ** 2).sum(axis=2))

    inverse = np.linalg.inv(k(X, X) + 0.1 * np.eye(len(X)))
    points = np.array([[u, z], [u, 1.0]])
    mean = 0.5 + k(points, X) @ inverse @ (y - 0.5)
    cov = k(points, points) - k(points, X) @ inverse @ k(X, points)
    return mean[1], cov[0, 1] / math.sqrt(cov[0, 0] + 0.1)


def test_the_surplus_is_the_price_of_the_improvement_less_the_cost():
    """The best over a dense grid of x and z by integrals, and the one that the rule finds."""
    optimizer = told(TWO, boca.Boca(hyperparameters=KNOWN))
    history = optimizer.history
    model = optimizer.strategy.posterior(TWO, history)
    best = max(explicit(TWO, history, t.x["a"], 1.0)[0] for t in history)
    price = 10.0
    found = stopping.surplus(TWO, history, model, price)
    brute = max(
        price * improvement(*explicit(TWO, history, u, z), best) - TWO.cost({"z": z})
        for u in np.linspace(0.0, 1.0, 81)
        for z in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    assert np.max(found) == pytest.approx(brute, abs=0.05)
    assert np.max(found) >= brute - 0.01


def test_without_noise_the_rule_compares_the_gittins_index_with_the_best():
    """The index of x is the g with price * E max(f(x) - g, 0) = cost; it pays to go on while some index is above."""
    problem = boca.Problem(LINE, cost=lambda z: 1.0)
    known = {"kappa0": 2.0, "eta2": 1e-9, "mean": 0.5, "h_x": [0.2]}
    optimizer = told(problem, boca.GPEI(maximizer="sobol", hyperparameters=known))
    model = optimizer.strategy.posterior(problem, optimizer.history)
    best = max(t.value for t in optimizer.history)
    mu, sigma = model.moments(np.linspace(0.0, 1.0, 1001)[:, None])
    seen = set()
    for price in (0.3, 10.0, 1e2, 1e3, 2e4, 1e5):
        worth = stopping.is_worth_it(problem, optimizer.strategy, optimizer.history, price)
        index = max(gittins(m, s, 1.0 / price) for m, s in zip(mu, sigma, strict=True) if s > 1e-7)
        if abs(index - best) > 1e-5:  # the grid of x is coarse
            assert worth == (index > best), price
            seen.add(worth)
    assert seen == {True, False}


def test_before_there_is_a_model_and_a_result_at_the_target_the_run_goes_on():
    rule = boca.stopping.NotWorthIt(price=1e-9).of(TWO, boca.Boca())
    optimizer = boca.Optimizer(TWO, budget=boca.targets(10), seed=0)
    assert rule(optimizer.history) is False
    optimizer.tell(optimizer.ask(), 1.0)
    assert rule(optimizer.history) is False
    away = boca.Optimizer(TWO, budget=None, seed=0)
    for a in (0.1, 0.5, 0.9):
        away.add({"a": a}, {"z": 0.2}, a)
    assert rule(away.history) is False


@pytest.mark.parametrize("strategy", [boca.Boca(), boca.MFGPUCB(maximizer="sobol"), boca.RandomSearch()])
def test_a_low_price_ends_a_study_and_a_high_one_does_not(strategy):
    optimizer = told(TWO, strategy)
    while not any(t.phase == "model" for t in optimizer.history) and not isinstance(strategy, boca.RandomSearch):
        trial = optimizer.ask()
        optimizer.tell(trial, math.sin(5.0 * trial.x["a"]))
    assert boca.stopping.NotWorthIt(price=1e-3).of(TWO, strategy)(optimizer.history) is bool(optimizer.history.chosen)
    assert boca.stopping.NotWorthIt(price=1e12).of(TWO, strategy)(optimizer.history) is False


def test_a_problem_with_limits_is_refused():
    """The improvement of an infeasible point is worth nothing, and the rule would count it."""
    of = boca.Problem(LINE, subject_to={"c": boca.AtMost(1.0)})
    with pytest.raises(InvalidInput, match=r"NotWorthIt.*subject_to limits \['c'\].*leave stop or subject_to out"):
        boca.stopping.NotWorthIt(price=1.0).of(of, boca.Boca())


def test_the_rule_is_the_same_for_a_minimum():
    mirrored = boca.Problem(TWO.space, TWO.fidelity, cost=TWO.cost, direction="minimize")
    found = []
    for problem, sign in ((TWO, 1.0), (mirrored, -1.0)):
        strategy = boca.Boca(hyperparameters=KNOWN | {"mean": 0.5 * sign})
        optimizer = told(problem, strategy, sign=sign)
        model = strategy.posterior(problem, optimizer.history)
        found.append(np.max(stopping.surplus(problem, optimizer.history, model, 10.0)))
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_a_run_ends_before_its_budget_near_the_optimum():
    bench = boca.problems.get("branin")
    settings = {"cost": bench.problem.cost, "target": bench.problem.target, "budget": bench.budget, "seed": 0}
    spent = {}
    for price in (0.1, 10.0):
        result = boca.maximize(
            bench.value,
            bench.problem.space,
            bench.problem.fidelity,
            stop=boca.stopping.NotWorthIt(price=price),
            strategy=EARLIER,
            **settings,
        )
        spent[price] = result.spent / bench.problem.target_cost
    assert spent[0.1] <= spent[10.0] < 50.0
    assert bench.optimum - bench.value(result.x) < 0.1  # less than a query at the target is worth


@pytest.mark.parametrize("price", [0, -1.0, math.inf, math.nan, "much", None])
def test_a_price_is_a_positive_number(price):
    with pytest.raises(InvalidInput, match="price"):
        boca.stopping.NotWorthIt(price=price)


@pytest.mark.parametrize("stop", [3, "soon", boca.stopping.NotWorthIt])
def test_what_is_no_rule_is_refused(stop):
    with pytest.raises((InvalidInput, TypeError)):
        boca.maximize(lambda x: 0.0, LINE, budget=boca.targets(2), stop=stop)


def test_under_a_warp_the_improvement_is_in_the_units_of_the_values():
    """The integral against draws that are mapped back, and against the closed form for a map that is nearly a line."""
    problem = boca.Problem(LINE)
    history = told(problem, boca.Boca(hyperparameters=KNOWN | {"h_z": []})).history
    model = boca.Surrogate(warp=False).model(problem, history, np.random.default_rng(0))
    mean, moved, best = np.array([-1.0, 0.2]), np.array([0.5, 1.5]), 0.1
    warped = replace(model, warp=Warp(anchor=0.3, spread=0.2, share=0.1))
    draws = mean + moved * np.random.default_rng(1).standard_normal((400_000, 2))

    def told_value(t):
        return warped.warp.inverse(model.standard.location + model.standard.scale * t)

    gains = np.maximum(told_value(draws) - told_value(best), 0.0)
    found = stopping.expected_improvement(warped, mean, moved, best)
    assert np.all(np.abs(found - gains.mean(axis=0)) < 4.0 * gains.std(axis=0) / math.sqrt(len(draws)))
    line = gp_fit.Standardization(0.0, 1e-4)  # so near the anchor the map is nearly a line
    flat = replace(model, warp=Warp(anchor=0.0, spread=3.0, share=1.0), standard=line)
    closed = stopping.expected_improvement(replace(model, standard=line), mean, moved, best)
    np.testing.assert_allclose(stopping.expected_improvement(flat, mean, moved, best), 3.0 * closed, rtol=5e-3)
