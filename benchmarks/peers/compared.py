"""Finished runs of every method: one table per problem of regret, budget and time, pairs of methods, and all regrets.

A peer is a method of this package; the others are the library's own.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.peers.problems import SAME_AT_TARGET
from boca import problems
from boca.bench import methods
from boca.bench.records import SHARES, Record, Runs, curve, regret, regrets
from boca.bench.table import in_order, log_ratio, summary

PEERS = "benchmarks.peers."

LEGEND = (
    "Simple regret, the optimum minus the best noiseless f among queries at the target (z*), within each share of the "
    "budget: median; mean ± standard error over seeds. Some rows have fewer seeds than others. Budget to best peer: "
    "the share of the budget spent when a run was first as good as the best peer is at the end (the lowest median "
    "regret there of any method that is not the library's own), median over seeds; a run that never was counts as "
    "infinite. Overhead: seconds per suggestion, median and mean over all suggestions of all seeds. "
    '"none": runs without a query at z* by then, left out.'
)


def shared(runs: Runs) -> Runs:
    """Return the runs, those that never left the target counting for all problems that are the same there."""
    same = [f"{PEERS}problems:{problem.__name__}" for problem in SAME_AT_TARGET]
    filled = {problem: dict(by_method) for problem, by_method in runs.items()}
    for problem in [problem for problem in same if problem in runs]:
        for source in same:
            for name, by_seed in runs.get(source, {}).items():
                if name not in runs[problem] and all(all(run["trace"]["at_target"]) for run in by_seed.values()):
                    filled[problem].setdefault(name, by_seed)
    return filled


def markdown(runs: Runs) -> str:
    """Return a table for every problem with a known optimum."""
    parts = [LEGEND]
    for problem in in_order(runs, problems.names()):
        by_method = runs[problem]
        if any(run["optimum"] is None for by_seed in by_method.values() for run in by_seed.values()):
            parts.append(f"### {problem}\n\nThe optimum is not known, so there is no regret to compare.")
        else:
            parts += [f"### {short(problem)}", _best_peer_in_words(by_method), _table(by_method)]
    return "\n\n".join(parts)


def paired(runs: Runs, method: str, other: str) -> str:
    """Return how two methods did on the seeds that both ran, one row per problem: medians and paired log-ratios."""
    shares = [f"{100 * share:g} %" for share in SHARES]
    heads = ["problem", "seeds", f"median of {short(method)}", f"median of {short(other)}", *shares]
    rows = []
    for problem in in_order(runs, problems.names()):
        both = [runs[problem].get(name, {}) for name in (method, other)]
        common = sorted(both[0].keys() & both[1].keys())
        if common:
            ours, theirs = ([regrets(by_seed[seed]) for seed in common] for by_seed in both)
            name = short(problem).removeprefix("problems:")
            rows.append([name, str(len(common)), _medians(ours), _medians(theirs), *_log_ratios(ours, theirs)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *rows])


def csv(runs: Runs) -> str:
    """Return the regrets of every run, a row each, if the optimum is known: pairs for your own runs."""
    rows = [["problem", "method", "seed", *(f"{100 * share:g} %" for share in SHARES)]]
    for problem in in_order(runs, problems.names()):
        for method in in_order(runs[problem], tuple(methods.METHODS)):
            for seed, run in sorted(runs[problem][method].items()):
                if run["optimum"] is not None:
                    numbers = ("" if value is None else f"{value:.4g}" for value in regrets(run))
                    rows.append([short(problem), short(method), str(seed), *numbers])
    return "\n".join(map(",".join, rows))


def _medians(regrets: Sequence[Sequence[float | None]]) -> str:
    medians = [summary(at_share).median for at_share in zip(*regrets, strict=True)]
    return " / ".join("none" if math.isnan(median) else f"{median:.2g}" for median in medians)


def _log_ratios(ours: Sequence[Sequence[float | None]], theirs: Sequence[Sequence[float | None]]) -> list[str]:
    """Return the mean of log10 of the ratios at every share, with its error; runs without a regret are left out."""
    cells = []
    for i in range(len(SHARES)):
        s = summary(log_ratio(a[i], b[i]) for a, b in zip(ours, theirs, strict=True))
        error = "" if math.isnan(s.error) else f" ± {s.error:.2f}"
        cells.append("none" if math.isnan(s.mean) else f"{s.mean:+.2f}{error}")
    return cells


def short(name: str) -> str:
    """Return a name without the path of this package."""
    return name.removeprefix(PEERS)


def best_peer(by_method: Mapping[str, Mapping[int, Record]]) -> tuple[str, float] | None:
    """Return the peer with the lowest median regret at the end, and that regret; None without any."""
    finals = {}
    for name, by_seed in by_method.items():
        median = summary(regrets(run)[-1] for run in by_seed.values()).median
        if name.startswith(PEERS) and not math.isnan(median):
            finals[name] = median
    return min(finals.items(), key=lambda item: item[1]) if finals else None


def reached(run: Record, goal: float) -> float:
    """Return the share of the budget that was spent when the regret first was no more than this; inf if never."""
    for spent, value in curve(run):
        found = regret(run, value)
        if found is not None and found <= goal:
            return float(spent / run["capital"])
    return math.inf


def _best_peer_in_words(by_method: Mapping[str, Mapping[int, Record]]) -> str:
    best = best_peer(by_method)
    if best is None:
        return "No run of a peer."
    name, goal = best
    return f"Best peer at the end: {short(name)}, median regret {goal:.2g} over {_seeds(len(by_method[name]))}."


def _seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def _table(by_method: Mapping[str, Mapping[int, Record]]) -> str:
    best = best_peer(by_method)
    heads = [
        "method",
        "seeds",
        *(f"{100 * share:g} %" for share in SHARES),
        "budget to best peer",
        "queries",
        "overhead",
    ]
    rows = [
        _row(name, list(by_method[name].values()), None if best is None else best[1])
        for name in in_order(by_method, tuple(methods.METHODS))
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [heads, ["---"] * len(heads), *rows])


def _row(name: str, runs: Sequence[Record], goal: float | None) -> list[str]:
    by_share = zip(*(regrets(run) for run in runs), strict=True)
    return [
        short(name),
        str(len(runs)),
        *(_regret(at_share) for at_share in by_share),
        "-" if goal is None else _budget([reached(run, goal) for run in runs]),
        _queries(runs),
        _overhead(runs),
    ]


def _regret(values: Sequence[float | None]) -> str:
    s = summary(values)
    if math.isnan(s.mean):
        return f"none {s.missing}"
    error = "" if math.isnan(s.error) else f" ± {s.error:.2g}"
    missing = f", none {s.missing}" if s.missing else ""
    return f"{s.median:.2g}; {s.mean:.2g}{error}{missing}"


def _budget(shares: Sequence[float]) -> str:
    never = sum(math.isinf(share) for share in shares)
    median = statistics.median(shares)
    text = "never" if math.isinf(median) else f"{100 * median:.0f} %"
    return f"{text} ({len(shares) - never} of {len(shares)} runs)"


def _queries(runs: Sequence[Record]) -> str:
    at_target = statistics.fmean(sum(run["trace"]["at_target"]) for run in runs)
    queries = statistics.fmean(len(run["trace"]["cost"]) for run in runs)
    return f"{queries:.0f}, {at_target:.0f} at z*"


def _overhead(runs: Sequence[Record]) -> str:
    seconds = [overhead for run in runs for overhead in run["trace"]["overhead"]]
    if not seconds:
        return "-"
    return f"{statistics.median(seconds):.2g} s; {statistics.fmean(seconds):.2g} s"
