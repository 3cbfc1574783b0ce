"""The paper's equations: each against a case computed by hand, and whole decisions recomputed from `trial.why`.

[K17] Kandasamy et al., 2017.  The second half trusts nothing of the library but the numbers that a trial carries: the
kernel, the posterior, the grid of fidelities and every rule are written out again in plain NumPy.
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

import boca
from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.trial import History
from boca.model.encoding import Encoding
from boca.strategies.boca import Iteration, Theorem, adapted_c, theorem_beta
from boca.strategies.boca_information import (
    candidate_fidelities,
    fidelity_threshold,
    information_gain,
    information_gap,
)
from boca.strategies.boca_turns import AIMS
from support.strategies import EARLIER
from support.trials import made as trial_of

# Beta, by hand ------------------------------------------------------------------------------------------------------


def test_the_beta_of_the_theorem():
    """2 log(pi^2 t^2 / (2 delta)) + 4 d log t + max(0, 2 d log(b r d log(6 a d / delta)))."""
    # t = 1, d = 1, delta = 0.1: 2 log(5 pi^2) + 2 log(log 60)
    assert theorem_beta(1, 1, Theorem(delta=0.1)) == pytest.approx(
        2.0 * math.log(5.0 * math.pi**2) + 2.0 * math.log(math.log(60.0)), rel=1e-14
    )
    # t = 3, d = 2, delta = 0.05, a = 2, b = 3, r = 0.5: written out term by term
    expected = 2.0 * math.log(90.0 * math.pi**2) + 8.0 * math.log(3.0) + 4.0 * math.log(3.0 * math.log(480.0))
    assert theorem_beta(3, 2, Theorem(delta=0.05, a=2.0, b=3.0, r=0.5)) == pytest.approx(expected, rel=1e-14)


def test_the_last_term_of_the_theorems_beta_is_never_negative():
    tiny = Theorem(delta=0.1, b=1e-6)
    assert theorem_beta(5, 2, tiny) == pytest.approx(2 * math.log(125 * math.pi**2) + 8 * math.log(5.0), rel=1e-14)


def test_the_theorems_beta_is_defined_for_any_positive_constants():
    """With a below delta / (6 d) the inner logarithm is negative: the bound on the slope then needs no term at all."""
    expected = 2.0 * math.log(math.pi**2)
    assert theorem_beta(1, 1, Theorem(delta=0.5, a=0.05)) == pytest.approx(expected, rel=1e-14)
    assert theorem_beta(1, 1, Theorem(delta=0.5, a=0.5 / 6.0)) == pytest.approx(expected, rel=1e-14)


# Information gap, by hand -------------------------------------------------------------------------------------------


def fidelity_problem(fidelity, target=None, cost=lambda z: 1.0):
    return boca.Problem(boca.Space(x=boca.Float(0.0, 1.0), y=boca.Int(0, 3)), fidelity, cost=cost, target=target)


def gaps(problem, h_z, points, kernel=None):
    """Return xi at fidelities given by name."""
    encoding = Encoding(problem, "matern52", kernel)
    h = np.array([0.3, 0.3, *h_z])
    return information_gap(*encoding.fidelity_covariance(h, problem.fidelity.to_unit(points)))


def test_the_information_gap_of_a_radial_kernel():
    """xi(z) = sqrt(1 - phi(z - z*)^2); for a squared exponential sqrt(1 - exp(-r^2)), r in bandwidths."""
    problem = fidelity_problem(boca.Space(a=boca.Float(0.0, 10.0), b=boca.Float(1.0, 100.0, log=True)))
    points = [{"a": 10.0, "b": 100.0}, {"a": 5.0, "b": 100.0}, {"a": 10.0, "b": 10.0}, {"a": 0.0, "b": 1.0}]
    xi = gaps(problem, [0.5, 2.0], points)
    assert xi[0] == pytest.approx(0.0, abs=1e-7)
    assert xi[1] == pytest.approx(math.sqrt(1.0 - math.exp(-1.0)), rel=1e-12)  # half the range, one bandwidth
    assert xi[2] == pytest.approx(math.sqrt(1.0 - math.exp(-(0.25**2))), rel=1e-10)
    assert xi[3] == pytest.approx(math.sqrt(1.0 - math.exp(-(2.0**2) - 0.5**2)), rel=1e-12)


def test_the_information_gap_is_zero_at_the_target_wherever_that_is():
    problem = fidelity_problem(boca.Space(a=boca.Float(0.0, 1.0), n=boca.Int(0, 10)), target={"a": 0.3, "n": 4})
    xi = gaps(problem, [0.05, 0.02], [{"a": 0.3, "n": 4}, {"a": 0.31, "n": 4}, {"a": 0.3, "n": 5}])
    assert xi[0] == pytest.approx(0.0, abs=2e-6)
    assert xi[1] == pytest.approx(math.sqrt(1.0 - math.exp(-0.04)), rel=1e-6)
    assert xi[2] == pytest.approx(math.sqrt(1.0 - math.exp(-25.0)), rel=1e-12)


def test_the_information_gap_of_choices_counts_what_differs():
    fidelity = boca.Space(s=boca.Choice(["sim", "lab", "field"]), flag=boca.Choice([False, True]))
    problem = fidelity_problem(fidelity, target={"s": "lab", "flag": True})
    points = [{"s": s, "flag": flag} for s in ("lab", "sim", "field") for flag in (True, False)]
    xi = gaps(problem, [0.8, 1.5], points)
    one, other = 1.0 / 0.8**2, 1.0 / 1.5**2
    expected = [0.0, other, one, one + other, one, one + other]
    np.testing.assert_allclose(xi, [math.sqrt(1.0 - math.exp(-v)) for v in expected], rtol=1e-10, atol=1e-7)


def test_the_information_gap_of_a_kernel_that_is_not_radial():
    """xi^2 = 1 - k(z, z*)^2 / (k(z, z) k(z*, z*)): for k = 1 + a b, z* = 1, z = 0.5 it is 1 - 2.25 / 2.5."""
    problem = fidelity_problem(boca.Space(a=boca.Float(0.0, 1.0)))
    xi = gaps(problem, [], [{"a": 1.0}, {"a": 0.5}, {"a": 0.0}], lambda p, q: 1.0 + p["a"] * q["a"])
    np.testing.assert_allclose(xi, [0.0, math.sqrt(0.1), math.sqrt(0.5)], rtol=1e-12, atol=1e-8)


def test_the_general_gap_of_a_radial_kernel_is_the_radial_one():
    k = np.exp(-0.5 * np.linspace(0.0, 3.0, 7) ** 2)
    np.testing.assert_allclose(information_gap(4.0 * k, np.full(7, 4.0), 4.0), np.sqrt(1.0 - k * k), rtol=1e-12)


@pytest.mark.parametrize("zero", [(0.0, 0.0), (0.75, 0.5), (1.0, 1.0)])
def test_a_kernel_that_vanishes_at_a_fidelity_is_refused_before_its_gap_is_nought_by_nought(zero):
    """k(u, v) = u . v about some origin: nothing is known there, and nothing is there to be known."""
    problem = fidelity_problem(
        boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + z["a"] + z["b"]
    )

    def kernel(p, q):
        return (p["a"] - zero[0]) * (q["a"] - zero[0]) + (p["b"] - zero[1]) * (q["b"] - zero[1])

    strategy = replace(EARLIER, surrogate=replace(EARLIER.surrogate, fidelity_kernel=kernel))
    with pytest.raises(boca.BocaError, match="fidelity_kernel"):
        boca.Optimizer(problem, budget=boca.targets(8), strategy=strategy, seed=0)


# Threshold and filter, by hand --------------------------------------------------------------------------------------


def test_the_threshold_is_scale_times_gap_times_a_power_of_the_cost_ratio():
    """gamma = sqrt(kappa0) xi (cost / cost*)^q: 2 * 0.5 * (1/16)^(1/4) = 0.5."""
    gamma = fidelity_threshold(4.0, np.array([0.5, 0.0, 1.0]), np.array([1 / 16, 1.0, 1.0]), q=0.25)
    np.testing.assert_allclose(gamma, [0.5, 0.0, 2.0], rtol=1e-14)


def test_each_of_the_three_conditions_filters_on_its_own():
    cost = np.array([1.0, 4.0, 5.0, 1.0, 1.0, 1.0, 1.0])
    tau = np.array([2.0, 2.0, 2.0, 1.0, 0.9, 2.0, 2.0])
    threshold = np.full(7, 1.0)
    xi = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 0.2, 0.21])
    passes = candidate_fidelities(cost, 4.0, tau, threshold, xi, 0.2)
    #        all hold, cost equal, dearer, tau equal, tau below, xi equal, all hold
    np.testing.assert_array_equal(passes, [True, False, False, False, False, False, True])


def test_information_gain_is_that_of_two_correlated_normals():
    """-1/2 log(1 - rho^2), rho the correlation of f(x) with the noisy query: cov 1, variances 2 and 1.5 + 0.5."""
    gain = information_gain(np.array([1.0, 0.0]), 2.0, np.array([1.5, 1.5]), 0.5)
    np.testing.assert_allclose(gain, [-0.5 * math.log(0.75), 0.0], rtol=1e-14)
    # a query of f(x) itself: 1/2 log(1 + sigma^2 / eta^2)
    at_target = information_gain(np.array([2.0]), 2.0, np.array([2.0]), 0.5)
    assert at_target[0] == pytest.approx(0.5 * math.log(5.0), rel=1e-14)


def test_information_gain_is_the_entropy_that_a_query_takes_away():
    """By conditioning: entropy of f(x) before less after."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        A = rng.standard_normal((2, 2))
        (sigma2, covariance), (_, tau2) = A @ A.T
        after = sigma2 - covariance**2 / (tau2 + 0.3)
        gain = information_gain(np.array([covariance]), sigma2, np.array([tau2]), 0.3)[0]
        assert gain == pytest.approx(0.5 * math.log(sigma2 / after), rel=1e-8)


