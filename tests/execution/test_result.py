"""What a run found: as a page, as a copy, and after it was pickled."""

from __future__ import annotations

import pickle
from dataclasses import asdict, replace

import pytest

import boca
from boca import History
from boca.domain.words import expected
from support.pages import EVIL, shown, trial


def test_a_result_shows_what_was_found_and_folds_its_trials():
    result = boca.minimize(lambda x: x["a"], boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), seed=0)
    page = shown(result)
    rows = {row[0]: row[1] for row in page.rows if len(row) == 2}
    assert float(rows["best at the target"]) == pytest.approx(result.value, rel=1e-5)
    advised = result.recommendation
    assert expected(advised.mean, advised.std) in rows["recommended"]
    assert rows["spent"] == "3 of 3 target evaluations on 3 trials"
    assert "details" in page.tags


def test_a_result_without_a_best_says_so_and_shows_its_warnings():
    result = boca.Result(None, None, None, History([trial()]), 1.0, (f"Careful: {EVIL}",))
    page = shown(result)
    assert "no trial is complete" in page.text
    assert f"Careful: {EVIL}" in page.text
    assert "script" not in page.tags


def test_a_pickled_result_shows_what_was_spent_without_its_budget():
    result = boca.minimize(lambda x: x["a"], boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), seed=0)
    rows = {row[0]: row[1] for row in shown(pickle.loads(pickle.dumps(result))).rows if len(row) == 2}
    assert rows["spent"] == "3 on 3 trials"


def test_the_study_is_at_hand_until_the_result_is_pickled():
    result = boca.minimize(lambda x: x["a"], boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), seed=0)
    assert isinstance(result.study, boca.Optimizer)
    assert result.with_warnings(["Careful."]).study is result.study
    again = pickle.loads(pickle.dumps(result))
    assert again.study is None
    assert (again.x, again.value, again.spent) == (result.x, result.value, result.spent)


def test_the_study_is_not_printed_nor_copied_into_a_mapping():
    result = boca.minimize(lambda x: x["a"], boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), seed=0)
    assert "Optimizer" not in repr(result)
    fields = {"x", "value", "recommendation", "history", "spent", "warnings", "interrupted", "front"}
    assert set(asdict(result)) == fields
    assert replace(result, spent=1.0).study is None


def test_more_warnings_come_last():
    result = boca.Result(None, None, None, History([trial()]), 1.0, ("One.",))
    assert result.with_warnings(["Two.", "Three."]).warnings == ("One.", "Two.", "Three.")
