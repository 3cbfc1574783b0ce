"""Problems where about 30 % of the domain fails, and one where trials fail by chance: boca beside Optuna and random.

    python -m benchmarks.failures --seeds 5 [--first-seed 0] [--problem NAME]... [--method NAME]... [--out runs.csv]

Prints, for each problem and method, the median of the best value, the optimum, and the median number of failed trials,
with those of the second half of the run in brackets.  Methods are paired: each runs on the same seeds.  With `--out`
every run is a row of a CSV file, and runs that are in it are not repeated.  Optuna's GP needs torch.

curved   four parameters; a curved region fails, and the unconstrained optimum lies inside it, close to its border
far      the same region, with the unconstrained optimum deep inside it
large    two parameters and a size; trials fail only when large, in about 30 % of the domain at the target
ball     five parameters; a ball fails, and the unconstrained optimum lies inside it
corner   three parameters, several local optima; a corner fails, and the best optimum lies in it
chance   four parameters; one trial in ten fails, wherever it is
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import boca
from boca import Float, Space, targets

X: TypeAlias = Mapping[str, float]
Found: TypeAlias = list[tuple[float | None, bool]]
"""The value of every trial, None if it failed, and whether it was at the target."""


class Diverged(ArithmeticError):
    """What a failing trial raises."""


@dataclass(frozen=True)
class Failing:
    """A problem to minimize, parts of whose domain fail."""

    space: Space
    evaluate: Callable[[X, float], float]
    budget: int
    optimum: float
    fidelity: Space | None = None


def _square(x: X, weights: Mapping[str, tuple[float, float]]) -> float:
    return sum(weight * (x[name] - best) ** 2 for name, (weight, best) in weights.items())


def curved(x: X, s: float) -> float:
    if x["a"] + 0.5 * math.sin(3.0 * x["b"]) > 1.03:
        raise Diverged
    return _square(x, {"a": (1.5, 0.7), "b": (1.0, 0.7), "c": (1.5, 0.3), "d": (1.5, 0.7)})


def far(x: X, s: float) -> float:
    if x["a"] + 0.5 * math.sin(3.0 * x["b"]) > 1.03:
        raise Diverged
    return _square(x, {"a": (1.0, 0.8), "b": (1.0, 0.6), "c": (0.5, 0.3), "d": (0.5, 0.7)})


def large(x: X, s: float) -> float:
    if (x["a"] + 0.6 * x["b"]) * (0.3 + 0.7 * s) > 0.992:
        raise Diverged
    rough = 1.0 - s
    loss = (x["a"] - 0.75 - 0.1 * rough) ** 2 + (x["b"] - 0.5) ** 2
    return loss + 0.1 * rough * math.sin(4.0 * x["a"] + 2.0 * x["b"])


_CENTER = {"a": 0.6, "b": 0.4, "c": 0.5, "d": 0.6, "e": 0.4}


def ball(x: X, s: float) -> float:
    if _square(x, {name: (1.0, at) for name, at in _CENTER.items()}) < 0.58**2:
        raise Diverged
    return _square(x, {"a": (1.0, 0.25), "b": (1.0, 0.7), "c": (1.0, 0.35), "d": (0.7, 0.6), "e": (0.7, 0.3)})


def corner(x: X, s: float) -> float:
    if x["a"] > 0.45 and x["b"] > 0.45:
        raise Diverged
    waves = sum(0.1 * (1.0 - math.cos(4.0 * math.pi * (x[name] - 0.6))) for name in "ab")
    return waves + _square(x, {"a": (0.5, 0.6), "b": (0.5, 0.6), "c": (1.0, 0.4)})


def chance(x: X, s: float) -> float:
    drawn = hashlib.sha256(repr(sorted(x.items())).encode()).digest()[0]
    if drawn < 26:  # of 256
        raise Diverged
    return _square(x, {"a": (1.5, 0.7), "b": (1.0, 0.7), "c": (1.5, 0.3), "d": (1.5, 0.7)})


def _box(names: str) -> Space:
    return Space({name: Float(0.0, 1.0) for name in names})


PROBLEMS: Mapping[str, Failing] = {
    "curved": Failing(_box("abcd"), curved, 60, 0.00720),
    "far": Failing(_box("abcd"), far, 60, 0.0478),
    "large": Failing(_box("ab"), large, 20, 0.00247, Space(s=Float(0.0, 1.0))),
    "ball": Failing(_box("abcde"), ball, 60, 0.00710),
    "corner": Failing(_box("abc"), corner, 60, 0.1175),
    "chance": Failing(_box("abcd"), chance, 60, 0.0),
}


def with_boca(problem: Failing, seed: int, strategy: Any) -> Found:
    has_fidelity = problem.fidelity is not None

    def objective(x: X, z: X | None = None) -> float:
        return problem.evaluate(x, 1.0 if z is None else z["s"])

    result = boca.minimize(
        objective,
        problem.space,
        problem.fidelity,
        cost=(lambda z: 0.05 + 0.95 * z["s"] ** 2) if has_fidelity else None,
        budget=targets(problem.budget),
        strategy=strategy,
        seed=seed,
    )
    return [(t.value, not has_fidelity or t.z == {"s": 1.0}) for t in result.history]


def with_optuna(problem: Failing, seed: int, make: Callable[..., Any], *, constraint: bool) -> Found:
    """Run a sampler at the target: a failure breaks a constraint of its own, or is a failed trial."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    options = {"constraints_func": lambda trial: [trial.user_attrs["failed"]]} if constraint else {}
    study = optuna.create_study(sampler=make(seed=seed, **options))
    found: Found = []
    for _ in range(problem.budget):
        trial = study.ask()
        x = {name: trial.suggest_float(name, 0.0, 1.0) for name in problem.space}
        try:
            value = problem.evaluate(x, 1.0)
        except Diverged:
            found.append((None, True))
            if constraint:  # with the worst value so far, since a complete trial must have one
                trial.set_user_attr("failed", 1.0)
                study.tell(trial, max((v for v, _ in found if v is not None), default=1.0))
            else:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        trial.set_user_attr("failed", -1.0)
        study.tell(trial, value)
        found.append((value, True))
    return found


