"""Axes have the range, the scale and the ticks of a parameter, and text that Matplotlib shows as it is."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt

from boca import Choice, Float, Int, plots
from boca.domain.errors import InvalidInput
from boca.plots import canvas
from boca.plots.axis import Axis, Note
from boca.plots.canvas import mark_area


def test_without_matplotlib_the_error_names_the_extra(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(InvalidInput, match=r"boca\[plots\]"):
        plots.progress(mixed)


@pytest.mark.parametrize(
    ("parameter", "scale", "low", "high"),
    [(Float(0.0, 10.0), "linear", -0.2, 10.2), (Int(1, 100, log=True), "log", 0.91, 110.0)],
)
def test_an_axis_has_the_scale_and_a_little_more_than_the_range(parameter, scale, low, high):
    _, ax = plt.subplots()
    canvas.set_axis(ax, "y", Axis("p", parameter))
    assert ax.get_yscale() == scale
    assert ax.get_ylabel() == "p"
    assert ax.get_ylim() == pytest.approx((low, high), rel=0.01)


def test_options_are_named_and_cut():
    _, ax = plt.subplots()
    canvas.set_axis(ax, "x", Axis("p", Choice(["a", "$b", "c" * 99])))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", r"\$b", "c" * 15 + "…"]
    assert ax.get_xlim() == (-0.5, 2.5)


def test_of_many_options_only_some_are_named():
    _, ax = plt.subplots()
    canvas.set_axis(ax, "y", Axis("p", Choice([f"option {i}" for i in range(40)])))
    assert len(ax.get_yticks()) <= canvas.MAX_TICKS


def test_cells_meet_half_way_on_the_scale_of_the_axis():
    line = canvas.edges(Axis("p", Float(0.0, 4.0)), np.array([0.0, 2.0, 4.0]))
    assert line.tolist() == [0.0, 1.0, 3.0, 4.0]
    log = canvas.edges(Axis("p", Float(1.0, 100.0, log=True)), np.array([1.0, 100.0]))
    assert log.tolist() == pytest.approx([1.0, 10.0, 100.0])
    assert canvas.edges(Axis("p", Choice(["a", "b"])), np.array([0.0, 1.0])).tolist() == [-0.5, 0.5, 1.5]


def test_a_note_is_all_there_is_to_see():
    _, ax = plt.subplots()
    canvas.empty(ax, Note("Nothing costs $5."))
    assert [text.get_text() for text in ax.texts] == [r"Nothing costs \$5."]
    assert not len(ax.get_xticks())


def test_marks_of_many_trials_are_small_and_never_gone():
    assert mark_area(24, 10) == 24
    assert mark_area(24, 600) == 12
    assert mark_area(24, 5000) == mark_area(24, 50_000) > 3
