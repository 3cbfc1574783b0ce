"""MF-SKO: its model against dense algebra, its acquisition against the four factors by hand, and whole runs replayed.

[H06] Huang et al., 2006.  The oracle trusts nothing of the library but the numbers that a trial carries: covariances
are written out pair by pair, and the posterior is the textbook's.
"""

from __future__ import annotations

import json
import math
from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import boca
from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput
from boca.domain.trial import History, Trial
from boca.gp import fit as gp_fit
from boca.gp.fit import Standardization
from boca.model.dataset import Dataset
from boca.model.surrogate import Surrogate
from boca.search.maximizer import MAXIMIZERS
from boca.strategies.ladder import ladder, on_levels
from boca.strategies.mf_sko import ImprovementPerCost
from boca.strategies.mf_sko_model import JointPosterior, log_likelihood
from support.levels import (
    EVERY_M,
    EVERY_SPACE,
    NUMBERS,
    Dense,
    by_hand,
    data_of,
    dense_of,
    encoding_of,
    posterior_of,
    setting,
    somewhere,
    training_data,
)
from support.trials import made as trial_of

# A process that is known --------------------------------------------------------------------------------------------


def trials_of(space, levels, count, *, seed=0, out=2):
    rng = np.random.default_rng(seed)
    trials = []
    for i, u in enumerate(space.snap(rng.random((count + out, len(space))))):
        z = levels[int(rng.integers(len(levels)))]
        trial = trial_of(i, space.from_unit(u), dict(z), 1.0, asked=2 * i + 1)
        if i < count:
            trial = trial.completed(float(rng.standard_normal())).stored_at(2 * i + 2)
        trials.append(trial)
    return History([t.completed(t.value, noise=0.3) if t.number == 1 else t for t in trials])


@EVERY_SPACE
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_known_process_is_believed_at_every_level_as_it_is(space, direction):
    """The posterior at (x, z_m) and its covariance with (x, z*) are those of the GP over both, points out included."""
    fidelity = boca.Space(s=boca.Choice(["sim", "lab"]), z=boca.Float(0.0, 4.0))
    problem = boca.Problem(
        space,
        fidelity,
        cost=lambda z: 1.0 + z["z"] + (z["s"] == "lab"),
        target={"s": "lab", "z": 4.0},
        direction=direction,
    )
    levels = ladder(
        problem, [{"s": "sim", "z": 1.0}, {"s": "lab", "z": 0.5}, {"s": "lab", "z": 3.0}], costs(problem, ())
    )
    assert len(levels) == 4
    known = {"kappa0": 2.0, "eta2": 0.05, "mean": 0.7, "h_x": [0.5, 0.9, 0.4][: len(space)], "h_z": [0.8, 0.6]}
    history = trials_of(space, levels, 12)
    posterior = boca.MFSKO(hyperparameters=known)._posterior(problem, history, levels, np.random.default_rng(0))
    model = Surrogate.paper().known(Dataset.from_history(problem, history), known)
    U = somewhere(space, 5)
    mu, variance, covariance = posterior.joint(U)
    for i, u in enumerate(U):
        F = model.at(u, fidelity.to_unit(levels))
        expected_mean, expected_variance = model.gp.posterior(F)
        assert mu[i] == pytest.approx(expected_mean[-1], rel=1e-9)
        np.testing.assert_allclose(variance[:, i], expected_variance, rtol=1e-8)
        np.testing.assert_allclose(covariance[:, i], model.gp.covariance_with(F, F[-1])[1], rtol=1e-8, atol=1e-11)
    assert posterior.value_as_told(float(mu[0])) == model.value_as_told(float(mu[0]))
    numbers = posterior.hyperparameters()
    assert {key: numbers[key] for key in ("kappa0", "eta2", "mean", "h_x")} == {
        key: known[key] for key in ("kappa0", "eta2", "mean", "h_x")
    }


# Acquisition --------------------------------------------------------------------------------------------------------

PER_COST = np.array([2.4, 1.5, 1.0])


def improvement(mu, sigma, best):
    u = (mu - best) / sigma
    return sigma * (norm.pdf(u) + u * norm.cdf(u))


def improvement_by_quadrature(mu, sigma, best):
    def integrand(f):
        return (f - best) * norm.pdf(f, mu, sigma)

    top = max(mu, best) + 12.0 * sigma
    return quad(integrand, best, top, epsabs=0.0, epsrel=1e-11, limit=200, points=[mu])[0]


