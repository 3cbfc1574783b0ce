"""Draw docs/figures/peers.png: the regret of `Boca()` over that of Optuna's GP, from benchmarks/peers/runs.csv."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

HERE = Path(__file__).parent
RUNS = HERE.parents[1] / "benchmarks" / "peers" / "runs.csv"
FLOOR = 1e-6  # as in the tables: smaller regrets count as this
# The same f, noise and budget at the target: a peer that queries only the target was run on `unrelated` alone.
SHARED = ("anti_correlated", "common_bias", "falling_cost", "flat_cost", "late", "noisier_below", "one_region")
SHARED += ("useless_dimension",)
SHARES = (("25 %", "after a quarter of the budget", "o"), ("100 %", "at the end", "D"))


def regrets() -> dict[tuple[str, str], dict[int, dict[str, float]]]:
    """Return for every problem and method the regrets of each seed at shares of the budget."""
    found: dict[tuple[str, str], dict[int, dict[str, float]]] = defaultdict(dict)
    with RUNS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            name = row["problem"].removeprefix("problems:")
            found[name, row["method"]][int(row["seed"])] = {s: float(row[s] or "nan") for s, _, _ in SHARES}
    return found


def ratios(peer: str = "optuna:GP") -> dict[str, dict[str, tuple[float, float]]]:
    """Return for every problem and share the mean and standard error of log10 of the paired ratio."""
    found = regrets()
    table: dict[str, dict[str, tuple[float, float]]] = {}
    for name, method in sorted(found):
        if method != "boca":
            continue
        theirs = found["unrelated" if name in SHARED else name, peer]
        table[name] = {}
        for share, _, _ in SHARES:
            logs = [
                math.log10(max(run[share], FLOOR) / max(theirs[seed][share], FLOOR))
                for seed, run in found[name, "boca"].items()
                if seed in theirs and math.isfinite(run[share] + theirs[seed][share])
            ]
            table[name][share] = (float(np.mean(logs)), float(np.std(logs, ddof=1) / len(logs) ** 0.5))
    return table


def draw() -> Figure:
    """Draw one row for each problem, the problem with the largest gain at a quarter on top."""
    table = ratios()
    names = sorted(table, key=lambda name: table[name]["25 %"][0], reverse=True)
    figure = Figure(figsize=(7.6, 4.9), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0, color="black", linewidth=0.8)
    for (share, label, marker), colour, shift in zip(SHARES, ("#0072b2", "#d55e00"), (0.16, -0.16), strict=True):
        means, errors = np.array([table[name][share] for name in names]).T
        rows = np.arange(len(names)) + shift
        axes.errorbar(means, rows, xerr=2 * errors, fmt=marker, color=colour, ms=4.5, elinewidth=1, label=label)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_xlim(-5.2, 2.2)
    axes.xaxis.set_major_locator(FixedLocator([-5, -4, -3, -2, -1, 0, 1, 2]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(["1/100,000", "1/10,000", "1/1,000", "1/100", "1/10", "1", "10", "100"], fontsize=8)
    axes.set_xlabel("regret of boca / regret of Optuna's GP, mean over the same seeds ± 2 standard errors", fontsize=9)
    axes.annotate("boca is better", (0.01, 1.01), xycoords="axes fraction", fontsize=8)
    axes.annotate("Optuna's GP is better", (0.99, 1.01), xycoords="axes fraction", ha="right", fontsize=8)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.legend(loc="lower left", fontsize=8)
    return figure


if __name__ == "__main__":
    for problem, found in ratios().items():
        print(problem, *(f"{share}: {mean:+.2f} ± {error:.2f}" for share, (mean, error) in found.items()))
    draw().savefig(HERE / "peers.png", dpi=110)
