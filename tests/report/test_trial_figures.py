"""The figures of trials have the numbers of the plots, and say what colors and lines mean."""

from __future__ import annotations

import pytest

import boca
from boca import Float, Space
from boca.plots import trial_data
from boca.report import trial_figures
from report.made import healthy, made, of


def test_progress_is_a_staircase_of_the_best_with_every_result_at_the_target():
    seen = of(healthy())
    best, points = trial_figures.progress(seen).figure["data"]
    found = trial_data.progress(seen)
    assert best["y"] == found.best.tolist()
    assert best["line"]["shape"] == "hv"
    assert points["x"] == found.at.tolist()


def test_regret_has_a_log_axis_only_while_it_is_positive():
    seen = of(healthy())
    best = max(t.value for t in seen.history if seen.problem.is_target(t.z))
    assert trial_figures.regret(seen, best + 1.0).figure["layout"]["yaxis"]["type"] == "log"
    assert "type" not in trial_figures.regret(seen, best - 0.1).figure["layout"]["yaxis"]


def test_every_fidelity_has_a_figure_whose_colors_are_costs():
    trials = [made(k, cost=10.0 ** (k - 1)) for k in range(3)]
    (picture,) = trial_figures.fidelities(of(trials))
    (points,) = picture.figure["data"]
    assert points["marker"]["color"] == pytest.approx([-1.0, 0.0, 1.0])
    assert points["marker"]["colorbar"]["ticktext"] == ["0.1", "1", "10"]
    assert points["x"] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(("direction", "darkest"), [("maximize", 3.0), ("minimize", 0.0)])
def test_better_trials_are_darker(direction, darkest):
    problem = boca.Problem(Space(a=Float(0, 1)), direction=direction)
    trials = [made(k, z={}, value=float(k)) for k in range(4)]
    lines = trial_figures.parallel_coordinates(of(trials, problem)).figure["data"]
    (dark,) = [line for line in lines if line["line"]["color"] == "#000000"]
    assert dark["y"][-2] == darkest / 3.0


def test_without_trials_there_are_notes():
    empty = of([])
    assert trial_figures.progress(empty).figure.words.endswith(".")
    assert [picture.key for picture in trial_figures.fidelities(empty)] == ["fidelities"]
