"""Several objectives: boca beside Optuna, BoTorch and random search, by the hypervolume at the target against budget.

    python -m benchmarks.objectives run --out runs.jsonl [--seeds 5] [--first-seed 5] [--problem NAME]... [--method ...]
    python -m benchmarks.objectives table runs.jsonl

`run` adds to a file what it lacks, so it can be stopped and resumed.  `table` prints, for each problem and method, the
hypervolume at a quarter, half and all of the budget as a share of that of the known front, its mean over the seeds with
the standard error, and the paired difference to boca.  Methods are paired: each runs on the same seeds.  Those without
fidelities query the target, as boca-target does.  boca and BoTorch are given the reference from which the hypervolume
is measured, boca-learned is not.  BoTorch needs an environment of its own (torch==2.13.0, botorch).

zdt1 zdt2 zdt3   two objectives, six parameters [Zitzler, Deb, Thiele 2000]; reference 1.2, 3
dtlz2            three objectives, six parameters [Deb, Thiele, Laumanns, Zitzler 2005]; reference 1.1 in each
zdt1-cheap       zdt1 with a fidelity s, which bends both objectives when cheap, and costs 0.05 + 0.95 s^2
currin-cheap     Branin and Currin with a fidelity, in the spirit of [Irshad, Karsch, Doepp 2021]; the same cost
forest           error against size (decimal logarithm of its nodes) of a random forest on 1,797 digits, with the share
                 of the training data as fidelity
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import boca
from boca import Float, Int, Space, targets
from boca.domain.hypervolume import growth, hypervolume, undominated

X = Mapping[str, Any]
SHARES = (0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Task:
    """Objectives to minimize, of x and a fidelity s, which is 1 at the target."""

    space: Space
    evaluate: Callable[[X, float], dict[str, float]]
    reference: tuple[float, ...]
    budget: int
    front: Callable[[], np.ndarray] | None
    """Points of the known front, (k, m); None: that of all results of all methods."""
    has_fidelity: bool = False


def unit_space(d: int) -> Space:
    return Space({f"x{i}": Float(0.0, 1.0) for i in range(d)})


def zdt(kind: int) -> Callable[[X, float], dict[str, float]]:
    def evaluate(x: X, s: float) -> dict[str, float]:
        first, *rest = x.values()
        g = 1.0 + 9.0 * sum(rest) / len(rest)
        share = first / g
        shape = {
            1: 1.0 - math.sqrt(share),
            2: 1.0 - share * share,
            3: 1.0 - math.sqrt(share) - share * math.sin(10.0 * math.pi * first),
        }[kind]
        off = 1.0 - s
        bent = 0.4 * off * math.sin(6.0 * first + 4.0 * rest[0]), 1.0 * off * math.cos(5.0 * rest[1] + 3.0 * first)
        return {"f1": first + bent[0], "f2": g * shape + bent[1]}

    return evaluate


def zdt_front(kind: int) -> Callable[[], np.ndarray]:
    def front() -> np.ndarray:
        f1 = np.linspace(0.0, 1.0, 2001)
        f2 = {1: 1.0 - np.sqrt(f1), 2: 1.0 - f1**2, 3: 1.0 - np.sqrt(f1) - f1 * np.sin(10.0 * np.pi * f1)}[kind]
        return np.stack([f1, f2], axis=1)

    return front


def dtlz2(x: X, s: float) -> dict[str, float]:
    a, b, *rest = x.values()
    r = 1.0 + sum((v - 0.5) ** 2 for v in rest)
    a, b = 0.5 * math.pi * a, 0.5 * math.pi * b
    return {"f1": r * math.cos(a) * math.cos(b), "f2": r * math.cos(a) * math.sin(b), "f3": r * math.sin(a)}


def currin(x: X, s: float) -> dict[str, float]:
    """Return Branin and Currin on the unit square; a cheap query moves both minima and flattens Currin."""
    off = 1.0 - s
    a, b = x["x0"], x["x1"]
    u, v = 15.0 * a - 5.0, 15.0 * b
    curve = (5.1 / (4.0 * math.pi**2) - 0.05 * off) * u * u
    branin = (v - curve + (5.0 / math.pi - 0.3 * off) * u - 6.0) ** 2
    branin += (10.0 - 10.0 * (1.0 / (8.0 * math.pi) + 0.05 * off) * 1.0) * math.cos(u) + 10.0
    factor = 1.0 - (1.0 - 0.3 * off) * math.exp(-1.0 / (2.0 * max(b, 1e-9)))
    top, bottom = 2300.0 * a**3 + 1900.0 * a**2 + 2092.0 * a + 60.0, 100.0 * a**3 + 500.0 * a**2 + 4.0 * a + 20.0
    return {"branin": branin, "currin": -factor * top / bottom + 14.0}


@cache
def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    X, y = load_digits(return_X_y=True)
    return tuple(train_test_split(X, y, test_size=0.4, random_state=0, stratify=y))  # type: ignore[return-value]


def forest(x: X, s: float) -> dict[str, float]:
    from sklearn.ensemble import RandomForestClassifier

    train, test, y_train, y_test = digits()
    count = max(40, round(s * len(train)))
    model = RandomForestClassifier(
        x["trees"],
        max_depth=x["depth"],
        max_features=x["features"],
        min_samples_leaf=x["leaf"],
        random_state=0,
    )
    model.fit(train[:count], y_train[:count])
    nodes = sum(tree.tree_.node_count for tree in model.estimators_)
    return {"error": 1.0 - float(model.score(test, y_test)), "size": math.log10(nodes)}


_FOREST = Space(trees=Int(1, 100, log=True), depth=Int(2, 16), features=Float(0.02, 1.0, log=True), leaf=Int(1, 20))


def dtlz2_front() -> np.ndarray:
    a, b = (grid.ravel() for grid in np.meshgrid(*(np.linspace(0.0, np.pi / 2, 24),) * 2))
    return np.unique(np.round(np.stack([np.cos(a) * np.cos(b), np.cos(a) * np.sin(b), np.sin(a)], axis=1), 12), axis=0)


@cache
def currin_front() -> np.ndarray:
    grid = np.linspace(0.0, 1.0, 401)
    Y = np.array([[*currin({"x0": a, "x1": b}, 1.0).values()] for a in grid for b in grid])
    kept = Y[np.argsort(Y[:, 0], kind="stable")]
    return kept[kept[:, 1] < np.minimum.accumulate(np.append(np.inf, kept[:-1, 1]))]


TASKS: Mapping[str, Task] = {
    **{f"zdt{k}": Task(unit_space(6), zdt(k), (1.2, 3.0), 40, zdt_front(k)) for k in (1, 2, 3)},
    "dtlz2": Task(unit_space(6), dtlz2, (1.1, 1.1, 1.1), 40, dtlz2_front),
    "zdt1-cheap": Task(unit_space(6), zdt(1), (1.2, 3.0), 30, zdt_front(1), has_fidelity=True),
    "currin-cheap": Task(unit_space(2), currin, (100.0, 14.0), 20, currin_front, has_fidelity=True),
    "forest": Task(_FOREST, forest, (0.5, 5.0), 25, None, has_fidelity=True),
}


def cost(s: float) -> float:
    return 0.05 + 0.95 * s * s


Trace = Iterator[tuple[float, float, list[float]]]
"""Cost, fidelity and objectives of each evaluation."""


# Methods --------------------------------------------------------------------------------------------------------------


def with_boca(task: Task, seed: int, *, cheap: bool, knows: bool = True, strategy: Any = None) -> Trace:
    fidelity = Space(s=Float(0.0, 1.0)) if cheap and task.has_fidelity else None

    def objective(x: X, z: X | None = None) -> dict[str, float]:
        return task.evaluate(x, 1.0 if z is None else z["s"])

    names = [*task.evaluate({name: p.from_unit(0.5) for name, p in task.space.items()}, 1.0)]
    result = boca.optimize(
        objective,
        task.space,
        fidelity,
        outcomes=dict.fromkeys(names, "minimize"),
        reference=dict(zip(names, task.reference, strict=True)) if knows else None,
        cost=None if fidelity is None else lambda z: cost(z["s"]),
        budget=targets(task.budget),
        strategy=strategy,
        seed=seed,
        progress=False,
    )
    for trial in result.history:
        yield (1.0 if fidelity is None else trial.cost), trial.z.get("s", 1.0), [trial.outcomes[n] for n in names]


def with_optuna(task: Task, seed: int, kind: str) -> Trace:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    samplers = {
        "nsga2": lambda: optuna.samplers.NSGAIISampler(population_size=max(8, task.budget // 4), seed=seed),
        "tpe": lambda: optuna.samplers.TPESampler(seed=seed, multivariate=True),
    }
    study = optuna.create_study(directions=["minimize"] * len(task.reference), sampler=samplers[kind]())

    def objective(trial: optuna.Trial) -> list[float]:
        x = {}
        for name, p in task.space.items():
            low, high = p.ends
            suggest = trial.suggest_int if p.kind == "int" else trial.suggest_float
            x[name] = suggest(name, low, high, log=p.log)
        return [*task.evaluate(x, 1.0).values()]

    study.optimize(objective, n_trials=task.budget)
    for trial in study.trials:
        yield 1.0, 1.0, list(trial.values)


def with_botorch(task: Task, seed: int) -> Trace:
    """Run qLogNEHVI with its usual settings, after 2 (d + 1) Sobol points."""
    import torch
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from botorch.optim import optimize_acqf
    from botorch.sampling import SobolQMCNormalSampler
    from gpytorch.mlls import SumMarginalLogLikelihood

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    d = len(task.space)

    def value(u: torch.Tensor) -> list[float]:
        return [*task.evaluate(task.space.from_unit(task.space.snap(u.numpy()[None, :])[0]), 1.0).values()]

    U = torch.quasirandom.SobolEngine(d, scramble=True, seed=seed).draw(2 * (d + 1)).double()
    told = [value(u) for u in U]
    for k in range(task.budget):
        if k >= len(told):
            Y = -torch.tensor(told, dtype=torch.double)
            models = [SingleTaskGP(U, Y[:, j : j + 1], outcome_transform=Standardize(1)) for j in range(Y.shape[1])]
            model = ModelListGP(*models)
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            acquisition = qLogNoisyExpectedHypervolumeImprovement(
                model=model,
                ref_point=[-r for r in task.reference],
                X_baseline=U,
                sampler=SobolQMCNormalSampler(torch.Size([128]), seed=seed),
                prune_baseline=True,
            )
            bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
            new, _ = optimize_acqf(acquisition, bounds, q=1, num_restarts=10, raw_samples=512)
            snapped = torch.tensor(task.space.snap(new.numpy()))
            U = torch.vstack([U, snapped])
            told.append(value(U[-1]))
        yield 1.0, 1.0, told[k]


METHODS: Mapping[str, Callable[[Task, int], Trace]] = {
    "boca": lambda task, seed: with_boca(task, seed, cheap=True),
    "boca-learned": lambda task, seed: with_boca(task, seed, cheap=True, knows=False),
    "boca-target": lambda task, seed: with_boca(task, seed, cheap=False),
    "random": lambda task, seed: with_boca(task, seed, cheap=False, strategy=boca.RandomSearch()),
    "nsga2": lambda task, seed: with_optuna(task, seed, "nsga2"),
    "tpe": lambda task, seed: with_optuna(task, seed, "tpe"),
    "botorch": with_botorch,
}


# Runs and tables ------------------------------------------------------------------------------------------------------


def run(out: Path, problems: list[str], methods: list[str], seeds: range) -> None:
    done = {(r["problem"], r["method"], r["seed"]) for r in records(out)} if out.exists() else set()
    for seed in seeds:
        for problem in problems:
            for method in methods:
                task = TASKS[problem]
                if (problem, method, seed) in done or (method == "boca-target" and not task.has_fidelity):
                    continue
                began = time.perf_counter()
                trace = [list(each) for each in METHODS[method](task, seed)]
                seconds = round(time.perf_counter() - began, 2)
                row = {"problem": problem, "method": method, "seed": seed, "seconds": seconds, "trace": trace}
                with out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
                print(problem, method, seed, f"{seconds:.1f} s", flush=True)


def records(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text().splitlines()]


def volumes(task: Task, trace: list[list[Any]]) -> list[float]:
    """Return the hypervolume of the results at the target at each share of the budget."""
    reference = -np.array(task.reference)
    spent_by = np.cumsum([c for c, _, _ in trace])
    at_target = [(spent, -np.array(y)) for spent, (_, s, y) in zip(spent_by, trace, strict=True) if s == 1.0]
    grown = growth(np.array([y for _, y in at_target]).reshape(len(at_target), len(reference)), reference)
    found = []
    for share in SHARES:
        within = [g for (spent, _), g in zip(at_target, grown, strict=True) if spent <= share * task.budget + 1e-9]
        found.append(float(within[-1]) if within else 0.0)
    return found


def whole(task: Task, rows: list[dict[str, Any]]) -> float:
    """Return the hypervolume of the known front, or of all results of all methods."""
    if task.front is not None:
        Y = -task.front()
    else:
        Y = -np.array([y for r in rows for _, s, y in r["trace"] if s == 1.0])
        Y = np.unique(Y, axis=0)
    return hypervolume(Y[undominated(Y)], -np.array(task.reference))


def table(out: Path) -> None:
    rows = records(out)
    print("| problem | method | seeds | at 25 % | at 50 % | at 100 % | less boca: 25 % | 50 % | 100 % | s per run |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for problem, task in TASKS.items():
        here = [r for r in rows if r["problem"] == problem]
        if not here:
            continue
        total = whole(task, here)
        shares = {(r["method"], r["seed"]): np.array(volumes(task, r["trace"])) / total for r in here}
        for method in METHODS:
            own = {seed: v for (m, seed), v in shares.items() if m == method}
            if not own:
                continue
            cells = [with_error(np.array([v[k] for v in own.values()])) for k in range(len(SHARES))]
            paired = [v - shares["boca", seed] for seed, v in own.items() if ("boca", seed) in shares]
            ahead = [with_error(np.array([p[k] for p in paired]), "+") for k in range(len(SHARES))]
            took = np.median([r["seconds"] for r in here if r["method"] == method])
            beside = [""] * len(SHARES) if method == "boca" else ahead
            print("|", " | ".join([problem, method, str(len(own)), *cells, *beside, f"{took:.0f}"]), "|")


def with_error(values: np.ndarray, sign: str = "") -> str:
    if not len(values):
        return ""
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{np.mean(values):{sign}.3f} ± {error:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--seeds", type=int, default=5)
    running.add_argument("--first-seed", type=int, default=5, help="settings were chosen on seeds 0 to 2")
    running.add_argument("--problem", action="append", choices=[*TASKS], default=None)
    running.add_argument("--method", action="append", choices=[*METHODS], default=None)
    showing = commands.add_parser("table")
    showing.add_argument("out", type=Path)
    given = parser.parse_args()
    if given.command == "table":
        table(given.out)
    else:
        seeds = range(given.first_seed, given.first_seed + given.seeds)
        everything = [method for method in METHODS if method != "botorch"]
        run(given.out, given.problem or [*TASKS], given.method or everything, seeds)


if __name__ == "__main__":
    main()
