"""The numbers behind the plots of the model are those of its decisions and of its recommendation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import boca
from boca import Float, Space, plots
from boca.domain.errors import InvalidInput
from boca.domain.reasons import Reasons
from boca.plots import model_data
from boca.plots.study import study
from plots.hills import FIDELITY, SPACE, go, height, optimizer
from support.spaces import PIPELINE, studied


@pytest.mark.parametrize("name", ["N", "T"])
def test_the_information_gap_is_that_of_the_decisions(mixed, name):
    decided = [t for t in mixed.history if "xi" in t.why]
    assert any(t.why["xi"] > 0 for t in decided)
    for trial in decided:
        found = model_data.information_gap(study(mixed), name, number=trial.number)
        assert found.queried[trial.number] == pytest.approx(trial.why["xi"], abs=1e-7)
    assert model_data.information_gap(study(mixed)).decision == decided[-1].number


@pytest.mark.parametrize("settings", [{"fidelity_axis": "fading"}, {"fidelity_kernel": "matern52"}])
def test_the_information_gap_knows_how_fidelities_were_seen(settings):
    opt = go(optimizer(strategy=boca.Boca(surrogate=boca.Surrogate(**settings))), 12)
    decided = [t for t in opt.history if "xi" in t.why]
    assert any(t.why["xi"] > 0 for t in decided)
    for trial in decided:
        found = model_data.information_gap(study(opt), number=trial.number)
        assert found.queried[trial.number] == pytest.approx(trial.why["xi"], abs=1e-7)


def test_the_information_gap_knows_the_jump_of_a_decision():
    known = {"kappa0": 1.0, "eta2": 1e-4, "mean": 0.0, "h_x": [0.2], "h_z": [1.0], "jump": 0.1, "trend": 0.3}
    strategy = boca.Boca(information_per_cost=False, hyperparameters=known)
    problem = boca.Problem(Space(a=Float(0, 1)), Space(n=Float(0, 1)), cost=lambda z: 0.01 + z["n"] ** 2)
    opt = boca.Optimizer(problem, budget=boca.targets(20), strategy=strategy, seed=0)
    while not any(t.why.get("xi", 0.0) > 0.0 for t in opt.history):
        trial = opt.ask()
        opt.tell(trial, math.sin(6 * trial.x["a"]) + 0.3 * trial.z["n"])
    decided = [t for t in opt.history if t.why.get("xi", 0.0) > 0.0]
    found = model_data.information_gap(study(opt))
    for trial in decided:
        assert found.queried[trial.number] == pytest.approx(trial.why["xi"], abs=1e-7)
    assert found.xi[-1] == pytest.approx(0.0, abs=1e-7)
    assert found.xi[-2] > math.sqrt(1.0 - math.exp(-0.2))  # a jump is there however near the target


@pytest.mark.parametrize("name", ["mixed", "minimized", "plain"])
def test_the_posterior_is_the_one_behind_the_recommendation(name, request):
    opt = request.getfixturevalue(name)
    seen, advised = study(opt), opt.recommend()
    assert seen.recommendation == advised
    mean, std = model_data.posterior(seen.model, opt.problem.space.to_unit([advised.x]))
    assert (mean[0], std[0]) == pytest.approx((advised.mean, advised.std), rel=1e-9)
    for axis in opt.problem.space:  # every slice goes through it
        found = model_data.slices(seen, axis)
        at = found.axis.positions([advised.x[axis]])[0]
        assert np.interp(at, found.position, found.mean) == pytest.approx(advised.mean, abs=0.05)


def test_a_slice_goes_where_it_is_told(mixed):
    seen = study(mixed)
    here = model_data.slices(seen, "C", at={"depth": 1, "kind": "flat"})
    assert here.center == {**seen.recommendation.x, "depth": 1, "kind": "flat"}
    u = mixed.problem.space.to_unit([{"C": 1e3, "depth": 1, "kind": "flat"}])
    assert here.mean[-1] == pytest.approx(model_data.posterior(seen.model, u)[0][0])
    with pytest.raises(InvalidInput, match="depth"):
        plots.slices(mixed, "C", at={"depth": 99})


def test_length_scales_are_those_that_were_learned_not_the_shrunk_ones(mixed):
    found = model_data.hyperparameters(study(mixed))
    refits = [t for t in mixed.history.chosen if "fit" in t.why]
    assert found.refit.sum() == len(refits)
    for trial in refits:
        i = found.numbers.tolist().index(trial.number)
        learned = np.exp(trial.why["fit"]["theta"][1 : 1 + len(SPACE) + len(FIDELITY)])
        assert [found.length_scales[name][i] for name in (*SPACE, *FIDELITY)] == pytest.approx(learned.tolist())
    assert any(t.why["shrink"] > 1.1 for t in refits)
    assert found.bounds == pytest.approx((0.01, 10.0))
    ax = plots.hyperparameters(mixed)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["parameter C", "parameter depth", "parameter kind", "fidelity N", "fidelity T"]


def test_fidelities_that_are_switched_off_have_no_length_scale(mixed):
    seen = study(mixed)
    off = seen.history.chosen[-1]
    why = {**off.why, "guard": 1.0, "hyperparameters": {**off.why["hyperparameters"], "h_z": [1e-9, 1e-9]}}
    trials = [dataclasses.replace(t, reasons=Reasons.of(why)) if t.number == off.number else t for t in seen.history]
    found = model_data.hyperparameters(dataclasses.replace(seen, history=boca.History(trials)))
    assert all(math.isnan(found.length_scales[name][-1]) for name in FIDELITY)
    assert all(np.isfinite(found.length_scales[name][:-1]).all() for name in FIDELITY)
    assert all(np.isfinite(found.length_scales[name]).all() for name in SPACE)


def test_looking_changes_nothing_that_is_suggested():
    looked, blind = optimizer(), optimizer()
    for _ in range(14):
        a, b = looked.ask(), blind.ask()
        assert (a.x, a.z, a.why) == (b.x, b.z, b.why)
        for opt, trial in ((looked, a), (blind, b)):
            opt.tell(trial, height(trial.x, trial.z))
        model_data.slices(study(looked))
        model_data.information_gap(study(looked))
    assert a.phase == "model"


def test_plots_of_a_space_with_conditions_leave_out_what_is_inactive():
    told = studied(boca.Problem(PIPELINE), np.random.default_rng(0), 40, lambda x: float(x["kernel"] == "linear"))
    seen = study(told)
    assert seen.recommendation.x["kernel"] == "linear"
    assert model_data.by_influence(seen)[:2] == [n for n in model_data.by_influence(seen) if n in ("kernel", "C")]
    assert "gamma is inactive" in model_data.slices(seen, "gamma").words
    found = model_data.slices(seen, "gamma", at={"kernel": "rbf", "gamma": 0.1})
    assert np.all(np.isfinite(found.mean))
    inactive = np.array(["gamma" not in t.x for t in found.marks.trials])
    assert np.array_equal(np.isnan(found.marks.along(found.axis)), inactive)
    across = model_data.slices(seen, "kernel")
    assert len(across.mean) == 3
    assert "inactive" in model_data.map2d(seen, "C", "gamma").words
