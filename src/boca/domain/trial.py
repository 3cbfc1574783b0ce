"""Trials and their history: immutable records of what was asked, told and spent.

This is the one place where the direction is turned: `History.scores` is always to be maximized.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from boca.domain.attempt import iso
from boca.domain.errors import BocaError
from boca.domain.observation import OBJECTIVE, Observation
from boca.domain.problem import Direction, Problem
from boca.domain.reasons import Reasons
from boca.domain.space import FloatArray, Point

State: TypeAlias = Literal["running", "complete", "failed"]
PointKey: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Suggestion:
    """What a strategy proposes: the point, its fidelity, and the reasons as a JSON-able mapping."""

    x: Point
    z: Point
    why: dict[str, Any]


@dataclass(frozen=True, repr=False)
class Trial:
    """One query of g(z, x), from the moment it is handed out.

    `asked`, `told` and `seen` number the events of a study in the order in which they happened.

    Args:
        number: its place in the history, from 0.
        x: the point.
        planned: the fidelity that was handed out.
        cost: in cost units: what it is expected to cost, and what it did once it is finished.
        reasons: why it was chosen; `why` is the same as a JSON-able mapping.
        state: "running", "complete" or "failed".
        observations: what the evaluation gave, in the order in which it was told.
        seconds: how long the evaluation took.
        overhead: seconds beside the evaluation: of its choice, and of attempts that died.
        reason: why it failed.
        asked: the event that handed it out.
        told: the event that finished it.
        seen: the last event that its choice read.
        pending: the trials that its choice counted as running.
        attempt: how often it was handed out again after the process that had it died.
        output: the end of what the evaluation printed, if an executor caught it.
        notes: what was told beside the outcomes, by name: stored and shown, and of no weight.
        began: when its last attempt was handed out, in seconds since 1970; None if it was imported.
        ended: when that attempt ended.
        host: the machine of the process that it was handed out to.
        process: the number of that process.
        worker: the machine and the process that evaluated it, as `host:number`, if they are known.
        version: the version of boca that chose it.
    """

    number: int
    x: Point
    planned: Point
    cost: float
    reasons: Reasons
    state: State = "running"
    observations: tuple[Observation, ...] = ()
    seconds: float | None = None
    overhead: float = 0.0
    reason: str | None = None
    asked: int = 0
    told: int | None = None
    seen: int = 0
    pending: tuple[int, ...] = ()
    attempt: int = 0
    output: str | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    # when and where, which no decision reads
    began: float | None = field(default=None, compare=False)
    ended: float | None = field(default=None, compare=False)
    host: str | None = field(default=None, compare=False)
    process: int | None = field(default=None, compare=False)
    worker: str | None = field(default=None, compare=False)
    version: str | None = field(default=None, compare=False)

    @property
    def z(self) -> Point:
        """Where its last observation lies; while there is none, the fidelity that was handed out."""
        return self.observations[-1].z if self.observations else self.planned

    @property
    def value(self) -> float | None:
        """The value of the objective in its last observation; None while there is none, or if it was not told."""
        last = self._last
        return None if last is None else last.value

    @property
    def noise(self) -> float | None:
        """The variance of its value; None if it was not told."""
        last = self._last
        return None if last is None else last.noise

    @property
    def _last(self) -> Observation | None:
        """The last observation, if it is of the objective, which comes last of what is told at once."""
        return self.observations[-1] if self.observations and self.observations[-1].outcome == OBJECTIVE else None

    @property
    def outcomes(self) -> dict[str, float]:
        """The last value of every outcome beside the objective, by name; one that was not told is absent."""
        return {told.outcome: told.value for told in self.observations if told.outcome != OBJECTIVE}

    @property
    def why(self) -> dict[str, Any]:
        """Why it was chosen."""
        return self.reasons.read()

    @property
    def phase(self) -> str:
        return self.reasons.phase

    @property
    def added(self) -> bool:
        """Whether it is an imported result, which is not charged."""
        return self.phase == "added"

    @property
    def noises(self) -> dict[str, float]:
        """The variances of the outcomes beside the objective, by name; one that was not told is absent."""
        return {o.outcome: o.noise for o in self.observations if o.outcome != OBJECTIVE and o.noise is not None}

    def __repr__(self) -> str:
        """Return what a person looks for; `to_json` has the rest."""
        shown: dict[str, Any] = {
            "number": self.number,
            "x": self.x,
            "z": self.z,
            "cost": self.cost,
            "state": self.state,
        }
        more = {"value": self.value, "noise": self.noise, "seconds": self.seconds, "reason": self.reason}
        shown |= {name: value for name, value in more.items() if value is not None}
        shown |= {name: kept for name, kept in (("outcomes", self.outcomes), ("notes", self.notes)) if kept}
        return f"Trial({', '.join(f'{name}={value!r}' for name, value in shown.items())})"

    def completed(self, value: float, *, noise: float | None = None, z: Point | None = None) -> Trial:
        """Return the trial as complete, with this value as its only observation.

        Args:
            value: as told.
            noise: the variance of the value.
            z: where it was observed; by default at the fidelity that was handed out.
        """
        return self.observed({OBJECTIVE: value}, noise={} if noise is None else {OBJECTIVE: noise}, z=z)

    def observed(
        self, values: Mapping[str, float], *, noise: Mapping[str, float] | None = None, z: Point | None = None
    ) -> Trial:
        """Return the trial as complete, with these values by outcome: the objective, if it is there, comes last.

        Args:
            values: as told.
            noise: the variances that are known, by outcome.
            z: where they were observed; by default at the fidelity that was handed out.
        """
        where, known = self.planned if z is None else z, noise or {}
        ordered = sorted(values, key=lambda name: name == OBJECTIVE)
        told = tuple(Observation(where, values[n], known.get(n), self.seconds, n, self.told) for n in ordered)
        return replace(self, state="complete", reason=None, observations=told)

    def stored_at(self, event: int) -> Trial:
        """Return a finished trial with the number of the event that stored it."""
        told = tuple(o if o.told is not None else replace(o, told=event) for o in self.observations)
        return replace(self, told=event, observations=told)

    def copied(self) -> Trial:
        """Return a trial that its user may change."""
        told = tuple(replace(o, z=dict(o.z)) for o in self.observations)
        return replace(
            self,
            x=dict(self.x),
            planned=dict(self.planned),
            observations=told,
            reasons=self.reasons.copied(),
            notes=copy.deepcopy(dict(self.notes)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return all of the trial as JSON; `from_json` reads it."""
        fields_of = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "reasons"}
        told = [asdict(observation) for observation in self.observations]
        more = {"why": self.why, "observations": told, "pending": list(self.pending), "notes": dict(self.notes)}
        return fields_of | more

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Trial:
        """Return the trial that `to_json` described."""
        rest = {name: value for name, value in stored.items() if name not in ("why", "observations", "pending")}
        told = tuple(Observation(**observation) for observation in stored["observations"])
        return cls(**rest, reasons=Reasons.of(stored["why"]), observations=told, pending=tuple(stored["pending"]))

    def row(self) -> dict[str, Any]:
        """Return the trial as the row of a table, with columns `x.NAME`, `z.NAME`, `outcome.NAME` and `note.NAME`.

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
            **self.clock(),
            **{f"x.{name}": value for name, value in self.x.items()},
            **{f"z.{name}": value for name, value in self.z.items()},
            **{f"outcome.{name}": value for name, value in self.outcomes.items()},
            **{f"noise.{name}": variance for name, variance in self.noises.items()},
            **{f"note.{name}": value for name, value in self.notes.items()},
        }

    def clock(self) -> dict[str, Any]:
        """Return when and where it ran, with times in UTC."""
        return {
            "began": iso(self.began),
            "ended": iso(self.ended),
            "host": self.host,
            "process": self.process,
            "worker": self.worker,
            "attempt": self.attempt,
            "version": self.version,
        }

    def _repr_html_(self) -> str:
        from boca.domain import html

        return html.trial(self)


def sign(direction: Direction) -> float:
    """Return what a value is multiplied by so that more is better."""
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
        from boca.domain import html

        return html.history(self, repr(self))

    def copied(self) -> History:
        """Return the same trials as copies that their user may change."""
        return History([t.copied() for t in self])

    def joined(self, running: Sequence[Trial]) -> History:
        """Return the history with further trials that run; what is known of its results is not worked out again."""
        later = History([*self, *running])
        later.__dict__.update(finished=self.finished, complete=self.complete)
        return later

    def read_by(self, trial: Trial) -> History:
        """Return the history that the choice of a trial read: results until `seen`, and what it counted as running."""
        past = [self._as_read(other, trial) for other in self if other.number < trial.number]
        return History([other for other in past if other is not None])

    @staticmethod
    def _as_read(other: Trial, trial: Trial) -> Trial | None:
        if other.told is not None and other.told <= trial.seen:
            return other
        if other.number in trial.pending:
            untold = replace(other, state="running", observations=(), seconds=None, reason=None, told=None)
            return replace(untold, output=None, notes={})
        return None

    @cached_property
    def running(self) -> tuple[Trial, ...]:
        return tuple(t for t in self if t.state == "running")

    @cached_property
    def finished(self) -> tuple[Trial, ...]:
        """Complete and failed trials in the order in which they were told."""
        return tuple(sorted((t for t in self if t.state != "running"), key=_when_told))

    @cached_property
    def complete(self) -> tuple[Trial, ...]:
        return tuple(t for t in self.finished if t.state == "complete")

    @cached_property
    def valued(self) -> tuple[Trial, ...]:
        """The complete trials that have a value: the objective may be missing where another outcome was told."""
        return tuple(t for t in self.complete if t.value is not None)

    @cached_property
    def chosen(self) -> tuple[Trial, ...]:
        """The trials that a model chose, in order of number: the algorithm's iterations."""
        return tuple(t for t in self if t.phase in ("model", "final"))

    def scores(self, direction: Direction) -> FloatArray:  # (n,) in the order of `finished`
        """Return the results so that more is better; a failure counts as the worst value told so far."""
        values = [math.nan if t.value is None else sign(direction) * t.value for t in self.finished]
        scores = np.array(values, dtype=float)
        if not np.isnan(scores).all():
            scores[np.isnan(scores)] = np.nanmin(scores)
        return scores

    def best(self, problem: Problem) -> Trial | None:
        """Return the best complete trial at the target, the earliest of equals; None before there is one.

        Where outcomes have limits, all of them must have been observed within these.
        """
        return best_of(self.feasible(problem), problem.direction)

    def feasible(self, problem: Problem) -> list[Trial]:
        """Return the complete trials at the target with a value, at a point that no constraint of the space rules out.

        Every outcome that has a limit must have been observed within it.
        """
        return [
            t
            for t in self
            if t.state == "complete"
            and problem.is_target(t.z)
            and t.value is not None
            and problem.space.violated(t.x) is None
            and not (problem.subject_to and problem.broken(t.outcomes))
        ]

    def to_dataframe(self) -> Any:
        """Return a pandas table with one row per trial, in the columns of `Trial.row`."""
        try:
            import pandas as pd
        except ImportError as error:
            raise BocaError(
                "pandas is not installed; History.to_dataframe needs it. Type: pip install pandas"
            ) from error

        return pd.DataFrame([t.row() for t in self])


