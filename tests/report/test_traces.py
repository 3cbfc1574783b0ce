"""Pieces of figures: text that Plotly shows as it is, axes of every kind, marks."""

from __future__ import annotations

import math

import numpy as np
import pytest

from boca import Choice, Float, Int
from boca.plots.axis import Axis, marks
from boca.report import traces
from report.made import made, of


def test_safe_text_is_short_and_escaped():
    assert traces.safe("<b>") == "&lt;b&gt;"
    assert len(traces.safe("x" * 500)) == 40


@pytest.mark.parametrize(
    ("parameter", "expected"),
    [
        (Float(0.0, 1.0), {"type": "linear", "range": [-0.03, 1.03]}),
        (Float(1.0, 10.0, log=True), {"type": "log", "range": [-0.03, 1.03], "dtick": "D2"}),
        (Float(1.0, 100.0, log=True), {"type": "log", "range": [-0.06, 2.06], "dtick": 1}),
        (Int(0, 10), {"type": "linear", "range": [-0.3, 10.3], "tickformat": "d", "dtick": 1}),
        (Int(0, 100), {"type": "linear", "range": [-3.0, 103.0], "tickformat": "d"}),
        (Choice(["a", "<b>"]), {"tickvals": [0, 1], "ticktext": ["a", "&lt;b&gt;"], "range": [-0.5, 1.5]}),
    ],
)
def test_an_axis_has_the_scale_and_the_ticks_of_its_parameter(parameter, expected):
    axis = traces.axis_of(Axis("<p>", parameter))
    assert axis.pop("title") == {"text": "&lt;p&gt;"}
    ends = axis.pop("range"), expected.pop("range")
    assert ends[0] == pytest.approx(ends[1])
    assert axis == expected


def test_marks_tell_failed_trials_and_the_target_apart():
    found = marks(of([made(0), made(1, z={"n": 2.0}), made(2, state="failed", value=None, reason="broke")]))
    assert traces.symbols(found) == ["circle", "triangle-up", "x"]
    assert [t.number for t in traces.chosen(found.trials, found.failed)] == [2]


def test_the_pointer_shows_a_trial_with_few_digits_and_no_markup():
    trial = made(3, x={"<a>": 1 / 3}, value=2 / 3, cost=1 / 7)
    (words,) = traces.points_of(np.zeros(1), np.zeros(1), [trial], name="trial")["text"]
    assert words == "trial 3: value 0.666667, cost 0.143<br>&lt;a&gt; = 0.333333<br>n = 10"


def test_what_is_not_finite_is_none():
    assert traces.numbers([1, math.nan, math.inf, 2.5]) == [1.0, None, None, 2.5]
