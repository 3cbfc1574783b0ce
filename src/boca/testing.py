"""The contract of a strategy, as checks that raise AssertionError.

    from boca.testing import check_strategy

    check_strategy(MyStrategy())

runs every check on every case.  With pytest, one test per check and case:

    @pytest.mark.parametrize("case", boca.testing.CASES, ids=str)
    @pytest.mark.parametrize("check", boca.testing.CHECKS, ids=lambda check: check.__name__)
    def test_contract(check, case):
        check(MyStrategy(), case)

A case is a problem with an objective.  Write your own if your strategy needs a special one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from boca.domain.budget import Budget, targets
from boca.domain.errors import BocaError
from boca.domain.problem import Problem
from boca.domain.reasons import Reasons
from boca.domain.space import Choice, Float, Int, Point, Space
from boca.domain.steps import Steps
from boca.domain.trial import History, State, Suggestion, Trial, sign
from boca.strategies import Strategy
from boca.study import runs
from boca.study.optimizer import Optimizer

_AMPLE_TARGETS = 20.0  # budget of a single decision: no check needs more
_MOST_STEPS = 400  # of a study of 2.5 targets, whose cheapest queries would need about 100
_MOST_RUNS = 12  # of a study of runs, which a budget of three targets may allow more of
_LARGEST_LISTED_SPACE = 64  # points of a space that a check bars one by one
_PHASES = ("start", "model", "final")
_KEYS_OF_A_MODEL = ("beta", "mean", "std", "ucb", "hyperparameters", "refit", "pending")
_KEYS_OF_A_FIDELITY = ("xi", "gamma", "c", "shrink")
_KEYS_OF_A_PROCESS = ("kappa0", "eta2", "mean", "h_x")


@dataclass(frozen=True, eq=False)
class Case:
    """A problem with an objective, to try a strategy on."""

    name: str
    problem: Problem

    def __str__(self) -> str:
        return self.name

    def value(self, x: Mapping[str, Any], z: Mapping[str, Any]) -> float:
        """Return a bowl in x whose rim rises with the distance of z from the target."""
        u = self.problem.space.to_unit([x])[0]
        w = self.problem.fidelity.to_unit([z, self.problem.target])
        score = 10.0 - 3.0 * float(np.sum((u - 0.35) ** 2)) - 0.3 * float(np.sum(np.abs(w[0] - w[1])))
        return sign(self.problem.direction) * score


CASES: tuple[Case, ...] = (
    Case(
        "two-fidelities",
        Problem(
            Space(a=Float(-1.0, 3.0), b=Float(1e-3, 1e3, log=True)),
            Space(n=Float(0.0, 1.0), m=Int(2, 9)),
            cost=lambda z: 1.0 + z["m"] * (0.5 + z["n"]) ** 2,
        ),
    ),
    Case(
        "every-kind-of-parameter",
        Problem(
            Space(k=Int(-3, 12), l=Int(1, 1000, log=True), kind=Choice(["one", "two", "three"]), w=Float(0.0, 1.0)),
            Space(n=Float(0.0, 1.0)),
            cost=lambda z: 0.2 + z["n"],
        ),
    ),
    Case("no-fidelity", Problem(Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)), direction="minimize")),
    Case(
        "discrete-fidelity",
        Problem(Space(a=Float(0.0, 1.0)), Space(n=Int(1, 4)), cost=lambda z: float(z["n"]), direction="minimize"),
    ),
    Case(
        "sources",
        Problem(
            Space(a=Float(0.0, 1.0)),
            Space(source=Choice(["coarse", "medium", "fine"])),
            cost=lambda z: {"coarse": 2.0, "medium": 5.0, "fine": 10.0}[z["source"]],
            target={"source": "fine"},
        ),
    ),
    Case(
        "target-inside",
        Problem(Space(a=Float(0.0, 1.0)), Space(n=Float(0.1, 1.0)), cost=lambda z: float(z["n"]), target={"n": 0.7303}),
    ),
    Case("flat-cost", Problem(Space(a=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0)), cost=lambda z: 2.0)),
    Case("measured-cost", Problem(Space(a=Float(0.0, 1.0)), Space(n=Int(10, 40, log=True)), direction="minimize")),
    Case("few-points", Problem(Space(kind=Choice(["one", "two"]), k=Int(1, 3)))),
)
"""Floats, ints, logs and choices; none, one and two fidelities, discrete and unordered ones; both directions."""


RUNS: tuple[Case, ...] = (
    Case(
        "steps",
        Problem(
            Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)),
            Space(n=Int(1, 4), epochs=Steps(2, 9)),
            cost=lambda z: float(z["n"] * (1 + z["epochs"])),
        ),
    ),
)
"""Problems whose evaluations pass through steps: they report, and may be stopped and continued."""


StrategyCheck: TypeAlias = Callable[[Strategy, Case], None]


def check_strategy(
    strategy: Strategy, *, cases: Sequence[Case] = CASES, checks: Sequence[StrategyCheck] | None = None
) -> None:
    """Run the checks, all of them by default, on every case; the first that fails raises AssertionError.

    By default, `check_runs` runs too, on the cases of `RUNS`.
    """
    for check in CHECKS if checks is None else checks:
        for case in cases:
            check(strategy, case)
    for case in RUNS if checks is None else ():
        check_runs(strategy, case)


# The checks ---------------------------------------------------------------------------------------------------------


def check_points_exist(strategy: Strategy, case: Case) -> None:
    """Every suggestion is a point of the space at a point of the fidelity space."""
    for _, _, suggestion in _decisions(strategy, case):
        _assert_exists(suggestion, case)


def check_target_is_exact(strategy: Strategy, case: Case) -> None:
    """A query at the target carries the target's values, not values that differ by rounding."""
    target = case.problem.target
    for _, _, suggestion in _decisions(strategy, case):
        _assert_exists(suggestion, case)
        units = case.problem.fidelity.to_unit([suggestion.z, target])
        if np.max(np.abs(units[0] - units[1]), initial=0.0) < 1e-6:
            same = case.problem.fidelity.validate(suggestion.z, "z") == target
            assert same, _said(case, f"z must be exactly the target {target!r}; got {suggestion.z!r}")