def three_factors(C, eta2, per_cost):
    """Return correlation with the target, discount for the noise and cost ratio of every level, multiplied."""
    sigma = np.sqrt(np.diagonal(C))
    correlation = C[:, -1] / (sigma * sigma[-1])
    return correlation * (1.0 - math.sqrt(eta2) / np.sqrt(sigma**2 + eta2)) * np.array(per_cost)


def acquired(mu, C, best, eta2, per_cost, expected=improvement):
    """Return the acquisition of [H06] at every level."""
    return expected(mu, math.sqrt(C[-1, -1]), best) * three_factors(C, eta2, per_cost)


@EVERY_SPACE
@EVERY_M
def test_the_acquisition_is_the_product_of_its_four_factors_at_the_best_level(space, M):
    s = setting(space, M)
    posterior, dense = posterior_of(s), dense_of(s)
    U = somewhere(space, 8)
    chosen = set()
    for per_cost in (PER_COST[-M:], PER_COST[-M:] ** 3):
        objective = ImprovementPerCost(posterior, 0.4, per_cost)
        for u, value in zip(U, np.exp(objective.value(U)), strict=True):
            moments = dense.of_levels(space.from_unit(u))
            expected = acquired(*moments, 0.4, s.eta2, per_cost, improvement_by_quadrature)
            assert value == pytest.approx(np.max(expected), rel=1e-7)
            assert objective.level(u) == int(np.argmax(expected))
            np.testing.assert_allclose(np.exp(objective.by_level(u[None, :])[:, 0]), expected, rtol=1e-7)
            chosen.add(objective.level(u))
    assert M == 1 or len(chosen) > 1  # the choice of the level is a choice


def test_prices_decide_between_levels():
    """Dear enough, no cheap level is worth it; cheap enough, the cheapest always is."""
    posterior = posterior_of(setting(NUMBERS, 3))
    U = somewhere(NUMBERS, 10)
    assert {ImprovementPerCost(posterior, 0.4, np.array([0.01, 0.1, 1.0])).level(u) for u in U} == {2}
    assert {ImprovementPerCost(posterior, 0.4, np.array([1e6, 1.0, 1.0])).level(u) for u in U} == {0}


def test_repeating_a_query_is_discounted_by_the_noise():
    """With little noise nothing is left to learn where a level was queried; without a discount it would be asked."""
    s = setting(NUMBERS, 1, noisy=False, out=0)._replace(eta2=1e-6)
    objective = ImprovementPerCost(posterior_of(s), 0.0, np.ones(1))
    best = int(np.argmax(s.y))
    at = NUMBERS.to_unit([s.xs[best]])[0]
    mu, variance, _ = (moment.item() for moment in posterior_of(s).joint(at[None, :]))
    discount = 1.0 - 1.0 / math.sqrt(1.0 + variance / 1e-6)
    assert discount < 1.0 - math.sqrt(0.5)
    assert objective.value(at[None, :])[0] == pytest.approx(math.log(mu) + math.log(discount), rel=1e-6)


def test_without_noise_there_is_no_discount():
    s = setting(NUMBERS, 2, noisy=False, out=0)._replace(eta2=0.0)
    posterior = posterior_of(s)
    assert posterior.eta2 == 0.0
    objective = ImprovementPerCost(posterior, 0.4, np.array([3.0, 1.0]))
    U = somewhere(NUMBERS, 6)
    expected = [np.max(acquired(*dense_of(s).of_levels(NUMBERS.from_unit(u)), 0.4, 0.0, [3.0, 1.0])) for u in U]
    np.testing.assert_allclose(np.exp(objective.value(U)), expected, rtol=1e-6)


def test_a_level_that_has_nothing_in_common_with_the_target_is_not_asked():
    """Independent levels, then opposed ones: the correlation is 0, then -1, and its logarithm stays a number."""
    s = setting(NUMBERS, 1, out=0)
    encoding = encoding_of(NUMBERS)
    for shared in (0.0, -1.0):
        B = np.array([[[1.0, shared], [shared, 1.0]]])
        level = np.ones(len(s.y), dtype=int)
        posterior = JointPosterior.build(
            encoding.problem, encoding, Standardization(0.0, 1.0), data_of(s), level, B, s.h, 0.03, 0.0, None
        )
        objective = ImprovementPerCost(posterior, 0.4, np.array([1000.0, 1.0]))
        U = somewhere(NUMBERS, 6)
        assert np.all(np.isfinite(objective.value(U)))
        assert {objective.level(u) for u in U} == {1}


