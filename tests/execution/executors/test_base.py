"""What all engines share: how things travel, timeouts, and outcomes."""

from __future__ import annotations

import math
import pickle
import threading

import pytest

from boca.domain.errors import BocaError, InvalidInput
from boca.execution.executors.base import (
    Outcome,
    arguments,
    checked_timeout,
    closed,
    finished,
    outcome_of,
    pickled,
    pickled_arguments,
)
from boca.execution.executors.worker import Report


def test_the_arguments_are_copies_and_z_is_there_only_if_the_objective_takes_it() -> None:
    x, z = {"a": 1}, {"n": 2}
    assert arguments(x, z, takes_fidelity=False) == (x,)
    copies = arguments(x, z, takes_fidelity=True)
    assert copies == (x, z)
    assert all(copy is not given for copy, given in zip(copies, (x, z), strict=True))


def test_an_objective_travels_by_value() -> None:
    scale = 3.0
    assert pickle.loads(pickled(lambda x: scale * x["a"]))({"a": 2}) == 6.0


def test_an_objective_that_cannot_travel_is_refused_with_its_reason_and_the_way_out() -> None:
    lock = threading.Lock()
    with pytest.raises(InvalidInput, match=r"cloudpickle refuses .*lock.*executor=None"):
        pickled(lambda x: lock.locked())


def test_a_point_that_cannot_travel_is_a_failed_evaluation_and_not_an_error() -> None:
    sent = pickled_arguments(({"a": 1},))
    assert isinstance(sent, bytes)
    assert pickle.loads(sent) == ({"a": 1},)
    outcome = pickled_arguments(({"a": threading.Lock()},))
    assert isinstance(outcome, Outcome)
    assert (outcome.value, outcome.died) == (None, False)
    assert outcome.error is not None
    assert "lock" in outcome.error


@pytest.mark.parametrize("timeout", [0, -1.0, math.nan, math.inf, "5", True])
def test_a_timeout_is_positive_seconds(timeout: object) -> None:
    with pytest.raises(InvalidInput, match="timeout must be"):
        checked_timeout(timeout)


def test_no_timeout_is_no_limit() -> None:
    assert checked_timeout(None) is None
    assert checked_timeout(3) == 3.0


def test_a_finished_future_has_its_outcome_at_once() -> None:
    outcome = outcome_of(Report(1.5, None, 0.25))
    assert outcome == Outcome(1.5, None, "", 0.25)
    assert finished(outcome).result(0.0) is outcome


def test_the_error_after_close_says_what_to_do() -> None:
    assert isinstance(closed(), BocaError)
    assert "closed" in str(closed())
