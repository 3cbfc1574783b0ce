"""Draw docs/figures/real.png: the regret of `Boca()` over that of others, from benchmarks/real/runs.csv.

It is of the half of the real tasks on which nothing was chosen.  Type `python -m docs.figures.real` in the directory of
the project.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from benchmarks.real import compared, tasks
from benchmarks.real.rows import SHARES, Row, from_csv

HERE = Path(__file__).parent
RUNS = HERE.parents[1] / "benchmarks" / "real" / "runs.csv"
TARGETS = 15.0
PEERS = {
    "random": "random search",
    "pruners:median": "TPE with the median pruner",
    "peers.optuna:TPE": "Optuna's TPE",
    "pruners:hyperband": "TPE with Hyperband",
    "pruners:halving": "successive halving",
    "one_epoch:one_epoch": "1-Epoch",
    "peers.optuna:GP": "Optuna's GP",
}
SHOWN = ((0.25, "a quarter of the budget", "o"), (0.5, "half of it", "s"), (1.0, "all of it", "D"))


def runs() -> list[Row]:
    """Return the runs on the half to check on, live searches left out."""
    return [r for r in from_csv(RUNS) if r.task in tasks.CHECK and r.family != "live" and r.targets == TARGETS]


def ratios() -> dict[str, dict[float, tuple[float, float]]]:
    """Return for every peer and share the mean of log10 of the paired ratio over tasks, with its error."""
    found = runs()
    table: dict[str, dict[float, tuple[float, float]]] = {}
    for peer in PEERS:
        pooled = {s: compared.paired(found, "boca", peer, SHARES.index(s)).pooled for s, _, _ in SHOWN}
        table[peer] = {s: (value.mean, value.error) for s, value in pooled.items()}
    return table


def draw() -> Figure:
    """Draw one row for each peer."""
    table = ratios()
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.axvline(0, color="black", linewidth=0.8)
    colours, shifts = ("#0072b2", "#009e73", "#d55e00"), (0.22, 0.0, -0.22)
    for (share, label, marker), colour, shift in zip(SHOWN, colours, shifts, strict=True):
        means, errors = np.array([table[peer][share] for peer in PEERS]).T
        rows = np.arange(len(PEERS)) + shift
        axes.errorbar(means, rows, xerr=2 * errors, fmt=marker, color=colour, ms=4.5, elinewidth=1, label=label)
    axes.set_yticks(range(len(PEERS)), list(PEERS.values()), fontsize=8)
    axes.set_xlim(-1.35, 0.75)
    axes.xaxis.set_major_locator(FixedLocator([-1.0, -0.699, -0.301, 0.0, 0.301]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels(["1/10", "1/5", "1/2", "1", "2"], fontsize=8)
    axes.set_xlabel("regret of boca / regret of the other, mean over tasks ± 2 standard errors", fontsize=9)
    axes.annotate("boca is better", (0.01, 1.01), xycoords="axes fraction", fontsize=8)
    axes.annotate("the other is better", (0.99, 1.01), xycoords="axes fraction", ha="right", fontsize=8)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.legend(loc="center right", fontsize=8)
    return figure


if __name__ == "__main__":
    for peer, found in ratios().items():
        print(peer, *(f"{share:g}: {mean:+.2f} ± {error:.2f}" for share, (mean, error) in found.items()))
    draw().savefig(HERE / "real.png", dpi=110)
