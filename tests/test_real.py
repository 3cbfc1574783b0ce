"""The loop of the real tasks charges what it says, and its methods ask for what they say; it is offline."""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

import boca
from boca.bench import records
from boca.domain.errors import InvalidInput

sys.path.insert(0, str(Path(__file__).parents[1]))  # `benchmarks` is no part of the package

from benchmarks.real import __main__ as real
from benchmarks.real import accounting, data, live, loop, made, rungs, table, tasks, trainings, yahpo
from benchmarks.real.one_epoch import one_epoch
from benchmarks.real.task import optima

needs_data = pytest.mark.skipif(
    not data.has_shared(), reason="NOT TESTED: $BOCA_DATA/real with yahpo and taskset is not on this machine"
)


def grid(replicates=1):
    """A table of nine configurations, two sizes and four epochs, whose values say where they stand."""
    space = boca.Space(a=boca.Int(1, 3), b=boca.Float(0, 1))
    fidelity = boca.Space(size=boca.Int(1, 2), epoch=boca.Int(1, 4))
    rows = [{"a": a, "b": b} for a in (1, 2, 3) for b in (0.0, 0.5, 1.0)]
    k, i, size, epoch = np.ix_(range(replicates), range(9), (1, 2), (1, 2, 3, 4))
    return table.Table(
        problem=boca.Problem(space, fidelity, cost=lambda z: z["size"] * z["epoch"] / 8),
        configurations=rows,
        values=1000.0 * k + 100.0 * i + 10.0 * size + epoch,
        seconds=np.broadcast_to(2.0 * size * epoch, (1, 9, 2, 4)),
    )


def task(replicates=1, step="epoch"):
    return table.task("grid", "toys", grid(replicates), 0, step=step)


X = {"a": 2, "b": 0.4}


# Tables -------------------------------------------------------------------------------------------------------------


def test_a_query_is_answered_by_the_nearest_row_at_its_fidelity():
    assert task().value(X, {"size": 2, "epoch": 3}) == 100 * 4 + 20 + 3
    assert task().row({"a": 2, "b": 0.3}) == task().row({"a": 2, "b": 0.7}) == 4
    assert task().row({"a": 2, "b": 0.1}) == 3
    assert task().seconds(X, {"size": 2, "epoch": 3}) == 12.0


def test_the_optimum_of_a_table_is_its_best_row_and_its_spread_goes_down_to_the_median_one():
    best = task().best
    assert (best.value, best.median, best.spread) == (824.0, 424.0, 400.0)
    lower = replace(grid(), problem=boca.Problem(grid().problem.space, grid().problem.fidelity, direction="minimize"))
    assert lower.best().value == 24.0


def test_regret_is_counted_with_the_mean_over_replicates_and_a_query_sees_one():
    three = task(replicates=3)
    assert three.value(X) == 1000 + 424
    assert [three.result(X, {"size": 2, "epoch": 4}, k) for k in range(3)] == [424, 1424, 2424]
    assert three.noise_variance == pytest.approx(1e6)
    assert task().noise_variance == 0.0


# Charges ------------------------------------------------------------------------------------------------------------


def charges(accounts, *queries):
    return [accounts.charge(*query).cost for query in queries]


def test_going_on_costs_the_increment_and_what_was_paid_for_is_free():
    accounts = accounting.Accounts(task(), seed=0)
    epochs = [(X, {"size": 2, "epoch": e}) for e in (1, 3, 2, 3, 4)]
    assert charges(accounts, *epochs) == pytest.approx([0.25, 0.5, 0.0, 0.0, 0.25])


def test_seconds_are_charged_as_increments_too():
    accounts = accounting.Accounts(task(), seed=0)
    took = [accounts.charge(X, {"size": 2, "epoch": e}).seconds for e in (1, 3, 3)]
    assert took == pytest.approx([4.0, 8.0, 0.0])


