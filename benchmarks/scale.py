"""Measure what a suggestion costs when results are many, where its time goes, and what approximation costs in regret.

    python benchmarks/scale.py cost [--sizes 50 100 200 ... 10000] [--steps 100] [--figure docs/figures/scale]
    python benchmarks/scale.py parts [--sizes 200 1000 10000] [--steps 100]
    python benchmarks/scale.py threads [--results 1000] [--asks 30]
    python benchmarks/scale.py batch [--sizes 200 2000] [--members 8 32] [--repeat 3]
    python benchmarks/scale.py workers [--sizes 200 2000] [--slots 4 16] [--seconds 0.05 2] [--for 20]
    python benchmarks/scale.py regret [--seeds 8] [--asks 30] [--results 2000] [--many 10000]

One thread.  All but `regret` use the results of `overhead.py` on Hartmann 3 (three variables, two fidelities), `regret`
the same recipe on Hartmann 6 (six and four).  `cost` and `parts` measure every size in a process of its own, because
memory that was once used stays with it.  `batch` counts CPU time, because other programs may use the machine, and so
does `workers`, whose objective sleeps.  Markdown is printed; `cost` draws a figure as well.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: it reads them once

import argparse  # noqa: E402
import json  # noqa: E402
import math  # noqa: E402
import platform  # noqa: E402
import resource  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
from collections import defaultdict  # noqa: E402
from collections.abc import Callable, Iterator, Sequence  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from dataclasses import dataclass, field  # noqa: E402
from functools import cached_property, wraps  # noqa: E402
from pathlib import Path  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import scipy  # noqa: E402
from scipy.linalg.blas import dsyrk, dtrmm, dtrsm  # noqa: E402
from scipy.linalg.lapack import dlauum, dpotrf, dtrtri  # noqa: E402

import boca  # noqa: E402
from boca.execution.driver import Driver  # noqa: E402
from boca.execution.executors import engine as engine_of  # noqa: E402
from boca.gp import fit as gp_fit  # noqa: E402
from boca.gp import linalg  # noqa: E402
from boca.gp.kernels import Kernel  # noqa: E402
from boca.model import posterior, surrogate  # noqa: E402
from boca.search import maximizer  # noqa: E402
from boca.strategies.boca import Decision  # noqa: E402
from overhead import Case, _markdown, _ms  # noqa: E402

SIZES = (50, 100, 200, 500, 1000, 2000, 5000, 10_000)
PARTS = (200, 1000, 10_000)
STEPS = 100  # four refits where results are many: one of them, as every fourth, with a random start
FLOOR = 1e-6  # of a regret whose logarithm is taken
NEW = "best new x"
NEVER = 10**9  # results beyond which inference is not exact, for exact inference throughout


def main() -> None:
    parser = argparse.ArgumentParser(description="Suggestions after many results, one thread.")
    commands = parser.add_subparsers(required=True)
    add, least = commands.add_parser, f"suggestions, at least (default: {STEPS})"

    cost = add("cost", help="milliseconds and memory of a suggestion against the number of results")
    cost.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="results in the history")
    cost.add_argument("--steps", type=int, default=STEPS, metavar="S", help=least)
    cost.add_argument("--figure", type=Path, metavar="PATH", help="draw it, as PATH.png and PATH.svg")
    cost.set_defaults(run=run_cost)

    parts = add("parts", help="where the time of a suggestion goes, beside the floor of each part")
    parts.add_argument("--sizes", type=int, nargs="+", default=PARTS, metavar="N", help="results in the history")
    parts.add_argument(
        "--steps", type=int, default=50, metavar="S", help="suggestions of a run, at least (default: 50)"
    )
    parts.set_defaults(run=run_parts)

    threads = add("threads", help="cores that a suggestion uses, and two studies in two threads")
    threads.add_argument("--results", type=int, default=1000, metavar="N", help="in the history (default: 1000)")
    threads.add_argument("--asks", type=int, default=30, metavar="A", help="suggestions per study (default: 30)")
    threads.set_defaults(run=run_threads)

    batch = add("batch", help="CPU time of ask(n), and how many different points it has")
    batch.add_argument("--sizes", type=int, nargs="+", default=(200, 2000), metavar="N", help="results in the history")
    batch.add_argument("--members", type=int, nargs="+", default=(8, 32), metavar="K", help="trials of a batch")
    batch.add_argument("--repeat", type=int, default=3, metavar="R", help="batches of each kind (default: 3)")
    batch.set_defaults(run=run_batch)

    workers = add("workers", help="how busy a driver keeps workers that sleep")
    workers.add_argument("--sizes", type=int, nargs="+", default=(200, 2000), metavar="N", help="results before")
    workers.add_argument("--slots", type=int, nargs="+", default=(4, 16), metavar="W", help="workers")
    workers.add_argument("--seconds", type=float, nargs="+", default=(0.05, 2.0), metavar="S", help="of a trial")
    workers.add_argument("--for", type=float, default=20.0, metavar="T", dest="lasts", help="seconds (default: 20)")
    workers.set_defaults(run=run_workers)

    regret = add("regret", help="studies continued with exact and with approximate inference, paired by seed")
    regret.add_argument("--seeds", type=int, default=8, metavar="S", help="pairs (default: 8)")
    regret.add_argument("--asks", type=int, default=30, metavar="A", help="suggestions per study (default: 30)")
    regret.add_argument("--results", type=int, default=2000, metavar="N", help="for both (default: 2000)")
    regret.add_argument("--many", type=int, default=10_000, metavar="N", help="for the approximation (default: 10000)")
    regret.set_defaults(run=run_regret)

    alone = add("alone")  # one size in a process of its own
    alone.add_argument("what", choices=tuple(ALONE))
    alone.add_argument("n", type=int)
    alone.add_argument("steps", type=int)
    alone.set_defaults(run=lambda options: print(json.dumps(ALONE[options.what](options.n, options.steps))))

    options = parser.parse_args()
    options.run(options)


def about() -> str:
    """Return what the numbers depend on."""
    return (
        f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, one thread, "
        f"load {os.getloadavg()[0]:.1f} at the start. Exact up to {posterior.EXACT_UP_TO:,} results, then through "
        f"{posterior.ACTIVE_RESULTS}; hyperparameters from {surrogate.FITTED_RESULTS}.\n"
    )


def in_a_process(what: str, n: int, steps: int) -> Any:
    """Return what a fresh process measures with n results."""
    command = [sys.executable, __file__, "alone", what, str(n), str(steps)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    print(f"{what}: n = {n} done", file=sys.stderr, flush=True)
    return json.loads(done.stdout)


# A study that continues ----------------------------------------------------------------------------------------------


def study(case: Case, n: int, *, exact: int = posterior.EXACT_UP_TO, shared: bool = True) -> boca.Optimizer:
    """Return a study that knows the first n results of a case and has made its first suggestion.

    That one fits from scratch, because the results were imported, and is not counted.
    """
    strategy = boca.Boca(surrogate=boca.Surrogate(exact_results=exact), share_batch=shared)
    optimizer = boca.Optimizer(case.benchmark.problem, budget=None, strategy=strategy, seed=0)
    for t in case.trials[:n]:
        optimizer.add(t.x, t.z, t.value)
    step(case, optimizer, np.random.default_rng(0))
    return optimizer


def step(case: Case, optimizer: boca.Optimizer, rng: np.random.Generator) -> boca.Trial:
    trial = optimizer.ask()
    assert trial is not None
    return optimizer.tell(trial, case.benchmark.observe(trial.x, trial.z, rng))


def whole_periods(case: Case, optimizer: boca.Optimizer, steps: int) -> list[boca.Trial]:
    """Return at least `steps` suggestions in a row, up to and with a refit: every refit has its whole period."""
    rng = np.random.default_rng(1)
    trials = []
    while len(trials) < steps or not trials[-1].why["refit"]:
        trials.append(step(case, optimizer, rng))
    return trials


# Cost -----------------------------------------------------------------------------------------------------------------


def run_cost(options: argparse.Namespace) -> None:
    print(about())
    rows = [in_a_process("cost", n, options.steps) for n in sorted(options.sizes)]
    print("Milliseconds per suggestion in a run, refits included, Hartmann 3 (p + d = 5).\n")
    print(cost_table(rows))
    print(f"\n{exponents(rows)}")
    if options.figure:
        draw(rows, options.figure)


def cost(n: int, steps: int) -> dict[str, float]:
    """Return how long suggestions after n results take, and the memory that the process had at most.

    CPU time, of the whole step, says on a busy machine what an idle one would need.
    """
    began_with = _peak_megabytes()
    case = Case(n)
    optimizer = study(case, n)
    cpu = time.process_time()
    trials = whole_periods(case, optimizer, steps)
    cpu = time.process_time() - cpu
    took = [t.overhead for t in trials]
    return {
        "n": n,
        "suggestions": len(took),
        "refits": sum(t.why["refit"] for t in trials),
        "mean": statistics.fmean(took),
        "median": statistics.median(took),
        "worst": max(took),
        "cpu": cpu / len(took),
        "memory": _peak_megabytes(),
        "before": began_with,
    }


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024.0 if sys.platform != "darwin" else 1024.0**2)


def cost_table(rows: Sequence[dict[str, float]]) -> str:
    heads = ["n", "suggestions", "refits", "mean", "mean, CPU", "median", "worst", "memory, MB", "of it before, MB"]
    cells = [
        [
            *(f"{row[key]:,.0f}" for key in ("n", "suggestions", "refits")),
            *(_ms(row[key]) for key in ("mean", "cpu", "median", "worst")),
            *(f"{row[key]:,.0f}" for key in ("memory", "before")),
        ]
        for row in rows
    ]
    return _markdown(heads, cells)


def segments() -> dict[str, tuple[float, float]]:
    """Return the sizes between which the way to a suggestion does not change."""
    fitted, exact = surrogate.FITTED_RESULTS, posterior.EXACT_UP_TO
    return {
        f"to {fitted:,}, all exact": (0, fitted),
        f"{fitted:,} to {exact:,}, hyperparameters from {fitted:,}": (fitted, exact),
        f"beyond {exact:,}, through {posterior.ACTIVE_RESULTS:,}": (exact + 1, math.inf),
    }


def exponents(rows: Sequence[dict[str, float]]) -> str:
    """Return how the mean grows within each segment: the slope of a line through its logarithm over that of n."""
    heads = ["results", "sizes measured", "mean grows as", "mean CPU grows as", "median grows as"]
    cells = []
    for name, (low, high) in segments().items():
        inside = [row for row in rows if low <= row["n"] <= high]
        if len(inside) >= 2:
            sizes = ", ".join(f"{row['n']:,.0f}" for row in inside)
            cells.append([name, sizes, *(f"n^{slope(inside, key):.2f}" for key in ("mean", "cpu", "median"))])
    return _markdown(heads, cells)


def slope(rows: Sequence[dict[str, float]], key: str) -> float:
    return float(np.polyfit(np.log([row["n"] for row in rows]), np.log([row[key] for row in rows]), 1)[0])


def draw(rows: Sequence[dict[str, float]], path: Path) -> None:
    """Write the figure: mean, median and worst against n, told apart by color, line and marker alike."""
    import matplotlib.style
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullFormatter

    looks = {
        "worst": ("#D55E00", ":", "^", "worst"),
        "mean": ("#000000", "-", "o", "mean of a run"),
        "median": ("#0072B2", "--", "s", "median"),
    }
    settings = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "boca"}
    with matplotlib.style.context(["default", settings]):
        figure = Figure(figsize=(5.4, 3.4), layout="constrained")
        panel = figure.add_subplot()
        n = [row["n"] for row in rows]
        for key, (color, line, marker, label) in looks.items():
            y = [1e3 * row[key] for row in rows]
            face = color if key == "mean" else "white"
            panel.plot(
                n, y, color=color, linestyle=line, marker=marker, markersize=5, markerfacecolor=face, label=label
            )
        panel.set(xscale="log", yscale="log", xlabel="results, n", ylabel="milliseconds per suggestion")
        panel.set_xticks(n, [f"{size:,}" for size in n])
        panel.xaxis.set_minor_formatter(NullFormatter())
        panel.yaxis.set_minor_formatter(NullFormatter())
        panel.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:,g}"))
        panel.grid(True, which="major", color="0.9", linewidth=0.6)
        bottom = panel.get_ylim()[0]
        borders = {
            surrogate.FITTED_RESULTS: f"hyper-\nparameters\nfrom {surrogate.FITTED_RESULTS:,}",
            posterior.EXACT_UP_TO: f"results\nthrough {posterior.ACTIVE_RESULTS:,}",
        }
        for border, words in borders.items():
            if min(n) < border < max(n):
                panel.axvline(border, color="0.5", linewidth=0.8, zorder=0)
                panel.text(border * 1.05, bottom * 1.1, words, va="bottom", fontsize=7, color="0.3")
        panel.legend(frameon=False, loc="upper left")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path.with_suffix(".png"), dpi=150)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})


# Parts ----------------------------------------------------------------------------------------------------------------


@dataclass
class Stopwatch:
    """Times of functions that call each other, each without what was measured inside it."""

    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    shapes: dict[str, list[tuple[int, ...]]] = field(default_factory=lambda: defaultdict(list))
    """What the linear algebra was done on, by the part that asked for it."""
    stack: list[str] = field(default_factory=list)

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function with its own time added to a part; what it calls is taken off again."""

        @wraps(function)
        def wrapped(*args: Any, **more: Any) -> Any:
            self.stack.append(part)
            began = time.perf_counter()
            try:
                return function(*args, **more)
            finally:
                took = time.perf_counter() - began
                self.stack.pop()
                self.seconds[part] += took
                if self.stack:
                    self.seconds[self.stack[-1]] -= took

        return wrapped

    def noted(self, kind: str, function: Callable[..., Any], shape: Callable[..., tuple[int, ...]]) -> Any:
        """Return the function, its shapes noted with the part within which it was called."""

        @wraps(function)
        def wrapped(*args: Any, **more: Any) -> Any:
            self.shapes[f"{kind} in {self.stack[-1] if self.stack else REST}"].append(shape(*args))
            return function(*args, **more)

        return wrapped


