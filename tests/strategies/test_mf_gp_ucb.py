"""MF-GP-UCB: its bounds against a process a level in plain NumPy, its rules by hand, and whole runs replayed.

[K16] Kandasamy et al., 2016.  The replay trusts nothing of the library but the numbers that trials carry: the kernel,
the posterior of every level, zeta, the thresholds and the checks are worked out again from the results.
"""

from __future__ import annotations

import json
import math
from collections import Counter, namedtuple
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput
from boca.domain.trial import History, Trial
from boca.search.maximizer import MAXIMIZERS
from boca.strategies.ladder import ladder
from boca.strategies.mf_gp_ucb import adapted_gammas, adapted_zeta, fallback_level
from support.trials import made as trial_of

# The oracle ---------------------------------------------------------------------------------------------------------


class Level:
    """The process of one level, so that more is better, in the user's units."""

    def __init__(self, space, kappa0, h, eta2, m, xs, y, *, noise=None, out=()):
        self.space, self.kappa0, self.h, self.m = space, kappa0, h, m
        self.xs, self.n = [*xs, *out], len(y)
        K = self.k(self.xs, self.xs) + eta2 * np.eye(len(self.xs))
        K[: self.n, : self.n] += np.diag(np.zeros(self.n) if noise is None else noise)
        self.K, self.y = K, np.array(y, dtype=float)

    def k(self, a, b):
        s = np.zeros((len(a), len(b)))
        for width, (name, parameter) in zip(self.h, self.space.items(), strict=True):
            if isinstance(parameter, boca.Choice):
                s += np.array([[x[name] != y[name] for y in b] for x in a]).reshape(len(a), len(b)) / width**2
            else:
                u, v = (np.array([x[name] for x in points], dtype=float) for points in (a, b))
                s += ((u[:, None] - v[None, :]) / (parameter.high - parameter.low) / width) ** 2
        return self.kappa0 * np.exp(-0.5 * s)

    def moments(self, xs):
        told = slice(self.n)
        mean = self.m + self.k(xs, self.xs[told]) @ np.linalg.solve(self.K[told, told], self.y - self.m)
        cross = self.k(self.xs, xs)
        variance = self.kappa0 - np.einsum("ij,ij->j", cross, np.linalg.solve(self.K, cross))
        return mean, np.sqrt(variance)


def least_bound(levels, xs, beta, zeta):
    """Return phi: the least over levels of mu_m + sqrt(beta) sigma_m + (M - m) zeta, m counted from one."""
    M = len(levels)
    bounds = []
    for m, level in enumerate(levels, start=1):
        mean, deviation = level.moments(xs)
        bounds.append(mean + math.sqrt(beta) * deviation + (M - m) * zeta)
    return np.min(bounds, axis=0)


def first_uncertain(levels, x, beta, thresholds):
    """Return the number, from one, of the lowest level with sqrt(beta) sigma_m > gamma_m, or of the target."""
    for m, (level, gamma) in enumerate(zip(levels[:-1], thresholds, strict=True), start=1):
        if math.sqrt(beta) * float(level.moments([x])[1][0]) > gamma:
            return m
    return len(levels)


ONE = boca.Problem(
    boca.Space(x=boca.Float(0.0, 1.0)), boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + 0.9 * z["z"]
)
JITTER_STEPS = ladder(ONE, None, costs(ONE, ()))
Z = [z["z"] for z in JITTER_STEPS]
KNOWN = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.1], "h_z": [1.0]}


def trial(number, x, z, y, *, phase="start", state="complete", **why):
    told = None if state == "running" else number
    value = None if state != "complete" else y
    return trial_of(number, {"x": x}, {"z": z}, 1.0, {"phase": phase, **why}, state, value, asked=number, told=told)


def observed(*points):
    """Return a history of (x, z, y)."""
    return History([trial(i, *point) for i, point in enumerate(points)])


def suggest(history, problem=ONE, *, seed=0, **more):
    strategy = boca.MFGPUCB(**{"maximizer": "sobol", "hyperparameters": KNOWN, **more})
    return strategy.suggest(problem, history, Budget(50.0, 0.0), np.random.default_rng(seed))


def processes(history, *, kappa0=1.0, h=0.1, eta2=0.01, m=0.0):
    """Return the processes of the three levels under the known numbers."""
    return [
        Level(
            ONE.space,
            kappa0,
            [h],
            eta2,
            m,
            [t.x for t in history.complete if t.z["z"] == z],
            [t.value for t in history.complete if t.z["z"] == z],
            out=[t.x for t in history.running if t.z["z"] == z],
        )
        for z in Z
    ]


SOME = ((0.1, Z[2], 0.3), (0.3, Z[0], 1.0), (0.35, Z[1], 1.2), (0.6, Z[1], 0.8), (0.62, Z[0], 0.9), (0.9, Z[2], -0.5))


# One decision in processes that are known ---------------------------------------------------------------------------


