"""How Boca heeds limits: what x maximizes, and which fidelity is worth a query."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

import boca
from boca import AtMost, Boca, Budget, Float, History, Int, Optimizer, Problem, RandomSearch, Space, Surrogate
from boca.domain.errors import InvalidInput
from boca.model.feasibility import Feasibility
from boca.search import acquisition
from boca.strategies.boca_limits import IMPROVEMENTS, cheapest_informative, entropy_bits, incumbents, weighed
from boca.strategies.boca_turns import AIMS, TURNS

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
FIDELITY = Space(n=Float(0.0, 1.0))
CHEAP = partial(Problem, SPACE, FIDELITY, cost=lambda z: 0.1 + 0.9 * z["n"])


def imported(of, points, outcome, *, value=lambda x, z: x["a"]):
    opt = Optimizer(of, budget=None, strategy=RandomSearch(), seed=0)
    for x, z in points:
        opt.add(x, z, {"value": value(x, z), **outcome(x, z)})
    return opt.history


def scattered(count=16, seed=0, low=0.0, at_target=lambda k: True):
    rng = np.random.default_rng(seed)
    for k in range(count):
        a, b, n = rng.random(3)
        yield {"a": low + (1 - low) * float(a), "b": float(b)}, ({"n": 1.0} if at_target(k) else {"n": 0.8 * float(n)})


def hill(x, z):
    return x["a"] + 0.3 * math.sin(7 * x["a"] + 4 * x["b"])


def beliefs(of, history):
    rng = np.random.default_rng(0)
    return Surrogate().model(of, history, rng), Feasibility.after(of, history, Surrogate(), rng)


@pytest.fixture
def half():
    """A problem whose better half is infeasible, with results all over it."""
    of = CHEAP(subject_to={"c": AtMost(0.5)})
    history = imported(of, scattered(9), lambda x, z: {"c": x["a"] + 0.1 * math.sin(9 * x["b"])}, value=hill)
    return of, history, *beliefs(of, history)


def test_every_aim_and_turn_has_an_improvement():
    """Without one is the highest mean, which may lie where it is not feasible: log EI takes its turns."""
    assert set(IMPROVEMENTS) == (set(AIMS) | set(TURNS)) - {"best_mean"}
    of = CHEAP(subject_to={"c": AtMost(0.5)})
    for strategy in (Boca(target_every=0.5), Boca(target_turns=("best_mean",))):
        opt = Optimizer(of, budget=boca.targets(6), strategy=strategy, seed=0)
        while trial := opt.ask():
            opt.tell(trial, {"value": hill(trial.x, trial.z), "c": trial.x["a"]})
        at_target = {t.why["acquisition"] for t in opt.history.chosen if of.is_target(t.z)}
        assert "log_ei" in at_target
        assert "best_mean" not in at_target


@pytest.mark.parametrize("by", IMPROVEMENTS)
def test_the_weight_is_the_probability(half, by):
    _, history, model, feasibility = half
    found = weighed(by, model, history, feasibility, 2.0, np.random.default_rng(3))
    U = np.random.default_rng(4).random((50, 2))
    (outcome,) = feasibility.outcomes
    mu, sigma = outcome.model.moments(U)
    expected = found.improvement.value(U) + stats.norm.logcdf((mu - outcome.bound) / sigma)
    np.testing.assert_allclose(found.value(U), expected, rtol=1e-9)
    bound = found.bound(U)
    assert bound is None or np.all(bound >= found.value(U) - 1e-9)


@pytest.mark.parametrize("by", IMPROVEMENTS)
def test_the_gradient_is_that_of_finite_differences(half, by):
    _, history, model, feasibility = half
    found = weighed(by, model, history, feasibility, 2.0, np.random.default_rng(3))
    U = np.random.default_rng(5).random((20, 2))
    value, gradient = found.value_and_gradient(U)
    np.testing.assert_allclose(value, found.value(U), rtol=1e-9)
    step = 1e-6
    for j in range(2):
        e = np.eye(2)[j] * step
        slope = (found.value(U + e) - found.value(U - e)) / (2 * step)
        np.testing.assert_allclose(gradient[:, j], slope, rtol=1e-3, atol=1e-3)


def test_expected_feasible_improvement_is_what_draws_say(half):
    of, history, model, feasibility = half
    found = weighed("log_ei", model, history, feasibility, 2.0, np.random.default_rng(3))
    U = np.random.default_rng(6).random((12, 2)) * [0.6, 1.0]
    rng, draws = np.random.default_rng(7), 400_000
    mu, sigma = model.moments(U)
    best = float(np.max(model.means(incumbents(of, history, model, feasibility))))
    gain = np.maximum(mu + sigma * rng.standard_normal((draws, 12)) - best, 0.0)
    (outcome,) = feasibility.outcomes
    mean, std = outcome.model.moments(U)
    gain *= mean + std * rng.standard_normal((draws, 12)) >= outcome.bound
    error = gain.std(axis=0) / math.sqrt(draws)
    assert np.all(np.abs(np.exp(found.value(U)) - gain.mean(axis=0)) < 5 * error + 1e-8)


def test_what_was_seen_feasible_is_what_is_improved_upon(half):
    of, history, model, feasibility = half
    best = of.space.from_unit(incumbents(of, history, model, feasibility)[0])
    assert best["a"] <= 0.5
    assert len(incumbents(of, history, model, feasibility)) == len(history.feasible(of)) < len(history)


def test_while_nothing_is_likely_feasible_x_is_where_it_is_likeliest():
    of = CHEAP(subject_to={"c": AtMost(0.3)})
    history = imported(of, scattered(low=0.6), lambda x, z: {"c": x["a"]})
    model, feasibility = beliefs(of, history)
    assert weighed("log_ei", model, history, feasibility, 2.0, np.random.default_rng(0)).improvement is None
    suggestion = Boca().suggest(of, history, Budget(20.0, 0.0), np.random.default_rng(1))
    assert suggestion.why["acquisition"] == "feasibility"
    assert suggestion.x["a"] < 0.2
    assert "likeliest to be within their limits" in suggestion.why["reason"]


@pytest.mark.parametrize("seed", range(4))
def test_a_query_goes_where_it_may_be_feasible(half, seed):
    of, history, _, _ = half
    suggestion = Boca().suggest(of, history, Budget(20.0, 0.0), np.random.default_rng(seed))
    assert suggestion.x["a"] < 0.6
    why = suggestion.why
    assert why["feasible"] == why["outcomes"]["c"]["probability"] > 0.01
    assert why["outcomes"]["c"]["limit"] == 0.5
    assert f"{why['feasible']:.2g}" in why["reason"]


def test_entropy_is_a_bit_at_one_half():
    assert entropy_bits(0.5) == 1.0
    assert entropy_bits(0.0) == entropy_bits(1.0) == 0.0
    assert entropy_bits(0.11) == pytest.approx(0.5, abs=0.01)


def informative(of, history, u, **given):
    settings = {"per_cost": True, "floor": 0.0, "relative": True} | given
    model, feasibility = beliefs(of, history)
    cost = of.grid_costs
    index = cheapest_informative(
        u, [model], feasibility, cost=cost, target_cost=of.target_cost, beta=2.0, c=0.25, **settings
    )
    return None if index is None else of.grid[0][index]


def test_an_open_limit_alone_is_worth_a_cheap_query():
    """The objective is known everywhere; only the outcome is not, and every fidelity tells it."""
    of = CHEAP(subject_to={"c": AtMost(0.0, at="any")})

    def wild(x, z):
        return {"c": math.sin(23 * x["a"]) * math.cos(19 * x["b"])}

    history = imported(of, scattered(40), wild, value=lambda x, z: 0.01 * x["a"])
    _, feasibility = beliefs(of, history)
    U = np.random.default_rng(0).random((200, 2))
    p = feasibility.probability(U)
    is_open = U[np.argmin(np.abs(p - 0.5))]
    assert informative(of, history, is_open) == {"n": 0.0}
    sure = history.feasible(of)[0]
    at = SPACE.to_unit([sure.x])[0]
    assert float(feasibility.probability(at[None, :])[0]) > 0.95
    assert informative(of, history, at) is None


def test_a_limit_that_only_the_target_tells_is_no_reason_for_a_cheap_query():
    of = CHEAP(subject_to={"c": AtMost(0.0)})

    def wild(x, z):
        return {"c": math.sin(23 * x["a"]) * math.cos(19 * x["b"])} if z["n"] == 1.0 else {}

    points = list(scattered(40, at_target=lambda k: k % 4 > 0))
    history = imported(of, points, wild, value=lambda x, z: 0.01 * x["a"])
    _, feasibility = beliefs(of, history)
    assert not feasibility.outcomes[0].tells_below
    U = np.random.default_rng(0).random((200, 2))
    is_open = U[np.argmin(np.abs(feasibility.probability(U) - 0.5))]
    assert informative(of, history, is_open) is None


@pytest.mark.parametrize(
    "strategy", [Boca.paper(), boca.GPUCB(), boca.GPEI(), boca.MFGPUCB(), boca.MFSKO(), Boca.paper(maximizer="sobol")]
)
def test_the_paper_has_no_limits(strategy):
    with pytest.raises(InvalidInput, match=r"subject_to limits .*'c'.* does not heed limits"):
        Optimizer(CHEAP(subject_to={"c": AtMost(1.0)}), budget=1.0, strategy=strategy)


def test_a_known_gp_is_that_of_the_objective_alone():
    known = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.3, 0.3], "h_z": [1.0]}
    with pytest.raises(InvalidInput, match="Leave hyperparameters out"):
        Optimizer(CHEAP(subject_to={"c": AtMost(1.0)}), budget=1.0, strategy=Boca(hyperparameters=known))


def test_a_strategy_of_ones_own_must_say_that_it_heeds_limits():
    class Own:
        def suggest(self, problem, history, budget, rng):
            raise AssertionError

    with pytest.raises(InvalidInput, match="Own"):
        Optimizer(CHEAP(subject_to={"c": AtMost(1.0)}), budget=boca.targets(1), strategy=Own())
    Own.takes_outcomes = True
    Optimizer(CHEAP(subject_to={"c": AtMost(1.0)}), budget=boca.targets(1), strategy=Own())


# Whole studies --------------------------------------------------------------------------------------------------------


def disk(x, z):
    far = (x["a"] - 0.3) ** 2 + (x["b"] - 0.3) ** 2
    return {"loss": -x["a"] - x["b"] + 0.1 * (1 - z["n"]), "c": far + 0.02 * (1 - z["n"])}


def study(seed=0, targets=12.0, **more):
    return boca.minimize(
        disk,
        SPACE,
        FIDELITY,
        cost=lambda z: 0.1 + 0.9 * z["n"],
        budget=boca.targets(targets),
        subject_to={"c": AtMost(0.04)},
        seed=seed,
        **more,
    )


def test_the_optimum_on_the_border_is_found():
    """The border of the disk is at 0.3 + 0.2 / sqrt 2 in both coordinates."""
    result = study()
    assert result.value == pytest.approx(-0.6 - 0.4 / math.sqrt(2.0), abs=0.01)
    assert 0.5 <= result.recommendation.feasible <= 1.0
    assert any(t.outcomes["c"] > 0.04 for t in result.history)
    assert all(t.state == "complete" for t in result.history)


def test_the_same_seed_decides_the_same_and_a_stored_study_resumes_in_every_bit(tmp_path):
    whole = study(targets=7.0)
    url = f"sqlite:///{tmp_path}/study.db"
    study(targets=7.0, storage=url, stop=lambda history: len(history) >= 9)
    resumed = study(targets=7.0, storage=url)
    assert [(t.x, t.z, t.why) for t in resumed.history] == [(t.x, t.z, t.why) for t in whole.history]
    assert resumed.value == whole.value


def test_limits_that_are_never_near_change_no_more_than_rounding():
    """A limit that every point keeps by far has probability one, and leaves the search where it would be."""
    far = study(targets=5.0)
    assert far.history.feasible(Problem(SPACE, FIDELITY, subject_to={"c": AtMost(0.04)}, direction="minimize"))
    loose = boca.minimize(
        lambda x: {"loss": (x["a"] - 0.3) ** 2 + x["b"], "c": x["a"]},
        SPACE,
        budget=boca.targets(15),
        subject_to={"c": AtMost(1e6)},
        seed=0,
    )
    assert loose.value < 0.01
    assert all(t.why["feasible"] > 0.99 for t in loose.history.chosen)


def test_no_first_feasible_point_does_not_end_a_run():
    found = boca.minimize(
        lambda x: {"loss": x["a"], "c": max(abs(x["a"] - 0.9), abs(x["b"] - 0.9))},
        SPACE,
        budget=boca.targets(25),
        subject_to={"c": AtMost(0.06)},
        seed=3,
    )
    assert all(t.outcomes["c"] > 0.06 for t in found.history[:5])
    assert found.value is not None


def test_nothing_feasible_is_said():
    found = boca.minimize(
        lambda x: {"loss": x["a"], "c": 1.0 + x["b"]},
        SPACE,
        budget=boca.targets(6),
        subject_to={"c": AtMost(0.0)},
        seed=0,
    )
    assert found.x is None
    assert found.recommendation.feasible < 0.5
    assert any("within every limit (c at most 0)" in warning for warning in found.warnings)


def test_integers_and_workers_do_as_well():
    result = boca.maximize(
        lambda x: {"gain": x["k"] + x["a"], "load": x["k"] * (1 + x["a"])},
        Space(k=Int(1, 12), a=Float(0.0, 1.0)),
        budget=boca.targets(16),
        subject_to={"load": AtMost(9.5)},
        seed=0,
    )
    assert result.value >= 9.0


def test_history_of_numbers_alone_is_as_before():
    problem = CHEAP()
    opt = Optimizer(problem, budget=boca.targets(5), seed=0)
    trial = opt.ask()
    opt.tell(trial, 1.0)
    assert opt.history[0].outcomes == {}
    assert isinstance(opt.history, History)
    assert acquisition.LogFeasible.rises is False


# Spaces that are no box -----------------------------------------------------------------------------------------------


RESTRICTED = {
    "constraint": SPACE.where(lambda x: x["a"] + x["b"] <= 1.2, "a + b <= 1.2"),
    "condition": Space(kind=boca.Choice(["one", "two"]), a=Float(0.0, 1.0), b=Float(0.0, 1.0, when={"kind": ["two"]})),
    "list": boca.Candidates([{"a": k / 40, "b": (7 * k % 40) / 40} for k in range(41)]),
}


@pytest.mark.parametrize("kind", RESTRICTED)
@pytest.mark.parametrize("success", [False, True])
def test_limits_hold_on_every_kind_of_space(kind, success):
    """The objective rises with a; from a = 0.6 on it is infeasible, and near b = 1 a trial fails."""
    space = RESTRICTED[kind]
    of = Problem(space, FIDELITY, cost=lambda z: 0.2 + 0.8 * z["n"], subject_to={"c": AtMost(0.6)})
    opt = Optimizer(of, budget=boca.targets(9), strategy=Boca(success=success), seed=1)
    while trial := opt.ask():
        assert space.violated(trial.x) is None
        space.validate(trial.x, "x")
        if trial.x.get("b", 0.0) > 0.85:
            opt.fail(trial, "diverged")
        else:
            opt.tell(trial, {"value": trial.x["a"], "c": trial.x["a"] - 0.05 * (1.0 - trial.z["n"])})
    assert 0.4 < opt.best.value <= 0.6
    assert all("feasible" in t.why for t in opt.history.chosen[1:])  # the first may have one result alone
    assert opt.recommend().feasible > 0.5


def test_limits_and_success_are_learned_from_values_as_told():
    """The objective has a warp here, and outcomes that are as skewed have none; failures are worth nothing to them."""
    of = CHEAP(subject_to={"c": AtMost(math.exp(3.0))})
    strategy = Boca(success=True)
    opt = Optimizer(of, budget=None, strategy=strategy, seed=0)
    for k, (x, z) in enumerate(scattered(40)):
        steep = math.exp(6 * x["a"])
        opt.add(x, z, {"value": -steep, "c": steep})
        if k % 10 == 0:
            opt.enqueue({"a": 0.9, "b": x["b"]})
            opt.fail(opt.ask(), "diverged")
    trial = opt.ask()
    assert opt.recommend().x["a"] < 0.5
    assert "warp" in trial.why
    outcomes = trial.why["outcomes"]
    assert all("warp" not in outcome["fit"] for outcome in outcomes.values())
    assert set(outcomes) == {"c", "success"}
    _, feasibility = (strategy.posterior(of, opt.history), strategy.feasibility(of, opt.history))
    for outcome in feasibility.outcomes:
        model = outcome.model
        assert model.warp is None
        bound = math.exp(3.0) if outcome.name == "c" else 0.7
        assert model.value_as_told(outcome.bound) == pytest.approx(bound)
    assert len(strategy.posterior(of, opt.history).data.y) == 40
