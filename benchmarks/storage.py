"""Measure what a storage costs: trials a second beside plain sqlite3, and an ask on SQLite beside one in memory.

    python benchmarks/storage.py [--writers 1 16] [--trials 300] [--repeat 3] [--results 1000] [--asks 5]

A trial is two durable transactions, a claim and a result.  The plain side does the very same ones, statement by
statement, in the same tables with the same settings, in the same run: what is left is the price of SQLAlchemy and of
our own code.  Both sides are measured in turn within every repeat, so that a machine that slows down slows them both;
medians are printed.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: it reads them once

import argparse  # noqa: E402
import json  # noqa: E402
import multiprocessing  # noqa: E402
import platform  # noqa: E402
import sqlite3  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import uuid  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import sqlalchemy  # noqa: E402

import boca  # noqa: E402
from boca.domain.reasons import Reasons  # noqa: E402
from boca.study import report_buffer  # noqa: E402
from boca.study.storage import Lease, Storage  # noqa: E402
from boca.study.storage.sql import Database  # noqa: E402

WRITERS = (1, 16)
FORKS = multiprocessing.get_context("forkserver")


def main() -> None:
    parser = argparse.ArgumentParser(description="The price of a storage.")
    parser.add_argument("--writers", type=int, nargs="+", default=WRITERS, metavar="W", help="processes that write")
    parser.add_argument("--trials", type=int, default=300, metavar="N", help="trials of all of them (default: 300)")
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="R", help="runs, of which medians are taken (default: 3)"
    )
    parser.add_argument(
        "--results", type=int, default=1000, metavar="N", help="results that an ask knows (default: 1000)"
    )
    parser.add_argument("--asks", type=int, default=5, metavar="A", help="asks a side (default: 5)")
    parser.add_argument("--reports", type=int, default=200, metavar="N", help="reports a side (default: 200)")
    options = parser.parse_args()
    versions = (
        f"Python {platform.python_version()}, SQLAlchemy {sqlalchemy.__version__}, SQLite {sqlite3.sqlite_version}"
    )
    print(f"{versions}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start.\n")
    print(throughput(options.writers, options.trials, options.repeat))
    print(asks(options.results, options.asks))
    print(reports(options.reports))


# Trials a second ------------------------------------------------------------------------------------------------------

DRAFT = boca.Trial(
    number=0,
    x={"a": 0.123456789012345, "b": 17, "c": "option"},
    planned={"n": 0.98765432109876},
    cost=1.0,
    reasons=Reasons.of({"reason": "A uniform random point at the target fidelity.", "phase": "start"}),
    seen=-1,
)


def throughput(writers: list[int], trials: int, repeat: int) -> str:
    """Return a table of trials a second."""
    lines = ["| writers | boca, trials/s | sqlite3, trials/s | ratio |", "| ---: | ---: | ---: | ---: |"]
    for count in writers:
        rates: dict[str, list[float]] = {"boca": [], "sqlite3": []}
        for _ in range(repeat):
            for side, work in (("boca", ours), ("sqlite3", plain)):
                rates[side].append(rate(work, count, trials // count))
        ours_median, plain_median = (statistics.median(found) for found in rates.values())
        lines.append(f"| {count} | {ours_median:.0f} | {plain_median:.0f} | {ours_median / plain_median:.2f} |")
        print(f"{count} writers done", file=sys.stderr, flush=True)
    return "\n".join([*lines, ""])


def rate(work: Callable[[str, int], None], writers: int, trials: int) -> float:
    """Return the trials per second of some processes that write some trials each, from the first to the last."""
    with tempfile.TemporaryDirectory() as directory:
        path = str(Path(directory, "study.db"))
        with opened(path):
            pass  # the tables exist before a clock starts
        gate = FORKS.Barrier(writers + 1)
        with ProcessPoolExecutor(writers, FORKS, _keep, (gate,)) as pool:
            futures = [pool.submit(_begin, work, path, trials) for _ in range(writers)]
            gate.wait()
            began = time.perf_counter()
            for future in futures:
                future.result()
            took = time.perf_counter() - began
        with opened(path) as study:
            stored = study.read().history
            assert [t.number for t in stored] == list(range(writers * trials)), "a trial was lost"
            assert all(t.state == "complete" for t in stored), "a result was lost"
    return writers * trials / took


_gate: Any = None


def _keep(gate: Any) -> None:
    global _gate
    _gate = gate


def _begin(work: Callable[[str, int], None], path: str, trials: int) -> None:
    _gate.wait()
    work(path, trials)


@contextmanager
def opened(path: str) -> Iterator[Storage]:
    database = Database(f"sqlite:///{path}")
    database.create("study", {})
    yield database.study("study")
    database.close()


def ours(path: str, trials: int) -> None:
    """Claim and finish through the storage; another process that claims meanwhile does no harm."""
    with opened(path) as study:
        lease = Lease()
        for _ in range(trials):
            trial = study.claim(DRAFT, affords=lambda history: True, lease=lease)
            assert trial is not None
            study.finish(replace(trial, seconds=1.0).completed(0.5))


def plain(path: str, trials: int) -> None:
    """Do the same transactions with nothing between them and the database."""
    connection = sqlite3.connect(path, timeout=120.0, isolation_level=None)
    for setting in ("busy_timeout = 120000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    lease = Lease()
    owner, until = json.dumps(lease.owner.to_json()), time.time() + 60.0
    x, z, why = (json.dumps(part) for part in (DRAFT.x, DRAFT.z, DRAFT.why))
    seen = 0
    for _ in range(trials):
        connection.execute("BEGIN IMMEDIATE")
        number, event = connection.execute("SELECT trials, event FROM boca_studies WHERE id = 1").fetchone()
        _ = connection.execute("SELECT * FROM boca_trials WHERE study = 1 AND event > ?", (seen,)).fetchall()
        seen = event
        connection.execute(
            "INSERT INTO boca_trials (study, number, event, x, z, cost, phase, why, state, overhead, asked, attempt,"
            " token, owner, driver, until, began)"
            " VALUES (1, ?, ?, ?, ?, 1.0, 'start', ?, 'running', 0.0, ?, 0, ?, ?, ?, ?, ?)",
            (number, event + 1, x, z, why, event + 1, uuid.uuid4().hex, owner, lease.driver, until, time.time()),
        )
        connection.execute("UPDATE boca_studies SET event = ?, trials = ? WHERE id = 1", (event + 1, number + 1))
        connection.execute("COMMIT")

        connection.execute("BEGIN IMMEDIATE")
        (event,) = connection.execute("SELECT event FROM boca_studies WHERE id = 1").fetchone()
        connection.execute("SELECT * FROM boca_trials WHERE study = 1 AND number = ?", (number,)).fetchone()
        connection.execute(
            "UPDATE boca_trials SET event = ?, state = 'complete', value = 0.5, seconds = 1.0, told = ?, token = ?,"
            " owner = NULL, driver = NULL, until = NULL WHERE study = 1 AND number = ?",
            (event + 1, event + 1, uuid.uuid4().hex, number),
        )
        connection.execute("UPDATE boca_studies SET event = ? WHERE id = 1", (event + 1,))
        connection.execute("COMMIT")
    connection.close()


# An ask ---------------------------------------------------------------------------------------------------------------


def asks(n: int, count: int) -> str:
    """Return a table of the seconds of an ask of `Boca()` that knows n results."""
    bench = boca.problems.get("hartmann3")
    with tempfile.TemporaryDirectory() as directory:
        url = f"sqlite:///{Path(directory, 'study.db')}"
        sides = {"memory": optimizer(bench, None), "sqlite": optimizer(bench, url)}
        for side in sides.values():
            fill(side, bench, n)
        seconds: dict[str, list[float]] = {"memory": [], "sqlite": [], "opened": []}
        for k in range(count + 1):
            for name, side in sides.items():
                took, trial = timed(side.ask)
                side.tell(trial, bench.value(trial.x, trial.z))
                if k:  # the first one loads what an import left for later
                    seconds[name].append(took)
        for _ in range(count):
            took, trial = timed(lambda: optimizer(bench, url).ask())
            seconds["opened"].append(took)
            sides["sqlite"].tell(trial.number, bench.value(trial.x, trial.z))
    memory, sqlite, opened_again = (statistics.median(found) for found in seconds.values())
    return "\n".join(
        [
            f"| `Boca()`, {n} results | seconds | ratio |",
            "| --- | ---: | ---: |",
            f"| ask in memory | {memory:.3f} | 1.00 |",
            f"| ask on SQLite | {sqlite:.3f} | {sqlite / memory:.2f} |",
            f"| open the study and ask | {opened_again:.3f} | {opened_again / memory:.2f} |",
            "",
        ]
    )


def optimizer(bench: Any, url: str | None) -> boca.Optimizer:
    return boca.Optimizer(bench.problem, budget=None, seed=0, storage=url)


def fill(side: boca.Optimizer, bench: Any, n: int) -> None:
    """Store n results as a run leaves them: a model chose each, and its reasons are there."""
    rng = np.random.default_rng(0)
    space, fidelity = bench.problem.space, bench.problem.fidelity
    for _ in range(60):  # the first ones are added, so that a model can choose one with all its reasons
        x, z = space.from_unit(rng.random(len(space))), fidelity.from_unit(rng.random(len(fidelity)) ** 2)
        side.add(x, z, bench.observe(x, z, rng))
    chosen = side.ask()
    assert chosen is not None
    assert chosen.phase == "model", "this measures something else than it says"
    side.tell(chosen, bench.value(chosen.x, chosen.z))
    why = {key: value for key, value in chosen.why.items() if key != "fit"}
    for k in range(61, n):
        x, z = space.from_unit(rng.random(len(space))), fidelity.from_unit(rng.random(len(fidelity)) ** 2)
        record = {**chosen.why["fit"], "results": k, "iteration": k - 60} if k % 25 == 0 else None
        decided = Reasons.of(why | ({"fit": record, "refit": True} if record else {"refit": False}))
        seen = side.storage.read().event
        trial = side.storage.claim(boca.Trial(k, x, z, bench.problem.cost(z), decided, seen=seen))
        assert trial is not None
        side.storage.finish(replace(trial, seconds=1.0).completed(bench.observe(x, z, rng)))


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = action()
    return time.perf_counter() - began, result


# Reports --------------------------------------------------------------------------------------------------------------


def reports(count: int) -> str:
    """Return a table of milliseconds for a report that is durable when it returns, in runs of 50 steps."""
    problem = boca.Problem(
        boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(epochs=boca.Steps(1, 50)), cost=lambda z: float(z["epochs"])
    )
    lines = ["", f"| {count} reports in | p50 ms | p95 ms |", "| --- | ---: | ---: |"]
    interval, report_buffer.INTERVAL = report_buffer.INTERVAL, 0.0  # every one waits for the storage
    with tempfile.TemporaryDirectory() as directory:
        for name, url in (("memory", None), ("SQLite", f"sqlite:///{Path(directory, 'study.db')}")):
            settings: dict[str, Any] = {"budget": None, "strategy": boca.RandomSearch(), "seed": 0}
            opt = boca.Optimizer(problem, storage=url, name="reports", **settings)
            took: list[float] = []
            while len(took) < count:
                trial = opt.ask()
                assert trial is not None
                for step in range(1, 51):
                    began = time.perf_counter()
                    opt.report(trial, step, 1.0 / step)
                    took.append(1e3 * (time.perf_counter() - began))
                opt.tell(trial, None)
            low, high = np.percentile(took, [50.0, 95.0])
            lines.append(f"| {name} | {low:.2f} | {high:.2f} |")
            if url is not None:
                opt.storage.close()
    report_buffer.INTERVAL = interval
    return "\n".join(lines)


if __name__ == "__main__":
    main()