KERNEL, FACTOR, GRADIENT, REST = "kernel", "factor", "gradient of the likelihood", "everything else"
ACTIVE_SET, COMPRESSION, ANCHORS = "choice of the active results", "compression", "anchors"
MAXIMA, CANDIDATES, REFINE, FIDELITY = "draws of the maximum", "candidates", "refinement", "fidelity"
ORDER = (KERNEL, FACTOR, GRADIENT, ACTIVE_SET, COMPRESSION, ANCHORS, MAXIMA, CANDIDATES, REFINE, FIDELITY, REST)

FLOORS = {
    KERNEL: "one exp an entry",
    FACTOR: "dpotrf and dtrtri",
    GRADIENT: "dlauum",
    COMPRESSION: "dtrsm and dsyrk",
    MAXIMA: "dtrmm",
    CANDIDATES: "dtrmm",
    REFINE: "dtrmm",
    FIDELITY: "dtrmm",
}

TIMED = (
    (boca.Boca, "suggest", REST),
    (gp_fit, "log_likelihood", GRADIENT),
    (posterior, "spread", ACTIVE_SET),
    (posterior, "compressed", COMPRESSION),
    (posterior.Model, "means", ANCHORS),
    (Decision, "_maxima", MAXIMA),
    (maximizer, "_screened", CANDIDATES),
    (maximizer, "_refine", REFINE),
    (Decision, "fidelity", FIDELITY),
    (linalg, "factor", FACTOR),
    (linalg, "_inverse", FACTOR),
    (Kernel, "product", KERNEL),
)


