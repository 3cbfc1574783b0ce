"""The tables of trainings that this project made: what was trained, and the tasks of searching them.

    python -m benchmarks.real make mlp_digits          # trains it again: minutes of processor time

Three tables are complete lattices: every combination of a few levels of every parameter, which a method sees as
integers, so that there is nothing between two rows.  In the others the configurations were drawn at random, and a query
is answered by the nearest one.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.real import data, table, trainings
from benchmarks.real.task import Task
from boca.domain.problem import Problem
from boca.domain.space import Choice, Float, Int, Parameter, Point, Space


@dataclass(frozen=True)
class Plan:
    """What a table has.

    Args:
        training: a function of `trainings`, by name.
        data: a data set of scikit-learn.
        sizes: the numbers of training samples, ascending.
        steps: epochs, or trees.
        replicates: trainings with other seeds.
        levels: of a lattice, by parameter.
        ranges: of random configurations, by parameter.
        rows: how many random configurations.
    """

    training: str
    data: str
    sizes: tuple[int, ...]
    steps: int
    replicates: int = 1
    levels: Mapping[str, Sequence[Any]] | None = None
    ranges: Mapping[str, Parameter] | None = None
    rows: int = 0

    def settings(self) -> list[Point]:
        """Return the configurations as the training takes them."""
        if self.levels is not None:
            return [dict(zip(self.levels, row, strict=True)) for row in itertools.product(*self.levels.values())]
        assert self.ranges is not None
        space, rng = Space(self.ranges), np.random.default_rng(0)
        return [space.from_unit(u) for u in space.snap(rng.random((self.rows, len(space))))]

    def searched(self) -> tuple[Space, list[Point]]:
        """Return the space and the configurations as a method sees them: levels are counted from 1."""
        if self.levels is None:
            assert self.ranges is not None
            return Space(self.ranges), self.settings()
        counts = {name: range(1, len(values) + 1) for name, values in self.levels.items()}
        space = Space({name: Int(1, len(count)) for name, count in counts.items()})
        return space, [dict(zip(counts, row, strict=True)) for row in itertools.product(*counts.values())]


def _logs(low: float, high: float, n: int) -> tuple[float, ...]:
    return tuple(float(v) for v in np.geomspace(low, high, n))


PLANS: Mapping[str, Plan] = {
    "mlp_digits": Plan(
        training="perceptron",
        data="digits",
        sizes=(36, 108, 324),
        steps=18,
        replicates=3,
        levels={
            "rate": _logs(1e-3, 3.0, 8),
            "momentum": (0.0, 0.5, 0.8, 0.95),
            "width": (4, 8, 16, 32),
            "decay": (0.0, *_logs(1e-4, 1e-2, 3)),
        },
    ),
    "mlp_cancer": Plan(
        training="perceptron",
        data="breast_cancer",
        sizes=(32, 96, 288),
        steps=24,
        replicates=3,
        ranges={
            "rate": Float(1e-4, 3.0, log=True),
            "momentum": Float(0.0, 0.98),
            "decay": Float(1e-5, 0.3, log=True),
            "width": Int(2, 64, log=True),
            "batch": Int(8, 128, log=True),
            "scale": Float(0.01, 3.0, log=True),
        },
        rows=512,
    ),
    "conv_digits": Plan(
        training="convolution",
        data="digits",
        sizes=(40, 120, 360),
        steps=10,
        levels={
            "rate": _logs(1e-3, 3.0, 8),
            "momentum": (0.0, 0.5, 0.8, 0.95),
            "filters": (1, 2, 4, 8),
            "decay": (0.0, *_logs(1e-4, 1e-2, 3)),
        },
    ),
    "trees_diabetes": Plan(
        training="boosting",
        data="diabetes",
        sizes=(74, 147, 294),
        steps=32,
        levels={
            "rate": _logs(0.005, 1.0, 8),
            "leaves": (2, 4, 8, 16),
            "least": (2, 5, 12, 30),
            "l2": (0.0, 1.0, 10.0, 100.0),
        },
    ),
    "trees_cancer": Plan(
        training="boosting",
        data="breast_cancer",
        sizes=(95, 189, 379),
        steps=48,
        ranges={
            "rate": Float(0.005, 2.0, log=True),
            "leaves": Int(2, 32, log=True),
            "least": Int(1, 40, log=True),
            "l2": Float(1e-3, 300.0, log=True),
        },
        rows=512,
    ),
    "linear_digits": Plan(
        training="linear",
        data="digits",
        sizes=(60, 180, 540),
        steps=8,
        ranges={
            "loss": Choice(["hinge", "log_loss", "modified_huber"]),
            "penalty": Choice(["l2", "l1"]),
            "alpha": Float(1e-6, 1e-1, log=True),
            "rate": Float(1e-4, 10.0, log=True),
            "power": Float(0.0, 0.8),
        },
        rows=512,
    ),
}


def make(name: str, report: Callable[[str], None]) -> Path:
    """Train every configuration of a table and store its curves and seconds."""
    plan = PLANS[name]
    train = trainings.TRAININGS[plan.training]
    settings = plan.settings()
    losses = np.empty((plan.replicates, len(settings), len(plan.sizes), plan.steps), np.float32)
    seconds = np.empty(losses.shape[:3], np.float32)
    for i, x in enumerate(settings):
        for k, (j, n) in itertools.product(range(plan.replicates), enumerate(plan.sizes)):
            losses[k, i, j], seconds[k, i, j] = train(plan.data, x, n, plan.steps, 1000 * k + i)
        if i % 50 == 49:
            report(f"{name}: {i + 1} of {len(settings)} configurations, {seconds[:, : i + 1].sum():.0f} s of training")
    data.TABLES.mkdir(exist_ok=True)
    np.savez_compressed(
        data.table(name),
        losses=losses.astype(np.float16),
        seconds=seconds.mean(axis=0).astype(np.float16),
        plan=_described(plan),
    )
    return data.table(name)


def task(name: str, seed: int) -> Task:
    """Return the task of searching a table; the seed picks nothing."""
    return table.task(name, "tables", _table(name), seed, step="step")


@cache
def _table(name: str) -> table.Table:
    plan = PLANS[name]
    with np.load(data.table(name)) as stored:
        if str(stored["plan"]) != _described(plan):
            raise ValueError(f"tables/{name}.npz was made by another plan. Type python -m benchmarks.real make {name}.")
        losses, seconds = stored["losses"].astype(float), stored["seconds"].astype(float)
    space, configurations = plan.searched()
    largest = plan.sizes[-1]
    shares = np.arange(1, plan.steps + 1) / plan.steps
    return table.Table(
        problem=Problem(
            space,
            Space(size=Int(1, len(plan.sizes)), step=Int(1, plan.steps)),
            cost=lambda z: plan.sizes[z["size"] - 1] / largest * z["step"] / plan.steps,
            direction="minimize",
        ),
        configurations=configurations,
        values=losses,
        seconds=(seconds[None, :, :, None] * shares),
    )


def _described(plan: Plan) -> str:
    """Return the plan as text, which is stored with its table: levels in six digits, NumPy's logs differ after them."""
    levels = {name: [f"{value:.6g}" for value in values] for name, values in (plan.levels or {}).items()}
    return json.dumps({**vars(plan), "levels": levels}, default=repr, sort_keys=True)
