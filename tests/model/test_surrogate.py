"""More results than an exact process can take: the model through few of them, and studies that go on with it."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import boca
from boca import History, Trial, testing
from boca.gp import fit as gp_fit
from boca.model import posterior
from boca.model.dataset import Dataset
from boca.model.encoding import Encoding
from boca.model.fidelity_use import FITTED_RESULTS
from boca.model.fit_record import last_fit
from boca.model.posterior import ACTIVE_RESULTS, EXACT_UP_TO, Model
from boca.model.surrogate import Surrogate
from boca.testing import CASES, CHECKS

unwarped = partial(Surrogate, warp=False, fidelity_axis="as_declared")

BY_NAME = {case.name: case for case in CASES}
RANDOM = np.random.default_rng
SMALL = {"fitted_results": 30, "exact_results": 60}


def small_boca(**settings):
    return boca.Boca(surrogate=Surrogate(**SMALL), **settings)


@pytest.fixture
def small(monkeypatch):
    """With `SMALL`, results are many from 60 on; so whole studies of many take seconds."""
    for name, value in {"ACTIVE_RESULTS": 40, "LEADING_RESULTS": 12}.items():
        monkeypatch.setattr(posterior, name, value)


def laplace(a, b):
    """A covariance of the user's own: exponential in numbers, a constant between names."""
    k = 1.0
    for name in a:
        if np.issubdtype(a[name].dtype, np.number):
            k = k * np.exp(-np.abs(a[name] - b[name]) / 20.0)
        else:
            k = k * np.where(a[name] == b[name], 1.0, 0.6)
    return k


def point(space, rng):
    return space.from_unit(space.snap(rng.random((1, len(space))))[0])


def brought(case, optimizer, n, *, seed=0):
    """Give a study n results that a user has, every third at the target."""
    rng, problem = RANDOM(seed), case.problem
    for k in range(n):
        x, z = point(problem.space, rng), point(problem.fidelity, rng)
        z = dict(problem.target) if k % 3 == 0 else z
        optimizer.add(x, z, case.value(x, z) + 0.05 * rng.standard_normal(), problem.cost(z))
    return optimizer


def study(case, n=100, *, strategy=None, seed=0, **more):
    strategy = small_boca() if strategy is None else strategy
    return brought(case, boca.Optimizer(case.problem, budget=None, strategy=strategy, seed=seed, **more), n)


def model(case, n, *, seed=0, **settings):
    history = study(case, n, strategy=boca.RandomSearch()).history
    return unwarped(**SMALL | settings).model(case.problem, history, RANDOM(seed))


# Which results speak --------------------------------------------------------------------------------------------------


def test_the_numbers_fit_together():
    assert FITTED_RESULTS <= ACTIVE_RESULTS < EXACT_UP_TO


@pytest.mark.parametrize(("n", "size"), [(59, 59), (60, 60), (61, 40), (200, 40)])
@pytest.mark.usefixtures("small")
def test_beyond_what_is_exact_a_model_has_as_many_rows_as_there_are_active_results(n, size):
    fitted = model(BY_NAME["two-fidelities"], n)
    assert len(fitted.gp.factor.L) == len(fitted.gp.X) == len(fitted.gp.alpha) == size
    assert len(fitted.data.y) == n