def test_a_noiseless_query_of_the_target_tells_much_but_finitely_much():
    gain = information_gain(np.array([1.0]), 1.0, np.array([1.0]), 0.0)
    assert 10.0 < gain[0] < math.inf


# The factor c -------------------------------------------------------------------------------------------------------


def at_target(share, count=20):
    hits = round(share * count)
    return [True] * hits + [False] * (count - hits)


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ([], 1.0),
        ([0.8], 0.5),
        ([0.75], 1.0),  # not more than 75 %
        ([0.25], 1.0),  # not less than 25 %
        ([0.2], 2.0),
        ([0.5], 1.0),
        ([0.8, 0.8], 0.25),
        ([0.8, 0.5, 0.2], 1.0),
        ([1.0] * 4, 0.1),  # 0.0625 is clipped
        ([1.0] * 4 + [0.0], 0.2),  # and grows from the clipped value
        ([0.0] * 5, 20.0),  # 32 is clipped
        ([0.0] * 5 + [1.0], 10.0),
    ],
)
def test_c_follows_the_share_of_target_queries_in_every_twenty(shares, expected):
    assert adapted_c(1.0, [hit for share in shares for hit in at_target(share)]) == pytest.approx(expected, rel=1e-15)


def test_c_waits_for_twenty_iterations_and_looks_at_the_last_twenty_only():
    assert adapted_c(1.0, [True] * 19) == 1.0
    assert adapted_c(1.0, [True] * 20) == 0.5
    assert adapted_c(1.0, [True] * 39) == 0.5
    assert adapted_c(1.0, [True] * 20 + [False] * 20) == 1.0
    assert adapted_c(0.25, [False] * 20) == 0.5


def test_c_stays_where_it_is_if_it_is_not_adapted():
    """Where cheap fidelities say nothing, most queries are at the target, which halves c."""
    bench, found = boca.problems.get("gp-rough", seed=1), {}
    paper = boca.Boca.paper(maximizer="sobol", hyperparameters=bench.hyperparameters)
    for adapts in (True, False):
        strategy = replace(paper, adapt_c=adapts)
        optimizer = boca.Optimizer(bench.problem, budget=boca.targets(12), strategy=strategy, seed=1)
        while (trial := optimizer.ask()) is not None:
            optimizer.tell(trial, bench.value(trial.x, trial.z))
        found[adapts] = {trial.why["c"] for trial in optimizer.history.chosen}
    assert found[False] == {1.0}
    assert found[True] > {1.0}


# One decision in a model that is known ------------------------------------------------------------------------------


def decision(problem, observations, known, *, strategy=None, chosen=()):
    """Return Algorithm 1's state after these (x, z, y); `chosen` are earlier iterations' target flags."""
    strategy = strategy or boca.Boca.paper(hyperparameters=known)
    trials = []
    for x, z, y in observations:
        number = len(trials)
        phase = "model" if number < len(chosen) else "start"
        why = {"phase": phase}
        trials.append(trial_of(number, x, z, 1.0, why, "complete", y, asked=2 * number, told=2 * number + 1))
    history = History(trials)
    model = strategy._model(problem, history, np.random.default_rng(0))
    return Iteration(strategy, problem, history, costs(problem, history), model)


KNOWN = {"kappa0": 4.0, "eta2": 0.25, "mean": 1.0, "h_x": [0.3], "h_z": [0.5]}


def one_by_one(cost=lambda z: 0.1 + z["z"] ** 2, **more):
    return boca.Problem(boca.Space(x=boca.Float(0.0, 1.0)), boca.Space(z=boca.Float(0.0, 1.0)), cost=cost, **more)


