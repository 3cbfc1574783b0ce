"""The map of feasibility in the report, and failures by cause."""

from __future__ import annotations

import boca
from boca.plots.study import study
from boca.report import page
from boca.report.feasible_figure import causes, feasible_map
from plots.failing import SPACE, failing


def test_the_report_has_the_map_and_the_causes():
    opt = failing()
    failed = [t for t in opt.history if t.state == "failed"]
    (picture,) = feasible_map(study(opt))
    heat, *marks = picture.figure["data"]
    assert heat["type"] == "heatmap"
    assert len(heat["z"]) == 41
    assert sum(len(trace["x"]) for trace in marks) == 30
    rows = dict(causes(study(opt)))
    where = rows.pop("where")
    assert "nearly all of them where a >= 0.7" in where
    assert {reason: int(said.split()[0]) for reason, said in rows.items()} == {
        reason: sum(t.reason == reason for t in failed) for reason in ("diverged", "out of memory")
    }
    text = page.page(study(opt))
    assert "Failures by cause" in text
    assert "Map of feasibility" in text


def test_a_study_without_them_has_neither():
    calm = study(boca.minimize(lambda x: x["a"], SPACE, budget=boca.targets(3), seed=0))
    assert not list(feasible_map(calm))
    assert causes(calm) == []


def test_many_causes_are_summed_up():
    opt = boca.Optimizer(boca.Problem(SPACE), budget=boca.targets(30), strategy=boca.RandomSearch(), seed=0)
    for k in range(15):
        opt.fail(opt.ask(), f"reason {k}")
    opt.fail(opt.ask(), "reason 3")
    rows = causes(study(opt))
    assert rows[0] == ("reason 3", "2 trials")
    assert rows[12] == ("3 other reasons", "3 trials")
