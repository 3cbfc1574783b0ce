"""Finished runs as Markdown tables: regret at shares of the capital, and paired ratios against one method."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from boca import problems
from boca.bench import methods
from boca.bench.runner import SHARES, Record, read
from boca.errors import InvalidInput

STUCK = 0.1  # final regret above which a run has ended in the wrong place
FLOOR = 1e-6  # regrets below it are equal: a logarithm would weigh rounding there

# problem -> method -> seed -> the run
Runs: TypeAlias = dict[str, dict[str, dict[int, Record]]]


def load(directory: Path) -> Runs:
    """Return all finished runs in a directory; of two runs of one cell, the first counts."""
    runs: Runs = {}
    for path in sorted(directory.glob("*.jsonl")):
        for record in read(path):
            by_seed = runs.setdefault(record["problem"], {}).setdefault(record["method"], {})
            by_seed.setdefault(record["seed"], record)
    if not runs:
        raise InvalidInput(f"A table needs finished runs, files PROBLEM.METHOD.jsonl; there are none in {directory}.")
    return runs


def markdown(runs: Runs, *, reference: str) -> str:
    """Return both tables of every problem."""
    parts = [_legend(reference)]
    for problem in _in_order(runs, problems.names()):
        by_method = runs[problem]
        names = _in_order(by_method, tuple(methods.METHODS))
        parts.append(f"### {problem}")
        known = [name for name in names if any(run["knows_gp"] for run in by_method[name].values())]
        if known:
            parts.append(f"The true GP was known to {', '.join(known)}.")
        parts.append(_regret_table([(name, list(by_method[name].values())) for name in names]))
        if reference not in by_method:
            parts.append(f"No runs of {reference} to pair with.")
        elif len(names) > 1:
            others = [(name, by_method[name]) for name in names if name != reference]
            parts.append(_ratio_table(reference, by_method[reference], others))
    return "\n\n".join(parts)


def _legend(reference: str) -> str:
    return (
        "Simple regret, the optimum minus the best noiseless f among queries at the target (z*), within each share of "
        "the capital: mean ± standard error (median) over seeds. "
        f"Stuck: runs that end above {STUCK:g}. Recommendation: regret of the recommended point at the end. "
        'Overhead: milliseconds to choose a query. "none": runs without a query at z* by then, left out.\n\n'
        f"Ratios: log10 of the regret over that of {reference} on the same seed, mean ± standard error; below zero is "
        f'better than {reference}. Regrets are floored at {FLOOR:g} for it. "none": pairs of which one has no regret '
        "yet, left out."
    )


def _in_order(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return names that the library knows in its own order, then the others by alphabet."""
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


# Regret -----------------------------------------------------------------------------------------------------------


def _regret_table(rows: Sequence[tuple[str, Sequence[Record]]]) -> str:
    heads = ["method", "seeds", *_shares(), "stuck", "at z* / all", "recommendation", "overhead, ms"]
    return _table(heads, [_regret_row(name, runs) for name, runs in rows])


def _regret_row(name: str, runs: Sequence[Record]) -> list[str]:
    by_share = zip(*(run["regret"] for run in runs), strict=True)
    at_target = statistics.fmean(sum(run["trace"]["at_target"]) for run in runs)
    queries = statistics.fmean(len(run["trace"]["cost"]) for run in runs)
    overheads = [seconds for run in runs for seconds in run["trace"]["overhead"]]
    return [
        name,
        str(len(runs)),
        *(_with_median(summary(regrets)) for regrets in by_share),
        str(sum(run["regret"][-1] is not None and run["regret"][-1] > STUCK for run in runs)),
        f"{at_target:.0f} / {queries:.0f}",
        _with_median(summary(run["recommendation_regret"] for run in runs)),
        f"{1e3 * statistics.fmean(overheads):.3g}" if overheads else "-",
    ]


@dataclass(frozen=True)
class Summary:
    """Some numbers in short; `missing` were None and left out, and without any number the rest is nan."""

    mean: float
    error: float
    median: float
    missing: int


def summary(values: Iterable[float | None]) -> Summary:
    """Return mean, standard error and median; the error of a single value is nan."""
    given = list(values)
    numbers = [value for value in given if value is not None]
    missing = len(given) - len(numbers)
    if not numbers:
        return Summary(math.nan, math.nan, math.nan, missing)
    error = statistics.stdev(numbers) / math.sqrt(len(numbers)) if len(numbers) > 1 else math.nan
    return Summary(statistics.fmean(numbers), error, statistics.median(numbers), missing)


def _with_median(s: Summary) -> str:
    if math.isnan(s.mean):
        return f"none {s.missing}"
    error = "" if math.isnan(s.error) else f" ± {s.error:.2g}"
    return f"{s.mean:.2g}{error} ({s.median:.2g}){_none(s)}"


# Ratios -----------------------------------------------------------------------------------------------------------


def _ratio_table(reference: str, base: dict[int, Record], others: Sequence[tuple[str, dict[int, Record]]]) -> str:
    heads = [f"log10 ratio to {reference}", "common seeds", *_shares()]
    return _table(heads, [_ratio_row(name, runs, base) for name, runs in others])


def _ratio_row(name: str, runs: dict[int, Record], base: dict[int, Record]) -> list[str]:
    common = sorted(runs.keys() & base.keys())
    pairs = [(runs[seed]["regret"], base[seed]["regret"]) for seed in common]
    ratios = [
        summary(log_ratio(regrets[i], references[i]) for regrets, references in pairs) for i in range(len(SHARES))
    ]
    return [name, str(len(common)), *(_signed(s) for s in ratios)]


def log_ratio(regret: float | None, reference: float | None) -> float | None:
    """Return log10 of regret over reference, both floored; None where either is."""
    if regret is None or reference is None:
        return None
    return math.log10(max(regret, FLOOR) / max(reference, FLOOR))


def _signed(s: Summary) -> str:
    if math.isnan(s.mean):
        return f"none {s.missing}" if s.missing else "-"
    error = "" if math.isnan(s.error) else f" ± {s.error:.2f}"
    return f"{s.mean:+.2f}{error}{_none(s)}"


# Both -------------------------------------------------------------------------------------------------------------


def _none(s: Summary) -> str:
    return f", none {s.missing}" if s.missing else ""


def _shares() -> list[str]:
    return [f"{100 * share:g} %" for share in SHARES]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
