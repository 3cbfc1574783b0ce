"""Finished runs: a line of JSON each, and what can be read off one.

A file PROBLEM.METHOD.jsonl holds the runs of one method on one problem.  A line is on the disk before its run counts as
done, and a last line without its end is no finished run: whatever is killed, nothing finished is lost or run twice.

A record keeps the whole trace, one entry a query:
    cost       cost units charged
    seconds    of the evaluation
    overhead   seconds to choose the query
    spent      of the capital, this query included
    at_target  whether it was made at z*
    value      f there, without noise; None away from the target
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from boca.domain.errors import InvalidInput
from boca.domain.trial import sign

SHARES = (0.25, 0.5, 0.75, 1.0)

Record: TypeAlias = dict[str, Any]

# problem -> method -> seed -> the run
Runs: TypeAlias = dict[str, dict[str, dict[int, Record]]]


def path_of(directory: Path, problem: str, method: str) -> Path:
    """Return the file of all runs of one method on one problem."""
    return directory / f"{problem}.{method}.jsonl".replace(":", "-")


def make(directory: Path) -> None:
    """Make a directory, unless it is there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"--out must be a directory, or a place for one; {directory}: {error.strerror}.") from error


def read(path: Path) -> list[Record]:
    """Return the finished runs in a file."""
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


def load(directory: Path) -> Runs:
    """Return all finished runs in a directory; of two runs of one cell, the first counts."""
    runs: Runs = {}
    for path in sorted(directory.glob("*.jsonl")):
        for record in read(path):
            by_seed = runs.setdefault(record["problem"], {}).setdefault(record["method"], {})
            by_seed.setdefault(record["seed"], record)
    if not runs:
        raise InvalidInput(f"There must be finished runs, files PROBLEM.METHOD.jsonl; there are none in {directory}.")
    return runs


# One run ----------------------------------------------------------------------------------------------------------


def curve(record: Record) -> Iterator[tuple[float, float]]:
    """Yield what was spent and the best f so far at every query of the target.

    Cheaper fidelities do not count, however good: nobody asked for them.
    """
    turn = sign(record["direction"])
    best = -math.inf
    for spent, value in zip(record["trace"]["spent"], record["trace"]["value"], strict=True):
        if value is not None:
            best = max(best, turn * value)
            yield spent, turn * best


def best_within(record: Record, limit: float) -> float | None:
    """Return the best f at the target before more than `limit` was spent; None before the first."""
    bound = limit * (1.0 + 1e-9)  # sums of costs may miss a limit by rounding
    best = None
    for spent, value in curve(record):
        if spent <= bound:
            best = value
    return best


def regret(record: Record, value: float | None) -> float | None:
    """Return how far a value is from the optimum; below zero there is only the rounding of the optimum itself."""
    if value is None:
        return None
    return max(0.0, sign(record["direction"]) * (float(record["optimum"]) - value))


def regrets(record: Record) -> list[float | None]:
    """Return the simple regret within each share of the capital.  [K17, eq. 2]"""
    return [regret(record, value) for value in bests(record)]


def bests(record: Record) -> list[float | None]:
    """Return the best f at the target within each share of the capital."""
    return [best_within(record, share * record["capital"]) for share in SHARES]
