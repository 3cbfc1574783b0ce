"""Measure how long a suggestion takes, against scikit-learn and BoTorch if it is installed.

    python benchmarks/overhead.py [--sizes 50 200 1000] [--repeat 3] [--steps 30] [--botorch-max 1000]

Hartmann 3 (three variables, two fidelities), one thread, the same n results for everybody.  All sides of one size
are measured in turn within every repeat, so that a machine that slows down slows them all; medians are printed.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: it reads them once

import argparse  # noqa: E402
import importlib.util  # noqa: E402
import math  # noqa: E402
import platform  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable, Sequence  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from functools import cached_property  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
import scipy  # noqa: E402
from scipy.linalg.lapack import dpotrf, dpotri  # noqa: E402

import boca  # noqa: E402
from boca.domain.reasons import Reasons  # noqa: E402
from boca.gp import fit as gp_fit  # noqa: E402
from boca.gp.kernels import covariance  # noqa: E402
from boca.model.encoding import Encoding  # noqa: E402

SIZES = (50, 100, 200, 500, 1000, 2000)
BOTORCH_RESTARTS, BOTORCH_RAW_SAMPLES = 8, 1024  # as many starts and candidates as ours


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds per suggestion, one thread.")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="results in the history")
    parser.add_argument(
        "--repeat", type=int, default=3, metavar="R", help="runs, of which medians are taken (default: 3)"
    )
    parser.add_argument("--steps", type=int, default=30, metavar="S", help="suggestions of the run (default: 30)")
    parser.add_argument("--botorch-max", type=int, default=1000, metavar="N", help="largest n for BoTorch")
    options = parser.parse_args()

    has_botorch = importlib.util.find_spec("botorch") is not None
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, SciPy {scipy.__version__}, one thread.")
    print(f"`import boca`: {1e3 * import_seconds():.0f} ms (best of 5)\n")
    if not has_botorch:
        print("BoTorch is not installed: its columns are empty. `make oracle` installs it.\n")
    rows = []
    for n in options.sizes:
        use_botorch = has_botorch and n <= options.botorch_max
        rows.append(measure(n, repeat=options.repeat, steps=options.steps, botorch=use_botorch))
        print(f"n = {n} done", file=sys.stderr, flush=True)
    print(tables(rows))


def import_seconds() -> float:
    """Return how long a fresh interpreter takes to import the library."""
    program = "import time; t = time.perf_counter(); import boca; print(time.perf_counter() - t)"
    command = [sys.executable, "-c", program]
    return min(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(5))


# The same results for every side ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """n results as a run of `Boca()` leaves them: most at cheap fidelities, a third at the target, half of those
    near the optimum."""

    n: int

    @cached_property
    def benchmark(self) -> Any:
        return boca.problems.get("hartmann3")

    @cached_property
    def trials(self) -> list[boca.Trial]:
        bench, rng = self.benchmark, np.random.default_rng([self.n, 86_028_157])
        space, fidelity = bench.problem.space, bench.problem.fidelity
        optimum = space.to_unit([bench.maximizer])[0]
        trials = []
        for k in range(self.n):
            u, z = rng.random(len(space)), fidelity.from_unit(rng.random(len(fidelity)) ** 2)
            if k % 3 == 2:
                z = dict(bench.problem.target)
                u = np.clip(optimum + 0.05 * rng.standard_normal(len(space)), 0, 1) if k % 2 else u
            x = space.from_unit(u)
            value = bench.observe(x, z, rng)
            why = {"reason": "made up", "phase": "start"}
            cost = bench.problem.cost(z)
            trials.append(
                boca.Trial(k, x, z, cost, Reasons.of(why), asked=2 * k + 1).completed(value).stored_at(2 * k + 2)
            )
        return trials

    @cached_property
    def budget(self) -> boca.Budget:
        return boca.Budget(1e9, 1.0, spent=sum(t.cost for t in self.trials))

    @cached_property
    def period(self) -> int:
        """How many new results make a refit due."""
        return math.ceil(min(max(self.n / 15.0, 1.0), 25.0))

    def fit(self, n: int) -> dict[str, Any]:
        """Return what a refit after the first n results would have stored."""
        record = self.full_fit(n, seed=0).fit
        assert record is not None
        return {**record, "count": 1}  # the next refit is then one without a random start

    def full_fit(self, n: int, seed: int) -> Any:
        rng = np.random.default_rng(seed)
        return boca.Surrogate().model(self.benchmark.problem, boca.History(self.trials[:n]), rng)

    @cached_property
    def fresh(self) -> list[boca.Trial]:
        """The trials with a fit that is up to date: no refit is due."""
        return self._with_fit(self.fit(self.n))

    @cached_property
    def stale(self) -> list[boca.Trial]:
        """The trials with a fit as old as the schedule allows: a warm refit is due."""
        return self._with_fit(self.fit(self.n - self.period))

    def _with_fit(self, record: dict[str, Any]) -> list[boca.Trial]:
        last = self.trials[-1]
        return [*self.trials[:-1], replace(last, why={**last.why, "phase": "model", "fit": record})]

    @cached_property
    def arrays(self) -> tuple[np.ndarray, np.ndarray]:  # (n, 5), (n,)
        encoding = Encoding(self.benchmark.problem, "matern52")
        X = encoding.features([t.x for t in self.trials], [t.z for t in self.trials])
        y = np.array([t.value for t in self.trials])
        return X, y


# The sides ----------------------------------------------------------------------------------------------------------


def timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def suggestion(case: Case, trials: list[boca.Trial], seed: int, *, refit: bool) -> float:
    """Time one suggestion from a history as the optimizer hands it over, nothing precomputed."""
    rng = np.random.default_rng([seed, case.n])
    began = time.perf_counter()
    made = boca.Boca().suggest(case.benchmark.problem, boca.History(trials), case.budget, rng)
    took = time.perf_counter() - began
    assert made.why["refit"] is refit, "this measures something else than it says"
    return took


def mean_over_a_run(case: Case, steps: int) -> float:
    """Return the mean overhead of at least `steps` suggestions in a row, a whole number of refit periods.

    The first suggestion, which fits from scratch because the results were imported, is not counted.
    """
    bench, rng = case.benchmark, np.random.default_rng(0)
    optimizer = boca.Optimizer(bench.problem, budget=None, seed=0)
    for t in case.trials:
        optimizer.add(t.x, t.z, t.value)
    overheads = []
    for _ in range(1 + case.period * math.ceil(steps / case.period)):
        trial = optimizer.ask()
        assert trial is not None
        optimizer.tell(trial, bench.observe(trial.x, trial.z, rng))
        overheads.append(trial.overhead)
    return statistics.fmean(overheads[1:])


def likelihood_and_floor(case: Case) -> tuple[float, float]:
    """Time one likelihood with its gradient, and the factor and inverse without which there is none."""
    X, y = case.arrays
    encoding = Encoding(case.benchmark.problem, "matern52")
    standard = gp_fit.standardize(y)
    theta = np.array(case.fit(min(case.n, 200))["theta"])
    kappa0, h, diagonal = gp_fit.unpack(theta, encoding.kernel)
    K = covariance(encoding.kernel, kappa0, h, X, np.full(case.n, diagonal))
    noise, scores = np.zeros(case.n), standard.apply(y)
    ours, floor = [], []
    for _ in range(max(5, 2000 // case.n)):
        ours.append(timed(lambda: gp_fit.log_likelihood(theta, encoding.kernel, X, scores, noise, mean=None)))
        A = K.copy(order="F")
        began = time.perf_counter()
        L, _ = dpotrf(A, lower=1, clean=0, overwrite_a=1)
        dpotri(L, lower=1, overwrite_c=1)
        floor.append(time.perf_counter() - began)
    return statistics.median(ours), statistics.median(floor)


def sklearn_fit(case: Case) -> float:
    """Time scikit-learn's fit: Matern-5/2 with a length scale per dimension, amplitude and noise, no restarts."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    X, y = case.arrays
    kernel = ConstantKernel(1.0, (1e-2, 1e3)) * Matern(np.full(X.shape[1], 0.5), (1e-2, 10.0), nu=2.5)
    model = GaussianProcessRegressor(kernel + WhiteKernel(1e-2, (1e-6, 2.0)), normalize_y=True, n_restarts_optimizer=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # bandwidths at their bounds
        return timed(lambda: model.fit(X, y))


def botorch_fit_and_choice(case: Case, seed: int) -> tuple[float, float]:
    """Time BoTorch's default GP and fit, and the cheapest of its acquisitions at the target."""
    import torch
    from botorch.acquisition.analytic import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    X, y = case.arrays
    d, D = len(case.benchmark.problem.space), X.shape[1]
    train_X, train_Y = torch.from_numpy(X.copy()), torch.from_numpy(y.copy())[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model = SingleTaskGP(train_X, train_Y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        fitted = time.perf_counter()
        at_target = train_X[(train_X[:, d:] == 1.0).all(dim=1)]
        with torch.no_grad():
            best = model.posterior(at_target).mean.max()
        optimize_acqf(
            LogExpectedImprovement(model, best_f=best),
            bounds=torch.stack([torch.zeros(D, dtype=torch.double), torch.ones(D, dtype=torch.double)]),
            q=1,
            num_restarts=BOTORCH_RESTARTS,
            raw_samples=BOTORCH_RAW_SAMPLES,
            fixed_features=dict.fromkeys(range(d, D), 1.0),
        )
        return fitted - began, time.perf_counter() - fitted


def botorch_times(case: Case, seed: int) -> dict[str, float]:
    """Return BoTorch's times; what it cannot do it says, and the others go on."""
    try:
        fit, choice = botorch_fit_and_choice(case, seed)
    except Exception as error:
        print(f"BoTorch gave up at n = {case.n}: {error!r}", file=sys.stderr, flush=True)
        return {}
    return {"BoTorch fit": fit, "BoTorch choice": choice}


# All of them --------------------------------------------------------------------------------------------------------


def measure(n: int, *, repeat: int, steps: int, botorch: bool) -> dict[str, float]:
    """Return the medians over all repeats, every side in turn within each."""
    case = Case(n)
    suggestion(case, case.fresh, 0, refit=False)  # what is imported or drawn once is not measured
    found: dict[str, list[float]] = {}
    for r in range(repeat):
        once = {
            "no refit": statistics.median(suggestion(case, case.fresh, 5 * r + i, refit=False) for i in range(5)),
            "warm refit": suggestion(case, case.stale, r, refit=True),
            "full fit": timed(lambda r=r: case.full_fit(n, seed=r + 1).gp),
            "run": mean_over_a_run(case, steps),
            "scikit-learn fit": sklearn_fit(case),
        }
        once["likelihood"], once["floor"] = likelihood_and_floor(case)
        if botorch:
            once |= botorch_times(case, r)
        for name, value in once.items():
            found.setdefault(name, []).append(value)
    return {"n": n, **{name: statistics.median(values) for name, values in found.items()}}


def tables(rows: Sequence[dict[str, float]]) -> str:
    """Return times in milliseconds, then what they are worth against each other."""
    times = ("no refit", "warm refit", "full fit", "run", "scikit-learn fit", "BoTorch fit", "BoTorch choice")
    heads = [
        "n",
        "suggestion, no refit",
        "suggestion, warm refit",
        "full fit",
        "mean of a run, refits included",
        "scikit-learn fit",
        "BoTorch fit",
        "BoTorch choice (LogEI)",
    ]
    ratios = [
        "n",
        "likelihood, ms",
        "factor + inverse, ms",
        "ratio",
        "scikit-learn fit / our full fit",
        "BoTorch fit / our full fit",
        "BoTorch fit + choice / our mean of a run",
    ]
    return "\n\n".join(
        [
            "Milliseconds, Hartmann 3 (p + d = 5), one thread.",
            _markdown(heads, [[f"{row['n']:.0f}", *(_ms(row.get(name)) for name in times)] for row in rows]),
            "One likelihood with its gradient against its floor, and the others' times as multiples of ours.",
            _markdown(ratios, [_ratios(row) for row in rows]),
        ]
    )


def _ratios(row: dict[str, float]) -> list[str]:
    theirs = row["BoTorch fit"] + row["BoTorch choice"] if "BoTorch fit" in row else None
    return [
        f"{row['n']:.0f}",
        _ms(row["likelihood"]),
        _ms(row["floor"]),
        _over(row["likelihood"], row["floor"]),
        _over(row["scikit-learn fit"], row["full fit"]),
        _over(row.get("BoTorch fit"), row["full fit"]),
        _over(theirs, row["run"]),
    ]


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:,.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def _over(a: float | None, b: float) -> str:
    return "-" if a is None else f"{a / b:.2g}" if a < 10 * b else f"{a / b:,.0f}"


def _markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


if __name__ == "__main__":
    main()
