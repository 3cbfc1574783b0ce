"""Run cells, one problem with one method and one seed each, and keep a record of every finished one.

Only the parent process writes, so after any kill the same command resumes with the cells that are missing.  Only one
such process may use a directory.
"""

from __future__ import annotations

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
from typing import Any

import numpy as np

import boca
from boca.bench import methods
from boca.bench.records import Record, append, cut_torn_line, make, path_of, read
from boca.domain.errors import InvalidInput
from boca.domain.trial import Trial
from boca.problems import Benchmark
from boca.strategies.base import Strategy, knows_gp
from boca.study.optimizer import Optimizer
from boca.study.recommendation import Recommendation

# The second number of the noise stream.  Trial k draws from [seed, k], so it must exceed any trial number.
_NOISE = 86_028_121

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True)
class Cell:
    """One run: a problem, a method, and the seed that both and the noise share."""

    problem: str
    method: str
    seed: int
    learn: bool = False


# One run ----------------------------------------------------------------------------------------------------------


def run_cell(cell: Cell) -> Record:
    """Run one cell to the end of its budget and return its record.

    The noise comes from a stream of its own, the same for every method: seeds are paired.
    """
    began = time.perf_counter()
    benchmark = methods.problem(cell.problem)(cell.seed)
    strategy = methods.method(cell.method)(benchmark, cell.learn)
    optimizer = Optimizer(benchmark.problem, budget=benchmark.budget, strategy=strategy, seed=cell.seed)
    noise = np.random.default_rng([cell.seed, _NOISE])
    while (trial := optimizer.ask()) is not None:
        asked = time.perf_counter()
        value = benchmark.observe(trial.x, trial.z, noise)
        took = time.perf_counter() - asked if benchmark.seconds is None else benchmark.seconds(trial.x, trial.z)
        optimizer.tell(trial, value, seconds=took)
    ended = record(cell, benchmark, strategy, optimizer.history, optimizer.recommend())
    return {**ended, "seconds": time.perf_counter() - began}


def record(
    cell: Cell, benchmark: Benchmark, strategy: Strategy, trials: Sequence[Trial], recommended: Recommendation | None
) -> Record:
    """Return the record of a run that has ended, without the seconds that it took."""
    return {
        "problem": cell.problem,
        "method": cell.method,
        "seed": cell.seed,
        "learn": cell.learn,
        "knows_gp": knows_gp(strategy),
        "strategy": repr(strategy),
        "version": boca.__version__,
        "direction": benchmark.problem.direction,
        "capital": budget_of(benchmark),  # the budget: see `records` for the name
        "unit": "seconds" if benchmark.budget.unit == "seconds" else "cost",
        "optimum": benchmark.optimum,
        # without an optimum it has no regret, and f may be expensive: it is not run once more
        "recommendation": None if recommended is None or benchmark.optimum is None else benchmark.value(recommended.x),
        "trace": trace(benchmark, trials),
    }


