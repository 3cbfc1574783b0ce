"""The picture of one decision."""

from __future__ import annotations

import pytest

import boca
from boca import plots
from boca.errors import InvalidInput

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def opt():
    problem = boca.Problem(
        boca.Space(a=boca.Float(0, 1), kind=boca.Choice(["p", "q"])),
        boca.Space(n=boca.Int(1, 10)),
        cost=lambda z: z["n"],
    )
    opt = boca.Optimizer(problem, budget=boca.targets(4), seed=0)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, -((trial.x["a"] - 0.3) ** 2) - 0.01 * (10 - trial.z["n"]))
    return opt


def test_the_picture_names_the_trial_its_reason_and_its_parts(opt):
    left, right, below = plots.decision(opt, name="a")
    trial = opt.history.chosen[-1]
    assert left.figure.get_suptitle().startswith(f"Trial {trial.number}: a = ")
    assert " ".join(left.get_title(loc="left").split()) == " ".join(trial.why["reason"].split())
    assert left.get_xlabel() == "a"
    assert below.get_xlabel() == "n"
    labels = [text.get_text() for ax in (left, right) for text in ax.get_legend().get_texts()]
    assert {"mean of f at the target", "upper confidence bound", "c γ: threshold", "the trial"} <= set(labels)


def test_a_choice_is_drawn_as_marks(opt):
    left, _, _ = plots.decision(opt, name="kind")
    assert [tick.get_text() for tick in left.get_xticklabels()] == ["p", "q"]


def test_axes_may_be_given(opt):
    from matplotlib.figure import Figure

    axes = tuple(Figure().subplots(1, 3))
    assert plots.decision(opt, axes=axes) == axes
    with pytest.raises(InvalidInput, match="axes must be three"):
        plots.decision(opt, axes=axes[:2])


def test_there_is_a_note_before_the_first_decision():
    left, _, _ = plots.decision(boca.Optimizer(boca.Problem(boca.Space(a=boca.Float(0, 1))), budget=boca.targets(3)))
    assert "No trial has been chosen by a model yet." in left.texts[0].get_text()
