"""Importance is that of the function once the model has learned it, and says what the model does not know."""

from __future__ import annotations

import math

import numpy as np
import pytest

import boca
from boca import Candidates, Choice, Float, Int, Space
from boca.plots import importance_data
from boca.plots.axis import Note
from boca.plots.study import study


def told(space, value, *, count, fidelity=None, z=None, strategy=None):
    problem = boca.Problem(space, fidelity, cost=None if fidelity is None else lambda z: z["n"])
    opt = boca.Optimizer(problem, budget=boca.targets(9), strategy=strategy or boca.Boca(), seed=0)
    rng = np.random.default_rng(0)
    for i, u in enumerate(space.snap(rng.random((count, len(space))))):
        x = space.from_unit(u)
        at = None if z is None else z(i)
        opt.add(x, at, value(x) if at is None else value(x, at))
    return opt


def totals(found, view=0):
    return dict(zip(found.names, found.views[view].total.middle, strict=True))


def test_the_indices_of_the_ishigami_function_lie_in_the_intervals_of_its_model():
    angle = Float(-math.pi, math.pi)
    space = Space(a=angle, b=angle, c=angle)
    opt = told(
        space,
        lambda x: math.sin(x["a"]) + 7 * math.sin(x["b"]) ** 2 + 0.1 * x["c"] ** 4 * math.sin(x["a"]),
        count=200,
    )
    found = importance_data.importance(study(opt))
    assert found.names == ("a", "b", "c")
    first, total = (found.views[0].first, found.views[0].total)
    assert first.middle == pytest.approx([0.314, 0.442, 0.0], abs=0.06)
    assert total.middle == pytest.approx([0.558, 0.442, 0.244], abs=0.06)
    assert np.all((total.low <= total.middle) & (total.middle <= total.high))


def test_a_model_that_knows_little_has_wide_intervals():
    space = Space(a=Float(0, 1), b=Float(0, 1))
    known = {"kappa0": 1.0, "eta2": 1e-4, "mean": 0.0, "h_x": [0.3, 0.3]}

    def width(count):
        opt = told(space, lambda x: math.sin(5 * x["a"]), count=count, strategy=boca.Boca(hyperparameters=known))
        total = importance_data.importance(study(opt)).views[0].total
        return float(np.max(total.high - total.low))

    assert width(3) > 0.3
    assert width(80) < 0.1


def test_options_and_integers_have_importance():
    space = Space(kind=Choice(["flat", "round", "steep"]), depth=Int(1, 9), idle=Float(0, 1))
    opt = told(space, lambda x: 2.0 * (x["kind"] == "steep") + 0.1 * x["depth"], count=80)
    shares = totals(importance_data.importance(study(opt)))
    of_kind, of_depth = 4.0 * 2.0 / 9.0, 0.01 * (81 - 1) / 12
    assert shares["kind"] == pytest.approx(of_kind / (of_kind + of_depth), abs=0.05)
    assert shares["idle"] < 0.02


def test_a_conditional_parameter_matters_as_far_as_it_is_active():
    space = Space(kind=Choice(["a", "b"]), rate=Float(0, 1, when={"kind": ["a"]}), idle=Float(0, 1))
    opt = told(space, lambda x: x.get("rate", 0.5), count=120)
    shares = totals(importance_data.importance(study(opt)))
    # kind changes whether rate counts, so both matter: E[var] is that of rate in half of the space
    assert shares["rate"] == pytest.approx(1.0, abs=0.08)
    assert shares["kind"] == pytest.approx(0.5, abs=0.12)
    assert shares["idle"] < 0.05


def test_a_lower_fidelity_is_seen_by_itself():
    space = Space(a=Float(0, 1), b=Float(0, 1))

    def value(x, z):
        return math.sin(4 * x["a"]) if z["n"] == 10 else math.sin(4 * x["b"])

    known = {"kappa0": 1.0, "eta2": 1e-4, "mean": 0.0, "h_x": [0.4, 0.4], "h_z": [0.1]}
    opt = told(
        space,
        value,
        count=160,
        fidelity=Space(n=Int(1, 10)),
        z=lambda i: {"n": 10 if i % 2 else 1},
        strategy=boca.Boca(hyperparameters=known),
    )
    found = importance_data.importance(study(opt))
    assert [view.z for view in found.views] == [{"n": 10}, {"n": 1}]
    assert (totals(found)["a"], totals(found)["b"]) == pytest.approx((1.0, 0.0), abs=0.05)
    assert (totals(found, 1)["a"], totals(found, 1)["b"]) == pytest.approx((0.0, 1.0), abs=0.05)


def test_a_list_of_points_and_a_study_without_results_say_why_there_is_none():
    rows = Candidates([{"a": 0.1 * k, "b": -0.1 * k} for k in range(9)])
    opt = boca.Optimizer(boca.Problem(rows), budget=boca.targets(9), seed=0)
    assert isinstance(importance_data.importance(study(opt)), Note)
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, trial.x["a"])
    assert "list" in importance_data.importance(study(opt)).words


def test_a_model_without_draws_has_indices_of_its_mean():
    strategy = boca.MFSKO([{"n": 1}])
    opt = told(
        Space(a=Float(0, 1), b=Float(0, 1)),
        lambda x, z: x["a"],
        count=30,
        fidelity=Space(n=Int(1, 10)),
        z=lambda i: {"n": 10},
        strategy=strategy,
    )
    found = importance_data.importance(study(opt))
    assert not found.has_interval
    assert found.names[0] == "a"
    assert found.views[0].total.low.tolist() == found.views[0].total.high.tolist()
