"""Noise beside the constant variance eta2: components whose variance is a strength times a shape of the input.

A component declares its strength as a block, and has a shape.  The likelihood and the posterior follow from these two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from boca.gp.linalg import FloatArray
from boca.gp.parameters import Block, strength

_STEEPEST_RISE = 20.0  # in standardized units: twenty times the variance of all values
_RISE_RATE = 2.0  # of the exponential prior, whose mean is then half of the variance of all values


class NoiseTerm(Protocol):
    """A component of the noise."""

    @property
    def block(self) -> Block: ...
    def shape(self, X: FloatArray, /) -> FloatArray:  # (n, D) -> (n,)
        """Return the variance at each input for a strength of one."""
        ...


@dataclass(frozen=True)
class RisingNoise:
    """Variance that grows in proportion to a distance."""

    block: ClassVar[Block] = strength("noise_rise", high=_STEEPEST_RISE, rate=_RISE_RATE, unit="variance")
    distance: Callable[[FloatArray], FloatArray]  # (n, D) -> (n,)

    def shape(self, X: FloatArray) -> FloatArray:
        return self.distance(X)


@dataclass(frozen=True)
class Noise:
    """Components with their strengths; those with strength zero are left out."""

    terms: tuple[NoiseTerm, ...] = ()
    strengths: tuple[float, ...] = ()

    @classmethod
    def from_strengths(cls, terms: Sequence[NoiseTerm], strengths: Sequence[float]) -> Noise:
        kept = [(term, value) for term, value in zip(terms, strengths, strict=True) if value != 0.0]
        return cls(tuple(term for term, _ in kept), tuple(value for _, value in kept))

    def variance(self, X: FloatArray) -> FloatArray:  # (n, D) -> (n,)
        total = np.zeros(len(X))
        for term, value in zip(self.terms, self.strengths, strict=True):
            total += value * term.shape(X)
        return total

    def added_to(self, known: FloatArray | None, X: FloatArray) -> FloatArray | None:  # (n,), (n, D) -> (n,)
        """Return the known variances of single observations plus these; None if there are neither."""
        if not self.terms:
            return known
        return (0.0 if known is None else known) + self.variance(X)


NO_NOISE = Noise()
"""No components: the constant variance alone."""
