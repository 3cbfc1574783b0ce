"""Every strategy keeps the contract, and every check of the contract catches a strategy that breaks it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pytest

import boca
from boca import testing
from boca.domain.errors import InvalidInput
from boca.strategies.boca import Theorem
from boca.testing import CASES, CHECKS, Case, check_strategy

BY_NAME = {case.name: case for case in CASES}
FEW = ("two-fidelities", "every-kind-of-parameter", "sources", "few-points")
FEWEST = ("discrete-fidelity", "few-points")


def laplace(a, b):
    """A covariance that is not radial in the unit cube: exponential in numbers, a constant between names."""
    k = 1.0
    for name in a:
        if np.issubdtype(a[name].dtype, np.number):
            k = k * np.exp(-np.abs(a[name] - b[name]) / 20.0)
        else:
            k = k * np.where(a[name] == b[name], 1.0, 0.6)
    return k


def known_process(problem):
    d, p = len(problem.space), len(problem.fidelity)
    return {"kappa0": 2.0, "eta2": 0.01, "mean": 9.0, "h_x": [0.3] * d, "h_z": [1.0] * p}


# How to make the strategy for a problem, and the cases on which it is tried.
STRATEGIES: dict[str, tuple[Callable[[boca.Problem], boca.Strategy], tuple[str, ...]]] = {
    "boca": (lambda _: boca.Boca(), tuple(BY_NAME)),
    "paper": (lambda _: boca.Boca.paper(), FEWEST),
    "paper with sobol": (
        lambda _: boca.Boca.paper(maximizer="sobol"),
        (*FEW, "no-fidelity", "measured-cost"),
    ),
    "known process": (lambda problem: boca.Boca(hyperparameters=known_process(problem)), FEW),
    "theorem": (lambda _: boca.Boca(theorem=Theorem()), FEW[:2]),
    "fidelity kernel": (lambda _: boca.Boca(surrogate=boca.Surrogate(fidelity_kernel=laplace)), FEW[:3]),
    "gp-ucb": (lambda _: boca.GPUCB(), FEWEST),
    "gp-ucb with sobol": (lambda _: boca.GPUCB(maximizer="sobol"), FEW[:2]),
    "gp-ei": (lambda _: boca.GPEI(), FEWEST),
    "gp-ei with sobol": (lambda _: boca.GPEI(maximizer="sobol"), (*FEW[1:], "no-fidelity")),
    "mf-gp-ucb": (lambda _: boca.MFGPUCB(), FEWEST),
    "mf-gp-ucb with sobol": (lambda _: boca.MFGPUCB(maximizer="sobol"), tuple(BY_NAME)),
    "mf-gp-ucb, known process": (
        lambda problem: boca.MFGPUCB(maximizer="sobol", hyperparameters=known_process(problem)),
        FEW,
    ),
    "mf-sko": (lambda _: boca.MFSKO(), FEWEST),
    "mf-sko with sobol": (lambda _: boca.MFSKO(maximizer="sobol"), tuple(BY_NAME)),
    "mf-sko, known process": (
        lambda problem: boca.MFSKO(maximizer="sobol", hyperparameters=known_process(problem)),
        FEW,
    ),
    "random": (lambda _: boca.RandomSearch(), tuple(BY_NAME)),
}


@pytest.fixture
def short_direct(monkeypatch):
    """Let DIRECT stop early: what the contract says does not depend on how well it searches."""
    monkeypatch.setattr("boca.search.maximizer.DIRECT_EVALUATIONS", 60)


def name_of(check):
    return check.__name__.removeprefix("check_")


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
@pytest.mark.parametrize(
    ("strategy", "case"),
    [(strategy, case) for strategy, (_, cases) in STRATEGIES.items() for case in cases],
)
@pytest.mark.usefixtures("short_direct")
def test_contract(strategy, case, check):
    make, _ = STRATEGIES[strategy]
    check(make(BY_NAME[case].problem), BY_NAME[case])


@pytest.mark.parametrize("strategy", [boca.Boca.paper(), boca.GPUCB(), boca.GPEI()], ids=["paper", "gp-ucb", "gp-ei"])
def test_direct_at_full_length_gives_points_with_reasons(strategy):
    case = Case(
        "small", boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 3)), cost=lambda z: z["n"])
    )
    testing.check_points_exist(strategy, case)


def test_check_strategy_runs_every_check_on_every_case():
    seen = []
    checks = [lambda strategy, case, i=i: seen.append((i, strategy, case)) for i in range(3)]
    check_strategy("anything", cases=CASES[:2], checks=checks)
    assert seen == [(i, "anything", case) for i in range(3) for case in CASES[:2]]
    check_strategy(boca.RandomSearch())


def test_the_cases_cover_every_kind_of_problem():
    problems = [case.problem for case in CASES]
    parameters = [p for problem in problems for p in problem.space.values()]
    fidelities = [p for problem in problems for p in problem.fidelity.values()]
    assert {len(problem.fidelity) for problem in problems} >= {0, 1, 2}
    assert {problem.direction for problem in problems} == {"maximize", "minimize"}
    for kinds in (parameters, fidelities):
        assert {type(p) for p in kinds} == {boca.Float, boca.Int, boca.Choice}
    assert any(isinstance(p, boca.Float) and p.log for p in parameters)
    assert any(isinstance(p, boca.Int) and p.log for p in parameters)
    assert {problem.has_declared_cost for problem in problems} == {True, False}
    assert any(math.isfinite(problem.space.size) for problem in problems)


# What the contract leaves open and Boca promises ----------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("strategy", [boca.Boca(), boca.Boca.paper(maximizer="sobol")], ids=["default", "paper"])
def test_boca_says_in_numbers_how_it_chose_the_fidelity(strategy, case):
    decided = [s for _, _, s in testing._decisions(strategy, case) if s.why["phase"] != "start"]
    assert len(decided) == 3
    for suggestion in decided:
        assert {"xi", "gamma", "c", "shrink"} <= set(suggestion.why)
        assert len(suggestion.why["hyperparameters"]["h_z"]) == len(case.problem.fidelity)
        if case.problem.is_target(suggestion.z):
            assert suggestion.why["xi"] == suggestion.why["gamma"] == 0.0
        else:
            assert suggestion.why["xi"] > 0.0


def test_the_default_keeps_its_last_query_for_the_target_and_the_paper_does_not():
    for case in CASES:
        *_, (_, _, last) = testing._decisions(boca.Boca(), case)
        assert last.why["phase"] == "final"
        assert last.z == case.problem.target
        *_, (_, _, last) = testing._decisions(boca.Boca.paper(maximizer="sobol"), case)
        assert last.why["phase"] == "model"


@pytest.mark.parametrize("strategy", [boca.GPUCB(maximizer="sobol"), boca.GPEI(maximizer="sobol"), boca.RandomSearch()])
def test_the_baselines_query_only_the_target(strategy):
    for case in CASES:
        assert all(s.z == case.problem.target for _, _, s in testing._decisions(strategy, case))


def test_with_a_kernel_of_the_user_there_are_no_bandwidths_of_the_fidelities():
    strategy = boca.Boca(surrogate=boca.Surrogate(fidelity_kernel=laplace))
    for _, _, suggestion in testing._decisions(strategy, BY_NAME["two-fidelities"]):
        assert "h_z" not in suggestion.why.get("hyperparameters", {})


def test_known_hyperparameters_are_the_ones_that_decide():
    case = BY_NAME["two-fidelities"]
    known = known_process(case.problem)
    for strategy in (
        boca.Boca(hyperparameters=known),
        boca.GPUCB(maximizer="sobol", hyperparameters=known),
        boca.GPEI(maximizer="sobol", hyperparameters=known),
    ):
        decided = [s.why for _, _, s in testing._decisions(strategy, case) if s.why["phase"] != "start"]
        assert len(decided) == 3
        for why in decided:
            assert why["hyperparameters"] == known
            assert why["refit"] is False
            assert why.get("shrink", 1.0) == 1.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h_x": [0.3]}, r"h_x.* 2 length scales.*\[0.3\]"),
        ({"h_x": [0.3] * 3, "h_z": [1.0]}, "h_x.* 2 length scales"),
        ({"kappa0": "much"}, "finite number"),
        ({"kappa0": 0.0}, r"kappa0.*positive; got 0\.0"),
        ({"eta2": -0.1}, r"eta2.*at least 0; got -0\.1"),
        ({"h_z": [1.0, math.nan]}, "finite"),
        ({"kapa0": 1.0}, "with the keys"),
    ],
)
def test_hyperparameters_that_cannot_be_meant_are_refused(change, message):
    case = BY_NAME["two-fidelities"]
    strategy = boca.Boca(hyperparameters=known_process(case.problem) | change)
    with pytest.raises(InvalidInput, match=message):
        boca.Optimizer(case.problem, budget=boca.targets(10), strategy=strategy, seed=0)


@pytest.mark.parametrize("settings", [boca.Boca, boca.Surrogate])
def test_every_switch_is_on_or_off_and_nothing_else(settings):
    """A word such as "no" would count as on."""
    switches = [f.name for f in fields(settings) if isinstance(getattr(settings(), f.name), bool)]
    assert len(switches) >= 2
    for name in switches:
        assert getattr(settings(**{name: False}), name) is False
        for wrong in ("no", 0, None):
            with pytest.raises(boca.BocaError, match=f"{name} must be True or False; got {wrong!r}"):
                settings(**{name: wrong})


@pytest.mark.parametrize(
    "make",
    [
        lambda: boca.Boca(maximizer="sobbol"),
        lambda: boca.Boca.paper(maximizer="DIRECT"),
        lambda: boca.GPUCB(maximizer="lbfgs"),
        lambda: boca.GPEI(maximizer=None),
        lambda: boca.Boca(start_design="sobbol"),
        lambda: boca.Boca(start_fidelities="cheapest"),
        lambda: boca.Surrogate(kernel="matern"),
        lambda: boca.Surrogate(mean="zero"),
    ],
)
def test_a_misspelt_option_is_refused_when_the_strategy_is_made(make):
    with pytest.raises(InvalidInput):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: boca.Boca(max_shrink="4"),
        lambda: boca.Boca(max_shrink=math.inf),
        lambda: boca.Boca(first_c=None),
        lambda: boca.Boca(first_c=math.inf),
        lambda: boca.Boca(theorem=0.1),
        lambda: boca.Boca.paper(theorem=True),
        lambda: boca.Surrogate(starts=1.5),
        lambda: boca.Surrogate(starts=math.inf),
        lambda: boca.Surrogate(starts="2"),
        lambda: boca.Surrogate(refit_every="25"),
        lambda: boca.Surrogate(refit_every=math.nan),
    ],
)
def test_a_number_that_cannot_be_meant_is_refused_when_the_strategy_is_made(make):
    with pytest.raises(InvalidInput, match=r"max_shrink|first_c|theorem|starts|refit_every"):
        make()


def test_a_float_without_a_fraction_is_a_number_of_starts():
    surrogate = boca.Surrogate(starts=2.0)
    assert type(surrogate.starts) is int
    assert surrogate == boca.Surrogate(starts=2)


BASELINES = {
    "paper": boca.Boca.paper(maximizer="sobol"),
    "gp-ucb": boca.GPUCB(maximizer="sobol"),
    "gp-ei": boca.GPEI(maximizer="sobol"),
    "mf-gp-ucb": boca.MFGPUCB(maximizer="sobol"),
    "mf-sko": boca.MFSKO(maximizer="sobol"),
}
TWO_POINTS = boca.Problem(
    boca.Space(c=boca.Choice(["u", "v"])), boca.Space(z=boca.Int(1, 9)), cost=lambda z: z["z"], target={"z": 5}
)


@pytest.mark.parametrize("told", [(0.3, 0.3), (0.3, 0.1 + 0.2), (0.0, 0.0), (1e308, 1e308)])
@pytest.mark.parametrize("strategy", BASELINES.values(), ids=BASELINES)
def test_equal_results_do_not_say_that_all_others_are_equal_too(strategy, told):
    """By likelihood alone they would, with the widest bandwidth, for the 25 iterations until the next refit."""
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Float(0, 1)), cost=lambda z: 0.1 + z["n"])
    optimizer = boca.Optimizer(problem, budget=boca.targets(50), strategy=strategy, seed=0)
    for i in range(8):
        optimizer.add({"a": i / 7}, {"n": 1.0}, told[i % 2], cost=2.0)
    for is_first in (True, False):
        trial = optimizer.ask()
        assert trial.why["refit"] is is_first
        assert trial.why["hyperparameters"]["h_x"] == pytest.approx([0.4])
        optimizer.tell(trial, told[0])
    optimizer.enqueue({"a": 0.5})
    optimizer.tell(optimizer.ask(), 0.5 * told[0] + 0.2)
    assert optimizer.ask().why["refit"] is True  # they are no longer equal


@pytest.mark.parametrize(
    "strategy", [boca.Boca(), *BASELINES.values(), boca.RandomSearch()], ids=["boca", *BASELINES, "random"]
)
def test_a_fidelity_that_only_stands_in_for_another_is_not_called_a_choice(strategy):
    """Two points: the third query cannot be where it is wanted."""
    optimizer = boca.Optimizer(TWO_POINTS, budget=boca.targets(60), strategy=strategy, seed=0)
    for i in range(4):
        optimizer.add({"c": "uv"[i % 2]}, {"z": 5}, float(i), cost=20.0)
    trials = optimizer.ask(8)
    assert len({(t.x["c"], t.z["z"]) for t in trials}) == 8
    assert ["not idle" in t.why["reason"] for t in trials] == [False] * 2 + [True] * 6


# Strategies that break the contract -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Broken:
    """Random search at random fidelities, with what a change makes of its suggestion."""

    change: Callable[..., boca.Suggestion]
    memory: dict[str, Any] = field(default_factory=dict)

    def suggest(self, problem, history, budget, rng):
        sound = boca.RandomSearch().suggest(problem, history, budget, rng)
        return self.change(sound, self.memory, problem, history, budget, rng)


def why(sound, **more):
    model = {
        "phase": "model",
        "beta": 4.0,
        "mean": 1.0,
        "std": 0.5,
        "ucb": 2.0,
        "hyperparameters": {"kappa0": 1.0, "eta2": 0.1, "mean": 0.0, "h_x": [0.2, 0.2]},
        "refit": True,
        "pending": [],
    }
    return replace(sound, why={**sound.why, **model, **more})


def outside(sound, memory, problem, *_):
    return replace(sound, x={**sound.x, "a": problem.space["a"].high + 1.0})


def unknown_name(sound, *_):
    return replace(sound, z={**sound.z, "color": 1})


def nothing(*_):
    return None


def almost_the_target(sound, memory, problem, *_):
    return replace(sound, z={name: value * (1 - 1e-12) if name == "n" else value for name, value in sound.z.items()})


def no_reason(sound, *_):
    return replace(sound, why={"phase": "start"})


def no_sentence(sound, *_):
    return replace(sound, why={"reason": "ucb", "phase": "start"})


def no_phase(sound, *_):
    return replace(sound, why={"reason": "It seemed right."})


def none_for_absent(sound, *_):
    return replace(sound, why={**sound.why, "beta": None})


def nan_inside(sound, *_):
    return replace(sound, why={**sound.why, "numbers": [1.0, math.nan]})


def no_json(sound, *_):
    return replace(sound, why={**sound.why, "numbers": np.zeros(2)})


def a_tuple(sound, *_):
    return replace(sound, why={**sound.why, "numbers": (1, 2)})


def model_without_numbers(sound, *_):
    return replace(sound, why={**sound.why, "phase": "model"})


def another_bound(sound, *_):
    return why(sound, ucb=3.0)


def half_a_fidelity(sound, *_):
    return why(sound, xi=0.5)


def gap_beyond_one(sound, *_):
    return why(sound, xi=1.5, gamma=0.1, c=1.0, shrink=1.0)


def bandwidths_of_another_space(sound, *_):
    return why(sound, hyperparameters={"kappa0": 1.0, "eta2": 0.1, "mean": 0.0, "h_x": [0.2]})


def blind_to_what_is_out(sound, *_):
    return why(sound, pending=[])


def remembering(sound, memory, problem, *_):
    memory["calls"] = memory.get("calls", 0) + 1
    return replace(sound, x={**sound.x, "a": problem.space["a"].from_unit(1.0 / (1 + memory["calls"]))})


def writing_into_the_history(sound, memory, problem, history, *_):
    for trial in history:
        trial.why["seen"] = True
    return sound


def by_the_clock(sound, memory, problem, history, *_):
    clock = sum(trial.overhead for trial in history) * 1e3 % 1.0
    return replace(sound, x={**sound.x, "a": problem.space["a"].from_unit(clock)})


def by_the_identity_of_objects(sound, memory, problem, history, *_):
    u = (sum(id(trial) for trial in history) // 16 % 9973) / 9973
    return replace(sound, x={**sound.x, "a": problem.space["a"].from_unit(u)})


def lost_without_money(sound, memory, problem, history, budget, rng):
    if budget.left < problem.target_cost:
        raise RuntimeError("there is not enough left for a target")
    return sound


def always_the_same(sound, memory, problem, *_):
    return replace(sound, x=problem.space.from_unit(np.full(len(problem.space), 0.5)))


def blind_to_failures(sound, memory, problem, history, budget, rng):
    if history.complete:
        return replace(sound, x=dict(history.complete[0].x))
    return sound


def lost_after_failures(sound, memory, problem, history, *_):
    return sound if not len(history) else replace(sound, x=dict(history.complete[0].x) and sound.x)


def dividing_by_the_spread(sound, memory, problem, history, *_):
    values = [trial.value for trial in history.complete]
    return sound if not values else replace(sound, why={**sound.why, "spread": 1.0 / (max(values) - min(values))})


def squaring(sound, memory, problem, history, *_):
    values = [trial.value for trial in history.complete]
    return replace(sound, why={**sound.why, "squares": sum(value * value for value in values)})


def deaf_to_the_seed(sound, memory, problem, history, budget, rng):
    return boca.RandomSearch().suggest(problem, history, budget, np.random.default_rng(len(history)))


def seeded_by_chance(sound, memory, problem, history, budget, rng):
    return boca.RandomSearch().suggest(problem, history, budget, np.random.default_rng())


BROKEN = [
    (testing.check_points_exist, outside),
    (testing.check_points_exist, unknown_name),
    (testing.check_points_exist, nothing),
    (testing.check_target_is_exact, almost_the_target),
    (testing.check_reasons_are_given, no_reason),
    (testing.check_reasons_are_given, no_sentence),
    (testing.check_reasons_are_given, no_phase),
    (testing.check_reasons_are_given, none_for_absent),
    (testing.check_reasons_are_given, nan_inside),
    (testing.check_reasons_are_given, no_json),
    (testing.check_reasons_are_given, a_tuple),
    (testing.check_reasons_are_given, model_without_numbers),
    (testing.check_reasons_are_given, another_bound),
    (testing.check_reasons_are_given, half_a_fidelity),
    (testing.check_reasons_are_given, gap_beyond_one),
    (testing.check_reasons_are_given, bandwidths_of_another_space),
    (testing.check_reasons_are_given, blind_to_what_is_out),
    (testing.check_suggest_is_pure, remembering),
    (testing.check_suggest_is_pure, writing_into_the_history),
    (testing.check_suggest_is_pure, seeded_by_chance),
    (testing.check_replay_is_exact, by_the_clock),
    (testing.check_replay_is_exact, by_the_identity_of_objects),
    (testing.check_replay_is_exact, seeded_by_chance),
    (testing.check_budget_is_kept, lost_without_money),
    (testing.check_trials_out_differ, always_the_same),
    (testing.check_failures_bar_a_point, blind_to_failures),
    (testing.check_failures_bar_a_point, lost_after_failures),
    (testing.check_any_values_will_do, dividing_by_the_spread),
    (testing.check_any_values_will_do, squaring),
    (testing.check_seeds_decide, deaf_to_the_seed),
    (testing.check_seeds_decide, seeded_by_chance),
]


@pytest.mark.parametrize(("check", "change"), BROKEN, ids=lambda f: f.__name__.removeprefix("check_"))
def test_a_broken_strategy_is_caught(check, change):
    with pytest.raises(AssertionError, match=r"^\[two-fidelities\] "):
        check(Broken(change), BY_NAME["two-fidelities"])


def test_every_check_has_a_strategy_that_it_catches():
    assert {check for check, _ in BROKEN} == set(CHECKS)


@pytest.mark.parametrize("check", CHECKS, ids=name_of)
def test_the_strategy_that_the_broken_ones_are_made_of_is_sound(check):
    check(Broken(lambda sound, *_: sound), BY_NAME["two-fidelities"])


def test_a_sound_explanation_by_a_model_passes_and_so_its_broken_variants_fail_for_their_own_reason():
    def honest(sound, memory, problem, history, *_):
        return why(sound, pending=[trial.number for trial in history.running])

    testing.check_reasons_are_given(Broken(honest), BY_NAME["two-fidelities"])


def test_money_that_is_overshot_is_caught():
    price = {"now": 1.0}

    def dearer(sound, *_):
        price["now"] *= 1.2
        return sound

    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Float(0, 1)), cost=lambda z: price["now"])
    assert problem.target_cost == 1.0
    with pytest.raises(AssertionError, match=r"trials cost .* and the budget is 2\.5"):
        testing.check_budget_is_kept(Broken(dearer), Case("dearer", problem))


def test_a_study_without_end_is_caught():
    def for_nothing(sound, *_):
        return replace(sound, z={"n": 0.0})

    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Float(0, 1)), cost=lambda z: 1e-9 + z["n"])
    with pytest.raises(AssertionError, match="no end"):
        testing.check_budget_is_kept(Broken(for_nothing), Case("for nothing", problem))


@pytest.mark.parametrize("name", ["boca", "paper", "gp-ucb", "gp-ei", "mf-gp-ucb", "mf-sko", "random"])
@pytest.mark.parametrize("levels", [3, 8])
def test_every_point_of_a_small_problem_is_out_before_one_is_out_twice(name, levels, short_direct):
    problem = boca.Problem(
        boca.Space(k=boca.Int(1, levels)),
        boca.Space(source=boca.Choice(["formula", "rig"])),
        cost=lambda z: 1.0 if z["source"] == "formula" else 3.0,
        target={"source": "rig"},
    )
    for seed in range(3):
        optimizer = boca.Optimizer(problem, budget=boca.targets(60), strategy=STRATEGIES[name][0](problem), seed=seed)
        for k in range(5):
            optimizer.tell(optimizer.ask(), float(k * 7 % 5))
        out = optimizer.ask(2 * levels)
        assert len({(trial.x["k"], trial.z["source"]) for trial in out}) == len(out) == 2 * levels