@contextmanager
def watched() -> Iterator[Stopwatch]:
    """Measure the parts of whatever suggestions are made inside."""
    watch = Stopwatch()
    noted = (
        (linalg.Factor, "whiten", "whiten", lambda factor, B: B.shape),
        (linalg.Factor, "solve_transposed", "whiten", lambda factor, B: B.shape),
        (linalg.Factor, "inverse", "inverse", lambda factor: (len(factor.L),)),
        (linalg, "factor", "factor", lambda K, level=None: (len(K),)),
        (linalg, "_inverse", "invert", lambda L: (len(L),)),
        (Kernel, "product", "kernel", lambda _, h, scaled, A, B, slopes=None: (len(A), len(B))),
    )
    before = [(owner, name, getattr(owner, name)) for owner, name, *_ in (*TIMED, *noted)]
    try:
        for owner, name, part in TIMED:
            setattr(owner, name, watch.timed(part, getattr(owner, name)))
        for owner, name, kind, shape in noted:
            setattr(owner, name, watch.noted(kind, getattr(owner, name), shape))
        yield watch
    finally:
        for owner, name, original in reversed(before):
            setattr(owner, name, original)


def parts(n: int, steps: int) -> dict[str, Any]:
    """Return seconds per suggestion by part, and the floor of each: the bare operation on the same shapes."""
    case = Case(n)
    optimizer = study(case, n)
    with watched() as watch:
        trials = whole_periods(case, optimizer, steps)
    count, total = len(trials), sum(t.overhead for t in trials)
    watch.seconds[REST] += total - sum(watch.seconds.values())
    floors = {
        KERNEL: sum(replayed(s, exponential) for name, s in watch.shapes.items() if name.startswith("kernel in")),
        FACTOR: sum(replayed(s, cholesky) for name, s in watch.shapes.items() if name.startswith("factor in"))
        + sum(replayed(s, triangle) for name, s in watch.shapes.items() if name.startswith("invert in")),
        GRADIENT: replayed(watch.shapes[f"inverse in {GRADIENT}"], inverse),
        COMPRESSION: replayed(watch.shapes[f"whiten in {COMPRESSION}"], solve_and_square),
        **{part: replayed(watch.shapes[f"whiten in {part}"], multiply) for part in FLOORS if FLOORS[part] == "dtrmm"},
    }
    return {
        "n": n,
        "suggestions": count,
        "total": total / count,
        "seconds": {part: watch.seconds[part] / count for part in ORDER if part in watch.seconds},
        "floors": {part: floor / count for part, floor in floors.items() if floor > 0.0},
    }


