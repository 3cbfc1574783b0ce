"""Run cells, one problem with one method and one seed each, and keep every finished one as a line of JSON.

Only the parent process writes, a whole line at a time, and the line is on the disk before the next cell counts as
done: whatever is killed, the same command goes on with the cells that are missing.  One process a directory.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import boca
from boca.bench import methods
from boca.errors import InvalidInput
from boca.optimizer import Optimizer
from boca.problems import Benchmark
from boca.trial import Trial, sign

SHARES = (0.25, 0.5, 0.75, 1.0)

# The second number of the noise stream.  Trial k draws from [seed, k], so it must lie beyond any trial number.
_NOISE = 86_028_121

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")

Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Cell:
    """One run: a problem, a method, and the seed that both and the noise share."""

    problem: str
    method: str
    seed: int
    learn: bool = False


@dataclass(frozen=True)
class Step:
    """One query of a run; `value` is f without noise, and None away from the target."""

    cost: float
    spent: float
    at_target: bool
    value: float | None
    overhead: float


# One run ----------------------------------------------------------------------------------------------------------


def run_cell(cell: Cell) -> Record:
    """Run one cell to the end of its budget and return what is kept of it.

    The noise comes from a stream of its own, the same for every method: seeds are paired.
    """
    began = time.perf_counter()
    benchmark = methods.problem(cell.problem)(cell.seed)
    strategy = methods.method(cell.method)(benchmark, cell.learn)
    optimizer = Optimizer(benchmark.problem, budget=benchmark.budget, strategy=strategy, seed=cell.seed)
    noise = np.random.default_rng([cell.seed, _NOISE])
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, benchmark.observe(trial.x, trial.z, noise))
    steps = trace(benchmark, optimizer.history)
    recommendation = optimizer.recommend()
    return {
        "problem": cell.problem,
        "method": cell.method,
        "seed": cell.seed,
        "learn": cell.learn,
        "knows_gp": getattr(strategy, "hyperparameters", None) is not None,
        "strategy": repr(strategy),
        "version": boca.__version__,
        "capital": capital(benchmark),
        "optimum": benchmark.optimum,
        "regret": simple_regret(benchmark, steps),
        "recommendation_regret": None if recommendation is None else regret(benchmark, recommendation.x),
        "seconds": time.perf_counter() - began,
        "trace": {
            "cost": [s.cost for s in steps],
            "spent": [s.spent for s in steps],
            "at_target": [s.at_target for s in steps],
            "value": [s.value for s in steps],
            "overhead": [s.overhead for s in steps],
        },
    }


def trace(benchmark: Benchmark, trials: Sequence[Trial]) -> list[Step]:
    """Return what a regret needs to know of every query, in order."""
    at_target = [benchmark.problem.is_target(t.z) for t in trials]
    return [
        Step(t.cost, spent, target, benchmark.value(t.x) if target else None, t.overhead)
        for t, spent, target in zip(trials, accumulate(t.cost for t in trials), at_target, strict=True)
    ]


def capital(benchmark: Benchmark) -> float:
    """Return the budget in cost units."""
    unit = benchmark.problem.target_cost if benchmark.budget.unit == "targets" else 1.0
    return benchmark.budget.amount * unit


def simple_regret(benchmark: Benchmark, steps: Sequence[Step]) -> list[float | None]:
    """Return the regret of the best query at the target within each share of the capital; None before the first.

    Cheaper fidelities do not count, however good: nobody asked for them.
    """
    total = capital(benchmark)
    regrets: list[float | None] = []
    for share in SHARES:
        limit = share * total * (1.0 + 1e-9)  # sums of costs may miss a share by rounding
        found = [_gap(benchmark, s.value) for s in steps if s.value is not None and s.spent <= limit]
        regrets.append(min(found, default=None))
    return regrets


def regret(benchmark: Benchmark, x: dict[str, Any]) -> float:
    """Return how far f(x) is from the optimum."""
    return _gap(benchmark, benchmark.value(x))


def _gap(benchmark: Benchmark, value: float) -> float:
    """Return the distance from the optimum; below zero there is only the rounding of the optimum itself."""
    optimum = math.nan if benchmark.optimum is None else benchmark.optimum
    return max(0.0, sign(benchmark.problem.direction) * (optimum - value))


# Files ------------------------------------------------------------------------------------------------------------


def path_of(directory: Path, problem: str, method: str) -> Path:
    """Return the file of all runs of one method on one problem."""
    return directory / f"{problem}.{method}.jsonl".replace(":", "-")


def read(path: Path) -> list[Record]:
    """Return the finished runs in a file; a last line without its end is no finished run."""
    if not path.exists():
        return []
    records = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        if not line.endswith(b"\n"):
            continue
        try:
            records.append(json.loads(line))
        except ValueError as error:
            raise InvalidInput(f"Line {number} of {path} is not JSON ({error}): delete that line.") from error
    return records


def cut_torn_line(path: Path) -> None:
    """Remove a last line that a killed process did not finish, so that the next one starts on a line of its own."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        whole = file.read().rfind(b"\n") + 1
        file.truncate(whole)


