"""The model of one outcome that has a limit, or of success, and the probability that it is within its limit.

[G14] Gardner, Kusner, Xu, Weinberger, Cunningham: Bayesian Optimization with Inequality Constraints, ICML 2014.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from boca.domain.space import FloatArray
from boca.model.posterior import Model


@dataclass(frozen=True)
class OutcomeModel:
    """The model of one outcome, and where its limit lies."""

    name: str
    model: Model
    bound: float
    """Standardized."""
    tells_below: bool
    """Whether a query below the target tells it."""
    noise: float = 0.0
    """The variance of a single result, standardized: success is what happens next, not what happens on average."""
    least: float = 0.0
    """The least probability of a point that is queried."""

    highest: float = math.inf
    """A mean above it is as certain as one there, standardized: of success, 1."""

    @property
    def is_everywhere_alike(self) -> bool:
        """Whether it does not depend on the fidelity, so that any query tells it."""
        return not self.model.problem.fidelity

    def probability(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        """Return the probability that the outcome is within its limit at the target.  [G14, eq. 4]"""
        from scipy.special import ndtr

        mu, sigma = self.model.moments(U)
        return np.asarray(ndtr((np.minimum(mu, self.highest) - self.bound) / np.sqrt(sigma * sigma + self.noise)))
