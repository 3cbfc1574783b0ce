"""The figures of the model have the numbers of the plots."""

from __future__ import annotations

import pytest

from boca.plots import model_data
from boca.report import model_figures
from report.made import healthy, of


def test_a_slice_has_mean_band_and_the_trials_by_fidelity():
    seen = of(healthy())
    (picture,) = model_figures.slices(seen)
    low, high, mean, below, at = picture.figure["data"]
    found = model_data.slices(seen, "a")
    assert mean["y"] == pytest.approx(found.mean.tolist())
    assert high["y"] == pytest.approx((found.mean + 2 * found.std).tolist())
    assert low["y"] == pytest.approx((found.mean - 2 * found.std).tolist())
    assert at["y"] == [t.value for t in seen.history if t.z["n"] == 10.0]
    assert below["y"] == [t.value for t in seen.history if t.z["n"] == 5.0]


def test_a_map_of_one_parameter_is_a_note():
    assert "one parameter" in model_figures.map2d(of(healthy())).figure.words


def test_a_gap_has_its_curve_and_a_ring_per_trial():
    seen = of(healthy())
    (picture,) = model_figures.information_gaps(seen)
    curve, rings = picture.figure["data"]
    assert curve["y"][-1] == pytest.approx(0.0, abs=1e-7)
    assert len(rings["y"]) == len(seen.history)


def test_length_scales_and_deviations_are_lines_over_the_trials():
    scales, deviations = model_figures.hyperparameters(of(healthy()))
    assert [line["name"] for line in scales.figure["data"]] == ["a", "n"]
    assert scales.figure["data"][0]["y"] == [0.5] * 8
    assert [line["name"] for line in deviations.figure["data"]] == ["f", "noise"]
    assert scales.figure["data"][0]["hovertext"][0] == "trial 0: a 0.5"


def test_without_a_model_one_note_says_why():
    empty = of([])
    assert len(list(model_figures.slices(empty))) == 1
    assert len(list(model_figures.hyperparameters(empty))) == 1
