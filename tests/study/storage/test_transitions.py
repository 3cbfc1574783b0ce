"""What a result may do to a trial, by the rules alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from boca.domain.errors import InvalidInput, InvalidTrial
from boca.study.storage.transitions import LET_GO, as_json, refuse_result, storable, taken_over
from support.trials import made

RUNNING = made(0, {"a": 0.5}, {"n": 1.0})


def test_a_running_trial_takes_a_result_of_its_attempt():
    refuse_result(RUNNING, RUNNING.completed(1.0))
    with pytest.raises(InvalidTrial, match=r"attempt 1 .*attempt 2"):
        refuse_result(replace(RUNNING, attempt=1), RUNNING.completed(1.0))
    with pytest.raises(InvalidTrial, match=r"value 1\.0"):
        refuse_result(RUNNING.completed(1.0), RUNNING.completed(2.0))


@pytest.mark.parametrize(
    ("driver", "until", "attempt", "expected"),
    [
        ("one", LET_GO, 2, ("running", 2)),  # released: the same attempt goes on
        ("", LET_GO, 2, ("running", 3)),  # handed back: another attempt, whatever the limit
        ("one", 5.0, 1, ("running", 2)),  # died with attempts left
        ("one", 5.0, 2, ("failed", 2)),  # died in its last attempt
    ],
)
def test_who_takes_over_goes_on_begins_anew_or_gives_up(driver, until, attempt, expected):
    trial = taken_over(replace(RUNNING, attempt=attempt), driver=driver, until=until, max_retries=2)
    assert (trial.state, trial.attempt) == expected
    assert (trial.reason is not None) == (trial.state == "failed")


def test_text_that_no_database_takes_is_escaped():
    assert storable(None) is None
    assert storable("plain ü") == "plain ü"
    assert storable("a\0b") == "a\\x00b"
    assert storable("\ud800") == "\\ud800"


def test_json_has_no_nan_and_no_objects():
    assert as_json({"a": [1, 0.1]}, "x") == '{"a":[1,0.1]}'
    for bad in (float("nan"), float("inf"), {1}, object()):
        with pytest.raises(InvalidInput, match="x is"):
            as_json({"a": bad}, "x")