@EVERY_SPACE
@EVERY_M
def test_the_gradient_of_the_acquisition_is_that_of_its_values(space, M):
    """Central differences of another length, on the inside, on the border and at points that exist."""
    objective = ImprovementPerCost(posterior_of(setting(space, M)), 0.4, PER_COST[-M:])
    U = np.vstack([somewhere(space, 10), np.zeros(len(space)), np.ones(len(space))])
    values, gradient = objective.value_and_gradient(U)
    np.testing.assert_allclose(values, objective.value(U), rtol=1e-12)
    step = 1e-4
    for j, parameter in enumerate(space.values()):
        if isinstance(parameter, boca.Choice):
            np.testing.assert_array_equal(gradient[:, j], 0.0)
            continue
        up, down = U.copy(), U.copy()
        up[:, j], down[:, j] = np.minimum(U[:, j] + step, 1.0), np.maximum(U[:, j] - step, 0.0)
        slope = (objective.value(up) - objective.value(down)) / (up[:, j] - down[:, j])
        np.testing.assert_allclose(gradient[:, j], slope, rtol=2e-3, atol=2e-3)


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


def play(problem, strategy, objective, *, trials=40, noise=None, budget=30):
    """Run a study: now and then three trials are out and told out of order, and one in thirteen fails."""
    optimizer = boca.Optimizer(problem, budget=boca.targets(budget), strategy=strategy, seed=3)
    out = []
    while len(optimizer.history) < trials and (trial := optimizer.ask()) is not None:
        out.append(trial)
        if len(out) < (3 if trial.number % 9 > 5 else 1):
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
    history = play(problem, boca.MFSKO(maximizer="sobol"), g, noise=0.02)
    return Run(problem, history, ladder(problem, None, costs(problem, history)))


def decided(run):
    """Return the trials that the model chose, with those that it knew and those that were out."""
    for trial in run.history:
        if trial.phase == "model":
            before = run.history.read_by(trial)
            yield trial, list(before.finished), list(before.running)


def scores(told):
    """Return the values as they are maximized; a failure is the lowest told so far."""
    lowest = min(t.value for t in told if t.value is not None)
    return np.array([lowest if t.value is None else t.value for t in told])


def replayed(run, trial, told, out):
    """Return the model behind one trial from its `why` and the results alone, in the user's units."""
    numbers = trial.why["hyperparameters"]
    points = [(t.x, run.levels.index(t.z)) for t in [*told, *out]]
    B, h = [term["levels"] for term in numbers["terms"]], [term["h_x"] for term in numbers["terms"]]
    noise = [t.noise or 0.0 for t in told]
    return Dense(run.problem.space, B, h, numbers["eta2"], numbers["mean"], points, scores(told), noise)


def effective_best(dense, told):
    """Return the mean at x**, the queried x of largest mean minus deviation at the target."""
    top = []
    for t in told:
        mu, C = dense.of_levels(t.x)
        top.append((mu - math.sqrt(C[-1, -1]), mu))
    return max(top)[1]


def test_a_run_does_what_it_is_there_for(run):
    """The replay below is worth something only if the model chose between levels, with trials out and failures."""
    asked = {trial.z["z"] for trial, _, _ in decided(run)}
    assert len(asked) >= 2
    assert 1.0 in asked
    assert sum(bool(out) for _, _, out in decided(run)) >= 5
    assert any(t.state == "failed" for t in run.history)


def test_what_a_trial_tells_of_the_target_is_the_posterior_there(run):
    for trial, told, out in decided(run):
        mu, C = replayed(run, trial, told, out).of_levels(trial.x)
        sigma = math.sqrt(C[-1, -1])
        assert trial.why["mean"] == pytest.approx(mu, rel=1e-7)
        assert trial.why["std"] == pytest.approx(sigma, rel=1e-5)
        assert trial.why["ucb"] == pytest.approx(mu + math.sqrt(trial.why["beta"]) * sigma, rel=1e-7)
        assert trial.why["pending"] == [t.number for t in out]


