"""The problems of the peer comparison are what they say, and its adapters keep to the rules; no peer is needed here."""

from __future__ import annotations

import itertools
import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import boca
from boca.bench import methods, records, runner
from boca.domain.errors import BocaError, InvalidInput

sys.path.insert(0, str(Path(__file__).parents[1]))  # `benchmarks` is no part of the package

from benchmarks.peers import __main__ as peers
from benchmarks.peers import botorch, compared, loop, problems, smac, versions

ALL = [p.__name__ for p in problems.ALL]


def get(name, seed=0):
    return methods.problem(f"benchmarks.peers.problems:{name}")(seed)


# Problems -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_the_optimum_is_attained_where_it_is_said_to_be(name):
    bench = get(name)
    assert bench.name == name
    assert bench.value(bench.maximizer) == pytest.approx(bench.optimum, abs=1e-12)


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("ten", "mixed")])
def test_a_dense_search_finds_nothing_better_and_comes_close(name):
    bench = get(name)
    steps = 101 if len(bench.problem.space) == 2 else 31
    grid = itertools.product(np.linspace(0, 1, steps), repeat=len(bench.problem.space))
    best = max(
        bench.function(dict(zip(bench.problem.space, map(float, u), strict=True)), bench.problem.target) for u in grid
    )
    assert bench.optimum - 0.1 < best <= bench.optimum + 1e-12


def test_every_mixed_point_on_a_fine_scale_of_rates_is_no_better():
    bench = get("mixed")
    points = itertools.product(range(1, 21), "abcd", 10.0 ** np.linspace(-4, 0, 81))
    values = {(n, kind, rate): bench.value({"n": n, "kind": kind, "rate": float(rate)}) for n, kind, rate in points}
    best = max(values, key=values.__getitem__)
    assert values[best] == pytest.approx(bench.optimum, abs=1e-12)
    assert best[:2] == (13, "c")
    assert best[2] == pytest.approx(10**-2.5)


def test_the_ten_variables_have_a_single_top():
    """Minus f is a quadratic form: its matrix, read off at pairs of unit steps, is positive definite."""
    bench = get("ten")
    centre = np.array(list(bench.maximizer.values()))
    assert np.all((centre > 0.1) & (centre < 0.9))

    def loss(step):
        return bench.optimum - bench.value({f"x{j + 1}": v for j, v in enumerate(centre + 0.05 * step)})

    E = np.eye(10)
    single = np.array([loss(e) for e in E])
    M = np.array(
        [
            [(loss(E[i] + E[j]) - single[i] - single[j]) / 2 if i != j else single[i] for j in range(10)]
            for i in range(10)
        ]
    )
    assert np.linalg.eigvalsh(M).min() > 1e-3
    step = np.random.default_rng(0).uniform(-1, 1, 10)
    assert loss(step) == pytest.approx(step @ M @ step, rel=1e-6)  # there is nothing but the form


def correlation(name, z):
    bench = get(name)
    X = np.random.default_rng(1).random((400, 2))
    at = [[bench.value({"x1": a, "x2": b}, {"z1": v}) for a, b in X.tolist()] for v in (z, 1.0)]
    return float(np.corrcoef(at)[0, 1])


def test_the_fidelities_mislead_as_they_say():
    assert correlation("anti_correlated", 0.0) == pytest.approx(-1.0)
    assert abs(correlation("unrelated", 0.9)) < 0.15
    assert correlation("unrelated", 0.99) > 0.9
    assert correlation("common_bias", 0.0) == pytest.approx(1.0)
    assert correlation("late", 0.8) < correlation("late", 0.99) - 0.05


def test_cheap_queries_are_right_in_one_region_only():
    bench = get("one_region")
    right, wrong = {"x1": 0.9, "x2": 0.3}, bench.maximizer
    assert bench.value(right, {"z1": 0.0}) == pytest.approx(bench.value(right), abs=1e-4)
    assert bench.value(wrong, {"z1": 0.0}) < bench.value(wrong) - 1.0


def test_the_bias_is_common_to_all_points_and_falls_to_nothing():
    bench = get("common_bias")
    for x in ({"x1": 0.0, "x2": 0.0}, {"x1": 0.5, "x2": 0.9}):
        assert [bench.value(x, {"z1": z}) - bench.value(x) for z in (0.0, 0.5, 1.0)] == pytest.approx([-3.0, -1.5, 0.0])