def test_another_size_is_another_training_and_the_same_row_is_the_same():
    accounts = accounting.Accounts(task(), seed=0)
    near = {"a": 2, "b": 0.6}
    assert charges(accounts, (X, {"size": 2, "epoch": 4}), (X, {"size": 1, "epoch": 4})) == [1.0, 0.5]
    assert charges(accounts, (near, {"size": 2, "epoch": 4})) == [0.0]
    assert charges(accounts, ({"a": 1, "b": 0.6}, {"size": 2, "epoch": 4})) == [1.0]


def test_without_steps_every_fidelity_is_paid_in_full_once():
    accounts = accounting.Accounts(task(step=None), seed=0)
    queries = [(X, {"size": 2, "epoch": e}) for e in (1, 2, 1, 2)]
    assert charges(accounts, *queries) == [0.25, 0.5, 0.0, 0.0]


def test_a_repeat_is_a_new_training_at_its_full_price_until_all_are_known():
    accounts = accounting.Accounts(task(replicates=3), seed=0)
    z = {"size": 2, "epoch": 4}
    found = [accounts.charge(X, z) for _ in range(5)]
    assert [c.cost for c in found] == [1.0, 1.0, 1.0, 0.0, 0.0]
    assert {c.replicate for c in found[:3]} == {0, 1, 2}
    assert found[3].replicate == found[0].replicate


def test_a_training_goes_on_with_the_replicate_that_it_began_with():
    accounts = accounting.Accounts(task(replicates=3), seed=0)
    begun = accounts.charge(X, {"size": 2, "epoch": 1})
    on = accounts.charge(X, {"size": 2, "epoch": 3})
    assert on.replicate == begun.replicate
    assert on.cost == pytest.approx(0.5)
    assert accounts.charge(X, {"size": 2, "epoch": 3}).replicate != begun.replicate


def test_which_replicate_comes_first_depends_on_the_seed_and_the_training_alone():
    def first(seed, x):
        return accounting.Accounts(task(replicates=3), seed).charge(x, {"size": 2, "epoch": 1}).replicate

    xs = [{"a": a, "b": b} for a in (1, 2, 3) for b in (0.0, 0.5, 1.0)]
    drawn = {seed: [first(seed, x) for x in xs] for seed in range(3)}
    assert drawn[0] == [first(0, x) for x in reversed(xs)][::-1]
    assert drawn[0] != drawn[1]
    assert {k for ks in drawn.values() for k in ks} == {0, 1, 2}


# The loop -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Listed:
    """Ask for these queries in turn, then for the last one for ever."""

    queries: tuple

    def suggest(self, problem, history, budget, rng):
        x, z = self.queries[min(len(history), len(self.queries) - 1)]
        return boca.Suggestion(dict(x), dict(z), {"reason": "It is on the list.", "phase": "start"})


class Walk:
    """The same as a session."""

    def __init__(self, queries):
        self.queries, self.told = list(queries), []

    def ask(self):
        return self.queries[min(len(self.told), len(self.queries) - 1)]

    def tell(self, score):
        self.told.append(score)


def queries():
    return [(X, {"size": 2, "epoch": e}) for e in (1, 2, 3, 4)] + [
        ({"a": a, "b": b}, {"size": 2, "epoch": 4}) for a in (1, 3) for b in (0.0, 1.0)
    ]


def test_a_run_pays_for_increments_and_ends_with_its_budget():
    history = loop.run_one(task(), Listed(tuple(queries())), seed=0, targets=3).history
    assert [t.cost for t in history] == pytest.approx([0.25, 0.25, 0.25, 0.25, 1.0, 1.0])
    assert [t.value for t in history][:5] == [421, 422, 423, 424, 24]
    assert [t.seconds for t in history][:4] == pytest.approx([4.0] * 4)


