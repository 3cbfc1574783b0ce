"""Runs that are unlikely to beat the best one are stopped: when, why, how well calibrated, and never too early."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca import History
from boca.domain.errors import InvalidInput
from boca.domain.observation import Observation
from boca.strategies.run_stopping import Line, StopHopeless
from support.runs import score, studied, trained, training_problem
from support.trials import made

PROBLEM = training_problem()
RULE = StopHopeless(finishing=0.0)
RNG = np.random.default_rng(0)


def run(number, values, state="complete", z=None, **more):
    """Return a trial with these values by step."""
    seen = tuple(Observation({"epochs": s, **(z or {})}, float(v), told=100 * number + s) for s, v in values.items())
    told = 100 * number + 99 if state == "complete" else None
    trial = made(number, {"a": number / 100, "b": 0.5}, {"epochs": 16, **(z or {})}, state=state, told=told, **more)
    return boca.Trial(**{**vars(trial), "observations": seen})


def parallel(number, level, until=16):
    """Return the values of a curve that ends at `level`, a little beside the others."""
    return {s: level - 1.0 / s + 0.01 * math.sin(7.0 * number + s) for s in (1, 2, 4, 8, 16) if s <= until}


COMPLETE = [run(k, parallel(k, level)) for k, level in enumerate((0.1, 0.5, 0.3, 0.9, 0.7, 0.2))]


def verdict(values, complete=COMPLETE, rule=RULE, number=20, **more):
    trial = run(number, values, state="running", **more)
    history = History([*complete, *(run(k, {1: 0.0}) for k in range(len(complete), number)), trial])
    return rule.keep_going(PROBLEM, history, trial, RNG)


def test_a_run_far_behind_is_stopped_and_says_why():
    said = verdict(parallel(20, -1.0, until=4))
    assert not said
    assert said.why["chance"] < 0.02
    assert said.why["completed"] == 6
    assert said.why["foretold"] == pytest.approx(-1.0, abs=0.4)
    assert said.why["reason"].startswith("Stopped at epochs=4: as the 6 runs that went on from there show")


@pytest.mark.parametrize("level", [0.89, 0.95, 1.5])
def test_a_run_that_may_win_goes_on(level):
    assert verdict(parallel(20, level, until=4))


def test_no_run_is_stopped_before_five_were_completed():
    assert verdict(parallel(20, -1.0, until=4), COMPLETE[:4])
    assert not verdict(parallel(20, -1.0, until=4), COMPLETE[:5])


def test_no_run_is_stopped_at_a_step_that_does_not_foretell_results():
    rng = np.random.default_rng(1)
    unlike = [run(k, {4: rng.random(), 16: rng.random()}) for k in range(8)]
    assert verdict({4: 0.0}, unlike)


def test_a_run_is_judged_once_at_every_rung():
    assert not verdict(parallel(20, -1.0, until=4))
    assert verdict({**parallel(20, -1.0, until=4), 5: -1.2})  # between two rungs
    assert not verdict({**parallel(20, -1.0, until=4), 5: -1.2, 9: -1.1})  # the first report beyond 8
    assert verdict({4: -1.0, 16: -1.0})  # at its end


def test_one_run_in_ten_always_finishes():
    kept = [k for k in range(20, 120) if verdict(parallel(k, -1.0, until=4), rule=StopHopeless(), number=k)]
    assert len(kept) == 10


def test_a_run_with_other_fidelities_than_the_target_is_compared_with_none():
    problem = training_problem(share=boca.Float(0.1, 1.0))
    complete = [run(k, parallel(k, 0.5 + 0.1 * k), z={"share": 1.0}) for k in range(6)]
    for share, goes_on in ((1.0, False), (0.5, True)):
        trial = run(6, parallel(6, -1.0, until=4), state="running", z={"share": share})
        said = RULE.keep_going(problem, History([*complete, trial]), trial, RNG)
        assert bool(said) is goes_on


def test_values_to_be_minimized_are_turned():
    problem = training_problem(direction="minimize")
    complete = [run(k, {s: -v for s, v in parallel(k, 0.1 * k).items()}) for k in range(6)]
    for level, goes_on in ((-1.0, False), (1.0, True)):
        trial = run(6, {s: -v for s, v in parallel(6, level, until=4).items()}, state="running")
        said = RULE.keep_going(problem, History([*complete, trial]), trial, RNG)
        assert bool(said) is goes_on


def test_the_chance_is_calibrated():
    """Of runs stopped at 0.2, at most about that share would have won; each study has its own five to ten runs."""
    rng = np.random.default_rng(0)
    stopped = won = 0
    for _ in range(400):
        n = int(rng.integers(5, 11))
        end = rng.standard_normal(n + 1)
        at = end + 0.5 * rng.standard_normal(n + 1)
        line = Line.fitted(list(zip(at[:n], end[:n], strict=True)))
        if line.chance(at[n]) < 0.2:
            stopped += 1
            won += end[n] > end[:n].max()
    assert stopped > 200
    assert won / stopped < 0.1


def test_equal_results_and_extreme_ones_do_no_harm():
    assert verdict({4: 0.0}, [run(k, {4: 0.0, 16: 1.0}) for k in range(6)])
    wild = [run(k, {4: 10.0 ** (30 * k - 100), 16: 10.0 ** (30 * k - 100)}) for k in range(6)]
    for value in (-1e300, 0.0, 1e300):
        assert isinstance(bool(verdict({4: value}, wild)), bool)


@pytest.mark.parametrize(
    "given", [{"below": 0.0}, {"below": 1.0}, {"completed": 2}, {"finishing": -0.1}, {"finishing": 1.1}]
)
def test_settings_that_make_no_sense_are_refused(given):
    with pytest.raises(InvalidInput, match=next(iter(given))):
        StopHopeless(**given)


# As the rule of a study ----------------------------------------------------------------------------------------------


def test_random_search_stops_runs_and_pays_for_their_steps_only():
    plain = studied(trials=40, budget=12, strategy=boca.RandomSearch(), saves=False)
    stopping = studied(trials=40, budget=12, strategy=boca.RandomSearch(), saves=False, stop_runs=StopHopeless())
    assert len(stopping.history) > 1.4 * len(plain.history)
    stopped = [t for t in stopping.history if t.stop is not None]
    assert stopped
    assert all(t.state == "complete" and t.cost < PROBLEM.target_cost for t in stopped)
    assert all(t.stop.why["chance"] < 0.02 for t in stopped)


def test_a_replay_decides_every_stop_again():
    opt = studied(trials=40, budget=12, strategy=boca.RandomSearch(), saves=False, stop_runs=StopHopeless())
    decided = 0
    for trial in opt.history:
        if trial.stop is None:
            continue
        then = opt.history.as_of(trial.stop.seen)
        again = StopHopeless().keep_going(PROBLEM, then, then[trial.number], np.random.default_rng(0))
        assert not again
        assert dict(again.why) == dict(trial.stop.why)
        decided += 1
    assert decided


def test_the_best_run_is_seldom_stopped():
    found = []
    for seed in range(3):
        opt = studied(trials=40, budget=12, strategy=boca.RandomSearch(), saves=False, seed=seed, stop_runs=RULE)
        best = max(score(t.x, 16) for t in opt.history)
        found.append(best - opt.best.value)
    assert max(found) < 0.01


def test_the_default_stops_runs_that_cannot_be_continued_and_a_field_turns_it_off():
    for stops in (True, False):
        opt = boca.Optimizer(PROBLEM, budget=boca.targets(12), seed=0, strategy=boca.Boca(stop_runs=stops))
        rng = np.random.default_rng(3)
        for _ in range(20):
            opt.enqueue({"a": float(rng.random()), "b": float(rng.random())})
        while (trial := opt.ask()) is not None:
            trained(opt, trial, saves=False)
        assert any(t.stop is not None for t in opt.history) is stops