def test_the_costs_are_what_they_say():
    flat, falling, useless = (get(name).problem for name in ("flat_cost", "falling_cost", "useless_dimension"))
    assert {flat.cost({"z1": z}) for z in (0.0, 0.3, 1.0)} == {1.0}
    assert falling.cost({"z1": 0.0}) == 2 * falling.target_cost
    assert useless.cost({"z1": 1.0, "z2": 0.0}) < 0.2 * useless.target_cost
    x = {"x1": 0.2, "x2": 0.4}
    bench = get("useless_dimension")
    assert bench.value(x, {"z1": 0.5, "z2": 0.0}) == bench.value(x, {"z1": 0.5, "z2": 1.0})


def test_the_noise_grows_below_the_target():
    bench = get("noisier_below")
    x = {"x1": 0.2, "x2": 0.4}

    def deviation(z):
        rng = np.random.default_rng(0)
        return np.std([bench.observe(x, z, rng) for _ in range(3000)])

    assert deviation({"z1": 0.0}) == pytest.approx(1.0, rel=0.05)
    assert deviation({"z1": 1.0}) == pytest.approx(math.sqrt(bench.noise_variance), rel=0.05)
    assert deviation(None) == deviation({"z1": 1.0})


def test_one_problem_has_no_noise():
    bench = get("noise_free")
    assert bench.observe(bench.maximizer, None, np.random.default_rng(0)) == bench.optimum


@pytest.mark.parametrize("name", ALL)
def test_every_problem_runs_through_the_bench(name):
    record = runner.run_cell(runner.Cell(f"benchmarks.peers.problems:{name}", "random", 0))
    assert record["trace"]["spent"][-1] <= record["capital"] * (1 + 1e-9)
    assert records.regrets(record)[-1] > 0


def test_pretended_seconds_are_charged_and_not_waited_for():
    cell = runner.Cell("benchmarks.peers.problems:dear_side", "random", 0)
    record = runner.run_cell(cell)
    assert record["unit"] == "seconds"
    assert record["seconds"] < 60.0 < min(record["capital"], record["trace"]["spent"][-1])
    assert all(24.0 <= took <= 96.0 for took in record["trace"]["seconds"])
    assert runner.effort(cell) < 60.0


def test_the_short_ones_differ_in_their_budget_only():
    for name in ("branin", "currin"):
        long, short = boca.problems.get(name), get(f"short_{name}")
        assert short.budget == boca.targets(10)
        assert short.optimum == long.optimum
        z = dict.fromkeys(long.problem.fidelity, 0.3)
        assert short.value(long.maximizer, z) == long.value(long.maximizer, z)


# Optimisers that own the loop ---------------------------------------------------------------------------------------


class Walk:
    """A session whose questions depend on its seed and on every answer."""

    made = 0

    def __init__(self, seed):
        self.state = seed % 97 / 97
        Walk.made += 1

    def ask(self):
        return {"x1": self.state, "x2": 0.5}, {"z1": 1.0}

    def tell(self, score):
        self.state = abs(math.sin(self.state + score))


class Walker:
    def __init__(self):
        self.memory = loop.Memory()

    def suggest(self, problem, history, budget, rng):
        return self.memory.suggest(problem, history, rng, Walk, name="a walk")


def walked(strategies, n=6):
    bench = get("flat_cost")
    noise = np.random.default_rng(3)
    optimizer = boca.Optimizer(bench.problem, budget=bench.budget, strategy=strategies[0], seed=5)
    for k in range(n):
        optimizer.strategy = strategies[k % len(strategies)]
        trial = optimizer.ask()
        optimizer.tell(trial, bench.observe(trial.x, trial.z, noise))
    return optimizer


def test_an_object_that_was_lost_is_led_through_the_history_again():
    kept = [t.x for t in walked([Walker()]).history]
    lost = [t.x for t in walked([Walker() for _ in range(6)]).history]
    assert kept == lost
    assert len({x["x1"] for x in kept}) == 6


def test_an_object_that_fits_is_kept():
    Walk.made = 0
    walked([Walker()])
    assert Walk.made == 1


def test_the_same_history_gives_the_same_suggestion_twice_and_another_one_after_another_study():
    walker = Walker()
    study = walked([walker])
    ask = [walker.suggest(study.problem, study.history, study.budget, np.random.default_rng(0)).x for _ in range(2)]
    shorter = boca.History(study.history[:3])
    assert ask[0] == ask[1]
    assert walker.suggest(study.problem, shorter, study.budget, np.random.default_rng(9)).x == study.history[3].x