def replayed(shapes: Sequence[tuple[int, ...]], operation: Callable[..., Callable[[], object]]) -> float:
    """Return the seconds that the bare operation takes on all of these shapes; each kind is measured a few times."""
    total = 0.0
    for shape in set(shapes):
        action = operation(*shape)
        action()
        took = []
        for _ in range(5):
            began = time.perf_counter()
            action()
            took.append(time.perf_counter() - began)
        total += statistics.median(took) * sum(1 for other in shapes if other == shape)
    return total


def exponential(rows: int, columns: int) -> Callable[[], object]:
    """One exp an entry, in place, in blocks as the library has them."""
    E = -np.random.default_rng(0).random((rows, columns))
    out = np.empty_like(E)
    return lambda: np.exp(E, out=out)


def factored(n: int) -> np.ndarray:  # (n, n)
    return np.asfortranarray(np.tril(np.random.default_rng(0).random((n, n))) / n + np.eye(n))


def cholesky(n: int) -> Callable[[], object]:
    L = factored(n)
    K = np.asfortranarray(L @ L.T)
    return lambda: dpotrf(K, lower=1, clean=0)


def triangle(n: int) -> Callable[[], object]:
    L = factored(n)
    return lambda: dtrtri(L, lower=1)


def inverse(n: int) -> Callable[[], object]:
    W = factored(n)
    return lambda: dlauum(W, lower=1)


