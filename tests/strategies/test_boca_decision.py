"""A decision of BOCA as the numbers of `why` and as a sentence."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca.accounting.cost import costs
from boca.search.candidates import STAND_IN, Candidate
from boca.strategies.boca import Iteration
from boca.strategies.boca_turns import AIMS

SPACE, FIDELITY = boca.Space(x=boca.Float(0.0, 1.0)), boca.Space(z=boca.Float(0.0, 1.0))
KNOWN = {"kappa0": 4.0, "eta2": 0.25, "mean": 1.0, "h_x": [0.3], "h_z": [0.5]}
CHEAP, TARGET = {"z": 0.5}, {"z": 1.0}


def decision(z=CHEAP, by="ucb", *, fidelity=FIDELITY, strategy=None, **changes):
    """Return a decision for x = 0.4 after four results, with some of its fields replaced."""
    problem = boca.Problem(SPACE, fidelity, cost=(lambda z: 0.1 + z["z"]) if fidelity else None)
    optimizer = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    for k in range(4):
        optimizer.add({"x": k / 3}, None, math.sin(3.0 * k))
    known = KNOWN if fidelity else {key: KNOWN[key] for key in KNOWN if key != "h_z"}
    strategy = strategy or boca.Boca.paper(hyperparameters=known)
    history = optimizer.history
    model = strategy._model(problem, history, np.random.default_rng(0))
    iteration = Iteration(strategy, problem, history, costs(problem, history), model)
    made = iteration.decision(Candidate(np.array([0.4]), z if fidelity else {}, False), by)
    return replace(made, **changes)


def test_the_suggestion_has_the_point_in_the_users_units_and_the_numbers():
    made = decision()
    suggestion = made.suggestion()
    assert suggestion.x == {"x": pytest.approx(0.4)}
    assert suggestion.z == CHEAP
    assert suggestion.why == made.why()
    assert json.loads(json.dumps(suggestion.why, allow_nan=False)) == suggestion.why


def test_numbers_are_those_of_the_paper_at_z():
    why = decision().why()
    phi = math.exp(-0.5 * (0.5 / 0.5) ** 2)
    assert why["xi"] == pytest.approx(math.sqrt(1.0 - phi**2), rel=1e-12)
    assert why["gamma"] == pytest.approx(2.0 * why["xi"] * (0.6 / 1.1) ** (1.0 / 4.0), rel=1e-12)
    assert (why["phase"], why["acquisition"], why["c"], why["shrink"]) == ("model", "ucb", 1.0, 1.0)


def test_at_the_target_there_is_no_gap_and_no_threshold():
    why = decision(TARGET).why()
    assert (why["xi"], why["gamma"]) == (0.0, 0.0)


def test_keys_that_do_not_apply_are_absent():
    assert not {"guard", "fidelity_by"} & set(decision().why())
    assert decision(TARGET, guard=0.7).why()["guard"] == 0.7


def test_a_target_query_elsewhere_says_which_point_asked_for_it():
    why = decision(TARGET, "log_ei", asked_at=(np.array([0.25]), 1.7)).why()
    assert why["fidelity_by"] == {"x": {"x": 0.25}, "shrink": 1.7}


def test_the_last_query_is_one_at_the_target_by_the_mean():
    assert decision(TARGET, "mean").why()["phase"] == "final"
    assert decision(CHEAP, "mean").why()["phase"] == "model"  # it stands in for the target, which is running


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"z": CHEAP}, ["bound", "cheapest", "information gap"]),
        ({"z": CHEAP, "where": AIMS["max_value"].where}, ["maximum", "cheapest"]),
        ({"z": TARGET}, ["target", "bound", "every cheaper"]),
        ({"z": TARGET, "guard": 0.7}, ["target", "switched off", "0.7 nats"]),
        ({"z": TARGET, "by": "log_ei"}, ["target", "expected improvement"]),
        ({"z": TARGET, "by": "log_noisy_ei", "guard": 0.7}, ["switched off", "expected improvement"]),
        ({"z": TARGET, "by": "ucb_alone"}, ["target", "tests the cheaper"]),
        ({"z": TARGET, "by": "mean"}, ["last", "target"]),
        ({"fidelity": None}, ["bound"]),
        ({"fidelity": None, "by": "log_ei"}, ["expected improvement"]),
    ],
)
def test_the_sentence_says_why_this_point_and_this_fidelity(made, words):
    sentence = decision(**made).sentence()
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert all(word in sentence.lower() for word in words), sentence


def test_the_share_of_the_cost_and_the_gap_are_in_the_sentence():
    made = decision()
    assert f"{0.6 / 1.1:.3g}" in made.sentence()
    assert f"{made.xi:.2g}" in made.sentence()


def test_a_substitute_says_only_that_it_is_one():
    assert decision(stands_in=True).sentence() == STAND_IN
