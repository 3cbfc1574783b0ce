"""Finished runs as Markdown tables: the results at shares of the budget, and a comparison with one method.

With a known optimum the result is the simple regret, and methods are compared by the logarithm of its ratio.  Without
one it is the best value, and methods are compared by its difference.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from boca import problems
from boca.bench import methods
from boca.bench.records import SHARES, Record, Runs, bests, regret, regrets
from boca.domain.trial import sign

STUCK = 0.1  # final regret above which a run has ended at another peak: on these problems the next is lower by more
FLOOR = 1e-6  # regrets below it count as equal: their logarithms would compare rounding


def markdown(runs: Runs, *, reference: str) -> str:
    """Return both tables of every problem."""
    with_optimum = [problem for problem in runs if has_optimum(runs[problem])]
    parts = []
    if with_optimum:
        parts.append(_regret_legend(reference))
    if len(with_optimum) < len(runs):
        parts.append(_value_legend(reference))
    parts.append(_common_legend())
    for problem in in_order(runs, problems.names()):
        parts += _problem(problem, runs[problem], reference)
    return "\n\n".join(parts)


def _problem(problem: str, by_method: Mapping[str, Mapping[int, Record]], reference: str) -> list[str]:
    names = in_order(by_method, tuple(methods.METHODS))
    parts = [f"### {problem}"]
    known = [name for name in names if any(run["knows_gp"] for run in by_method[name].values())]
    if known:
        parts.append(f"The true GP was known to {', '.join(known)}.")
    rows = [(name, list(by_method[name].values())) for name in names]
    parts.append(_regret_table(rows) if has_optimum(by_method) else _value_table(rows))
    if reference not in by_method:
        parts.append(f"There are no runs of {reference} to compare with.")
    elif len(names) > 1:
        others = [(name, by_method[name]) for name in names if name != reference]
        parts.append(_paired_table(reference, by_method[reference], others))
    return parts


def has_optimum(by_method: Mapping[str, Mapping[int, Record]]) -> bool:
    """Whether the optimum of a problem is known: regret if so, values if not."""
    return all(run["optimum"] is not None for by_seed in by_method.values() for run in by_seed.values())


def in_order(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return names that the library knows in its own order, then the others by name."""
    return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def _regret_legend(reference: str) -> str:
    return (
        "Simple regret, the optimum minus the best noiseless f among queries at the target (z*), within each share of "
        f"the budget: mean ± standard error (median) over seeds. Stuck: runs that end above {STUCK:g}. "
        "Recommendation: regret of the recommended point at the end. Ratios: log10 of the regret over that of "
        f"{reference} on the same seed, mean ± standard error; below zero is better than {reference}. For the ratios, "
        f"regrets are floored at {FLOOR:g}."
    )


def _value_legend(reference: str) -> str:
    return (
        "If no optimum is known: the best f among queries at the target (z*), within each share of the budget, "
        f"mean ± standard error (median) over seeds. Differences: how much better than {reference} on the same seed, "
        f"mean ± standard error; above zero is better than {reference}."
    )


def _common_legend() -> str:
    return (
        "Overhead: seconds per run to choose its queries, and milliseconds per query. "
        '"none": runs, or pairs, without a query at z* by then, left out.'
    )


# Results -------------------------------------------------------------------------------------------------


def _regret_table(rows: Sequence[tuple[str, Sequence[Record]]]) -> str:
    heads = ["method", "seeds", *_shares(), "stuck", "recommendation", "at z* of all queries", "overhead"]
    return _table(heads, [_regret_row(name, runs) for name, runs in rows])


def _regret_row(name: str, runs: Sequence[Record]) -> list[str]:
    by_run = [regrets(run) for run in runs]
    return [
        name,
        str(len(runs)),
        *(_with_median(summary(at_share), ".2g") for at_share in zip(*by_run, strict=True)),
        str(sum(final is not None and final > STUCK for *_, final in by_run)),
        _with_median(summary(regret(run, run["recommendation"]) for run in runs), ".2g"),
        *_efforts(runs),
    ]


def _value_table(rows: Sequence[tuple[str, Sequence[Record]]]) -> str:
    heads = ["method", "seeds", *_shares(), "at z* of all queries", "overhead"]
    return _table(heads, [_value_row(name, runs) for name, runs in rows])


