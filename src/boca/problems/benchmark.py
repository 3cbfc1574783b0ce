"""A problem, with what an experiment knows about it and an optimizer must not."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boca.domain.budget import Limit
from boca.domain.errors import instance_of
from boca.domain.problem import Problem
from boca.domain.space import Point


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A problem, its usual budget, and the truth: g without noise, its maximum at the target, the noise.

    Args:
        name: The name of the problem.
        problem: What to search.
        budget: The usual budget.
        function: g without noise, called as function(x, z) with validated points, in the order of the space.
        optimum: The best value at the target; None if it is not known.
        maximizer: One of the points that attain it; None if it is not known.
        noise_variance: Of the noise that `observe` adds.
        hyperparameters: The Gaussian process that g was drawn from; None if it was not drawn.
        seed: What picked the draw.
        seconds: Called like `function`, the seconds that an evaluation pretends to take; None for the clock.
    """

    name: str
    problem: Problem
    budget: Limit
    function: Callable[[Point, Point], float] = field(repr=False)
    optimum: float | None
    maximizer: Point | None
    noise_variance: float
    hyperparameters: dict[str, Any] | None
    seed: int
    seconds: Callable[[Point, Point], float] | None = field(default=None, repr=False)

    def value(self, x: Mapping[str, Any], z: Mapping[str, Any] | None = None) -> float:
        """Return g(z, x) without noise; without z, at the target."""
        point = self.problem.space.validate(x, "x")
        fidelity = self.problem.target if z is None else self.problem.fidelity.validate(z, "z")
        return float(self.function(point, fidelity))

    def observe(self, x: Mapping[str, Any], z: Mapping[str, Any] | None, rng: np.random.Generator) -> float:
        """Return g(z, x) with noise, as an optimizer sees it.

        Every call takes one normal number from `rng`, also without noise, so that two problems stay in step.
        """
        instance_of(rng, np.random.Generator, "rng")
        noise = math.sqrt(self.noise_variance) * float(rng.standard_normal())
        return self.value(x, z) + noise
