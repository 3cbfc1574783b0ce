"""What is drawn of trials is what happened, in the user's units."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import boca
from boca import Float, Int, Space, plots
from boca.domain.errors import InvalidInput
from boca.plots.study import study
from plots.hills import optimizer, turn


def per_target(opt):
    """Return what one unit of the axis is in the unit of the budget."""
    in_targets = opt.limit.unit == "targets"
    return study(opt).ledger.target if in_targets else 1.0


@pytest.mark.parametrize("name", ["mixed", "minimized", "plain"])
def test_progress_ends_at_the_best_and_at_all_that_was_spent(name, request):
    opt = request.getfixturevalue(name)
    ax = plots.progress(opt)
    line, dots = ax.lines
    assert line.get_ydata()[-1] == opt.best.value
    assert line.get_xdata()[-1] == pytest.approx(opt.spent / per_target(opt), rel=1e-12)
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
    assert plots.progress(mixed).lines[0].get_xdata()[0] == pytest.approx(spent / per_target(mixed), rel=1e-12)


def test_the_budget_is_named_as_it_is_counted(mixed, minimized):
    assert plots.progress(mixed).get_xlabel() == "budget spent (target evaluations)"
    assert plots.progress(minimized).get_xlabel() == "budget spent (seconds)"
    assert "lower is better" in plots.progress(minimized).get_ylabel()


def test_regret_is_the_distance_to_the_optimum(mixed, minimized):
    ax = plots.regret(mixed, 2.0)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(2.0 - mixed.best.value)
    assert ax.get_yscale() == "log"
    ax = plots.regret(minimized, -2.0)
    assert ax.lines[0].get_ydata()[-1] == pytest.approx(minimized.best.value + 2.0)
    beaten = plots.regret(mixed, mixed.best.value - 0.001)  # by noise, an optimum can be beaten
    assert beaten.get_yscale() == "linear"


def test_fidelities_are_those_of_the_trials_colored_by_cost(minimized):
    ax = plots.fidelities(minimized)
    points = np.vstack([c.get_offsets() for c in ax.collections])
    costs = np.concatenate([c.get_array() for c in ax.collections if c.get_array() is not None])
    assert {(int(n), int(z)) for n, z in points} == {
        (t.number, ["sketch", "tunnel"].index(t.z["source"])) for t in minimized.history
    }
    assert sorted(costs) == pytest.approx(sorted(t.cost for t in minimized.history))
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


def test_parallel_coordinates_have_a_line_per_complete_trial(mixed):
    ax = plots.parallel_coordinates(mixed)
    others, *best = (collection.get_paths() for collection in ax.collections)
    count = math.ceil(0.1 * len(mixed.history.complete))
    assert sum(map(len, best)) == count
    assert len(others) == len(mixed.history.complete) - count
    assert [label.get_text() for label in ax.get_xticklabels()] == ["C", "depth", "kind", "N", "T", "value"]
    top = max((path for paths in best for path in paths), key=lambda path: path.vertices[-1, 1])
    highest = max(mixed.history.complete, key=lambda t: t.value)
    assert top.vertices[:3, 1] == pytest.approx(mixed.problem.space.to_unit([highest.x])[0])


def told(values, direction="minimize"):
    opt = optimizer(Space(a=Float(0, 1)), None, direction=direction, budget=boca.targets(50))
    for value in values:
        opt.tell(opt.ask(), value, seconds=1.0)
    return opt


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_outlier_does_not_flatten_progress(direction):
    values = [0.5, 0.4, 1e6, 0.45, 0.3, 0.2, 0.6]
    opt = told(values if direction == "minimize" else [-value for value in values], direction)
    ax = plots.progress(opt)
    low, high = ax.get_ylim()
    assert high - low < 2.0
    assert low < opt.best.value < high
    assert any("1 worse" in text.get_text() for text in ax.texts)
    everything = plots.progress(opt, scale="all")
    assert np.ptp(everything.get_ylim()) > 1e6
    assert not everything.texts


def test_a_log_axis_is_for_positive_values():
    assert plots.progress(told([3.0, 2.0]), scale="log").get_yscale() == "log"
    with pytest.raises(InvalidInput, match="-2"):
        plots.progress(told([3.0, -2.0]), scale="log")
    with pytest.raises(InvalidInput, match="scale"):
        plots.progress(told([3.0]), scale="wide")


def test_several_runs_are_a_median_and_a_band():
    runs = [told(values) for values in ([5.0, 3.0, 1.0], [4.0, 4.0, 2.0], [6.0, 2.0, 2.0])]
    ax = plots.progress(runs)
    (median,) = ax.lines
    assert median.get_xdata().tolist() == pytest.approx([1.0, 2.0, 3.0])
    assert median.get_ydata().tolist() == [5.0, 3.0, 2.0]
    assert "3 runs" in ax.get_legend().get_texts()[1].get_text()
    with pytest.raises(InvalidInput, match="empty"):
        plots.progress([])


def test_labels_beside_many_upright_axes_do_not_run_into_the_next_one():
    from matplotlib.figure import Figure

    space = boca.Space(**{f"p{k}": boca.Choice(["an option", "another", "a third one"]) for k in range(20)})
    opt = boca.Optimizer(boca.Problem(space), budget=None, strategy=boca.RandomSearch(), seed=0)
    for k in range(4):
        opt.tell(opt.ask(), float(k))
    ax = plots.parallel_coordinates(opt, ax=Figure(figsize=(9, 4)).subplots())
    ax.figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in ax.texts), key=lambda box: (round(box.y0), box.x0))
    beside = [(one, other) for one, other in itertools.pairwise(boxes) if round(one.y0) == round(other.y0)]
    assert len(beside) > 30
    assert all(one.x1 <= other.x0 + 2.0 for one, other in beside)
