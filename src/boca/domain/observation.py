"""`Observation`: a number that an evaluation gave, and the fidelity at which it gave it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from boca.domain.space import Point

OBJECTIVE: Final = "value"
"""The outcome that is maximized or minimized."""


@dataclass(frozen=True)
class Observation:
    """The value of one outcome at one fidelity.

    Args:
        z: the fidelity at which the value was observed.
        value: as told: neither turned, scaled nor warped.
        noise: the variance of this value; None if it is not known.
        seconds: how long the evaluation had taken by then; None if it was not measured.
        outcome: which of the numbers of an evaluation this is.
        told: the event that stored it; None before it is stored.
    """

    z: Point
    value: float
    noise: float | None = None
    seconds: float | None = None
    outcome: str = OBJECTIVE
    told: int | None = None
