"""A problem together with what an experiment knows of it and an optimiser must not."""

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

    `function` is g as a user would write it, called as function(x, z); it only ever sees validated points,
    whose values therefore come in the order of the space.  `optimum` and `maximizer`, one of the points that
    attain it, are None where nobody knows them.  `hyperparameters` is the Gaussian process that g was drawn
    from, or None.  `seconds`, called like `function`, stands in for the clock where an evaluation only pretends to take
    its time; None is the clock.
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
        """Return g(z, x) with noise, as an optimiser sees it.

        One normal number is taken from `rng` whatever the noise, so that two problems keep in step.
        """
        instance_of(rng, np.random.Generator, "rng")
        noise = math.sqrt(self.noise_variance) * float(rng.standard_normal())
        return self.value(x, z) + noise
