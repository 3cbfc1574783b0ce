"""The front in the report: a figure for each pair of objectives, and the hypervolume."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

import boca
from boca import report
from boca.plots.study import study
from boca.report.figures import pictures
from boca.report.front_figures import fronts
from boca.report.sentences import findings
from plots.test_front_data import optimizer


@pytest.mark.parametrize(("objectives", "keys"), [(2, ["front"]), (3, ["front", "front-2", "front-3"])])
def test_there_is_a_figure_for_each_pair(objectives, keys):
    seen = study(optimizer(objectives=objectives))
    found = {picture.key: picture for picture in fronts(seen)}
    assert [*found] == [*keys, "hypervolume"]
    for picture in found.values():
        go.Figure(picture.figure)
    members = next(t for t in found["front"].figure["data"] if t.get("name") == "front")
    assert sorted(members["x"]) == sorted(t.outcomes["loss"] for t in seen.front)
    assert "loss" in members["text"][0]
    assert [p.key for p in pictures(seen)][: len(found)] == [*found]


def test_the_page_says_what_is_on_the_front(tmp_path):
    seen = study(optimizer())
    said = dict(findings(seen))
    heading = f"Front, {len(seen.front)} trials"
    assert f"(trial {seen.front[0].number})" in said[heading]
    page = report.write(seen, tmp_path / "report.html").read_text()
    assert "minimize loss, maximize speed" in page
    assert "Hypervolume" in page


def test_without_results_there_are_notes():
    notes = [p.figure for p in fronts(study(optimizer(0)))]
    assert [isinstance(note, boca.plots.axis.Note) for note in notes] == [True, True]