def test_the_posterior_of_two_observations_by_hand():
    """[K17, eq. 1] with the inverse of a 2 x 2 matrix written out."""
    problem = one_by_one()
    d = decision(problem, [({"x": 0.2}, {"z": 0.5}, 3.0), ({"x": 0.6}, {"z": 1.0}, -1.0)], KNOWN)
    x, z = 0.5, 1.0

    def k(x, z, y, w):
        return 4.0 * math.exp(-0.5 * ((x - y) / 0.3) ** 2) * math.exp(-0.5 * ((z - w) / 0.5) ** 2)

    a, b = 4.25, k(0.2, 0.5, 0.6, 1.0)
    k1, k2 = k(x, z, 0.2, 0.5), k(x, z, 0.6, 1.0)
    determinant = a * a - b * b
    r1, r2 = 2.0, -2.0
    mean = 1.0 + (k1 * (a * r1 - b * r2) + k2 * (a * r2 - b * r1)) / determinant
    variance = 4.0 - (a * k1 * k1 - 2.0 * b * k1 * k2 + a * k2 * k2) / determinant
    mu, sigma = d.model.moments(np.array([[0.5]]))
    assert mu[0] == pytest.approx(mean, rel=1e-12)
    assert sigma[0] == pytest.approx(math.sqrt(variance), rel=1e-12)


def test_q_is_one_over_p_plus_d_plus_two_and_gamma_follows():
    problem = one_by_one()
    d = decision(problem, [({"x": 0.2}, {"z": 0.5}, 3.0)], KNOWN)
    z = problem.grid[1][:, 0]
    xi = np.sqrt(1.0 - np.exp(-(((1.0 - z) / 0.5) ** 2)))
    np.testing.assert_allclose(d.xi, xi, rtol=1e-9, atol=1e-7)
    np.testing.assert_allclose(d.gamma, 2.0 * xi * ((0.1 + z**2) / 1.1) ** 0.25, rtol=1e-9, atol=1e-6)
    assert d.beta == pytest.approx(0.5 * math.log(2.0 / 0.3 + 1.0), rel=1e-14)
    assert d.least_gap == pytest.approx(math.sqrt(1.0 - math.exp(-4.0)) / math.sqrt(d.beta), rel=1e-12)


def test_the_least_gap_is_the_largest_gap_over_the_space_divided_by_the_root_of_beta():
    """With a target inside, the farthest corner in bandwidths is the one at zero."""
    problem = one_by_one(target={"z": 0.6})
    known = KNOWN | {"h_x": [0.01], "h_z": [2.0]}
    d = decision(problem, [({"x": 0.2}, {"z": 0.5}, 3.0)], known)
    assert d.least_gap * math.sqrt(d.beta) == pytest.approx(math.sqrt(1.0 - math.exp(-((0.6 / 2.0) ** 2))), rel=1e-10)


def test_an_unexplored_point_is_asked_at_the_cheapest_fidelity_that_passes():
    """Far from all data tau = sqrt(kappa0), and z = 0 passes all three conditions: nothing is cheaper."""
    problem = one_by_one()
    d = decision(problem, [({"x": 0.0}, {"z": 1.0}, 3.0)], KNOWN | {"h_x": [0.01]})
    assert d.fidelity(np.array([0.9])) == {"z": 0.0}


def test_with_no_candidate_left_the_target_is_asked():
    """A point known at every fidelity up to a little noise: tau is below gamma everywhere."""
    problem = one_by_one()
    known = KNOWN | {"eta2": 1e-4, "h_x": [0.01]}
    d = decision(problem, [({"x": 0.5}, {"z": z}, 0.0) for z in np.linspace(0.0, 1.0, 11)], known)
    assert d.fidelity(np.array([0.5])) == {"z": 1.0}
    assert d.fidelity(np.array([0.9])) == {"z": 0.0}


def test_where_nothing_is_cheaper_than_the_target_the_target_is_asked():
    for cost in (lambda z: 3.0, lambda z: 2.0 - z["z"]):
        d = decision(one_by_one(cost), [({"x": 0.0}, {"z": 1.0}, 3.0)], KNOWN | {"h_x": [0.01]})
        assert d.fidelity(np.array([0.9])) == {"z": 1.0}


def test_of_equal_cost_the_smallest_gap_is_taken_and_of_equal_gaps_the_first():
    fidelity = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0))
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.001], "h_z": [1.0, 1.0]}
    x = boca.Space(x=boca.Float(0.0, 1.0))
    observed = [({"x": 0.0}, {"a": 1.0, "b": 1.0}, 0.0)]
    # everything but the target costs the same: the smallest gap above the least gap, not the largest
    flat = boca.Problem(x, fidelity, cost=lambda z: 0.01 if min(z["a"], z["b"]) < 1.0 else 1.0)
    d = decision(flat, observed, known)
    z = d.fidelity(np.array([0.9]))
    s = (1.0 - z["a"]) ** 2 + (1.0 - z["b"]) ** 2
    levels = [((i / 20) ** 2 + (j / 20) ** 2, 1 - i / 20, 1 - j / 20) for i in range(21) for j in range(21)]
    allowed = [level for level in levels if math.sqrt(1.0 - math.exp(-level[0])) > d.least_gap]
    assert s == pytest.approx(min(allowed)[0], rel=1e-9)
    # of the mirror images (a, b) and (b, a) the one that comes first in the grid, which runs over b fastest
    assert z["a"] <= z["b"]
    # a cost without b has an edge of equal cost at a = 0: b as near the target as the third condition allows
    edge = boca.Problem(x, fidelity, cost=lambda z: 0.1 + z["a"])
    d = decision(edge, observed, known)
    assert d.fidelity(np.array([0.9])) == {"a": 0.0, "b": 1.0}


def test_information_per_cost_asks_the_target_where_a_cheap_query_is_poor_value():
    """A fidelity at 9 tenths of the cost with a gap of 0.9 passes the paper's conditions and fails this one."""
    problem = boca.Problem(
        boca.Space(x=boca.Float(0.0, 1.0)),
        boca.Space(s=boca.Choice(["poor", "true"])),
        cost=lambda z: 0.9 if z["s"] == "poor" else 1.0,
        target={"s": "true"},
    )
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.01], "h_z": [0.8]}
    observed = [({"x": 0.0}, {"s": "true"}, 0.0)]
    plain = decision(problem, observed, known, strategy=boca.Boca.paper(hyperparameters=known))
    assert plain.fidelity(np.array([0.9])) == {"s": "poor"}
    careful = decision(problem, observed, known, strategy=replace(EARLIER, hyperparameters=known))
    assert careful.fidelity(np.array([0.9])) == {"s": "true"}
    # the same gap at a hundredth of the cost is good value: rho^2 = exp(-1/h^2) / 1.01
    rho2 = math.exp(-1.0 / 0.8**2) / 1.01
    cheap = -0.5 * math.log(1.0 - rho2) / (0.5 * math.log(101.0))
    for share, expected in ((0.99 * cheap, "poor"), (1.01 * cheap, "true")):
        priced = boca.Problem(
            problem.space,
            problem.fidelity,
            cost=lambda z, s=share: s if z["s"] == "poor" else 1.0,
            target={"s": "true"},
        )
        d = decision(priced, observed, known, strategy=replace(EARLIER, hyperparameters=known, first_c=0.1))
        assert d.fidelity(np.array([0.9])) == {"s": expected}