@pytest.mark.parametrize("maximizer", ["sobol", "direct"])
@pytest.mark.parametrize("seed", range(3))
def test_the_point_asked_maximizes_the_least_bound_and_the_level_is_the_first_uncertain_one(maximizer, seed):
    rng = np.random.default_rng(seed)
    history = observed(*((float(rng.random()), Z[i % 3], float(rng.standard_normal())) for i in range(12)))
    suggestion = suggest(history, maximizer=maximizer)
    values = [t.value for t in history]
    zeta = 0.01 * (max(values) - min(values))
    beta = 0.5 * math.log(2.0 * 10.0 + 1.0)
    levels = processes(history)
    grid = least_bound(levels, [{"x": float(x)} for x in np.linspace(0.0, 1.0, 2001)], beta, zeta)
    asked = least_bound(levels, [suggestion.x], beta, zeta)[0]
    assert asked >= np.max(grid) - 1e-5  # DIRECT stops a millionth short of an edge
    why = suggestion.why
    assert why["zeta"] == pytest.approx(zeta, rel=1e-12)
    assert why["thresholds"] == [why["zeta"]] * 2
    assert why["beta"] == pytest.approx(beta, rel=1e-12)
    assert why["bound"] == pytest.approx(asked, rel=1e-8)
    assert why["level"] == first_uncertain(levels, suggestion.x, beta, why["thresholds"])
    assert suggestion.z == JITTER_STEPS[why["level"] - 1]
    mean, deviation = levels[-1].moments([suggestion.x])
    assert why["mean"] == pytest.approx(mean[0], abs=1e-9)
    assert why["std"] == pytest.approx(deviation[0], rel=1e-8)
    assert why["hyperparameters"] == {key: value for key, value in KNOWN.items() if key != "h_z"}
    assert why["refit"] is False
    assert "fits" not in why


def maximized(monkeypatch, history, problem=ONE, **more):
    """Return what was maximized, around which anchors, and what came of it."""
    seen = []

    def spy(objective, space, rng, anchors):
        seen.append((objective, anchors))
        return MAXIMIZERS["direct"](objective, space, rng, anchors)

    monkeypatch.setitem(MAXIMIZERS, "sobol", spy)
    monkeypatch.setattr("boca.search.maximizer.DIRECT_EVALUATIONS", 200)
    return (suggestion := suggest(history, problem, **more)), *seen[0], suggestion.why


def test_every_level_can_be_the_one_that_bounds(monkeypatch):
    """phi on a grid, with a point out at each level; the search starts around the highest bounds among the queried."""
    history = History([*observed(*SOME), *(trial(6 + i, 0.5, z, None, state="running") for i, z in enumerate(Z))])
    _, bound, anchors, why = maximized(monkeypatch, history)
    grid = np.linspace(0.0, 1.0, 101)
    levels, xs = processes(history), [{"x": float(x)} for x in grid]
    expected = least_bound(levels, xs, why["beta"], why["zeta"])
    np.testing.assert_allclose(bound.value(grid[:, None]), expected, rtol=1e-8, atol=1e-9)
    alone = [least_bound(levels[m:], xs, why["beta"], why["zeta"]) for m in range(3)]
    assert all(np.any(expected < other - 1e-3) for other in alone[1:])
    queried = np.array([[t.x["x"]] for t in history.complete])
    order = np.argsort(-least_bound(levels, [t.x for t in history.complete], why["beta"], why["zeta"]), kind="stable")
    np.testing.assert_allclose(anchors, queried[order[:5]], rtol=1e-14)


def test_without_fidelities_it_is_an_upper_confidence_bound():
    problem = boca.Problem(ONE.space)
    history = History([replace(t, planned={}).completed(t.value) for t in observed(*SOME)])
    known = {key: value for key, value in KNOWN.items() if key != "h_z"}
    ours = suggest(history, problem, hyperparameters=known)
    theirs = boca.GPUCB(maximizer="sobol", hyperparameters=known).suggest(
        problem, history, Budget(50.0, 0.0), np.random.default_rng(0)
    )
    assert ours.x["x"] == pytest.approx(theirs.x["x"], abs=1e-6)
    assert ours.why["bound"] == pytest.approx(theirs.why["ucb"], rel=1e-9)
    assert ours.why["ucb"] == pytest.approx(ours.why["bound"], rel=1e-12)
    assert ours.z == {}
    assert ours.why["level"] == 1
    assert ours.why["thresholds"] == []
    assert "below" not in ours.why


def test_a_level_without_results_is_its_prior_around_what_the_others_show():
    """With processes that are known, around the known mean: kappa0 is all that bounds there."""
    history = observed((0.3, Z[2], 5.0), (0.4, Z[2], 4.0))
    suggestion = suggest(history)
    beta = suggestion.why["beta"]
    assert suggestion.why["bound"] == pytest.approx(math.sqrt(beta) + 0.01, rel=1e-9)  # level 2, zeta = 0.01 * 1
    assert suggestion.why["level"] == 1


def test_high_uncertainty_goes_to_the_cheapest_level_and_what_is_known_there_to_the_next():
    """The same x, known better and better from below: levels 1, 2 and 3, with thresholds of 0.01."""
    sure = {**KNOWN, "eta2": 1e-9, "h_x": [5.0]}
    points = [(0.0, Z[2], 0.0), (1.0, Z[2], 1.0)]
    asked = [suggest(observed(*points), hyperparameters=sure).why["level"]]
    for z in Z[:2]:
        points += [(float(x), z, float(x)) for x in np.linspace(0.0, 1.0, 6)]
        asked.append(suggest(observed(*points), hyperparameters=sure).why["level"])
    assert asked == [1, 2, 3]


