"""What a refit learned, as it is stored in `why["fit"]`: with the results, it is all that later models need."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from boca.domain.space import FloatArray
from boca.domain.trial import History
from boca.gp.fit import ROUNDING, Standardisation

Kind: TypeAlias = Literal["extended", "none"]


@dataclass(frozen=True)
class FidelityUse:
    """How a model uses the cheaper fidelities, if not as they are.

    `extended`: with a jump at the target and a trend; `none`: not at all.  Either has hyper-parameters of its own, and
    the nats by which it predicts the results at the target better.
    """

    kind: Kind
    theta: tuple[float, ...]
    nats: float

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> FidelityUse:
        return cls(stored["kind"], tuple(stored["theta"]), stored["nats"])

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "theta": list(self.theta), "nats": self.nats}


@dataclass(frozen=True)
class Fit:
    """Hyper-parameters with the standardisation that they belong to, and when they were learned."""

    theta: tuple[float, ...]
    location: float
    scale: float
    results: int
    """How many there were."""
    iteration: int
    """How many trials a model had chosen."""
    count: int
    """How many refits came before this one."""
    is_flat: bool = False
    """Whether all results were equal but for rounding."""
    rise: float | None = None
    """How much the variance of the noise grows from the target to the far end of all fidelities, if it does."""
    use: FidelityUse | None = None

    @classmethod
    def of_json(cls, stored: Mapping[str, Any]) -> Fit:
        return cls(
            theta=tuple(stored["theta"]),
            location=stored["location"],
            scale=stored["scale"],
            results=int(stored["results"]),
            iteration=int(stored["iteration"]),
            count=int(stored["count"]),
            is_flat=bool(stored.get("flat")),
            rise=stored.get("rise"),
            use=FidelityUse.of_json(stored["use"]) if "use" in stored else None,
        )

    def to_json(self) -> dict[str, Any]:
        """Describe the fit; keys that do not apply are absent."""
        return {
            "theta": list(self.theta),
            "location": self.location,
            "scale": self.scale,
            "results": self.results,
            "iteration": self.iteration,
            "count": self.count,
            **({"flat": True} if self.is_flat else {}),
            **({} if self.rise is None else {"rise": self.rise}),
            **({} if self.use is None else {"use": self.use.to_json()}),
        }

    @property
    def standard(self) -> Standardisation:
        return Standardisation(self.location, self.scale)

    def is_outdated(self, scores: FloatArray) -> bool:
        """Whether it saw equal results alone, and they are not now, or none so far away as there is now."""
        if self.is_flat and not is_flat(scores):
            return True
        farthest = float(np.max(np.abs(0.5 * scores - 0.5 * self.location)))
        return farthest > 1e6 * (0.5 * self.scale)


def last_fit(history: History) -> Fit | None:
    """Return what the latest refit stored, or None before the first."""
    stored = next((t.why["fit"] for t in reversed(history.chosen) if "fit" in t.why), None)
    return None if stored is None else Fit.of_json(stored)


def is_flat(scores: FloatArray) -> bool:
    """Whether all results are equal but for rounding: they say nothing about length scales."""
    return bool(np.ptp(0.5 * scores) <= 0.5 * ROUNDING * np.max(np.abs(scores)))