def multiply(n: int, m: int) -> Callable[[], object]:
    W, B = factored(n), np.asfortranarray(np.random.default_rng(1).random((n, m)))
    return lambda: dtrmm(1.0, W, B, lower=1)


def solve_and_square(n: int, m: int) -> Callable[[], object]:
    """What a block of results costs at least: a solve, since what is compressed has next to no noise, and a square."""
    L, B = factored(n), np.asfortranarray(np.random.default_rng(1).random((n, m)))
    return lambda: dsyrk(1.0, dtrsm(1.0, L, B, lower=1), lower=1)


def run_parts(options: argparse.Namespace) -> None:
    print(about())
    print("Milliseconds per suggestion in a run, refits included; in brackets the floor, the bare operation alone.\n")
    found = [in_a_process("parts", n, options.steps) for n in options.sizes]
    heads = ["part", *(f"n = {row['n']:,}" for row in found), "floor"]
    cells = [[part, *(_part(row, part) for row in found), FLOORS.get(part, "-")] for part in ORDER]
    cells.append(["**all**", *(f"**{_ms(row['total'])}**" for row in found), ""])
    print(_markdown(heads, cells))


def _part(row: dict[str, Any], part: str) -> str:
    if part not in row["seconds"]:
        return "-"
    floor = row["floors"].get(part)
    return _ms(row["seconds"][part]) + ("" if floor is None else f" ({_ms(floor)})")


