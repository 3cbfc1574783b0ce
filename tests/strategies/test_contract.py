"""Every strategy keeps the contract, and every check of the contract catches a strategy that breaks it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest

import boca
from boca import testing
from boca.domain.errors import InvalidInput
from boca.strategies.boca import Theorem
from boca.testing import CASES, CHECKS, Case

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
    """Two points: mostly, from the fifth query on, none can be where it is wanted.

    `Boca` may still want a fidelity that is free, where those that run will tell enough about the cheaper one.
    """
    optimizer = boca.Optimizer(TWO_POINTS, budget=boca.targets(60), strategy=strategy, seed=0)
    for i in range(4):
        optimizer.add({"c": "uv"[i % 2]}, {"z": 5}, float(i), cost=20.0)
    trials = optimizer.ask(8)
    assert len({(t.x["c"], t.z["z"]) for t in trials}) == 8
    stands_in = ["not idle" in t.why["reason"] for t in trials]
    assert stands_in[:2] == [False] * 2
    assert sum(stands_in[4:]) >= (3 if isinstance(strategy, boca.Boca) else 4)


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