@pytest.mark.parametrize("learned", [False, True], ids=["known", "learned"])
def test_the_gradient_of_the_bound_is_its_finite_difference(monkeypatch, learned):
    """Levels in three units of their own, when they are learned, and a choice, along which there is no slope."""
    space = boca.Space(kind=boca.Choice(["u", "v"]), a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0))
    problem = boca.Problem(space, ONE.fidelity, cost=lambda z: 0.1 + z["z"])
    rng = np.random.default_rng(4)
    trials = []
    for i, u in enumerate(space.snap(rng.random((36, 3)))):
        x, unit = space.from_unit(u), (1.0, 30.0, 4.0)[i % 3]
        y = unit * (math.sin(4.0 * x["a"]) + 0.5 * x["b"] * (x["kind"] == "u")) + 0.1 * float(rng.standard_normal())
        trials.append(replace(trial(i, 0.0, Z[i % 3], y), x=x))
    numbers = None if learned else {**KNOWN, "h_x": [0.8, 0.3, 0.5], "eta2": 0.1}
    _, bound, _, _ = maximized(monkeypatch, History(trials), problem, hyperparameters=numbers)
    U = space.snap(np.random.default_rng(5).uniform(0.05, 0.95, (40, 3)))
    value, gradient = bound.value_and_gradient(U)
    np.testing.assert_allclose(value, bound.value(U), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(gradient[:, 0], 0.0)
    step = 1e-5
    agree = []
    for j in (1, 2):
        move = step * np.eye(3)[j]
        slope = (bound.value(U + move) - bound.value(U - move)) / (2.0 * step)
        agree.append(np.isclose(gradient[:, j], slope, rtol=1e-3, atol=1e-3))
    assert np.mean(agree) > 0.97  # all but where two levels meet within the step


# The rules, by hand -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("surprises", "M", "expected"),
    [
        ([], 3, 1.0),
        ([(1, 1.0)], 3, 1.0),  # no more than zeta_2 = zeta
        ([(1, 1.01)], 3, 2.02),
        ([(0, 2.0)], 3, 1.0),  # the cheapest of three may differ by twice as much
        ([(0, 2.01)], 3, 4.02),
        ([(1, 3.0), (1, 5.0)], 3, 6.0),  # 5 is allowed once 3 was seen
        ([(1, 3.0), (1, 7.0), (0, 20.0)], 3, 14.0),
        ([(0, 0.5)], 2, 1.0),
        ([(0, 1.5)], 2, 3.0),
        ([(0, 0.0), (0, 0.0)], 1, 1.0),
    ],
)
def test_zeta_becomes_twice_a_difference_that_it_does_not_allow(surprises, M, expected):
    """Here the value that surprised lay as far from the mean below as from the result there."""
    both = [(m, difference, difference) for m, difference in surprises]
    assert adapted_zeta(1.0, both, M) == pytest.approx(expected, rel=1e-15)


def test_zeta_stays_where_the_mean_below_was_right_or_the_result_there_is():
    assert adapted_zeta(1.0, [(1, 1.0, 5.0)], 3) == 1.0  # no surprise: whatever the result below, its mean was right
    assert adapted_zeta(1.0, [(1, 5.0, 1.0)], 3) == 1.0


def test_zeta_stays_a_number_whatever_the_difference():
    """And so does what it allows at the cheapest of three levels."""
    assert 2.0 * adapted_zeta(1.0, [(0, math.inf, math.inf)], 3) < math.inf
    assert 2.0 * adapted_zeta(1.0, [(0, 1e308, 1e308)], 3) < math.inf


@pytest.mark.parametrize(
    ("queried", "cost", "expected"),
    [
        ([], [1, 3, 9], [1, 1]),
        ([0, 0, 0], [1, 3, 9], [1, 1]),  # three steps are not more than three
        ([0, 0, 0, 0], [1, 3, 9], [2, 2]),
        ([0, 0, 0, 0, 0, 0, 0], [1, 3, 9], [2, 2]),  # the count starts again
        ([0] * 8, [1, 3, 9], [4, 4]),
        ([0, 0, 0, 1, 0, 0, 0], [1, 3, 9], [1, 2]),  # level 2 is above the first, not above the second
        ([0, 0, 0, 2, 0, 0, 0], [1, 3, 9], [1, 1]),
        ([1, 1, 1, 1], [1, 3, 9], [1, 2]),
        ([2] * 20, [1, 3, 9], [1, 1]),
        ([0, 0], [1, 1.5, 9], [2, 1]),  # 1.5 steps are passed by the second
        ([0] * 7, [1, 2.5, 15], [4, 2]),  # after 3, 6 steps, and after 7
        ([0, 0, 1, 0, 0, 1], [4, 9], [1]),
        ([0, 0, 0], [4, 9], [2]),
        ([0, 0, 0], [5], []),
    ],
)
def test_a_threshold_doubles_when_nothing_above_it_was_queried_for_longer_than_the_cost_ratio(queried, cost, expected):
    assert adapted_gammas(1.0, queried, cost) == expected


