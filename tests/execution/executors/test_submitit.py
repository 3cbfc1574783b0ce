"""Executors of submitit are accepted: one job per evaluation, and a job that dies costs one trial."""

from __future__ import annotations

import threading
import time

import pytest

import boca
from boca.execution.executors import engine
from boca.execution.executors import submitit as adapter

SPACE = boca.Space(a=boca.Float(0, 1))


class Job:
    """What submitit returns: it has `done`, `result`, `cancel` and `job_id`, and no callbacks."""

    def __init__(self, call, *, dies=False):
        self.job_id = "17"
        self._value = None
        self._dies = dies
        self.cancelled = False
        self._thread = threading.Thread(target=self._run, args=(call,))
        self._thread.start()

    def _run(self, call):
        self._value = call()

    def done(self):
        return not self._thread.is_alive()

    def result(self):
        if self._dies:
            raise RuntimeError("has not produced any output (state: NODE_FAIL)")
        return self._value

    def cancel(self):
        self.cancelled = True


class AutoExecutor:
    """Stands for `submitit.AutoExecutor`, which is no executor of `concurrent.futures`."""

    __module__ = "submitit.auto.auto"

    def __init__(self, deaths=0):
        self.jobs = []
        self.deaths = deaths

    def submit(self, function, *args, **kwargs):
        self.jobs.append(Job(lambda: function(*args, **kwargs), dies=len(self.jobs) < self.deaths))
        return self.jobs[-1]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(adapter, "_POLL_SECONDS", 0.01)


def run(executor, objective=lambda x: x["a"], **more):
    settings = {"budget": boca.targets(6), "strategy": boca.RandomSearch(), "seed": 0, "workers": 3} | more
    return boca.minimize(objective, SPACE, executor=executor, **settings)


def test_every_trial_is_a_job():
    executor = AutoExecutor()
    result = run(executor)
    assert len(result.history.complete) == len(executor.jobs) == 6


def test_a_job_that_dies_costs_one_attempt():
    result = run(AutoExecutor(deaths=1))
    assert len(result.history.complete) == 6
    assert sorted(t.attempt for t in result.history) == [0, 0, 0, 0, 0, 1]


def test_a_job_that_exceeds_its_timeout_is_cancelled():
    executor = AutoExecutor()
    workers = engine(executor, lambda x: time.sleep(0.5) or 1.0, takes_fidelity=False, workers=1)
    outcome = workers.submit({"a": 0.5}, {}, timeout=0.05).result(10)
    assert outcome.value is None
    assert "0.05" in outcome.error
    deadline = time.monotonic() + 10
    while not executor.jobs[0].cancelled and time.monotonic() < deadline:
        time.sleep(0.01)
    assert executor.jobs[0].cancelled
    workers.close()


def test_other_objects_are_no_executors_of_submitit():
    assert not adapter.is_submitit(object())
