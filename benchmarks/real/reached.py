"""The share of the budget at which methods reach what the best other method has at its end.

For every task: of all methods but the reference and the first one named, the lowest median regret at the end.  A method
has reached it where the median over its seeds is as low, for the first time.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from pathlib import Path

from benchmarks.real.compared import FLOOR
from benchmarks.real.rows import short
from boca.bench import records
from boca.bench.records import Record

_SHARES = tuple(k / 100 for k in range(1, 101))


def markdown(directory: Path, ours: tuple[str, ...]) -> str:
    """Return a table with a row per method: the median over tasks of the share, and on how many tasks it was reached.

    Args:
        directory: the records of one budget.
        ours: the methods that are no peers, by their short names.
    """
    curves = _curves(directory)
    by_method: dict[str, list[float]] = defaultdict(list)
    for of_task in curves.values():
        peers = [medians[-1] for name, medians in of_task.items() if name not in ours]
        if not peers:
            continue
        goal = min(peers)
        for name, medians in of_task.items():
            by_method[name].append(next((s for s, m in zip(_SHARES, medians, strict=True) if m <= goal), math.inf))
    lines = ["| method | median share | reached on |", "| --- | --- | --- |"]
    for name, shares in sorted(by_method.items(), key=lambda item: statistics.median(item[1])):
        middle = statistics.median(shares)
        reached = sum(math.isfinite(share) for share in shares)
        said = "not reached" if math.isinf(middle) else f"{100 * middle:.0f} %"
        lines.append(f"| {name} | {said} | {reached} of {len(shares)} tasks |")
    return "\n".join(lines)


def _curves(directory: Path) -> dict[str, dict[str, list[float]]]:
    """Return the median regret over seeds at every share, by task and method."""
    found: dict[str, dict[str, list[list[float]]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(directory.glob("*.jsonl")):
        for record in records.read(path):
            found[short(record["problem"])][short(record["method"])].append(_regrets(record))
    return {
        task: {name: [statistics.median(at) for at in zip(*runs, strict=True)] for name, runs in methods.items()}
        for task, methods in found.items()
    }


def _regrets(record: Record) -> list[float]:
    at = (records.regret(record, records.best_within(record, share * record["capital"])) for share in _SHARES)
    return [math.inf if regret is None else max(regret / record["spread"], FLOOR) for regret in at]