def test_a_trial_that_was_not_its_own_is_refused():
    walker = Walker()
    study = walked([walker], n=2)
    study.add({"x1": 0.123, "x2": 0.1}, None, 1.0)
    with pytest.raises(BocaError, match="trial 2 is none of its own"):
        study.ask()


def test_optuna_reaches_the_end_of_the_budget_and_is_pure():
    pytest.importorskip("optuna")
    from benchmarks.peers.optuna import TPE

    kept, lost = walked([TPE()], n=14), walked([TPE() for _ in range(14)], n=14)
    assert [t.x for t in kept.history] == [t.x for t in lost.history]
    assert all(kept.problem.is_target(t.z) for t in kept.history)


# What the adapters compute themselves -------------------------------------------------------------------------------


def test_a_joint_budget_goes_along_the_diagonal_to_the_target():
    branin = boca.problems.get("branin").problem
    assert smac.along_diagonal(branin, 1.0) == branin.target
    assert smac.along_diagonal(branin, 1 / 3) == pytest.approx({"z1": 1 / 3, "z2": 1 / 3, "z3": 1 / 3})


def test_options_are_coordinates_of_their_own_and_come_back():
    space = get("mixed").problem.space
    points = [{"n": 7, "kind": "c", "rate": 0.01}, {"n": 20, "kind": "a", "rate": 1.0}]
    U = botorch.encode(space, points)
    assert U.shape == (2, botorch.width(space)) == (2, 6)
    assert U[:, 1:5].tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]]
    back = [botorch.decode(space, u) for u in U]
    assert [(p["n"], p["kind"]) for p in back] == [(7, "c"), (20, "a")]
    assert [p["rate"] for p in back] == pytest.approx([0.01, 1.0])
    assert botorch.decode(space, np.array([0.99, 0.2, 0.9, 0.3, 0.1, 0.5]))["kind"] == "b"


def test_the_slopes_of_the_true_cost_are_right_inside_and_at_the_ends():
    currin = boca.problems.get("currin").problem
    Z = np.array([[0.0], [0.4], [1.0]])
    costs, slopes = botorch.costs_and_slopes(currin, Z)
    assert costs == pytest.approx((0.1 + Z[:, 0] ** 2) / 1.1)
    assert slopes[:, 0] == pytest.approx(2 * Z[:, 0] / 1.1, abs=1e-4)


@pytest.mark.parametrize("adapter", [smac._refuse_choices, botorch._refuse_fidelities])
def test_fidelities_without_an_order_are_refused(adapter):
    space = boca.Space(x=boca.Float(0, 1))
    sources = boca.Space(source=boca.Choice(["rough", "fine"]))
    for fidelity in (None, sources):
        target = {"source": "fine"} if fidelity else None
        with pytest.raises(InvalidInput, match="fidelities that are numbers"):
            adapter(boca.Problem(space, fidelity, cost=lambda z: 1.0, target=target))


def test_a_peer_that_is_not_installed_is_named_with_the_way_to_get_it():
    with pytest.raises(BocaError, match=r"needs no-such-peer.*make peers"):
        versions.version("no-such-peer")


# Tables -------------------------------------------------------------------------------------------------------------


def record(method, seed, values, problem="toy"):
    n = len(values)
    return {
        "problem": problem, "method": method, "seed": seed, "learn": False, "knows_gp": False, "direction": "maximize",
        "capital": 4.0, "unit": "cost", "optimum": 1.0, "recommendation": None, "seconds": 1.0,
        "trace": {
            "cost": [1.0] * n, "seconds": [0.0] * n, "overhead": [0.5] * n, "spent": [float(k + 1) for k in range(n)],
            "at_target": [v is not None for v in values], "value": values,
        },
    }  # fmt: skip


def test_the_table_says_when_everybody_was_as_good_as_the_best_peer(tmp_path, capsys):
    runs = [
        record("boca", 0, [0.0, 0.8, 0.9, 0.95]),
        record("boca", 1, [0.9, 0.9, 0.9, 0.9]),
        record("benchmarks.peers.optuna:GP", 0, [0.0, 0.1, 0.2, 0.8]),
        record("benchmarks.peers.smac:Hyperband", 0, [None, None, None, 0.3]),
    ]
    for run in runs:
        records.append(records.path_of(tmp_path, "toy", run["method"]), run)
    by_method = records.load(tmp_path)["toy"]
    name, goal = compared.best_peer(by_method)
    assert name == "benchmarks.peers.optuna:GP"
    assert goal == pytest.approx(0.2)
    assert [compared.reached(run, goal) for run in runs] == [0.5, 0.25, 1.0, math.inf]
    assert peers.main(["table", str(tmp_path)]) == 0
    rows = {
        line.split(" | ")[0][2:]: line.split(" | ")[1:]
        for line in capsys.readouterr().out.splitlines()
        if line[:2] == "| "
    }
    assert rows["boca"][5] == "38 % (2 of 2 runs)"
    assert rows["optuna:GP"][1:6] == ["1; 1", "0.9; 0.9", "0.8; 0.8", "0.2; 0.2", "100 % (1 of 1 runs)"]
    assert rows["smac:Hyperband"][1:6] == ["none 1", "none 1", "none 1", "0.7; 0.7", "never (0 of 1 runs)"]
    assert rows["boca"][7].startswith("0.5 s; 0.5 s")