def _when_told(trial: Trial) -> int:
    return trial.number if trial.told is None else trial.told


def best_of(complete: Iterable[Trial], direction: Direction) -> Trial | None:
    """Return the trial with the best value, the first of equals; None if none has a value."""
    better = sign(direction)
    valued = [t for t in complete if t.value is not None]
    return max(valued, key=lambda t: better * (t.value or 0.0), default=None)


def occupied(history: History) -> set[tuple[PointKey, PointKey]]:
    """Return the (x, z) that are running: no other trial repeats them while another point exists."""
    return {(point_key(t.x), point_key(t.planned)) for t in history.running}


def unavailable(problem: Problem, history: History) -> set[tuple[PointKey, PointKey]]:
    """Return the (x, z) that no suggestion may have while others exist.

    These are the ones that are running, those with a result if a query always gives the same value, and those that were
    run if x is not to be repeated.
    """
    known: tuple[Trial, ...] = history.complete if problem.deterministic else ()
    if not problem.space.repeats:
        known = history.finished
    return occupied(history) | {(point_key(t.x), point_key(t.z)) for t in known}


def is_exhausted(problem: Problem, history: History) -> bool:
    """Whether every point was run at the target, or is running there, and none is to be repeated."""
    if problem.space.repeats:
        return False
    target = point_key(problem.target)
    done = {x for x, z in unavailable(problem, history) if z == target}
    if len(done) < problem.space.size:
        return False
    return all(point_key(problem.space.from_unit(u)) in done for u in problem.space.points())


def barred(history: History) -> set[PointKey]:
    """Return the x at which three trials failed."""
    failures: dict[PointKey, int] = {}
    for trial in history.finished:
        if trial.state == "failed":
            failures[point_key(trial.x)] = failures.get(point_key(trial.x), 0) + 1
    return {x for x, count in failures.items() if count >= 3}


def point_key(point: Mapping[str, Any]) -> PointKey:
    """Return a point as a hashable key; points with different active parameters differ in their names."""
    return tuple(point.items())