def trace(benchmark: Benchmark, trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """Return the trace of a record, one entry per query."""
    at_target = [benchmark.problem.is_target(t.z) for t in trials]
    paid = [(t.seconds or 0.0) + t.overhead if benchmark.budget.unit == "seconds" else t.cost for t in trials]
    return {
        "cost": [t.cost for t in trials],
        "seconds": [t.seconds for t in trials],
        "overhead": [t.overhead for t in trials],
        "spent": list(accumulate(paid)),
        "at_target": at_target,
        "value": [_noiseless(benchmark, t) if target else None for t, target in zip(trials, at_target, strict=True)],
    }


def _noiseless(benchmark: Benchmark, trial: Trial) -> float | None:
    """Return f(x); without noise it is what the run saw, and is not evaluated twice."""
    return trial.value if benchmark.noise_variance == 0.0 else benchmark.value(trial.x)


def budget_of(benchmark: Benchmark) -> float:
    """Return the budget in cost units, or in seconds if it was given in seconds."""
    unit = benchmark.problem.target_cost if benchmark.budget.unit == "targets" else 1.0
    return benchmark.budget.amount * unit


def missing(cells: Iterable[Cell], directory: Path) -> list[Cell]:
    """Return the cells without a finished run in the directory; lines that were cut off are removed there."""
    done: dict[Path, set[int]] = {}
    left = []
    for cell in cells:
        path = path_of(directory, cell.problem, cell.method)
        if path not in done:
            cut_torn_line(path)
            records = read(path)
            if any(record["learn"] != cell.learn for record in records):
                raise InvalidInput(
                    f"{path} has runs {'without' if cell.learn else 'with'} --learn, and cannot have both. "
                    "Pass another --out."
                )
            done[path] = {int(record["seed"]) for record in records}
        if cell.seed not in done[path]:
            left.append(cell)
    return left


# Many runs --------------------------------------------------------------------------------------------------------


def effort(cell: Cell) -> float:
    """Return roughly how many seconds a cell takes: its budget if that is in seconds, else by size and method."""
    benchmark = methods.problem(cell.problem)(0)
    if benchmark.budget.unit == "seconds" and benchmark.seconds is None:
        return benchmark.budget.amount
    size = len(benchmark.problem.space) + len(benchmark.problem.fidelity)
    unit = _pretended(benchmark) if benchmark.budget.unit == "seconds" else benchmark.problem.target_cost
    targets = budget_of(benchmark) / unit
    return float(0.003 * targets**1.5 * size * methods.EFFORT.get(cell.method, 1.0))


def _pretended(benchmark: Benchmark) -> float:
    """Return the seconds that an evaluation in the middle pretends to take at the target."""
    assert benchmark.seconds is not None
    space = benchmark.problem.space
    middle = space.from_unit(space.snap(np.full((1, len(space)), 0.5))[0])
    return benchmark.seconds(middle, dict(benchmark.problem.target))


def cheapest_first(cells: Iterable[Cell]) -> list[Cell]:
    """Order cells so that the first tables are complete soon."""
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
    one: Callable[[Cell], Record] | None = None,
) -> int:
    """Run the cells that are missing in the directory and return how many failed.

    Args:
        cells: What to run, in this order.
        directory: Where the records are.
        jobs: Worker processes of one thread each; 0 runs the cells in this process, with all threads.
        report: Called with every cell and its record, or its traceback if it raised; the other cells continue.
        one: What runs a cell, `run_cell` by default; it must be picklable if there are worker processes.
    """
    make(directory)
    left = missing(cells, directory)
    failures = 0
    for cell, outcome in _here(left, one or run_cell) if jobs == 0 else _in_workers(left, jobs, one or run_cell):
        if isinstance(outcome, str):
            failures += 1
        else:
            append(path_of(directory, cell.problem, cell.method), outcome)
        report(cell, outcome)
    return failures


def _attempt(one: Callable[[Cell], Record], cell: Cell) -> Record | str:
    """Return the record of a cell, or the traceback as text: not every exception can be pickled."""
    try:
        return one(cell)
    except Exception:
        return traceback.format_exc()


def _here(cells: Sequence[Cell], one: Callable[[Cell], Record]) -> Iterator[tuple[Cell, Record | str]]:
    return ((cell, _attempt(one, cell)) for cell in cells)


def _in_workers(cells: Sequence[Cell], jobs: int, one: Callable[[Cell], Record]) -> Iterator[tuple[Cell, Record | str]]:
    if not cells:
        return
    with _one_thread_each():
        pool = ProcessPoolExecutor(
            min(jobs, len(cells)), mp_context=multiprocessing.get_context("spawn"), initializer=_follow_parent
        )
        try:
            futures = {pool.submit(_attempt, one, cell): cell for cell in cells}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Give workers that start now one thread each: linear algebra reads these variables when it is loaded."""
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
    """End this worker when its parent dies, however it dies; leave Ctrl-C to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    wait([sentinel])
    os._exit(1)