@pytest.mark.usefixtures("small")
def test_the_best_at_the_target_are_active():
    fitted = model(BY_NAME["two-fidelities"], 150)
    data, width = fitted.data, fitted.encoding.x_width
    at_target = np.flatnonzero((data.X[:, width:] == fitted.encoding.target).all(axis=1))
    best = at_target[np.argsort(-data.y[at_target])][: posterior.ACTIVE_RESULTS // 2]
    rows = {row.tobytes() for row in fitted.gp.X}
    assert len(rows) == 40
    assert all(data.X[k].tobytes() in rows for k in best)
    assert any((row[width:] != fitted.encoding.target).any() for row in fitted.gp.X)  # others have a say too


@pytest.mark.usefixtures("small")
def test_without_any_result_at_the_target_the_others_are_active():
    case = BY_NAME["two-fidelities"]
    optimizer = boca.Optimizer(case.problem, budget=None, seed=0)
    rng = RANDOM(1)
    for _ in range(80):
        x, z = point(case.problem.space, rng), {"n": 0.3 * rng.random(), "m": 2}
        optimizer.add(x, z, case.value(x, z))
    fitted = unwarped(**SMALL).model(case.problem, optimizer.history, RANDOM(0))
    assert len(fitted.gp.X) == 40
    assert optimizer.ask().why["phase"] == "model"


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.usefixtures("small")
def test_just_beyond_what_is_exact_the_model_is_close_to_the_exact_one(name, monkeypatch):
    """With an active set of nearly all, the approximation may not change a decision by more than its own doubt."""
    monkeypatch.setattr(posterior, "ACTIVE_RESULTS", 55)
    case = BY_NAME[name]
    fitted = model(case, 61, guard=None)  # from all results
    U = case.problem.space.snap(RANDOM(2).random((200, len(case.problem.space))))
    mean, deviation = fitted.moments(U)
    exact = replace(fitted, exact_results=61)
    assert len(exact.gp.factor.L) == 61
    exact_mean, exact_deviation = exact.moments(U)
    off = np.abs(mean - exact_mean) / (exact_deviation + 0.02)
    assert np.mean(off) < 0.2
    assert np.max(off) < 1.0
    np.testing.assert_allclose(deviation, exact_deviation, rtol=0.6, atol=1e-4)


def test_at_its_real_size_the_model_is_close_to_the_exact_one():
    """1,201 results on Hartmann 3, through 800 of them, with the noise that they were made with."""
    bench, rng = boca.problems.get("hartmann3"), RANDOM(3)
    problem = bench.problem
    optimizer = boca.Optimizer(problem, budget=None, seed=0)
    for k in range(EXACT_UP_TO + 1):
        x = problem.space.from_unit(rng.random(len(problem.space)))
        z = dict(problem.target) if k % 3 == 0 else problem.fidelity.from_unit(rng.random(len(problem.fidelity)))
        optimizer.add(x, z, bench.observe(x, z, rng))
    history = optimizer.history
    standard = gp_fit.standardize(history.scores(problem.direction))
    encoding = Encoding(problem, "matern52")
    data = Dataset.from_history(problem, history).encoded(encoding, standard)
    h, eta2 = np.array([0.6, 0.5, 0.4, 2.0, 2.0]), bench.noise_variance / standard.scale**2
    ours = Model(problem, encoding, standard, data, 1.0, h, eta2, None)
    assert len(ours.gp.factor.L) == ACTIVE_RESULTS
    U = RANDOM(4).random((500, 3))
    mean, deviation = ours.moments(U)
    exact = replace(ours, exact_results=EXACT_UP_TO + 1)
    assert len(exact.gp.factor.L) == EXACT_UP_TO + 1
    exact_mean, exact_deviation = exact.moments(U)
    off = np.abs(mean - exact_mean) / exact_deviation
    assert np.mean(off) < 0.1
    assert np.max(off) < 1.0
    np.testing.assert_allclose(deviation, exact_deviation, rtol=0.3)
    assert np.mean(np.abs(deviation / exact_deviation - 1.0)) < 0.03


def test_the_limits_of_the_paper_are_beyond_what_its_problems_can_reach():
    """The capital buys at most capital / least cost queries: 4,000 on hartmann6 by the paper's cost function."""
    paper = Surrogate.paper()
    most = {}
    for name in ("gp-smooth", "gp-rough", "currin", "hartmann3", "hartmann6", "borehole", "branin"):
        bench = boca.problems.get(name)
        least = min(bench.problem.cost(z) for z in bench.problem.grid[0])
        most[name] = bench.budget.amount * bench.problem.target_cost / least
    assert max(most, key=most.get) == "hartmann6"
    assert round(max(most.values())) == paper.fitted_results == paper.exact_results == 4000


def test_the_paper_learns_from_and_infers_from_all_results(monkeypatch):
    seen = []

    def spy(kernel, X, y, **more):
        seen.append(len(y))
        return np.zeros(len(more["prior"].mean))

    monkeypatch.setattr(gp_fit, "fit", spy)
    case = BY_NAME["two-fidelities"]
    history = study(case, 1210, strategy=boca.RandomSearch()).history
    for surrogate, fitted, rows in ((Surrogate.paper(), 1210, 1210), (Surrogate(guard=None), 500, 800)):
        found = replace(surrogate, rising_noise=False).model(case.problem, history, RANDOM(0))
        assert seen.pop() == fitted
        assert len(found.gp.X) == rows


@pytest.mark.parametrize("name", ["fitted_results", "exact_results"])
@pytest.mark.parametrize("value", [0, -1, 2.5, "many", None])
def test_a_limit_is_a_whole_number_of_results(name, value):
    with pytest.raises(boca.BocaError, match=name):
        Surrogate(**{name: value})


# Length scales at a bound ---------------------------------------------------------------------------------------------


def test_a_length_scale_at_its_bound_is_named_in_why():
    """Values that do not depend on b or n: likelihood alone pushes their length scales to ten."""
    case = BY_NAME["two-fidelities"]
    rng, problem = RANDOM(0), case.problem
    for strategy in (boca.Boca.paper(maximizer="sobol"), boca.GPUCB(maximizer="sobol")):
        optimizer = boca.Optimizer(problem, budget=None, strategy=strategy, seed=0)
        for _ in range(30):
            x = point(problem.space, rng)
            optimizer.add(x, problem.target, float(np.sin(7.0 * problem.space.to_unit([x])[0, 0])))
        why = optimizer.ask().why
        h = why["hyperparameters"]
        expected = {
            name: [p for p, value in zip(names, h[name], strict=True) if value > 9.99]
            for name, names in (("h_x", list(problem.space)), ("h_z", list(problem.fidelity)))
        }
        assert why["at_bound"] == {name: names for name, names in expected.items() if names}
        assert next(iter(problem.space)) not in why["at_bound"]["h_x"]  # on which the values do depend


def test_between_its_bounds_and_in_a_known_process_nothing_is_said():
    case = BY_NAME["two-fidelities"]
    known = known_process(case.problem, eta2=0.01) | {"h_x": [10.0, 0.01]}
    for strategy in (small_boca(), boca.Boca(hyperparameters=known)):
        optimizer = brought(case, boca.Optimizer(case.problem, budget=None, strategy=strategy, seed=0), 20)
        assert "at_bound" not in optimizer.ask().why


# Hyperparameters from some -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small")
def test_a_fit_sees_as_many_results_as_it_should_and_standardizes_by_all(monkeypatch):
    seen = []
    original = gp_fit.fit

    def spy(kernel, X, y, **more):
        seen.append(len(y))
        return original(kernel, X, y, **more)

    monkeypatch.setattr(gp_fit, "fit", spy)
    for n in (20, 30, 31, 100):
        fitted = model(BY_NAME["two-fidelities"], n)
        assert fitted.fit.results == n
        assert fitted.standard == gp_fit.standardize(
            study(BY_NAME["two-fidelities"], n).history.scores(BY_NAME["two-fidelities"].problem.direction)
        )
        assert max(seen) == min(n, 30)
        seen.clear()


@pytest.mark.usefixtures("small")
def test_hyperparameters_from_some_are_near_those_from_all():
    case = BY_NAME["two-fidelities"]
    from_some = model(case, 150)
    from_all = model(case, 150, fitted_results=10**9)
    some, every = (fitted.h[: fitted.encoding.kernel.size] for fitted in (from_some, from_all))
    assert not np.array_equal(some, every)
    assert np.all(np.abs(np.log(some / every)) < 1.5)


# Studies --------------------------------------------------------------------------------------------------------------


def _known_many(case, n):
    """What the contract calls n known results, with seventy more before them."""
    return study(case, n + 70).history


@pytest.fixture
def many(small, monkeypatch):
    """Every history of the contract that has results has more of them than are taken exactly."""
    monkeypatch.setattr(testing, "_known", _known_many)


def name_of(check):
    return check.__name__.removeprefix("check_")


@pytest.mark.parametrize("check", [testing.check_points_exist, testing.check_failures_bar_a_point], ids=name_of)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("many")
def test_suggestions_after_many_results_exist_in_every_kind_of_space(case, check):
    check(small_boca(), case)


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
@pytest.mark.usefixtures("many")
def test_the_contract_holds_with_many_results(check):
    check(small_boca(), BY_NAME["two-fidelities"])


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.usefixtures("many")
def test_the_contract_holds_with_many_results_in_every_kind_of_space(case, check):
    check(small_boca(), case)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS, ids=name_of)
