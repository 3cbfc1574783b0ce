"""When trials are chosen ahead: where a worker would wait for more than a twentieth of a trial."""

from __future__ import annotations

import math

import pytest

from boca.execution.timing import Mean, Timing


def timing(trial, choice):
    found = Timing()
    found.trial.add(trial)
    found.choice.add(choice)
    return found


@pytest.mark.parametrize(
    ("workers", "trial", "choice", "wanted"),
    [
        (1, 1.0, 10.0, 0),  # never with one worker
        (4, 1.0, 0.05, 0),  # a wait of 5 % does not count
        (4, 1.0, 0.06, 1),
        (4, 0.05, 0.02, 4),
        (128, 5.0, 0.015, 0),
        (128, 0.25, 0.015, 128),
        (32, 5.0, 0.3, 32),
        (8, 5.0, 0.3, 4),
        (2, 0.0, 0.01, 2),
    ],
)
def test_how_many_are_chosen_ahead(workers, trial, choice, wanted):
    assert timing(trial, choice).wanted(workers) == wanted


def test_nothing_is_chosen_ahead_before_a_trial_has_ended():
    assert Timing().wanted(8) == 0


def test_a_mean_follows_what_is_measured():
    mean = Mean()
    for value in (1.0, *[3.0] * 30):
        mean.add(value)
    assert math.isclose(mean.value, 3.0, rel_tol=0.01)