def _optuna(name: str, *, constraint: bool) -> Callable[[Failing, int], Found]:
    def run(problem: Failing, seed: int) -> Found:
        import warnings

        import optuna

        warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
        return with_optuna(problem, seed, getattr(optuna.samplers, name), constraint=constraint)

    return run


METHODS: Mapping[str, Callable[[Failing, int], Found]] = {
    "boca": lambda problem, seed: with_boca(problem, seed, boca.Boca()),
    "boca-value": lambda problem, seed: with_boca(problem, seed, boca.Boca(success=False)),
    "boca-success": lambda problem, seed: with_boca(problem, seed, boca.Boca(success=True)),
    "optuna-gp-constraint": _optuna("GPSampler", constraint=True),
    "optuna-tpe-constraint": _optuna("TPESampler", constraint=True),
    "optuna-tpe": _optuna("TPESampler", constraint=False),
    "random": lambda problem, seed: with_boca(problem, seed, boca.RandomSearch()),
}


def measured(problem: Failing, method: str, seed: int) -> tuple[float, int, int, int, float]:
    """Return the best value at the target, the failures, those of the second half, the trials and the seconds."""
    began = time.process_time()
    found = METHODS[method](problem, seed)
    best = min((value for value, is_target in found if value is not None and is_target), default=math.inf)
    failed = [value is None for value, _ in found]
    return best, sum(failed), sum(failed[len(failed) // 2 :]), len(failed), time.process_time() - began


def _known(out: Path | None) -> dict[tuple[str, str, int], list[float]]:
    if out is None or not out.exists():
        return {}
    with out.open(newline="") as file:
        return {(p, m, int(seed)): [float(v) for v in rest] for p, m, seed, *rest in csv.reader(file)}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failures", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N")
    parser.add_argument("--problem", action="append", choices=PROBLEMS)
    parser.add_argument("--method", action="append", choices=METHODS)
    parser.add_argument("--out", type=Path, metavar="CSV")
    given = parser.parse_args()
    known = _known(given.out)
    for name in given.problem or PROBLEMS:
        for method in given.method or METHODS:
            rows = []
            for seed in range(given.first_seed, given.first_seed + given.seeds):
                if (name, method, seed) not in known:
                    row = measured(PROBLEMS[name], method, seed)
                    known[name, method, seed] = list(row)
                    if given.out is not None:
                        with given.out.open("a", newline="") as file:
                            csv.writer(file).writerow([name, method, seed, *row])
                rows.append(known[name, method, seed])
            best, failed, late, trials, seconds = np.median(rows, axis=0)
            values = " ".join(f"{row[0]:.3g}/{row[1]:.0f}" for row in rows)
            print(
                f"{name:7} {method:22} best {best:.4g} (optimum {PROBLEMS[name].optimum:.4g}); failed {failed:.0f} "
                f"({late:.0f}) of {trials:.0f}; {seconds:.0f} s a run; {values}",
                flush=True,
            )


if __name__ == "__main__":
    main()
