"""What the runs say: mean ranks, paired ratios, which of them could be luck, and tables of all that.

    symbol      meaning
    ----------  -----------------------------------------------------------------------------------
    regret      as in `rows`: in spreads of the task
    ratio       log10 of the regret of a method over that of the reference, on the same task and seed

Regrets below a thousandth of the spread count as that: their logarithms would compare what no user notices.  A run
without a query at the target has no regret: in ranks it is last, in ratios its pair is left out and counted.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.real.rows import SHARES, Row
from boca.bench.table import Summary, summary

FLOOR = 1e-3  # of the spread


# Statistics -------------------------------------------------------------------------------------------------------


def mean_ranks(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return the mean rank of every method at every share, over tasks and seeds that all methods ran."""
    methods = sorted({r.method for r in rows})
    cells: dict[tuple[str, int], dict[str, Row]] = defaultdict(dict)
    for r in rows:
        cells[r.task, r.seed][r.method] = r
    common = [by_method for by_method in cells.values() if len(by_method) == len(methods)]
    sums = {method: [0.0] * len(SHARES) for method in methods}
    for by_method in common:
        for i in range(len(SHARES)):
            at = {method: _floored(by_method[method].regrets[i], math.inf) for method in methods}
            for method in methods:
                sums[method][i] += _rank(at[method], list(at.values()))
    return {method: [total / len(common) for total in totals] for method, totals in sums.items()} if common else {}


def _rank(value: float, values: Sequence[float]) -> float:
    """Return the rank of a value, 1 the smallest; ties share the mean of their ranks."""
    return sum(v < value for v in values) + (sum(v == value for v in values) + 1) / 2


def _floored(regret: float | None, missing: float) -> float:
    return missing if regret is None else max(regret, FLOOR)


@dataclass(frozen=True)
class Pairs:
    """Paired ratios of a method to the reference at one share: by task, with the pairs that have no ratio."""

    by_task: Mapping[str, tuple[float, ...]]
    missing: int

    @property
    def all(self) -> tuple[float, ...]:
        return tuple(ratio for ratios in self.by_task.values() for ratio in ratios)

    @property
    def pooled(self) -> Summary:
        """The mean over tasks of the mean over seeds; its error is that over tasks."""
        return summary(statistics.fmean(ratios) for ratios in self.by_task.values())

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many pairs are below zero, zero, and above."""
        return sum(r < 0 for r in self.all), sum(r == 0 for r in self.all), sum(r > 0 for r in self.all)

    @property
    def p(self) -> float:
        """Wilcoxon's signed ranks over all pairs, two-sided; 1 where nothing differs."""
        from scipy.stats import wilcoxon

        if not any(self.all):
            return 1.0
        return float(wilcoxon(self.all).pvalue)


def paired(rows: Sequence[Row], method: str, reference: str, share: int) -> Pairs:
    """Return the ratios of a method to the reference at SHARES[share], on the tasks and seeds that both ran."""
    of = {(r.method, r.task, r.seed): r.regrets[share] for r in rows}
    ratios: dict[str, list[float]] = defaultdict(list)
    missing = 0
    for r in rows:
        if r.method != method or (reference, r.task, r.seed) not in of:
            continue
        ours, theirs = r.regrets[share], of[reference, r.task, r.seed]
        if ours is None or theirs is None:
            missing += 1
        else:
            ratios[r.task].append(math.log10(max(ours, FLOOR) / max(theirs, FLOOR)))
    return Pairs({task: tuple(found) for task, found in ratios.items()}, missing)