def test_a_session_is_charged_and_answered_as_a_strategy_is():
    walk = Walk(queries())
    trials = loop.run_session(task(), walk, seed=0, targets=3)
    history = loop.run_one(task(), Listed(tuple(queries())), seed=0, targets=3).history
    assert [(t.x, t.z, t.value, t.seconds) for t in trials] == [(t.x, t.z, t.value, t.seconds) for t in history]
    assert [t.cost for t in trials] == pytest.approx([t.cost for t in history])
    assert walk.told == [t.value for t in trials]


def test_a_session_of_a_minimization_is_told_scores_that_rise():
    lower = replace(task(), problem=boca.Problem(task().problem.space, task().problem.fidelity, cost=lambda z: 1.0,
                                                 direction="minimize"))  # fmt: skip
    walk = Walk(queries())
    trials = loop.run_session(lower, walk, seed=0, targets=3)
    assert walk.told == [-t.value for t in trials]


@pytest.mark.parametrize("run", ["strategy", "session"])
def test_a_method_that_asks_for_nothing_new_comes_to_an_end(run):
    stuck = queries()[:1]
    if run == "strategy":
        trials = loop.run_one(task(), Listed(tuple(stuck)), seed=0, targets=40).history
    else:
        trials = loop.run_session(task(), Walk(stuck), seed=0, targets=40)
    assert len(trials) == 1 + loop._MOST_FREE_IN_A_ROW
    assert math.fsum(t.cost for t in trials) == pytest.approx(0.25, abs=1e-6)


def test_free_queries_are_limited_even_if_something_is_paid_for_in_between():
    many = [(X, {"size": 1, "epoch": 1}), *([queries()[0]] * 30)] * 3
    trials = loop.run_session(task(), Walk(many), seed=0, targets=2)
    assert sum(t.cost < 1e-6 for t in trials) == 2 * loop._MOST_FREE


def test_the_default_runs_on_a_table_within_its_budget():
    optimizer = loop.run_one(task(), boca.Boca(), seed=0, targets=3)
    assert optimizer.best is not None
    assert optimizer.spent <= 3.0 * (1 + 1e-6)


def test_a_live_task_spends_seconds_by_the_clock():
    space, fidelity = boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 9))
    live_one = replace(
        task(), problem=boca.Problem(space, fidelity), function=lambda x, z: x["a"], optimum=None, best=None, row=None,
        trained=None, seconds=None, step=None, target_seconds=0.02,
    )  # fmt: skip
    optimizer = loop.run_one(live_one, boca.RandomSearch(), seed=0, targets=3)
    assert live_one.limit(3) == boca.seconds(0.06)
    assert len(optimizer.history) >= 1
    assert all(t.seconds is not None and t.seconds >= 0 for t in optimizer.history)


@pytest.mark.parametrize("run", ["strategy", "session"])
def test_a_budget_in_seconds_is_spent_on_the_seconds_of_trainings_without_waiting(run):
    measured = task().in_seconds()
    assert measured.target_seconds == pytest.approx(2.0 * 2 * 4)
    assert not measured.problem.has_declared_cost
    if run == "strategy":
        trials = loop.run_one(measured, Listed(tuple(queries())), seed=0, targets=3).history
    else:
        trials = loop.run_session(measured, Walk(queries()), seed=0, targets=3)
    took = [t.seconds for t in trials]
    assert took[:5] == pytest.approx([4.0, 4.0, 4.0, 4.0, 16.0])
    assert 32.0 <= math.fsum(took) <= 48.0


# Methods ------------------------------------------------------------------------------------------------------------


def test_steps_are_epochs_at_the_target_size_and_rungs_elsewhere():
    assert rungs.steps(task()) == [{"size": 2, "epoch": e} for e in (1, 2, 3, 4)]
    assert rungs.cheap(task(), 1 / 8) == {"size": 2, "epoch": 1}
    currin = boca.problems.get("currin")
    found = rungs.steps(currin)
    assert [currin.problem.cost(z) for z in found] == pytest.approx([1 / 9.9, 1 / 9, 1 / 3, 1.0], rel=0.12)
    assert found[-1] == currin.problem.target