# Threads --------------------------------------------------------------------------------------------------------------


def run_threads(options: argparse.Namespace) -> None:
    print(about())
    found = in_a_process("threads", options.results, options.asks)
    print(f"{found['asks']} suggestions after {options.results:,} results.\n")
    rows = [
        ["cores in use, CPU time over wall time", f"{found['cores']:.2f}"],
        ["one study alone on one core", f"{_ms(found['alone'])} ms per suggestion"],
        ["two studies in two threads on one core", f"{_ms(found['together'])} ms per suggestion of each"],
        ["ratio", f"{found['together'] / found['alone']:.2f}"],
    ]
    print(_markdown(["", ""], rows))


def threads(n: int, asks: int) -> dict[str, float]:
    """Return how many cores suggestions use, and how two studies share one."""
    case = Case(n)
    studies = [study(case, n) for _ in range(3)]
    wall, cpu = time.perf_counter(), time.process_time()
    _ask(case, studies[0], asks)
    cores = (time.process_time() - cpu) / (time.perf_counter() - wall)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    alone = _ask(case, study(case, n), asks)
    took: list[float] = []
    both = [threading.Thread(target=lambda o=o: took.append(_ask(case, o, asks))) for o in studies[1:]]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    return {"asks": asks, "cores": cores, "alone": alone, "together": statistics.fmean(took)}


def _ask(case: Case, optimizer: boca.Optimizer, asks: int) -> float:
    """Return the mean seconds of some suggestions, by the clock on the wall."""
    rng, began = np.random.default_rng(1), time.perf_counter()
    for _ in range(asks):
        step(case, optimizer, rng)
    return (time.perf_counter() - began) / asks


# Batches --------------------------------------------------------------------------------------------------------------

NEAR = 0.2  # in the unit cube: ten points of a batch that are so close to each other are one point


