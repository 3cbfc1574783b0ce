"""Three constrained problems with known optima, and one where trials fail: boca beside Optuna and random search.

    python -m benchmarks.limits --seeds 5 [--problem NAME]... [--method NAME]...

Prints, for each problem and method, the median over the seeds of the best feasible value beside the optimum, and how
many trials were infeasible or failed.  Methods are paired: each runs on the same seeds.  Optuna's GP needs
torch, in an environment of its own.

gramacy    two parameters and two constraints [Gramacy et al. 2016]; optimum 0.5998
vessel     the pressure vessel, up to 240 long: four parameters, four constraints [Coello Coello 2002]; optimum 5850.38
reducer    the speed reducer: seven parameters and eleven constraints [Lemonge et al. 2010]; optimum 2994.42
cheap      gramacy with one fidelity, whose constraint and objective are both off when cheap
fails      four parameters; trials fail in about 30 % of the domain, where the unconstrained optimum lies
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import boca
from boca import AtMost, Float, Int, Space, targets

X = Mapping[str, Any]


@dataclass(frozen=True)
class Constrained:
    """A problem to minimize, whose constraints are at most 0."""

    space: Space
    evaluate: Callable[[X, float], dict[str, float]]
    budget: int
    optimum: float
    fidelity: Space | None = None

    @property
    def names(self) -> list[str]:
        """The constraints."""
        middle = {name: p.from_unit(0.5) for name, p in self.space.items()}
        try:
            return [name for name in self.evaluate(middle, 1.0) if name != "loss"]
        except ArithmeticError:
            return []


def gramacy(x: X, s: float) -> dict[str, float]:
    a, b, off = x["a"], x["b"], 1.0 - s
    c1 = 1.5 - a - 2 * b - 0.5 * math.sin(2 * math.pi * (a * a - 2 * b))
    return {
        "loss": a + b + 0.2 * off * math.sin(5 * a),
        "c1": c1 + 0.3 * off * math.cos(4 * b),
        "c2": a * a + b * b - 1.5,
    }


def vessel(x: X, s: float) -> dict[str, float]:
    shell, head, r, length = 0.0625 * x["shell"], 0.0625 * x["head"], x["r"], x["length"]
    loss = 0.6224 * shell * r * length + 1.7781 * head * r * r + 3.1661 * shell**2 * length + 19.84 * shell**2 * r
    volume = 1_296_000 - math.pi * r * r * length - 4 / 3 * math.pi * r**3
    return {"loss": loss, "c1": 0.0193 * r - shell, "c2": 0.00954 * r - head, "c3": volume / 1e6, "c4": length - 240}


def reducer(x: X, s: float) -> dict[str, float]:
    b, m, z, l1, l2, d1, d2 = (x[name] for name in ("b", "m", "z", "l1", "l2", "d1", "d2"))
    loss = 0.7854 * b * m**2 * (3.3333 * z**2 + 14.9334 * z - 43.0934) - 1.508 * b * (d1**2 + d2**2)
    loss += 7.4777 * (d1**3 + d2**3) + 0.7854 * (l1 * d1**2 + l2 * d2**2)
    return {
        "loss": loss,
        "c1": 27 / (b * m**2 * z) - 1,
        "c2": 397.5 / (b * m**2 * z**2) - 1,
        "c3": 1.93 * l1**3 / (m * z * d1**4) - 1,
        "c4": 1.93 * l2**3 / (m * z * d2**4) - 1,
        "c5": math.sqrt((745 * l1 / (m * z)) ** 2 + 16.9e6) / (110 * d1**3) - 1,
        "c6": math.sqrt((745 * l2 / (m * z)) ** 2 + 157.5e6) / (85 * d2**3) - 1,
        "c7": m * z / 40 - 1,
        "c8": 5 * m / b - 1,
        "c9": b / (12 * m) - 1,
        "c10": (1.5 * d1 + 1.9) / l1 - 1,
        "c11": (1.1 * d2 + 1.9) / l2 - 1,
    }


def crash(x: X, s: float) -> dict[str, float]:
    a, b, c, d = (x[name] for name in "abcd")
    if a + 0.5 * math.sin(3.0 * b) > 0.93:
        raise ArithmeticError("diverged")
    return {"loss": (a - 0.8) ** 2 + (b - 0.6) ** 2 + 0.5 * (c - 0.3) ** 2 + 0.5 * (d - 0.7) ** 2}


_SQUARE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
PROBLEMS: Mapping[str, Constrained] = {
    "gramacy": Constrained(_SQUARE, gramacy, 30, 0.59979),
    "vessel": Constrained(
        Space(shell=Int(1, 99), head=Int(1, 99), r=Float(10.0, 200.0), length=Float(10.0, 240.0)), vessel, 60, 5850.383
    ),
    "reducer": Constrained(
        Space(
            b=Float(2.6, 3.6),
            m=Float(0.7, 0.8),
            z=Int(17, 28),
            l1=Float(7.3, 8.3),
            l2=Float(7.3, 8.3),
            d1=Float(2.9, 3.9),
            d2=Float(5.0, 5.5),
        ),
        reducer,
        50,
        2994.42,
    ),
    "cheap": Constrained(_SQUARE, gramacy, 15, 0.59979, Space(s=Float(0.0, 1.0))),
    "fails": Constrained(Space({name: Float(0.0, 1.0) for name in "abcd"}), crash, 60, math.nan),
}


def with_boca(problem: Constrained, seed: int, strategy: Any) -> list[tuple[float | None, bool]]:
    """Return the value and the feasibility of every trial at the target; None if it failed."""
    has_fidelity = problem.fidelity is not None

    def objective(x: X, z: X | None = None) -> Any:
        told = problem.evaluate(x, 1.0 if z is None else z["s"])
        return told if len(told) > 1 else told["loss"]

    limits = {name: AtMost(0.0) for name in problem.names}
    result = boca.minimize(
        objective,
        problem.space,
        problem.fidelity,
        cost=(lambda z: 0.05 + 0.95 * z["s"] ** 2) if has_fidelity else None,
        budget=targets(problem.budget),
        subject_to=limits,
        strategy=strategy,
        seed=seed,
    )
    at_target = [t for t in result.history if not has_fidelity or t.z == {"s": 1.0}]
    return [(t.value, t.state == "complete" and all(v <= 0.0 for v in t.outcomes.values())) for t in at_target]


def with_optuna(problem: Constrained, seed: int, sampler: str) -> list[tuple[float | None, bool]]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def constraints(trial: Any) -> list[float]:
        return list(trial.user_attrs["broken"])

    kind = {"optuna-gp": optuna.samplers.GPSampler, "optuna-tpe": optuna.samplers.TPESampler}[sampler]
    names = problem.names
    study = optuna.create_study(sampler=kind(seed=seed, constraints_func=constraints))
    found: list[tuple[float | None, bool]] = []
    for _ in range(problem.budget):
        trial = study.ask()
        x: dict[str, Any] = {}
        for name, p in problem.space.items():
            suggest = trial.suggest_int if p.kind == "int" else trial.suggest_float
            x[name] = suggest(name, *p.ends)
        try:
            told = problem.evaluate(x, 1.0)
        except ArithmeticError:  # as a constraint of its own, with the worst value so far
            trial.set_user_attr("broken", [1.0])
            study.tell(trial, max([v for v, _ in found if v is not None], default=1.0))
            found.append((None, False))
            continue
        broken = [told[name] for name in names] or [-1.0]
        trial.set_user_attr("broken", broken)
        study.tell(trial, told["loss"])
        found.append((told["loss"], all(c <= 0.0 for c in broken)))
    return found


METHODS: Mapping[str, Callable[[Constrained, int], list[tuple[float | None, bool]]]] = {
    "boca": lambda problem, seed: with_boca(problem, seed, boca.Boca()),
    "boca-success": lambda problem, seed: with_boca(problem, seed, boca.Boca(success=True)),
    "optuna-gp": lambda problem, seed: with_optuna(problem, seed, "optuna-gp"),
    "optuna-tpe": lambda problem, seed: with_optuna(problem, seed, "optuna-tpe"),
    "random": lambda problem, seed: with_boca(problem, seed, boca.RandomSearch()),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.limits", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--problem", action="append", choices=PROBLEMS)
    parser.add_argument("--method", action="append", choices=METHODS)
    given = parser.parse_args()
    for name in given.problem or PROBLEMS:
        for method in given.method or METHODS:
            if (method == "boca-success") != (name == "fails") and method == "boca-success":
                continue
            began, best, bad = time.perf_counter(), [], []
            for seed in range(given.seeds):
                found = METHODS[method](PROBLEMS[name], seed)
                best.append(min((v for v, ok in found if ok and v is not None), default=math.inf))
                bad.append(sum(not ok for _, ok in found))
            values = " ".join(f"{value:.5g}" for value in best)
            print(
                f"{name:8} {method:12} median {np.median(best):.6g} (optimum {PROBLEMS[name].optimum:.6g}); "
                f"not feasible {np.median(bad):.0f}; {time.perf_counter() - began:.0f} s; {values}",
                flush=True,
            )


if __name__ == "__main__":
    main()
