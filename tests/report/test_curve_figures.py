"""The picture of curves: a figure to Plotly, with a trace for each fate, and what was saved in its caption."""

from __future__ import annotations

import json

import plotly.graph_objects as go

import boca
from boca.plots.study import study
from boca.report import curve_figures
from boca.report.traces import BLACK
from plots.test_curve_data import PROBLEM, played


def test_a_trace_for_each_fate_with_stopped_ones_in_grey():
    (picture,) = curve_figures.curves(study(played()))
    figure = go.Figure(json.loads(json.dumps(picture.figure)))
    assert {trace.name: trace.line.color for trace in figure.data} == {
        "stopped or failed": "#c4c4c4", "ended": BLACK, "running": "#0072b2",
    }  # fmt: skip
    ended = next(trace for trace in figure.data if trace.name == "ended")
    assert list(ended.x) == [*range(1, 10), None]
    assert set(ended.text) == {"trial 1"}
    assert "Stopping saved" in picture.caption
    assert "Continuing saved" in picture.caption


def test_a_study_without_steps_has_no_such_picture():
    plain = boca.Optimizer(boca.Problem(PROBLEM.space), budget=None, strategy=boca.RandomSearch(), seed=0)
    assert list(curve_figures.curves(study(plain))) == []