def test_the_model_of_a_trial_is_autoregressive_with_the_median_for_its_mean(run):
    for trial, told, _ in decided(run):
        numbers = trial.why["hyperparameters"]
        terms = numbers["terms"]
        kappa = [terms[t]["levels"][-1][-1] for t in range(3)]
        np.testing.assert_allclose([term["levels"] for term in terms], by_hand(kappa), rtol=1e-14)
        assert numbers["kappa0"] == pytest.approx(sum(kappa), rel=1e-14)
        assert numbers["h_x"] == terms[0]["h_x"]
        assert numbers["mean"] == pytest.approx(np.median(scores(told)), rel=1e-12)


def test_the_level_asked_is_the_one_of_the_largest_acquisition(run):
    per_cost = [1.1 / (0.1 + z["z"]) for z in run.levels]
    for trial, told, out in decided(run):
        dense = replayed(run, trial, told, out)
        eta2 = trial.why["hyperparameters"]["eta2"]
        values = three_factors(dense.of_levels(trial.x)[1], eta2, per_cost)
        assert trial.why["level"] == int(np.argmax(values)) + 1
        assert trial.z == run.levels[trial.why["level"] - 1]
        assert trial.why["acquisition"] == "log_ei"


def test_no_point_and_level_promise_more_than_those_that_were_asked(run):
    per_cost = [1.1 / (0.1 + z["z"]) for z in run.levels]
    for trial, told, out in [decision for decision in decided(run) if not decision[2]][::5]:  # the best may be out
        dense = replayed(run, trial, told, out)
        eta2, best = trial.why["hyperparameters"]["eta2"], effective_best(dense, told)
        asked = np.max(acquired(*dense.of_levels(trial.x), best, eta2, per_cost))
        for kind in ("u", "v"):
            for x in np.linspace(-1.0, 3.0, 33):
                other = acquired(*dense.of_levels({"kind": kind, "x": float(x)}), best, eta2, per_cost)
                assert asked >= np.max(other) * (1.0 - 1e-4)


def test_hyperparameters_are_learned_after_the_start_and_every_25_iterations(run):
    for history in (run.history, long_run()):
        chosen = [t for t in history if t.phase == "model"]
        for i, trial in enumerate(chosen):
            assert trial.why["refit"] is (i % 25 == 0)
            assert ("fits" in trial.why) is (i % 25 == 0)
        assert len(chosen) > 26


def long_run():
    problem = boca.Problem(
        boca.Space(x=boca.Float(0.0, 1.0)), boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.2 + z["z"]
    )
    optimizer = boca.Optimizer(problem, budget=boca.targets(60), strategy=boca.MFSKO(maximizer="sobol"), seed=0)
    start = [({"x": i / 5}, {"z": 1.0}) for i in range(6)]
    for x, z in start:
        optimizer.add(x, z, math.sin(5.0 * x["x"]), cost=20.0)
    for _ in range(52):
        trial = optimizer.ask()
        optimizer.tell(trial, math.sin(5.0 * trial.x["x"]) + 0.1 * trial.z["z"])
    return optimizer.history


def test_between_refits_the_bandwidths_and_scales_stay(run):
    chosen = [t for t in run.history if t.phase == "model"]
    first, second = (
        [[term["h_x"] for term in t.why["hyperparameters"]["terms"]] for t in chosen[i : i + 25]] for i in (0, 25)
    )
    assert all(h == first[0] for h in first)
    assert all(h == second[0] for h in second)
    assert first[0] != second[0]


def test_a_fit_starts_from_the_last_one_and_from_two_random_points(run, monkeypatch):
    seen = []

    def spy(function, *, prior, starts):
        seen.append((prior, starts))
        return gp_fit.fit_theta(function, prior=prior, starts=starts)

    monkeypatch.setattr("boca.strategies.mf_sko_model.fit_theta", spy)
    first, second = (t for t in run.history if t.why.get("refit"))
    for trial in (first, second):
        suggest(run, History(run.history.read_by(trial).finished))
    (prior, cold), (_, warm) = seen
    assert len(cold) == len(warm) == 3
    np.testing.assert_array_equal(cold[0], prior.mean)
    np.testing.assert_array_equal(warm[0], first.why["fits"]["theta"])
    assert np.all(np.isinf(prior.deviation))  # likelihood alone, within the box
    low, high = np.exp(prior.low), np.exp(prior.high)
    np.testing.assert_allclose(low, [1e-2, 1e-6, 1e-6, *[0.01] * 6, 1e-6])
    np.testing.assert_allclose(high, [1e3, 1e3, 1e3, *[10.0] * 6, 2.0])