def test_a_threshold_stays_a_number():
    assert adapted_gammas(1e300, [0] * 200, [1.0, 1.0])[0] < math.inf


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((9, 9, 3), 2),
        ((9, 9, 2), 1),  # the target has too few: who has most, the dearer of equals
        ((9, 4, 2), 0),
        ((0, 0, 1), 2),
        ((1, 0, 1), 2),
        ((2, 2, 1), 1),
        ((5,), 0),
        ((1,), 0),
    ],
)
def test_the_target_lends_its_hyperparameters_if_it_has_three_results(counts, expected):
    assert fallback_level(counts) == expected


# zeta and the thresholds at first -----------------------------------------------------------------------------------


def test_zeta_starts_at_a_hundredth_of_the_range_of_the_start():
    for values in ([2.0, 5.0, 3.5], [-5.0, -2.0, -3.0]):
        history = observed(*((i / 4, Z[i], y) for i, y in enumerate(values)))
        why = suggest(history).why
        assert why["zeta"] == pytest.approx(0.03, rel=1e-12)
        assert why["thresholds"] == pytest.approx([0.03, 0.03], rel=1e-12)


def test_results_that_were_brought_count_as_the_start_and_those_of_iterations_and_failures_do_not():
    start = [
        trial(0, 0.1, Z[0], 2.0, phase="added"),
        trial(1, 0.2, Z[2], 5.0),
        trial(2, 0.3, Z[1], 0.0, state="failed"),
    ]
    later = [trial(3, 0.4, Z[0], 100.0, phase="model"), trial(4, 0.5, Z[0], -100.0, phase="added")]
    assert suggest(History(start)).why["zeta"] == pytest.approx(0.03, rel=1e-12)
    assert suggest(History(start + later)).why["zeta"] == pytest.approx(0.03, rel=1e-12)


def test_a_start_of_equal_values_has_the_scale_of_the_model_for_its_range():
    same = observed((0.1, Z[0], 4.0), (0.5, Z[2], 4.0))
    assert suggest(same).why["zeta"] == 0.01  # known processes are not standardized
    why = suggest(same, hyperparameters=None).why
    assert why["zeta"] == pytest.approx(0.01 * why["fits"]["scale"], rel=1e-12)


def test_values_whose_range_is_no_float_give_a_zeta_that_is_one():
    history = observed((0.1, Z[0], -1.7e308), (0.5, Z[2], 1.7e308), (0.7, Z[1], 0.0))
    why = suggest(history, hyperparameters=None).why
    assert 0.0 < why["zeta"] < math.inf
    json.dumps(why, allow_nan=False)


# Checks -------------------------------------------------------------------------------------------------------------


def surprised(m, value, mean, *, x=0.5, more=()):
    """Return a history with zeta = 0.1 and one iteration at level m (from 0) that told `value` where `mean` was due."""
    start = [trial(0, 0.0, Z[2], 0.0), trial(1, 1.0, Z[2], 10.0), trial(2, 0.9, Z[0], 5.0), trial(3, 0.1, Z[1], 5.0)]
    below = {"z": {"z": Z[m - 1]}, "mean": mean}
    return History([*start, trial(4, x, Z[m], value, phase="model", below=below), *more])


@pytest.mark.parametrize(("m", "allowed"), [(2, 0.1), (1, 0.2)])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_surprising_value_leads_to_a_query_of_the_same_point_one_level_below(m, allowed, side):
    """zeta_{m-1} is zeta below the target, twice that below the level before it."""
    quiet, loud = (suggest(surprised(m, 3.0 + side * share * allowed, 3.0)) for share in (0.99, 1.01))
    assert "checks" not in quiet.why
    assert loud.why["checks"] == 4
    assert loud.x == {"x": 0.5}
    assert loud.z == {"z": Z[m - 1]}
    assert loud.why["level"] == m
    assert loud.why["phase"] == "model"
    assert "trial 4" in loud.why["reason"]


@pytest.mark.parametrize(("m", "allowed"), [(2, 0.1), (1, 0.2)])
def test_the_result_of_a_check_widens_zeta_when_it_differs_enough(m, allowed):
    for difference, expected in ((0.99 * allowed, 0.1), (1.01 * allowed, 2.02 * allowed), (7.0, 14.0)):
        check = trial(5, 0.5, Z[m - 1], 3.0 - difference, phase="model", checks=4)
        why = suggest(surprised(m, 3.0, 9.0, more=[check])).why
        assert why["zeta"] == pytest.approx(expected, rel=1e-12)
        assert "checks" not in why


def test_a_point_that_is_known_one_level_below_needs_no_check_to_widen_zeta():
    """On a lattice, at a corner or with DIRECT the same x comes back at the next level: both results are there."""
    brought = [trial(5, 0.5, Z[1], 9.0, phase="added")]
    history = surprised(2, 3.0, 9.0, more=brought)
    why = suggest(history).why
    assert "checks" not in why
    assert why["zeta"] == pytest.approx(12.0, rel=1e-12)


def test_a_check_that_surprises_is_checked_itself():
    below = {"z": {"z": Z[0]}, "mean": 2.0}
    check = trial(5, 0.5, Z[1], 3.0, phase="model", checks=4, below=below)
    suggestion = suggest(surprised(2, 3.0, 9.0, more=[check]))
    assert suggestion.why["checks"] == 5
    assert suggestion.z == {"z": Z[0]}


