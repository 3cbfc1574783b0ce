"""Runs on the curve tasks report every step, pay for increments, and end where the rule says."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

import boca
from boca.bench import runner
from boca.domain.budget import Budget

sys.path.insert(0, str(Path(__file__).parents[1]))  # `benchmarks` is no part of the package

from benchmarks.real import curves, loop, reached, stops, tasks
from boca.stopping import StopHopeless

TASK = curves.stepped(tasks.get("trees_diabetes"))


def run(method, targets=4.0, seed=0):
    return curves.run(tasks.get("trees_diabetes"), method, seed=seed, own_seed=1, targets=targets)


@pytest.fixture(scope="module")
def trials():
    return run(curves.boca(tasks.get("trees_diabetes")))


def test_the_step_of_a_task_becomes_steps_and_nothing_else_changes():
    plain = tasks.get("trees_diabetes").problem
    assert TASK.problem.steps == tasks.get("trees_diabetes").step
    assert TASK.problem.target == plain.target
    assert TASK.problem.target_cost == plain.target_cost


def test_every_step_is_reported_and_no_step_is_paid_for_twice(trials):
    paid = math.fsum(t.cost for t in trials)
    assert paid <= 4.0 * TASK.problem.target_cost * (1 + 1e-9)
    for trial in trials:
        assert [TASK.problem.step(o.z) for o in trial.observations] == list(
            range(trial.start + 1, TASK.problem.step(trial.z) + 1)
        )
    fresh = {TASK.row(t.x) for t in trials if t.continues is None}
    assert len(fresh) > 3
    assert any(t.continues is not None for t in trials)


def test_values_are_those_of_the_table(trials):
    trial = trials[0]
    for told in trial.observations:
        assert told.value == tasks.get("trees_diabetes").result(trial.x, told.z, 0)


def test_without_checkpoints_runs_end_where_the_rule_stops_them():
    method = curves.random_stops(tasks.get("trees_diabetes"))
    found = run(method, targets=12.0)
    stopped = [t for t in found if t.stop is not None]
    assert stopped
    assert all(t.continues is None for t in found)
    assert all(t.z[TASK.step] == t.stop.step < TASK.problem.target[TASK.step] for t in stopped)


def test_a_cell_has_a_record_and_the_share_at_which_a_peer_is_reached(tmp_path):
    names = ("benchmarks.real.curves:random_stops", "benchmarks.real.one_epoch:one_epoch")
    cells = [runner.Cell(tasks.PATH + "trees_diabetes", name, 0) for name in names]
    failed = loop.run(cells, tmp_path, targets=4.0, in_seconds=False, jobs=0, report=lambda cell, found: None)
    assert failed == 0
    lines = reached.markdown(tmp_path, ("curves:random_stops",)).splitlines()
    assert {line.split(" | ")[0].strip("| ") for line in lines[2:]} == {"curves:random_stops", "one_epoch:one_epoch"}
    assert "1 of 1 tasks" in next(line for line in lines if "one_epoch" in line)


def test_a_method_with_curves_is_a_strategy():
    method = curves.boca(tasks.get("trees_diabetes"))
    budget = Budget(4.0, 0.4)
    found = method.suggest(TASK.problem, boca.History(), budget, np.random.default_rng(0))
    assert found.x == TASK.problem.middle


def test_stopping_random_runs_saves_a_share_and_seldom_stops_the_best():
    found = stops.study("trees_diabetes", 0, 30, StopHopeless())
    assert 0.1 < found.saved < 0.9
    assert found.stopped >= 5
    assert found.lost >= 0.0
    never = stops.study("trees_diabetes", 0, 12, StopHopeless(finishing=1.0))
    assert never == (0.0, 0, 0, 0.0)