def test_the_fit_is_a_maximum_of_the_likelihood(run):
    """Within its box, no entry of theta moved by a tenth is better by more than the search's tolerance."""
    trial, told, _ = next(decided(run))
    fits = trial.why["fits"]
    standard = (scores(told) - np.median(scores(told))) / np.std(scores(told))
    assert fits["scale"] == pytest.approx(np.std(scores(told)), rel=1e-12)
    space = run.problem.space
    U = space.to_unit([t.x for t in told])
    data = training_data(
        U,
        encoding_of(space).x_features(U),
        standard,
        np.array([(t.noise or 0.0) / fits["scale"] ** 2 for t in told]),
        np.empty((0, 3)),
    )
    level = np.array([run.levels.index(t.z) for t in told])
    theta = np.array(fits["theta"])

    def value(theta):
        return log_likelihood(theta, encoding_of(space), data, level, 3)[0]

    low = np.log([1e-2, 1e-6, 1e-6, *[0.01] * 6, 1e-6])
    high = np.log([1e3, 1e3, 1e3, *[10.0] * 6, 2.0])
    for e in 0.1 * np.eye(len(theta)):
        for moved in (theta + e, theta - e):
            assert value(np.clip(moved, low, high)) <= value(theta) + 1e-3


def suggest(run, history, strategy=None, seed=5):
    strategy = strategy or boca.MFSKO(maximizer="sobol")
    return strategy.suggest(run.problem, history, Budget(33.0, 3.3, 20.0), np.random.default_rng(seed))


def test_why_survives_json_and_the_stored_history_gives_the_same_suggestion(run):
    stored = [Trial.from_json(json.loads(json.dumps(trial.to_json(), allow_nan=False))) for trial in run.history]
    assert stored == list(run.history)
    assert suggest(run, History(stored)) == suggest(run, run.history)


def test_minimizing_is_maximizing_the_negative_ask_for_ask(run):
    down = play(made("minimize"), boca.MFSKO(maximizer="sobol"), lambda x, z: -g(x, z), noise=0.02, trials=22)
    up = run.history[: len(down)]
    assert [(t.x, t.z, t.phase) for t in down] == [(t.x, t.z, t.phase) for t in up]
    for a, b in zip(up, down, strict=True):
        if a.phase == "model":
            assert b.why["mean"] == -a.why["mean"]
            assert b.why["ucb"] == -a.why["ucb"]
            assert b.why["std"] == a.why["std"]
            assert b.why["hyperparameters"]["terms"] == a.why["hyperparameters"]["terms"]
            assert b.why["hyperparameters"]["mean"] == -a.why["hyperparameters"]["mean"]


def test_results_at_fidelities_off_the_list_change_nothing(run):
    told = [t for t in run.history if t.state != "running"]
    number = len(run.history)
    strays = [
        trial_of(number + i, told[i].x, {"z": z}, 1.0, {"phase": "added"}, "complete", y, asked=999 + i, told=999 + i)
        for i, (z, y) in enumerate([(0.5, 8.0), (0.0, 1e9), (0.9, -1e9)])
    ]
    assert suggest(run, History([*run.history, *strays])) == suggest(run, run.history)
    assert len(on_levels(History([*run.history, *strays]), run.levels)) == number


def test_the_numbers_of_a_decision_can_be_given_back(run):
    """With all their terms they are the model: the same level, and the same posterior."""
    for trial, told, out in [decision for decision in decided(run) if not decision[2]][::6]:
        strategy = boca.MFSKO(maximizer="sobol", hyperparameters=trial.why["hyperparameters"])
        strategy.check(run.problem)
        again = suggest(run, History(sorted(told, key=lambda t: t.number)), strategy)
        assert again.why["refit"] is False
        kappa0 = trial.why["hyperparameters"]["kappa0"]
        assert again.why["hyperparameters"] == {
            **trial.why["hyperparameters"],
            "kappa0": pytest.approx(kappa0, rel=1e-15),  # a sum, whose last bit may differ
        }
        mu, C = replayed(run, trial, told, out).of_levels(again.x)
        assert again.why["mean"] == pytest.approx(mu, rel=1e-7)
        assert again.why["std"] == pytest.approx(math.sqrt(C[-1, -1]), rel=1e-5)
        assert again.why["level"] == trial.why["level"]