@pytest.mark.parametrize("state", ["running", "failed"])
def test_a_check_that_is_out_or_failed_is_not_repeated_and_widens_nothing(state):
    check = trial(5, 0.5, Z[1], None, phase="model", state=state, checks=4)
    why = suggest(surprised(2, 3.0, 9.0, more=[check])).why
    assert "checks" not in why
    assert why["zeta"] == pytest.approx(0.1, rel=1e-12)


def test_surprises_are_checked_in_the_order_of_the_queries():
    below = {"z": {"z": Z[1]}, "mean": 0.0}
    more = [trial(5, 0.7, Z[2], 3.0, phase="model", below=below)]
    assert suggest(surprised(2, 3.0, 9.0, more=more)).why["checks"] == 4
    more.append(trial(6, 0.5, Z[1], 3.0, phase="model", checks=4))
    assert suggest(surprised(2, 3.0, 9.0, more=more)).why["checks"] == 5


def test_a_wider_zeta_calls_off_checks_of_what_it_allows():
    """The check of query 4 found a difference of 3, zeta is 6: the surprise of 5 at query 5 is none any more."""
    below = {"z": {"z": Z[1]}, "mean": 0.0}
    more = [
        trial(5, 0.7, Z[2], 5.0, phase="model", below=below),
        trial(6, 0.5, Z[1], 6.0, phase="model", checks=4),
    ]
    why = suggest(surprised(2, 3.0, 9.0, more=more)).why
    assert why["zeta"] == pytest.approx(6.0, rel=1e-12)
    assert "checks" not in why


def test_no_check_is_made_where_three_trials_failed():
    fails = [trial(5 + i, 0.5, Z[2], None, phase="queued", state="failed") for i in range(3)]
    assert "checks" in suggest(surprised(2, 3.0, 9.0, more=fails[:2])).why
    assert "checks" not in suggest(surprised(2, 3.0, 9.0, more=fails)).why


def test_a_failure_surprises_nobody():
    history = surprised(2, 3.0, 9.0)
    failed = replace(history[4], state="failed", observations=())
    assert "checks" not in suggest(History([*history[:4], failed])).why


def test_checks_go_down_a_list_that_the_user_gives():
    """With two levels zeta_1 is zeta itself."""
    given = [{"z": 0.5}]
    start = [trial(0, 0.0, 1.0, 0.0), trial(1, 1.0, 1.0, 10.0), trial(2, 0.1, 0.5, 5.0)]
    asked = trial(3, 0.3, 1.0, 3.0, phase="model", below={"z": {"z": 0.5}, "mean": 2.85})
    suggestion = suggest(History([*start, asked]), fidelities=given)
    assert suggestion.why["checks"] == 3
    assert suggestion.z == {"z": 0.5}
    assert "below" not in suggestion.why


# Whole runs, replayed -----------------------------------------------------------------------------------------------


def made(direction="maximize"):
    return boca.Problem(
        boca.Space(kind=boca.Choice(["u", "v"]), x=boca.Float(-1.0, 3.0)),
        boca.Space(z=boca.Float(0.0, 1.0)),
        cost=lambda z: 0.1 + z["z"],
        direction=direction,
    )


def g(x, z):
    bias = 0.4 * (1.0 - z["z"]) * math.cos(3.0 * x["x"])
    return 7.0 + math.sin(2.0 * x["x"]) + 0.3 * x["x"] * (x["kind"] == "u") + bias


def play(problem, strategy, objective, *, trials=42, noise=None):
    """Run a study: now and then three trials are out and told out of order, and one in thirteen fails."""
    optimizer = boca.Optimizer(problem, budget=boca.targets(40), strategy=strategy, seed=3)
    out = []
    while len(optimizer.history) < trials and (asked := optimizer.ask()) is not None:
        out.append(asked)
        if len(out) < (3 if asked.number % 9 > 5 else 1):
            continue
        for done in reversed(out):
            if done.number % 13 == 7:
                optimizer.fail(done, "no luck")
            else:
                optimizer.tell(done, objective(done.x, done.z), noise=noise if done.number % 3 == 0 else None)
        out = []
    assert len(optimizer.history) >= trials
    return optimizer.history


Run = namedtuple("Run", "problem history levels")


@pytest.fixture(scope="module")
def run():
    problem = made()
    history = play(problem, boca.MFGPUCB(maximizer="sobol"), g, noise=0.02)
    return Run(problem, history, ladder(problem, None, costs(problem, history)))


def decided(run):
    """Return the trials that the models chose, with those that they knew and those that were out."""
    for asked in run.history:
        if asked.phase == "model":
            before = run.history.read_by(asked)
            yield asked, list(before.finished), list(before.running)


def name_of(z):
    return repr(tuple(z.values()))


def replayed(run, asked, told, out):
    """Return the processes of all levels behind one trial, from the last `fits` and the results alone."""
    fits = [t.why["fits"] for t in run.history if "fits" in t.why and t.number <= asked.number][-1]
    lowest = min(t.value for t in told if t.value is not None)
    y = np.array([lowest if t.value is None else t.value for t in told])
    levels = []
    for z in run.levels:
        record = fits["levels"][name_of(z)]
        theta, scale = np.array(record["theta"]), record["scale"]
        kappa0 = math.exp(theta[0]) * scale**2
        eta2 = math.exp(theta[-1]) * scale**2 + 1e-8 * kappa0
        own = [i for i, t in enumerate(told) if t.z == z]
        mean = np.median(y[own]) if own else np.median(y)
        noise = [told[i].noise or 0.0 for i in own]
        xs, pending = [told[i].x for i in own], [t.x for t in out if t.z == z]
        h = np.exp(theta[1:-1])
        levels.append(Level(run.problem.space, kappa0, h, eta2, mean, xs, y[own], noise=noise, out=pending))
    return levels


