"""The reasons of a trial: loaded when they are first read, once, and copied for their user."""

from __future__ import annotations

import copy
import pickle

import pytest

from boca.domain.reasons import Reasons

WHY = {"reason": "A test.", "phase": "model", "hyperparameters": {"h_x": [0.1, 0.2]}}


@pytest.fixture
def lazy():
    """Return reasons that count how often they are loaded."""
    loads = []

    def load():
        loads.append(1)
        return copy.deepcopy(WHY)

    return Reasons("model", load), loads


def test_the_phase_needs_no_loading(lazy):
    reasons, loads = lazy
    assert reasons.phase == "model"
    assert not reasons.is_loaded
    assert loads == []


def test_they_are_loaded_once(lazy):
    reasons, loads = lazy
    assert reasons.read() == reasons.read() == WHY
    assert reasons.is_loaded
    assert len(loads) == 1


def test_a_copy_may_be_changed_and_loads_only_when_it_is_read(lazy):
    reasons, loads = lazy
    copied = reasons.copied()
    assert loads == []
    copied.read()["hyperparameters"]["h_x"][0] = 9.0
    assert reasons.read() == WHY
    assert len(loads) == 1


def test_what_is_filled_in_is_not_loaded(lazy):
    reasons, loads = lazy
    reasons.fill({"phase": "model"})
    assert reasons.read() == {"phase": "model"}
    assert loads == []


def test_what_is_known_has_its_own_phase():
    assert Reasons.of(WHY).phase == "model"
    assert Reasons.of({}).phase == ""
    assert Reasons.of(WHY).is_loaded


def test_equal_reasons_are_equal_whether_loaded_or_not(lazy):
    reasons, _ = lazy
    assert reasons == Reasons.of(WHY)
    assert reasons != Reasons.of({"phase": "model"})
    assert reasons != WHY


def test_pickled_they_need_no_database(lazy):
    reasons, _ = lazy
    again = pickle.loads(pickle.dumps(reasons))
    assert again.is_loaded
    assert again == reasons