def run_batch(options: argparse.Namespace) -> None:
    print(about())
    print("CPU milliseconds of `ask(k)` on Hartmann 3, medians; distinct: points farther than 0.2 from the others.\n")
    rows = [row for n in options.sizes for row in batches(n, options.members, options.repeat)]
    heads = ["n", "k", "one suggestion", "k by themselves", "ask(k)", "ratio to one", "distinct of the first 10"]
    print(_markdown(heads, rows))


def batches(n: int, members: Sequence[int], repeat: int) -> list[list[str]]:
    """Return rows: what a batch costs beside trials that are chosen by themselves, and how they spread."""
    rows = []
    for k in members:
        case = Case(n)
        sides = {shared: study(case, n, shared=shared) for shared in (False, True)}
        one = []
        for _ in range(repeat):
            cpu = time.process_time()
            trial = sides[True].ask()
            one.append(time.process_time() - cpu)
            assert trial is not None
            tell_all(case, sides[True], [trial])
        took: dict[bool, list[float]] = {False: [], True: []}
        spread: dict[bool, list[int]] = {False: [], True: []}
        for _ in range(repeat):
            for shared, optimizer in sides.items():
                cpu = time.process_time()
                trials = optimizer.ask(k)
                took[shared].append(time.process_time() - cpu)
                points = case.benchmark.problem.space.to_unit([t.x for t in trials[:10]])
                spread[shared].append(distinct(points))
                tell_all(case, optimizer, trials)
        single, apart, together = (statistics.median(t) for t in (one, took[False], took[True]))
        counts = f"{statistics.fmean(spread[True]):.1f} (by themselves {statistics.fmean(spread[False]):.1f})"
        rows.append([f"{n:,}", str(k), _ms(single), _ms(apart), _ms(together), f"{together / single:.1f}", counts])
    return rows


def tell_all(case: Case, optimizer: boca.Optimizer, trials: Sequence[boca.Trial]) -> None:
    rng = np.random.default_rng([len(optimizer.history), 1])
    for trial in trials:
        optimizer.tell(trial, case.benchmark.observe(trial.x, trial.z, rng))


def distinct(points: np.ndarray) -> int:  # (m, d)
    """Return how many points are left if one is dropped that is near one that was kept."""
    kept: list[np.ndarray] = []
    for u in points:
        if all(np.linalg.norm(u - other) > NEAR for other in kept):
            kept.append(u)
    return len(kept)


def run_workers(options: argparse.Namespace) -> None:
    print(about())
    print(f"Threads that sleep, for {options.lasts:g} s; CPU per trial is all that the driver does for it.\n")
    rows = []
    for n in options.sizes:
        for slots in options.slots:
            for seconds in options.seconds:
                for shared in (False, True):
                    rows.append(kept_busy(n, slots, seconds, options.lasts, shared=shared))
                    print(rows[-1], file=sys.stderr, flush=True)
    heads = ["n", "workers", "seconds per trial", "chosen", "trials", "used", "CPU per trial, ms", "load"]
    print(_markdown(heads, rows))


def kept_busy(n: int, slots: int, seconds: float, lasts: float, *, shared: bool) -> list[str]:
    """Return which share of the time workers were used, from the first trial on until no more are asked for."""
    case = Case(n)
    optimizer = study(case, n, shared=shared)
    began, cpu = time.perf_counter(), time.process_time()
    ends = began + lasts
    slept: list[float] = []

    def objective(x: dict[str, Any], z: dict[str, Any]) -> float:
        start = time.perf_counter()
        time.sleep(seconds)
        slept.append(max(min(time.perf_counter(), ends) - start, 0.0))
        return float(case.benchmark.value(x, z))

    with ThreadPoolExecutor(slots) as pool:
        engine = engine_of(pool, objective, takes_fidelity=True)
        driver = Driver(optimizer, engine, after=lambda *_: time.perf_counter() >= ends)
        driver.run()
    count = sum(t.number > n for t in optimizer.history)
    per_trial = (time.process_time() - cpu) / count
    how = "together" if shared else "one by one"
    used = f"{100.0 * sum(slept) / (slots * lasts):.0f} %"
    return [f"{n:,}", str(slots), f"{seconds:g}", how, str(count), used, _ms(per_trial), f"{os.getloadavg()[0]:.0f}"]


