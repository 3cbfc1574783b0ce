"""Every plot can be drawn of anything that a study can be, and refuses what cannot be meant."""

from __future__ import annotations

import math

import pytest
from matplotlib import pyplot as plt

import boca
from boca import Choice, Float, Int, Space, plots
from boca.domain.errors import InvalidInput
from plots.hills import go, optimizer


def huge():
    names = ["x" * 400, "dollar $\\frac{ & <b>", "_hidden"]
    space = Space({names[0]: Float(0, 1), names[1]: Choice(["o" * 300, "$x", "c"]), names[2]: Int(1, 2)})
    fidelity = Space({f"option {i} $": Float(0, 1) for i in range(3)})
    opt = boca.Optimizer(boca.Problem(space, fidelity), budget=boca.targets(40), seed=0)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial.x[names[0]], seconds=1.0)
    return opt


def one_running():
    opt = optimizer()
    opt.ask()
    return opt


def constant():
    opt = optimizer(Space(a=Float(0, 1)), None)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0)
    return opt


OTHERS = {
    "empty": optimizer,
    "one trial": lambda: go(optimizer(), 1),
    "one running": one_running,
    "failures only": lambda: go(optimizer(), 3, failing=range(9)),
    "random": lambda: go(optimizer(strategy=boca.RandomSearch()), 3),
    "constant": constant,
    "huge names": huge,
}


def every(source, axes):
    """Draw everything that there is."""
    it = iter(axes.flat)
    return [
        plots.progress(source, ax=next(it)),
        plots.fidelities(source, ax=next(it)),
        plots.importance(source, ax=next(it)),
        plots.slices(source, ax=next(it)),
        plots.map2d(source, ax=next(it)),
        plots.information_gap(source, ax=next(it)),
        plots.hyperparameters(source, ax=next(it)),
        plots.hyperparameters(source, "scales", ax=next(it)),
        plots.parallel_coordinates(source, ax=next(it)),
        plots.regret(source, 2.0, ax=next(it)),
    ]


@pytest.mark.parametrize("name", ["mixed", "minimized", "plain", *OTHERS])
def test_every_plot_of_every_study_can_be_drawn(name, request):
    source = OTHERS[name]() if name in OTHERS else request.getfixturevalue(name)
    figure, axes = plt.subplots(2, 5)
    returned = every(source, axes)
    assert returned == list(axes.flat)
    figure.canvas.draw()
    for ax in returned:  # something is there: data, or a sentence
        assert ax.lines or ax.collections or ax.texts


def test_a_study_without_anything_says_so():
    for ax in every(optimizer(), plt.subplots(2, 5)[1]):
        (note,) = ax.texts
        assert note.get_text().endswith(".")
        assert not ax.collections
        assert not ax.lines


def test_what_cannot_be_meant_is_refused(mixed):
    for draw in (plots.slices, plots.information_gap):
        with pytest.raises(InvalidInput, match="must be one of"):
            draw(mixed, "nothing")
    with pytest.raises(InvalidInput, match="must be one of"):
        plots.map2d(mixed, "C", "nothing")
    with pytest.raises(InvalidInput, match="twice"):
        plots.map2d(mixed, "C", "C")
    for draw in (plots.slices, plots.map2d):
        with pytest.raises(InvalidInput, match=r"at must map names of parameters to values; got \[1\]"):
            draw(mixed, "C", at=[1])
    with pytest.raises(InvalidInput, match="chosen by a model"):
        plots.information_gap(mixed, number=0)
    with pytest.raises(InvalidInput, match="which"):
        plots.hyperparameters(mixed, "all")
    with pytest.raises(InvalidInput, match="Axes"):
        plots.progress(mixed, ax=plt.figure())
    with pytest.raises(InvalidInput, match="Optimizer"):
        plots.progress(7)
    with pytest.raises(InvalidInput, match="finite"):
        plots.regret(mixed, math.nan)
    with pytest.raises(InvalidInput, match="no file"):
        plots.load("/nowhere/study.db", "hills")
