"""When trials ran, in lanes."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

import boca
from boca.plots.axis import Note
from boca.plots.study import StudyView, study
from boca.plots.timeline_data import of_trials, timeline

PROBLEM = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 10)), cost=lambda z: z["n"])


def trials(*spans):
    """Return trials with these beginnings, ends and workers."""
    opt = boca.Optimizer(PROBLEM, budget=None, strategy=boca.RandomSearch(), seed=0)
    found = []
    for began, ended, worker in spans:
        trial = opt.ask()
        if ended is not None:
            trial = opt.tell(trial, 1.0)
        found.append(replace(trial, began=began, ended=ended, worker=worker, host="node", process=7))
    return found


def test_every_worker_has_a_lane():
    found = of_trials(PROBLEM, trials((0.0, 4.0, "b"), (1.0, 2.0, "a"), (2.0, 4.0, "a")))
    assert found.lanes == ("a", "b")
    assert found.lane == (1, 0, 0)
    assert found.span == 4.0
    assert found.utilization == pytest.approx(7.0 / 8.0)


def test_bars_of_a_lane_do_not_overlap():
    spans = [(0.1 * k, 0.1 * k + (k % 5), None) for k in range(40)]
    found = of_trials(PROBLEM, trials(*spans))
    assert found.lanes[0] == "node:7 #1"
    for lane in range(len(found.lanes)):
        bars = sorted((b, e) for b, e, at in zip(found.began, found.ended, found.lane, strict=True) if at == lane)
        assert all(one[1] <= other[0] for one, other in itertools.pairwise(bars))


def test_a_running_trial_lasts_until_now():
    running = trials((0.0, 2.0, "a"), (2.0, None, "a"))
    assert of_trials(PROBLEM, running, now=9.0).ended.tolist() == [2.0, 9.0]
    assert of_trials(PROBLEM, running).ended.tolist() == [2.0, 2.0]


def test_clocks_that_differ_make_no_negative_bar():
    assert of_trials(PROBLEM, trials((5.0, 4.0, "a"))).ended.tolist() == [5.0]


def test_only_the_last_are_shown():
    found = of_trials(PROBLEM, trials(*[(float(k), k + 1.0, "a") for k in range(9)]), last=3)
    assert [trial.number for trial in found.trials] == [6, 7, 8]


def test_what_never_began_has_no_bar():
    opt = boca.Optimizer(PROBLEM, budget=None, seed=0)
    opt.add({"a": 0.5}, None, 1.0)
    assert isinstance(timeline(study(opt)), Note)
    assert isinstance(timeline(StudyView(PROBLEM, boca.History(), boca.Boca())), Note)


def test_a_study_knows_when_its_trials_ran():
    opt = boca.Optimizer(PROBLEM, budget=None, strategy=boca.RandomSearch(), seed=0)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0)
    opt.ask()
    found = timeline(study(opt))
    assert len(found.trials) == 4
    assert (found.ended >= found.began).all()
