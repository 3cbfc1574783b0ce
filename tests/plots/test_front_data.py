"""The numbers of the plots of several objectives."""

from __future__ import annotations

import numpy as np
import pytest

from boca import AtMost, Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.hypervolume import hypervolume
from boca.domain.objectives import scores
from boca.plots import front_data
from boca.plots.axis import Note
from boca.plots.study import study

SPACE, FIDELITY = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0))
NAMES = {"loss": "minimize", "speed": "maximize", "size": "minimize"}


def optimizer(count=8, objectives=2, **limits):
    outcomes = dict([*NAMES.items()][:objectives]) | limits
    of = Problem(SPACE, FIDELITY, cost=lambda z: 0.1 + z["n"], outcomes=outcomes)
    opt = Optimizer(of, budget=targets(50), strategy=RandomSearch(), seed=0)
    for _ in range(count):
        trial = opt.ask()
        x = trial.x
        told = {"loss": x["a"] ** 2 + 0.2 * x["b"], "speed": x["a"] - 0.1 * x["b"], "size": x["b"]}
        opt.tell(trial, {name: told[name] for name in outcomes})
    if count:
        opt.add({"a": 0.5, "b": 0.5}, {"n": 0.2}, {"loss": 0.0, "speed": 9.0, "size": 0.0})
    return opt


@pytest.mark.parametrize(("objectives", "planes"), [(2, 1), (3, 3)])
def test_there_is_a_plane_for_each_pair(objectives, planes):
    opt = optimizer(objectives=objectives)
    found = front_data.front(study(opt))
    assert len(found.planes) == planes
    assert found.planes[0].labels == ("loss (lower is better)", "speed (higher is better)")
    assert [t.number for t, on in zip(found.trials, found.on_front, strict=True) if on] == sorted(
        t.number for t in opt.front
    )
    assert found.at_target.tolist() == [True] * 8 + [False]
    assert found.planes[0].x.tolist() == [t.outcomes["loss"] for t in found.trials]


def test_the_staircase_passes_through_the_front_and_dominates_nothing_of_it():
    seen = study(optimizer())
    found = front_data.front(seen)
    plane = found.planes[0]
    x, y = front_data.staircase(found, plane, seen)
    corners = set(zip(x, y, strict=True))
    assert set(zip(plane.x[found.on_front], plane.y[found.on_front], strict=True)) <= corners
    assert len(x) == 2 * int(found.on_front.sum()) - 1
    assert np.all(np.diff(x) * np.diff(y) == 0.0)  # every step is along one axis


def test_the_hypervolume_grows_to_that_of_the_front():
    opt = optimizer()
    seen = study(opt)
    found = front_data.hypervolume(seen)
    assert np.all(np.diff(found.best) >= 0.0)
    whole = hypervolume(scores(opt.problem, opt.front), front_data.reference(seen))
    assert found.best[-1] == pytest.approx(whole)
    assert found.spent[-1] == pytest.approx(8.0)
    assert "loss" in front_data.reference_in_words(seen)


def test_infeasible_trials_are_marked_and_add_nothing():
    found = front_data.front(study(optimizer(size=AtMost(0.5))))
    assert not found.feasible.all()
    assert not np.any(found.on_front & ~found.feasible)


def test_notes_say_what_is_missing():
    for draw in (front_data.front, front_data.hypervolume):
        one = Optimizer(Problem(SPACE), budget=targets(5), seed=0)
        assert "one objective" in draw(study(one)).words
        assert isinstance(draw(study(optimizer(0))), Note)
