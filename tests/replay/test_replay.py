"""Decisions of an earlier commit are made again, from the history that it stored.

`make replay` compares more of them, in every bit.  These were chosen for machines that round otherwise: see
`benchmarks/replay/fixture.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # `benchmarks` is no part of the package

from benchmarks.replay import compare, recorded
from benchmarks.replay.cases import NAMED

STUDIES = {study["case"]: study for study in recorded.load(Path(__file__).parent / "studies.json.xz")}
DECISIONS = [decision for study in STUDIES.values() for decision in study["decisions"]]
ROUNDING = 1e-5  # a hundred times what other instructions and a change of the twelfth digit make of these decisions


@pytest.mark.parametrize("name", STUDIES)
def test_every_decision_is_made_again(name):
    outcome = compare.compare(STUDIES[name], ROUNDING)
    assert not outcome.differing, outcome.first
    assert outcome.equal + outcome.close == 2 * len(STUDIES[name]["decisions"])  # and the budgets


# The decisions are worth making again ---------------------------------------------------------------------------------


def test_every_strategy_and_number_of_fidelities_is_there():
    strategies = {NAMED[name].strategy[0] for name in STUDIES}
    assert strategies == {"Boca", "Boca.paper", "GPUCB", "GPEI", "MFGPUCB", "MFSKO", "RandomSearch"}
    assert {len(NAMED[name].problem.fidelity) for name in STUDIES} >= {0, 1, 2, 3, 4}
    assert {NAMED[name].problem.direction for name in STUDIES} == {"maximize", "minimize"}


def test_every_kind_of_decision_is_there():
    whys = [decision["why"] for decision in DECISIONS]
    assert {why["phase"] for why in whys} == {"start", "model", "final"}
    acquisitions = {why.get("acquisition") for why in whys}
    assert acquisitions >= {"ucb", "max_value", "log_ei", "log_noisy_ei", "ucb_alone", "mean"}
    fits = [why["fit"] for why in whys if "fit" in why]
    assert {fit["use"]["kind"] for fit in fits if "use" in fit} == {"none", "extended"}
    assert any(fit.get("rise", 0.0) > 0.0 for fit in fits)
    assert any(fit.get("flat") for fit in fits)
    assert any("guard" in why and not why["refit"] for why in whys)
    assert any(why.get("pending") for why in whys)
    assert any("fits" in why for why in whys)
    assert any("level" in why for why in whys)


def test_every_kind_of_history_is_there():
    largest = max(decision["number"] for decision in DECISIONS)
    assert largest > 1200
    trials = [trial for study in STUDIES.values() for trial in study["trials"]]
    assert {trial["state"] for trial in trials} >= {"complete", "failed"}
    assert {trial["why"]["phase"] for trial in trials} == {"start", "model", "final", "added", "queued"}
    assert any(trial["noise"] for trial in trials)
    assert any(trial["attempt"] for trial in trials)


# A difference is found ------------------------------------------------------------------------------------------------


def changed(study, **changes):
    """Return the study with other fields of the last recorded decision."""
    *others, last = study["decisions"]
    return study | {"decisions": [*others, last | changes]}


def test_a_difference_is_counted_and_said():
    study = STUDIES["gp-ei"]
    why = study["decisions"][-1]["why"]
    for old, tolerance, counts in (
        (why, 1e-5, 0),
        (why | {"reason": "Another sentence."}, 1e-5, 0),
        (why | {"mean": why["mean"] * (1.0 + 1e-7)}, 1e-5, 0),
        (why | {"mean": why["mean"] * (1.0 + 1e-7)}, 0.0, 1),
        (why | {"mean": why["mean"] + 1.0}, 1e-5, 1),
        (why | {"another": 1}, 1e-5, 1),
        ({key: value for key, value in why.items() if key != "beta"}, 1e-5, 1),
    ):
        outcome = compare.compare(changed(study, why=old), tolerance)
        assert outcome.differing >= counts
        assert tolerance == 0.0 or outcome.differing == counts, outcome.first


def test_another_history_gives_another_decision():
    study = STUDIES["boca-p1"]
    trials = [dict(trial) for trial in study["trials"]]
    trials[0]["value"] += 0.5
    outcome = compare.compare(study | {"trials": trials}, ROUNDING)
    assert outcome.differing
    assert "boca-p1, decision" in outcome.first
    assert "old" in outcome.first


def test_another_budget_is_seen():
    study = STUDIES["random"]
    budget = dict(study["decisions"][-1]["budget"]) | {"spent": 1.0}
    outcome = compare.compare(changed(study, budget=budget), ROUNDING)
    assert outcome.differing == 1
    assert "its budget: spent" in outcome.first
