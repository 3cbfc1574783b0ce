"""The cost of a query: declared, assumed before data, and learned from them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import boca
from boca.accounting.cost import Declared, Learned, costs, seconds
from boca.domain.trial import History
from support.trials import made as trial_of

X = boca.Space(x=boca.Float(0.0, 1.0))
SIZES = boca.Space(N=boca.Int(100, 10_000, log=True), T=boca.Float(1.0, 50.0))


def problem(fidelity=SIZES, *, cost=None, target=None):
    return boca.Problem(X, fidelity, cost=cost, target=target)


def trial(number, z, took, *, cost=None, overhead=0.0, state="complete"):
    told = None if state == "running" else number + 1
    return trial_of(
        number=number,
        x={"x": 0.5},
        z=z,
        cost=took if cost is None else cost,
        why={"phase": "start"},
        state=state,
        value=1.0 if state == "complete" else None,
        seconds=took,
        overhead=overhead,
        asked=number,
        told=told,
    )


def history(zs, times, **more):
    return History([trial(i, z, float(t), **more) for i, (z, t) in enumerate(zip(zs, times, strict=True))])


def spread(fidelity, count, seed=0):
    rng = np.random.default_rng(seed)
    return [fidelity.from_unit(fidelity.snap(rng.random((1, len(fidelity))))[0]) for _ in range(count)]


def power_law(z, level=0.3, a=1.4, b=0.7):
    return level * (z["N"] / 1000.0) ** a * z["T"] ** b


# Declared and assumed -------------------------------------------------------------------------------------------------


def test_a_declared_cost_is_taken_as_it_is_whatever_was_measured():
    declared = problem(cost=lambda z: 3.0 * z["N"] * z["T"])
    zs = spread(SIZES, 10)
    price = costs(declared, history(zs, np.ones(10)))
    assert isinstance(price, Declared)
    assert price.of({"N": 200, "T": 2.0}) == 1200.0
    assert price.target == 3.0 * 10_000 * 50.0
    np.testing.assert_array_equal(price.grid, [3.0 * z["N"] * z["T"] for z in declared.grid[0]])


def test_before_the_first_result_an_unknown_cost_is_the_product_of_ratios():
    price = costs(problem(target={"T": 20.0}), History())
    assert price.target == 1.0
    assert price.of({"N": 2_500, "T": 5.0}) == pytest.approx(0.25 * 0.25)
    assert price.of({"N": 10_000, "T": 40.0}) == pytest.approx(2.0)
    np.testing.assert_allclose(price.grid, [z["N"] / 1e4 * z["T"] / 20.0 for z in problem().grid[0]])


def test_running_and_failed_trials_are_no_measurements():
    z = {"N": 100, "T": 1.0}
    out = History([trial(0, z, 5.0, state="running"), trial(1, z, 7.0, state="failed")])
    assert isinstance(costs(problem(), out), Declared)
    assert seconds(problem(), out) is None


def test_fidelities_without_a_ratio_are_assumed_cheaper_away_from_the_target_or_they_would_never_be_tried():
    fidelity = boca.Space(
        source=boca.Choice(["a", "b"]), depth=boca.Float(-1.0, 1.0), N=boca.Int(0, 5), T=boca.Int(1, 8)
    )
    price = costs(problem(fidelity, target={"source": "a"}), History())
    there = {"source": "a", "depth": 1.0, "N": 5, "T": 8}
    for name, value, share in [("source", "b", 0.5), ("depth", -1.0, math.exp(-1.0)), ("N", 0, 0.01), ("T", 2, 0.25)]:
        assert price.of({**there, name: value}) == pytest.approx(share, rel=1e-12)
    assert np.all(price.grid > 0.0)


def test_a_target_at_the_low_end_is_assumed_to_be_the_expensive_one():
    """A solver's tolerance: if a looser one looked more expensive, none would ever be tried, and nothing learned."""
    fidelity = boca.Space(tol=boca.Float(1e-6, 1e-2, log=True), shift=boca.Float(-1.0, 1.0), N=boca.Int(1, 10))
    there = {"tol": 1e-6, "shift": -1.0, "N": 10}
    price = costs(problem(fidelity, target=there), History())
    for name, value, share in [("tol", 1e-5, 0.1), ("shift", 1.0, math.exp(-1.0)), ("N", 5, 0.5)]:
        assert price.of({**there, name: value}) == pytest.approx(share, rel=1e-12)
    one = costs(problem(fidelity, target=there), history([there], [8.0]))
    assert one.of({**there, "tol": 1e-5}) == pytest.approx(0.8, rel=0.5)


