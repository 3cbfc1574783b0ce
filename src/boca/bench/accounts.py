"""What runs paid for, and their cumulative regret.

Cumulative regret R_n sums how far every query at the target fell short of the optimum [K17, eq. 15]: it counts each one
as if it had been used, where simple regret counts the best.  Cheaper queries have no regret, and their cost is told
apart.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from boca import problems
from boca.bench import methods
from boca.bench.records import Record, Runs, regret
from boca.bench.table import Summary, in_order, summary


@dataclass(frozen=True)
class Accounts:
    """What one run paid for; shares are of its budget."""

    cumulative_regret: float | None
    """None if the optimum is not known."""
    target_share: float
    cheaper_share: float
    unspent_share: float
    overhead: float
    """Seconds to choose the queries."""


def accounts(run: Record) -> Accounts:
    """Return what a run paid for."""
    trace, capital = run["trace"], run["capital"]
    ends = [0.0, *trace["spent"]]
    paid = [after - before for before, after in pairwise(ends)]
    at_target = math.fsum(p for p, here in zip(paid, trace["at_target"], strict=True) if here)
    short = None
    if run["optimum"] is not None:
        short = math.fsum(regret(run, value) or 0.0 for value in trace["value"] if value is not None)
    return Accounts(
        short,
        at_target / capital,
        (math.fsum(paid) - at_target) / capital,
        1.0 - math.fsum(paid) / capital,
        math.fsum(trace["overhead"]),
    )


def markdown(runs: Runs) -> str:
    """Return a table of every problem."""
    parts = [
        "Cumulative regret is summed over all queries at the target, without noise: mean ± one standard error over "
        "seeds. The other columns are shares of the budget, spent at the target, on cheaper queries and not at all."
    ]
    for problem in in_order(runs, problems.names()):
        parts += [f"### {problem}", _table(runs[problem])]
    return "\n\n".join(parts)


def _table(by_method: Mapping[str, Mapping[int, Record]]) -> str:
    heads = ["method", "seeds", "cumulative regret", "at the target", "cheaper", "unspent", "overhead"]
    names = in_order(by_method, tuple(methods.METHODS))
    rows = [[name, *_row([accounts(run) for run in by_method[name].values()])] for name in names]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _row(of_runs: Sequence[Accounts]) -> list[str]:
    shares = [
        statistics.fmean(shares)
        for shares in zip(*((a.target_share, a.cheaper_share, a.unspent_share) for a in of_runs), strict=True)
    ]
    return [
        str(len(of_runs)),
        _with_error(summary(a.cumulative_regret for a in of_runs)),
        *(f"{100.0 * max(share, 0.0):.0f} %" for share in shares),
        f"{statistics.fmean(a.overhead for a in of_runs):.2g} s",
    ]


def _with_error(s: Summary) -> str:
    if math.isnan(s.mean):
        return "-"
    return f"{s.mean:.3g}" if math.isnan(s.error) else f"{s.mean:.3g} ± {s.error:.2g}"
