"""Times as programs and people read them."""

from __future__ import annotations

import math

import pytest

from boca.domain.attempt import DIED, Attempt, iso


def test_a_time_is_utc_to_the_millisecond():
    assert iso(1795129669.8328648) == "2026-11-19T23:07:49.832Z"
    assert iso(None) is None


@pytest.mark.parametrize("damaged", [math.nan, math.inf, 1e300])
def test_a_damaged_time_is_none(damaged):
    assert iso(damaged) is None


def test_an_attempt_is_json():
    lost = Attempt(1, 0.0, None, "node", 7, DIED)
    assert lost.to_json() == {
        "attempt": 1,
        "began": "1970-01-01T00:00:00.000Z",
        "ended": None,
        "host": "node",
        "process": 7,
        "ending": "the worker died",
    }
