"""A real tuning task: a benchmark that knows whether one training shows a whole curve, and how noisy trainings are.

    symbol      meaning
    ----------  -----------------------------------------------------------------------------------
    step        the fidelity that a training passes through, such as epochs; None if there is none
    replicate   which of several trainings with other seeds; 0 if there is only one
    spread      the optimum minus the median of random points at the target, in the task's own unit

`value(x)` is the mean over replicates at the target: regret is counted with it.  A query sees one replicate.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from boca.domain.budget import Limit, seconds
from boca.domain.budget import targets as in_targets
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.problems import Benchmark

_TIMED_POINTS = 256  # random ones, whose median seconds at the target a target counts for

OPTIMA = Path(__file__).with_name("optima.json")


class Optimum(NamedTuple):
    """The best value that is known, with the median of random points and how both were found."""

    value: float
    median: float
    found: str

    @property
    def spread(self) -> float:
        return abs(self.value - self.median)


@dataclass(frozen=True, eq=False)
class Task(Benchmark):
    """A benchmark of real trainings.

    Args:
        family: tasks of one origin; statistics are given by family.
        step: the fidelity that a training passes through; None if every query is trained from scratch.
        replicates: how many trainings of the same configuration are known.
        trained: called with x, z and the number of a replicate, what that training returned.
        row: called with x, what two configurations share that are one training; None if x itself is that.
        best: the optimum, with how it was found; None for a live task.
        target_seconds: what a target counts for in a budget of seconds; None if the budget is in declared cost.  With
            `seconds` they are those that a training took, without, those of the clock.
    """

    family: str = ""
    step: str | None = None
    replicates: int = 1
    trained: Callable[[Point, Point, int], float] | None = field(default=None, repr=False)
    row: Callable[[Point], int] | None = field(default=None, repr=False)
    best: Optimum | None = None
    target_seconds: float | None = None

    def limit(self, targets: float) -> Limit:
        """Return the budget of a number of targets, in seconds for a live task."""
        return in_targets(targets) if self.target_seconds is None else seconds(targets * self.target_seconds)

    def in_seconds(self) -> Task:
        """Return the task without its declared cost, with a budget in the seconds that trainings took."""
        problem = self.problem
        space, rng = problem.space, np.random.default_rng(0)
        assert self.seconds is not None
        points = [space.from_unit(u) for u in space.snap(rng.random((_TIMED_POINTS, len(space))))]
        target_seconds = float(np.median([self.seconds(x, problem.target) for x in points]))
        measured = Problem(space, problem.fidelity, target=problem.target, direction=problem.direction)
        return replace(self, problem=measured, target_seconds=target_seconds)

    def result(self, x: Point, z: Point, replicate: int) -> float:
        """Return what one training sees."""
        return self.value(x, z) if self.trained is None else self.trained(x, z, replicate)


@cache
def optima() -> dict[str, Optimum]:
    """Return the stored optima by name."""
    if not OPTIMA.exists():
        return {}
    return {name: Optimum(**stored) for name, stored in json.loads(OPTIMA.read_text()).items()}


def optimum(name: str) -> Optimum:
    """Return the stored optimum of a task, or say how to find it."""
    if name not in optima():
        raise InvalidInput(
            f"The optimum of {name} is not in {OPTIMA.name}, and regret needs it. Type "
            f"`python -m benchmarks.real optima --task {name}`."
        )
    return optima()[name]
