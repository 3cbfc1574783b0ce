"""The command: `run` fills a directory with runs, `table` prints what is in it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from boca import problems
from boca.bench import methods, runner, table
from boca.errors import BocaError

_SEEDS = 20
_FEW = {"hartmann6": 4, "borehole": 4}  # hundreds of queries in many dimensions: a run takes minutes


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options) if options.command == "run" else _table(options)
    except BocaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m boca.bench", description="Compare methods at equal capital.")
    commands = parser.add_subparsers(dest="command", required=True)
    path = "or an import path package.module:name; may be repeated"
    run = commands.add_parser("run", help="run what is missing; stop and start it as you like")
    run.add_argument("--problem", action="append", metavar="P", help=f"{', '.join(problems.names())}, {path}")
    run.add_argument("--method", action="append", metavar="M", help=f"{', '.join(methods.METHODS)}, {path}")
    run.add_argument("--seeds", type=_seeds, metavar="N|A:B", help="0..N-1 or A..B-1 (default: 20, large problems 4)")
    run.add_argument("--jobs", type=_jobs, default=2, help="worker processes of one thread each (default: 2)")
    run.add_argument("--out", type=Path, default=Path("bench-results"), metavar="DIR")
    run.add_argument("--learn", action="store_true", help="do not hand the true GP of gp-smooth and gp-rough over")
    show = commands.add_parser("table", help="print the runs in a directory as Markdown")
    show.add_argument("directory", type=Path, metavar="DIR")
    show.add_argument("--reference", default="boca", metavar="M", help="whom the others are paired with")
    return parser


def _seeds(text: str) -> range:
    first, _, last = text.rpartition(":")
    try:
        seeds = range(int(first or 0), int(last))
    except ValueError:
        seeds = range(0)
    if not seeds or seeds[0] < 0:
        raise argparse.ArgumentTypeError(f"must be a positive number or A:B with 0 <= A < B; got {text!r}")
    return seeds


def _jobs(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a positive number; got {text!r}")
    return int(text)


def cells(
    chosen_problems: Sequence[str], chosen_methods: Sequence[str], seeds: range | None, *, learn: bool
) -> list[runner.Cell]:
    """Return all runs that were asked for, the cheap ones first; an unknown name is an error before anything runs."""
    for name in chosen_methods:
        methods.method(name)
    return runner.cheapest_first(
        runner.Cell(problem, method, seed, learn)
        for problem in dict.fromkeys(chosen_problems)
        for method in dict.fromkeys(chosen_methods)
        for seed in (seeds or range(_FEW.get(problem, _SEEDS)))
    )


def _run(options: argparse.Namespace) -> int:
    wanted = cells(
        options.problem or problems.names(),
        options.method or methods.DEFAULT_METHODS,
        options.seeds,
        learn=options.learn,
    )
    left = runner.missing(wanted, options.out)
    print(f"{len(wanted) - len(left)} of {len(wanted)} runs are done, {len(left)} to go.", file=sys.stderr)
    progress = _Progress(left, options.jobs)
    try:
        failures = runner.run(left, options.out, jobs=options.jobs, report=progress.report)
    except KeyboardInterrupt:
        print("Stopped. The same command goes on with what is missing.", file=sys.stderr, flush=True)
        os._exit(130)  # no waiting for cells under way: workers end with their parent
    except BrokenProcessPool:
        print("A worker was killed, for want of memory perhaps. The same command goes on.", file=sys.stderr)
        return 1
    if failures:
        print(f"{failures} runs failed; see above.", file=sys.stderr)
    return 1 if failures else 0


class _Progress:
    """Say what came of every run and how long the rest may take."""

    def __init__(self, cells: Sequence[runner.Cell], jobs: int) -> None:
        self._jobs = jobs
        self._total = len(cells)
        self._left = list(cells)
        self._effort: dict[tuple[str, str], float] = {}
        for cell in cells:
            if (cell.problem, cell.method) not in self._effort:
                self._effort[cell.problem, cell.method] = runner.effort(cell)
        self._seconds: dict[tuple[str, str], list[float]] = {}

    def report(self, cell: runner.Cell, outcome: runner.Record | str) -> None:
        self._left.remove(cell)
        head = f"[{self._total - len(self._left)}/{self._total}] {cell.problem} {cell.method} seed {cell.seed}"
        if isinstance(outcome, str):
            print(f"{head} FAILED\n{outcome}", file=sys.stderr, flush=True)
            return
        self._seconds.setdefault((cell.problem, cell.method), []).append(outcome["seconds"])
        final = outcome["regret"][-1]
        found = "no query at the target" if final is None else f"regret {final:.2g}"
        took = f"{outcome['seconds']:.1f} s"
        print(f"{head}: {found}, {took}; about {_duration(self._time_left())} left", file=sys.stderr, flush=True)

    def _time_left(self) -> float:
        """Return seconds: by the same method on the same problem where there is one, else in proportion to effort."""
        means = {kind: sum(s) / len(s) for kind, s in self._seconds.items()}
        rate = sum(means.values()) / sum(self._effort[kind] for kind in means)
        kinds = ((cell.problem, cell.method) for cell in self._left)
        return sum(means.get(kind, rate * self._effort[kind]) for kind in kinds) / self._jobs


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60.0)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"


def _table(options: argparse.Namespace) -> int:
    print(table.markdown(table.load(options.directory), reference=options.reference))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