def check_reasons_are_given(strategy: Strategy, case: Case) -> None:
    """`why` has a reason and a phase, and the numbers if a model decided; all of it survives JSON."""
    for history, _, suggestion in _decisions(strategy, case):
        _assert_explained(suggestion, history, case)


def check_suggest_is_pure(strategy: Strategy, case: Case) -> None:
    """The same arguments give the same suggestion, whatever was suggested in between, and are not changed."""
    for history, budget, suggestion in list(_decisions(strategy, case)):
        if not len(history):
            _suggest(strategy, case, _known(case, 4), _rich(case), seed=5)
        again = _suggest(strategy, case, history, budget)
        same = _bits(again) == _bits(suggestion)
        assert same, _said(
            case, f"suggest gave two suggestions for the same arguments:\n{_bits(suggestion)}\nand\n{_bits(again)}"
        )


def check_replay_is_exact(strategy: Strategy, case: Case) -> None:
    """The same events give the same trials, and a history restored from JSON gives the same next suggestion."""
    first, second = (_eventful_study(strategy, case) for _ in range(2))
    for a, b in zip(first.history, second.history, strict=True):
        same = _bits(a) == _bits(b)
        assert same, _said(case, f"trial {a.number} differs in a replay:\n{_bits(a)}\nand\n{_bits(b)}")
    stored = [Trial.from_json(json.loads(json.dumps(trial.to_json(), allow_nan=False))) for trial in first.history]
    live, resumed = (_suggest(strategy, case, h, first.budget) for h in (first.history, History(stored)))
    same = _bits(live) == _bits(resumed)
    assert same, _said(case, f"a stored history gives another suggestion:\n{_bits(live)}\nand\n{_bits(resumed)}")