def test_one_epoch_runs_the_best_of_every_eight_to_the_end():
    history = loop.run_one(task(), one_epoch(task()), seed=0, targets=9).history
    cheap, best = history[:8], history[8]
    assert {t.z["epoch"] for t in cheap} == {1}
    assert task().problem.is_target(best.z)
    assert best.x == max(cheap, key=lambda t: t.value).x
    assert best.cost == pytest.approx(0.75)


@pytest.mark.parametrize("kind", ["halving", "hyperband", "median"])
def test_a_pruner_goes_from_step_to_step_and_pays_the_increment(kind):
    pytest.importorskip("optuna")
    from benchmarks.real import pruners

    method = getattr(pruners, kind)(task())
    assert isinstance(method, loop.HasSession)
    trials = loop.run_session(task(), method.begin(task().problem, 0), seed=0, targets=6)
    assert [t.z["epoch"] for t in trials[:4]] == [1, 2, 3, 4], "nothing is pruned before the first is complete"
    for before, after in itertools.pairwise(trials):
        if after.x == before.x and before.z["epoch"] < 4:
            assert after.z["epoch"] == before.z["epoch"] + 1
    assert all(t.cost == pytest.approx(0.25) or t.cost < 1e-6 for t in trials)
    assert len({t.x["b"] for t in trials}) > 2


def test_a_strategy_by_import_path_is_a_method(tmp_path, monkeypatch):
    monkeypatch.setattr(loop.tasks, "at_path", lambda path, seed: task())
    record = loop.run_cell(loop.runner.Cell("grid", "boca.strategies:RandomSearch", 3), targets=2)
    assert record["spread"] == 400.0
    assert record["optimum"] == 824.0
    assert len(records.regrets(record)) == 4
    assert record["trace"]["at_target"] == [True] * len(record["trace"]["cost"])


# Names and halves ---------------------------------------------------------------------------------------------------


def test_every_task_is_in_one_half():
    assert set(tasks.TUNE) | set(tasks.CHECK) == set(tasks.NAMES)
    assert not set(tasks.TUNE) & set(tasks.CHECK)
    for names in tasks.FAMILIES.values():
        halves = [len(set(names) & set(half)) for half in (tasks.TUNE, tasks.CHECK)]
        assert abs(halves[0] - halves[1]) <= 1
    assert set(tasks.EIGHT) <= set(tasks.NAMES)
    assert len(set(tasks.EIGHT)) == 8


def test_the_readme_lists_the_halves():
    text = (Path(real.__file__).with_name("README.md")).read_text()
    for half, names in (("tune", tasks.TUNE), ("check", tasks.CHECK)):
        (line,) = [line for line in text.splitlines() if line.startswith(f"| {half} |")]
        assert set(line.strip("| ").split(" | ")[1].replace("`", "").replace(",", "").split()) == set(names)


def test_an_unknown_task_is_refused_with_the_names():
    with pytest.raises(InvalidInput, match=r"'nonsense' is not a task.*lcbench_34539"):
        tasks.get("nonsense")
    assert not hasattr(tasks, "nonsense")


def test_every_network_has_a_stored_optimum_with_the_way_it_was_found():
    assert set(optima()) == set(tasks.OF_YAHPO)
    for best in optima().values():
        assert best.spread > 0
        assert "20000 random points" in best.found


def test_data_that_are_missing_are_named(monkeypatch, tmp_path):
    monkeypatch.delenv("BOCA_DATA", raising=False)
    with pytest.raises(data.DataMissing, match="BOCA_DATA is not set"):
        data.shared("yahpo")
    monkeypatch.setenv("BOCA_DATA", str(tmp_path))
    with pytest.raises(data.DataMissing, match="does not exist"):
        data.shared("yahpo")
    assert not data.has_shared()
    assert not {"lcbench_34539", "taskset_0"} & set(tasks.available(tasks.NAMES))


