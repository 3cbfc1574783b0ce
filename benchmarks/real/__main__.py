"""Run methods on real tuning tasks, and print the results.

    python -m benchmarks.real run --out real-results                            # the half to tune on, both budgets
    python -m benchmarks.real run --out real-results --half check --targets 15 --seeds 5
    python -m benchmarks.real run --out real-results --task lcbench_34539 --method boca --method my.module:Mine
    python -m benchmarks.real table real-results
    python -m benchmarks.real csv real-results > benchmarks/real/runs.csv
    python -m benchmarks.real table benchmarks/real/runs.csv --against benchmarks.peers.optuna:GP
    python -m benchmarks.real optima --task lcbench_34539
    python -m benchmarks.real run --out curve-results --curves --half check --targets 20 --seeds 3
    python -m benchmarks.real reached curve-results/20
    python -m benchmarks.real stops --half tune --seeds 2

A method is a name of boca or an import path, as in `boca bench`.  A run that was stopped resumes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.real import compared, loop, made, optima, reached, rows, stops, tasks
from boca.bench import progress, runner

SEEDS = 5
TARGETS = (15.0, 50.0)

# Methods whose questions do not depend on the budget: their runs of 15 targets are the beginnings of those of 50.
RIVALS = (
    "benchmarks.real.rivals:HEBO",
    "benchmarks.real.rivals:DEHB",
    "benchmarks.real.rivals:Ax",
    "benchmarks.peers.smac:MultiFidelity",
    "benchmarks.peers.botorch:QLogNEI",
)
ANYTIME = (
    "random",
    "benchmarks.real.one_epoch:one_epoch",
    "benchmarks.peers.optuna:TPE",
    "benchmarks.peers.optuna:GP",
    "benchmarks.real.pruners:halving",
    "benchmarks.real.pruners:hyperband",
    "benchmarks.real.pruners:median",
    *RIVALS,
)
CURVE_METHODS = (
    "boca",
    "benchmarks.real.curves:boca",
    "benchmarks.real.one_epoch:one_epoch",
    "benchmarks.real.pruners:halving",
    "benchmarks.real.pruners:hyperband",
    "benchmarks.real.pruners:median",
    "benchmarks.real.curves:random_stops",
    "benchmarks.real.curves:boca_unsaved",
)
OURS = ("boca", "curves:boca", "curves:boca_unsaved", "curves:random_stops")
METHODS = ("boca", *(method for method in ANYTIME if method not in RIVALS))


def cells(names: Sequence[str], methods: Sequence[str], seeds: int) -> list[runner.Cell]:
    """Return the runs of a comparison, seed by seed, so that a part of them is a comparison too."""
    return [
        runner.Cell(tasks.PATH + name, method, seed) for seed in range(seeds) for name in names for method in methods
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says and return how many runs failed."""
    given = _parser().parse_args(arguments)
    if given.command == "run":
        return _run(given)
    if given.command == "optima":
        names = given.task or tasks.OF_YAHPO
        optima.store(names, lambda line: print(line, flush=True))
        return 0
    if given.command == "stops":
        names = [name for name in tasks.available(_chosen(given)) if name in tasks.CURVES]
        for line in stops.markdown(names, given.seeds):
            print(line, flush=True)
        return 0
    if given.command == "reached":
        print(reached.markdown(given.source, OURS))
        return 0
    if given.command == "make":
        for name in given.name or made.PLANS:
            print(made.make(name, lambda line: print(line, file=sys.stderr, flush=True)))
        return 0
    source: Path = given.source
    found = rows.from_csv(source) if source.is_file() else rows.from_directory(source, ANYTIME)
    chosen = [r for r in found if r.task in _chosen(given)]
    if given.command == "table" and given.family != "live":
        chosen = [r for r in chosen if r.family != "live"]  # another unit and another optimum: a table of their own
    print(rows.to_csv(chosen) if given.command == "csv" else compared.markdown(chosen, rows.short(given.against)))
    return 0