def test_the_upper_bound_is_maximized_over_a_lattice_as_looking_at_every_point_finds():
    """[K17, eq. 6] on 24 points, mu + sqrt(beta) sigma at each by the explicit inverse."""
    problem = boca.Problem(
        boca.Space(n=boca.Int(0, 7), c=boca.Choice(["u", "v", "w"])),
        boca.Space(z=boca.Int(0, 3)),
        cost=lambda z: 1.0 + z["z"],
    )
    known = {"kappa0": 2.0, "eta2": 0.1, "mean": -0.5, "h_x": [0.4, 0.7], "h_z": [0.9]}
    rng = np.random.default_rng(3)
    for seed in range(5):
        strategy = boca.Boca.paper(maximizer="sobol", hyperparameters=known)
        optimizer = boca.Optimizer(problem, budget=boca.targets(6), strategy=strategy, seed=seed)
        for _ in range(6):
            x = {"n": int(rng.integers(8)), "c": "uvw"[rng.integers(3)]}
            optimizer.add(x, {"z": int(rng.integers(4))}, float(rng.standard_normal()))
        told = list(optimizer.history)

        def k(x, z, y, w):
            s = ((x["n"] - y["n"]) / 7 / 0.4) ** 2 + (x["c"] != y["c"]) / 0.7**2 + ((z["z"] - w["z"]) / 3 / 0.9) ** 2
            return 2.0 * math.exp(-0.5 * s)

        K = np.array([[k(a.x, a.z, b.x, b.z) for b in told] for a in told]) + 0.1 * np.eye(6)
        K_inv = np.linalg.inv(K)
        root = math.sqrt(0.5 * 2 * math.log(2.0 * (1 / 0.4 + 1 / 0.7) + 1.0))
        bounds = {}
        for n, c in itertools.product(range(8), "uvw"):
            v = np.array([k({"n": n, "c": c}, {"z": 3}, t.x, t.z) for t in told])
            mu = -0.5 + v @ K_inv @ (np.array([t.value for t in told]) + 0.5)
            bounds[n, c] = mu + root * math.sqrt(2.0 - v @ K_inv @ v)
        trial = optimizer.ask()
        assert trial.why["ucb"] == pytest.approx(max(bounds.values()), rel=1e-10)
        assert bounds[trial.x["n"], trial.x["c"]] == pytest.approx(max(bounds.values()), rel=1e-10)


def test_the_theorems_beta_is_used_where_it_is_asked_for():
    known = KNOWN
    strategy = boca.Boca.paper(hyperparameters=known, theorem=Theorem(delta=0.2))
    d = decision(one_by_one(), [({"x": 0.2}, {"z": 0.5}, 3.0)] * 3, known, strategy=strategy, chosen=[False, False])
    expected = 2 * math.log(math.pi**2 * 9 / 0.4) + 4 * math.log(3) + 2 * math.log(math.log(30.0))
    assert d.beta == pytest.approx(expected, rel=1e-14)


# Whole runs, recomputed ---------------------------------------------------------------------------------------------


Run = namedtuple("Run", "problem history matern paper")


def minimized():
    """Minimize a shifted bowl whose low fidelities are biased; every result comes with a variance of its own."""
    problem = boca.Problem(
        boca.Space(a=boca.Float(-2.0, 3.0), b=boca.Float(1e-3, 1e2, log=True)),
        boca.Space(N=boca.Int(10, 200), T=boca.Float(0.5, 1.0)),
        cost=lambda z: z["N"] * z["T"],
        direction="minimize",
    )

    def g(x, z):
        return 50.0 + (x["a"] - 0.7) ** 2 + (math.log10(x["b"]) + 1.0) ** 2 + 20.0 / z["N"] + (1.0 - z["T"])

    return problem, g, 0.02


def mixed():
    """Integers and choices in the domain and in the fidelities, a target inside, and dearer fidelities beyond it."""
    problem = boca.Problem(
        boca.Space(kind=boca.Choice(["u", "v", "w"]), n=boca.Int(0, 30), x=boca.Float(0.0, 1.0)),
        boca.Space(source=boca.Choice(["sim", "lab"]), level=boca.Int(1, 9)),
        cost=lambda z: (0.1 if z["source"] == "sim" else 1.0) * z["level"],
        target={"source": "lab", "level": 7},
    )

    def g(x, z):
        bonus = {"u": 0.0, "v": 0.5, "w": 0.3}[x["kind"]] - (0.2 if z["source"] == "sim" else 0.0)
        return bonus + math.sin(x["n"] / 6.0) - (x["x"] - 0.4) ** 2 + 0.05 * z["level"]

    return problem, g, None


def benchmark(name):
    bench = boca.problems.get(name, seed=0)
    return bench.problem, bench.value, None


CASES = {
    "branin": lambda: benchmark("branin"),
    "currin": lambda: benchmark("currin"),
    "minimized": minimized,
    "mixed": mixed,
}
STRATEGIES = {"boca": EARLIER, "paper": boca.Boca.paper(maximizer="sobol")}


@pytest.fixture(scope="module", params=[(case, kind) for case in CASES for kind in STRATEGIES], ids="-".join)
def run(request):
    """Forty trials, and on to the target; now and then three are out at a time and told out of order, some fail."""
    case, kind = request.param
    problem, g, variance = CASES[case]()
    noise = np.random.default_rng(1)
    optimizer = boca.Optimizer(problem, budget=boca.targets(12), strategy=STRATEGIES[kind], seed=3)
    out = []

    def is_enough():
        reached = any(t.phase == "model" and problem.is_target(t.z) for t in optimizer.history)
        return len(optimizer.history) >= 44 and reached

    while not is_enough() and (trial := optimizer.ask()) is not None:
        out.append(trial)
        if len(out) < (3 if trial.number % 9 > 5 else 1):
            continue
        for done in reversed(out):
            if done.number % 13 == 7:
                optimizer.fail(done, "no luck")
            else:
                value = g(done.x, done.z) + 0.05 * float(noise.standard_normal())
                optimizer.tell(done, value, noise=variance if done.number % 2 else None)
        out = []
    return Run(problem, optimizer.history, kind == "boca", kind == "paper")