@needs_data
@pytest.mark.parametrize("name", ["lcbench_34539", "rbv2_rpart_41138", "rbv2_xgboost_40923", "iaml_glmnet_1489"])
def test_a_network_answers_below_its_optimum_and_a_larger_fidelity_takes_longer(name):
    pytest.importorskip("onnxruntime")
    one = tasks.get(name)
    rng = np.random.default_rng(1)
    space = one.problem.space
    points = [space.from_unit(u) for u in space.snap(rng.random((200, len(space))))]
    values = [one.value(x) for x in points]
    assert max(values) <= one.optimum
    assert np.median(values) == pytest.approx(one.best.median, abs=0.25 * one.best.spread)
    low = one.problem.fidelity.from_unit(np.zeros(len(one.problem.fidelity)))
    assert one.problem.cost(low) < 0.05 * one.problem.target_cost == pytest.approx(0.05)
    assert np.mean([one.seconds(x, low) for x in points[:20]]) < np.mean(
        [one.seconds(x, one.problem.target) for x in points[:20]]
    )


@needs_data
def test_the_conditional_parameters_of_xgboost_are_those_of_a_tree_booster():
    problem = yahpo.problem("rbv2_xgboost")
    assert len(problem.space) == 10
    assert {"rate_drop", "skip_drop", "booster"}.isdisjoint(problem.space)


@needs_data
def test_a_table_of_taskset_returns_its_rows_and_caps_what_diverged():
    one = tasks.get("taskset_0")
    assert one.problem.direction == "minimize"
    assert {"one_less_beta1", "one_less_beta2"} <= set(one.problem.space)
    with np.load(data.shared("taskset") / "taskset.npz") as stored:
        losses = stored["valid"][0, :, 50].astype(float)
    assert one.optimum == pytest.approx(np.nanmin(losses))
    rows = [one.row(x) for x in map(one.problem.space.from_unit, np.random.default_rng(0).random((50, 8)))]
    assert len(set(rows)) > 30
    worst = max(one.value(x) for x in map(one.problem.space.from_unit, np.random.default_rng(0).random((200, 8))))
    assert worst <= 2 * math.log(2)


# Trainings of this project ------------------------------------------------------------------------------------------


def test_a_level_is_what_was_trained_there():
    plan = made.PLANS["mlp_digits"]
    space, configurations = plan.searched()
    assert len(configurations) == len(plan.settings()) == 512
    assert space.size == 512, "the lattice has nothing between two rows"
    assert configurations[0] == {"rate": 1, "momentum": 1, "width": 1, "decay": 1}
    assert configurations[-1] == {"rate": 8, "momentum": 4, "width": 4, "decay": 4}
    assert plan.settings()[-1]["rate"] == pytest.approx(3.0)