def _run(given: argparse.Namespace) -> int:
    wanted = _chosen(given)
    names = tasks.available(wanted)
    if given.seconds:
        names = tuple(name for name in names if tasks.knows_seconds(name))
    if len(names) < len(wanted):
        absent = ", ".join(name for name in wanted if name not in names)
        print(f"Left out, because their data are not on this machine: {absent}.", file=sys.stderr)
        print("Type export BOCA_DATA=FOLDER, the folder that has real/yahpo and real/taskset.", file=sys.stderr)
    if given.processor:
        time.perf_counter = time.process_time  # the clock of this program and of boca alike
    failures = 0
    budgets = sorted(given.targets or TARGETS, reverse=True)
    for targets in budgets:
        methods = given.method or (CURVE_METHODS if given.curves else METHODS)
        if targets < budgets[0]:
            methods = [method for method in methods if method not in ANYTIME]
        directory = given.out / f"{targets:g}"
        left = runner.missing(cells(names, methods, given.seeds), directory)
        with progress.shown(left, jobs=max(1, given.jobs), timed=()) as report:
            failures += loop.run(
                left, directory, targets=targets, in_seconds=given.seconds, jobs=given.jobs, report=report
            )
    return failures


def _chosen(given: argparse.Namespace) -> tuple[str, ...]:
    if given.task:
        return tuple(map(tasks.known, given.task))
    names = {"tune": tasks.TUNE, "check": tasks.CHECK, "eight": tasks.EIGHT, "all": tasks.NAMES}[given.half]
    names = tuple(name for name in names if not given.curves or name in tasks.CURVES)
    return tuple(name for name in names if given.family is None or name in tasks.FAMILIES[given.family])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.real", description="Compare on real tuning tasks.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing")
    run.add_argument("--out", type=Path, required=True, metavar="DIR")
    run.add_argument("--method", action="append", metavar="M", help="a name or an import path; may be repeated")
    run.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="0..N-1 (default: %(default)s)")
    run.add_argument("--targets", action="append", type=float, metavar="N", help="a budget (default: 15 and 50)")
    run.add_argument("--jobs", type=int, default=0, metavar="N", help="worker processes; 0 is this one (default)")
    run.add_argument("--seconds", action="store_true", help="no declared cost: seconds are measured and are the budget")
    run.add_argument("--processor", action="store_true", help="live tasks: seconds of the processor, with --jobs 0")
    table = commands.add_parser("table", help="print tables in Markdown, from a directory or a CSV")
    table.add_argument("source", type=Path)
    table.add_argument("--against", default="boca", metavar="M", help="the reference (default: %(default)s)")
    csv = commands.add_parser("csv", help="print a row per run, from a directory")
    csv.add_argument("source", type=Path)
    for command in (table, csv):
        command.add_argument(
            "--unit", choices=("cost", "seconds"), default="cost", help="of a directory: shares of what"
        )
    best = commands.add_parser("optima", help="find and store the optima of tasks of YAHPO")
    best.add_argument("--task", action="append", metavar="T")
    make = commands.add_parser("make", help="train the tables of this project again")
    make.add_argument("name", nargs="*", choices=[[], *made.PLANS], metavar="TABLE")
    share = commands.add_parser("reached", help="print where each method has what the best peer has at its end")
    share.add_argument("source", type=Path, help="the folder of one budget")
    stop = commands.add_parser("stops", help="print what stopping the runs of random search saves and loses")
    stop.add_argument("--seeds", type=int, default=SEEDS, metavar="N", help="0..N-1 (default: %(default)s)")
    for command, half in ((run, "tune"), (stop, "tune"), (table, "all"), (csv, "all")):
        command.add_argument("--half", choices=("tune", "check", "eight", "all"), default=half)
        command.add_argument("--curves", action="store_true", help="only the tasks whose trainings pass through steps")
        command.add_argument("--family", choices=tuple(tasks.FAMILIES))
        command.add_argument("--task", action="append", metavar="T", help="a name; may be repeated")
    return parser


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
