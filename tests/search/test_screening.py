"""Bounds that spare candidates their values: what is left out could not have been chosen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import boca
from boca import Choice, Float, History, Int, Problem, Space, Surrogate
from boca.model.dataset import Dataset
from boca.model.posterior import ALL_VALUED_UP_TO, LEADING_RESULTS, leading_count
from boca.search import acquisition
from boca.search.acquisition import BoundAcquisition
from boca.search.maximizer import STARTS, STARTS_PER_GROUP, _ranked, _screened, sobol
from boca.search.objective import SCREENING_BATCH, Bounded
from boca.strategies.boca_turns import TURNS
from boca.testing import Case
from support.trials import made as trial_of

PROBLEMS = {
    "floats": Problem(
        Space({f"x{i}": Float(0.0, 1.0) for i in range(4)}), Space(n=Float(0.0, 1.0)), cost=lambda z: 0.1 + z["n"]
    ),
    "every kind": Problem(
        Space(k=Int(-3, 40), l=Int(1, 1000, log=True), kind=Choice(["one", "two", "three"]), w=Float(0.0, 1.0)),
        Space(n=Float(0.0, 1.0)),
        cost=lambda z: 0.2 + z["n"],
    ),
    "integers": Problem(Space(a=Int(0, 60), b=Int(0, 60))),
}
FORMULAS = {
    "ucb": acquisition.UCB(6.0),
    "log_ei": acquisition.LogEI(9.8),
    "mean": acquisition.Mean(),
    "bound improvement": acquisition.LogBoundImprovement(6.0, 9.8),
    "information": acquisition.LogInformation(1e-4, np.array([10.5, 11.0, 12.0])),
}


def results(problem, n, *, out=0, seed=0):
    """Return n results and some trials that are out, every third at the target."""
    case, rng = Case("", problem), np.random.default_rng(seed)
    trials = []
    for k in range(n + out):
        x, z = (s.from_unit(s.snap(rng.random((1, len(s))))[0]) for s in (problem.space, problem.fidelity))
        z = dict(problem.target) if k % 3 == 0 else z
        why = {"reason": "", "phase": "added"}
        state = {"state": "complete", "value": case.value(x, z) + 0.1 * rng.standard_normal(), "told": 2 * k + 2}
        trials.append(trial_of(k, x, z, problem.cost(z), why, asked=2 * k + 1, **(state if k < n else {})))
    return History(trials)


def known(problem, *, eta2=1e-4):
    """Narrow bandwidths, so that there is much left to explore."""
    d, p = len(problem.space), len(problem.fidelity)
    return {"kappa0": 4.0, "eta2": eta2, "mean": 9.0, "h_x": [0.25] * d, "h_z": [0.7] * p}


def model(name, n=80, *, out=0, eta2=1e-4):
    problem = PROBLEMS[name]
    return Surrogate().known(Dataset.from_history(problem, results(problem, n, out=out)), known(problem, eta2=eta2))


def candidates(name, m=700, seed=1):
    space = PROBLEMS[name].space
    return space.snap(np.random.default_rng(seed).random((m, len(space))))


@pytest.fixture
def few_leading(monkeypatch):
    """Let 16 results bound what 80 say."""
    monkeypatch.setattr("boca.model.posterior.ALL_VALUED_UP_TO", 32)
    monkeypatch.setattr("boca.model.posterior.LEADING_RESULTS", 16)


@pytest.fixture(params=["16 of 80", "all 80"])
def bounded(request):
    """Let 16 results bound what 80 say, or all of them, in single precision."""
    if request.param == "16 of 80":
        request.getfixturevalue("few_leading")
    return request.param


class Watched:
    """A objective that counts the rows that it was asked to value."""

    def __init__(self, objective):
        self.objective, self.valued = objective, 0

    def value(self, U):
        self.valued += len(U)
        return self.objective.value(U)

    def bound(self, U):
        return self.objective.bound(U)

    def value_and_gradient(self, U):
        return self.objective.value_and_gradient(U)


# Bounds ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("out", [0, 5])
def test_a_bound_is_never_below_the_value(name, formula, out, bounded):
    objective, U = BoundAcquisition(model(name, out=out), FORMULAS[formula]), candidates(name)
    value, bound = objective.value(U), objective.bound(U)
    slack = 1e-9 * (1.0 + np.abs(value))
    assert np.all(bound >= value - slack)
    if formula == "mean":
        np.testing.assert_allclose(bound, value, atol=0.2)  # eta2 is far too small for these results
    elif bounded == "16 of 80":
        assert np.mean(bound > value + 1e-3) > 0.5  # else it would bound nothing


@pytest.mark.usefixtures("few_leading")
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_bound_given_draws_is_never_below_the_value(name):
    fitted = model(name, eta2=0.1)
    objective, U = TURNS["log_noisy_ei"].objective(fitted, 4.0, np.random.default_rng(0)), candidates(name)
    value, bound = objective.value(U), objective.bound(U)
    assert np.all(bound >= value - 1e-9 * (1.0 + np.abs(value)))
    assert np.mean(bound > value + 1e-3) > 0.5
    best, values = _screened(objective, U)
    np.testing.assert_array_equal(best[:STARTS_PER_GROUP], U[np.argsort(-value, kind="stable")[:STARTS_PER_GROUP]])
    np.testing.assert_allclose(values[:STARTS_PER_GROUP], np.sort(value)[::-1][:STARTS_PER_GROUP], rtol=1e-9)


def test_the_formulas_rise_with_the_mean_and_the_deviation():
    """So what is too large of either gives a bound; this must hold for every formula of the module."""
    mu = np.repeat(np.linspace(5.0, 13.0, 40), 50)
    sigma = np.tile(np.geomspace(1e-6, 3.0, 50), 40)
    for formula in FORMULAS.values():
        value, by_mu, by_sigma = formula(mu, sigma)
        for axis, slope in enumerate((by_mu, by_sigma)):
            assert np.all(np.diff(value.reshape(40, 50), axis=axis) >= -1e-11)
            assert np.all(np.asarray(slope) >= 0.0)


def test_every_acquisition_that_declares_that_it_rises_is_tested():
    declared = [kind for kind in vars(acquisition).values() if getattr(kind, "rises", None) is True]
    assert {type(formula) for formula in FORMULAS.values()} | {acquisition.LogNoisyEI} == set(declared)


# A formula that falls -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LowerConfidenceBound:
    """mu - 2 sigma, which falls as the deviation grows."""

    rises: ClassVar[bool] = False

    def __call__(self, mu, sigma):
        return mu - 2.0 * sigma, 1.0, -2.0


@dataclass(frozen=True)
class Misdeclared(LowerConfidenceBound):
    """The same, with the wrong declaration."""

    rises: ClassVar[bool] = True


@pytest.mark.parametrize("leading", [16, LEADING_RESULTS])
@pytest.mark.parametrize("name", PROBLEMS)
def test_of_a_formula_that_falls_nothing_is_bounded_and_the_best_candidate_survives(name, leading, monkeypatch):
    monkeypatch.setattr("boca.model.posterior.LEADING_RESULTS", leading)
    fitted, U = model(name, 300), candidates(name)
    assert leading_count(fitted.target_slice) == leading  # screening is on
    objective = Watched(BoundAcquisition(fitted, LowerConfidenceBound()))
    assert objective.bound(U) is None
    points, values = _screened(objective, U)
    assert objective.valued == len(points) == len(U)
    value = objective.value(U)
    np.testing.assert_array_equal(points[0], U[np.argmax(value)])
    assert values[0] == np.max(value)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_maximizer_of_a_formula_that_falls_is_no_worse_than_any_candidate(name):
    fitted, space = model(name, 300), PROBLEMS[name].space
    objective = BoundAcquisition(fitted, LowerConfidenceBound())
    found = sobol(objective, space, np.random.default_rng(3), fitted.anchors())
    some = np.vstack([candidates(name), fitted.queried])
    assert objective.value(found[:1])[0] >= np.max(objective.value(some)) - 1e-9


@pytest.mark.usefixtures("few_leading")
@pytest.mark.parametrize("name", ["floats", "every kind"])
def test_a_formula_that_falls_but_says_it_rises_loses_its_best_candidates(name):
    """A negative control: what the declaration prevents."""
    fitted, U = model(name, 300), candidates(name)
    objective = BoundAcquisition(fitted, Misdeclared())
    value, bound = objective.value(U), objective.bound(U)
    assert np.mean(value > bound + 1e-6) > 0.9
    points, _ = _screened(objective, U)
    best = U[np.argsort(-value, kind="stable")[:STARTS_PER_GROUP]]
    assert not np.array_equal(points[:STARTS_PER_GROUP], best)


@pytest.mark.usefixtures("few_leading")
def test_the_results_tied_to_the_target_lead():
    """The first rows of the factor are those whose fidelity says most of the target: they bound best."""
    fitted = model("floats")
    ties = fitted._target_correlations(fitted.gp.X)
    assert np.all(np.diff(ties) <= 0.0)
    np.testing.assert_array_equal(fitted.gp.X[:27, -1], 1.0)  # a third of 80 results
    assert fitted.gp.X[-1, -1] < 0.5


@pytest.mark.usefixtures("few_leading")
def test_with_few_results_nothing_is_bounded():
    for n, is_bounded in ((10, False), (32, False), (33, True)):
        objective = BoundAcquisition(model("floats", n), FORMULAS["ucb"])
        assert (objective.bound(candidates("floats", 5)) is not None) == is_bounded


def test_the_number_of_leading_results_is_what_the_library_says():
    for n, leading in (
        (ALL_VALUED_UP_TO, None),
        (ALL_VALUED_UP_TO + 1, ALL_VALUED_UP_TO + 1),
        (2 * LEADING_RESULTS, 2 * LEADING_RESULTS),
    ):
        assert leading_count(model("integers", n).target_slice) == leading
    assert leading_count(model("integers", 2 * LEADING_RESULTS + 1).target_slice) == LEADING_RESULTS


# Screening ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("out", [0, 5])
def test_the_best_are_those_of_ranking_everything(name, formula, out):
    fitted = model(name, out=out)
    for seed in range(4):
        U = candidates(name, seed=seed)
        watched = Watched(BoundAcquisition(fitted, FORMULAS[formula]))
        points, values = _screened(watched, U)
        _, all_values = _ranked(watched.objective, U)
        np.testing.assert_allclose(values[:STARTS_PER_GROUP], all_values[:STARTS_PER_GROUP], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(watched.objective.value(points), values, rtol=1e-9, atol=1e-12)
        assert np.all(np.diff(values) <= 0.0)
        assert len(points) == len(values) == watched.valued
        if formula == "mean":
            assert watched.valued == SCREENING_BATCH  # the bound is the value but for rounding


@pytest.mark.usefixtures("bounded")
def test_it_looks_at_fewer_than_all():
    watched = Watched(BoundAcquisition(model("floats"), FORMULAS["ucb"]))
    _screened(watched, candidates("floats"))
    assert watched.valued < 700


@pytest.mark.usefixtures("few_leading")
def test_a_bound_that_is_too_low_would_be_seen():
    """A negative control: half the deviation bounds nothing, and the best are lost."""

    class TooLow(Watched):
        def bound(self, U):
            mean, variance = self.objective.model.target_slice.upper_bounds(
                self.objective.model.encoding.x_features(U), 16
            )
            return mean - np.sqrt(variance)

    objective = BoundAcquisition(model("floats"), FORMULAS["ucb"])
    U = candidates("floats")
    _, values = _screened(TooLow(objective), U)
    assert not np.allclose(values[:STARTS_PER_GROUP], _ranked(objective, U)[1][:STARTS_PER_GROUP])


class Toy:
    """Values and bounds that were written down."""

    def __init__(self, bounds=None):
        self.bounds, self.asked = bounds, []

    def value(self, U):
        self.asked += U[:, 0].astype(int).tolist()
        return U[:, 1]

    def value_and_gradient(self, U):
        return U[:, 1], np.zeros_like(U)

    def bound(self, U):
        return None if self.bounds is None else self.bounds


def toy_rows(values):
    return np.column_stack([np.arange(len(values)), values])


def test_an_objective_without_bounds_is_ranked_as_a_whole():
    class Unbounded:
        value, value_and_gradient = Toy.value, Toy.value_and_gradient
        asked: list[int]

        def __init__(self):
            self.asked = []

    U = toy_rows(np.random.default_rng(0).random(300))
    assert isinstance(Toy(), Bounded)
    assert not isinstance(Unbounded(), Bounded)
    for objective in (Unbounded(), Toy(bounds=None)):
        points, values = _screened(objective, U)
        assert objective.asked == list(range(300))
        np.testing.assert_array_equal(values, np.sort(U[:, 1])[::-1])
        np.testing.assert_array_equal(points[:, 1], values)


def test_it_stops_where_no_bound_is_above_the_last_of_the_best():
    values = np.linspace(1.0, 0.0, 300)
    exact, loose = Toy(bounds=values), Toy(bounds=np.full(300, 2.0))
    _screened(exact, toy_rows(values))
    assert exact.asked == list(range(SCREENING_BATCH))
    _screened(loose, toy_rows(values))
    assert len(loose.asked) == 300


def test_a_high_bound_at_the_end_is_looked_at_first():
    values, bounds = np.zeros(300), np.zeros(300)
    values[299], bounds[299] = 1.0, 5.0
    toy = Toy(bounds=bounds)
    points, _ = _screened(toy, toy_rows(values))
    assert toy.asked[0] == 299
    assert points[0, 0] == 299


@pytest.mark.parametrize("m", [0, 1, STARTS_PER_GROUP - 1, STARTS_PER_GROUP, SCREENING_BATCH])
def test_few_candidates_are_all_looked_at(m):
    values = np.random.default_rng(2).random(m)
    points, found = _screened(Toy(bounds=values + 0.1), toy_rows(values))
    assert len(points) == m
    np.testing.assert_array_equal(found, np.sort(values)[::-1])


def test_fewer_than_the_starts_is_never_an_end():
    """The fourth best is what a bound is held against: with values far below their bounds it goes on."""
    values = np.full(200, -10.0)
    values[:3] = 1.0
    toy = Toy(bounds=np.linspace(2.0, 0.5, 200))
    _screened(toy, toy_rows(values))
    assert len(toy.asked) == 200


# Few of many ----------------------------------------------------------------------------------------------------------


def ranked_by_mean(fitted):
    return fitted.queried[np.argsort(-fitted.means(fitted.queried), kind="stable")]


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_best_of_what_was_run_are_among_those_that_promise_most(name, monkeypatch):
    everything = model(name, 90)
    np.testing.assert_array_equal(everything.anchors(), ranked_by_mean(everything)[:5])
    monkeypatch.setattr("boca.model.posterior.BEST_AMONG_RESULTS", 45)
    some = model(name, 90)
    np.testing.assert_array_equal(some.anchors(2), everything.anchors(2))
    assert len(some.anchors(90)) <= 45


def test_a_high_result_far_from_the_target_does_not_take_the_place_of_one_at_it(monkeypatch):
    """Where cheap results are high and say nothing of the target, the best x is one that was run there."""
    problem = PROBLEMS["floats"]
    history = results(problem, 60)
    raised = History([t if problem.is_target(t.z) else t.completed(t.value + 50, z={"n": 0.0}) for t in history])
    fitted = Surrogate().known(Dataset.from_history(problem, raised), known(problem) | {"h_z": [0.2]})
    monkeypatch.setattr("boca.model.posterior.BEST_AMONG_RESULTS", 20)
    best = problem.space.from_unit(fitted.anchors(1)[0])
    assert best in [t.x for t in raised if problem.is_target(t.z)]


@pytest.mark.usefixtures("few_leading")
@pytest.mark.parametrize("eta2", [1e-4, 1.0])
def test_the_maximum_is_drawn_much_as_if_all_deviations_were_exact(eta2):
    fitted, U = model("floats", eta2=eta2), candidates("floats", 256)
    mu, sigma = fitted.moments(U)
    rough_mu, rough = fitted.approximate_moments(U, exact=64)
    np.testing.assert_allclose(rough_mu, mu, rtol=1e-3)
    assert np.all(rough >= sigma - 1e-9)
    is_exact = np.isclose(rough, sigma, rtol=1e-9)
    assert 64 <= np.sum(is_exact) < 256
    assert is_exact[np.argsort(-(mu + 2.0 * sigma))[:16]].all()

    def quartiles(sigma):
        return np.quantile(acquisition.drawn_maxima(mu, sigma, np.random.default_rng(5), 400), [0.25, 0.75])

    exact, close, bounded = map(quartiles, (sigma, rough, fitted.approximate_moments(U, exact=0)[1]))
    assert np.all(exact <= close + 1e-9)
    assert np.all(close - exact < 0.6 * (bounded - exact))
    assert np.all(close - exact < 0.5 * np.diff(exact))


def test_all_deviations_are_exact_where_results_are_few():
    fitted, U = model("floats", 40), candidates("floats", 256)
    np.testing.assert_array_equal(fitted.approximate_moments(U, exact=0), fitted.moments(U))


# In the maximizer -----------------------------------------------------------------------------------------------------


@pytest.fixture
def unbounded(monkeypatch):
    """Let a test be without bounds until it undoes this."""
    monkeypatch.setattr("boca.model.posterior.ALL_VALUED_UP_TO", 10**9)
    return monkeypatch


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("leading", [16, LEADING_RESULTS])
def test_the_maximizer_finds_the_same_with_and_without_bounds(name, formula, leading, unbounded):
    space, fitted = PROBLEMS[name].space, model(name)
    objective = BoundAcquisition(fitted, FORMULAS[formula])
    plain = sobol(objective, space, np.random.default_rng(3), fitted.anchors())
    unbounded.undo()
    unbounded.setattr("boca.model.posterior.LEADING_RESULTS", leading)
    assert leading_count(fitted.target_slice) == min(leading, 80)
    bounded = sobol(objective, space, np.random.default_rng(3), fitted.anchors())
    np.testing.assert_allclose(objective.value(bounded[:1]), objective.value(plain[:1]), rtol=1e-6, atol=1e-6)
    assert len(bounded) <= len(plain)
    assert len(bounded) >= 2 * STARTS
    np.testing.assert_array_equal(space.snap(bounded), bounded)


@pytest.mark.parametrize("leading", [16, LEADING_RESULTS])
def test_a_whole_suggestion_is_as_good_with_bounds_as_without(leading, unbounded):
    problem = PROBLEMS["floats"]
    history, budget = results(problem, 80, out=2), boca.Budget(1e9, 1.0, spent=50.0)
    strategy = boca.Boca(hyperparameters=known(problem), target_turns=("aim",))

    def bound():
        made = strategy.suggest(problem, history, budget, np.random.default_rng(4))
        assert made.why["acquisition"] == "ucb"
        return made.why["ucb"]

    plain = bound()
    unbounded.undo()
    unbounded.setattr("boca.model.posterior.LEADING_RESULTS", leading)
    assert math.isclose(bound(), plain, rel_tol=1e-6)
