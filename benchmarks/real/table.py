"""Tables of trainings: configurations times fidelities, with one or more trainings of each.

A query is answered by the nearest configuration in the unit cube, ties by the first.  Where the parameters are the
lattice that was trained, that is the query itself.  `loop` charges nothing for a training that a run has paid for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from benchmarks.real.task import Optimum, Task
from boca.domain.budget import targets
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point


@dataclass(frozen=True, eq=False)
class Table:
    """Trainings of configurations.

    Args:
        problem: what is searched; the fidelities are integers, and each was trained at all of them.
        configurations: the configurations in the order of the rows.
        values: what was seen, (replicates, rows, one axis per fidelity in the order of the problem).
        seconds: how long a training took that far, of the same shape; None if it was not measured.
    """

    problem: Problem
    configurations: list[Point]
    values: FloatArray = field(repr=False)
    seconds: FloatArray | None = field(default=None, repr=False)

    @cached_property
    def _units(self) -> FloatArray:  # (rows, d)
        return self.problem.space.to_unit(self.configurations)

    def row(self, x: Point) -> int:
        """Return the row that answers for x."""
        u = self.problem.space.to_unit([x])[0]
        return int(np.argmin(((self._units - u) ** 2).sum(axis=1)))

    def cell(self, z: Mapping[str, Any]) -> tuple[int, ...]:
        """Return where on the axes of the fidelities z lies."""
        return tuple(
            int(z[name] - parameter.ends[0]) for name, parameter in self.problem.fidelity.items() if parameter.ends
        )

    def trained(self, x: Point, z: Point, replicate: int) -> float:
        return float(self.values[(replicate, self.row(x), *self.cell(z))])

    def mean(self, x: Point, z: Point) -> float:
        """Return the mean over the replicates."""
        return float(self.values[(slice(None), self.row(x), *self.cell(z))].mean())

    def took(self, x: Point, z: Point) -> float:
        """Return the seconds of a training, the mean over the replicates."""
        assert self.seconds is not None
        return float(self.seconds[(slice(None), self.row(x), *self.cell(z))].mean())

    @cached_property
    def at_target(self) -> FloatArray:  # (rows,)
        return self.values[(slice(None), slice(None), *self.cell(self.problem.target))].mean(axis=0)

    @cached_property
    def noise_variance(self) -> float:
        """The variance at the target over the replicates, the mean over the better half of the rows."""
        if len(self.values) == 1:
            return 0.0
        at = self.values[(slice(None), slice(None), *self.cell(self.problem.target))]
        order = np.argsort(self.at_target if self.problem.direction == "minimize" else -self.at_target)
        return float(at[:, order[: len(order) // 2]].var(axis=0, ddof=1).mean())

    def best(self) -> Optimum:
        """Return the best row at the target."""
        best = self.at_target.min() if self.problem.direction == "minimize" else self.at_target.max()
        return Optimum(float(best), float(np.median(self.at_target)), f"the best of {len(self.at_target)} rows")


def task(name: str, family: str, table: Table, seed: int, *, step: str | None) -> Task:
    """Return the task of searching a table; the seed picks nothing."""
    best = table.best()
    return Task(
        name=name,
        problem=table.problem,
        budget=targets(15),
        function=table.mean,
        optimum=best.value,
        maximizer=None,
        noise_variance=table.noise_variance,
        hyperparameters=None,
        seed=seed,
        seconds=None if table.seconds is None else table.took,
        family=family,
        step=step,
        replicates=len(table.values),
        trained=table.trained,
        row=table.row,
        best=best,
    )
