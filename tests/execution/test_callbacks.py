"""The ready-made callbacks, called by a run and on their own."""

from __future__ import annotations

import logging

import pytest

import boca
from boca.execution.callbacks import Log, Progress

SPACE = boca.Space(a=boca.Float(0, 1))
FIDELITY = boca.Space(n=boca.Int(1, 10))


def run(objective=lambda x, z: 1.23456789 + 0.0 * x["a"], **more):
    settings = {"cost": lambda z: z["n"], "budget": boca.targets(3), "strategy": boca.RandomSearch(), "seed": 0}
    return boca.maximize(objective, SPACE, FIDELITY, **settings | more)


def test_a_log_has_one_line_per_trial_with_its_value_its_fidelity_the_best_and_the_share_of_the_budget(caplog):
    with caplog.at_level(logging.INFO, logger="boca"):
        run(callbacks=Log())
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    for number, line in enumerate(lines):
        words = f"   {number}  1.23457      n=10  best 1.23457 (#0)  {(33, 66, 100)[number]} % spent, "
        assert line.startswith(words)
        assert line.endswith(" s left")


def test_a_failure_is_a_warning_with_its_reason(caplog):
    def fragile(x, z):
        raise ValueError("no convergence")

    with caplog.at_level(logging.WARNING, logger="boca"), pytest.raises(boca.errors.ObjectiveFailed):
        run(fragile, callbacks=Log())
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert all("  failed       n=10  ValueError: no convergence  no best yet  " in text for text in caplog.messages)


def test_a_log_may_have_a_logger_of_its_own(caplog):
    with caplog.at_level(logging.INFO, logger="mine"):
        run(callbacks=Log(logging.getLogger("mine")))
    assert {record.name for record in caplog.records} == {"mine"}


@pytest.fixture
def terminal(monkeypatch):
    """Collect what the progress bar is set to."""
    seen = []

    def update(self, task, *, completed, description):
        seen.append((completed, description))

    monkeypatch.setattr("rich.progress.Progress.update", update)
    return seen


def test_a_progress_bar_shows_the_share_of_the_budget_and_the_best(terminal):
    run(callbacks=Progress())
    assert [round(share, 6) for share, _ in terminal] == [round(k / 3, 6) for k in (1, 2, 3)]
    assert terminal[0][1] == "1 trial, best 1.23457 (trial 0)"
    assert terminal[-1][1] == "3 trials, best 1.23457 (trial 0)"


def test_a_progress_bar_counts_failures_and_says_when_there_is_no_best(terminal):
    def fragile(x, z):
        raise ValueError("no convergence")

    with pytest.raises(boca.errors.ObjectiveFailed):
        run(fragile, callbacks=Progress())
    assert terminal[-1][1] == "3 trials, 3 failed, no result at the target yet"


def test_without_a_budget_the_bar_stays_empty(terminal):
    run(budget=None, stop=lambda history: len(history) == 2, callbacks=Progress())
    assert [share for share, _ in terminal] == [0.0, 0.0]


def test_a_bar_is_stopped_when_the_run_ends(monkeypatch):
    stopped = []
    monkeypatch.setattr("rich.progress.Progress.stop", lambda self: stopped.append(self))
    run(callbacks=Progress())
    assert len(stopped) == 1
