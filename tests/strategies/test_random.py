"""Random search."""

from __future__ import annotations

import numpy as np
from scipy.stats import kstest

import boca
from boca.search.candidates import STAND_IN

PROBLEM = boca.Problem(
    boca.Space(x=boca.Float(0.0, 4.0)), boca.Space(n=boca.Int(1, 3)), cost=lambda z: float(z["n"]), target={"n": 2}
)


def asked(problem, count, seed=0):
    return boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=seed).ask(count)


def test_points_are_uniform_and_at_the_target():
    trials = asked(PROBLEM, 200)
    assert all(t.z == PROBLEM.target for t in trials)
    assert kstest([t.x["x"] / 4.0 for t in trials], "uniform").pvalue > 0.01


def test_points_of_different_trials_and_seeds_are_independent():
    first, second = ([t.x["x"] for t in asked(PROBLEM, 100, seed=seed)] for seed in (0, 1))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.3
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < 0.3


def test_in_a_small_space_other_fidelities_keep_workers_busy_and_the_reason_says_so():
    problem = boca.Problem(boca.Space(c=boca.Choice(["u", "v"])), PROBLEM.fidelity, cost=lambda z: float(z["n"]))
    trials = asked(problem, 6)
    assert len({(t.x["c"], t.z["n"]) for t in trials}) == 6
    assert [t.why["reason"] == STAND_IN for t in trials] == [t.z != problem.target for t in trials]