TERM = {"levels": np.ones((3, 3)).tolist(), "h_x": [0.5, 0.5]}


@pytest.mark.parametrize(
    "terms",
    [
        [],
        7,
        [{"levels": TERM["levels"]}],
        [TERM | {"levels": np.ones((2, 2)).tolist()}],
        [TERM | {"h_x": [0.5]}],
        [TERM | {"h_x": [0.5, -0.5]}],
        [TERM | {"h_x": [0.5, math.inf]}],
        [TERM | {"levels": [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]}],
        [TERM, TERM | {"levels": [[1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 1.0]]}],
    ],
)
def test_terms_that_cannot_be_meant_are_refused_when_the_study_is_made(terms):
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.5, 0.5], "terms": terms}
    with pytest.raises(InvalidInput, match=r"hyperparameters\['terms'\] must"):
        boca.Optimizer(made(), budget=boca.targets(9), strategy=boca.MFSKO(hyperparameters=known), seed=0)


@pytest.mark.parametrize("name", ["jump", "trend", "noise_rise"])
def test_what_the_model_has_no_place_for_is_refused(name):
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.5, 0.5], "h_z": [1.0], name: 0.5}
    with pytest.raises(InvalidInput, match=f"{name}.*MFSKO"):
        boca.Optimizer(made(), budget=boca.targets(9), strategy=boca.MFSKO(hyperparameters=known), seed=0)


def test_another_list_than_that_of_the_last_fit_is_learned_anew(run):
    """The numbers of three levels say nothing of four, and a warm start from them would have the wrong length."""
    given = [{"z": 0.5}, *run.levels]
    suggestion = suggest(run, run.history, boca.MFSKO(maximizer="sobol", fidelities=given))
    assert suggestion.why["refit"] is True
    assert suggestion.why["fits"]["levels"] == [[1.0 / 3.0], [0.5], [2.0 / 3.0], [1.0]]
    assert len(suggestion.why["fits"]["theta"]) == 4 + 4 * 2 + 1
    assert suggest(run, run.history).why["refit"] is False


# The effective best -------------------------------------------------------------------------------------------------


def captured(monkeypatch, problem, history, strategy):
    """Return what was maximized, the anchors of the search, and the suggestion."""
    seen = []

    def spy(objective, space, rng, anchors):
        seen.append((objective, anchors))
        return MAXIMIZERS["direct"](objective, space, rng, anchors)

    monkeypatch.setitem(MAXIMIZERS, "sobol", spy)
    monkeypatch.setattr("boca.search.maximizer.DIRECT_EVALUATIONS", 300)
    suggestion = strategy.suggest(problem, history, Budget(50.0, 0.0), np.random.default_rng(0))
    return *seen[0], suggestion


ONE = boca.Problem(
    boca.Space(x=boca.Float(0.0, 1.0)), boca.Space(z=boca.Float(0.0, 1.0)), cost=lambda z: 0.1 + 0.9 * z["z"]
)


def observed(points):
    """Return a history of (x, z, y)."""
    return History(
        [
            trial_of(i, {"x": x}, {"z": z}, 1.0, None, "complete", y, asked=i, told=i)
            for i, (x, z, y) in enumerate(points)
        ]
    )


def test_the_best_solution_is_the_one_of_largest_mean_minus_deviation(monkeypatch):
    """A point seen only at a poor fidelity has the larger mean, and is not trusted."""
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.05], "h_z": [0.6]}
    third = ladder(ONE, None, costs(ONE, ()))[0]["z"]
    history = observed([(0.2, 1.0, 1.0), (0.8, third, 3.0)])
    strategy = boca.MFSKO(maximizer="sobol", hyperparameters=known)
    objective, anchors, _ = captured(monkeypatch, ONE, history, strategy)
    rho = math.exp(-0.5 * ((1.0 - third) / 0.6) ** 2)
    means = [1.0 / 1.01, 3.0 * rho / 1.01]
    deviations = [math.sqrt(1.0 - 1.0 / 1.01), math.sqrt(1.0 - rho**2 / 1.01)]
    assert means[1] > means[0]
    assert means[0] - deviations[0] > means[1] - deviations[1]
    assert objective.best == pytest.approx(means[0], rel=1e-6)
    np.testing.assert_allclose(objective.per_cost, [1.0 / (0.1 + 0.9 * z) for z in (1 / 3, 2 / 3, 1.0)], rtol=1e-12)
    np.testing.assert_array_equal(anchors, [[0.8], [0.2]])  # the search looks around the largest means