def holm(ps: Sequence[float]) -> list[float]:
    """Return the p-values corrected for being that many, by Holm's steps down."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected = [0.0] * len(ps)
    largest = 0.0
    for step, i in enumerate(order):
        largest = max(largest, min(1.0, (len(ps) - step) * ps[i]))
        corrected[i] = largest
    return corrected


# Tables -----------------------------------------------------------------------------------------------------------


def markdown(rows: Sequence[Row], reference: str) -> str:
    """Return the tables of every budget: ranks, pooled ratios, and ratios by family with Holm's correction.

    A method on fewer than half of the tasks is left out and named: ranks are over what all methods ran.
    """
    parts = []
    for targets in sorted({r.targets for r in rows}):
        parts += list(_budget([r for r in rows if r.targets == targets], targets, reference))
    return "\n\n".join(parts)


def _budget(rows: Sequence[Row], targets: float, reference: str) -> Iterator[str]:
    n, seeds = len({r.task for r in rows}), len({r.seed for r in rows})
    yield f"### {targets:g} targets: {n} tasks, up to {seeds} seeds"
    covered = {method: len({r.task for r in rows if r.method == method}) for method in {r.method for r in rows}}
    few = sorted(method for method, tasks in covered.items() if 2 * tasks < n)
    if few:
        yield f"Left out, because they ran on fewer than half of these tasks: {', '.join(few)}."
        rows = [r for r in rows if r.method not in few]
    ranks = mean_ranks(rows)
    if ranks:
        yield "Mean rank over the tasks and seeds that all methods ran (1 is best):"
        ordered = sorted(ranks.items(), key=lambda item: statistics.fmean(item[1]))
        yield _table(["method", *_heads()], [[name, *(f"{rank:.2f}" for rank in found)] for name, found in ordered])
    if any(r.method == reference for r in rows):
        yield f"log10 of the regret over that of {reference}, mean over tasks ± its error; below zero is better:"
        yield _table(["method", "pairs", *_heads()], _pooled_rows(rows, reference))
        for family in sorted({r.family for r in rows}):
            yield f"{family}, with the pairs that are better / equal / worse than {reference}, and p after Holm:"
            yield _table(["method", *_heads()], _family_rows([r for r in rows if r.family == family], reference))
    yield "Median regret, over all seeds of a task, then over tasks:"
    yield _table(["method", *_heads(), "queries", "s to choose"], _median_rows(rows))


def _pooled_rows(rows: Sequence[Row], reference: str) -> list[list[str]]:
    lines = []
    for method in _others(rows, reference):
        pairs = [paired(rows, method, reference, i) for i in range(len(SHARES))]
        lines.append([method, str(len(pairs[-1].all)), *(_ratio(p) for p in pairs)])
    return lines


def _family_rows(rows: Sequence[Row], reference: str) -> list[list[str]]:
    methods = _others(rows, reference)
    pairs = {(m, i): paired(rows, m, reference, i) for m in methods for i in range(len(SHARES))}
    tested = {key: p.p for key, p in pairs.items() if p.all}  # without a pair there is no test to correct for
    corrected = dict(zip(tested, holm(list(tested.values())), strict=True))
    return [
        [method, *(_counted(pairs[method, i], corrected.get((method, i), 1.0)) for i in range(len(SHARES)))]
        for method in methods
    ]


def _median_rows(rows: Sequence[Row]) -> list[list[str]]:
    lines = []
    for method in sorted({r.method for r in rows}):
        own = [r for r in rows if r.method == method]
        by_task: dict[str, list[Row]] = defaultdict(list)
        for r in own:
            by_task[r.task].append(r)
        cells = [_median_of_medians(by_task, i) for i in range(len(SHARES))]
        queries = statistics.fmean(r.queries for r in own)
        lines.append([method, *cells, f"{queries:.0f}", f"{statistics.fmean(r.choosing for r in own):.2g}"])
    return lines


def _median_of_medians(by_task: Mapping[str, Sequence[Row]], share: int) -> str:
    medians = []
    for own in by_task.values():
        known = sorted(_floored(r.regrets[share], math.inf) for r in own)
        medians.append(statistics.median(known))
    found = statistics.median(medians)
    return "none" if math.isinf(found) else f"{found:.2g}"


def _others(rows: Sequence[Row], reference: str) -> list[str]:
    return sorted({r.method for r in rows} - {reference})


def _ratio(pairs: Pairs) -> str:
    s = pairs.pooled
    if math.isnan(s.mean):
        return f"none {pairs.missing}" if pairs.missing else "-"
    error = "" if math.isnan(s.error) else f" ± {s.error:.2f}"
    return f"{s.mean:+.2f}{error}" + (f", none {pairs.missing}" if pairs.missing else "")


def _counted(pairs: Pairs, p: float) -> str:
    if not pairs.all:
        return _ratio(pairs)
    better, equal, worse = pairs.counts
    mean = statistics.fmean(pairs.all)
    return f"{mean:+.2f} ({better} / {equal} / {worse}; p {p:.2g})"


def _heads() -> list[str]:
    return [f"{100 * share:g} %" for share in SHARES]


def _table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *lines])