@pytest.mark.parametrize("name", made.PLANS)
def test_a_training_is_the_same_again_and_a_good_one_learns(name):
    pytest.importorskip("sklearn")
    plan = made.PLANS[name]
    good = {
        "rate": 0.1, "momentum": 0.5, "width": 16, "decay": 1e-4, "batch": 32, "scale": 1.0, "filters": 4, "leaves": 4,
        "least": 5, "l2": 1.0, "loss": "log_loss", "penalty": "l2", "alpha": 1e-4, "power": 0.2,
    }  # fmt: skip
    x = {key: good[key] for key in plan.settings()[0]}
    train = trainings.TRAININGS[plan.training]
    first, again = (train(plan.data, x, plan.sizes[-1], 6, 5).curve for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first[-1] < first[0] < trainings.data(plan.data).worst + 1e-9 or first[-1] < 0.2


def test_a_training_that_diverges_ends_at_twice_the_loss_of_guessing():
    pytest.importorskip("sklearn")
    x = {"rate": 1e6, "momentum": 0.95, "width": 8, "decay": 0.01}
    curve = trainings.perceptron("digits", x, 100, 8, 0).curve
    assert curve[-1] == pytest.approx(2 * math.log(10))


def test_the_slopes_of_the_networks_are_those_of_their_loss():
    """One step of plain descent with a tiny rate lowers the training loss as much as its squared slope says."""
    scores = np.array([[0.2, -0.4, 1.0], [2.0, 0.1, 0.0]])
    labels = np.array([2, 1])
    error = trainings._error(scores, labels)
    for i in range(2):
        for j in range(3):
            step = np.zeros((2, 3))
            step[i, j] = 1e-6
            slope = (trainings._loss(scores + step, labels) - trainings._loss(scores - step, labels)) / 2e-6
            assert error[i, j] == pytest.approx(slope, abs=1e-7)


def test_the_patches_of_a_picture_are_its_windows_pool_by_pool():
    picture = np.arange(64.0).reshape(1, 64)
    patches = trainings._patches(picture)
    assert patches.shape == (1, 36, 9)
    square = picture.reshape(8, 8)
    assert patches[0, 0].tolist() == square[:3, :3].ravel().tolist()
    assert patches[0, 3].tolist() == square[1:4, 1:4].ravel().tolist()
    assert patches[0, 4].tolist() == square[:3, 2:5].ravel().tolist()


def test_a_table_is_made_stored_and_read_back(monkeypatch, tmp_path, capsys):
    pytest.importorskip("sklearn")
    levels = {"rate": (0.01, 0.3), "width": (4, 8)}
    plan = made.Plan(training="perceptron", data="digits", sizes=(40, 80), steps=3, replicates=2, levels=levels)
    monkeypatch.setattr(made, "PLANS", {"toy": plan})
    monkeypatch.setattr(data, "TABLES", tmp_path)
    assert real.main(["make", "toy"]) == 0
    one = made.task("toy", 0)
    x = {"rate": 2, "width": 1}
    curve = trainings.perceptron("digits", {"rate": 0.3, "width": 4}, 40, 3, 1000 * 1 + 2).curve
    seen = [one.result(x, {"size": 1, "step": step}, 1) for step in (1, 2, 3)]
    assert seen == pytest.approx(curve.tolist(), rel=1e-3), "half precision"
    assert one.problem.cost({"size": 1, "step": 3}) == 0.5
    made._table.cache_clear()
    monkeypatch.setattr(made, "PLANS", {"toy": replace(plan, sizes=(40, 90))})
    with pytest.raises(ValueError, match="made by another plan"):
        made.task("toy", 0)
    made._table.cache_clear()


@pytest.mark.parametrize("name", made.PLANS)
def test_a_stored_table_is_small_and_is_that_of_its_plan(name):
    path = data.table(name)
    assert path.exists(), f"python -m benchmarks.real make {name}"
    assert path.stat().st_size < 800 * 1024
    one = tasks.get(name)
    assert one.replicates == made.PLANS[name].replicates
    assert one.best.spread > 0.05
    assert one.problem.cost(one.problem.target) == 1.0
    x = one.problem.space.from_unit(np.zeros(len(one.problem.space)))
    assert one.seconds(x, one.problem.target) > one.seconds(x, {"size": 1, "step": 1}) >= 0
    assert np.isfinite(one.value(x))


def test_noise_along_a_curve_is_real_in_at_least_two_tables():
    assert sum(plan.replicates > 1 for plan in made.PLANS.values()) >= 2
    assert all(len(plan.settings()) >= 500 for plan in made.PLANS.values())


@pytest.mark.parametrize("name", live.SEARCHES)
def test_a_live_search_scores_a_point_at_its_cheapest_fidelity(name):
    pytest.importorskip("sklearn")
    problem = live.task(name, 0).problem
    x = problem.space.from_unit(problem.space.snap(np.full((1, len(problem.space)), 0.4))[0])
    low = problem.fidelity.from_unit(np.zeros(len(problem.fidelity)))
    assert -10.0 < live.score(name, {**x, **low}) <= 1.0
    assert not problem.has_declared_cost
