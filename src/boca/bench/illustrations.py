"""Figures that need no benchmark: figures 1 and 2 of the paper, and pictures of its theory.

[K17] Kandasamy, Dasarathy, Schneider, Poczos: Multi-fidelity Bayesian Optimisation with Continuous Approximations,
ICML 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from boca import problems, theory
from boca.bench import records
from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray, IntArray
from boca.gp.kernels import Profile
from boca.problems import Benchmark
from boca.strategies import Boca
from boca.study.optimizer import Optimizer
from boca.theory.gap import correlation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_SIZE = (5.4, 3.4)
_DPI = 200
_SETTINGS = {"svg.hashsalt": "boca", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
_BLACK, _BLUE, _VERMILION, _GREY = "#000000", "#0072B2", "#D55E00", "#7F7F7F"
_PURPLE = "#CC79A7"
_NOISE = 86_028_122  # the second number of a stream of noise, beyond any trial number
_JITTER = 1e-10  # on the diagonal of a covariance of draws
_ALPHA = 0.5  # of the theorem, in the pictures


def fidelity_space() -> Figure:
    """Draw figure 1: g over fidelities and domain, f = g(z*, .) in purple and its maximum."""
    from matplotlib.figure import Figure

    bench = problems.get("gp-smooth", seed=0)
    grid = np.linspace(0.0, 1.0, 60)
    G = np.array([[bench.value({"x1": x}, {"z1": z}) for x in grid] for z in grid])  # (z, x)
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes: Any = figure.add_subplot(projection="3d")
    across, along = np.meshgrid(grid, grid)
    axes.plot_surface(along, across, G, cmap="Greys", alpha=0.55, linewidth=0, rcount=60, ccount=60)
    f = G[-1]
    axes.plot(np.ones(60), grid, f, color=_PURPLE, linewidth=2.5, zorder=10)
    best = int(np.argmax(f))
    axes.plot([1.0], [grid[best]], [f[best]], "o", color=_VERMILION, zorder=11)
    axes.text(1.0, grid[best], f[best] + 0.25, "$x_\\star$", color=_VERMILION, zorder=12)
    axes.text2D(0.62, 0.9, "$f(x) = g(z_\\bullet, x)$", color=_PURPLE, transform=axes.transAxes)
    axes.set(xlabel="fidelity z", ylabel="x", zlabel="g(z, x)")
    axes.view_init(elev=28, azim=-50)
    return figure


def bandwidths() -> Figure:
    """Draw figure 2: a draw of a Gaussian process for each of three bandwidths."""
    from matplotlib.figure import Figure

    x = np.linspace(0.0, 1.0, 400)[:, None]
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    looks = ((0.01, _GREY, "-"), (0.15, _BLUE, "--"), (0.5, _VERMILION, "-"))
    for seed, (h, color, line) in enumerate(looks):
        K = correlation("se", x, x, h) + _JITTER * np.eye(len(x))
        values, vectors = np.linalg.eigh(K)
        draw = (vectors * np.sqrt(np.maximum(values, 0.0))) @ np.random.default_rng(seed).standard_normal(len(x))
        axes.plot(x[:, 0], draw, color=color, linestyle=line, linewidth=0.8 if h < 0.1 else 1.6, label=f"h = {h:g}")
    axes.set(xlabel="x", ylabel="f(x)", xlim=(0.0, 1.0))
    axes.legend(frameon=False, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 1.12))
    return figure


def _run(bench: Benchmark, strategy: Boca, seed: int) -> Optimizer:
    """Return a finished study of a benchmark with its noise."""
    optimizer = Optimizer(bench.problem, budget=bench.budget, strategy=strategy, seed=seed)
    rng = np.random.default_rng([seed, _NOISE])
    while (trial := optimizer.ask()) is not None:
        optimizer.tell(trial, bench.observe(trial.x, trial.z, rng))
    return optimizer


def good_set() -> Figure:
    """Draw the good set of a run of the paper's algorithm on Currin, over a map of f, with its target queries."""
    from matplotlib.figure import Figure

    bench = problems.get("currin")
    found = theory.good_set(_run(bench, Boca.paper(), 3), bench.value, alpha=_ALPHA)
    side = np.linspace(0.0, 1.0, 101)
    f = np.array([[bench.value({"x1": a, "x2": b}) for a in side] for b in side])
    figure = Figure(figsize=(5.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    filled = axes.contourf(side, side, f, levels=20, cmap="Greys_r")
    figure.colorbar(filled, ax=axes, label="f(x)")
    axes.contour(side, side, f, levels=[float(f.max()) - found.width], colors=_VERMILION, linewidths=1.8)
    axes.plot(
        *found.queries.T, "o", color=_BLUE, markersize=4, markeredgecolor="white", markeredgewidth=0.5, clip_on=False
    )
    axes.set(xlabel="x1", ylabel="x2")
    axes.set_title(
        f"Good set: {100 * found.volume:.1f} % of the domain, {100 * found.share_inside:.0f} % of the model's "
        f"{len(found.queries)} target queries",
        fontsize=8,
    )
    return figure


def gain() -> Figure:
    """Draw the information gain of greedily chosen points against their number, for two kernels and dimensions."""
    from matplotlib.figure import Figure
    from scipy.stats import qmc

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    n = np.arange(1, 201)
    for d, line in ((1, "-"), (2, "--")):
        X = qmc.Sobol(d, scramble=False).random(1024)
        kernels: tuple[tuple[Profile, str, str], ...] = (
            ("se", _BLUE, "SE"),
            ("matern52", _VERMILION, "Matérn-5/2"),
        )
        for kernel, color, name in kernels:
            grown = theory.greedy_gain(X, len(n), eta2=0.05, kernel=kernel, h=0.2)
            axes.plot(n, grown.gains, color=color, linestyle=line, label=f"{name}, d = {d}")
    axes.set(xlabel="queries n", ylabel="information gain, nats", xscale="log")
    axes.legend(frameon=False)
    return figure


def bound() -> Figure:
    """Draw the simple regret of runs of the paper's algorithm on draws of a known GP, and the bounds of theorems 4, 8.

    The constants of the theorem are a = 2 and b = sqrt(2) / h, with which a slope at one point is as steep as assumed.
    """
    from matplotlib.figure import Figure

    eta2, h = 0.05, 0.1
    n = np.arange(2, 31)
    line = np.linspace(0.0, 1.0, 301)[:, None]
    every = theory.greedy_gain(line, 60, eta2=eta2, h=h).at_most
    constants = theory.Theorem(a=2.0, b=np.sqrt(2.0) / h)
    regrets, goods = [], []
    for seed in range(5):
        bench = problems.get("gp-smooth", seed=seed)
        study = _run(bench, Boca.paper(hyperparameters=bench.hyperparameters), seed)
        regrets.append(_regrets(bench, study, n))
        found = theory.good_set(study, bench.value, alpha=_ALPHA, points=512)
        inside = line[[_near(found.U[found.dilated], u) for u in line]]
        goods.append(theory.greedy_gain(inside, min(60, len(inside)), eta2=eta2, h=h).at_most)
    good = np.mean([g[np.minimum(2 * n, len(g)) - 1] for g in goods], axis=0)
    beta_gp = [theory.gp_ucb_beta(int(k), 1, constants) for k in n]
    beta = [theory.theorem_beta(int(2 * k), 1, constants) for k in n]
    outside = every[np.maximum(np.rint(2.0 * n**_ALPHA).astype(int), 1) - 1]
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    axes.plot(n, theory.gp_ucb_bound(n, beta_gp, every[n - 1], eta2=eta2), color=_BLUE, label="bound of GP-UCB")
    axes.plot(
        n,
        theory.boca_bound(n, beta, good, outside, alpha=_ALPHA, eta2=eta2),
        color=_VERMILION,
        linestyle="--",
        label="bound of BOCA",
    )
    for k, each in enumerate(regrets):
        axes.plot(n, each, color=_GREY, linewidth=0.9, label=None if k else "regret of five runs of BOCA")
    axes.set(xlabel="capital, in target evaluations", ylabel="simple regret, from 1e-4 on", yscale="log")
    axes.legend(frameon=False)
    return figure


def _near(members: FloatArray, u: FloatArray) -> bool:
    return bool(len(members)) and bool(np.min(np.abs(members - u)) < 0.005)


def _regrets(bench: Benchmark, study: Optimizer, n: IntArray) -> list[float]:
    trials = list(study.history)
    at = np.array([bench.problem.is_target(t.z) for t in trials])
    assert bench.optimum is not None
    short = np.array([bench.optimum - bench.value(t.x) for t in trials])
    cost = np.array([t.cost for t in trials])
    found = [theory.simple_regret(short, at, cost, float(k) * bench.problem.target_cost) for k in n]
    return [np.nan if np.isinf(r) else max(r, 1e-4) for r in found]


FIGURES: Mapping[str, Callable[[], Figure]] = {
    "1": fidelity_space,
    "2": bandwidths,
    "good-set": good_set,
    "gain": gain,
    "bound": bound,
}


def write(name: str, directory: Path) -> list[Path]:
    """Write a figure as PNG and SVG."""
    try:
        import matplotlib.style
    except ImportError as error:
        raise InvalidInput("Figures need Matplotlib. Run `pip install 'boca[plots]'`.") from error
    records.make(directory)
    written = []
    with matplotlib.style.context(["default", _SETTINGS]):
        figure = FIGURES[name]()
        for suffix in ("png", "svg"):
            path = directory / f"figure-{name}.{suffix}"
            figure.savefig(path, dpi=_DPI, metadata={"Date": None} if suffix == "svg" else None)
            written.append(path)
    return written
