"""Tune a support vector machine on scikit-learn's digits, cheaply.

Two hyperparameters, C and gamma, and two fidelities: how many images take
part (N), and how many iterations the solver may make (T).  What counts is the
cross-validated accuracy at the target, all 1797 images and 100 iterations.
The budget is counted in targets: one is a cross-validation at the target.

The cost is declared, not measured, so that every run does the same.  It is
N * (50 + T), which follows the seconds on one core: a fixed share for each
image and one for each iteration.  C and gamma matter too, and the declared
cost knows nothing of them; so the seconds are printed beside it.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

import boca

IMAGES, DIGITS = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(DIGITS))  # one fixed shuffle: the first N are a fair sample
IMAGES, DIGITS = IMAGES[ORDER] / 16.0, DIGITS[ORDER]
TARGET = {"N": len(DIGITS), "T": 100}


def accuracy(x: Mapping[str, Any], z: Mapping[str, Any]) -> float:
    """Return the mean accuracy over three folds of the first N images."""
    model = SVC(C=x["C"], gamma=x["gamma"], max_iter=z["T"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # stopping early is what T is for
        return float(cross_val_score(model, IMAGES[: z["N"]], DIGITS[: z["N"]], cv=StratifiedKFold(3)).mean())


def cost(z: Mapping[str, Any]) -> float:
    """Return the cost of a query, in targets."""
    return z["N"] * (50 + z["T"]) / (TARGET["N"] * (50 + TARGET["T"]))


SPACE = boca.Space(C=boca.Float(1e-2, 1e3, log=True), gamma=boca.Float(1e-5, 1e3, log=True))
FIDELITY = boca.Space(N=boca.Int(200, TARGET["N"]), T=boca.Int(10, TARGET["T"]))
WITH, WITHOUT = "with fidelities", "target only"
PROBLEMS = {WITH: boca.Problem(SPACE, FIDELITY, cost=cost, target=TARGET), WITHOUT: boca.Problem(SPACE)}
Runs: TypeAlias = dict[str, list[boca.Optimizer]]


def tune(name: str, budget: float, seed: int, progress: Progress) -> boca.Optimizer:
    """Ask, evaluate and tell until the budget is spent."""
    optimizer = boca.Optimizer(PROBLEMS[name], budget=boca.targets(budget), seed=seed)
    bar = progress.add_task(f"seed {seed}, {name}", total=budget, best="none yet")
    while (trial := optimizer.ask()) is not None:
        began = time.perf_counter()
        value = accuracy(trial.x, trial.z or TARGET)  # without fidelities every query is at the target
        optimizer.tell(trial, value, seconds=time.perf_counter() - began)
        best = f"{optimizer.best.value:.4f}" if optimizer.best else "none yet"
        progress.update(bar, completed=optimizer.spent, best=best)
    return optimizer


def curve(optimizer: boca.Optimizer) -> list[tuple[float, float, float]]:
    """Return after each query at the target: cost so far, seconds to choose and evaluate, best accuracy so far."""
    spent, seconds, best, points = 0.0, 0.0, -math.inf, []
    for trial in optimizer.history:
        spent += trial.cost
        seconds += trial.seconds + trial.overhead
        if optimizer.problem.is_target(trial.z):
            best = max(best, trial.value)
            points.append((spent, seconds, best))
    return points


def report(optimizer: boca.Optimizer) -> str:
    """Say what a run found and what it cost."""
    best, advice, history = optimizer.best, optimizer.recommend(), optimizer.history
    evaluating, choosing = sum(t.seconds for t in history), sum(t.overhead for t in history)
    return (
        f"\nFound at the target: accuracy {best.value:.4f} at C = {best.x['C']:.4g}, gamma = {best.x['gamma']:.4g}.\n"
        f"Recommended: C = {advice.x['C']:.4g}, gamma = {advice.x['gamma']:.4g}.\n"
        f"The model expects {advice.mean:.4f} +- {advice.std:.4f} there; verified at the target: {advice.verified}.\n"
        f"Cost: {optimizer.spent:.2f} targets for {len(history)} queries, {len(curve(optimizer))} at the target.\n"
        f"Seconds: {evaluating:.1f} to evaluate, {choosing:.1f} to choose what to evaluate.\n"
    )


def compare(runs: Runs, quality: float) -> Table:
    """Return what each run had spent when it first saw the quality at the target, and what it ended with."""

    def first(run: boca.Optimizer) -> tuple[float, float]:
        return next(((spent, seconds) for spent, seconds, best in curve(run) if best >= quality), (math.inf, math.inf))

    def in_words(spent: float, seconds: float) -> str:
        return f"{spent:.1f} ({seconds:.1f} s)" if math.isfinite(spent) else "not within its budget"

    table = Table(
        "seed", *runs, *(f"best, {name}" for name in runs), title=f"Cost of {quality:.4f}, in targets and seconds"
    )
    for pair in zip(*runs.values(), strict=True):
        table.add_row(str(pair[0].seed), *(in_words(*first(r)) for r in pair), *(f"{r.best.value:.4f}" for r in pair))
    table.add_section()
    table.add_row("median", *(in_words(*map(median, zip(*map(first, group), strict=True))) for group in runs.values()))
    return table


def draw(runs: Runs, quality: float) -> Figure:
    """Draw which fidelities were queried, and the error at the target against the budget spent."""
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    queried = [(*trial.z.values(), trial.number + 1) for run in runs[WITH] for trial in run.history]
    lower = np.array([row for row in queried if row[:2] != tuple(TARGET.values())]).reshape(-1, 3)
    dots = left.scatter(*lower.T[:2], c=lower[:, 2], cmap="viridis_r", edgecolor="black", linewidth=0.6, s=45)
    figure.colorbar(dots, ax=left, label="number of the query in its run")
    for (N, T), count in zip(*np.unique(lower[:, :2], axis=0, return_counts=True), strict=True):
        if count > 2:
            left.annotate(f"{count} times", (N, T), (6, -4), textcoords="offset points", fontsize=8)
    left.scatter(*TARGET.values(), marker="*", s=320, color="white", edgecolor="black", zorder=3)
    text = f"the target, {len(queried) - len(lower)} times"
    left.annotate(text, tuple(TARGET.values()), (-14, -4), ha="right", textcoords="offset points")
    left.set(xlabel="N, images", ylabel="T, iterations", title=f"Fidelities queried in {len(runs[WITH])} runs")

    for (name, group), style in zip(runs.items(), ("-", "--"), strict=True):
        color = "black" if name == WITH else "tab:orange"
        grid, errors = np.linspace(0.0, group[0].budget.total, 401), []
        for run in group:
            spent, _, best = np.array(curve(run)).T
            error = np.array([math.inf, *(100 * (1 - best))])  # nothing is known before the first query at the target
            errors.append(error[np.searchsorted(spent, grid, side="right")])
            right.step(grid, errors[-1], style, where="post", color=color, lw=0.6, alpha=0.7)
        right.step(grid, np.median(errors, axis=0), style, where="post", color=color, lw=2.2, label=f"{name}, median")
    right.axhline(100 * (1 - quality), color="grey", ls=":", label="the quality compared")
    right.set(xlabel="budget spent, in targets", ylabel="error at the target, %", title="Best so far at the target")
    right.set_yscale("log")
    right.set_yticks([1, 2, 5, 10, 20, 50, 100], labels=["1", "2", "5", "10", "20", "50", "100"])
    right.minorticks_off()
    right.locator_params(axis="x", integer=True)
    right.legend()
    return figure


def main(budget: float = 10.0, seeds: Sequence[int] = range(5), picture: str | Path = "demo.png") -> None:
    """Tune, report, compare with the same strategy at the target only, and draw."""
    console = Console(highlight=False)
    console.print(__doc__)
    spending = TextColumn("{task.completed:4.1f} of {task.total:.0f} targets spent, best {task.fields[best]}")
    columns = (TextColumn("{task.description}"), BarColumn(), spending)
    runs: Runs = {WITH: [], WITHOUT: []}
    with Progress(*columns, console=console) as progress:
        runs[WITH].append(tune(WITH, budget, seeds[0], progress))
    console.print(report(runs[WITH][0]))
    console.print(
        "Now more seeds, and for each of them the same strategy without fidelities.\nIt gets twice the budget.\n"
    )
    with Progress(*columns, console=console) as progress:
        runs[WITH] += [tune(WITH, budget, seed, progress) for seed in seeds[1:]]
        runs[WITHOUT] += [tune(WITHOUT, 2 * budget, seed, progress) for seed in seeds]
    best = max(run.best.value for group in runs.values() for run in group)
    error = math.sqrt(best * (1 - best) / TARGET["N"])
    console.print(f"\nThe best of all is {best:.4f}, with a standard error of {error:.4f} on {TARGET['N']} images.")
    console.print("What had each run spent when it first came as close as that, at the target?\n")
    console.print(compare(runs, best - error))
    console.print("\nA few seeds on one data set show how it works; they are not a benchmark.")
    draw(runs, best - error).savefig(picture, dpi=150)
    console.print(f"Which fidelities were queried: {picture}")


if __name__ == "__main__":
    main()
