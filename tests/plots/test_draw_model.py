"""What is drawn of the model is what it believes, in the user's units."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from boca import plots
from boca.plots import model_data
from boca.plots.study import study
from plots.hills import SPACE


def test_the_gap_closes_at_the_target_and_is_drawn_over_the_whole_range(mixed):
    ax = plots.information_gap(mixed, "N")
    curve = ax.lines[0]
    assert curve.get_ydata()[-1] == pytest.approx(0.0, abs=1e-7)
    assert np.all(np.diff(curve.get_ydata()) <= 1e-12)
    assert (curve.get_xdata()[0], curve.get_xdata()[-1]) == (100, 10000)
    assert ax.get_xscale() == "log"
    assert len(ax.collections[0].get_offsets()) <= len(mixed.history)


def test_a_slice_shows_mean_band_and_the_results_with_the_same_options(mixed):
    seen = study(mixed)
    found = model_data.slices(seen, "C")
    ax = plots.slices(mixed, "C")
    (mean,) = ax.lines
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "C"
    assert mean.get_xdata()[0] == pytest.approx(1e-2)
    assert mean.get_xdata()[-1] == pytest.approx(1e3)
    np.testing.assert_array_equal(mean.get_ydata(), found.mean)
    kind = seen.recommendation.x["kind"]
    alike = [t for t in mixed.history if t.x["kind"] == kind]
    assert 0 < len(alike) < len(mixed.history)
    shown = [tuple(place) for c in ax.collections[1:] for place in np.asarray(c.get_offsets()).tolist()]
    assert {(t.x["C"], t.value) for t in alike if t.state == "complete"} <= set(shown)
    assert sorted(place[0] for place in shown) == sorted(t.x["C"] for t in alike if t.state != "running")
    assert kind in ax.get_legend().get_title().get_text()


def test_slices_know_integers_and_options(mixed):
    whole = model_data.slices(study(mixed), "depth")
    assert whole.position.tolist() == list(range(1, 13))
    ax = plots.slices(mixed, "depth")
    ax.figure.canvas.draw()
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    options = plots.slices(mixed, "kind")
    assert [label.get_text() for label in options.get_xticklabels()] == ["round", "flat", "None"]


def test_without_a_name_the_parameter_of_the_shortest_length_scale_is_shown(mixed):
    seen = study(mixed)
    h = dict(zip(SPACE, seen.model.h, strict=False))
    assert plots.slices(mixed).get_xlabel() == min(h, key=h.get)
    ordered = sorted(h, key=h.get)
    ax = plots.map2d(mixed)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (ordered[0], ordered[1])


def test_a_map_is_the_posterior_on_a_grid(mixed):
    ax = plots.map2d(mixed, "C", "kind")
    mesh = ax.collections[0].get_array().reshape(3, model_data.MAP_POINTS)
    seen = study(mixed)
    point = {**seen.recommendation.x, "C": 1e-2, "kind": "flat"}
    mean, _ = model_data.posterior(seen.model, SPACE.to_unit([point]))
    assert mesh[1, 0] == pytest.approx(mean[0])
    assert ax.get_xscale() == "log"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["round", "flat", "None"]


def test_plots_of_a_model_say_where_another_version_made_the_study(mixed):
    assert plots.slices(mixed).get_title() == ""
    seen = dataclasses.replace(study(mixed), caveat="The model is not quite that of the $tudy.")
    for draw in (plots.slices, plots.map2d, plots.information_gap):
        assert draw(seen).get_title() == r"The model is not quite that of the \$tudy."
    assert plots.progress(seen).get_title() == ""


def test_the_gap_is_explained_in_a_sentence(mixed):
    found = model_data.information_gap(study(mixed), "N")
    below = found.queried[~found.marks.at_target]
    assert f"{np.median(below):.0%}" in found.sentence
    assert plots.information_gap(mixed, "N").get_title() == found.sentence


def test_a_map_has_lines_with_values_for_the_mean(mixed):
    ax = plots.map2d(mixed, "C", "depth")
    labels = [text.get_text() for text in ax.texts]
    assert any(not label.startswith("±") for label in labels)