def adapted(run, asked, told):
    """Return zeta and the thresholds before one trial, by the rules and the results told."""
    iterations = [t for t in run.history if t.phase == "model" and t.number < asked.number]
    known = {t.number: t.value for t in told if t.value is not None}
    first = iterations[0].number if iterations else asked.number
    start = [value for number, value in known.items() if number < first]
    zeta = one = 0.01 * (max(start) - min(start))
    for t in iterations:
        checked = t.why.get("checks")
        if checked is not None and t.number in known and checked in known:
            difference = abs(known[t.number] - known[checked])
            if difference > (len(run.levels) - 1 - run.levels.index(t.z)) * zeta:
                zeta = 2.0 * difference
    thresholds = []
    for m in range(len(run.levels) - 1):
        ratio = run.problem.cost(run.levels[m + 1]) / run.problem.cost(run.levels[m])
        gamma, since = one, 0
        for t in iterations:
            since = 0 if run.levels.index(t.z) > m else since + 1
            if since > ratio:
                gamma, since = 2.0 * gamma, 0
        thresholds.append(gamma)
    return zeta, thresholds


def due_check(run, asked, told, zeta):
    """Return the first surprising query whose point nobody has tried one level below, or None."""
    tried = {(tuple(t.x.values()), t.z["z"]) for t in run.history if t.number < asked.number}
    for t in run.history:
        m = run.levels.index(t.z)
        if t.phase != "model" or t not in told or t.value is None or m == 0:
            continue
        allowed = (len(run.levels) - m) * zeta
        place = (tuple(t.x.values()), run.levels[m - 1]["z"])
        if abs(t.value - t.why["below"]["mean"]) > allowed and place not in tried:
            return t
    return None


def test_a_run_does_what_it_is_there_for(run):
    """The replay below is worth something only if all that can happen happened."""
    asked = [t for t, _, _ in decided(run)]
    assert {t.why["level"] for t in asked if "checks" not in t.why} >= {1, 3}
    assert any("checks" in t.why for t in asked)
    assert len({t.why["zeta"] for t in asked}) >= 2
    assert len({tuple(t.why["thresholds"]) for t in asked}) >= 2
    assert sum(bool(out) for _, _, out in decided(run)) >= 5
    assert any(t.state == "failed" for t in run.history)


def test_what_a_trial_tells_of_the_target_is_the_posterior_of_its_own_process(run):
    for asked, told, out in decided(run):
        mean, deviation = replayed(run, asked, told, out)[-1].moments([asked.x])
        why = asked.why
        assert why["mean"] == pytest.approx(mean[0], rel=1e-6)
        assert why["std"] == pytest.approx(deviation[0], rel=1e-4)
        assert why["ucb"] == pytest.approx(mean[0] + math.sqrt(why["beta"]) * deviation[0], rel=1e-5)
        assert why["pending"] == [t.number for t in out]
        numbers = why["hyperparameters"]
        assert set(numbers) == {"kappa0", "eta2", "mean", "h_x"}
        iteration = sum(t.phase == "model" and t.number < asked.number for t in run.history) + 1
        diameter = sum(1.0 / h for h in numbers["h_x"])
        assert why["beta"] == pytest.approx(0.5 * 2 * math.log(2.0 * diameter * iteration + 1.0), rel=1e-12)


def test_the_bound_is_the_least_over_all_levels(run):
    for asked, told, out in decided(run):
        levels = replayed(run, asked, told, out)
        bound = least_bound(levels, [asked.x], asked.why["beta"], asked.why["zeta"])[0]
        assert asked.why["bound"] == pytest.approx(bound, rel=1e-6)


def test_no_point_has_a_higher_bound_than_the_one_that_was_asked(run):
    xs = [{"kind": kind, "x": float(x)} for kind in "uv" for x in np.linspace(-1.0, 3.0, 401)]
    free = [(t, told, out) for t, told, out in decided(run) if "checks" not in t.why and not out]
    for asked, told, out in free:
        bounds = least_bound(replayed(run, asked, told, out), xs, asked.why["beta"], asked.why["zeta"])
        assert asked.why["bound"] >= np.max(bounds) - 1e-2 * np.ptp(bounds)  # the search may miss an edge


def test_the_level_is_the_lowest_that_is_still_uncertain(run):
    for asked, told, out in decided(run):
        if "checks" not in asked.why:
            levels = replayed(run, asked, told, out)
            expected = first_uncertain(levels, asked.x, asked.why["beta"], asked.why["thresholds"])
            assert asked.why["level"] == expected
        assert asked.z == run.levels[asked.why["level"] - 1]


