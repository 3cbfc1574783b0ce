"""What a query of a real task is charged: nothing is trained twice, for no method.

    symbol      meaning
    ----------  -----------------------------------------------------------------------------------
    training    a configuration, the fidelities other than the step, and the number of a replicate
    paid        how far a training has gone, in steps; without a step, that it was made

Going on with a training costs the difference of the declared costs.  A result that was paid for is free.  Where several
trainings of a configuration are known, a query that was answered before is answered by the next one, at its full
price, until all are known; then the first answers again, for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.real.task import Task
from boca.domain.space import Point
from boca.domain.trial import point_key


class Charge(NamedTuple):
    """Which training answers a query, what it costs and how many seconds it takes (None: by the clock)."""

    replicate: int
    cost: float
    seconds: float | None


@dataclass
class Accounts:
    """The trainings that one run has paid for."""

    task: Task
    seed: int
    _paid: dict[tuple[Any, ...], dict[int, float]] = field(default_factory=dict)

    def charge(self, x: Point, z: Point) -> Charge:
        """Charge a query, and remember how far its training has gone."""
        step = self.task.step
        to = 1.0 if step is None else float(z[step])
        training = self._training(x, z)
        paid = self._paid.setdefault(training, {})
        replicate = self._answering(training, paid, to)
        start = paid.get(replicate, 0.0)
        if start >= to:
            return Charge(replicate, 0.0, 0.0)
        paid[replicate] = to
        return Charge(replicate, *self._price(x, z, start))

    def _training(self, x: Point, z: Point) -> tuple[Any, ...]:
        what = point_key(x) if self.task.row is None else self.task.row(x)
        return what, point_key({name: value for name, value in z.items() if name != self.task.step})

    def _answering(self, training: tuple[Any, ...], paid: dict[int, float], to: float) -> int:
        """Return the replicate: one to go on with, else a new one, else the first."""
        order = self._order(training)
        behind = [replicate for replicate in order if 0.0 < paid.get(replicate, 0.0) < to]
        if behind:
            return max(behind, key=lambda replicate: paid[replicate])
        unknown = [replicate for replicate in order if replicate not in paid]
        return unknown[0] if unknown else order[0]

    def _order(self, training: tuple[Any, ...]) -> list[int]:
        """Return the replicates in an order that depends on the seed and on the training, and on nothing else."""
        if self.task.replicates == 1:
            return [0]
        words = [self.seed, *(ord(letter) for letter in repr(training))]
        return [int(k) for k in np.random.default_rng(words).permutation(self.task.replicates)]

    def _price(self, x: Point, z: Point, start: float) -> tuple[float, float | None]:
        cost, seconds = self.task.problem.cost(z), self.task.seconds
        took = None if seconds is None else seconds(x, z)
        if start > 0.0:
            assert self.task.step is not None
            before = {**z, self.task.step: type(z[self.task.step])(start)}
            cost -= self.task.problem.cost(before)
            took = None if seconds is None or took is None else max(0.0, took - seconds(x, before))
        return cost, took
