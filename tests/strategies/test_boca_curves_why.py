"""The sentences about runs: one for each thing that chooses, each with its numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import boca
from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.strategies import boca_curves_why
from boca.strategies.boca_curves import Query, Runs
from support.runs import studied

OPT = studied(trials=14, budget=12)
PROBLEM, HISTORY = OPT.problem, OPT.history
MODEL = boca.Surrogate(guard=None).model(PROBLEM, HISTORY, np.random.default_rng(0))
RUNS = Runs(boca.Boca(), PROBLEM, HISTORY, Budget(192.0, 19.2, 40.0), costs(PROBLEM, HISTORY), np.random.default_rng(0))
PAUSED = next(t for t in RUNS.open if PROBLEM.step(t.z) < 8)
U = PROBLEM.space.to_unit([PAUSED.x])[0]
GOES_ON = RUNS.query(U, {"epochs": 8}, PAUSED, -3.0)
BEGINS = Query(np.array([0.2, 0.9]), {"epochs": 2}, None, 0, 2.0, -8.0)
START = PROBLEM.step(PAUSED.z)


def said(chosen, by, rivals=(BEGINS, GOES_ON)):
    found = boca_curves_why.suggestion(RUNS, MODEL, chosen, by, rivals)
    json.dumps(found.why)
    return found.why["reason"]


def test_of_two_candidates_it_says_by_how_much_one_wins():
    ratio = np.exp(GOES_ON.log_rate - BEGINS.log_rate)
    on = said(GOES_ON, "knowledge")
    assert on.startswith(f"Trial {PAUSED.number} continues from step {START} to epochs = 8 (")
    assert f"promises {round(ratio)} times as much as a new run." in on
    assert said(BEGINS, "knowledge").endswith("continuing a paused run.")


def test_one_candidate_alone_says_what_is_missing():
    assert said(BEGINS, "knowledge", (BEGINS,)).endswith("and no run is paused.")
    assert said(GOES_ON, "knowledge", (GOES_ON,)).endswith("and no new point is left.")


def test_the_clock_the_end_and_the_refinement_have_sentences_of_their_own():
    end = RUNS.query(U, PROBLEM.target, PAUSED)
    assert "enough was spent below it since its last result" in said(end, "best_mean")
    assert said(end, "mean").startswith(f"Trial {PAUSED.number} continues from step {START} to the target")
    assert "refining it" in said(BEGINS, "log_ei")


def test_a_run_without_a_checkpoint_begins_again():
    again = Query(U, PROBLEM.target, PAUSED, 0, 16.0)
    found = boca_curves_why.suggestion(RUNS, MODEL, again, "best_mean", (again,))
    assert found.continues is None
    assert f"The point of trial {PAUSED.number} again, from the beginning to the target" in found.why["reason"]


def test_the_numbers_are_those_of_the_candidates():
    why = boca_curves_why.suggestion(RUNS, MODEL, GOES_ON, "knowledge", (BEGINS, GOES_ON)).why
    assert why["run"]["new"]["cost"] == 2.0
    assert why["run"]["going_on"]["gain"] == pytest.approx(np.exp(-3.0) * MODEL.standard.scale)
    assert why["run"]["going_on"]["log_gain_per_cost"] == pytest.approx(-3.0 - np.log(8 - START))
    assert why["run"]["from_step"] == START


def test_equal_promises_are_as_much_as_each_other():
    equal = Query(BEGINS.u, BEGINS.z, None, 0, GOES_ON.cost, GOES_ON.log_gain)
    assert "promises as much as a new run" in said(GOES_ON, "knowledge", (equal, GOES_ON))


def test_a_query_of_the_start_says_its_step():
    reason = boca_curves_why.of_start(PROBLEM, HISTORY[:3], RUNS.price, {"epochs": 2})
    assert reason.startswith("Start, query 4: a new run to epochs = 2 (0.125 of the target's cost)")