def decided(run, *, acquisition=None):
    """Return the trials that a model chose, with those whose results it knew and those that were out."""
    for trial in run.history:
        if trial.phase not in ("model", "final") or (acquisition and trial.why["acquisition"] not in acquisition):
            continue
        before = run.history.read_by(trial)
        yield trial, list(before.finished), list(before.running)


class Replay:
    """The model behind one trial, from its `why` and the results alone, in plain NumPy and the user's units.

    With `alone`, it is one of the results at the target.
    """

    def __init__(self, run, trial, told, out, *, shrink=1.0, alone=False):
        self.problem = problem = run.problem
        self.matern = run.matern
        self.sign = -1.0 if problem.direction == "minimize" else 1.0
        numbers = trial.why["hyperparameters"]
        self.kappa0, self.eta2 = numbers["kappa0"], numbers["eta2"]
        self.m = self.sign * numbers["mean"]
        self.h_x, self.h_z = np.array(numbers["h_x"]) / shrink, np.array(numbers["h_z"])
        lowest = min(self.sign * t.value for t in told if t.value is not None)  # of all results
        if alone:
            told, out = ([t for t in trials if problem.is_target(t.z)] for trials in (told, out))
        self.y = np.array([lowest if t.value is None else self.sign * t.value for t in told])
        self.points = [(t.x, t.z) for t in told + out]
        self.n = len(told)
        variance = np.array([t.noise or 0.0 for t in told] + [0.0] * len(out))
        self.K = self.k(self.points, self.points) + np.diag(self.eta2 + variance)
        self.L = np.linalg.cholesky(self.K)

    @staticmethod
    def squares(space, h, a, b):
        """Return the squared distances in bandwidths of numbers, and of choices, for all pairs."""
        numbers, choices = np.zeros((len(a), len(b))), np.zeros((len(a), len(b)))
        for width, (name, parameter) in zip(h, space.items(), strict=True):
            if isinstance(parameter, boca.Choice):
                choices += np.array([[p[name] != q[name] for q in b] for p in a]) / width**2
                continue
            move = math.log if parameter.log else float
            low, high = move(parameter.low), move(parameter.high)
            u = np.array([(move(p[name]) - low) / (high - low) for p in a])
            v = np.array([(move(q[name]) - low) / (high - low) for q in b])
            numbers += ((u[:, None] - v[None, :]) / width) ** 2
        return numbers, choices

    def k(self, a, b):
        numbers, choices = self.squares(self.problem.space, self.h_x, [x for x, _ in a], [x for x, _ in b])
        s_z = sum(self.squares(self.problem.fidelity, self.h_z, [z for _, z in a], [z for _, z in b]))
        if self.matern:
            r = np.sqrt(5.0 * numbers)
            domain = (1.0 + r + r * r / 3.0) * np.exp(-r) * np.exp(-0.5 * choices)
        else:
            domain = np.exp(-0.5 * (numbers + choices))
        return self.kappa0 * domain * np.exp(-0.5 * s_z)

    def mean(self, points):
        """Results alone have a say in the mean; what is out only takes variance away."""
        L = self.L[: self.n, : self.n]
        alpha = np.linalg.solve(L.T, np.linalg.solve(L, self.y - self.m))
        return self.m + self.k(points, self.points[: self.n]) @ alpha

    def covariance(self, a, b):
        v, w = np.linalg.solve(self.L, self.k(self.points, a)), np.linalg.solve(self.L, self.k(self.points, b))
        return self.k(a, b) - v.T @ w

    def variances(self, points):
        v = np.linalg.solve(self.L, self.k(self.points, points))
        return np.maximum(self.kappa0 - np.einsum("ij,ij->j", v, v), 1e-14 * self.kappa0)

    def at_target(self, x):
        """Return mean and deviation of f at x, so that more is better."""
        point = [(x, self.problem.target)]
        return float(self.mean(point)[0]), math.sqrt(float(self.variances(point)[0]))

    def gap(self, zs):
        return np.sqrt(1.0 - np.exp(-sum(self.squares(self.problem.fidelity, self.h_z, zs, [self.problem.target]))))[
            :, 0
        ]

    def beta(self, t):
        return 0.5 * len(self.h_x) * math.log(2.0 * float(np.sum(1.0 / self.h_x)) * t + 1.0)


def grid_by_hand(fidelity):
    """101, 21, 10 points a dimension, ends included; integers on their lattice, choices complete."""
    points = {1: 101, 2: 21, 3: 10}[len(fidelity)]
    axes = []
    for parameter in fidelity.values():
        if isinstance(parameter, boca.Choice):
            axes.append(list(parameter.choices))
        elif isinstance(parameter, boca.Int):
            spread = np.linspace(parameter.low, parameter.high, min(points, parameter.high - parameter.low + 1))
            axes.append([round(v) for v in spread])
        else:
            axes.append([parameter.low + u * (parameter.high - parameter.low) for u in np.linspace(0.0, 1.0, points)])
    return [dict(zip(fidelity, values, strict=True)) for values in itertools.product(*axes)]


def same(z, w):
    """Whether two fidelities are one, up to the rounding of a grid made in another way."""
    return all(z[name] == w[name] or (not isinstance(z[name], str) and abs(z[name] - w[name]) < 1e-12) for name in z)


def iteration(run, trial):
    return sum(t.phase in ("model", "final") and t.number < trial.number for t in run.history) + 1


def judged(run, trial, replay, x, beta, c):
    """Return for every grid point whether it surely is in Z_t(x), and whether it may be, up to rounding."""
    problem = run.problem
    zs = grid_by_hand(problem.fidelity)
    d, p = len(problem.space), len(problem.fidelity)
    cost = np.array([problem.cost(z) for z in zs])
    star = problem.cost(problem.target)
    xi = replay.gap(zs)
    tau2 = replay.variances([(x, z) for z in zs])
    gamma = math.sqrt(replay.kappa0) * xi * (cost / star) ** (1.0 / (p + d + 2))
    margins = [
        np.where(cost < star, 1.0, -1.0),
        (np.sqrt(tau2) - c * gamma) / math.sqrt(replay.kappa0),
        xi - np.max(xi) / math.sqrt(beta),
    ]
    if run.matern:  # the default also asks for information per cost
        here = [(x, problem.target)]
        sigma2 = float(replay.variances(here)[0])
        covariance = replay.covariance([(x, z) for z in zs], here)[:, 0]
        gain = -0.5 * np.log1p(-(covariance**2) / (sigma2 * (tau2 + replay.eta2)))
        at_star = 0.5 * math.log1p(sigma2 / replay.eta2)
        margins.append((gain / cost) / (at_star / star) - 1.0)
    worst = np.min(margins, axis=0)
    return zs, cost, xi, worst > 1e-6, worst > -1e-6


