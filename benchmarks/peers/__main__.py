"""Run every method on the same problems, and print the results.

    python -m benchmarks.peers run --out peers-results
    python -m benchmarks.peers run --out peers-results --problem currin --seeds 3
    python -m benchmarks.peers table peers-results
    python -m benchmarks.peers paired peers-results --against benchmarks.peers.optuna:GP
    python -m benchmarks.peers csv peers-results

`boca bench run`, `boca bench table` and `boca bench figures` take the same names and the same directory.  A run that is
stopped resumes.  Slow methods get fewer seeds; they are the first ones of the others, so that pairs are
pairs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers import compared, problems
from boca.bench import records, runner

SEEDS = 20

# method -> the largest number of seeds; None is all that are asked for
METHODS: dict[str, int | None] = {
    "boca": None,
    "boca-paper": 5,
    "gp-ei": 5,
    "random": None,
    "benchmarks.peers.optuna:TPE": None,
    "benchmarks.peers.optuna:GP": None,
    "benchmarks.peers.smac:Hyperband": None,
    "benchmarks.peers.smac:MultiFidelity": 5,
    "benchmarks.peers.botorch:QLogNEI": None,
    "benchmarks.peers.botorch:QMFMES": 5,
    "benchmarks.peers.botorch:qmfkg_few": 2,
}

PROBLEMS = (
    *("gp-smooth", "gp-rough", "currin", "hartmann3", "hartmann6", "borehole", "branin"),
    *(f"benchmarks.peers.problems:{p.__name__}" for p in problems.ALL),
)


def cells(chosen_problems: Sequence[str], chosen_methods: Sequence[str], seeds: int) -> list[runner.Cell]:
    """Return the runs of a comparison, method by method, so that the quick ones are all there first.

    Nobody is handed the process that a GP sample was drawn from: the peers could not use it.
    """
    return [
        runner.Cell(problem, method, seed, learn=True)
        for method in sorted(chosen_methods, key=_slow_ones_last)
        for problem in chosen_problems
        for seed in range(_limited(method, seeds))
    ]


def _limited(method: str, seeds: int) -> int:
    limit = METHODS.get(method)
    return seeds if limit is None else min(seeds, limit)


def _slow_ones_last(method: str) -> float:
    limit = METHODS.get(method)
    return 0.0 if limit is None else 1.0 / limit


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says and return how many runs failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description="Compare with other optimizers.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run what is missing")
    run.add_argument("--out", type=Path, required=True, metavar="DIR")
    run.add_argument("--problem", action="append", metavar="P", help="a name or an import path; may be repeated")
    run.add_argument("--method", action="append", metavar="M", help="a name or an import path; may be repeated")
    run.add_argument(
        "--seeds", type=_positive, default=SEEDS, metavar="N", help="0..N-1, at most (default: %(default)s)"
    )
    run.add_argument("--jobs", type=_positive, default=1, metavar="N", help="worker processes of one thread each")
    table = commands.add_parser("table", help="print the runs in a directory as Markdown")
    table.add_argument("directory", type=Path, metavar="DIR")
    paired = commands.add_parser("paired", help="print how two methods did on the same seeds, a row per problem")
    paired.add_argument("directory", type=Path, metavar="DIR")
    paired.add_argument("--method", default="boca", metavar="M", help="below zero it is better (default: %(default)s)")
    paired.add_argument("--against", required=True, metavar="M")
    csv = commands.add_parser("csv", help="print the regrets of every run in a directory, a row each")
    csv.add_argument("directory", type=Path, metavar="DIR")
    given = parser.parse_args(arguments)
    if given.command == "csv":
        print(compared.csv(records.load(given.directory)))
        return 0
    if given.command != "run":
        runs = compared.shared(records.load(given.directory))
        is_table = given.command == "table"
        print(compared.markdown(runs) if is_table else compared.paired(runs, given.method, given.against))
        return 0
    wanted = cells(given.problem or PROBLEMS, given.method or tuple(METHODS), given.seeds)
    return runner.run(wanted, given.out, jobs=given.jobs, report=_report)


def _report(cell: runner.Cell, outcome: records.Record | str) -> None:
    what = f"{cell.problem} {cell.method} seed {cell.seed}"
    if isinstance(outcome, str):
        print(f"{what} failed:\n{outcome}", file=sys.stderr, flush=True)
        return
    final = records.regrets(outcome)[-1]
    print(
        f"{what}: regret {'-' if final is None else f'{final:.2g}'}, {outcome['seconds']:.0f} s",
        file=sys.stderr,
        flush=True,
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a positive integer; got {text}")
    return number


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
