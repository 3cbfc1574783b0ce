"""Tune gradient boosting on 20,000 rows, with and without cheap runs.

The model is scikit-learn's HistGradientBoostingClassifier with five
hyperparameters.  What counts is the log loss on 10,000 further rows after
training with all 20,000 rows and 200 trees, which takes about a second: one
target evaluation.  A cheaper evaluation has fewer trees, fewer rows or both.

Every seed is run twice: with these two fidelities, and by the same strategy
at the target only.  Both have the same budget.  Cost is declared, so that a
run can be repeated: trees * (rows + 10,000), which follows the seconds on one
core with the usual settings.  How long a run really took is in the table too.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss

import boca

TARGET = {"rows": 20_000, "trees": 200}
HELD_OUT = 10_000
SPACE = boca.Space(
    learning_rate=boca.Float(0.01, 1.0, log=True),
    max_leaf_nodes=boca.Int(4, 64, log=True),
    min_samples_leaf=boca.Int(1, 200, log=True),
    l2_regularization=boca.Float(1e-4, 100.0, log=True),
    max_features=boca.Float(0.1, 1.0),
)
FIDELITY = boca.Space(rows=boca.Int(1_000, TARGET["rows"]), trees=boca.Int(5, TARGET["trees"]))
WITH, WITHOUT = "with fidelities", "target only"
FIXED_SHARE = 10_000  # rows that a tree costs beside those it is grown on


def data() -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in random order and their classes: the first are to train on, the last are held out."""
    return make_classification(  # type: ignore[no-any-return]
        n_samples=TARGET["rows"] + HELD_OUT,
        n_features=20,
        n_informative=12,
        n_redundant=4,
        n_clusters_per_class=8,
        flip_y=0.03,
        random_state=0,
    )


ROWS, CLASSES = data()


def loss(x: Mapping[str, Any], z: Mapping[str, Any]) -> float:
    """Return the log loss on the rows that were held out."""
    model = HistGradientBoostingClassifier(**x, max_iter=z["trees"], early_stopping=False, random_state=0)
    model.fit(ROWS[: z["rows"]], CLASSES[: z["rows"]])
    return float(log_loss(CLASSES[-HELD_OUT:], model.predict_proba(ROWS[-HELD_OUT:])))


def cost(z: Mapping[str, Any]) -> float:
    """Return the cost of an evaluation, in target evaluations."""
    return z["trees"] * (z["rows"] + FIXED_SHARE) / (TARGET["trees"] * (TARGET["rows"] + FIXED_SHARE))


@dataclass(frozen=True)
class Run:
    """What one run saw: after every trial at the target, what it had spent, and the best loss there so far."""

    name: str
    seed: int
    trials: int
    targets: tuple[float, ...]
    seconds: tuple[float, ...]
    best: tuple[float, ...]
    x: Mapping[str, Any]
    spent: float
    took: float
    choosing: float

    def after(self, spent: float, axis: str) -> float:
        """Return the best loss at the target after this many targets or seconds; infinite before the first."""
        seen = [b for s, b in zip(getattr(self, axis), self.best, strict=True) if s <= spent]
        return seen[-1] if seen else math.inf


def tune(name: str, seed: int, budget: float) -> Run:
    """Ask, evaluate and tell until the budget is spent."""
    problem = boca.Problem(
        SPACE,
        FIDELITY if name == WITH else None,
        cost=cost if name == WITH else None,
        target=TARGET if name == WITH else None,
        direction="minimize",
    )
    opt = boca.Optimizer(problem, budget=boca.targets(budget), seed=seed)
    targets, seconds, best = [], [], []
    choosing, began = 0.0, time.perf_counter()
    while (trial := opt.ask()) is not None:
        choosing += trial.overhead
        opt.tell(trial, loss(trial.x, trial.z or TARGET))
        if problem.is_target(trial.z):
            targets.append(opt.spent)
            seconds.append(time.perf_counter() - began)
            best.append(opt.best.value)
    took = time.perf_counter() - began
    return Run(
        name, seed, len(opt.history), tuple(targets), tuple(seconds), tuple(best), opt.best.x, opt.spent, took, choosing
    )


def compare(runs: Sequence[Run], budget: float) -> Table:
    """Return the best loss at the target of every seed, at equal budget and at equal seconds."""
    table = Table(title="Best loss at the target; the better one of a pair has a star")
    table.add_column("seed")
    for axis in ("equal budget", "equal seconds"):
        for name in (WITH, WITHOUT):
            table.add_column(f"{axis}\n{name}", justify="right")
    table.add_column("trials\n(seconds)", justify="right")
    wins = {axis: [0, 0] for axis in ("targets", "seconds")}
    for first, second in pairs(runs):
        cells = []
        for axis, end in (("targets", budget), ("seconds", min(first.took, second.took))):
            pair = (first.after(end, axis), second.after(end, axis))
            for i, value in enumerate(pair):
                is_better = value < pair[1 - i]
                wins[axis][i] += is_better
                cells.append(f"{value:.4f}{'*' if is_better else ' '}" if math.isfinite(value) else "none ")
        sizes = f"{first.trials} ({first.took:.0f} s), {second.trials} ({second.took:.0f} s)"
        table.add_row(str(first.seed), *cells, sizes)
    table.add_section()
    table.add_row("better in", *(str(count) for axis in wins for count in wins[axis]), "")
    return table