def test_runs_are_long_enough_to_say_something(run):
    phases = [t.phase for t in run.history]
    assert phases.count("model") >= 12
    assert any(out for _, _, out in decided(run))
    assert any(t.state == "failed" for t in run.history)
    lower = [t for t in run.history if t.phase == "model" and not run.problem.is_target(t.z)]
    assert lower
    if run.matern:
        assert any(t.why["shrink"] > 1.5 for t in lower)


def test_mean_deviation_and_bound_are_those_of_the_explicit_model(run):
    """[K17, eq. 1, 5, 6]"""
    for trial, told, out in decided(run):
        replay, why = Replay(run, trial, told, out), trial.why
        mean, std = replay.at_target(trial.x)
        unit = math.sqrt(replay.kappa0)
        assert why["mean"] == pytest.approx(replay.sign * mean, rel=1e-6, abs=1e-5 * unit)
        assert why["std"] == pytest.approx(std, rel=1e-4, abs=1e-6 * unit)
        bound = why["mean"] + replay.sign * math.sqrt(why["beta"]) * why["std"]
        assert why["ucb"] == pytest.approx(bound, rel=1e-12)
        assert why["pending"] == [t.number for t in out]


def test_the_mean_of_the_process_is_the_one_that_was_settled(run):
    """The median of all results in the paper's version, generalized least squares in the default.

    Where fidelities are switched off, it is that of the results at the target.
    """
    for trial, told, out in decided(run):
        replay = Replay(run, trial, told, out, alone="guard" in trial.why)
        if run.paper:
            expected = float(np.median(replay.y))
        else:
            K_inv_1 = np.linalg.solve(replay.K[: replay.n, : replay.n], np.ones(replay.n))
            expected = float(K_inv_1 @ replay.y / K_inv_1.sum())
        assert replay.m == pytest.approx(expected, rel=1e-6, abs=1e-6 * math.sqrt(replay.kappa0))


def test_beta_c_and_gaps_follow_from_the_numbers_in_why(run):
    """[K17, eq. 4, 7]"""
    problem = run.problem
    q = 1.0 / (len(problem.space) + len(problem.fidelity) + 2)
    flags = [problem.is_target(t.z) for t in run.history if t.phase in ("model", "final")]
    for trial, told, out in decided(run):
        replay, why = Replay(run, trial, told, out), trial.why
        t = iteration(run, trial)
        assert why["beta"] == pytest.approx(replay.beta(t), rel=1e-12)
        c = 0.25 if run.matern else 1.0
        for end in range(20, t, 20):
            share = sum(flags[end - 20 : end]) / 20
            c = min(max(c / 2 if share > 0.75 else 2 * c if share < 0.25 else c, 0.1), 20.0)
        assert why["c"] == c
        xi = 0.0 if problem.is_target(trial.z) else float(replay.gap([trial.z])[0])
        assert why["xi"] == pytest.approx(xi, rel=1e-6, abs=1e-9)
        ratio = problem.cost(trial.z) / problem.cost(problem.target)
        assert why["gamma"] == pytest.approx(math.sqrt(replay.kappa0) * xi * ratio**q, rel=1e-6, abs=1e-9)
        assert (why["shrink"] == 1.0) if run.paper else (1.0 <= why["shrink"] <= 4.0)


def test_hyperparameters_were_learned_again_when_it_was_due(run):
    """After the start and every 25 iterations; in the default after n/15 new results, at least 1, at most 25."""
    last = None
    for trial, told, _ in decided(run):
        t, n = iteration(run, trial), len(told)
        if run.paper:
            due = last is None or t - last[0] >= 25
        else:
            due = last is None or n - last[1] >= min(max(n / 15, 1), 25) or trial.phase == "final"
        assert trial.why["refit"] == due
        if due:
            last = (t, n)


def test_the_fidelity_was_the_cheapest_that_passes_every_condition(run):
    """[K17, eq. 7] with the whole grid judged anew; an empty Z_t means the target."""
    kinds = set()
    for trial, told, out in decided(run, acquisition=("ucb", "max_value")):
        replay, why = Replay(run, trial, told, out), trial.why
        zs, cost, xi, surely, maybe = judged(run, trial, replay, trial.x, why["beta"], why["c"])
        if "guard" in why:
            assert run.problem.is_target(trial.z)
            continue
        if run.problem.is_target(trial.z):
            kinds.add("target")
            assert not np.any(surely)
            continue
        kinds.add("lower")
        index = next(i for i, z in enumerate(zs) if same(z, trial.z))
        assert maybe[index]
        assert not np.any(surely & (cost < cost[index] * (1.0 - 1e-12)))
        ties = surely & (cost == cost[index])
        assert not np.any(ties & (xi < xi[index] - 1e-9))
        ties &= np.abs(xi - xi[index]) <= 1e-12
        assert not np.any(np.flatnonzero(ties) < index)
    assert "lower" in kinds


def test_the_target_was_asked_for_improvement_only_where_no_cheaper_fidelity_passed(run):
    """The x of such a query is not the bound's: `fidelity_by` names the point and the shrinking that decided z."""
    found = 0
    for trial, told, out in decided(run, acquisition=("log_ei", "log_noisy_ei")):
        by = trial.why["fidelity_by"]
        replay = Replay(run, trial, told, out, shrink=by["shrink"])
        *_, surely, _ = judged(run, trial, replay, by["x"], replay.beta(iteration(run, trial)), trial.why["c"])
        assert "guard" in trial.why or not np.any(surely)
        assert run.problem.is_target(trial.z)
        found += 1
    assert (found > 0) == run.matern


def test_the_first_third_and_fifth_target_query_goes_to_the_largest_expected_improvement(run):
    """In turn over the best mean, and over draws of what f is at the best points."""
    kinds = [t.why["acquisition"] for t in run.history if t.phase == "model" and run.problem.is_target(t.z)]
    assert [kind == "log_ei" for kind in kinds] == [run.matern and i % 4 == 0 for i in range(len(kinds))]
    assert [kind == "log_noisy_ei" for kind in kinds] == [run.matern and i % 4 == 2 for i in range(len(kinds))]


