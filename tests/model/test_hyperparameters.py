"""Hyperparameters in the user's units."""

from __future__ import annotations

import math

import pytest

from boca.domain.errors import InvalidInput
from boca.gp.parameters import Block, strength
from boca.model.hyperparameters import as_told, checked, finite

BLOCKS = [
    Block("kappa0", unit="variance"),
    Block("h_x", 2),
    Block("eta2", unit="variance"),
    strength("jump", high=20.0, rate=2.0),
    strength("trend", high=20.0, rate=2.0, unit="signal"),
]
GIVEN = {"kappa0": 4.0, "h_x": [0.3, 0.4], "eta2": 0.1, "mean": 9.0}


def test_units_follow_from_the_block():
    told = [as_told(block, [0.5] * block.size, kappa0=3.0, scale=10.0) for block in BLOCKS]
    assert told == [50.0, [0.5, 0.5], 50.0, 0.5, 150.0]


def test_what_overflows_is_the_largest_float():
    assert as_told(BLOCKS[0], [1.0], kappa0=1.0, scale=1e200) == finite(math.inf) < math.inf
    assert finite(-math.inf) == -finite(math.inf)


def test_missing_strengths_are_zero():
    assert checked(GIVEN, BLOCKS) == {
        "kappa0": [4.0],
        "h_x": [0.3, 0.4],
        "eta2": [0.1],
        "mean": [9.0],
        "jump": [0.0],
        "trend": [0.0],
    }
    assert checked(GIVEN | {"jump": 1}, BLOCKS)["jump"] == [1.0]
    assert checked(GIVEN | {"eta2": 0.0}, BLOCKS)["eta2"] == [0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"h_x": [0.3]}, r"h_x'\] must have 2 length scales, .*got \[0.3\]"),
        ({"h_x": [0.3, 0.0]}, r"h_x'\] must be positive; got \[0.3, 0.0\]"),
        ({"kappa0": 0.0}, r"kappa0'\] must be positive; got 0.0"),
        ({"kappa0": [1.0, 2.0]}, r"kappa0'\] must have one number"),
        ({"eta2": -0.1}, r"eta2'\] must be at least 0; got -0.1"),
        ({"jump": -0.1}, r"jump'\] must be at least 0; got -0.1"),
        ({"jump": [0.1, 0.2]}, r"jump'\] must have one number"),
        ({"mean": "much"}, r"mean'\] must be a finite number; got 'much'"),
        ({"kapa": 1.0}, r"keys \['eta2', 'h_x', 'kappa0', 'mean'\], and may have \['jump', 'trend'\]; got"),
    ],
)
def test_numbers_that_do_not_fit_are_refused(change, message):
    with pytest.raises(InvalidInput, match=message):
        checked(GIVEN | change, BLOCKS)


def test_a_missing_key_is_refused_and_an_ignored_one_is_not():
    with pytest.raises(InvalidInput, match="must be a mapping with the keys"):
        checked({key: GIVEN[key] for key in GIVEN if key != "mean"}, BLOCKS)
    with pytest.raises(InvalidInput, match="must be a mapping"):
        checked([4.0], BLOCKS)
    assert "h_z" not in checked(GIVEN | {"h_z": [1.0]}, BLOCKS, ignored=("h_z",))