def check_budget_is_kept(strategy: Strategy, case: Case) -> None:
    """A study with a declared cost ends, and its trials, running ones included, never cost more than the budget."""
    unit = case.problem.target_cost
    for amount, left in (
        (_AMPLE_TARGETS, 0.0),
        (_AMPLE_TARGETS, 0.5),
        (0.3, 0.3),
    ):  # hardly anything is left, but a strategy must still suggest a point
        budget = Budget(amount * unit, 0.1 * amount * unit, spent=(amount - left) * unit)
        _assert_exists(_suggest(strategy, case, _known(case, 4), budget), case)
    if not case.problem.has_declared_cost:
        return
    total = 2.5  # targets
    optimizer = Optimizer(case.problem, budget=targets(total), strategy=strategy, seed=3)
    for _ in range(_MOST_STEPS):
        trial = _ask(optimizer, case)
        cost = math.fsum(case.problem.cost(t.z) for t in optimizer.history)
        assert cost <= total * unit * (1.0 + 1e-9), _said(
            case, f"{len(optimizer.history)} trials cost {cost!r}, and the budget is {total * unit!r}"
        )
        if trial is None and not optimizer.running:
            return
        if trial is None or len(optimizer.running) == 2:
            _tell(optimizer, optimizer.running[0], case)
    raise AssertionError(_said(case, f"{_MOST_STEPS} steps did not spend a budget of {total} target evaluations"))


def check_trials_out_differ(strategy: Strategy, case: Case) -> None:
    """Trials that run at the same time differ as long as another point exists."""
    for known in (0, 6):
        optimizer = Optimizer(case.problem, budget=None, strategy=strategy, seed=4)
        for trial in _known(case, known):
            optimizer.add(trial.x, trial.z, trial.value or 0.0, trial.cost)
        for _ in range(int(min(case.problem.space.size, 6))):
            _ask(optimizer, case)
        running = [repr((trial.x, trial.z)) for trial in optimizer.running]
        assert len(set(running)) == len(running), _said(case, f"running trials coincide: {running}")


def check_failures_bar_a_point(strategy: Strategy, case: Case) -> None:
    """After three failures an x is not suggested again; a study in which every trial failed does not crash."""
    problem, budget = case.problem, _rich(case)
    history = _known(case, 6)
    for seed in range(2):
        wanted = _suggest(strategy, case, history, budget, seed=seed)
        barred = [wanted.x]
        if problem.space.size <= _LARGEST_LISTED_SPACE:
            barred = _all_but_the_last(problem.space)
        fails = history
        for x in barred * 3:
            fails = _after(fails, case, Suggestion(x, problem.target, {"reason": "", "phase": "queued"}), "failed")
        next_one = _suggest(strategy, case, fails, budget, seed=seed)
        _assert_exists(next_one, case)
        bad = problem.space.validate(next_one.x, "x") in barred
        assert not bad, _said(case, f"x={next_one.x!r} has failed three times and is suggested again")
    lost = History()
    for _ in range(2):
        suggestion = _suggest(strategy, case, lost, budget)
        _assert_exists(suggestion, case)
        lost = _after(lost, case, suggestion, "failed")


def check_any_values_will_do(strategy: Strategy, case: Case) -> None:
    """Values that are equal, huge or tiny do not crash a strategy."""
    for factor, constant in ((0.0, 0.0), (0.0, -7.25), (1e-200, 0.0), (1e200, 0.0)):
        known = [t.completed(constant + factor * (t.value or 0.0)) for t in _known(case, 5)]
        suggestion = _suggest(strategy, case, History(known), _rich(case))
        _assert_exists(suggestion, case)
        _assert_json(suggestion.why, case)


def check_seeds_decide(strategy: Strategy, case: Case) -> None:
    """The same seed gives the same study, and another seed gives another one."""

    def study(seed: int) -> str:
        optimizer = Optimizer(case.problem, budget=targets(_AMPLE_TARGETS), strategy=strategy, seed=seed)
        for _ in range(4):
            trial = _ask(optimizer, case)
            if trial is not None:
                _tell(optimizer, trial, case)
        return "\n".join(_bits(trial) for trial in optimizer.history)

    studies = [study(seed) for seed in (0, 1, 2, 0)]
    assert studies[0] == studies[-1], _said(
        case, f"seed 0 gave two different studies:\n{studies[0]}\nand\n{studies[-1]}"
    )
    assert len(set(studies)) > 1, _said(case, f"seeds 0, 1 and 2 gave the same study:\n{studies[0]}")


