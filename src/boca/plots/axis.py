"""Parameters as axes and trials as marks: what every plot stands on, whether Matplotlib or Plotly draws it.

Positions on an axis are the user's values; the options of a `Choice` stand at 0, 1, 2 and so on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray, Parameter, Space
from boca.domain.trial import Trial
from boca.domain.words import option
from boca.plots.study import StudyView

Mask: TypeAlias = NDArray[np.bool_]


class Note(NamedTuple):
    """Why there is nothing to draw, in a sentence."""

    words: str


@dataclass(frozen=True)
class Axis:
    """One parameter as an axis."""

    name: str
    parameter: Parameter

    @property
    def scale(self) -> Literal["linear", "log", "choice"]:
        if not self.parameter.is_ordered:
            return "choice"
        return "log" if self.parameter.log else "linear"

    @property
    def is_whole(self) -> bool:
        return self.parameter.kind in ("int", "steps")

    @property
    def options(self) -> list[str]:
        """The options of a choice, in words; empty for any other parameter."""
        return [option(value) for value in self.parameter.options]

    def positions(self, values: Sequence[Any]) -> FloatArray:  # (n,)
        """Return where values stand on the axis."""
        if self.parameter.is_ordered:
            return np.asarray(values, dtype=float)
        return np.round(self.parameter.to_unit(values) * (len(self.parameter.options) - 1))

    def at(self, u: FloatArray) -> FloatArray:  # (m,) -> (m,)
        """Return the positions of unit coordinates."""
        return self.positions([self.parameter.from_unit(float(each)) for each in u])

    @property
    def ends(self) -> tuple[float, float]:
        low, high = self.parameter.ends or (0.0, len(self.parameter.options) - 1.0)
        return float(low), float(high)


def axis_of(space: Space, name: str, what: str) -> Axis:
    """Return a parameter as an axis; `what` is the argument that named it."""
    if name not in space:
        raise InvalidInput(f"{what} must be one of {list(space)}; got {name!r}.")
    return Axis(name, space[name])


def placed(
    place: Callable[[Sequence[Any]], FloatArray], name: str, points: Sequence[Mapping[str, Any]]
) -> FloatArray:  # (n,)
    """Return where points stand by the value of one parameter; NaN where it is inactive."""
    here = np.array([name in point for point in points], dtype=bool)
    places = np.full(len(points), math.nan)
    places[here] = place([point[name] for point in points if name in point])
    return places


@dataclass(frozen=True)
class Marks:
    """Trials as marks, in the order of their numbers."""

    trials: tuple[Trial, ...]
    at_target: Mask
    failed: Mask
    value: FloatArray
    """NaN for a trial that failed or is still running."""
    cost: FloatArray

    def along(self, axis: Axis) -> FloatArray:  # (n,)
        """Return where the trials stand on an axis; NaN where the parameter is inactive."""
        return placed(axis.positions, axis.name, [t.x | t.z for t in self.trials])


def marks(study: StudyView, *, complete: bool = False, options: Mapping[str, Any] | None = None) -> Marks:
    """Return all trials, or only the complete ones, or those with these options."""
    wanted = {} if options is None else options
    trials = tuple(
        t
        for t in study.history
        if (t.state == "complete" or not complete) and all(t.x.get(name) == value for name, value in wanted.items())
    )
    return Marks(
        trials,
        np.array([study.problem.is_target(t.z) for t in trials], dtype=bool),
        np.array([t.state == "failed" for t in trials], dtype=bool),
        np.array([math.nan if t.value is None else t.value for t in trials]),
        np.array([study.ledger.worth(t) for t in trials]),
    )
