"""The picture of when trials ran."""

from __future__ import annotations

from dataclasses import replace

import pytest

import boca
from boca import plots
from boca.plots.study import StudyView

pytest.importorskip("matplotlib")

PROBLEM = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 10)), cost=lambda z: z["n"])


def view(step):
    opt = boca.Optimizer(PROBLEM, budget=None, strategy=boca.RandomSearch(), seed=0)
    for k in range(6):
        trial = opt.ask()
        if k == 2:
            opt.fail(trial, "no")
        elif k < 5:
            opt.tell(trial, 1.0)

    def timed(trial):
        ended = None if trial.state == "running" else step * (trial.number + 1)
        return replace(trial, began=step * trial.number, ended=ended, worker=f"w{trial.number % 2}")

    return StudyView(PROBLEM, boca.History([timed(trial) for trial in opt.history]), boca.RandomSearch())


@pytest.mark.parametrize(("step", "unit"), [(1.0, "seconds"), (60.0, "minutes"), (3600.0, "hours"), (86400.0, "days")])
def test_every_kind_of_trial_is_named_and_the_axis_has_a_unit(step, unit):
    ax = plots.timeline(view(step))
    assert ax.get_xlabel() == f"{unit} since the first trial began"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["w0", "w1"]
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"failed", "running"} <= set(words)
    assert sum(len(container) for container in ax.containers) == 6
    assert "busy" in ax.get_title(loc="left")


def test_there_is_a_note_without_trials():
    ax = plots.timeline(boca.Optimizer(PROBLEM, budget=None))
    assert "No trial here says when it ran." in ax.texts[0].get_text()