def test_without_fidelities_every_query_costs_one():
    alone = boca.Problem(X)
    price = costs(alone, history([{}], [17.0]))
    assert price.of({}) == price.target == 1.0
    np.testing.assert_array_equal(price.grid, [1.0])


# Learned --------------------------------------------------------------------------------------------------------------


def test_an_exact_power_law_is_recovered():
    zs = spread(SIZES, 60)
    price = costs(problem(), history(zs, [power_law(z) for z in zs]))
    assert isinstance(price, Learned)
    for z in spread(SIZES, 30, seed=1):
        assert price.of(z) == pytest.approx(power_law(z), rel=0.1)
    corners = [{"N": n, "T": t} for n, t in itertools.product((100, 10_000), (1.0, 50.0))]
    for z in corners:
        assert price.of(z) == pytest.approx(power_law(z), rel=0.3)


def test_more_data_come_closer_to_a_power_law():
    errors = []
    for count in (3, 30, 300):
        zs = spread(SIZES, count)
        price = costs(problem(), history(zs, [power_law(z) for z in zs]))
        errors.append(max(abs(math.log(price.of(z) / power_law(z))) for z in spread(SIZES, 40, seed=2)))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.03


def test_one_result_sets_the_level_and_the_ratios_give_the_rest():
    price = costs(problem(), history([{"N": 1_000, "T": 10.0}], [4.0]))
    assert price.of({"N": 1_000, "T": 10.0}) == pytest.approx(4.0, rel=0.02)
    assert price.of({"N": 10_000, "T": 50.0}) == pytest.approx(4.0 * 10.0 * 5.0, rel=0.4)
    assert price.of({"N": 100, "T": 10.0}) == pytest.approx(0.4, rel=0.4)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 3600.0])
def test_the_unit_of_time_scales_what_is_learned(unit):
    zs = spread(SIZES, 25)
    plain = costs(problem(), history(zs, [power_law(z) for z in zs]))
    scaled = costs(problem(), history(zs, [unit * power_law(z) for z in zs]))
    for z in spread(SIZES, 10, seed=3):
        assert scaled.of(z) == pytest.approx(unit * plain.of(z), rel=0.02)


def test_the_weights_are_those_of_bayesian_linear_regression():
    """By the other route, conditioning the joint normal of log t and w; features and prior are the library's own."""
    zs = spread(SIZES, 12)
    times = np.array([power_law(z) for z in zs]) * np.exp(0.2 * np.random.default_rng(4).standard_normal(12))
    learned = costs(problem(), history(zs, times))
    F = learned.features(zs)
    np.testing.assert_allclose(F[:, 1], [math.log(z["N"] / 10_000) for z in zs], rtol=1e-12)
    np.testing.assert_allclose(F[:, 2], [math.log(z["T"] / 50.0) for z in zs], rtol=1e-12, atol=1e-15)
    m, s = learned.prior(F.shape[1])
    np.testing.assert_array_equal(m, [0.0, 1.0, 1.0, 0.0, 0.0, 0.0])  # seconds in proportion to every fidelity
    P, scatter2 = np.diag(s**2), 0.3**2
    for _ in range(3):
        G = F @ P @ F.T + scatter2 * np.eye(12)
        w = m + P @ F.T @ np.linalg.solve(G, np.log(times) - F @ m)
        S = P - P @ F.T @ np.linalg.solve(G, F @ P)
        residual = np.log(times) - F @ w
        scatter2 = (4.0 * 0.3**2 + residual @ residual) / (4.0 + 12.0)
    for z in ({"N": 700, "T": 11.0}, {"N": 10_000, "T": 50.0}):
        f = learned.features([z])[0]
        assert learned.of(z) == pytest.approx(math.exp(f @ w), rel=1e-8)
        # the level at the target is taken for known: the smaller of the two ways to be uncertain counts
        away = f - learned.features([learned.problem.target])[0]
        deviation = math.sqrt(min(f @ S @ f, away @ S @ away) + scatter2)
        assert learned.pessimistic(z) == pytest.approx(math.exp(f @ w + 1.2816 * deviation), rel=1e-8)
    assert learned.target == pytest.approx(math.exp(w[0] + w[-1]), rel=1e-8)  # a level of its own


def test_what_was_measured_at_the_target_counts_there():
    """Cubes with a constant share, which no power law follows: a curve through many cheap results would miss them."""
    sizes = boca.Space(N=boca.Int(10, 10_000, log=True))
    zs = [{"N": n} for n in (10, 12, 15, 20, 30, 50, 80, 150, 400, 1_000)]
    there = {"N": 10_000}
    took = [0.002 + 10.0 * (z["N"] / 10_000) ** 3 for z in [*zs, there]]
    guessed, measured = (costs(problem(sizes), history(*some)) for some in ((zs, took[:-1]), ([*zs, there], took)))
    assert guessed.target < 1.0
    assert 5.0 < measured.target < 20.0


