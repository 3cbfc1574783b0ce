"""The command `boca bench` and the rest of `boca`: what is said, where it is written, and how it ends."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import boca
from boca import problems
from boca.bench import command, methods, records, runner, table
from boca.bench.runner import Cell
from boca.cli import app, main
from boca.problems import data

Make = Callable[..., dict[str, Any]]

SCRIPT = Path(sys.executable).parent / "boca"


def bench(*arguments: object, **others: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SCRIPT, "bench", *map(str, arguments)], capture_output=True, text=True, **others)


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs the command here and gives its status, its output and its errors."""
    monkeypatch.setattr(sys, "path", sys.path[:])

    def run(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return int(end.value.code or 0), *capsys.readouterr()

    return run


# The command ------------------------------------------------------------------------------------------------------


def test_the_version() -> None:
    for command_line in ([SCRIPT], [sys.executable, "-m", "boca"]):
        done = subprocess.run([*command_line, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"boca {boca.__version__}\n"


def test_help_names_what_there_is() -> None:
    def help_of(*arguments: str) -> str:
        result = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": "400", "TERMINAL_WIDTH": "400"})
        assert result.exit_code == 0
        return result.output

    assert all(name in help_of() for name in ("bench", "data", "--version"))
    assert all(name in help_of("bench") for name in ("run", "table", "figures"))
    text = help_of("bench", "run")
    assert all(name in text for name in (*problems.names(), *methods.METHODS, "package.module:name"))
    assert all(name in help_of("data", "fetch") for name in data.names())


def test_the_command_draws_nothing_before_it_is_asked_to() -> None:
    script = "import boca.cli, sys; sys.exit(any(name in sys.modules for name in ('matplotlib', 'sklearn')))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_errors_of_the_user_are_sentences(said: Any, tmp_path: Path) -> None:
    for arguments, message in [
        (["bench", "run", "--problem", "brannin", "--out", tmp_path], "--problem must be one of gp-smooth"),
        (["bench", "run", "--method", "bocca", "--out", tmp_path], "--method must be one of boca"),
        (["bench", "run", "--problem", "no.such:thing", "--out", tmp_path], "does not exist"),
        (["bench", "table", tmp_path], "There are no finished runs"),
        (["bench", "figures", tmp_path], "There are no finished runs"),
        (["data", "fetch", "supernovae"], "supernova"),
    ]:
        status, output, errors = said(*arguments)
        assert status == 2
        assert output == ""
        assert errors.startswith("error: ")
        assert message in errors
        assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seeds", ["0", "-3", "4:4", "a", "3:2", "", "1:", "-1:2"])
def test_seeds_that_are_none(said: Any, seeds: str) -> None:
    status, _, errors = said("bench", "run", f"--seeds={seeds}")
    assert status == 2
    assert f"--seeds {seeds} names no seeds" in errors


def test_options_that_cannot_be(said: Any) -> None:
    for arguments in (["run", "--jobs", "0"], ["run", "--probelm", "branin"], ["table"], ["tables"]):
        status, _, errors = said("bench", *arguments)
        assert status == 2
        assert errors


def test_fetching_data_prints_where_they_are(said: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "fetch", lambda name: Path("somewhere") / name)
    assert said("data", "fetch", "supernova") == (0, f"{Path('somewhere') / 'supernova'}\n", "")


def test_an_unknown_data_set_is_told_the_names(said: Any) -> None:
    status, _, errors = said("data", "fetch", "nothing")
    assert status == 2
    assert all(name in errors for name in ("supernova", "newsgroups", "nothing"))


# What runs --------------------------------------------------------------------------------------------------------


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
    assert command.parse_seeds("3") == range(3)
    assert command.parse_seeds("20:23") == range(20, 23)


def test_the_usual_problems_are_those_that_need_nothing_but_the_package() -> None:
    assert all(problems.get(name).optimum is not None for name in command.DEFAULT_PROBLEMS)
    assert set(problems.names()) - set(command.DEFAULT_PROBLEMS) == {"supernova", "newsgroups", "newsgroups-small"}


def test_without_names_the_usual_cells_run(said: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ran: list[Cell] = []
    monkeypatch.setattr(runner, "run", lambda cells, *rest, **others: ran.extend(cells) or 0)
    status, _, errors = said("bench", "run", "--out", tmp_path)
    assert status == 0
    assert f"0 of {len(ran)} runs are done, {len(ran)} are left." in errors
    expected = command.cells(command.DEFAULT_PROBLEMS, methods.DEFAULT_METHODS, None, learn=False)
    assert ran == expected
    assert len(ran) == len(methods.DEFAULT_METHODS) * (5 * 20 + 2 * 4)


def test_runs_on_the_clock_come_last_and_one_at_a_time(
    said: Any, toy: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    calls: list[tuple[list[str], int]] = []

    def run(cells: list[Cell], directory: Path, *, jobs: int, report: Any) -> int:
        calls.append(([cell.problem for cell in cells], jobs))
        return 0

    monkeypatch.setattr(runner, "run", run)
    make, clock = f"{toy.__name__}:make", f"{toy.__name__}:in_seconds"
    chosen = ["bench", "run", "--method", "random", "--seeds", "2", "--out", tmp_path]
    _, _, errors = said(*chosen, "--problem", clock, "--problem", make, "--jobs", "3")
    assert calls == [([make] * 2, 3), ([clock] * 2, 1)]
    assert f"Runs of {clock} have a budget in seconds" in errors
    assert "one at a time" in errors
    for arguments in (["--problem", clock, "--jobs", "1"], ["--problem", make]):
        assert "budget in seconds" not in said(*chosen, *arguments)[2]


def test_a_run_fills_its_directory_and_tables_and_figures_show_it(said: Any, toy: Any, tmp_path: Path) -> None:
    make, clock = f"{toy.__name__}:make", f"{toy.__name__}:in_seconds"
    out = tmp_path / "out"
    chosen = ["--problem", make, "--problem", clock, "--method", "random", "--seeds", "1:3", "--jobs", "2"]
    status, output, errors = said("bench", "run", *chosen, "--out", out)
    assert (status, output) == (0, "")
    lines = errors.splitlines()
    assert lines[0] == "0 of 4 runs are done, 4 are left."
    assert [line.split()[0] for line in lines[2:]] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert all(f" {make} random seed " in line and ": regret " in line for line in lines[2:4])
    assert all(f" {clock} random seed " in line and ": best " in line for line in lines[4:])
    assert lines[-1].endswith("; about 0 s left")
    assert said("bench", "run", *chosen, "--out", out) == (0, "", "4 of 4 runs are done, 0 are left.\n")

    status, output, errors = said("bench", "table", out, "--reference", "random")
    assert (status, errors) == (0, "")
    assert output.count("| random | 2 |") == 2
    assert "log10 of the regret over that of random" in output
    status, output, errors = said("bench", "figures", out)
    assert (status, errors) == (0, "")
    paths = [out / f"{name}.{kind}" for name in ("regret", "value") for kind in ("png", "svg")]
    assert output.splitlines() == [str(path) for path in paths]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_results_and_pictures_need_a_directory(said: Any, toy: Any, make_record: Make, tmp_path: Path) -> None:
    file, runs = tmp_path / "file", tmp_path / "runs"
    file.write_text("mine")
    runs.mkdir()
    records.append(records.path_of(runs, "branin", "boca"), make_record([1.0], [0.5]))
    chosen = ("--problem", f"{toy.__name__}:make", "--method", "random", "--seeds", 1)
    for arguments in (("run", *chosen), ("figures", runs)):
        for out in (file, file / "below"):
            status, _, errors = said("bench", *arguments, "--out", out)
            assert status == 2
            assert f"--out {out} cannot be a directory: " in errors
            assert "Traceback" not in errors
    assert file.read_text() == "mine"


def test_what_is_no_problem_is_told_in_a_sentence(said: Any, toy: Any, tmp_path: Path) -> None:
    (tmp_path / "module" / "broken_problem.py").write_text("1 / 0")
    for problem, words in (
        (f"{toy.__name__}:two_at_once", "must be a Benchmark or a function from a seed to one"),
        ("broken_problem:make", "cannot be imported: ZeroDivisionError"),
    ):
        status, _, errors = said("bench", "run", "--problem", problem, "--method", "random", "--out", tmp_path / "out")
        assert status == 2
        assert words in errors
        assert "Traceback" not in errors


def test_figures_of_some_problems_and_methods(said: Any, make_record: Make, tmp_path: Path) -> None:
    for problem, method in (("branin", "boca"), ("branin", "random"), ("currin", "boca")):
        made = make_record([1.0, 2.0], [-2.0, -1.0], problem=problem, method=method)
        records.append(records.path_of(tmp_path, problem, method), made)
    runs = records.load(tmp_path)
    assert {p: list(m) for p, m in command.chosen(runs, ["branin"], ()).items()} == {"branin": ["boca", "random"]}
    assert {p: list(m) for p, m in command.chosen(runs, (), ["random"]).items()} == {"branin": ["random"]}
    assert command.chosen(runs, (), ()) == runs
    status, output, _ = said("bench", "figures", tmp_path, "--problem", "branin", "--out", tmp_path / "new" / "place")
    assert status == 0
    assert output.split() == [str(tmp_path / "new" / "place" / f"regret.{kind}") for kind in ("png", "svg")]
    for option, name in (("--problem", "hartmann3"), ("--method", "gp-ei")):
        status, _, errors = said("bench", "figures", tmp_path, option, name)
        assert status == 2
        assert f"error: {option} {name} was not run" in errors
    status, _, errors = said("bench", "figures", tmp_path, "--problem", "currin", "--method", "random")
    assert status == 2
    assert "no runs of random on currin" in errors


def test_a_module_in_the_current_directory_can_be_named(toy: Any, tmp_path: Path) -> None:
    shutil.copy(toy.__file__, tmp_path / "mine.py")
    clean = {**os.environ, "PYTHONPATH": os.environ["PYTHONPATH"].partition(os.pathsep)[2]}  # without the toy
    arguments = ["run", "--problem", "mine:make", "--method", "mine:NeverAtTarget", "--seeds", "1", "--out", "out"]
    done = bench(*arguments, cwd=tmp_path, env=clean)
    assert done.returncode == 0, done.stderr
    assert "[1/1] mine:make mine:NeverAtTarget seed 0: no query at the target, " in done.stderr
    assert done.stdout == ""
    elsewhere = bench(*arguments, cwd=tmp_path / "module", env=clean)
    assert elsewhere.returncode == 2
    assert "does not exist" in elsewhere.stderr


# How it ends ------------------------------------------------------------------------------------------------------


def test_a_run_that_fails_shows_why_and_is_tried_again(said: Any, toy: Any, tmp_path: Path) -> None:
    at = f"{toy.__name__}:"
    chosen = ["--problem", at + "make", "--method", "random", "--method", at + "Breaks", "--seeds", "1"]
    for before in (0, 1):
        status, output, errors = said("bench", "run", *chosen, "--out", tmp_path / "out")
        assert (status, output) == (1, "")
        assert f"{before} of 2 runs are done" in errors
        assert f"{at}Breaks seed 0 FAILED\nTraceback" in errors
        assert "RuntimeError: on purpose" in errors
        assert errors.endswith(f"1 of {2 - before} runs failed; tracebacks above. Run the same command to try again.\n")


def test_a_worker_that_dies_is_no_traceback(said: Any, toy: Any, tmp_path: Path) -> None:
    at = f"{toy.__name__}:"
    chosen = ["--problem", at + "make", "--method", at + "Dies", "--seeds", "1"]
    status, _, errors = said("bench", "run", *chosen, "--out", tmp_path / "out")
    assert status == 1
    assert errors.endswith("A worker was killed, perhaps because memory ran out. Run the same command to resume.\n")
    assert "Traceback" not in errors


def started(arguments: list[object], sleep: float) -> subprocess.Popen[str]:
    """Start the command and return when a run has come to its end."""
    slow = {**os.environ, "TOY_SLEEP": str(sleep)}
    command_line = [sys.executable, "-m", "boca", *map(str, arguments)]
    process = subprocess.Popen(command_line, env=slow, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[1/"):
            return process
    raise AssertionError(f"no run was finished; status {process.wait()}")


def test_ctrl_c_stops_at_once_and_says_how_to_go_on(toy: Any, tmp_path: Path) -> None:
    chosen = ["--problem", f"{toy.__name__}:make", "--method", "random", "--method", f"{toy.__name__}:Hangs"]
    process = started(["bench", "run", *chosen, "--seeds", 1, "--out", tmp_path / "out"], 0.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)  # the pipe ends when the workers, which share it, are gone
    assert process.returncode == 130
    assert errors.endswith("Stopped. Run the same command to resume.\n")
    assert "Traceback" not in errors


def without_overhead(directory: Path) -> list[str]:
    """Return the lines of the tables without the last column, which a clock measured."""
    return [line.rsplit("|", 2)[0] for line in table.markdown(records.load(directory), reference="boca").splitlines()]


def test_ten_kills_at_random_moments_change_nothing(toy: Any, tmp_path: Path) -> None:
    make, killed, whole = f"{toy.__name__}:make", tmp_path / "killed", tmp_path / "whole"
    chosen = ["--problem", make, "--method", "random", "--method", "boca", "--seeds", 20, "--out", killed]
    cells = [Cell(make, method, seed) for method in ("random", "boca") for seed in range(20)]
    torn = records.path_of(killed, make, "random")
    rng = np.random.default_rng(0)
    left = len(cells)
    for life in range(10):
        process = started(["bench", "run", *chosen, "--jobs", 1 + life % 2], 0.03)
        with pytest.raises(subprocess.TimeoutExpired):  # it is still at work
            process.wait(timeout=rng.uniform(0.0, 0.2))
        process.kill()
        process.communicate(timeout=10)  # the workers follow
        if life % 3 == 0:  # a kill in the middle of a write is too rare to wait for
            with torn.open("ab") as file:
                file.write(b'{"problem": "half a li')
        before, left = left, len(runner.missing(cells, killed))
        assert 0 < left < before
    last = bench("run", *chosen)
    assert last.returncode == 0, last.stderr
    assert f"{40 - left} of 40 runs are done, {left} are left." in last.stderr
    assert last.stderr.count(" seed ") == left

    assert runner.run(cells, whole, jobs=0) == 0
    assert without_overhead(killed) == without_overhead(whole)
    assert "| boca | 20 |" in "\n".join(without_overhead(whole))
    assert all(len(records.read(path)) == 20 for path in killed.glob("*.jsonl"))  # nothing ran twice


# Figures of the paper -------------------------------------------------------------------------------------------------


def test_a_figure_without_runs_is_written(said: Callable[..., tuple[int, str, str]], tmp_path: Path) -> None:
    status, out, _ = said("bench", "run", "--figure", "2", "--out", tmp_path)
    assert status == 0
    assert out.split() == [f"{tmp_path}/figure-2.png", f"{tmp_path}/figure-2.svg"]
    assert all(Path(path).stat().st_size > 1000 for path in out.split())
    status, _, errors = said("bench", "run", "--figure", "2", "--seeds", "3", "--out", tmp_path)
    assert status != 0
    assert "--seeds has no meaning" in errors


def test_a_figure_with_runs_says_its_hours_first_runs_what_is_missing_and_is_drawn(
    said: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    few = ("--problem", "gp-smooth", "--method", "random", "--seeds", "2", "--jobs", "1", "--out", tmp_path)
    status, out, errors = said("bench", "run", "--figure", "3", *few)
    assert status == 0
    assert errors.splitlines()[0].startswith("About 0.0 hours on one core, and longer: never measured were random on")
    assert out.split() == [f"{tmp_path}/figure-3/regret.png", f"{tmp_path}/figure-3/regret.svg"]
    assert len(records.load(tmp_path)["gp-smooth"]["random"]) == 2
    status, _, errors = said("bench", "run", "--figure", "3", *few)
    assert errors.splitlines()[:2] == ["About 0.0 hours on one core.", "2 of 2 runs are done, 0 are left."]


def test_a_figure_has_the_problems_methods_and_seeds_of_the_paper(
    said: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Cell] = []
    monkeypatch.setattr(command, "_run_missing", lambda wanted, out, jobs: asked.extend(wanted))
    said("bench", "run", "--figure", "4a", "--out", tmp_path)
    assert {cell.problem for cell in asked} == {"branin"}
    assert {cell.seed for cell in asked} == set(range(20))
    assert {"mf-gp-ucb", "mf-gp-ucb-3", "boca-paper"} <= {cell.method for cell in asked}
    status, _, errors = said("bench", "run", "--figure", "5", "--out", tmp_path)
    assert status != 0
    assert "must be one of 3, 4a, 4b, 4c" in errors
