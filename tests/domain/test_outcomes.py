"""Limits on outcomes, and what an evaluation may return."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boca import AtLeast, AtMost
from boca.domain.errors import InvalidInput
from boca.domain.outcomes import (
    by_outcome,
    checked_limits,
    checked_notes,
    checked_objective,
    plain_notes,
    returned,
)

LIMITS = {"latency": AtMost(20.0), "size": AtMost(3.0, at="any")}


def told(given, *, objective=None, is_target=True, limits=LIMITS):
    found = returned(given, limits, objective, is_target=is_target)
    return dict(found.values), dict(found.notes)


def test_a_limit_holds_at_its_bound():
    assert AtMost(2).allows(2.0)
    assert not AtMost(2).allows(math.nextafter(2.0, 3.0))
    assert AtLeast(2).allows(2.0)
    assert not AtLeast(2).allows(math.nextafter(2.0, 1.0))
    assert (str(AtMost(20)), str(AtLeast(0.9))) == ("at most 20", "at least 0.9")


@pytest.mark.parametrize("kind", [AtMost, AtLeast])
@pytest.mark.parametrize("bound", [None, "3", math.nan, math.inf, True])
def test_a_bound_is_a_finite_number(kind, bound):
    with pytest.raises(InvalidInput, match="bound"):
        kind(bound)


@pytest.mark.parametrize("kind", [AtMost, AtLeast])
def test_a_limit_holds_at_the_target_or_anywhere(kind):
    assert kind(1.0).at == "target"
    with pytest.raises(InvalidInput, match=r"at must be one of \['target', 'any'\]"):
        kind(1.0, at="everywhere")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([("a", AtMost(1))], "must map names"),
        ({"a": 3.0}, r"subject_to\['a'\] is 3.0"),
        ({"a": AtMost}, r"subject_to\['a'\]"),
        ({"": AtMost(1)}, "not empty"),
        ({1: AtMost(1)}, "must be a text"),
        ({"value": AtMost(1)}, "'value'"),
        ({"success": AtMost(1)}, "'success'"),
    ],
)
def test_limits_are_checked_once(given, words):
    with pytest.raises(InvalidInput, match=words):
        checked_limits(given)


def test_no_limits_are_an_empty_mapping():
    assert checked_limits(None) == checked_limits({}) == {}


def test_an_outcome_is_optimized_or_limited():
    assert checked_objective("loss", LIMITS) == "loss"
    with pytest.raises(InvalidInput, match="subject_to limits"):
        checked_objective("latency", LIMITS)
    with pytest.raises(InvalidInput, match="must name"):
        checked_objective(3, LIMITS)


def test_the_objective_is_the_one_key_without_a_limit():
    assert told({"latency": 3, "loss": 1.5, "size": 2}) == ({"latency": 3.0, "size": 2.0, "value": 1.5}, {})


def test_with_more_such_keys_it_is_named_and_the_rest_are_notes():
    given = {"latency": 3, "loss": 1.5, "size": 2, "epochs": 7}
    with pytest.raises(InvalidInput, match="objective='loss'"):
        told(given)
    assert told(given, objective="loss") == ({"latency": 3.0, "size": 2.0, "value": 1.5}, {"epochs": 7})


def test_a_key_of_that_name_is_the_value():
    only = {"latency": AtMost(1.0)}
    assert told({"value": 1.0, "latency": 0.0, "host": 3.0}, limits=only)[0] == {"latency": 0.0, "value": 1.0}


def test_without_limits_a_mapping_needs_the_name_of_the_objective():
    assert told({"loss": 1.0, "seconds": 3.0}, limits={}, objective="loss") == ({"value": 1.0}, {"seconds": 3.0})
    with pytest.raises(InvalidInput, match=r"must return a finite number.*objective="):
        told({"loss": 1.0, "seconds": 3.0}, limits={})


def test_an_outcome_of_the_target_may_be_missing_elsewhere():
    assert told({"loss": 1.0, "size": 2.0}, is_target=False)[0] == {"size": 2.0, "value": 1.0}
    with pytest.raises(InvalidInput, match=r"no 'latency'.*at the target"):
        told({"loss": 1.0, "size": 2.0})
    with pytest.raises(InvalidInput, match=r"no 'size'.*every fidelity"):
        told({"loss": 1.0}, is_target=False)


def test_none_says_that_an_outcome_is_not_known():
    assert told({"loss": None, "latency": 30.0, "size": None})[0] == {"latency": 30.0}
    with pytest.raises(InvalidInput, match="every outcome is None"):
        told({"loss": None, "latency": None, "size": None})


@pytest.mark.parametrize("wrong", [math.nan, "3", True, [1.0]])
def test_outcomes_are_finite_numbers(wrong):
    with pytest.raises(InvalidInput, match="latency"):
        told({"loss": 1.0, "latency": wrong, "size": 1.0})
    with pytest.raises(InvalidInput, match="loss"):
        told({"loss": wrong, "latency": 1.0, "size": 1.0})


def test_a_number_alone_will_do_where_nothing_else_is_due():
    only = {"latency": AtMost(20.0)}
    assert told(1.5, limits={})[0] == {"value": 1.5}
    assert told(1.5, limits=only, is_target=False)[0] == {"value": 1.5}
    with pytest.raises(InvalidInput, match="must be a mapping with the outcomes"):
        told(1.5, limits=only)


def test_an_objective_that_is_not_there_is_an_error_even_if_others_are():
    with pytest.raises(InvalidInput, match="no 'loss', the objective"):
        told({"los": 1.0, "latency": 3.0, "size": 1.0}, objective="loss")
    with pytest.raises(InvalidInput, match="no key beside"):
        told({"latency": 3.0, "size": 1.0})


def test_variances_go_by_outcome():
    assert by_outcome(0.5, LIMITS, "loss", "noise") == {"value": 0.5}
    assert by_outcome({"loss": 0.5, "latency": 2.0}, LIMITS, "loss", "noise") == {"value": 0.5, "latency": 2.0}
    assert by_outcome({"anything": 0.5}, LIMITS, None, "noise") == {"value": 0.5}
    with pytest.raises(InvalidInput, match="noise has 'los'"):
        by_outcome({"los": 0.5}, LIMITS, "loss", "noise")
    with pytest.raises(InvalidInput, match="must not be negative"):
        by_outcome({"latency": -1.0}, LIMITS, None, "noise")
    with pytest.raises(InvalidInput, match="two numbers"):
        by_outcome({"a": 1.0, "b": 1.0}, LIMITS, None, "noise")


def test_notes_become_json():
    given = {"curve": np.array([1.0, 2.0]), "nan": math.nan, "n": np.int64(3), 4: (1, None), "deep": {"x": {1}}}
    assert plain_notes(given) == {"curve": [1.0, 2.0], "nan": "nan", "n": 3, "4": [1, None], "deep": {"x": "{1}"}}


@pytest.mark.parametrize("wrong", ["text", 3, ["a"]])
def test_notes_have_names(wrong):
    with pytest.raises(InvalidInput, match="must map names to values"):
        checked_notes(wrong)