@pytest.mark.parametrize("sigma", [0.1, 0.3, 0.8])
def test_the_pessimistic_quantile_covers_nine_in_ten(sigma):
    """Log-normal times, many studies of 30 results each, and fresh queries at fidelities not seen.

    It covers a little less, because the level at the target is taken for known.
    """
    rng = np.random.default_rng(5)
    covered = []
    for study in range(40):
        zs = spread(SIZES, 30, seed=100 + study)
        times = [power_law(z) * math.exp(sigma * rng.standard_normal()) for z in zs]
        price = costs(problem(), history(zs, times))
        fresh = spread(SIZES, 25, seed=200 + study)
        covered += [power_law(z) * math.exp(sigma * rng.standard_normal()) <= price.pessimistic(z) for z in fresh]
    assert 0.84 <= np.mean(covered) <= (0.96 if sigma >= 0.3 else 1.0)


def test_the_pessimistic_cost_is_above_the_median_and_nears_it_with_data():
    ratios = []
    for count in (2, 20, 200):
        zs = spread(SIZES, count)
        price = costs(problem(), history(zs, [power_law(z) for z in zs]))
        ratios.append(price.pessimistic(problem().target) / price.of(problem().target))
    assert ratios[0] > ratios[1] > ratios[2] > 1.0


def test_the_grid_and_the_target_are_what_single_fidelities_cost():
    zs = spread(SIZES, 15)
    price = costs(problem(), history(zs, [power_law(z) for z in zs]))
    np.testing.assert_allclose(price.grid[::37], [price.of(z) for z in problem().grid[0][::37]], rtol=1e-12)
    assert price.target == pytest.approx(price.of(problem().target))


def test_a_choice_of_fidelity_has_a_cost_of_its_own():
    fidelity = boca.Space(source=boca.Choice(["sim", "lab", "field"]), N=boca.Int(1, 100))
    rate = {"sim": 0.01, "lab": 1.0, "field": 6.0}
    zs = spread(fidelity, 80)
    price = costs(problem(fidelity, target={"source": "lab"}), history(zs, [rate[z["source"]] * z["N"] for z in zs]))
    for source, N in itertools.product(rate, (3, 30, 100)):
        assert price.of({"source": source, "N": N}) == pytest.approx(rate[source] * N, rel=0.25)


def test_fidelities_that_reach_zero_or_below_are_learned_without_a_logarithm():
    fidelity = boca.Space(depth=boca.Float(-2.0, 2.0), N=boca.Int(0, 10))
    zs = spread(fidelity, 100)

    def took(z):
        return 0.5 * math.exp(0.8 * z["depth"]) * (1.0 + 0.1 * z["N"])

    price = costs(problem(fidelity), history(zs, [took(z) for z in zs]))
    for z in spread(fidelity, 30, seed=1):
        assert price.of(z) == pytest.approx(took(z), rel=0.25)
    assert np.all(price.grid > 0.0)
    assert np.all(np.isfinite(price.grid))


@pytest.mark.parametrize("took", [0.0, 1e-12, 1e-300, 1e12])
def test_a_learned_cost_is_positive_and_finite_whatever_the_clock_said(took):
    zs = spread(SIZES, 4)
    price = costs(problem(), history(zs, [took, took, 1.0, took]))
    assert np.all(price.grid > 0.0)
    assert np.all(np.isfinite(price.grid))
    assert 0.0 < price.target <= price.pessimistic(problem().target) < math.inf


def test_seconds_under_a_declared_cost_are_learned_along_that_cost_and_include_the_overhead():
    declared = problem(cost=lambda z: z["N"] * z["T"])
    zs = spread(SIZES, 60)
    times = [2e-5 * z["N"] * z["T"] for z in zs]
    model = seconds(declared, history(zs, times))
    assert model.of({"N": 1_000, "T": 20.0}) == pytest.approx(0.4, rel=0.1)
    slower = seconds(declared, history(zs, times, overhead=1.0))
    assert slower.of({"N": 100, "T": 1.0}) > 50.0 * model.of({"N": 100, "T": 1.0})


def test_results_brought_with_a_cost_teach_it():
    optimizer = boca.Optimizer(problem(), budget=100.0, seed=0)
    for i, z in enumerate(spread(SIZES, 40)):
        optimizer.add({"x": i / 40}, z, 0.0, cost=power_law(z))
    price = costs(optimizer.problem, optimizer.history)
    assert price.target == pytest.approx(power_law({"N": 10_000, "T": 50.0}), rel=0.3)
