"""Pictures show the study's own numbers, in the user's units, and can be drawn of anything that a study can be."""

from __future__ import annotations

import dataclasses
import math
import pickle
import sys

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

import boca
from boca import Choice, Float, Int, Space, plots
from boca.domain.errors import InvalidInput
from boca.plots import data
from boca.plots.study import study

SPACE = Space(C=Float(1e-2, 1e3, log=True), depth=Int(1, 12), kind=Choice(["round", "flat", None]))
FIDELITY = Space(N=Int(100, 10000, log=True), T=Float(0.1, 1.0))


def cost(z):
    return z["N"] * z["T"]


def height(x, z):
    hill = (math.log10(x["C"]) - 1) ** 2 / 10 + (x["depth"] - 7) ** 2 / 100 + (x["kind"] == "flat")
    missing = 0.0 if not z else 0.3 * (1 - z["N"] / 10000) + 0.1 * (1 - z["T"])
    return 2.0 - hill - missing


def optimizer(space=SPACE, fidelity=FIDELITY, *, direction="maximize", budget=None, storage=None, **more):
    declared = cost if fidelity is FIDELITY else None
    problem = boca.Problem(space, fidelity, cost=declared, direction=direction)
    budget = boca.targets(4) if budget is None else budget
    return boca.Optimizer(problem, budget=budget, seed=2, storage=storage, name="hills", **more)


def turn(opt):
    return 1.0 if opt.problem.direction == "maximize" else -1.0