def _value_row(name: str, runs: Sequence[Record]) -> list[str]:
    by_share = zip(*(bests(run) for run in runs), strict=True)
    return [name, str(len(runs)), *(_with_median(summary(s), ".5g") for s in by_share), *_efforts(runs)]


def _efforts(runs: Sequence[Record]) -> list[str]:
    at_target = statistics.fmean(sum(run["trace"]["at_target"]) for run in runs)
    queries = statistics.fmean(len(run["trace"]["cost"]) for run in runs)
    overhead = statistics.fmean(math.fsum(run["trace"]["overhead"]) for run in runs)
    share = f" ({100 * at_target / queries:.0f} %)" if queries else ""
    each = f" ({1e3 * overhead / queries:.2g} ms)" if queries else ""
    return [f"{at_target:.0f} of {queries:.0f}{share}", f"{overhead:.2g} s{each}"]


@dataclass(frozen=True)
class Summary:
    """Mean, standard error and median of some numbers; `missing` were None and are left out.  NaN without numbers."""

    mean: float
    error: float
    median: float
    missing: int


def summary(values: Iterable[float | None]) -> Summary:
    """Return mean, standard error and median; the error of a single value is NaN."""
    given = list(values)
    numbers = [value for value in given if value is not None]
    missing = len(given) - len(numbers)
    if not numbers:
        return Summary(math.nan, math.nan, math.nan, missing)
    error = statistics.stdev(numbers) / math.sqrt(len(numbers)) if len(numbers) > 1 else math.nan
    return Summary(statistics.fmean(numbers), error, statistics.median(numbers), missing)


def _with_median(s: Summary, digits: str) -> str:
    if math.isnan(s.mean):
        return f"none {s.missing}"
    error = "" if math.isnan(s.error) else f" ± {s.error:.2g}"
    return f"{s.mean:{digits}}{error} ({s.median:{digits}}){_none(s)}"


# Comparisons ------------------------------------------------------------------------------------------------------


def _paired_table(
    reference: str, base: Mapping[int, Record], others: Sequence[tuple[str, Mapping[int, Record]]]
) -> str:
    what = "log10 ratio to" if has_optimum({reference: base}) else "difference to"
    heads = [f"{what} {reference}", "common seeds", *_shares()]
    return _table(heads, [_paired_row(name, runs, base) for name, runs in others])


def _paired_row(name: str, runs: Mapping[int, Record], base: Mapping[int, Record]) -> list[str]:
    common = sorted(runs.keys() & base.keys())
    by_seed = [compared(runs[seed], base[seed]) for seed in common]
    digits = ".2f" if has_optimum({name: runs}) else ".2g"
    cells = [_signed(summary(values[i] for values in by_seed), digits) for i in range(len(SHARES))]
    return [name, str(len(common)), *cells]


def compared(run: Record, reference: Record) -> list[float | None]:
    """Return log ratios of regrets, or how much better the values are, at the shares of the budget."""
    if run["optimum"] is not None:
        return [log_ratio(a, b) for a, b in zip(regrets(run), regrets(reference), strict=True)]
    turn = sign(run["direction"])
    pairs = zip(bests(run), bests(reference), strict=True)
    return [None if a is None or b is None else turn * (a - b) for a, b in pairs]


def log_ratio(regret: float | None, reference: float | None) -> float | None:
    """Return log10 of regret over reference, both floored; None if either is."""
    if regret is None or reference is None:
        return None
    return math.log10(max(regret, FLOOR) / max(reference, FLOOR))


def _signed(s: Summary, digits: str) -> str:
    if math.isnan(s.mean):
        return f"none {s.missing}" if s.missing else "-"
    error = "" if math.isnan(s.error) else f" ± {s.error:{digits}}"
    return f"{s.mean:+{digits}}{error}{_none(s)}"


# Both -------------------------------------------------------------------------------------------------------------


def _none(s: Summary) -> str:
    return f", none {s.missing}" if s.missing else ""


def _shares() -> list[str]:
    return [f"{100 * share:g} %" for share in SHARES]


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
