"""Run cells, one problem with one method and one seed each, and keep a record of every finished one.

Only the parent process writes: whatever is killed, the same command goes on with the cells that are missing.  One
process a directory.
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
from boca.study.optimizer import Optimizer

# The second number of the noise stream.  Trial k draws from [seed, k], so it must lie beyond any trial number.
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
    """Run one cell to the end of its budget and return what is kept of it.

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
    recommendation = optimizer.recommend()
    return {
        "problem": cell.problem,
        "method": cell.method,
        "seed": cell.seed,
        "learn": cell.learn,
        "knows_gp": getattr(strategy, "hyperparameters", None) is not None,
        "strategy": repr(strategy),
        "version": boca.__version__,
        "direction": benchmark.problem.direction,
        "capital": capital(benchmark),
        "unit": "seconds" if benchmark.budget.unit == "seconds" else "cost",
        "optimum": benchmark.optimum,
        # without an optimum there is no regret to compute of it, and f may be dear: it is not run once more
        "recommendation": None
        if recommendation is None or benchmark.optimum is None
        else benchmark.value(recommendation.x),
        "seconds": time.perf_counter() - began,
        "trace": trace(benchmark, optimizer.history),
    }


def trace(benchmark: Benchmark, trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """Return what a record keeps of every query, in order."""
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
    """Return f(x); where there is no noise, it is what the run saw, and need not be paid for twice."""
    return trial.value if benchmark.noise_variance == 0.0 else benchmark.value(trial.x)


def capital(benchmark: Benchmark) -> float:
    """Return the budget in cost units, or in seconds where it is one of seconds."""
    unit = benchmark.problem.target_cost if benchmark.budget.unit == "targets" else 1.0
    return benchmark.budget.amount * unit


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
    """Return roughly how many seconds a cell takes: its budget where that is in seconds, else by size and method."""
    benchmark = methods.problem(cell.problem)(0)
    if benchmark.budget.unit == "seconds" and benchmark.seconds is None:
        return benchmark.budget.amount
    size = len(benchmark.problem.space) + len(benchmark.problem.fidelity)
    unit = benchmark.problem.target_cost if benchmark.seconds is None else _pretended(benchmark)
    targets = capital(benchmark) / unit
    return float(0.003 * targets**1.5 * size * methods.EFFORT.get(cell.method, 1.0))


def _pretended(benchmark: Benchmark) -> float:
    """Return the seconds that an evaluation at the target pretends to take, somewhere in the middle."""
    assert benchmark.seconds is not None
    space = benchmark.problem.space
    middle = space.from_unit(space.snap(np.full((1, len(space)), 0.5))[0])
    return benchmark.seconds(middle, dict(benchmark.problem.target))


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
    make(directory)
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
