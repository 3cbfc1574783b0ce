"""Lists of numbers as parameters."""

from __future__ import annotations

import pytest

from boca.errors import InvalidInput
from boca.integrations.levels import Levels


def test_levels_are_in_ascending_order_and_known_by_their_values():
    levels = Levels.of([64, 16, 32, 16.0], "batch")
    assert levels.values == (16, 32, 64) or levels.values == (16.0, 32, 64)
    assert levels.parameter.high == 2
    assert [levels.value(levels.index(v, "batch")) for v in (16, 32, 64)] == [16, 32, 64]


@pytest.mark.parametrize("values", [[], [1], [1, 1.0]])
def test_one_number_is_no_parameter(values):
    with pytest.raises(InvalidInput, match="at least two different numbers"):
        Levels.of(values, "batch")


@pytest.mark.parametrize("value", ["a", float("nan"), None])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(InvalidInput, match="batch"):
        Levels.of([1, value], "batch")


def test_a_value_that_is_not_in_the_list_is_refused():
    with pytest.raises(InvalidInput, match=r"batch is 17, and must be one of \[16, 32\]"):
        Levels.of([16, 32], "batch").index(17, "batch")