def test_pairs_are_those_of_common_seeds(tmp_path, capsys):
    runs = [
        record("boca", 0, [0.9, 0.99, 0.99, 0.999]),
        record("boca", 1, [None, 0.9, 0.9, 0.9]),
        record("boca", 2, [0.0, 0.0, 0.0, 0.0]),
        record("random", 0, [0.0, 0.9, 0.9, 0.9]),
        record("random", 1, [0.0, 0.0, 0.0, 0.9]),
    ]
    for run in runs:
        records.append(records.path_of(tmp_path, "toy", run["method"]), run)
    assert peers.main(["paired", str(tmp_path), "--against", "random"]) == 0
    row = capsys.readouterr().out.splitlines()[2].strip("| ").split(" | ")
    assert row[:4] == ["toy", "2", "0.1 / 0.055 / 0.055 / 0.05", "1 / 0.55 / 0.55 / 0.1"]
    assert row[4:] == ["-1.00", "-1.00 ± 0.00", "-1.00 ± 0.00", "-1.00 ± 1.00"]


def test_all_regrets_can_be_had_as_a_table(tmp_path, capsys):
    for run in (
        record("boca", 1, [None, 0.5, 0.9, 1.0]),
        record("benchmarks.peers.optuna:GP", 0, [0.0, 0.1, 0.2, 0.8]),
        {**record("random", 0, [0.0, 0.1, 0.2, 0.8]), "optimum": None},  # nobody knows its regret
    ):
        records.append(records.path_of(tmp_path, "toy", run["method"]), run)
    assert peers.main(["csv", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "problem,method,seed,25 %,50 %,75 %,100 %",
        "toy,boca,1,,0.5,0.1,0",
        "toy,optuna:GP,0,1,0.9,0.8,0.2",
    ]


def test_a_run_at_the_target_alone_counts_where_the_target_is_the_same():
    names = [f"benchmarks.peers.problems:{name}" for name in ("late", "unrelated", "mixed")]
    below, alone = record("boca", 0, [None, 0.5], names[0]), record("random", 0, [0.1, 0.2], names[0])
    runs = {name: {} for name in names} | {names[0]: {"boca": {0: below}, "random": {0: alone}}}
    filled = compared.shared(runs)
    assert filled[names[0]] == runs[names[0]]
    assert filled[names[1]] == {"random": {0: alone}}
    assert filled[names[2]] == {}


def test_the_problems_that_are_said_to_be_the_same_at_the_target_are():
    rng = np.random.default_rng(0)
    first, *others = (problem(0) for problem in problems.SAME_AT_TARGET)
    for x in ({"x1": a, "x2": b} for a, b in rng.random((50, 2))):
        assert {problem.value(x) for problem in others} == {first.value(x)}
    for problem in others:
        assert problem.budget == first.budget
        seen = [p.observe({"x1": 0.3, "x2": 0.4}, p.problem.target, np.random.default_rng(1)) for p in (first, problem)]
        assert seen[0] == seen[1]


def test_slow_methods_come_last_and_have_the_first_seeds():
    cells = peers.cells(["currin"], ["benchmarks.peers.botorch:qmfkg_few", "random"], 4)
    assert [(c.method[-9:], c.seed) for c in cells] == [("random", k) for k in range(4)] + [
        ("qmfkg_few", 0),
        ("qmfkg_few", 1),
    ]


def test_the_command_runs_what_is_missing(tmp_path):
    command = ["run", "--out", str(tmp_path), "--problem", "benchmarks.peers.problems:mixed", "--method", "random"]
    assert peers.main([*command, "--seeds", "1"]) == 0
    assert peers.main([*command, "--seeds", "2"]) == 0
    (path,) = tmp_path.iterdir()
    assert [json.loads(line)["seed"] for line in path.read_text().splitlines()] == [0, 1]