@pytest.mark.parametrize("case", ["two-fidelities", "sources"])
@pytest.mark.usefixtures("many")
def test_the_contract_holds_with_many_results_and_a_kernel_of_the_user(case, check):
    check(boca.Boca(surrogate=unwarped(**SMALL, fidelity_kernel=laplace)), BY_NAME[case])


@pytest.mark.parametrize("case", ["two-fidelities", "sources"])
@pytest.mark.usefixtures("many")
def test_a_kernel_of_the_user_takes_many_results(case):
    strategy = boca.Boca(surrogate=unwarped(**SMALL, fidelity_kernel=laplace))
    testing.check_reasons_are_given(strategy, BY_NAME[case])


def known_process(problem, *, eta2):
    d, p = len(problem.space), len(problem.fidelity)
    return {"kappa0": 2.0, "eta2": eta2, "mean": 9.0, "h_x": [0.3] * d, "h_z": [1.0] * p}


@pytest.mark.parametrize("eta2", [0.0, 0.01])
@pytest.mark.parametrize("case", ["two-fidelities", "every-kind-of-parameter", "few-points"])
@pytest.mark.usefixtures("many")
def test_a_process_that_is_known_is_compressed_too(case, eta2):
    strategy = small_boca(hyperparameters=known_process(BY_NAME[case].problem, eta2=eta2))
    testing.check_reasons_are_given(strategy, BY_NAME[case])