def test_every_other_iteration_looks_where_most_is_learned_about_the_maximum(run):
    """But where most iterations go to the target, every other one of those that no improvement takes."""
    chosen = [t for t in run.history if t.phase in ("model", "final")]
    kinds = set()
    for i, trial in enumerate(chosen):
        at_target = sum(run.problem.is_target(t.z) for t in chosen[:i])
        turn = i + 1 - ((at_target + 1) // 2 if run.matern and at_target >= 0.75 * i else 0)
        kinds.add((trial.why["acquisition"], turn % 2 == 0))
    expected = {("ucb", False), ("max_value" if run.matern else "ucb", True)}
    assert {kind for kind in kinds if kind[0] in ("ucb", "max_value")} == expected


def test_no_point_tells_more_about_the_maximum_than_the_one_that_is_ranked_first(run):
    strategy = EARLIER
    told = boca.History([t for t in run.history if t.state != "running"])
    for seed in range(2):
        model = strategy.surrogate.model(run.problem, told, np.random.default_rng(seed)).shrunk(1.5)
        decision = Iteration(strategy, run.problem, told, costs(run.problem, told), model)
        decision.aim = "max_value"
        ranked = decision.rank(np.random.default_rng(seed))
        formula = AIMS["max_value"].formula(model, decision.beta, np.random.default_rng(seed))
        space = run.problem.space
        some = space.snap(np.random.default_rng(9).random((300, len(space))))
        points = np.vstack([ranked[:1], some, model.anchors()])
        information = formula(*model.moments(points))[0]
        assert information[0] >= np.max(information) - 1e-3


def test_no_point_has_a_higher_bound_than_the_one_that_was_asked(run):
    """[K17, algorithm 1]: against 300 random points and everything queried before."""
    rng = np.random.default_rng(0)
    for trial, told, out in list(decided(run, acquisition=("ucb",)))[::3]:
        replay = Replay(run, trial, told, out)
        space = run.problem.space
        xs = [space.from_unit(u) for u in space.snap(rng.random((300, len(space))))] + [t.x for t in told]
        points = [(x, run.problem.target) for x in xs]
        bounds = replay.mean(points) + math.sqrt(trial.why["beta"]) * np.sqrt(replay.variances(points))
        # one basin of several may be missed where it is higher by no more than this
        assert replay.sign * trial.why["ucb"] >= np.max(bounds) - 2e-3 * math.sqrt(replay.kappa0)


def test_no_point_improves_more_than_the_one_that_was_asked_for_its_improvement(run):
    """The incumbent is the best posterior mean among the x that were run at the target, all x before there is one."""
    rng = np.random.default_rng(0)
    for trial, told, out in decided(run, acquisition=("log_ei",)):
        replay = Replay(run, trial, told, out)
        space, target = run.problem.space, run.problem.target
        incumbents = [t.x for t in told if run.problem.is_target(t.z)] or [t.x for t in told]
        best = np.max(replay.mean([(x, target) for x in incumbents]))
        xs = [trial.x] + [space.from_unit(u) for u in space.snap(rng.random((300, len(space))))]
        points = [(x, target) for x in xs]
        mu, sigma = replay.mean(points), np.sqrt(replay.variances(points))
        u = (mu - best) / sigma
        improvement = sigma * (norm.pdf(u) + u * norm.cdf(u))
        assert improvement[0] >= np.max(improvement[1:]) * (1.0 - 1e-3) - 1e-9 * math.sqrt(replay.kappa0)


def test_few_points_improve_more_over_draws_than_the_one_that_was_asked_for_it(run):
    """By two thousand joint draws of f; the decision had sixteen, so its point need not be the very best."""
    rng = np.random.default_rng(0)
    shares = []
    for trial, told, out in decided(run, acquisition=("log_noisy_ei",)):
        replay = Replay(run, trial, told, out)
        space, target = run.problem.space, run.problem.target
        incumbents = list({repr(t.x): t.x for t in told if run.problem.is_target(t.z)}.values())
        some = [space.from_unit(u) for u in space.snap(rng.random((100, len(space))))]
        points = [(x, target) for x in [*incumbents, trial.x, *some]]
        covariance = replay.covariance(points, points) + 1e-8 * replay.kappa0 * np.eye(len(points))
        f = replay.mean(points)[:, None] + np.linalg.cholesky(covariance) @ rng.standard_normal((len(points), 2000))
        k = len(incumbents)
        improvement = np.mean(np.maximum(f[k:] - np.max(f[:k], axis=0), 0.0), axis=1)
        shares.append(improvement[0] / np.max(improvement))
    at_target = [t for t in run.history if t.phase == "model" and run.problem.is_target(t.z)]
    assert (len(shares) > 0) == (run.matern and len(at_target) > 2)
    assert all(share > 0.5 for share in shares)


def test_every_fourth_target_query_believes_the_results_at_the_target_alone(run):
    """No point has a higher bound in the model of these results than the one that was asked.

    Some of the runs end before they have one; the next test makes sure that there are some.
    """
    at_target = [t for t in run.history if t.phase == "model" and run.problem.is_target(t.z)]
    is_doubt = [t.why["acquisition"] == "ucb_alone" for t in at_target]
    assert is_doubt == [run.matern and i % 4 == 3 and "guard" not in t.why for i, t in enumerate(at_target)]
    believes_the_target_alone(run)


def test_where_most_queries_go_to_the_target_every_way_of_choosing_x_has_its_turn():
    """Cheaper fidelities cost hardly less: bound and information take turns in what improvement and doubts leave."""
    problem, g, _ = mixed()
    problem = boca.Problem(
        problem.space, problem.fidelity, cost=lambda z: 1.0 + 0.01 * z["level"], target=problem.target
    )
    optimizer = boca.Optimizer(problem, budget=boca.targets(30), strategy=EARLIER, seed=0)
    noise = np.random.default_rng(0)
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, g(trial.x, trial.z) + 0.05 * float(noise.standard_normal()))
    chosen = [t for t in optimizer.history if t.phase == "model" and "guard" not in t.why]
    kinds = [t.why["acquisition"] for t in chosen if problem.is_target(t.z)]
    assert len(kinds) >= 0.75 * len(chosen)
    assert {*kinds[0::4]} == {"log_ei"}
    assert {*kinds[2::4]} == {"log_noisy_ei"}
    assert {*kinds[3::4]} == {"ucb_alone"}
    assert {*kinds[1::4]} == {"ucb", "max_value"}
    assert len(kinds[3::4]) >= 3
    believes_the_target_alone(Run(problem, optimizer.history, matern=True, paper=False))


def test_a_known_process_is_never_doubted():
    bench = boca.problems.get("gp-smooth", seed=0)
    strategy = replace(EARLIER, hyperparameters=bench.hyperparameters)
    optimizer, noise = (
        boca.Optimizer(bench.problem, budget=boca.targets(12), strategy=strategy, seed=0),
        np.random.default_rng(0),
    )
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, bench.observe(trial.x, trial.z, noise))
    at_target = [t.why["acquisition"] for t in optimizer.history.chosen if bench.problem.is_target(t.z)]
    assert len(at_target) >= 4
    assert "ucb_alone" not in at_target


def test_failures_at_the_target_are_nothing_to_doubt_by():
    """Without a result there, the results at the target alone would be the invented values of failures."""
    problem, g, _ = mixed()
    optimizer, kinds = boca.Optimizer(problem, budget=boca.targets(20), seed=0), []
    while (trial := optimizer.ask()) is not None:
        if problem.is_target(trial.z):
            kinds.append(trial.why.get("acquisition"))
            optimizer.fail(trial, "no luck")
        else:
            optimizer.tell(trial, g(trial.x, trial.z))
    assert len(kinds) >= 8
    assert "ucb_alone" not in kinds