def append(path: Path, record: Record) -> None:
    """Write one line and return when it is on the disk."""
    with path.open("ab") as file:
        file.write(json.dumps(record, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def missing(cells: Iterable[Cell], directory: Path) -> list[Cell]:
    """Return the cells without a finished run in the directory; torn lines there are cut."""
    done: dict[Path, set[int]] = {}
    left = []
    for cell in cells:
        path = path_of(directory, cell.problem, cell.method)
        if path not in done:
            cut_torn_line(path)
            records = read(path)
            if any(record["learn"] != cell.learn for record in records):
                raise InvalidInput(
                    f"{path} must hold runs with --learn or runs without, not both: choose another --out directory."
                )
            done[path] = {int(record["seed"]) for record in records}
        if cell.seed not in done[path]:
            left.append(cell)
    return left


# Many runs --------------------------------------------------------------------------------------------------------


def effort(cell: Cell) -> float:
    """Return roughly how long a cell takes, in no unit: targets times dimensions times the method's own factor."""
    benchmark = methods.problem(cell.problem)(0)
    size = len(benchmark.problem.space) + len(benchmark.problem.fidelity)
    targets = capital(benchmark) / benchmark.problem.target_cost
    return float(targets**1.5 * size * methods.EFFORT.get(cell.method, 1.0))


def cheapest_first(cells: Iterable[Cell]) -> list[Cell]:
    """Order cells so that the first tables are there soon."""
    known: dict[tuple[str, str], float] = {}
    given = list(cells)
    for cell in given:
        if (cell.problem, cell.method) not in known:
            known[cell.problem, cell.method] = effort(cell)
    return sorted(given, key=lambda c: known[c.problem, c.method])


def run(
    cells: Sequence[Cell],
    directory: Path,
    *,
    jobs: int,
    report: Callable[[Cell, Record | str], None] = lambda cell, outcome: None,
) -> int:
    """Run the cells that are missing in the directory and return how many failed.

    `jobs=0` runs them in this process, with as many threads as its linear algebra likes; otherwise every worker
    has one thread.  A cell that raises is reported as its traceback and the others go on.
    """
    directory.mkdir(parents=True, exist_ok=True)
    left = missing(cells, directory)
    failures = 0
    for cell, outcome in _here(left) if jobs == 0 else _in_workers(left, jobs):
        if isinstance(outcome, str):
            failures += 1
        else:
            append(path_of(directory, cell.problem, cell.method), outcome)
        report(cell, outcome)
    return failures


def _attempt(cell: Cell) -> Record | str:
    """Return the record of a cell, or the traceback as text: exceptions of others do not always travel."""
    try:
        return run_cell(cell)
    except Exception:
        return traceback.format_exc()


def _here(cells: Sequence[Cell]) -> Iterator[tuple[Cell, Record | str]]:
    return ((cell, _attempt(cell)) for cell in cells)


def _in_workers(cells: Sequence[Cell], jobs: int) -> Iterator[tuple[Cell, Record | str]]:
    if not cells:
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(
            min(jobs, len(cells)), mp_context=multiprocessing.get_context("spawn"), initializer=_follow_parent
        )
        try:
            futures = {pool.submit(_attempt, cell): cell for cell in cells}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let workers that start now have one thread: linear algebra reads these variables when it is loaded."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _follow_parent() -> None:
    """End this worker when its parent is gone, however that died; leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
