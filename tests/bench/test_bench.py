"""The benchmark's bookkeeping by hand: regrets on a fixed trace, files that survive a kill, numbers of the tables."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import boca
from boca import problems
from boca.bench import __main__ as command
from boca.bench import methods, runner, table
from boca.bench.runner import Cell, Step
from boca.errors import InvalidInput
from boca.problems import Benchmark

# A module as a user would write it: a problem as a function of the seed and as an object, and methods of every kind.
TOY = """
import os, time
import boca
from boca.problems import Benchmark

def function(x, z):
    time.sleep(float(os.environ.get("TOY_SLEEP", "0")))
    return -(x["a"] - 0.3) ** 2 - 0.1 * (1.0 - z["f"])

def make(seed, direction="maximize", budget=boca.targets(4), optimum=0.0, cost=lambda z: 0.25 + 0.75 * z["f"]):
    fidelity = boca.Space(f=boca.Float(0.0, 1.0))
    problem = boca.Problem(boca.Space(a=boca.Float(0.0, 1.0)), fidelity, cost=cost, direction=direction)
    return Benchmark("toy", problem, budget, function, optimum, {"a": 0.3}, 0.01, None, seed)

def drawn(seed):
    return Benchmark(**{**make(seed).__dict__, "hyperparameters":
        {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.3], "h_z": [1.0]}})

fixed = make(0)
def endless(seed): return make(seed, optimum=None)
def in_seconds(seed): return make(seed, budget=boca.seconds(1.0))
def measured(seed): return make(seed, cost=None)
def no_benchmark(seed): return 3
nothing = 3

instance = boca.GPUCB(maximizer="sobol")
set_already = boca.GPUCB(hyperparameters={"kappa0": 2.0, "eta2": 0.1, "mean": 0.0, "h_x": [0.1], "h_z": [1.0]})
def function_of(benchmark): return boca.Boca(max_shrink=1.0 + len(benchmark.problem.space))
def no_strategy(benchmark): return 3

class Breaks:
    def suggest(self, problem, history, budget, rng):
        raise RuntimeError("on purpose")

