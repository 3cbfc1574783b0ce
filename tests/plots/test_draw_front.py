"""The front and its hypervolume as drawn; and every other plot of a study with several objectives."""

from __future__ import annotations

import pytest
from matplotlib import pyplot as plt

import boca
from boca import AtMost, plots
from boca.domain.errors import InvalidInput
from plots.test_front_data import optimizer


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("objectives", [2, 3])
def test_a_front_is_drawn(objectives):
    ax = plots.front(optimizer(objectives=objectives))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("loss (lower is better)", "speed (higher is better)")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert {"front", "below the target"} <= set(labels)
    assert bool(ax.lines) == (objectives == 2)


def test_a_pair_may_be_named_in_any_order():
    opt = optimizer(objectives=3)
    ax = plots.front(opt, objectives=("size", "loss"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size (lower is better)", "loss (lower is better)")
    with pytest.raises(InvalidInput, match="must be one of the pairs"):
        plots.front(opt, objectives=("size", "cost"))


def test_limits_are_shown():
    labels = [t.get_text() for t in plots.front(optimizer(size=AtMost(0.5))).get_legend().get_texts()]
    assert "not within every limit" in labels


def test_the_hypervolume_is_drawn_against_the_budget():
    ax = plots.hypervolume(optimizer())
    assert ax.get_ylabel() == "hypervolume of the front"
    assert "target evaluations" in ax.get_xlabel()
    assert len(ax.lines) == 2


@pytest.mark.parametrize("draw", [plots.front, plots.hypervolume])
def test_without_results_or_with_one_objective_it_says_so(draw):
    assert "yet" in draw(optimizer(0)).texts[0].get_text()
    one = boca.Optimizer(boca.Problem(boca.Space(a=boca.Float(0, 1))), budget=boca.targets(3), seed=0)
    assert "one objective" in draw(one).texts[0].get_text()


def test_plots_of_one_value_say_what_is_there_instead():
    opt = optimizer()
    with pytest.raises(InvalidInput, match=r"boca\.plots\.hypervolume"):
        plots.progress(opt)
    for draw in (plots.parallel_coordinates, plots.slices, plots.map2d, plots.importance, plots.hyperparameters):
        assert "several objectives" in draw(opt).texts[0].get_text()
    plots.fidelities(opt)