# Regret ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Hard(Case):
    """The same recipe on Hartmann 6; another n is another draw, so n is the place for a seed."""

    @cached_property
    def benchmark(self) -> Any:
        return boca.problems.get("hartmann6")


def continued(case: Case, n: int, asks: int, *, exact: int) -> dict[str, float]:
    """Return the regrets after some suggestions on top of n results, with exact inference up to `exact`."""
    bench, rng = case.benchmark, np.random.default_rng([case.n, 1])
    optimizer = study(case, n, exact=exact)
    overhead = statistics.fmean(step(case, optimizer, rng).overhead for _ in range(asks))
    new = [t for t in optimizer.history if t.number >= n]
    recommendation = optimizer.recommend()
    assert recommendation is not None
    at_target = [t for t in optimizer.history if bench.problem.is_target(t.z)]
    return {
        "simple regret": bench.optimum - max(bench.value(t.x) for t in at_target),
        NEW: bench.optimum - max(bench.value(t.x) for t in new),
        "recommendation": bench.optimum - bench.value(recommendation.x),
        "overhead": overhead,
        "at the target": sum(t.number >= n for t in at_target),
        "before": bench.optimum - max(bench.value(t.x) for t in at_target if t.number < n),
    }


def run_regret(options: argparse.Namespace) -> None:
    print(about())
    sides = {
        f"exact, n = {options.results:,}": (options.results, NEVER),
        f"approximate, n = {options.results:,}": (options.results, posterior.EXACT_UP_TO),
        f"approximate, n = {options.many:,}": (options.many, posterior.EXACT_UP_TO),
    }
    found: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for seed in range(options.seeds):
        case = Hard(options.many + seed)
        for name, (n, exact) in sides.items():
            found[name].append(continued(case, n, options.asks, exact=exact))
            print(f"seed {seed}, {name}: {found[name][-1]}", file=sys.stderr, flush=True)
    print(f"Hartmann 6, {options.asks} suggestions after n results, {options.seeds} seeds.")
    print("Mean ± standard error (median).\n")
    print(regret_table(found))


def regret_table(found: dict[str, list[dict[str, float]]]) -> str:
    """Return regrets, then the logarithms of their ratios to the first side on the same seed."""
    keys = ("before", "simple regret", NEW, "recommendation")
    first, *others = found
    levels = _markdown(
        ["inference", "regret before", "simple regret", NEW, "recommendation", "new at z*", "ms per suggestion"],
        [
            [
                name,
                *(_level([run[key] for run in runs]) for key in keys),
                f"{statistics.fmean(run['at the target'] for run in runs):.0f}",
                _ms(statistics.fmean(run["overhead"] for run in runs)),
            ]
            for name, runs in found.items()
        ],
    )
    ratios = _markdown(
        [f"log10 ratio to {first}", "simple regret", NEW, "recommendation"],
        [[name, *(_ratio(found[name], found[first], key) for key in keys[1:])] for name in others],
    )
    return f"{levels}\n\n{ratios}"


def _level(values: Sequence[float]) -> str:
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.fmean(values):.2g} ± {error:.1g} ({statistics.median(values):.2g})"


def _ratio(ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]], key: str) -> str:
    logs = [math.log10(max(a[key], FLOOR) / max(b[key], FLOOR)) for a, b in zip(ours, theirs, strict=True)]
    error = statistics.stdev(logs) / math.sqrt(len(logs)) if len(logs) > 1 else math.nan
    return f"{statistics.fmean(logs):+.2f} ± {error:.2f}"


ALONE: dict[str, Callable[[int, int], Any]] = {"cost": cost, "parts": parts, "threads": threads}

if __name__ == "__main__":
    main()