def check_runs(strategy: Strategy, case: Case) -> None:
    """Runs that report are stopped and continued by the same decisions again, and keep the budget; `case` has steps."""
    first, second = (_study_of_runs(strategy, case) for _ in range(2))
    for a, b in zip(first.history, second.history, strict=True):
        same = _run_bits(a) == _run_bits(b)
        assert same, _said(case, f"run {a.number} differs in a replay:\n{_run_bits(a)}\nand\n{_run_bits(b)}")
    for trial in first.history:
        again = runs.decided_again((strategy, first.stop_runs), case.problem, first.history, trial, first.seed)
        if again is not None and trial.stop is not None:
            same = not again.go_on and _as_json(again.why, case) == _as_json(trial.stop.why, case)
            assert same, _said(
                case, f"the stop of trial {trial.number} is decided differently the second time: {again}"
            )
    total = first.budget.total
    spent = first.spent + first.budget.reserved
    assert spent <= total * (1.0 + 1e-9), _said(case, f"the runs cost {spent!r}, and the budget is {total!r}")


def _study_of_runs(strategy: Strategy, case: Case) -> Optimizer:
    """Run a study whose evaluations report every step, leave a checkpoint, and end when they are told to."""
    problem, optimizer = case.problem, Optimizer(case.problem, budget=targets(3.0), strategy=strategy, seed=17)
    for _ in range(_MOST_RUNS):
        trial = _ask(optimizer, case)
        if trial is None:
            break
        for step in range(trial.start + 1, problem.step(trial.z) + 1):
            if not optimizer.report(trial, step, case.value(trial.x, problem.at_step(trial.z, max(step, 2)))):
                break
        optimizer.saved(trial, step, f"checkpoint of {trial.number}")
        optimizer.tell(trial, None, seconds=1.0)
    return optimizer


def _run_bits(trial: Trial) -> str:
    stop = None if trial.stop is None else (trial.stop.step, trial.stop.why)
    return repr((trial.x, trial.planned, trial.z, trial.continues, trial.start, stop, trial.why))


def _as_json(why: Mapping[str, Any], case: Case) -> str:
    _assert_json(dict(why), case)
    return json.dumps(why, sort_keys=True)


CHECKS: tuple[StrategyCheck, ...] = (
    check_points_exist,
    check_target_is_exact,
    check_reasons_are_given,
    check_suggest_is_pure,
    check_replay_is_exact,
    check_budget_is_kept,
    check_trials_out_differ,
    check_failures_bar_a_point,
    check_any_values_will_do,
    check_seeds_decide,
)


# What they stand on -------------------------------------------------------------------------------------------------


def _said(case: Case, what: str) -> str:
    return f"[{case.name}] {what}."


def _rich(case: Case) -> Budget:
    """Return an ample budget, whose start is over after any result."""
    return Budget(_AMPLE_TARGETS * case.problem.target_cost, 0.0)


def _suggest(strategy: Strategy, case: Case, history: History, budget: Budget, *, seed: int = 0) -> Suggestion:
    """Return one suggestion, and check that the arguments were not changed."""
    before = _arguments(history, budget, case)
    try:
        suggestion = strategy.suggest(case.problem, history, budget, np.random.default_rng([seed, len(history)]))
    except Exception as error:
        raise AssertionError(_said(case, f"suggest raised {error!r} after {history!r} with {budget!r}")) from error
    unchanged = _arguments(history, budget, case) == before
    assert unchanged, _said(case, "suggest changed the history, the budget or the problem")
    return suggestion


def _arguments(history: History, budget: Budget, case: Case) -> str:
    return repr(([trial.to_json() for trial in history], budget, case.problem))


def _ask(optimizer: Optimizer, case: Case) -> Trial | None:
    try:
        return optimizer.ask()
    except Exception as error:
        raise AssertionError(_said(case, f"ask raised {error!r} after {optimizer.history!r}")) from error


def _tell(optimizer: Optimizer, trial: Trial, case: Case) -> None:
    optimizer.tell(trial, case.value(trial.x, trial.z), seconds=2.0 * case.problem.cost(trial.z))


def _bits(decision: Suggestion | Trial) -> str:
    """Return a decision as text; repr has every bit of a float."""
    return repr((decision.x, decision.z, decision.why))


def _known(case: Case, n: int) -> History:
    """Return a history of n imported results."""
    rng = np.random.default_rng(7)
    optimizer = Optimizer(case.problem, budget=None, seed=0)
    for _ in range(n):
        x, z = (s.from_unit(s.snap(rng.random((1, len(s))))[0]) for s in (case.problem.space, case.problem.fidelity))
        optimizer.add(x, z, case.value(x, z), case.problem.cost(z))
    return optimizer.history


