"""The command `boca bench`: `run` fills a directory with runs, `table` and `figures` show what is in it."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Annotated

import typer

from boca import problems
from boca.bench import accounts as spending
from boca.bench import experiments, illustrations, methods, progress, records, runner
from boca.bench import figures as pictures
from boca.bench import table as tables
from boca.domain.errors import InvalidInput

# Those whose optimum is known.  The real problems need data and run alone on the machine, so they must be named.
DEFAULT_PROBLEMS = ("gp-smooth", "gp-rough", "currin", "hartmann3", "hartmann6", "borehole", "branin")

_SEEDS = 20
_SEEDS_OF_SLOW_PROBLEMS = {"hartmann6": 4, "borehole": 4}  # hundreds of queries in many dimensions: minutes per run

app = typer.Typer(no_args_is_help=True, help="Compare methods on problems with equal budgets.")

_PATH = "or an import path package.module:name; may be repeated."
_Directory = Annotated[Path, typer.Argument(metavar="DIR", help="Where the runs are.")]


@app.command()
def run(
    problem: Annotated[
        list[str] | None,
        typer.Option(
            metavar="P",
            help=f"{', '.join(problems.names())}, {_PATH}",
            show_default="the synthetic ones",
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            metavar="M",
            help=f"{', '.join(methods.METHODS)}, {_PATH}",
            show_default=", ".join(methods.DEFAULT_METHODS),
        ),
    ] = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N|A:B", help="0..N-1 or A..B-1.", show_default="20; 4 of hartmann6 and borehole"),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, metavar="N", help="Worker processes of one thread each.")] = 2,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the runs are kept.")] = Path("bench-results"),
    figure: Annotated[
        str | None,
        typer.Option(
            metavar="F",
            help=f"Of the paper: {', '.join(experiments.EXPERIMENTS)} or all, with its problems, methods and seeds "
            f"unless they are named; or one without runs: {', '.join(illustrations.FIGURES)}.",
        ),
    ] = None,
    learn: Annotated[
        bool,
        typer.Option(
            "--learn", help="Learn the GP of gp-smooth and gp-rough too, instead of giving it to the methods."
        ),
    ] = False,
) -> None:
    """Run what is missing; it can be stopped and resumed at any time."""
    if figure is not None and figure in illustrations.FIGURES:
        _refuse_with_figure(figure, {"--problem": problem, "--method": method, "--seeds": seeds, "--learn": learn})
        _print_all(illustrations.write(figure, out))
        return
    chosen_seeds = None if seeds is None else parse_seeds(seeds)
    if figure is None:
        wanted = cells(problem or DEFAULT_PROBLEMS, method or methods.DEFAULT_METHODS, chosen_seeds, learn=learn)
        _run_missing(wanted, out, jobs)
        return
    by_figure = {
        name: cells(problem or shown.problems, method or shown.methods, chosen_seeds or range(shown.seeds), learn=learn)
        for name, shown in experiments.named(figure).items()
    }
    wanted = runner.cheapest_first(cell for some in by_figure.values() for cell in some)
    _say(experiments.forecast(runner.missing(wanted, out)))
    _run_missing(wanted, out, jobs)
    for name, some in by_figure.items():
        runs = chosen(records.load(out), sorted({c.problem for c in some}), sorted({c.method for c in some}))
        _print_all(pictures.write(runs, out / f"figure-{name}"))


@app.command()
def table(
    directory: _Directory,
    reference: Annotated[str, typer.Option(metavar="M", help="The method that the others are compared with.")] = "boca",
    accounts: Annotated[
        bool, typer.Option("--accounts", help="Cumulative regret, and what the budget was spent on, instead.")
    ] = False,
) -> None:
    """Print the runs in a directory as Markdown."""
    runs = records.load(directory)
    print(spending.markdown(runs) if accounts else tables.markdown(runs, reference=reference))


@app.command()
def figures(
    directory: _Directory,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write the figures.", show_default="where the runs are")
    ] = None,
    problem: Annotated[
        list[str] | None, typer.Option(metavar="P", help="May be repeated.", show_default="all that were run")
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option(metavar="M", help="May be repeated.", show_default="all that were run")
    ] = None,
) -> None:
    """Draw the runs in a directory as PNG and SVG, and print the names of the files."""
    runs = chosen(records.load(directory), problem or (), method or ())
    _print_all(pictures.write(runs, directory if out is None else out))


def _refuse_with_figure(figure: str, given: Mapping[str, object]) -> None:
    """Refuse options of runs beside a figure that has none."""
    for option, value in given.items():
        if value:
            raise InvalidInput(f"{option} has no meaning with --figure {figure}, which makes no runs. Leave it out.")


def _print_all(paths: Iterable[Path]) -> None:
    for path in paths:
        print(path)


def cells(
    chosen_problems: Sequence[str], chosen_methods: Sequence[str], seeds: range | None, *, learn: bool
) -> list[runner.Cell]:
    """Return the cells to run, cheap ones first; an unknown name is an error before anything runs.

    Args:
        chosen_problems: Names or import paths.
        chosen_methods: Names or import paths.
        seeds: The seeds; None for the usual ones of each problem.
        learn: Whether methods learn the GP of the GP samples.
    """
    for name in chosen_methods:
        methods.method(name)
    return runner.cheapest_first(
        runner.Cell(problem, method, seed, learn)
        for problem in dict.fromkeys(chosen_problems)
        for method in dict.fromkeys(chosen_methods)
        for seed in (seeds or range(_SEEDS_OF_SLOW_PROBLEMS.get(problem, _SEEDS)))
    )


def parse_seeds(text: str) -> range:
    """Return the seeds that N or A:B stands for."""
    first, _, last = text.rpartition(":")
    try:
        seeds = range(int(first or 0), int(last))
    except ValueError:
        seeds = range(0)
    if not seeds or seeds[0] < 0:
        raise InvalidInput(
            f"--seeds {text} names no seeds; it must be N, for 0 to N-1, or A:B with 0 <= A < B. Try --seeds 20."
        )
    return seeds


def chosen(runs: records.Runs, chosen_problems: Sequence[str], chosen_methods: Sequence[str]) -> records.Runs:
    """Return the runs of these problems and methods, or of all if none is named; refuse a name without runs."""
    _known("--problem", chosen_problems, runs)
    _known("--method", chosen_methods, (method for by_method in runs.values() for method in by_method))
    kept = {
        problem: {m: by_seed for m, by_seed in by_method.items() if m in chosen_methods or not chosen_methods}
        for problem, by_method in runs.items()
        if problem in chosen_problems or not chosen_problems
    }
    some = {problem: by_method for problem, by_method in kept.items() if by_method}
    if not some:
        raise InvalidInput(
            f"There are no runs of {', '.join(chosen_methods)} on {', '.join(chosen_problems)}. Name a --problem and a "
            "--method that were run together, or neither."
        )
    return some


def _known(option: str, names: Iterable[str], run: Iterable[str]) -> None:
    there = sorted(set(run))
    for name in names:
        if name not in there:
            raise InvalidInput(f"{option} {name} was not run; it must be one of {', '.join(there)}.")


def _run_missing(wanted: Sequence[runner.Cell], out: Path, jobs: int) -> None:
    """Run what is missing, and exit with a status other than 0 if that does not succeed."""
    left = runner.missing(wanted, out)
    _say(f"{len(wanted) - len(left)} of {len(wanted)} runs are done, {len(left)} are left.")
    try:
        failures = _run(left, out, jobs)
    except KeyboardInterrupt:
        for worker in multiprocessing.active_children():
            worker.kill()  # running cells are not waited for
        _say("Stopped. Run the same command to resume.")
        raise typer.Exit(130) from None
    except BrokenProcessPool:
        _say("A worker was killed, perhaps because memory ran out. Run the same command to resume.")
        raise typer.Exit(1) from None
    if failures:
        _say(f"{failures} of {len(left)} runs failed; tracebacks above. Run the same command to try again.")
        raise typer.Exit(1)


def _run(left: Sequence[runner.Cell], out: Path, jobs: int) -> int:
    """Run the cells and return how many failed; those with a budget in seconds run last, one at a time."""
    timed = {name for name in dict.fromkeys(cell.problem for cell in left) if _budget_is_time(name)}
    if timed and jobs > 1:
        _say(
            f"Runs of {', '.join(sorted(timed))} have a budget in seconds. They run last and one at a time: two at "
            "once would slow each other down."
        )
    with progress.shown(left, jobs=jobs, timed=timed) as report:
        others = [cell for cell in left if cell.problem not in timed]
        failures = runner.run(others, out, jobs=jobs, report=report)
        alone = [cell for cell in left if cell.problem in timed]
        return failures + runner.run(alone, out, jobs=1, report=report)


def _budget_is_time(problem: str) -> bool:
    return methods.problem(problem)(0).budget.unit == "seconds"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