def believes_the_target_alone(run):
    """Check the doubts of a run against 300 random points, in the model of the results at the target."""
    rng = np.random.default_rng(0)
    space = run.problem.space
    for trial, told, out in decided(run, acquisition=("ucb_alone",)):
        replay = Replay(run, trial, told, out, alone=True)
        ones, K = np.ones(replay.n), replay.K[: replay.n, : replay.n]
        replay.m = (ones @ np.linalg.solve(K, replay.y)) / (ones @ np.linalg.solve(K, ones))  # their own mean
        xs = [trial.x] + [space.from_unit(u) for u in space.snap(rng.random((300, len(space))))]
        points = [(x, run.problem.target) for x in xs]
        bounds = replay.mean(points) + math.sqrt(trial.why["beta"]) * np.sqrt(replay.variances(points))
        assert bounds[0] >= np.max(bounds[1:]) - 2e-3 * math.sqrt(replay.kappa0)


def test_no_query_by_a_model_is_dearer_than_the_target(run):
    star = run.problem.cost(run.problem.target)
    for trial, _, _ in decided(run):
        assert run.problem.cost(trial.z) <= star
        assert run.problem.is_target(trial.z) or run.problem.cost(trial.z) < star


@pytest.mark.parametrize(
    "strategy",
    [boca.Boca(), boca.Boca.paper(maximizer="sobol"), boca.GPUCB(maximizer="sobol")],
    ids=["boca", "paper", "gp_ucb"],
)
def test_nothing_dearer_than_the_target_is_asked_while_something_else_is_free(strategy):
    """Two points, and a cost that falls with z: of nine fidelities five cost at most as much as the target."""
    problem = boca.Problem(
        boca.Space(c=boca.Choice(["u", "v"])),
        boca.Space(z=boca.Int(1, 9)),
        cost=lambda z: 10.0 - z["z"],
        target={"z": 5},
    )
    optimizer = boca.Optimizer(problem, budget=boca.targets(60), strategy=strategy, seed=0)
    for i in range(4):
        optimizer.add({"c": "uv"[i % 2]}, {"z": 5}, float(i), cost=20.0)
    trials = optimizer.ask(10)
    assert len({(t.x["c"], t.z["z"]) for t in trials}) == 10
    assert max(t.cost for t in trials) <= 5.0


def test_without_fidelities_no_reason_speaks_of_them():
    optimizer = boca.Optimizer(boca.Problem(boca.Space(x=boca.Float(0.0, 1.0))), budget=boca.targets(20), seed=0)
    for i in range(4):
        optimizer.add({"x": i / 3}, None, math.sin(3.0 * i))
    reasons = {}
    kinds = []
    for _ in range(8):
        trial = optimizer.ask()
        kinds.append(trial.why["acquisition"])
        reasons[trial.why["acquisition"]] = trial.why["reason"]
        optimizer.tell(trial, math.sin(9.0 * trial.x["x"]))
    assert kinds == ["log_ei", "ucb", "log_noisy_ei", "max_value"] * 2
    words = {"log_ei": "improvement", "log_noisy_ei": "improvement", "ucb": "bound", "max_value": "about the maximum"}
    assert set(reasons) == set(words)
    for name, reason in reasons.items():
        assert words[name] in reason
        assert "fidelit" not in reason
        assert "target" not in reason


def test_the_last_query_goes_to_the_highest_posterior_mean_after_one_more_fit():
    problem, g, _ = mixed()
    optimizer = boca.Optimizer(problem, budget=boca.targets(4), strategy=EARLIER, seed=1)
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, g(trial.x, trial.z))
    run = Run(problem, optimizer.history, True, False)
    *_, (trial, told, out) = decided(run)
    assert trial.phase == "final"
    assert [t.phase for t in run.history].count("final") == 1
    assert trial.why["refit"] is True
    assert problem.is_target(trial.z)
    replay = Replay(run, trial, told, out)
    assert trial.why["mean"] == pytest.approx(replay.at_target(trial.x)[0], rel=1e-6)
    space = problem.space
    xs = [space.from_unit(u) for u in space.snap(np.random.default_rng(0).random((500, 3)))] + [t.x for t in told]
    assert trial.why["mean"] >= np.max(replay.mean([(x, problem.target) for x in xs])) - 1e-4 * math.sqrt(replay.kappa0)


def test_recomputing_with_a_wrong_kernel_is_noticed(run):
    """A negative control: the same numbers with the other kernel of the domain do not fit."""
    other = run._replace(matern=not run.matern)
    errors = []
    for trial, told, out in decided(run):
        replay = Replay(other, trial, told, out)
        errors.append(abs(replay.at_target(trial.x)[1] / trial.why["std"] - 1.0))
    assert np.median(errors) > 1e-3


# A known process, run by all ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strategy", [boca.Boca, boca.Boca.paper, boca.GPUCB, boca.GPEI], ids=["boca", "paper", "gp_ucb", "gp_ei"]
)
def test_a_process_that_is_given_is_used_as_it_is(strategy):
    """No fit, no standardization, no shrinking: `why` carries the very numbers."""
    bench = boca.problems.get("gp-smooth", seed=1)
    optimizer = boca.Optimizer(
        bench.problem,
        budget=boca.targets(8),
        strategy=strategy(maximizer="sobol", hyperparameters=bench.hyperparameters),
        seed=0,
    )
    rng = np.random.default_rng(0)
    while len(optimizer.history) < 12 and (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, 1e3 + bench.observe(trial.x, trial.z, rng))
    run = Run(bench.problem, optimizer.history, False, False)
    chosen = list(decided(run))
    assert chosen
    for trial, told, out in chosen:
        assert trial.why["hyperparameters"] == bench.hyperparameters
        assert trial.why["refit"] is False
        assert "fit" not in trial.why
        mean, std = Replay(run, trial, told, out).at_target(trial.x)
        assert trial.why["mean"] == pytest.approx(mean, rel=1e-9)
        assert trial.why["std"] == pytest.approx(std, rel=1e-7)


def test_a_strategy_is_a_pure_function_of_its_arguments():
    problem, g, _ = mixed()
    optimizer = boca.Optimizer(problem, budget=boca.targets(10), seed=0)
    for _ in range(12):
        trial = optimizer.ask()
        optimizer.tell(trial, g(trial.x, trial.z))
    history, budget = optimizer.history, Budget(70.0, 7.0, 20.0)
    for strategy in STRATEGIES.values():
        first, second = (strategy.suggest(problem, history, budget, np.random.default_rng(9)) for _ in range(2))
        assert first == second
