"""Runs that report, killed at any moment: no report is lost that had returned, and none is there twice.

The budget is exact, and the end is the one of a study that was never killed.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import signal
import time

import pytest

import boca
from boca.study.storage.sql import Database
from integration import run_driver
from support.places import FORKS

MANY = int(os.environ.get("BOCA_FAULTS", "0"))  # how many kills, where a user wants hundreds


def acknowledged(log):
    lines = log.read_text().splitlines(keepends=True) if log.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def check(url, log):
    """Hold a study, as a kill has left it, against what was acknowledged."""
    database = Database(url)
    if "runs" not in database.names():
        database.close()
        return boca.History()
    history = database.study("runs").read().history
    for kind, number, *said in acknowledged(log):
        trial = history[number]
        curve = dict(history.curve(run_driver.PROBLEM, trial))
        if kind == "report":
            assert curve[said[0]] == said[1]
        elif kind == "saved":
            assert trial.checkpoint == f"{number}.checkpoint"
            assert trial.saved >= said[0]
        elif kind == "told":
            assert (trial.state, trial.value, trial.cost) == ("complete", *said)
        elif kind == "start" and trial.attempt == said[0]:
            assert trial.start == said[1]
    for trial in history:
        steps = [o.z["epochs"] for t in history.chain(trial) for o in t.observations]
        assert sorted(set(steps)) == steps  # none twice, in order
        assert trial.saved <= max(steps, default=0)  # a checkpoint is of a step that was reported
        told = [o.told for o in trial.observations]
        assert sorted(set(told)) == told
    spent = math.fsum(t.cost for t in history)
    assert spent <= 8 * run_driver.PROBLEM.target_cost * (1 + 1e-12)
    database.close()
    return history


def outcome(history):
    told = [(t.number, t.x, t.planned, t.z, t.value, t.cost, t.continues, t.why) for t in history]
    stops = [(t.number, t.stop.step, t.stop.why) for t in history if t.stop is not None]
    return told, stops, [history.curve(run_driver.PROBLEM, t) for t in history]


def kill_again_and_again(place, tmp_path, kills, seed):
    """Kill the driver at random moments until it has been killed so often, then let it end."""
    log, rng = tmp_path / "log", random.Random(seed)
    done = 0
    while done < kills:
        life = FORKS.Process(target=run_driver.run, args=(place.url, str(log), 0.004))
        life.start()
        before = len(acknowledged(log))
        until = time.monotonic() + 30.0
        while len(acknowledged(log)) == before and life.exitcode is None and time.monotonic() < until:
            time.sleep(0.002)  # it takes a moment to open the study
        time.sleep(rng.uniform(0.0, 0.15))
        if life.exitcode is None:
            with contextlib.suppress(ProcessLookupError):  # it has ended since
                os.kill(life.pid, signal.SIGKILL)
                done += 1
        life.join(60.0)
        check(place.url, log)
        if life.exitcode == 0:  # it ended before it was killed: begin another study
            finish(place, log)
            log.unlink()
            database = Database(place.url)
            database.delete("runs")
            database.close()
    finish(place, log)


def finish(place, log):
    run_driver.run(place.url, str(log)).storage.close()
    history = check(place.url, log)
    assert all(t.state == "complete" for t in history)
    assert any(t.stop for t in history)
    assert any(t.continues is not None for t in history)
    unharmed = run_driver.run(None, None)
    assert outcome(history) == outcome(unharmed.history)


@pytest.fixture(autouse=True)
def every_report_is_durable(monkeypatch):
    monkeypatch.setattr("boca.study.report_buffer.INTERVAL", 0.0)


def test_no_report_is_lost_and_none_is_there_twice(database, tmp_path):
    kill_again_and_again(database, tmp_path, 3, seed=0)


@pytest.mark.faults
def test_many_kills(database, tmp_path):
    kill_again_and_again(database, tmp_path, MANY or 100, seed=1)
