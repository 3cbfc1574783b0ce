"""Regret and the bounds of the theorems: closed forms, loops, and runs that stay below."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca import theory
from boca.bench import records
from boca.domain.errors import InvalidInput

N = np.array([1, 5, 20, 100, 1000])


def test_c_1_and_rho_0_in_numbers():
    assert theory.c_1(1.0) == pytest.approx(8.0 / math.log(2.0))
    assert theory.c_1(0.5) < theory.c_1(1.0)  # the printed log(1 + eta^2) would rise as noise falls
    assert theory.rho_0(0.9, 8) == 2.0
    assert theory.rho_0(0.1, 1) == pytest.approx(1.0 + math.sqrt(21.0 / 2.0))
    with pytest.raises(InvalidInput, match="alpha"):
        theory.rho_0(1.0, 2)


def test_the_target_queries_that_a_capital_pays_for():
    assert theory.target_queries(30.0, 1.0) == 30
    assert theory.target_queries(0.1 * 3, 0.1) == 3  # 0.30000000000000004 / 0.1 is below 3 in some orders
    assert theory.target_queries(2.99, 1.0) == 2


def test_simple_regret_is_a_loop_over_the_affordable_queries():
    rng = np.random.default_rng(0)
    short, cost, at = rng.random(40), 0.1 + rng.random(40), rng.random(40) < 0.4
    for capital in (0.05, 1.0, 5.0, 17.0, 100.0):
        spent, best = 0.0, math.inf
        for s, c, here in zip(short, cost, at, strict=True):
            spent += c
            if spent > capital:
                break
            best = min(best, s) if here else best
        assert theory.simple_regret(short, at, cost, capital) == best
    assert theory.simple_regret(short, np.zeros(40, bool), cost, 100.0) == math.inf


def test_simple_regret_is_that_of_the_bench():
    bench = boca.problems.get("branin")
    optimizer = boca.Optimizer(bench.problem, budget=boca.targets(6), strategy=boca.RandomSearch(), seed=0)
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, 0.0)
    trials = list(optimizer.history)
    at = np.array([bench.problem.is_target(t.z) for t in trials])
    short = np.array([bench.optimum - bench.value(t.x) for t in trials])
    capital = 6.0 * bench.problem.target_cost
    record = {
        "capital": capital,
        "optimum": bench.optimum,
        "direction": "maximize",
        "trace": {
            "spent": np.cumsum([t.cost for t in trials]).tolist(),
            "at_target": at.tolist(),
            "value": [bench.value(t.x) if here else None for t, here in zip(trials, at, strict=True)],
        },
    }
    ours = [theory.simple_regret(short, at, [t.cost for t in trials], share * capital) for share in records.SHARES]
    assert ours == pytest.approx(records.regrets(record))


def test_cumulative_regret_splits_into_the_good_set_and_the_rest():
    short, at, inside = np.arange(6.0), np.array([1, 0, 1, 1, 0, 1], bool), np.array([1, 1, 0, 1, 0, 0], bool)
    whole = theory.cumulative_regret(short, at)
    assert whole.tolist() == [0.0, 0.0, 2.0, 5.0, 5.0, 10.0]
    parts = theory.cumulative_regret(short, at & inside) + theory.cumulative_regret(short, at & ~inside)
    np.testing.assert_array_equal(whole, parts)


def test_the_beta_of_gp_ucb_in_the_logarithm_of_its_covering():
    """2 log(|G_t| 2 pi^2 t^2 / 3 delta) with |G_t| = (t^2 b d r sqrt(4 a d / delta))^d, as in its proof."""
    constants = theory.Theorem(delta=0.05, a=2.0, b=1.5, r=3.0)
    for t, d in ((1, 1), (7, 3), (500, 6)):
        size = (t**2 * 1.5 * d * 3.0 * math.sqrt(4.0 * 2.0 * d / 0.05)) ** d
        expected = 2.0 * math.log(size * 2.0 * math.pi**2 * t**2 / (3.0 * 0.05))
        assert theory.gp_ucb_beta(t, d, constants) == pytest.approx(expected, rel=1e-12)


def test_the_bounds_are_their_rates_times_constants_and_terms_that_vanish():
    gain, good, beta, eta2 = np.log(1.0 + N) ** 2, 0.1 * np.log(1.0 + N) ** 2, 3.0 + np.log(N), 0.05
    root = np.sqrt(theory.c_1(eta2) * beta)
    np.testing.assert_allclose(
        theory.gp_ucb_bound(N, beta, gain, eta2=eta2), root * theory.gp_ucb_rate(N, gain) + math.pi**2 / 6.0
    )
    rate = theory.boca_rate(N, good, gain, alpha=0.5)
    np.testing.assert_allclose(
        theory.boca_bound(N, beta, good, gain, alpha=0.5, eta2=eta2),
        math.sqrt(2.0) * root * rate + math.pi**2 / (6.0 * N),
    )
    by_hand = [math.sqrt(g / n) + math.sqrt(e / n**1.5) for n, g, e in zip(N, good, gain, strict=True)]
    np.testing.assert_allclose(rate, by_hand)


def test_a_small_good_set_beats_gp_ucb_for_many_queries_and_a_large_one_never_does():
    n = 10.0 ** np.arange(1, 9)
    gain = np.log(n) ** 3
    gp_ucb = theory.gp_ucb_rate(n, gain)
    small = theory.boca_rate(n, 0.01 * gain, gain, alpha=0.3) / gp_ucb
    assert small[-1] < 0.2
    assert np.all(theory.boca_rate(n, gain, gain, alpha=0.3) > gp_ucb)


def test_runs_of_gp_ucb_with_the_beta_of_its_theorem_stay_below_its_bound():
    """On functions drawn from the GP, on a line, with a brute-force maximum."""
    U, eta2, n = np.linspace(0.0, 1.0, 101)[:, None], 0.05, 25
    K = theory.gap.correlation("se", U, U, 0.1)
    gain = theory.greedy_gain(U, n, h=0.1, eta2=eta2).at_most
    constants = theory.Theorem(delta=0.1, a=2.0, b=math.sqrt(2.0) / 0.1, r=1.0)
    beta = [theory.gp_ucb_beta(t, 1, constants) for t in range(1, n + 1)]
    bound = theory.gp_ucb_bound(np.arange(1, n + 1), beta, gain, eta2=eta2)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        f = np.linalg.cholesky(K + 1e-9 * np.eye(101)) @ rng.standard_normal(101)
        rows, y = [], []
        for t in range(n):
            A = np.linalg.inv(K[np.ix_(rows, rows)] + eta2 * np.eye(t)) if t else np.zeros((0, 0))
            k = K[rows] if t else np.zeros((0, 101))
            mean, variance = k.T @ A @ np.array(y), 1.0 - np.einsum("ij,ik,kj->j", k, A, k)
            rows.append(int(np.argmax(mean + np.sqrt(beta[t] * np.maximum(variance, 0.0)))))
            y.append(f[rows[-1]] + math.sqrt(eta2) * rng.standard_normal())
        simple = np.minimum.accumulate(f.max() - f[rows])
        assert np.all(simple <= bound)
