"""What a refit learned, as stored in `why["fit"]`: with the results, it defines the models until the next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from boca.domain.observation import OBJECTIVE
from boca.domain.space import FloatArray
from boca.domain.trial import History, Trial
from boca.gp.fit import RELATIVE_ROUNDING, Standardization
from boca.model.warp import Warp

_OUTDATED_BEYOND_SCALES = 1e6  # from the location: a fit says nothing of values so far outside its own

UseKind: TypeAlias = Literal["extended", "none"]


@dataclass(frozen=True)
class FidelityUse:
    """How a model uses the cheaper fidelities, if not in the usual way.

    "extended": with a jump at the target and a trend.  "none": not at all.  Both have hyperparameters of their own, and
    the nats by which they predict the results at the target better.
    """

    kind: UseKind
    theta: tuple[float, ...]
    nats: float

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FidelityUse:
        return cls(stored["kind"], tuple(stored["theta"]), stored["nats"])

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "theta": list(self.theta), "nats": self.nats}


@dataclass(frozen=True)
class Fit:
    """Hyperparameters with their standardization, and when they were learned."""

    theta: tuple[float, ...]
    location: float
    scale: float
    results: int
    """How many results there were."""
    iteration: int
    """How many trials a model had chosen."""
    count: int
    """How many refits there had been before."""
    is_flat: bool = False
    """Whether all results were equal up to rounding."""
    rise: float | None = None
    """By how much the variance of the noise grows from the target to the far end of all fidelities, if it does."""
    use: FidelityUse | None = None
    warp: Warp | None = None
    """The map of values that comes before location and scale, if there is one."""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Fit:
        return cls(
            theta=tuple(stored["theta"]),
            location=stored["location"],
            scale=stored["scale"],
            results=int(stored["results"]),
            iteration=int(stored["iteration"]),
            count=int(stored["count"]),
            is_flat=bool(stored.get("flat")),
            rise=stored.get("rise"),
            use=FidelityUse.from_json(stored["use"]) if "use" in stored else None,
            warp=Warp.from_json(stored["warp"]) if "warp" in stored else None,
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
            **({} if self.warp is None else {"warp": self.warp.to_json()}),
        }

    @property
    def standard(self) -> Standardization:
        return Standardization(self.location, self.scale)

    def is_outdated(self, scores: FloatArray) -> bool:
        """Whether all results were equal and no longer are, or one is now far outside the range that was seen.

        The scores are those of the data set warped by this fit's warp.
        """
        if self.is_flat and not is_flat(scores):
            return True
        farthest = float(np.max(np.abs(0.5 * scores - 0.5 * self.location)))
        return farthest > _OUTDATED_BEYOND_SCALES * (0.5 * self.scale)


def last_fit(history: History, outcome: str = OBJECTIVE) -> Fit | None:
    """Return what the latest refit stored, of the objective or of another outcome; None before the first."""
    whys = (t.why if outcome == OBJECTIVE else t.why.get("outcomes", {}).get(outcome, {}) for t in _latest(history))
    stored = next((why["fit"] for why in whys if "fit" in why), None)
    return None if stored is None else Fit.from_json(stored)


def _latest(history: History) -> Iterator[Trial]:
    return reversed(history.chosen)


def is_flat(scores: FloatArray) -> bool:
    """Whether all results are equal up to rounding, and so carry no information about length scales."""
    return bool(np.ptp(0.5 * scores) <= 0.5 * RELATIVE_ROUNDING * np.max(np.abs(scores)))
