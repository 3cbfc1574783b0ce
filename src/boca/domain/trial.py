"""Trials and their history: immutable records of what was asked, told and spent.

This is the one place where the direction of the optimisation is turned: `History.scores` is always maximised.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from boca.domain.errors import BocaError
from boca.domain.problem import Direction, Problem
from boca.domain.space import FloatArray, Point

State: TypeAlias = Literal["running", "complete", "failed"]


@dataclass(frozen=True)
class Suggestion:
    """What a strategy proposes: the point, its fidelity, and the reasons as a JSON-able mapping."""

    x: Point
    z: Point
    why: dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One query of g(z, x), from the moment it is handed out.

    `asked` and `told` number the events of a study in the order in which they happened: a decision rests on the
    results whose `told` is below its `asked`.  `attempt` counts how often it was handed out again after the process
    that had it died.  `overhead` is the seconds beside its evaluation: of its choice, and of attempts that died.
    `output` is the end of what the evaluation printed, where an executor caught it.
    """

    number: int
    x: Point
    z: Point
    cost: float
    why: dict[str, Any] = field(repr=False)
    state: State = "running"
    value: float | None = None
    noise: float | None = None
    seconds: float | None = None
    overhead: float = 0.0
    reason: str | None = None
    asked: int = 0
    told: int | None = None
    attempt: int = 0
    output: str | None = field(default=None, repr=False)

    @classmethod
    def stored(cls, load_why: Callable[[], dict[str, Any]], *, phase: str, **values: Any) -> Trial:
        """Return a trial whose `why`, the bulk of it, is loaded when somebody looks at it."""
        trial = object.__new__(cls)
        defaults = {f.name: f.default for f in fields(cls) if f.name != "why"}
        trial.__dict__.update(defaults | values | {"_load_why": load_why, "phase": phase})
        return trial

    def copied(self) -> Trial:
        """Return a trial that its user may change; `why`, the bulk of it, is copied when somebody looks at it."""
        twin = object.__new__(Trial)
        own = {"x": dict(self.x), "z": dict(self.z), "phase": self.phase, "_load_why": lambda: copy.deepcopy(self.why)}
        twin.__dict__.update(self.__dict__ | own)
        twin.__dict__.pop("why", None)
        return twin

    def __getattr__(self, name: str) -> Any:
        if name == "why" and "_load_why" in self.__dict__:
            self.__dict__["why"] = why = self.__dict__["_load_why"]()
            return why
        raise AttributeError(f"a Trial has no attribute {name!r}")

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @cached_property
    def phase(self) -> str:
        return str(self.why.get("phase", ""))

    def row(self) -> dict[str, Any]:
        """Return the trial as the row of a table; x and z as columns `x.NAME`, `z.NAME`.

        `reason` says why it was chosen, `failure` why it failed.
        """
        return {
            "number": self.number,
            "state": self.state,
            "value": self.value,
            "cost": self.cost,
            "noise": self.noise,
            "seconds": self.seconds,
            "overhead": self.overhead,
            "phase": self.phase,
            "reason": self.why.get("reason"),
            "failure": self.reason,
            **{f"x.{name}": value for name, value in self.x.items()},
            **{f"z.{name}": value for name, value in self.z.items()},
        }

    @property
    def added(self) -> bool:
        """Whether the user brought the result along; such trials are not charged."""
        return self.phase == "added"

    def _repr_html_(self) -> str:
        from boca import render

        return render.trial(self)


def sign(direction: Direction) -> float:
    """Return what a value is multiplied with so that more is better."""
    return 1.0 if direction == "maximize" else -1.0


class History(Sequence[Trial]):
    """All trials of a study in order of number."""

    def __init__(self, trials: Sequence[Trial] = ()) -> None:
        self._trials = tuple(trials)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Trial, ...]: ...
    def __getitem__(self, index: int | slice) -> Trial | tuple[Trial, ...]:
        return self._trials[index]

    def __len__(self) -> int:
        return len(self._trials)

    def __iter__(self) -> Iterator[Trial]:
        return iter(self._trials)

    def __repr__(self) -> str:
        counts = ((state, sum(t.state == state for t in self)) for state in ("complete", "running", "failed"))
        return f"History({', '.join(f'{count} {state}' for state, count in counts if count) or 'empty'})"

    def _repr_html_(self) -> str:
        from boca import render

        return render.history(self, repr(self))

    def copied(self) -> History:
        """Return the same trials as copies that their user may change."""
        return History([t.copied() for t in self])

    @cached_property
    def running(self) -> tuple[Trial, ...]:
        return tuple(t for t in self if t.state == "running")

    @cached_property
    def finished(self) -> tuple[Trial, ...]:
        """Complete and failed trials in the order in which their results came."""
        return tuple(sorted((t for t in self if t.state != "running"), key=_when_told))

    @cached_property
    def complete(self) -> tuple[Trial, ...]:
        return tuple(t for t in self.finished if t.state == "complete")

    @cached_property
    def chosen(self) -> tuple[Trial, ...]:
        """The trials that a model chose, in order of number: the algorithm's iterations."""
        return tuple(t for t in self if t.phase in ("model", "final"))

    def scores(self, direction: Direction) -> FloatArray:  # (n,) in the order of `finished`
        """Return the results so that more is better; a failure counts as the worst value told so far."""
        values = [math.nan if t.value is None else sign(direction) * t.value for t in self.finished]
        scores = np.array(values, dtype=float)
        if self.complete:
            scores[np.isnan(scores)] = np.nanmin(scores)
        return scores

    def best(self, problem: Problem) -> Trial | None:
        """Return the best complete trial at the target, the earliest of equals; None before there is one."""
        return best_of((t for t in self if t.state == "complete" and problem.is_target(t.z)), problem.direction)

    def to_dataframe(self) -> Any:
        """Return a pandas table, one row a trial; x and z as columns `x.NAME`, `z.NAME`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise BocaError("History.to_dataframe needs pandas; install it, or read the trials one by one.") from error

        return pd.DataFrame([t.row() for t in self])


def _when_told(trial: Trial) -> int:
    return trial.number if trial.told is None else trial.told


def best_of(complete: Iterable[Trial], direction: Direction) -> Trial | None:
    """Return the one with the best value, the first of equals; None where there is none."""
    better = sign(direction)
    return max(complete, key=lambda t: better * (t.value or 0.0), default=None)


def occupied(history: History) -> set[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Return the (x, z) that are out: no other trial shall repeat them while another point exists."""
    return {(point_key(t.x), point_key(t.z)) for t in history.running}


def barred(history: History) -> set[tuple[Any, ...]]:
    """Return the x at which three trials failed."""
    failures: dict[tuple[Any, ...], int] = {}
    for trial in history.finished:
        if trial.state == "failed":
            failures[point_key(trial.x)] = failures.get(point_key(trial.x), 0) + 1
    return {x for x, count in failures.items() if count >= 3}


def point_key(point: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a point as something that a set can hold."""
    return tuple(point.values())
