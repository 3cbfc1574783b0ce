"""Cells: the run that a user would make, its record, and a directory that is filled once whatever happens."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boca
from boca import problems
from boca.bench import records, runner
from boca.bench.runner import Cell
from boca.domain.errors import InvalidInput
from boca.problems import Benchmark


def timeless(directory: Path) -> list[dict[str, Any]]:
    """Return all runs without what a clock measured."""
    runs = [run for path in sorted(directory.glob("*.jsonl")) for run in records.read(path)]
    for run in runs:
        del run["seconds"], run["trace"]["seconds"], run["trace"]["overhead"]
    return sorted(runs, key=lambda run: (run["method"], run["seed"]))


# One run ----------------------------------------------------------------------------------------------------------


def test_the_budget_is_in_cost_units_or_in_seconds(toy: Any) -> None:
    assert runner.budget_of(problems.get("gp-smooth")) == pytest.approx(30 * 6.2)
    assert runner.budget_of(toy.make(0, budget=boca.domain.budget.Limit(7.0, "cost"))) == 7.0
    assert runner.budget_of(toy.make(0, budget=boca.seconds(7.0))) == 7.0


def test_a_cell_is_the_run_that_a_user_would_make(toy: Any) -> None:
    benchmark = toy.make(3)
    record = runner.run_cell(Cell(f"{toy.__name__}:make", "boca", 3))
    noise = np.random.default_rng([3, 86028121])
    optimizer = boca.Optimizer(benchmark.problem, budget=benchmark.budget, seed=3)
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, benchmark.observe(trial.x, trial.z, noise))
    history = optimizer.history
    trace = record["trace"]
    assert trace["cost"] == [t.cost for t in history]
    np.testing.assert_allclose(trace["spent"], np.cumsum([t.cost for t in history]))
    assert trace["at_target"] == [t.z == {"f": 1.0} for t in history]
    at_target = [t for t in history if t.z == {"f": 1.0}]
    assert [v for v in trace["value"] if v is not None] == [benchmark.value(t.x) for t in at_target]
    assert all((v is None) != flag for v, flag in zip(trace["value"], trace["at_target"], strict=True))
    assert records.regrets(record)[-1] == min(0.0 - benchmark.value(t.x) for t in at_target)
    recommended = optimizer.recommend()
    assert recommended is not None
    assert record["recommendation"] == benchmark.value(recommended.x)
    assert min(trace["overhead"]) > 0
    assert trace["spent"][-1] <= record["capital"] == 4.0
    assert (record["unit"], record["optimum"], record["direction"]) == ("cost", 0.0, "maximize")


def test_a_budget_in_seconds_is_spent_on_evaluating_and_choosing(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOY_SLEEP", "0.01")
    record = runner.run_cell(Cell(f"{toy.__name__}:in_seconds", "random", 0))
    trace = record["trace"]
    assert (record["unit"], record["capital"]) == ("seconds", 0.2)
    np.testing.assert_allclose(trace["spent"], np.cumsum(np.add(trace["seconds"], trace["overhead"])))
    assert min(trace["seconds"]) >= 0.01
    assert min(trace["overhead"]) > 0
    assert trace["cost"] == [1.0] * len(trace["cost"])  # cost units, which are not what is charged here


def test_nothing_is_paid_for_twice_where_there_is_neither_noise_nor_an_optimum(toy: Any) -> None:
    toy.calls.clear()
    record = runner.run_cell(Cell(f"{toy.__name__}:in_seconds", "random", 0))
    assert len(toy.calls) == len(record["trace"]["cost"])
    assert record["trace"]["value"] == [-((x["a"] - 0.3) ** 2) for x, _ in toy.calls]
    assert record["optimum"] is record["recommendation"] is None


def test_methods_share_the_noise_of_a_seed(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[float]] = []

    def observe(self: Benchmark, x: Any, z: Any, rng: np.random.Generator) -> float:
        drawn[-1].append(float(rng.standard_normal()))
        return 0.0

    monkeypatch.setattr(Benchmark, "observe", observe)
    for method in ("random", f"{toy.__name__}:NeverAtTarget"):
        drawn.append([])
        runner.run_cell(Cell(f"{toy.__name__}:make", method, 5))
    assert len(drawn[0]) == 4
    assert len(drawn[1]) == 16
    assert drawn[1][:4] == drawn[0]


def test_effort_is_the_budget_where_that_is_time_and_grows_with_the_problem(toy: Any) -> None:
    assert runner.effort(Cell(f"{toy.__name__}:in_seconds", "boca", 0)) == 0.2
    small, large = (runner.effort(Cell(problem, "boca", 0)) for problem in ("currin", "hartmann6"))
    assert small < large
    assert runner.effort(Cell("currin", "random", 0)) < small


# Many runs --------------------------------------------------------------------------------------------------------


def test_a_resumed_run_runs_nothing_twice(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, out, ran = f"{toy.__name__}:make", tmp_path / "out", []
    real = runner.run_cell
    monkeypatch.setattr(runner, "run_cell", lambda cell: ran.append(cell) or real(cell))
    other = f"{toy.__name__}:NeverAtTarget"
    cells = [Cell(problem, method, seed) for method in ("random", other) for seed in range(3)]
    assert runner.run(cells[:4], out, jobs=0) == 0
    path = records.path_of(out, problem, "random")
    path.write_bytes(path.read_bytes()[:-20])  # the last run was killed while it was written
    assert runner.run(cells, out, jobs=0) == 0
    assert ran == [*cells[:4], cells[2], *cells[4:]]
    assert [record["seed"] for record in records.read(path)] == [0, 1, 2]
    assert runner.run(cells, out, jobs=0) == 0
    assert len(ran) == 7


def test_runs_with_and_without_learning_do_not_mix(toy: Any, tmp_path: Path) -> None:
    problem = f"{toy.__name__}:drawn"
    runner.run([Cell(problem, "gp-ucb", 0)], tmp_path, jobs=0)
    (record,) = records.read(records.path_of(tmp_path, problem, "gp-ucb"))
    assert record["knows_gp"]
    with pytest.raises(InvalidInput, match="another --out"):
        runner.run([Cell(problem, "gp-ucb", 1, learn=True)], tmp_path, jobs=0)


def test_a_run_that_raises_is_reported_and_the_others_go_on(toy: Any, tmp_path: Path) -> None:
    at = f"{toy.__name__}:"
    outcomes: list[Any] = []
    cells = [Cell(at + "make", at + "Breaks", 0), Cell(at + "make", "random", 0)]
    assert runner.run(cells, tmp_path, jobs=0, report=lambda cell, outcome: outcomes.append(outcome)) == 1
    assert "on purpose" in outcomes[0]
    assert outcomes[1]["method"] == "random"
    assert [path.name for path in tmp_path.glob("*.jsonl")] == [f"{toy.__name__}-make.random.jsonl"]


def test_workers_give_the_results_of_this_process(toy: Any, tmp_path: Path) -> None:
    cells = [Cell(f"{toy.__name__}:make", method, 1) for method in ("random", "boca")]
    before = dict(os.environ)
    for jobs in (0, 2):
        runner.run(cells, tmp_path / str(jobs), jobs=jobs)
    assert dict(os.environ) == before
    assert timeless(tmp_path / "0") == timeless(tmp_path / "2")


def test_lines_are_plain_json(toy: Any, tmp_path: Path) -> None:
    runner.run([Cell(f"{toy.__name__}:fixed", "random", 0)], tmp_path, jobs=0)
    (path,) = tmp_path.glob("*.jsonl")
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["trace"]["spent"] == [1.0, 2.0, 3.0, 4.0]
