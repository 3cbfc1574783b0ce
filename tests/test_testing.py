"""The checks of boca.testing: each catches strategies that break it, and lets a sound one pass."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import boca
from boca import testing
from boca.testing import CASES, CHECKS, Case, check_strategy

BY_NAME = {case.name: case for case in CASES}


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
    return replace(sound, z={**sound.z, "colour": 1})


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


def blind_to_running_trials(sound, *_):
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


def lost_without_budget(sound, memory, problem, history, budget, rng):
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
    (testing.check_reasons_are_given, blind_to_running_trials),
    (testing.check_suggest_is_pure, remembering),
    (testing.check_suggest_is_pure, writing_into_the_history),
    (testing.check_suggest_is_pure, seeded_by_chance),
    (testing.check_replay_is_exact, by_the_clock),
    (testing.check_replay_is_exact, by_the_identity_of_objects),
    (testing.check_replay_is_exact, seeded_by_chance),
    (testing.check_budget_is_kept, lost_without_budget),
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


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__.removeprefix("check_"))
def test_the_strategy_that_the_broken_ones_are_made_of_is_sound(check):
    check(Broken(lambda sound, *_: sound), BY_NAME["two-fidelities"])


def test_a_sound_explanation_by_a_model_passes_and_so_its_broken_variants_fail_for_their_own_reason():
    def honest(sound, memory, problem, history, *_):
        return why(sound, pending=[trial.number for trial in history.running])

    testing.check_reasons_are_given(Broken(honest), BY_NAME["two-fidelities"])


def test_an_overshot_budget_is_caught():
    rate = {"now": 1.0}

    def rising(sound, *_):
        rate["now"] *= 1.2
        return sound

    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Float(0, 1)), cost=lambda z: rate["now"])
    assert problem.target_cost == 1.0
    with pytest.raises(AssertionError, match=r"trials cost .* and the budget is 2\.5"):
        testing.check_budget_is_kept(Broken(rising), Case("rising", problem))


def test_a_study_without_end_is_caught():
    def for_nothing(sound, *_):
        return replace(sound, z={"n": 0.0})

    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Float(0, 1)), cost=lambda z: 1e-9 + z["n"])
    with pytest.raises(AssertionError, match="did not spend a budget"):
        testing.check_budget_is_kept(Broken(for_nothing), Case("for nothing", problem))


# Runs that report -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Continuing:
    """Pause every run at half of its steps, then continue it; stop what a rule of four numbers calls bad."""

    forgets: bool = False
    said: list = field(default_factory=list)

    def suggest(self, problem, history, budget, rng):
        last = history[-1] if len(history) else None
        if last is not None and last.stop is None and last.z["epochs"] < 9:
            return boca.Suggestion(
                last.x, {**last.z, "epochs": 9}, {"reason": "To the end.", "phase": "start"}, last.number
            )
        x = problem.space.from_unit(rng.random(2))
        return boca.Suggestion(x, {"n": 4, "epochs": 5}, {"reason": "A new point.", "phase": "start"})

    def keep_going(self, problem, history, trial, rng):
        self.said.append(trial.number)
        is_bad = trial.x["a"] > 0.5 and trial.reached >= 3
        why = {"reason": "It is bad.", "draw": float(rng.random())}
        if self.forgets:
            why["count"] = len(self.said)
        return boca.Verdict(not is_bad, why)


def test_runs_that_are_stopped_and_continued_keep_the_contract():
    study = testing._study_of_runs(Continuing(), testing.RUNS[0])
    assert any(t.stop for t in study.history)
    assert any(t.continues is not None for t in study.history)
    testing.check_runs(Continuing(), testing.RUNS[0])
    testing.check_runs(boca.RandomSearch(), testing.RUNS[0])


def test_a_decision_to_stop_that_remembers_is_caught():
    with pytest.raises(AssertionError, match=r"differs in a replay|decided differently"):
        testing.check_runs(Continuing(forgets=True), testing.RUNS[0])