def test_zeta_and_the_thresholds_are_what_the_results_make_of_them(run):
    for asked, told, _ in decided(run):
        zeta, thresholds = adapted(run, asked, told)
        assert asked.why["zeta"] == pytest.approx(zeta, rel=1e-12)
        assert asked.why["thresholds"] == pytest.approx(thresholds, rel=1e-12)


def test_a_trial_is_a_check_exactly_when_one_is_due(run):
    for asked, told, _ in decided(run):
        due = due_check(run, asked, told, asked.why["zeta"])
        assert asked.why.get("checks") == (None if due is None else due.number)
        if due is not None:
            assert asked.x == due.x
            assert asked.z == run.levels[run.levels.index(due.z) - 1]


def test_a_trial_above_the_cheapest_level_says_what_the_level_below_expects(run):
    for asked, told, out in decided(run):
        m = asked.why["level"] - 1
        if m == 0:
            assert "below" not in asked.why
            continue
        mean, _ = replayed(run, asked, told, out)[m - 1].moments([asked.x])
        assert asked.why["below"]["z"] == run.levels[m - 1]
        assert asked.why["below"]["mean"] == pytest.approx(mean[0], rel=1e-6)


def test_hyperparameters_are_learned_after_the_start_and_every_25_iterations(run):
    chosen = [t for t in run.history if t.phase == "model"]
    assert len(chosen) > 26
    for i, asked in enumerate(chosen):
        assert asked.why["refit"] is (i % 25 == 0)
        assert ("fits" in asked.why) is (i % 25 == 0)


def test_levels_with_fewer_than_three_results_borrow_and_the_others_have_their_own(run):
    for asked, told, _ in decided(run):
        if "fits" not in asked.why:
            continue
        counts = Counter(name_of(t.z) for t in told)
        names = [name_of(z) for z in run.levels]
        donor = names[fallback_level([counts[name] for name in names])]
        records = asked.why["fits"]["levels"]
        assert list(records) == names
        for name in names:
            borrows = counts[name] < 3 and name != donor
            assert (records[name]["theta"] == records[donor]["theta"]) is (borrows or name == donor)
            assert records[name]["results"] == (counts[donor] if borrows else counts[name])


@pytest.mark.parametrize(
    ("counts", "lends", "own"),
    [((0, 2, 5), 2, set()), ((3, 2, 5), 2, {0}), ((3, 4, 5), 2, {0, 1}), ((4, 1, 2), 0, set()), ((1, 2, 2), 2, set())],
)
def test_who_borrows_from_whom(counts, lends, own):
    rng = np.random.default_rng(1)
    points = [(float(rng.random()), Z[m], float(rng.standard_normal())) for m in range(3) for _ in range(counts[m])]
    why = suggest(observed(*points), hyperparameters=None).why
    records = [why["fits"]["levels"][name_of(z)] for z in JITTER_STEPS]
    for m in range(3):
        assert (records[m] == records[lends]) is (m not in own)
        assert records[m]["results"] == counts[m if m in own else lends]
    # the numbers of the target that are told are those that it borrowed
    theta = records[2]["theta"]
    assert why["hyperparameters"]["kappa0"] == pytest.approx(math.exp(theta[0]) * records[2]["scale"] ** 2, rel=1e-12)
    assert why["hyperparameters"]["h_x"] == pytest.approx([math.exp(theta[1])], rel=1e-12)


def test_why_survives_json_and_the_stored_history_gives_the_same_suggestion(run):
    stored = [Trial.from_json(json.loads(json.dumps(t.to_json(), allow_nan=False))) for t in run.history]
    assert stored == list(run.history)
    one, other = (suggest(History(trials), run.problem, hyperparameters=None) for trials in (run.history, stored))
    assert one == other


def test_minimizing_is_maximizing_the_negative_ask_for_ask(run):
    down = play(made("minimize"), boca.MFGPUCB(maximizer="sobol"), lambda x, z: -g(x, z), noise=0.02, trials=22)
    up = run.history[: len(down)]
    assert [(t.x, t.z, t.phase) for t in down] == [(t.x, t.z, t.phase) for t in up]
    for a, b in zip(up, down, strict=True):
        if a.phase != "model":
            continue
        for key in ("mean", "ucb", "bound"):
            assert b.why[key] == -a.why[key]
        for key in ("std", "zeta", "thresholds", "level", "beta"):
            assert b.why[key] == a.why[key]
        assert b.why.get("checks") == a.why.get("checks")
        if "below" in a.why:
            assert b.why["below"] == {"z": a.why["below"]["z"], "mean": -a.why["below"]["mean"]}


def test_another_list_than_that_of_the_last_fit_is_learned_anew_where_a_level_is_new(run):
    some = suggest(run.history, run.problem, hyperparameters=None, fidelities=[run.levels[1]])
    assert some.why["refit"] is False
    assert len(some.why["thresholds"]) == 1
    new = suggest(run.history, run.problem, hyperparameters=None, fidelities=[{"z": 0.5}, run.levels[1]])
    assert new.why["refit"] is True
    assert list(new.why["fits"]["levels"]) == [name_of(z) for z in ({"z": 0.5}, *run.levels[1:])]


