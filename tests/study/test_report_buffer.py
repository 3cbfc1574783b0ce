"""Reports that come quickly: what is durable when, what a flush writes, and what a late failure does."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

import boca
from boca.domain.errors import InvalidTrial
from boca.domain.observation import Observation
from boca.study import report_buffer
from boca.study.report_buffer import ReportBuffer
from boca.study.storage import Report
from boca.study.storage.sql import Database
from support.trials import made


class Slow:
    """A storage that counts its writes."""

    def __init__(self):
        self.writes, self.error = [], None

    def report(self, trial, reports):
        if self.error is not None:
            raise self.error
        self.writes.append([report.step for report in reports])
        for report in reports:
            trial = trial.reported(report.step, report.told)
        return trial


def at(step):
    return Report(step, (Observation({"n": step}, 0.1 * step),))


@pytest.fixture
def trial():
    return made(0, {"a": 0.5}, {"n": 9})


@pytest.fixture(autouse=True)
def second(monkeypatch):
    """Two calls of a test come within the interval, however busy the machine is."""
    monkeypatch.setattr(report_buffer, "INTERVAL", 1.0)


def wait_for(truth):
    until = time.monotonic() + 10.0
    while not truth():
        assert time.monotonic() < until
        time.sleep(0.005)


def test_the_first_report_is_written_at_once_and_quick_ones_together(trial):
    storage = Slow()
    buffer = ReportBuffer(lambda: storage)
    assert buffer.put(trial, at(1)).reached == 1
    assert buffer.put(trial, at(2)) is None
    assert buffer.put(trial, at(3)) is None
    assert storage.writes == [[1]]
    assert buffer.ahead(trial).reached == 3
    wait_for(lambda: storage.writes == [[1], [2, 3]])
    assert buffer.ahead(trial).reached == 0  # the storage has them
    time.sleep(report_buffer.INTERVAL)
    assert buffer.put(trial, at(4)).reached == 4


def test_a_flush_writes_what_is_left_once(trial):
    storage = Slow()
    buffer = ReportBuffer(lambda: storage)
    for step in (1, 2, 3):
        buffer.put(trial, at(step))
    buffer.flush()
    buffer.flush(0)
    time.sleep(1.2 * report_buffer.INTERVAL)
    assert storage.writes == [[1], [2, 3]]


def test_what_a_late_write_raises_is_raised_by_the_next_call(trial):
    storage = Slow()
    buffer = ReportBuffer(lambda: storage)
    buffer.put(trial, at(1))
    storage.error = InvalidTrial("another attempt")
    buffer.put(trial, at(2))
    wait_for(lambda: buffer._waiting[0].error is not None)
    with pytest.raises(InvalidTrial, match="another attempt"):
        buffer.put(trial, at(3))


def test_another_attempt_begins_with_nothing_waiting(trial):
    from dataclasses import replace

    storage = Slow()
    buffer = ReportBuffer(lambda: storage)
    buffer.put(trial, at(5))
    buffer.put(trial, at(6))
    again = replace(trial, attempt=1)
    assert buffer.put(again, at(2)).reached == 2


def test_slow_reports_are_durable_when_report_returns_and_quick_ones_when_the_trial_ends(tmp_path, monkeypatch):
    file = tmp_path / "study.db"

    def stored():
        with closing(sqlite3.connect(file)) as connection:
            return [row[0] for row in connection.execute("SELECT value FROM boca_observations ORDER BY position")]

    problem = boca.Problem(boca.Space(a=(0.0, 1.0)), boca.Space(e=boca.Steps(1, 99)), cost=lambda z: z["e"])
    settings = {"budget": None, "strategy": boca.RandomSearch(), "seed": 0, "name": "one"}
    opt = boca.Optimizer(problem, storage=f"sqlite:///{file}", **settings)
    trial = opt.ask()
    opt.report(trial, 1, 1.0)
    assert stored() == [1.0]
    monkeypatch.setattr(report_buffer, "INTERVAL", 60.0)
    for step in range(2, 40):
        assert opt.report(trial, step, float(step))
    assert stored() == [1.0]
    with pytest.raises(boca.BocaError, match="step 39, and reported step 39 before"):
        opt.report(trial, 39, 0.5)
    opt.saved(trial, 20, "here")
    assert len(stored()) == 39
    opt.report(trial, 41, 41.0)
    assert len(stored()) == 39
    assert opt.tell(trial, None).value == 41.0
    assert len(stored()) == 40
    opt.storage.close()
    assert Database(f"sqlite:///{file}").study("one").read().history[0].value == 41.0
