"""Finished runs in short: a row per run, read from a directory of records or from a CSV.

    symbol      meaning
    ----------  -----------------------------------------------------------------------------------
    regret      the optimum minus the best of f at the target, divided by the spread of the task
    spread      the optimum minus the median of random points at the target

The optimum of a live task is the best that any run in the directory found, and its median is that of all random points
there: its rows change when runs are added.
"""

from __future__ import annotations

import csv
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from boca.bench import records
from boca.bench.records import Record

SHARES = (0.05, 0.10, 0.25, 0.50, 1.0)


@dataclass(frozen=True)
class Row:
    """One run in short: its regret at every share of its budget, None before the first query at the target."""

    task: str
    family: str
    method: str
    seed: int
    targets: float
    regrets: tuple[float | None, ...]
    queries: int
    choosing: float
    """Seconds to choose all queries."""


def short(name: str) -> str:
    """Return a task or a method without the path of its package."""
    for path in ("benchmarks.real.tasks:", "benchmarks.real.", "benchmarks."):
        name = name.removeprefix(path)
    return name


def row(record: Record, targets: float, capital: float | None = None) -> Row:
    """Return the row of a record; with a capital, of as much of the run as that buys."""
    within = record["capital"] if capital is None else capital
    found = [records.regret(record, records.best_within(record, share * within)) for share in SHARES]
    queries = sum(spent <= within * (1 + 1e-9) for spent in record["trace"]["spent"])
    return Row(
        task=short(record["problem"]),
        family=record["family"],
        method=short(record["method"]),
        seed=record["seed"],
        targets=targets,
        regrets=tuple(None if value is None else value / record["spread"] for value in found),
        queries=queries,
        choosing=math.fsum(record["trace"]["overhead"][:queries]),
    )


# A directory ------------------------------------------------------------------------------------------------------


def from_directory(directory: Path, anytime: Iterable[str]) -> list[Row]:
    """Return the rows of all runs; those of `anytime` methods, which ignore the budget, for smaller budgets too."""
    by_targets = {float(folder.name): _read(folder) for folder in directory.iterdir() if _is_number(folder.name)}
    judged = _with_optima([record for found in by_targets.values() for record in found])
    prefixes = set(anytime)
    rows: dict[tuple[str, str, int, float], Row] = {}
    for targets in sorted(by_targets):
        for record in (judged[id(found)] for found in by_targets[targets]):
            budgets = [t for t in by_targets if t <= targets] if record["method"] in prefixes else [targets]
            for budget in sorted(budgets, reverse=True):
                made = row(record, budget, record["capital"] * budget / targets)
                rows.setdefault((made.task, made.method, made.seed, budget), made)
    return list(rows.values())


def _read(folder: Path) -> list[Record]:
    return [record for path in sorted(folder.glob("*.jsonl")) for record in records.read(path)]


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _with_optima(found: Sequence[Record]) -> dict[int, Record]:
    """Return every record by its id, live ones with the best and the spread of all runs on their task."""
    values: dict[str, list[float]] = defaultdict(list)
    random: dict[str, list[float]] = defaultdict(list)
    for record in found:
        if record["optimum"] is None:
            at_target = [value for value in record["trace"]["value"] if value is not None]
            values[record["problem"]] += at_target
            random[record["problem"]] += at_target if record["method"] == "random" else []
    judged = {}
    for record in found:
        problem = record["problem"]
        if values.get(problem):
            best = (max if record["direction"] == "maximize" else min)(values[problem])
            spread = abs(best - statistics.median(random[problem] or values[problem]))
            judged[id(record)] = {**record, "optimum": best, "spread": spread or 1.0}
        else:
            judged[id(record)] = record
    return judged


# A table for machines ---------------------------------------------------------------------------------------------

HEADS = ("task", "family", "method", "seed", "targets", *(f"{100 * s:g} %" for s in SHARES), "queries", "choosing")


def to_csv(rows: Iterable[Row]) -> str:
    """Return the rows as a table for machines."""
    lines = [",".join(HEADS)]
    for r in sorted(rows, key=lambda r: (r.targets, r.task, r.method, r.seed)):
        found = ("" if value is None else f"{value:.5g}" for value in r.regrets)
        run = r.task, r.family, r.method, str(r.seed), f"{r.targets:g}"
        lines.append(",".join([*run, *found, str(r.queries), f"{r.choosing:.3g}"]))
    return "\n".join(lines)


def from_csv(path: Path) -> list[Row]:
    """Return the rows of a table that `to_csv` made."""
    with path.open(newline="") as file:
        return [_parsed(cells) for cells in csv.DictReader(file)]


def _parsed(cells: Mapping[str, str]) -> Row:
    return Row(
        task=cells["task"],
        family=cells["family"],
        method=cells["method"],
        seed=int(cells["seed"]),
        targets=float(cells["targets"]),
        regrets=tuple(float(cells[head]) if cells[head] else None for head in HEADS[5 : 5 + len(SHARES)]),
        queries=int(cells["queries"]),
        choosing=float(cells["choosing"]),
    )
