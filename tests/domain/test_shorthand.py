"""Short forms of parameters and directions mean what people who type them expect, and the doubtful ones are said."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca import Choice, Float, Int, Problem, Space
from boca.domain import shorthand
from boca.domain.errors import Doubtful, InvalidInput


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ((1, 8), Int(1, 8)),
        ((np.int64(1), np.int32(8)), Int(1, 8)),
        ((0.0, 1.0), Float(0, 1)),
        ((0, 1.0), Float(0, 1)),
        ((0.0, 1), Float(0, 1)),
        ((np.float32(0.5), 2), Float(0.5, 2)),
        ((1e-4, 1.0, "log"), Float(1e-4, 1.0, log=True)),
        ((16, 4096, "log"), Int(16, 4096, log=True)),
        (["a", "b"], Choice(["a", "b"])),
        ([1, 2, 3], Choice([1, 2, 3])),
        ([True, False], Choice([True, False])),
        ([None, 3], Choice([None, 3])),
        (Float(0, 1), Float(0, 1)),
        (Choice([1, 2]), Choice([1, 2])),
    ],
)
def test_a_short_form_is_a_parameter(typed, meant):
    space = Space(p=typed)
    assert space == Space({"p": typed}) == Space(p=meant)
    assert type(space["p"]) is type(meant)


def test_a_space_of_short_forms_is_searched():
    found = boca.minimize(
        lambda x: abs(x["depth"] - 3) + x["lr"] + (x["kind"] == "b"),
        Space(lr=(1e-4, 1.0, "log"), depth=(1, 8), kind=["a", "b"]),
        budget=boca.targets(6),
        strategy=boca.RandomSearch(),
        seed=0,
    )
    assert {type(value) for value in found.x.values()} == {float, int, str}


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ((0, 1), ["'p'", "got (0, 1)", "boca.Int(0, 1)", "(0.0, 1.0)"]),
        ((np.int64(0), np.int64(1)), ["boca.Int(0, 1)", "(0.0, 1.0)"]),
        ((1,), ["(low, high)", "got (1,)", "for a Float"]),
        ((1, 2, 3, 4), ["(low, high)", "got (1, 2, 3, 4)"]),
        (("a", "b"), ["two numbers", "got ('a', 'b')", "['a', 'b'] for a Choice"]),
        ((True, False), ["two numbers", "got (True, False)"]),
        ((1, 8, "lin"), ["'p'", "must be 'log'", "got 'lin'"]),
        ((1, 8, True), ["must be 'log'", "got True"]),
        ((8, 1), ["'p'", "low < high", "low=8", "high=1"]),
        ((0, 8, "log"), ["'p'", "low > 0"]),
        ([1], ["'p'", "at least two options"]),
        (["a", "a"], ["'p'", "differ"]),
        ({"a", "b"}, ["'p'", "must be boca.Float, boca.Int or boca.Choice", "(1, 8) for an Int"]),
        ("log", ["must be boca.Float", "got 'log'"]),
    ],
)
def test_what_has_no_one_meaning_is_refused_with_what_to_type(typed, words):
    with pytest.raises(InvalidInput) as refused:
        Space(p=typed)
    assert [word for word in words if word not in str(refused.value)] == []


@pytest.mark.parametrize("typed", [[0.1, 10.0], [10, 1], [1, 2.5]])
def test_a_list_of_two_numbers_is_a_choice_with_a_warning_that_points_at_the_line(typed):
    low, high = sorted(typed)
    with pytest.warns(Doubtful) as caught:
        space = Space({"p": typed})
    assert space["p"] == Choice(typed)
    (warning,) = caught
    assert warning.filename == __file__
    for words in ("'p'", f"({low!r}, {high!r})", f"boca.Choice({typed!r})"):
        assert words in str(warning.message)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("max", "maximize"),
        ("maximise", "maximize"),
        ("maximize", "maximize"),
        ("min", "minimize"),
        ("minimise", "minimize"),
        ("minimize", "minimize"),
    ],
)
def test_a_direction_has_three_spellings(word, meant):
    assert Problem(Space(a=(0.0, 1.0)), direction=word).direction == shorthand.direction(word) == meant


@pytest.mark.parametrize("wrong", ["up", "MAX", "", None, 1, ["max"]])
def test_another_direction_is_refused(wrong):
    with pytest.raises(InvalidInput, match=r"'maximize' or 'minimize', 'max' or 'min'; got "):
        shorthand.direction(wrong)