@pytest.mark.parametrize("strategy", [boca.GPUCB, boca.GPEI], ids=["ucb", "ei"])
@pytest.mark.usefixtures("many")
def test_the_baselines_take_many_results_too(strategy):
    surrogate = replace(Surrogate.paper(), **SMALL)
    testing.check_points_exist(strategy(surrogate, "sobol"), BY_NAME["every-kind-of-parameter"])


def eventful(case, optimizer, steps):
    """Go on with a study in which results come out of order, with noise of their own, and some fail."""
    rng = RANDOM(5)
    for k in range(steps):
        while len(optimizer.running) < 3:
            assert optimizer.ask() is not None
        trial = optimizer.running[int(rng.integers(3))]
        if k % 5 == 4:
            optimizer.fail(trial, "lost")
        else:
            value = case.value(trial.x, trial.z) + 0.05 * rng.standard_normal()
            optimizer.tell(trial, value, cost=case.problem.cost(trial.z), noise=0.01 if k % 2 else None)
    return optimizer


@pytest.mark.parametrize("name", ["two-fidelities", "every-kind-of-parameter", "no-fidelity", "sources"])
@pytest.mark.usefixtures("small")
def test_a_study_passes_the_border_and_its_histories_give_the_same_suggestions_again(name):
    """From 50 results, exact, to 75, through 40: every suggestion can be made again from what was stored."""
    case = BY_NAME[name]
    optimizer = eventful(case, study(case, 50, seed=7), 25)
    history = optimizer.history
    decided = [t for t in history.chosen if t.phase == "model"]
    assert len(decided) >= 20
    sizes = []
    for trial in decided[-3:]:  # replay: what was known when it was asked for
        read = history.read_by(trial)
        stored = [Trial.from_json(json.loads(json.dumps(before.to_json(), allow_nan=False))) for before in read]
        again = optimizer.strategy.suggest(
            case.problem,
            History(stored),
            boca.Budget(float("inf"), 0.0),
            RANDOM([7, trial.number]),
        )
        assert (again.x, again.z) == (trial.x, trial.z)
        assert again.why == trial.why
        sizes.append(sum(t.state != "running" for t in stored))
    assert min(sizes) > 60


@pytest.mark.usefixtures("small")
def test_a_stored_study_with_many_results_is_resumed_to_the_bit(tmp_path):
    case = BY_NAME["every-kind-of-parameter"]
    where = {"storage": f"sqlite:///{tmp_path}/study.db", "name": "many"}
    whole = eventful(case, study(case, 80, seed=8), 8)
    eventful(case, study(case, 80, seed=8, **where), 8)
    resumed = boca.Optimizer(case.problem, budget=None, strategy=small_boca(), seed=8, **where)
    assert [t.x for t in resumed.history] == [t.x for t in whole.history]
    one, other = whole.ask(), resumed.ask()
    assert (one.number, one.x, one.z, one.why) == (other.number, other.x, other.z, other.why)


@pytest.mark.usefixtures("small")
def test_with_many_results_the_optimum_is_still_found_and_recommended():
    case = BY_NAME["two-fidelities"]
    optimizer = study(case, 100, seed=9)
    top = case.value(case.problem.space.from_unit(np.full(2, 0.35)), case.problem.target)
    brought_best = max(case.value(t.x, case.problem.target) for t in optimizer.history if t.z == case.problem.target)
    for _ in range(25):
        trial = optimizer.ask()
        optimizer.tell(trial, case.value(trial.x, trial.z), cost=case.problem.cost(trial.z))
    recommendation = optimizer.recommend()
    assert top - case.value(recommendation.x, case.problem.target) < 0.1
    assert top - max(case.value(t.x, t.z) for t in optimizer.history if t.z == case.problem.target) <= (
        top - brought_best
    )
    assert abs(recommendation.mean - case.value(recommendation.x, case.problem.target)) < 0.2
    assert last_fit(optimizer.history).results > 100


@pytest.mark.usefixtures("small")
def test_what_is_out_is_kept_away_from_with_many_results():
    """Pending rows follow the pseudo-results: the deviation at a trial that is out has gone."""
    case = BY_NAME["no-fidelity"]
    optimizer = study(case, 80, seed=10)
    out = optimizer.ask(4)
    assert len({tuple(t.x.values()) for t in out}) == 4
    fitted = unwarped(**SMALL).model(case.problem, optimizer.history, RANDOM(0))
    data = replace(fitted.data, pending=np.empty((0, 2)), is_pending_target=np.empty(0, dtype=bool))
    alone = replace(fitted, data=data)
    U = case.problem.space.to_unit([t.x for t in out])
    assert len(fitted.gp.X) == 44
    np.testing.assert_allclose(fitted.moments(U)[0], alone.moments(U)[0], rtol=1e-9)
    assert np.all(fitted.moments(U)[1] < alone.moments(U)[1])
    assert np.all(fitted.moments(U)[1] ** 2 <= fitted.eta2 * (1.0 + 1e-9))
