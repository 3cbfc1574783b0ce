"""Hyperparameters as declared blocks: kernels and noise declare theirs, and everything else follows from that.

    theta   the numbers that a fit searches: logarithms of positive numbers, and strengths as they are
    block   numbers of theta that belong together, with their prior, their bounds and their name

The order of theta and the prior on it are read from the blocks, and so are the names and units of the numbers outside
this package.  A new component declares its own blocks and changes nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from boca.gp.linalg import FloatArray

Unit: TypeAlias = Literal["none", "log", "variance", "signal"]
"""What a number is outside theta: the same, its exponential, or multiplied by the variance of the values, and kappa0.
"""


@dataclass(frozen=True)
class Block:
    """Numbers of theta with independent priors: normal, or exponential if there is a rate."""

    name: str
    size: int = 1
    mean: float = 0.0
    deviation: float = math.inf
    low: float = -math.inf
    high: float = math.inf
    rate: float = 0.0
    unit: Unit = "none"
    by_parameter: bool = False
    """Whether it has one number per parameter, although it is a strength or a logarithm; length scales have anyway."""

    @property
    def is_list(self) -> bool:
        """Whether it is a list outside theta."""
        return self.by_parameter or (self.unit == "none" and not self.is_strength)

    @property
    def is_strength(self) -> bool:
        """Whether theta holds the number itself, which is exactly zero unless the data support it."""
        return self.rate > 0.0


def strength(name: str, *, high: float, rate: float, unit: Unit = "none") -> Block:
    """Declare a number that is zero unless the likelihood rises from there faster than its rate."""
    return Block(name, low=0.0, high=high, rate=rate, unit=unit)


@dataclass(frozen=True)
class Prior:
    """Independent priors on theta, and its box.

    An infinite deviation without a rate means no prior.  An exponential prior holds a strength at exactly zero unless
    the likelihood rises there faster than its rate.
    """

    mean: FloatArray
    deviation: FloatArray
    low: FloatArray
    high: FloatArray
    rate: FloatArray | float = 0.0

    @classmethod
    def from_blocks(cls, blocks: Iterable[Block], *, informative: bool = True) -> Prior:
        """Build the prior that blocks declare; without `informative`, only strengths have one."""
        rows = [block for block in blocks for _ in range(block.size)]
        return cls(
            np.array([b.mean for b in rows]),
            np.array([b.deviation if informative else math.inf for b in rows]),
            np.array([b.low for b in rows]),
            np.array([b.high for b in rows]),
            np.array([b.rate for b in rows]),
        )

    @property
    def is_curved(self) -> bool:
        """Whether there is a prior on every entry."""
        return bool(np.all(np.isfinite(self.deviation) | (np.asarray(self.rate) > 0.0)))

    def log_density(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the log density up to a constant, with its gradient."""
        r = (theta - self.mean) / self.deviation
        return -0.5 * float(r @ r) - float(np.sum(self.rate * theta)), -r / self.deviation - self.rate

    def clip(self, theta: FloatArray) -> FloatArray:
        return np.clip(theta, self.low, self.high)

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw a start for the search: from the prior, or around its mean if it is flat."""
        width = np.where(np.isfinite(self.deviation), self.deviation, 1.0)
        return self.clip(self.mean + width * rng.standard_normal(len(self.mean)))