def pairs(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return the two runs of every seed."""
    known = {(run.name, run.seed): run for run in runs}
    return [(known[WITH, seed], known[WITHOUT, seed]) for seed in sorted({run.seed for run in runs})]


def summary(runs: Sequence[Run], budget: float) -> str:
    """Say when the runs with fidelities had what the others had found in the end."""
    parts = []
    for axis, unit in (("targets", "target evaluations"), ("seconds", "seconds")):
        needed = []
        for first, second in pairs(runs):
            goal = second.after(budget, "targets")
            needed.append(
                next((s for s, b in zip(getattr(first, axis), first.best, strict=True) if b <= goal), math.inf)
            )
        middle, total = median(needed), median(run.spent if axis == "targets" else run.took for _, run in pairs(runs))
        words = f"{middle:.1f} {unit}" if math.isfinite(middle) else f"more than its {unit}"
        parts.append(f"{words} for what took {total:.1f} at the target only")
    missed = sum(first.best[-1] > second.after(budget, "targets") for first, second in pairs(runs))
    return (
        f"With fidelities, the median run needed {parts[0]},\nand {parts[1]}. "
        f"{missed} of {len(pairs(runs))} runs never got there."
    )


def draw(runs: Sequence[Run], budget: float) -> Figure:
    """Draw the best loss at the target so far: the median over the seeds, and the range of all of them."""
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    longest = median(run.took for run in runs)
    for ax, axis, end, words in (
        (left, "targets", budget, "budget spent, in target evaluations"),
        (right, "seconds", longest, "seconds, choosing included"),
    ):
        for name, color, style in ((WITH, "#0072B2", "-"), (WITHOUT, "#D55E00", "--")):
            _curve(ax, [run for run in runs if run.name == name], axis, end, color, style, name)
        ax.set(xlabel=words, xlim=(0.0, end))
        ax.grid(alpha=0.3)
    left.set(ylabel="best log loss at the target", title="at equal budget", yscale="log")
    left.yaxis.set_major_formatter("{x:.2f}")
    left.yaxis.set_minor_formatter("{x:.2f}")
    right.set(title="at equal seconds")
    left.legend(title=f"median of {len(pairs(runs))} seeds, and their range")
    figure.suptitle(f"Gradient boosting, {TARGET['rows']:,} rows: best model so far", fontsize=14)
    return figure


def _curve(ax: Axes, runs: Sequence[Run], axis: str, end: float, color: str, style: str, name: str) -> None:
    grid = np.linspace(0.0, end, 301)
    values = np.array([[run.after(spent, axis) for spent in grid] for run in runs])
    values[np.isinf(values)] = np.nan
    known = np.isfinite(values).all(axis=0)  # from where every run has a model
    ax.fill_between(grid[known], values.min(axis=0)[known], values.max(axis=0)[known], color=color, alpha=0.18, lw=0)
    ax.plot(grid[known], np.median(values[:, known], axis=0), style, color=color, lw=2.5, label=name)


def main(budget: float = 12.0, seeds: Sequence[int] = range(5), picture: str | Path = "demo.png") -> None:
    """Run every seed twice, one run per core at a time; print what came out, and draw it."""
    console = Console(highlight=False)
    console.print(__doc__)
    jobs = [(name, seed, budget) for seed in seeds for name in (WITH, WITHOUT)]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    runs: list[Run] = []
    with ProcessPoolExecutor(os.cpu_count()) as pool, Progress(*columns, console=console) as progress:
        bar = progress.add_task(f"{len(jobs)} runs of {budget:g} target evaluations", total=len(jobs))
        for future in as_completed([pool.submit(tune, *job) for job in jobs]):
            runs.append(future.result())
            run = runs[-1]
            console.print(f"seed {run.seed}, {run.name}: loss {run.best[-1]:.4f} after {run.trials} trials")
            progress.advance(bar)
    console.print(compare(runs, budget))
    console.print(summary(runs, budget))
    found = min(runs, key=lambda run: run.best[-1])
    console.print(f"\nThe best model of all has loss {found.best[-1]:.4f}: {in_words(found.x)}.")
    console.print("A few seeds on one data set show how it works; they are not a benchmark.")
    draw(runs, budget).savefig(picture, dpi=150)
    console.print(f"The picture: {picture}")


def in_words(x: Mapping[str, Any]) -> str:
    """Return a point in words."""
    return ", ".join(f"{name} = {value:.3g}" for name, value in x.items())


if __name__ == "__main__":
    main()