def go(opt, n, *, failing=()):
    """Run n trials at most; those of these numbers fail."""
    for _ in range(n):
        trial = opt.ask()
        if trial is None:
            break
        if trial.number in failing:
            opt.fail(trial, "it broke", seconds=0.5)
        else:
            opt.tell(trial, turn(opt) * height(trial.x, trial.z), seconds=0.5)
    return opt


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Two fidelities, a log scale, whole numbers and options; a failure, a result brought along, a trial out."""
    opt = optimizer(storage=f"sqlite:///{tmp_path_factory.mktemp('plots')}/study.db")
    go(opt, 24, failing=(3,))
    opt.add({"C": 1.0, "depth": 3, "kind": None}, None, 1.0)
    assert opt.ask() is not None
    assert any(t.phase == "model" and not opt.problem.is_target(t.z) for t in opt.history)
    assert opt.best is not None
    return opt


@pytest.fixture(scope="module")
def minimised():
    problem = boca.Problem(
        SPACE, Space(source=Choice(["sketch", "tunnel"])), target={"source": "tunnel"}, direction="minimize"
    )
    strategy = boca.MFGPUCB(maximizer="sobol")
    opt = boca.Optimizer(problem, budget=boca.seconds(30), seed=1, strategy=strategy)
    for seconds in (0.5, 1.0, 2.0, 0.75, 1.5, 0.6, 1.1):
        trial = opt.ask()
        opt.tell(trial, -height(trial.x, {}) + 0.1 * (trial.z["source"] == "sketch"), seconds=seconds)
    assert opt.history[-1].phase == "model"
    return opt


@pytest.fixture(scope="module")
def plain():
    return go(optimizer(fidelity=None, budget=boca.targets(7)), 7)


def huge():
    names = ["x" * 400, "dollar $\\frac{ & <b>", "_hidden"]
    space = Space({names[0]: Float(0, 1), names[1]: Choice(["o" * 300, "$x", "c"]), names[2]: Int(1, 2)})
    fidelity = Space({f"option {i} $": Float(0, 1) for i in range(3)})
    opt = boca.Optimizer(boca.Problem(space, fidelity), budget=boca.targets(40), seed=0)
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial.x[names[0]], seconds=1.0)
    return opt


def one_out():
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
    "one out": one_out,
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
        plots.slices(source, ax=next(it)),
        plots.map2d(source, ax=next(it)),
        plots.information_gap(source, ax=next(it)),
        plots.hyperparameters(source, ax=next(it)),
        plots.hyperparameters(source, "scales", ax=next(it)),
        plots.parallel_coordinates(source, ax=next(it)),
        plots.regret(source, 2.0, ax=next(it)),
    ]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", ["mixed", "minimised", "plain", *OTHERS])
def test_every_picture_of_every_study_can_be_drawn(name, request):
    source = OTHERS[name]() if name in OTHERS else request.getfixturevalue(name)
    figure, axes = plt.subplots(3, 3)
    returned = every(source, axes)
    assert returned == list(axes.flat)
    figure.canvas.draw()
    for ax in returned:  # something is there: data, or a sentence
        assert ax.lines or ax.collections or ax.texts


def test_a_study_without_anything_says_so():
    for ax in every(optimizer(), plt.subplots(3, 3)[1]):
        (note,) = ax.texts
        assert note.get_text().endswith(".")
        assert not ax.collections
        assert not ax.lines


# Progress ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mixed", "minimised", "plain"])
def test_progress_ends_at_the_best_and_at_all_that_was_spent(name, request):
    opt = request.getfixturevalue(name)
    ax = plots.progress(opt)
    line, dots = ax.lines
    assert line.get_ydata()[-1] == opt.best.value
    assert line.get_xdata()[-1] == pytest.approx(opt.spent, rel=1e-12)
    first = next(t for t in opt.history.complete if opt.problem.is_target(t.z))
    assert line.get_ydata()[0] == first.value
    assert dots.get_xdata()[0] == line.get_xdata()[0]
    assert len(dots.get_ydata()) == sum(opt.problem.is_target(t.z) for t in opt.history.complete)
    steps = np.diff(line.get_ydata()) * turn(opt)
    assert np.all(steps >= 0)


def test_progress_starts_at_what_the_first_target_trial_had_cost(mixed):
    spent = 0.0
    for trial in mixed.history.finished:
        spent += 0.0 if trial.added else trial.cost
        if trial.state == "complete" and mixed.problem.is_target(trial.z):
            break
    assert plots.progress(mixed).lines[0].get_xdata()[0] == pytest.approx(spent, rel=1e-12)


def test_money_is_named_as_it_is_counted(mixed, minimised):
    assert plots.progress(mixed).get_xlabel() == "spent (cost)"
    assert plots.progress(minimised).get_xlabel() == "spent (seconds)"
    assert "less is better" in plots.progress(minimised).get_ylabel()


def test_shares_of_a_target_are_called_so_until_one_is_measured():
    opt = optimizer(Space(a=Float(0, 1)), Space(n=Int(1, 10)), budget=boca.targets(20))
    trial = opt.ask()
    assert data.fidelities(study(opt)).unit == "targets"
    opt.tell(trial, 1.0, seconds=3.0)
    assert data.fidelities(study(opt)).unit == "seconds"


def test_regret_is_the_distance_to_the_optimum(mixed, minimised):
    ax = plots.regret(mixed, 2.0)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(2.0 - mixed.best.value)
    assert ax.get_yscale() == "log"
    ax = plots.regret(minimised, -2.0)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(minimised.best.value + 2.0)
    beaten = plots.regret(mixed, mixed.best.value - 0.001)  # by noise, an optimum can be beaten
    assert beaten.get_yscale() == "linear"


# Fidelities -------------------------------------------------------------------------------------------------------


def test_fidelities_are_those_of_the_trials_coloured_by_cost(minimised):
    ax = plots.fidelities(minimised)
    points = np.vstack([c.get_offsets() for c in ax.collections])
    costs = np.concatenate([c.get_array() for c in ax.collections if c.get_array() is not None])
    assert {(int(n), int(z)) for n, z in points} == {
        (t.number, ["sketch", "tunnel"].index(t.z["source"])) for t in minimised.history
    }
    assert sorted(costs) == pytest.approx(sorted(t.cost for t in minimised.history))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["sketch", "tunnel"]


def test_one_fidelity_has_its_own_scale_and_several_have_lanes(mixed):
    one = optimizer(Space(a=Float(0, 1)), Space(N=Int(1, 100, log=True)))
    for _ in range(2):
        one.tell(one.ask(), 1.0, seconds=1.0)
    ax = plots.fidelities(one)
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "N"
    lanes = plots.fidelities(mixed)
    assert {text.get_text() for text in lanes.texts} == {"N", "T"}
    labels = {label.get_text() for label in lanes.get_yticklabels()}
    assert labels == {"100", "10000", "0.1", "1"}


@pytest.mark.parametrize("name", ["N", "T"])
def test_the_information_gap_is_that_of_the_decisions(mixed, name):
    decided = [t for t in mixed.history if "xi" in t.why]
    assert any(t.why["xi"] > 0 for t in decided)
    for trial in decided:
        found = data.information_gap(study(mixed), name, number=trial.number)
        assert found.bought[trial.number] == pytest.approx(trial.why["xi"], abs=1e-7)
    assert data.information_gap(study(mixed)).decision == decided[-1].number


def test_the_information_gap_knows_the_jump_of_a_decision():
    known = {"kappa0": 1.0, "eta2": 1e-4, "mean": 0.0, "h_x": [0.2], "h_z": [1.0], "jump": 0.1, "trend": 0.3}
    strategy = boca.Boca(information_per_cost=False, hyperparameters=known)
    problem = boca.Problem(Space(a=Float(0, 1)), Space(n=Float(0, 1)), cost=lambda z: 0.01 + z["n"] ** 2)
    opt = boca.Optimizer(problem, budget=boca.targets(20), strategy=strategy, seed=0)
    while not any(t.why.get("xi", 0.0) > 0.0 for t in opt.history):
        trial = opt.ask()
        opt.tell(trial, math.sin(6 * trial.x["a"]) + 0.3 * trial.z["n"])
    decided = [t for t in opt.history if t.why.get("xi", 0.0) > 0.0]
    found = data.information_gap(study(opt))
    for trial in decided:
        assert found.bought[trial.number] == pytest.approx(trial.why["xi"], abs=1e-7)
    assert found.xi[-1] == pytest.approx(0.0, abs=1e-7)
    assert found.xi[-2] > math.sqrt(1.0 - math.exp(-0.2))  # a jump is there however near the target


def test_the_gap_closes_at_the_target_and_is_drawn_over_the_whole_range(mixed):
    ax = plots.information_gap(mixed, "N")
    curve = ax.lines[0]
    assert curve.get_ydata()[-1] == pytest.approx(0.0, abs=1e-7)
    assert np.all(np.diff(curve.get_ydata()) <= 1e-12)
    assert (curve.get_xdata()[0], curve.get_xdata()[-1]) == (100, 10000)
    assert ax.get_xscale() == "log"
    assert len(ax.collections[0].get_offsets()) <= len(mixed.history)


# The model --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mixed", "minimised", "plain"])
def test_the_posterior_is_the_one_behind_the_recommendation(name, request):
    opt = request.getfixturevalue(name)
    seen, advised = study(opt), opt.recommend()
    assert seen.recommendation == advised
    mean, std = data.posterior(seen.model, opt.problem.space.to_unit([advised.x]))
    assert (mean[0], std[0]) == pytest.approx((advised.mean, advised.std), rel=1e-9)
    for axis in opt.problem.space:  # every slice goes through it
        found = data.slices(seen, axis)
        at = found.axis.positions([advised.x[axis]])[0]
        assert np.interp(at, found.position, found.mean) == pytest.approx(advised.mean, abs=0.05)


def test_a_slice_shows_mean_band_and_all_results(mixed):
    seen = study(mixed)
    found = data.slices(seen, "C")
    ax = plots.slices(mixed, "C")
    (mean,) = ax.lines
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "C"
    assert mean.get_xdata()[0] == pytest.approx(1e-2)
    assert mean.get_xdata()[-1] == pytest.approx(1e3)
    np.testing.assert_array_equal(mean.get_ydata(), found.mean)
    shown = np.vstack([c.get_offsets() for c in ax.collections[1:3]])
    assert {(t.x["C"], t.value) for t in mixed.history.complete} == {tuple(point) for point in shown.tolist()}
    crosses = ax.collections[3].get_offsets()
    assert [t.x["C"] for t in mixed.history if t.state == "failed"] == crosses[:, 0].tolist()


def test_slices_know_whole_numbers_and_options(mixed):
    whole = data.slices(study(mixed), "depth")
    assert whole.position.tolist() == list(range(1, 13))
    ax = plots.slices(mixed, "depth")
    ax.figure.canvas.draw()
    assert all(float(tick).is_integer() for tick in ax.get_xticks())
    options = plots.slices(mixed, "kind")
    assert [label.get_text() for label in options.get_xticklabels()] == ["round", "flat", "None"]


def test_a_slice_goes_where_it_is_told(mixed):
    seen = study(mixed)
    here = data.slices(seen, "C", at={"depth": 1, "kind": "flat"})
    assert here.centre == {**seen.recommendation.x, "depth": 1, "kind": "flat"}
    u = mixed.problem.space.to_unit([{"C": 1e3, "depth": 1, "kind": "flat"}])
    assert here.mean[-1] == pytest.approx(data.posterior(seen.model, u)[0][0])
    with pytest.raises(InvalidInput, match="depth"):
        plots.slices(mixed, "C", at={"depth": 99})


def test_without_a_name_the_parameter_of_the_shortest_bandwidth_is_shown(mixed):
    seen = study(mixed)
    h = dict(zip(SPACE, seen.model.h, strict=False))
    assert plots.slices(mixed).get_xlabel() == min(h, key=h.get)
    ordered = sorted(h, key=h.get)
    ax = plots.map2d(mixed)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (ordered[0], ordered[1])


def test_a_map_is_the_posterior_on_a_grid(mixed):
    ax = plots.map2d(mixed, "C", "kind")
    mesh = ax.collections[0].get_array().reshape(3, data.GRID)
    seen = study(mixed)
    point = {**seen.recommendation.x, "C": 1e-2, "kind": "flat"}
    mean, _ = data.posterior(seen.model, SPACE.to_unit([point]))
    assert mesh[1, 0] == pytest.approx(mean[0])
    assert ax.get_xscale() == "log"
    assert [label.get_text() for label in ax.get_yticklabels()] == ["round", "flat", "None"]


def test_bandwidths_are_those_that_were_learned_not_the_shrunk_ones(mixed):
    found = data.hyperparameters(study(mixed))
    refits = [t for t in mixed.history.chosen if "fit" in t.why]
    assert found.refit.sum() == len(refits)
    for trial in refits:
        i = found.numbers.tolist().index(trial.number)
        learned = np.exp(trial.why["fit"]["theta"][1:-1])
        assert [found.bandwidths[name][i] for name in (*SPACE, *FIDELITY)] == pytest.approx(learned.tolist())
    assert any(t.why["shrink"] > 1.1 for t in refits)
    assert found.bounds == pytest.approx((0.01, 10.0))
    ax = plots.hyperparameters(mixed)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names == ["parameter C", "parameter depth", "parameter kind", "fidelity N", "fidelity T"]


def test_fidelities_that_are_switched_off_have_no_bandwidth(mixed):
    seen = study(mixed)
    off = seen.history.chosen[-1]
    why = {**off.why, "guard": 1.0, "hyperparameters": {**off.why["hyperparameters"], "h_z": [1e-9, 1e-9]}}
    trials = [dataclasses.replace(t, why=why) if t.number == off.number else t for t in seen.history]
    found = data.hyperparameters(dataclasses.replace(seen, history=boca.History(trials)))
    assert all(math.isnan(found.bandwidths[name][-1]) for name in FIDELITY)
    assert all(np.isfinite(found.bandwidths[name][:-1]).all() for name in FIDELITY)
    assert all(np.isfinite(found.bandwidths[name]).all() for name in SPACE)


def test_parallel_coordinates_have_a_line_a_complete_trial(mixed):
    ax = plots.parallel_coordinates(mixed)
    below, at = (collection.get_paths() for collection in ax.collections)
    assert len(below) + len(at) == len(mixed.history.complete)
    assert len(at) == sum(mixed.problem.is_target(t.z) for t in mixed.history.complete)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["C", "depth", "kind", "N", "T", "value"]
    best = max(at, key=lambda path: path.vertices[-1, 1])
    unit = mixed.problem.space.to_unit([mixed.best.x])[0]
    assert best.vertices[:3, 1] == pytest.approx(unit)


# From where -------------------------------------------------------------------------------------------------------


def test_a_stored_study_gives_the_same_pictures_without_its_code(mixed):
    url = mixed.storage._database.url.render_as_string()
    kept, live = plots.load(url, "hills"), study(mixed)
    assert kept.ledger.spent == live.ledger.spent == mixed.spent
    assert kept.recommendation == live.recommendation
    assert kept.ledger.target == live.ledger.target == cost({"N": 10000, "T": 1.0})
    assert kept.ledger.budget == live.ledger.budget == mixed.budget
    assert [kept.ledger.charge(t) for t in kept.history] == [live.ledger.charge(t) for t in live.history]
    for make in (data.progress, data.slices, data.map2d, data.information_gap, data.hyperparameters):
        a, b = make(kept), make(live)
        for part in ("spent", "best", "mean", "std", "xi", "bought", "signal"):
            if hasattr(a, part):
                np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
    assert data.marks(kept).cost == pytest.approx(data.marks(live).cost)


def test_a_covariance_of_fidelities_is_not_stored_so_there_is_no_model(tmp_path):
    def alike(a, b):
        return np.exp(-np.abs(a["n"] - b["n"]))

    strategy = boca.Boca(surrogate=boca.Surrogate(fidelity_kernel=alike))
    opt = optimizer(
        Space(a=Float(0, 1)),
        Space(n=Float(0.1, 1)),
        strategy=strategy,
        budget=boca.targets(20),
        storage=f"sqlite:///{tmp_path}/k.db",
    )
    for _ in range(8):
        trial = opt.ask()
        opt.tell(trial, trial.x["a"], seconds=trial.z["n"])
    assert isinstance(data.slices(study(opt)), data.Slice)
    assert isinstance(data.information_gap(study(opt)), data.Gap)
    kept = plots.load(f"{tmp_path}/k.db", "hills")
    assert "code" in data.slices(kept).words
    assert "code" in data.information_gap(kept).words
    assert kept.recommendation is None
    assert isinstance(data.progress(kept), data.BestSoFar) == (opt.best is not None)


def test_pictures_of_a_model_say_where_another_version_made_the_study(mixed):
    assert plots.slices(mixed).get_title() == ""
    seen = dataclasses.replace(study(mixed), caveat="The model is not quite that of the $tudy.")
    for draw in (plots.slices, plots.map2d, plots.information_gap):
        assert draw(seen).get_title() == r"The model is not quite that of the \$tudy."
    assert plots.progress(seen).get_title() == ""


def test_a_result_can_be_drawn_and_a_pickled_one_says_what_is_missing():
    result = boca.maximize(lambda x: x["a"], Space(a=Float(0, 1)), budget=boca.targets(3), seed=0)
    assert plots.progress(result).lines[0].get_ydata()[-1] == result.value
    travelled = pickle.loads(pickle.dumps(result))
    assert (travelled.x, travelled.value, list(travelled.history)) == (result.x, result.value, list(result.history))
    assert dataclasses.replace(result, warnings=()).study is None  # no field, so that asdict and == stay cheap
    assert dataclasses.asdict(result)["value"] == result.value
    with pytest.raises(InvalidInput, match="pickled"):
        plots.progress(travelled)


def test_looking_changes_nothing_that_is_suggested():
    looked, blind = optimizer(), optimizer()
    for _ in range(14):
        a, b = looked.ask(), blind.ask()
        assert (a.x, a.z, a.why) == (b.x, b.z, b.why)
        for opt, trial in ((looked, a), (blind, b)):
            opt.tell(trial, height(trial.x, trial.z))
        data.slices(study(looked))
        data.information_gap(study(looked))
    assert a.phase == "model"


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


def test_without_matplotlib_the_error_names_the_extra(mixed, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(InvalidInput, match=r"boca\[plots\]"):
        plots.progress(mixed)
