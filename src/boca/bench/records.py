"""Finished runs: one line of JSON each, and what can be read from one.

A file PROBLEM.METHOD.jsonl holds the runs of one method on one problem.  A line is on the disk before its run counts as
done, and a last line that is cut off is no finished run: whatever is killed, nothing finished is lost or run twice.

A record has the budget of the run under the key "capital", in cost units or seconds as "unit" says.  The key keeps its
old name, because stored records have it.  The whole trace has one entry per query:
    cost       cost units charged
    seconds    of the evaluation
    overhead   seconds to choose the query
    spent      of the budget, this query included
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
    """Make a directory, unless it exists."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out {directory} cannot be a directory: {error.strerror}. Pass a folder that can be written."
        ) from error


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
            raise InvalidInput(
                f"Line {number} of {path} is not JSON ({error}). Delete that line; its run will be made again."
            ) from error
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
        raise InvalidInput(f"There are no finished runs in {directory}: no PROBLEM.METHOD.jsonl. Run `boca bench run`.")
    return runs


# One run ----------------------------------------------------------------------------------------------------------


def curve(record: Record) -> Iterator[tuple[float, float]]:
    """Yield what was spent and the best f so far at every query of the target; cheaper fidelities do not count."""
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
    """Return how far a value falls short of the optimum; never below zero, which could only be rounding."""
    if value is None:
        return None
    return max(0.0, sign(record["direction"]) * (float(record["optimum"]) - value))


def regrets(record: Record) -> list[float | None]:
    """Return the simple regret within each share of the budget.  [K17, eq. 2]"""
    return [regret(record, value) for value in bests(record)]


def bests(record: Record) -> list[float | None]:
    """Return the best f at the target within each share of the budget."""
    return [best_within(record, share * record["capital"]) for share in SHARES]