class NeverAtTarget:
    def suggest(self, problem, history, budget, rng):
        return boca.Suggestion({"a": float(rng.random())}, {"f": 0.0}, {"reason": "cheap", "phase": "start"})
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module on the path, under a name of its own for every test."""
    name = f"toy_{abs(hash(tmp_path)):x}"
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / f"{name}.py").write_text(TOY)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    __import__(name)
    return sys.modules[name]


def bench(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "boca.bench", *map(str, arguments)], capture_output=True, text=True)


# Regret -----------------------------------------------------------------------------------------------------------


def step(cost: float, spent: float, value: float | None) -> Step:
    return Step(cost, spent, value is not None, value, 0.0)


def test_regret_counts_queries_at_the_target_within_each_share(toy: Any) -> None:
    # capital 4: shares end at 1, 2, 3, 4
    steps = [
        step(0.5, 0.5, None),
        step(1.0, 1.5, -0.4),
        step(0.5, 2.0, -0.3),  # exactly at a half: inside
        step(1.0, 3.0 + 1e-12, -0.2),  # over three quarters by rounding alone: inside
        step(0.5, 3.5, None),
        step(0.5, 4.0, -0.9),  # worse than before: the best stays
    ]
    assert runner.simple_regret(toy.make(0), steps) == [None, 0.3, 0.2, 0.2]


def test_regret_is_none_without_a_query_at_the_target_and_never_negative(toy: Any) -> None:
    assert runner.simple_regret(toy.make(0), [step(0.5, 0.5, None)]) == [None] * 4
    assert runner.simple_regret(toy.make(0), [step(1.0, 1.0, 1e-9)]) == [0.0] * 4


def test_regret_of_a_minimised_problem(toy: Any) -> None:
    benchmark = toy.make(0, direction="minimize")
    assert runner.simple_regret(benchmark, [step(1, 1, 0.5), step(1, 2, 0.25), step(1, 3, 2.0)])[2:] == [0.25, 0.25]
    assert runner.regret(benchmark, {"a": 0.3}) == 0.0


def test_capital_is_in_cost_units(toy: Any) -> None:
    assert runner.capital(problems.get("gp-smooth")) == pytest.approx(30 * 6.2)
    assert runner.capital(toy.make(0, budget=boca.problem.Capital(7.0, "cost"))) == 7.0


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
    assert record["regret"][-1] == min(0.0 - benchmark.value(t.x) for t in at_target)
    recommended = optimizer.recommend()
    assert recommended is not None
    assert record["recommendation_regret"] == 0.0 - benchmark.value(recommended.x)
    assert min(trace["overhead"]) > 0
    assert trace["spent"][-1] <= record["capital"] == 4.0


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


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n in methods.METHODS if n not in ("random", "boca-learned")])
def test_the_true_gp_is_handed_over_unless_it_is_to_be_learned(name: str) -> None:
    sample, branin = problems.get("gp-rough"), problems.get("branin")
    method = methods.method(name)
    assert method(sample, False).hyperparameters == sample.hyperparameters  # type: ignore[attr-defined]
    assert method(sample, True).hyperparameters is None  # type: ignore[attr-defined]
    assert method(branin, False).hyperparameters is None  # type: ignore[attr-defined]


def test_the_methods_are_what_their_names_say() -> None:
    branin = problems.get("branin")
    expected = {
        "boca": boca.Boca(),
        "boca-learned": boca.Boca(),
        "boca-paper": boca.Boca.paper(),
        "boca-paper-sobol": boca.Boca.paper(maximizer="sobol"),
        "gp-ucb": boca.GPUCB(),
        "gp-ei": boca.GPEI(),
        "random": boca.RandomSearch(),
    }
    assert {name: methods.method(name)(branin, False) for name in methods.METHODS} == expected
    assert methods.method("boca-learned")(problems.get("gp-smooth"), False) == boca.Boca()
    assert set(methods.DEFAULT_METHODS) == set(expected) - {"boca-learned"}


def test_methods_of_ones_own(toy: Any) -> None:
    at, sample, plain = f"{toy.__name__}:", toy.drawn(0), toy.make(0)
    assert methods.method(at + "instance")(plain, False) is toy.instance
    assert methods.method(at + "instance")(sample, False).hyperparameters == sample.hyperparameters  # type: ignore[attr-defined]
    assert methods.method(at + "instance")(sample, True) is toy.instance
    assert methods.method(at + "set_already")(sample, False) is toy.set_already
    assert methods.method(at + "function_of")(plain, False) == boca.Boca(max_shrink=2.0)
    assert isinstance(methods.method(at + "NeverAtTarget")(sample, False), toy.NeverAtTarget)
    assert methods.method("boca:GPEI")(sample, False) == boca.GPEI(hyperparameters=sample.hyperparameters)


def test_problems_of_ones_own(toy: Any) -> None:
    assert methods.problem(f"{toy.__name__}:fixed")(7) is toy.fixed
    assert methods.problem(f"{toy.__name__}:make")(7).seed == 7


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("bocca", "must be one of boca, boca-learned"),
        ("no.such.module:thing", "leads nowhere"),
        ("toy:no_such_name", "leads nowhere"),
        ("toy:nothing", "must be a strategy"),
        ("toy:no_strategy", "method suggest"),
        ("toy:Benchmark", "positional arguments"),
    ],
)
def test_a_method_that_is_none(toy: Any, name: str, message: str) -> None:
    with pytest.raises((InvalidInput, TypeError), match=message):
        methods.method(name.replace("toy", toy.__name__))(toy.make(0), False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("brannin", "must be one of gp-smooth"),
        ("toy:nothing", "must be a Benchmark"),
        ("toy:no_benchmark", "must return a Benchmark"),
        ("toy:endless", "known optimum"),
        ("toy:in_seconds", "same capital"),
        ("toy:measured", "same capital"),
    ],
)
def test_a_problem_that_cannot_be_compared(toy: Any, name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        methods.problem(name.replace("toy", toy.__name__))(0)


# Files ------------------------------------------------------------------------------------------------------------


def test_a_torn_last_line_is_cut_and_never_read(tmp_path: Path) -> None:
    path = tmp_path / "p.m.jsonl"
    runner.append(path, {"seed": 0})
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seed": 1, "reg')
    assert runner.read(path) == [{"seed": 0}]
    runner.cut_torn_line(path)
    assert path.read_bytes() == whole
    runner.append(path, {"seed": 1})
    runner.cut_torn_line(path)
    assert [record["seed"] for record in runner.read(path)] == [0, 1]


def test_a_torn_only_line_and_a_missing_file(tmp_path: Path) -> None:
    path = tmp_path / "p.m.jsonl"
    assert runner.read(path) == []
    runner.cut_torn_line(path)
    path.write_bytes(b'{"se')
    runner.cut_torn_line(path)
    assert path.read_bytes() == b""


def test_a_broken_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "p.m.jsonl"
    path.write_bytes(b'{"seed": 0}\n\x00\x00\n{"seed": 1}\n')
    with pytest.raises(InvalidInput, match=r"Line 2 of .*p\.m\.jsonl"):
        runner.read(path)


def test_a_resumed_run_runs_nothing_twice(toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem, out, ran = f"{toy.__name__}:make", tmp_path / "out", []
    real = runner.run_cell
    monkeypatch.setattr(runner, "run_cell", lambda cell: ran.append(cell) or real(cell))
    other = f"{toy.__name__}:NeverAtTarget"
    cells = [Cell(problem, method, seed) for method in ("random", other) for seed in range(3)]
    assert runner.run(cells[:4], out, jobs=0) == 0
    path = runner.path_of(out, problem, "random")
    path.write_bytes(path.read_bytes()[:-20])  # the last run was killed while it was written
    assert runner.run(cells, out, jobs=0) == 0
    assert ran == [*cells[:4], cells[2], *cells[4:]]
    assert [record["seed"] for record in runner.read(path)] == [0, 1, 2]
    assert runner.run(cells, out, jobs=0) == 0
    assert len(ran) == 7


def test_runs_with_and_without_learning_do_not_mix(toy: Any, tmp_path: Path) -> None:
    problem = f"{toy.__name__}:drawn"
    runner.run([Cell(problem, "gp-ucb", 0)], tmp_path, jobs=0)
    (record,) = runner.read(runner.path_of(tmp_path, problem, "gp-ucb"))
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


def timeless(directory: Path) -> list[dict[str, Any]]:
    """Return all runs without what a clock measured."""
    records = [record for path in sorted(directory.glob("*.jsonl")) for record in runner.read(path)]
    for record in records:
        del record["seconds"], record["trace"]["overhead"]
    return sorted(records, key=lambda r: (r["method"], r["seed"]))


def without_overhead(markdown: str) -> list[str]:
    """Return the lines of a table without its last column, which a clock measured."""
    return [line.rsplit("|", 2)[0] for line in markdown.splitlines()]


def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    toy: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    at = f"{toy.__name__}:"
    chosen = ["--problem", at + "make", "--method", "random", "--method", "boca", "--seeds", "2"]
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    slow = {**os.environ, "TOY_SLEEP": "0.05"}
    arguments = [sys.executable, "-m", "boca.bench", "run", *chosen, "--jobs", "1", "--out", str(killed)]
    process = subprocess.Popen(arguments, env=slow, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    while "[2/4]" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)  # the pipe ends when the worker, which shares it, has followed its parent
    finished = timeless(killed)
    assert 2 <= len(finished) < 4
    path = runner.path_of(killed, at + "make", "random")
    with path.open("ab") as file:
        file.write(b'{"problem": "half a li')

    again = bench("run", *chosen, "--jobs", "1", "--out", killed)
    assert again.returncode == 0, again.stderr
    assert f"{len(finished)} of 4 runs are done, {4 - len(finished)} to go." in again.stderr
    cells = [Cell(at + "make", method, seed) for method in ("random", "boca") for seed in range(2)]
    assert runner.run(cells, whole, jobs=0) == 0
    assert timeless(killed) == timeless(whole)
    tables = [table.markdown(table.load(directory), reference="boca") for directory in (killed, whole)]
    assert without_overhead(tables[0]) == without_overhead(tables[1])
    capsys.readouterr()
    assert command.main(["table", str(killed)]) == 0
    assert "| boca | 2 |" in capsys.readouterr().out


# Tables -----------------------------------------------------------------------------------------------------------


def record(method: str, seed: int, regret: list[float | None], recommended: float | None = 0.5) -> dict[str, Any]:
    return {
        "problem": "branin",
        "method": method,
        "seed": seed,
        "learn": False,
        "knows_gp": method == "gp-ucb",
        "regret": regret,
        "recommendation_regret": recommended,
        "trace": {
            "cost": [1.0] * (2 + seed),
            "at_target": [True] + [False] * (1 + seed),
            "overhead": [0.001 * (1 + seed)] * (2 + seed),
        },
    }


@pytest.fixture
def results(tmp_path: Path) -> Path:
    runs = [
        record("boca", 0, [1.0, 0.1, 0.01, 0.0]),
        record("boca", 1, [2.0, 0.2, 0.02, 1e-9]),
        record("boca", 2, [None, 0.3, 0.06, 0.2], recommended=None),
        record("gp-ucb", 0, [10.0, 0.1, 0.1, 1e-5]),
        record("gp-ucb", 1, [None, 0.2, 2.0, 1e-7]),
        record("gp-ucb", 2, [1.0, 0.3, 0.06, None]),
        record("gp-ucb", 9, [5.0, 5.0, 5.0, 5.0]),  # a seed that the reference has not run
    ]
    for run in runs:
        runner.append(tmp_path / f"branin.{run['method']}.jsonl", run)
    return tmp_path


def row(markdown: str, begin: str) -> list[str]:
    (line,) = [line for line in markdown.splitlines() if line.startswith(f"| {begin} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_regrets_of_a_table_by_hand(results: Path) -> None:
    text = table.markdown(table.load(results), reference="boca")
    assert row(text.split("log10 ratio")[0], "boca") == [
        "boca",
        "3",
        "1.5 ± 0.5 (1.5), none 1",
        "0.2 ± 0.058 (0.2)",
        "0.03 ± 0.015 (0.02)",
        "0.067 ± 0.067 (1e-09)",
        "1",
        "1 / 3",
        "0.5 ± 0 (0.5), none 1",
        "2.22",  # (2 * 1 + 3 * 2 + 4 * 3) / 9 milliseconds
    ]
    assert row(text.split("log10 ratio")[0], "gp-ucb")[6] == "1"  # 5.0; the run without a regret is no stuck one
    assert "The true GP was known to gp-ucb." in text


def test_paired_ratios_by_hand(results: Path) -> None:
    text = table.markdown(table.load(results), reference="boca")
    cells = row(text.split("### branin")[1].split("log10 ratio")[1], "gp-ucb")
    # seed by seed: 25 % +1, none, none; 75 % +1, +2, 0; 100 % log10(1e-5 / 1e-6) = 1, both at the floor = 0, none
    assert cells == ["gp-ucb", "3", "+1.00, none 2", "+0.00 ± 0.00", "+1.00 ± 0.58", "+0.50 ± 0.50, none 1"]
    assert "floored at 1e-06" in text
    turned = table.markdown(table.load(results), reference="gp-ucb")
    assert row(turned.split("log10 ratio to gp-ucb")[1], "boca")[4] == "-1.00 ± 0.58"


def test_ratios_are_none_where_there_is_nothing_to_pair(results: Path) -> None:
    assert table.log_ratio(None, 1.0) is table.log_ratio(1.0, None) is None
    assert table.log_ratio(0.0, 1.0) == -6.0
    assert "No runs of random to pair with." in table.markdown(table.load(results), reference="random")


def test_a_summary_of_nothing_and_of_one() -> None:
    nothing, one = table.summary([None, None]), table.summary([3.0])
    assert math.isnan(nothing.mean)
    assert nothing.missing == 2
    assert (one.mean, one.median, one.missing) == (3.0, 3.0, 0)
    assert math.isnan(one.error)


def test_of_two_runs_of_one_cell_the_first_counts(results: Path) -> None:
    runner.append(results / "branin.boca.jsonl", record("boca", 0, [7.0, 7.0, 7.0, 7.0]))
    assert table.load(results)["branin"]["boca"][0]["regret"] == [1.0, 0.1, 0.01, 0.0]


def test_a_run_that_never_reached_the_target_has_no_number(toy: Any, tmp_path: Path) -> None:
    at = f"{toy.__name__}:"
    runner.run([Cell(at + "make", at + "NeverAtTarget", 0)], tmp_path, jobs=0)
    cells = row(table.markdown(table.load(tmp_path), reference="boca"), at + "NeverAtTarget")
    assert cells[2:8] == ["none 1"] * 4 + ["0", "0 / 16"]


# Command ----------------------------------------------------------------------------------------------------------


def test_cells_come_cheap_first_with_their_usual_seeds() -> None:
    cells = command.cells(["hartmann6", "branin"], ["boca", "random", "boca"], None, learn=False)
    counts = {
        (p, m): sum((c.problem, c.method) == (p, m) for c in cells) for p, m in {(c.problem, c.method) for c in cells}
    }
    assert counts == {
        ("hartmann6", "boca"): 4,
        ("hartmann6", "random"): 4,
        ("branin", "boca"): 20,
        ("branin", "random"): 20,
    }
    assert [c.problem for c in cells if c.method == "boca"] == ["branin"] * 20 + ["hartmann6"] * 4
    assert cells[0].method == "random"
    assert [c.seed for c in command.cells(["branin"], ["random"], range(20, 23), learn=True)] == [20, 21, 22]


@pytest.mark.parametrize("seeds", ["0", "-3", "4:4", "a", "3:2", ""])
def test_seeds_that_are_none(seeds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["run", f"--seeds={seeds}"])
    assert "--seeds" in capsys.readouterr().err


def test_errors_of_the_user_are_sentences(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["run", "--problem", "brannin", "--out", str(tmp_path)]) == 2
    assert command.main(["run", "--method", "bocca", "--out", str(tmp_path)]) == 2
    assert command.main(["table", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("error: A ") == 3
    assert list(tmp_path.iterdir()) == []


def test_progress_says_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    cells = [Cell("branin", "random", seed) for seed in range(3)]
    progress = command._Progress(cells, 2)
    progress.report(cells[0], {"seconds": 120.0, "regret": [None, 1.0, 1.0, 0.25]})
    progress.report(cells[1], {"seconds": 240.0, "regret": [None] * 4})
    progress.report(cells[2], "Traceback")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "[1/3] branin random seed 0: regret 0.25, 120.0 s; about 2 min left"
    assert lines[1] == "[2/3] branin random seed 1: no query at the target, 240.0 s; about 2 min left"
    assert lines[2] == "[3/3] branin random seed 2 FAILED"


def test_lines_are_plain_json(toy: Any, tmp_path: Path) -> None:
    runner.run([Cell(f"{toy.__name__}:fixed", "random", 0)], tmp_path, jobs=0)
    (path,) = tmp_path.glob("*.jsonl")
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["trace"]["spent"] == [1.0, 2.0, 3.0, 4.0]