def _after(history: History, case: Case, suggestion: Suggestion, state: State) -> History:
    """Return the history with one more trial."""
    problem = case.problem
    event = 1 + max((t.told or t.asked for t in history), default=0)
    x, z = problem.space.validate(suggestion.x, "x"), problem.fidelity.validate(suggestion.z, "z")
    reasons = Reasons.of(suggestion.why)
    trial = Trial(len(history), x, z, problem.cost(z), reasons, state, asked=event, seen=event - 1)
    if state == "complete":
        trial = replace(trial, seconds=problem.cost(z)).completed(case.value(x, z))
    if state != "running":
        trial = trial.stored_at(event + 1)
    return History([*history, trial])


def _decisions(strategy: Strategy, case: Case) -> Iterator[tuple[History, Budget, Suggestion]]:
    """Take a strategy through a study: the first query, one by a model, one beside a running trial, the last one."""
    unit = case.problem.target_cost
    history, budget = History(), Budget(_AMPLE_TARGETS * unit, 0.1 * _AMPLE_TARGETS * unit)
    yield history, budget, _suggest(strategy, case, history, budget)
    history, budget = _known(case, 6), _rich(case)
    suggestion = _suggest(strategy, case, history, budget)
    yield history, budget, suggestion
    _assert_exists(suggestion, case)
    history = _after(_after(history, case, suggestion, "complete"), case, suggestion, "failed")
    history = _after(history, case, suggestion, "running")
    budget = replace(budget, spent=5.0 * unit, reserved=history[-1].cost)
    yield history, budget, _suggest(strategy, case, history, budget)
    budget = Budget(_AMPLE_TARGETS * unit, 0.0, spent=(_AMPLE_TARGETS - 1.0) * unit)
    yield history, budget, _suggest(strategy, case, history, budget)


def _eventful_study(strategy: Strategy, case: Case) -> Optimizer:
    """Run a study with all that can happen: results imported, told out of order, failed, and still running."""
    optimizer = Optimizer(case.problem, budget=targets(_AMPLE_TARGETS), strategy=strategy, seed=11)
    for known in _known(case, 3):
        optimizer.add(known.x, known.z, known.value or 0.0, known.cost)
    for _ in range(3):
        _ask(optimizer, case)
    for trial in optimizer.running[:0:-1]:  # the last first; the first keeps running
        _tell(optimizer, trial, case)
    for _ in range(2):
        _ask(optimizer, case)
    if len(optimizer.running) > 1:
        optimizer.fail(optimizer.running[-1], "lost", cost=case.problem.target_cost)
    if optimizer.running:
        optimizer.tell(optimizer.running[0], 0.5, seconds=1.5, noise=0.01)
    _ask(optimizer, case)
    return optimizer


def _all_but_the_last(space: Space) -> list[Point]:
    """Return the points of a small finite space without the last one."""
    axes = np.linspace(0.0, 1.0, 4097)
    values = [list(dict.fromkeys(parameter.from_unit(float(u)) for u in axes)) for parameter in space.values()]
    points: list[Point] = [{}]
    for name, options in zip(space, values, strict=True):
        points = [{**point, name: option} for point in points for option in options]
    return points[:-1]


def _assert_exists(suggestion: Suggestion, case: Case) -> None:
    assert isinstance(suggestion, Suggestion), _said(case, f"suggest must return a Suggestion; got {suggestion!r}")
    for space, point, what in (
        (case.problem.space, suggestion.x, "the suggested x"),
        (case.problem.fidelity, suggestion.z, "the suggested z"),
    ):
        try:
            space.validate(point, what)
        except BocaError as error:
            raise AssertionError(_said(case, str(error))) from error