def test_a_list_that_the_user_gives_is_the_list():
    given = [{"z": 0.9}, {"z": 0.0}, {"z": 0.4}, {"z": 0.7}]
    history = observed(*((i / 9, (0.0, 0.4, 0.7, 0.9, 1.0)[i % 5], math.sin(i)) for i in range(10)))
    suggestion = suggest(history, fidelities=given)
    assert len(suggestion.why["thresholds"]) == 4
    order = [{"z": z} for z in (0.0, 0.4, 0.7, 0.9, 1.0)]
    assert suggestion.z == order[suggestion.why["level"] - 1]
    learned = suggest(history, fidelities=given, hyperparameters=None)
    assert list(learned.why["fits"]["levels"]) == [name_of(z) for z in order]


# Results off the list -----------------------------------------------------------------------------------------------


def with_strays(*strays):
    """Return a history, and the same with results at fidelities off the list, brought along before all others."""
    brought = [trial(i, *stray, phase="added") for i, stray in enumerate(strays)]
    later = [trial(len(strays) + i, *point) for i, point in enumerate(SOME)]
    return observed(*SOME), History([*brought, *later])


def assert_same_belief(one, other):
    """The search may start elsewhere, so that of equal bounds another may be found; all else is the same."""
    for key in ("zeta", "thresholds", "beta", "hyperparameters", "refit", "level"):
        assert one.why[key] == other.why[key]
    assert one.why["bound"] == pytest.approx(other.why["bound"], rel=1e-6)
    assert one.why.get("fits", {}).get("levels") == other.why.get("fits", {}).get("levels")


@pytest.mark.parametrize("known", [KNOWN, None], ids=["known", "learned"])
def test_results_at_fidelities_off_the_list_change_nothing(known):
    assert_same_belief(*(suggest(h, hyperparameters=known) for h in with_strays((0.3, 0.5, 0.9), (0.7, 0.0, -0.1))))


@pytest.mark.parametrize("known", [KNOWN, None], ids=["known", "learned"])
def test_wild_results_at_fidelities_off_the_list_change_nothing(known):
    assert_same_belief(*(suggest(h, hyperparameters=known) for h in with_strays((0.3, 0.5, 1e8), (0.7, 0.0, -1e8))))


def test_wild_results_at_fidelities_off_the_list_are_no_measure_of_failures_and_empty_levels():
    lost = trial(6, 0.45, Z[0], None, state="failed")
    start = [t for t in observed(*SOME) if t.z["z"] != Z[1]]
    plain = [replace(t, number=i) for i, t in enumerate([*start, lost])]
    strays = [trial(5 + i, 0.3, 0.5, -1e8, phase="added") for i in range(9)]
    one, other = (suggest(History(trials), hyperparameters=None) for trials in (plain, [*plain, *strays]))
    assert one.why["bound"] == pytest.approx(other.why["bound"], rel=1e-6)


@pytest.mark.parametrize("stray", [True, False], ids=["off the list", "at a level"])
def test_results_of_another_scale_elsewhere_are_no_reason_to_learn_again(stray):
    """A level has its own scale: 1e8 at one is no news to another."""
    z = 0.123 if stray else Z[0]
    points = [(i / 3, Z[2], math.sin(5.0 * i / 3)) for i in range(4)] + [(0.5 + i / 10, z, 1e8 * i) for i in range(3)]
    first = suggest(observed(*points), hyperparameters=None)
    assert first.why["refit"] is True
    asked = trial_of(7, first.x, first.z, why=first.why, state="complete", value=0.5, told=8)
    assert suggest(History([*observed(*points), asked]), hyperparameters=None).why["refit"] is False


# Input --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"maximizer": "lbfgs"}, "maximizer"),
        ({"surrogate": "paper"}, "surrogate"),
        ({"surrogate": boca.Surrogate(fidelity_kernel=lambda a, b: 1.0)}, "fidelity_kernel must be None"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(settings, message):
    with pytest.raises(InvalidInput, match=message):
        boca.MFGPUCB(**settings)


def test_the_numbers_of_a_decision_can_be_given_back():
    """They have no h_z, since every level has a model of its own; a recommendation needs one, and learns it."""
    history = observed(*SOME)
    first = suggest(history)
    numbers = first.why["hyperparameters"]
    assert "h_z" not in numbers
    assert suggest(history, hyperparameters=numbers) == first
    strategy = boca.MFGPUCB(maximizer="sobol", hyperparameters=numbers)
    optimizer = boca.Optimizer(ONE, budget=boca.targets(10), strategy=strategy, seed=0)
    for x, z, y in SOME:
        optimizer.add({"x": x}, {"z": z}, y, cost=1.0)
    assert optimizer.ask().why["hyperparameters"] == numbers
    assert optimizer.recommend().x in [{"x": x} for x, _, _ in SOME]


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_level_without_results_has_its_middle_among_the_largest_floats(sign):
    history = observed(*((i / 7, Z[2], sign * (1.7e308 - 1e307 * (i % 3))) for i in range(8)))
    why = suggest(history, hyperparameters=None).why
    assert math.isfinite(why["bound"])
    assert why["level"] == 1


def test_known_numbers_must_fit_the_problem():
    strategy = boca.MFGPUCB(hyperparameters={**KNOWN, "h_x": [0.1, 0.2]})
    with pytest.raises(InvalidInput, match=r"h_x.* 1 length scale"):
        boca.Optimizer(ONE, budget=boca.targets(10), strategy=strategy, seed=0)
