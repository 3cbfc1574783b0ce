"""Which reports of a run the model sees, and which trials are one curve."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca import History
from boca.domain.observation import Observation
from boca.gp.curve_noise import NO_CURVE
from boca.model import curves
from boca.model.dataset import Dataset
from support.runs import training_problem
from support.trials import made

PROBLEM = training_problem(steps=52)
X = {"a": 0.5, "b": 0.5}


def run(number, steps, *, before=None, first=0, planned=None, x=X, told=None, **more):
    """Return a trial that has reported these steps, the value of a step being the step."""
    seen = tuple(Observation({"epochs": s}, float(s), told=first + k) for k, s in enumerate(steps))
    more = {"state": "complete"} | more
    ends = {"epochs": planned or steps[-1]}
    trial = made(number, x, ends, continues=before, told=first + len(steps) if told is None else told, **more)
    return boca.Trial(**{**vars(trial), "observations": seen})


def steps_of(observations):
    return [o.z["epochs"] for o in observations]


def test_a_rung_is_how_often_a_step_was_halved():
    assert [curves.rung(s, 52) for s in (52, 27, 26, 14, 13, 7, 6, 1)] == [0, 0, 1, 1, 2, 2, 3, 5]
    assert curves.rung(60, 52) == -1


def test_the_last_report_of_every_rung_is_seen_and_so_the_last_of_all():
    (curve,) = curves.curves(History([run(0, range(1, 41))]))
    assert steps_of(curves.thinned(PROBLEM, curve)) == [1, 3, 6, 13, 26, 40]


@pytest.mark.parametrize("steps", [52, 1000, 100_000])
def test_a_curve_has_at_most_eight_reports_in_the_model(steps):
    problem = training_problem(steps=steps)
    told = sorted({1, *np.unique(np.geomspace(1, steps, 300).astype(int)).tolist()})
    (curve,) = curves.curves(History([run(0, told)]))
    seen = steps_of(curves.thinned(problem, curve))
    assert len(seen) <= curves.MOST_RUNGS
    assert seen[-1] == steps


def test_steps_below_the_lowest_are_not_modelled():
    problem = boca.Problem(PROBLEM.space, boca.Space(epochs=boca.Steps(4, 52)), cost=lambda z: z["epochs"])
    (curve,) = curves.curves(History([run(0, [1, 2, 3, 4, 5])]))
    assert steps_of(curves.thinned(problem, curve)) == [5]


def test_a_chain_of_trials_is_one_curve_with_the_number_of_the_first():
    first, other, later = run(0, [1, 2, 3]), run(1, [1, 2, 3], first=4), run(2, [4, 5, 6], before=0, first=8)
    history = History([first, other, later])
    found = curves.curves(history)
    assert [(c.number, c.last.number) for c in found] == [(0, 2), (1, 1)]
    assert steps_of(curves.thinned(PROBLEM, found[0])) == [1, 3, 6]
    assert curves.numbers(history) == {0: 0, 1: 1, 2: 0}
    np.testing.assert_array_equal(curves.of_trials(history, [later, other]), [0.0, 1.0])


def test_two_hundred_curves_of_fifty_reports_are_at_most_a_thousand_rows():
    trials, event = [], 0
    for k in range(200):
        trials.append(run(k, range(1, 51), first=event, x={"a": k / 200, "b": 0.5}))
        event += 51
    history = History(trials)
    dataset = Dataset.from_history(PROBLEM, history)
    assert 600 <= len(dataset.scores) <= curves.MOST_ROWS
    assert {t.number for t in trials} == set(dataset.curves[0].astype(int))
    last = [row.z["epochs"] for row in curves.rows(PROBLEM, history, with_failures=True) if row.z["epochs"] == 50]
    assert len(last) == 200


def test_reports_of_running_and_failed_trials_are_results_too():
    running = run(1, [1, 2], first=10, planned=6, state="running", told=None)
    running = boca.Trial(**{**vars(running), "told": None})
    failed = run(2, [1], first=20, planned=6, state="failed", x={"a": 0.1, "b": 0.1})
    history = History([run(0, [1, 2, 3]), running, failed])
    dataset = Dataset.from_history(PROBLEM, history, "below")
    assert dataset.scores.tolist() == [1.0, 3.0, 1.0, 2.0, 1.0, 1.0]
    assert dataset.failed.tolist() == [False] * 5 + [True]
    assert dataset.curves[0].tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, NO_CURVE]
    assert dataset.curves[1].tolist() == [1.0]
    assert dataset.running[1].tolist() == PROBLEM.fidelity.to_unit([{"epochs": 6}]).tolist()
    assert len(Dataset.from_history(PROBLEM, history, None).scores) == 5


def test_values_to_be_minimized_are_turned():
    problem = training_problem(direction="minimize", steps=52)
    assert Dataset.from_history(problem, History([run(0, [1, 2])])).scores.tolist() == [-1.0, -2.0]


def test_the_noise_of_a_curve_is_learned_and_told_in_the_units_of_the_values():
    rng = np.random.default_rng(0)
    trials, event = [], 0
    for k in range(24):
        x = {"a": float(rng.random()), "b": 0.5}
        draw = 3.0 * rng.standard_normal()
        value = 20.0 * x["a"] + draw
        seen = [Observation({"epochs": s}, value, told=event + s) for s in (1, 3, 6, 13, 26, 52)]
        event += 60
        trial = made(k, x, {"epochs": 52}, state="complete", told=event)
        trials.append(boca.Trial(**{**vars(trial), "observations": tuple(seen)}))
    model = boca.Surrogate(warp=False).model(PROBLEM, History(trials), np.random.default_rng(0))
    assert 3.0 < model.hyperparameters()["curve_noise"] < 30.0


def test_hyperparameters_that_were_shown_make_the_same_model():
    rng = np.random.default_rng(0)
    trials = [run(k, range(1, 14), first=20 * k, x={"a": float(rng.random()), "b": 0.1 * k}) for k in range(8)]
    history = History(trials)
    surrogate = boca.Surrogate(kernel="se", warp=False, guard=None, rising_noise=False)
    learned = surrogate.model(PROBLEM, history, np.random.default_rng(0))
    shown = {**learned.hyperparameters(), "curve_noise": 0.5}
    known = surrogate.model(PROBLEM, history, np.random.default_rng(0), hyperparameters=shown)
    assert known.hyperparameters()["curve_noise"] == pytest.approx(0.5)
    U = PROBLEM.space.to_unit([X])
    without = surrogate.model(PROBLEM, history, np.random.default_rng(0), hyperparameters={**shown, "curve_noise": 0.0})
    assert known.moments(U)[1][0] > without.moments(U)[1][0]  # fewer independent measurements
