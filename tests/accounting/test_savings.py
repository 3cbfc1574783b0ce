"""What stopping and continuing saved, against the same trials from scratch."""

from __future__ import annotations

import pytest

import boca
from boca.accounting.ledger import Ledger
from boca.accounting.savings import Savings, savings
from boca.domain.budget import targets
from boca.domain.runs import RunEvent
from boca.domain.trial import History
from support.trials import made

PROBLEM = boca.Problem(
    boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(epochs=boca.Steps(1, 20)), cost=lambda z: 5.0 + z["epochs"]
)


def ended(number, end, *, planned=20, events=(), **more):
    from dataclasses import replace

    trial = made(number, {"a": 0.5}, {"epochs": end}, state="complete", value=0.5, told=number + 1, **more)
    return replace(trial, planned={"epochs": planned}, events=events)


def test_what_was_not_run_and_what_was_not_run_again():
    history = History(
        [
            ended(0, 20),
            ended(1, 5, events=(RunEvent("stopped", 5),)),  # 15 steps were not run
            ended(2, 8),  # it ended early by itself: nothing was saved by us
            ended(3, 20, events=(RunEvent("continued", 8, path="here"),), continues=2),  # the start and 8 steps
        ]
    )
    found = savings(Ledger(PROBLEM, history, targets(9)))
    assert found == Savings(pytest.approx(15.0 / 25.0), 1, pytest.approx(13.0 / 25.0), 1)
    assert found.words.startswith("Stopping saved 0.6 target evaluations (1 run that was stopped).")
    assert "Continuing saved 0.52 target evaluations (1 run that did not begin from scratch)." in found.words


def test_without_steps_nothing_is_said():
    assert savings(Ledger(boca.Problem(PROBLEM.space), History(), None)).words == ""