def _assert_json(why: object, case: Case) -> None:
    try:
        back = json.loads(json.dumps(why, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise AssertionError(_said(case, f"why must be JSON with finite numbers ({error}); got {why!r}")) from error
    assert back == why, _said(case, f"why must survive JSON unchanged; got {why!r}")
    assert not _has_none(why), _said(case, f"a key that does not apply must be absent, not None; got {why!r}")


def _has_none(value: object) -> bool:
    if isinstance(value, Mapping):
        return any(_has_none(inner) for inner in value.values())
    if isinstance(value, list):
        return any(_has_none(inner) for inner in value)
    return value is None


def _assert_explained(suggestion: Suggestion, history: History, case: Case) -> None:
    why = suggestion.why
    assert isinstance(why, dict), _said(case, f"why must be a dict; got {why!r}")
    _assert_json(why, case)
    reason, phase = why.get("reason"), why.get("phase")
    is_sentence = isinstance(reason, str) and " " in reason and reason.endswith(".")
    assert is_sentence, _said(case, f"why['reason'] must be a sentence; got {reason!r}")
    assert phase in _PHASES, _said(case, f"why['phase'] must be one of {_PHASES}; got {phase!r}")
    if phase != "start":
        _assert_fidelity_explained(why, case)
        _assert_model_explained(why, history, case)


def _assert_keys(why: Mapping[str, Any], keys: Sequence[str], case: Case) -> None:
    missing = [key for key in keys if key not in why]
    assert not missing, _said(case, f"why has no {missing} in phase {why['phase']!r}; it has {sorted(why)}")


def _assert_fidelity_explained(why: Mapping[str, Any], case: Case) -> None:
    """Check the numbers of a strategy that chooses z; one that does not has none of them."""
    if not any(key in why for key in _KEYS_OF_A_FIDELITY):
        return
    _assert_keys(why, _KEYS_OF_A_FIDELITY, case)
    assert 0.0 <= why["xi"] <= 1.0, _said(case, f"xi must lie in [0, 1]; got {why['xi']!r}")
    assert why["gamma"] >= 0.0, _said(case, f"gamma must not be negative; got {why['gamma']!r}")
    assert why["c"] > 0.0, _said(case, f"c must be positive; got {why['c']!r}")
    assert why["shrink"] >= 1.0, _said(case, f"shrink must be 1 or more; got {why['shrink']!r}")


def _assert_model_explained(why: Mapping[str, Any], history: History, case: Case) -> None:
    """Check the numbers of a decision by a model."""
    _assert_keys(why, _KEYS_OF_A_MODEL, case)
    assert why["beta"] >= 0.0, _said(case, f"beta must not be negative; got {why['beta']!r}")
    assert why["std"] >= 0.0, _said(case, f"std must not be negative; got {why['std']!r}")
    _assert_bound(why, case)
    assert isinstance(why["refit"], bool), _said(case, f"refit must be a bool; got {why['refit']!r}")
    running = [trial.number for trial in history.running]
    agrees = why["pending"] == running
    assert agrees, _said(case, f"pending must be the running trials, {running}; got {why['pending']}")
    _assert_process(why["hyperparameters"], case)


def _assert_bound(why: Mapping[str, Any], case: Case) -> None:
    """Check the bound; under a warp it was mapped back, and is only known to be better than the mean."""
    turn = sign(case.problem.direction)
    if "warp" in why:
        is_better = turn * why["ucb"] >= turn * why["mean"]
        assert is_better, _said(case, f"ucb must be no worse than mean = {why['mean']!r}; got {why['ucb']!r}")
        return
    bound = why["mean"] + turn * math.sqrt(why["beta"]) * why["std"]
    agrees = math.isclose(why["ucb"], bound, rel_tol=1e-9, abs_tol=1e-9)
    assert agrees, _said(case, f"ucb must be mean + sqrt(beta) std = {bound!r}; got {why['ucb']!r}")


def _assert_process(numbers: Mapping[str, Any], case: Case) -> None:
    """Check the hyperparameters of a Gaussian process, in the units and the order of the problem."""
    missing = [key for key in _KEYS_OF_A_PROCESS if key not in numbers]
    assert not missing, _said(case, f"why['hyperparameters'] has no {missing}; it has {sorted(numbers)}")
    assert numbers["kappa0"] > 0.0, _said(case, f"kappa0 must be positive; got {numbers['kappa0']!r}")
    assert numbers["eta2"] >= 0.0, _said(case, f"eta2 must not be negative; got {numbers['eta2']!r}")
    assert isinstance(numbers["mean"], float), _said(case, f"mean must be a number; got {numbers['mean']!r}")
    for key, space in (("h_x", case.problem.space), ("h_z", case.problem.fidelity)):
        if key in numbers:
            h = numbers[key]
            fits = len(h) == len(space) and all(width > 0.0 for width in h)
            assert fits, _said(case, f"{key} must be {len(space)} positive numbers; got {h!r}")