@pytest.mark.parametrize("maximizer", ["sobol", "direct"])
def test_the_point_asked_is_the_best_of_a_fine_grid(maximizer):
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.1], "h_z": [1.0]}
    history = observed([(0.1, 1.0, 0.3), (0.35, 1.0 / 3.0, 1.0), (0.6, 2.0 / 3.0, 0.8), (0.9, 1.0, -0.5)])
    suggestion = boca.MFSKO(maximizer=maximizer, hyperparameters=known).suggest(
        ONE, history, Budget(50.0, 0.0), np.random.default_rng(0)
    )
    levels = [1.0 / 3.0, 2.0 / 3.0, 1.0]
    z = np.array(levels)
    B = np.exp(-0.5 * (z[:, None] - z[None, :]) ** 2)
    points = [(t.x, levels.index(t.z["z"])) for t in history]
    dense = Dense(ONE.space, [B], [[0.1]], 0.01, 0.0, points, [t.value for t in history])
    best = effective_best(dense, list(history))
    per_cost = 1.0 / (0.1 + 0.9 * z)

    def acquisition(x):
        return acquired(*dense.of_levels({"x": float(x)}), best, 0.01, per_cost)

    grid = max(np.max(acquisition(x)) for x in np.linspace(0.0, 1.0, 201))
    asked = acquisition(suggestion.x["x"])
    assert np.max(asked) >= grid * (1.0 - 1e-6)
    assert suggestion.why["level"] == int(np.argmax(asked)) + 1


# Lists --------------------------------------------------------------------------------------------------------------


def test_a_list_of_ten_fidelities_is_one_model_of_eleven_levels():
    problem = made()
    given = [{"z": i / 10} for i in range(10)]
    strategy = boca.MFSKO(maximizer="sobol", fidelities=given)
    history = play(problem, strategy, g, trials=16, budget=40)
    run = Run(problem, history, [*given, {"z": 1.0}])
    *_, (trial, told, out) = decided(run)
    assert len(trial.why["hyperparameters"]["terms"]) == 11
    assert trial.z in run.levels
    mu, C = replayed(run, trial, told, out).of_levels(trial.x)
    assert trial.why["mean"] == pytest.approx(mu, rel=1e-6)
    assert trial.why["std"] == pytest.approx(math.sqrt(C[-1, -1]), rel=1e-4)
    assert all(t.z in run.levels for t in history)


def test_without_fidelities_it_is_expected_improvement_over_the_effective_best():
    problem = boca.Problem(boca.Space(x=boca.Float(0.0, 1.0)))
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.1]}
    history = History(
        [
            replace(t, planned={}).completed(t.value)
            for t in observed([(0.1, 1.0, 0.3), (0.5, 1.0, 1.0), (0.9, 1.0, 0.2)])
        ]
    )
    strategy = boca.MFSKO(maximizer="sobol", hyperparameters=known)
    suggestion = strategy.suggest(problem, history, Budget(50.0, 0.0), np.random.default_rng(0))
    dense = Dense(problem.space, [[[1.0]]], [[0.1]], 0.01, 0.0, [(t.x, 0) for t in history], [t.value for t in history])
    best = effective_best(dense, list(history))
    grid = np.linspace(0.0, 1.0, 401)
    values = [acquired(*dense.of_levels({"x": float(x)}), best, 0.01, [1.0])[0] for x in grid]
    asked = acquired(*dense.of_levels(suggestion.x), best, 0.01, [1.0])[0]
    assert asked >= max(values) * (1.0 - 1e-6)
    assert suggestion.z == {}
    assert suggestion.why["level"] == 1


def test_a_maximizer_that_does_not_exist_is_refused():
    with pytest.raises(InvalidInput, match="maximizer"):
        boca.MFSKO(maximizer="lbfgs")
