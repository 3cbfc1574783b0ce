"""What the tests of the benchmark share: a module as a user would write it, and records made by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

# Problems as functions of the seed and as an object, and methods of every kind.
TOY = """
import os, time
import boca
from boca.problems import Benchmark

calls = []

def function(x, z):
    time.sleep(float(os.environ.get("TOY_SLEEP", "0")))
    calls.append((dict(x), dict(z)))
    return -(x["a"] - 0.3) ** 2 - 0.1 * (1.0 - z["f"])

def price(z): return 0.25 + 0.75 * z["f"]

def make(seed, direction="maximize", budget=boca.targets(4), optimum=0.0, cost=price, noise=0.01):
    fidelity = boca.Space(f=boca.Float(0.0, 1.0))
    problem = boca.Problem(boca.Space(a=boca.Float(0.0, 1.0)), fidelity, cost=cost, direction=direction)
    return Benchmark("toy", problem, budget, function, optimum, {"a": 0.3}, noise, None, seed)

def drawn(seed):
    return Benchmark(**{**make(seed).__dict__, "hyperparameters":
        {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.3], "h_z": [1.0]}})

fixed = make(0)
def endless(seed): return make(seed, optimum=None)
def in_seconds(seed): return make(seed, budget=boca.seconds(0.2), optimum=None, noise=0.0)
def measured(seed): return make(seed, cost=None)
def measured_in_seconds(seed): return make(seed, budget=boca.seconds(0.2), cost=None)
def no_benchmark(seed): return 3
def two_at_once(x, z): return 3
nothing = 3

instance = boca.GPUCB(maximizer="sobol")
set_already = boca.GPUCB(hyperparameters={"kappa0": 2.0, "eta2": 0.1, "mean": 0.0, "h_x": [0.1], "h_z": [1.0]})
def function_of(benchmark): return boca.Boca(max_shrink=1.0 + len(benchmark.problem.space))
def no_strategy(benchmark): return 3

class Breaks:
    def suggest(self, problem, history, budget, rng):
        raise RuntimeError("on purpose")

class Dies:
    def suggest(self, problem, history, budget, rng):
        os._exit(3)

class Hangs:
    def suggest(self, problem, history, budget, rng):
        time.sleep(60)

class NeverAtTarget:
    def suggest(self, problem, history, budget, rng):
        return boca.Suggestion({"a": float(rng.random())}, {"f": 0.0}, {"reason": "cheap", "phase": "start"})
"""


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module on the path, under a name of its own for every test."""
    name = f"toy_{abs(hash(tmp_path)):x}"
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / f"{name}.py").write_text(TOY)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")]))
    __import__(name)
    return sys.modules[name]


@pytest.fixture
def make_record() -> Callable[..., dict[str, Any]]:
    """Return a function that makes the record of a run."""

    def make(
        spent: Sequence[float],
        value: Sequence[float | None],  # None away from the target
        *,
        method: str = "boca",
        seed: int = 0,
        problem: str = "branin",
        **others: Any,
    ) -> dict[str, Any]:
        record = {
            "problem": problem,
            "method": method,
            "seed": seed,
            "learn": False,
            "knows_gp": False,
            "direction": "maximize",
            "capital": 4.0,
            "unit": "cost",
            "optimum": 0.0,
            "recommendation": None,
            "seconds": 1.0,
            "trace": {
                "cost": [b - a for a, b in zip([0.0, *spent[:-1]], spent, strict=True)],
                "seconds": [0.0] * len(spent),
                "overhead": [0.001] * len(spent),
                "spent": list(spent),
                "at_target": [v is not None for v in value],
                "value": list(value),
            },
        }
        assert others.keys() <= record.keys()
        return record | others

    return make
