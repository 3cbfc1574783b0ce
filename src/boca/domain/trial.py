"""Trials and their history: immutable records of what was asked, told and spent.

This is the one place where the direction is turned: `History.scores` is always to be maximized.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias, overload

import numpy as np

from boca.domain.attempt import iso
from boca.domain.errors import BocaError
from boca.domain.objectives import front, is_told
from boca.domain.observation import OBJECTIVE, Observation
from boca.domain.problem import Direction, Problem
from boca.domain.reasons import Reasons
from boca.domain.runs import RunEvent
from boca.domain.space import FloatArray, Point

State: TypeAlias = Literal["running", "complete", "failed"]
PointKey: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Suggestion:
    """What a strategy proposes: the point, its fidelity, and the reasons as a JSON-able mapping.

    `continues` is the number of the finished trial from whose checkpoint it goes on; None begins from scratch.
    """

    x: Point
    z: Point
    why: dict[str, Any]
    continues: int | None = None


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
        start: the step from which this attempt goes on; 0 is from scratch.
        reached: the last step that this attempt has reported.
        continues: the number of the trial that it continues.
        events: what happened to it beside its reports.
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
    start: int = 0
    reached: int = 0
    continues: int | None = None
    events: tuple[RunEvent, ...] = ()
    # when and where, which no decision reads
    began: float | None = field(default=None, compare=False)
    ended: float | None = field(default=None, compare=False)
    host: str | None = field(default=None, compare=False)
    process: int | None = field(default=None, compare=False)
    worker: str | None = field(default=None, compare=False)
    version: str | None = field(default=None, compare=False)

    @property
    def z(self) -> Point:
        """Where its last observation lies; while it runs or has none, the fidelity that was handed out."""
        return self.observations[-1].z if self.observations and self.state != "running" else self.planned

    @property
    def value(self) -> float | None:
        """The value of the objective in its last observation; None while it runs, if it failed, or if none was told."""
        last = self._last
        return None if last is None else last.value

    @property
    def noise(self) -> float | None:
        """The variance of its value; None if it was not told."""
        last = self._last
        return None if last is None else last.noise

    @property
    def _last(self) -> Observation | None:
        """The last observation of the objective, if it lies where the last one of all does."""
        if self.state != "complete":
            return None
        return next((o for o in reversed(self._told_last) if o.outcome == OBJECTIVE), None)

    @property
    def _told_last(self) -> list[Observation]:
        """What was told where its last observation lies."""
        told = self.observations
        return [o for o in told if o.z is told[-1].z or o.z == told[-1].z]

    @property
    def outcomes(self) -> dict[str, float]:
        """The last value of every outcome beside the objective, by name; one that was not told is absent."""
        return {told.outcome: told.value for told in self._told_last if told.outcome != OBJECTIVE}

    @property
    def checkpoint(self) -> str | None:
        """Where its newest checkpoint is, its own or the one that it was continued from; None if there is none."""
        event = self._checkpoint
        return None if event is None else event.path

    @property
    def saved(self) -> int:
        """The step of its newest checkpoint: from there it goes on after a crash, or is continued; 0 without one."""
        event = self._checkpoint
        return 0 if event is None else event.step

    @property
    def _checkpoint(self) -> RunEvent | None:
        kept = (e for e in reversed(self.events) if e.kind in ("continued", "checkpoint", "dropped"))
        last = next(kept, None)
        return None if last is None or last.kind == "dropped" else last

    @property
    def origin(self) -> int:
        """The step from which its first attempt began: what came before is not its cost."""
        if self.continues is None:
            return 0
        return next((event.step for event in self.events if event.kind == "continued"), self.start)

    @property
    def stop(self) -> RunEvent | None:
        """When it was told to stop, with the reasons; None if it was not."""
        return next((event for event in self.events if event.kind == "stopped"), None)

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
        return {o.outcome: o.noise for o in self._told_last if o.outcome != OBJECTIVE and o.noise is not None}

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

        What a running trial has reported comes before.

        Args:
            values: as told.
            noise: the variances that are known, by outcome.
            z: where they were observed; by default at the fidelity that was handed out.
        """
        where, known = self.planned if z is None else z, noise or {}
        ordered = sorted(values, key=lambda name: name == OBJECTIVE)
        told = tuple(Observation(where, values[n], known.get(n), self.seconds, n, self.told) for n in ordered)
        before = self.observations if self.state == "running" else ()
        return replace(self, state="complete", reason=None, observations=(*before, *told))

    def stored_at(self, event: int) -> Trial:
        """Return a finished trial with the number of the event that stored it."""
        return replace(self.dated(event), told=event)

    def dated(self, event: int) -> Trial:
        """Return the trial with this number for what was not stored before."""
        told = tuple(o if o.told is not None else replace(o, told=event) for o in self.observations)
        events = tuple(e if e.told is not None else replace(e, told=event) for e in self.events)
        return replace(self, observations=told, events=events)

    def reported(self, step: int, told: Sequence[Observation]) -> Trial:
        """Return a running trial that has reported a step; nothing is told if it had reported that step before."""
        return replace(self, observations=(*self.observations, *told), reached=step)

    def happened(self, event: RunEvent) -> Trial:
        """Return the trial with something that happened to its run."""
        return replace(self, events=(*self.events, event))

    @property
    def carried(self) -> float:
        """The seconds of evaluation that earlier attempts left in the checkpoint from which this one goes on."""
        again = max((i for i, event in enumerate(self.events) if event.kind == "again"), default=-1)
        before = (event for event in reversed(self.events[: again + 1]) if event.kind == "checkpoint")
        return next((event.seconds or 0.0 for event in before), 0.0)

    def handed_out_again(self) -> Trial:
        """Return a running trial for another process, to go on from its checkpoint."""
        if not (self.observations or self.events):
            return self
        again = self.happened(RunEvent("again", self.saved))
        return replace(again, start=self.saved, reached=self.saved)

    @property
    def last_event(self) -> int:
        """The last event that changed it, as far as it says."""
        told = [o.told or 0 for o in self.observations] + [e.told or 0 for e in self.events]
        return max([self.asked, self.told or 0, *told])

    def copied(self) -> Trial:
        """Return a trial that its user may change."""
        told = tuple(replace(o, z=dict(o.z)) for o in self.observations)
        return replace(
            self,
            events=tuple(replace(event, why=copy.deepcopy(dict(event.why))) for event in self.events),
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
        events = [asdict(event) for event in self.events]
        more = {"why": self.why, "observations": told, "pending": list(self.pending), "notes": dict(self.notes)}
        return fields_of | more | {"events": events}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Trial:
        """Return the trial that `to_json` described."""
        apart = ("why", "observations", "pending", "events")
        rest = {name: value for name, value in stored.items() if name not in apart}
        told = tuple(Observation(**observation) for observation in stored["observations"])
        happened = tuple(RunEvent(**event) for event in stored.get("events", ()))
        pending = tuple(stored["pending"])
        return cls(**rest, reasons=Reasons.of(stored["why"]), observations=told, pending=pending, events=happened)

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

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for every fidelity at which something was told, in order; cost and overhead are in the last."""
        told = self.observations
        ends = [i for i, o in enumerate(told, start=1) if i == len(told) or told[i].z != o.z]
        if (len(ends) < 2 and self.state == "complete") or not ends:
            return [self.row()]
        found = []
        for start, end in itertools.pairwise([0, *ends]):
            there = replace(self, state="complete", observations=told[start:end], seconds=told[end - 1].seconds)
            more = {} if end == len(told) else {"cost": None, "overhead": None}
            found.append(there.row() | {"state": self.state} | more)
        if self.seconds is not None:
            found[-1]["seconds"] = self.seconds
        return found

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


def sign(direction: Direction | None) -> float:
    """Return what a value is multiplied by so that more is better; several objectives have no direction, and 1."""
    return -1.0 if direction == "minimize" else 1.0


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

    def replaced(self, trial: Trial) -> History:
        """Return the history with another version of one of its trials."""
        return History([trial if t.number == trial.number else t for t in self])

    def read_by(self, trial: Trial) -> History:
        """Return the history that the choice of a trial read: results until `seen`, and what it counted as running."""
        past = [self._as_read(other, trial) for other in self if other.number < trial.number]
        return History([other for other in past if other is not None])

    def as_of(self, event: int) -> History:
        """Return the history as it was stored after an event, as a decision to stop a run read it."""
        past = (t for t in self if t.asked <= event)
        return History([t if _is_before(t, event) else self._running_at(t, event) for t in past])

    @staticmethod
    def _running_at(trial: Trial, event: int) -> Trial:
        """Return a trial as it ran at an event."""
        known = tuple(o for o in trial.observations if o.told is not None and o.told <= event)
        events = tuple(e for e in trial.events if e.told is None or e.told <= event)
        if trial.told is not None and trial.told <= event:
            return replace(trial, observations=known, events=events)
        handed_out = next((e for e in reversed(events) if e.kind in ("again", "continued")), None)
        start = trial.origin if handed_out is None else handed_out.step
        since = 0 if handed_out is None else handed_out.told or 0
        steps = [_step_of(trial, o) for o in known if (o.told or 0) > since]
        untold = replace(trial, state="running", observations=known, events=events, told=None)
        past = replace(untold, seconds=None, reason=None, output=None, notes={})
        return replace(past, start=start, reached=steps[-1] if steps else start)

    @staticmethod
    def _as_read(other: Trial, trial: Trial) -> Trial | None:
        if other.told is not None and other.told <= trial.seen:
            return other if _is_before(other, trial.seen) else History._running_at(other, trial.seen)
        return History._running_at(other, trial.seen) if other.number in trial.pending else None

    def chain(self, trial: Trial) -> tuple[Trial, ...]:
        """Return the trials that a trial continues, the first one first, and the trial itself last."""
        found = [trial]
        while found[-1].continues is not None:
            found.append(self[found[-1].continues])
        return tuple(reversed(found))

    def curve(self, problem: Problem, trial: Trial) -> list[tuple[int, float]]:
        """Return the steps that a trial and those that it continues have reported, each with its first value.

        Steps below the lowest one are among them: `problem.is_modelled(z)` tells them apart.
        """
        found: dict[int, float] = {}
        for observed in (o for t in self.chain(trial) for o in t.observations if o.outcome == OBJECTIVE):
            found.setdefault(problem.step(observed.z), observed.value)
        return sorted(found.items())

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

    def scores(self, direction: Direction | None) -> FloatArray:  # (n,) in the order of `finished`
        """Return the results so that more is better; a failure counts as the worst value told so far."""
        values = [math.nan if t.value is None else sign(direction) * t.value for t in self.finished]
        scores = np.array(values, dtype=float)
        if not np.isnan(scores).all():
            scores[np.isnan(scores)] = np.nanmin(scores)
        return scores

    def best(self, problem: Problem) -> Trial | None:
        """Return the best complete trial at the target, the earliest of equals; None before there is one.

        Where outcomes have limits, all of them must have been observed within these.  With several objectives there is
        no best trial: see `front`.
        """
        if problem.objectives:
            return None
        return best_of(self.feasible(problem), problem.direction)

    def front(self, problem: Problem) -> list[Trial]:
        """Return the feasible trials at the target that none dominates, by the first objective, its best value first.

        With one objective, it is the best trial alone.
        """
        return front(problem, self)

    def told(self, problem: Problem) -> tuple[Trial, ...]:
        """Return the complete trials that have a value, or of several objectives all."""
        return tuple(t for t in self.complete if is_told(problem, t)) if problem.objectives else self.valued

    def feasible(self, problem: Problem) -> list[Trial]:
        """Return the complete trials at the target with a value, at a point that no constraint of the space rules out.

        Every outcome that has a limit must have been observed within it, and of several objectives all must be known.
        """
        return [
            t
            for t in self
            if t.state == "complete"
            and problem.is_target(t.z)
            and is_told(problem, t)
            and problem.space.violated(t.x) is None
            and not (problem.subject_to and problem.broken(t.outcomes))
        ]

    def to_dataframe(self, *, observations: bool = False) -> Any:
        """Return a pandas table with one row per trial, in the columns of `Trial.row`.

        Args:
            observations: have a row for every fidelity that a trial reported; cost and overhead are in its last.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise BocaError(
                "pandas is not installed; History.to_dataframe needs it. Type: pip install pandas"
            ) from error

        return pd.DataFrame([row for t in self for row in (t.rows() if observations else [t.row()])])


def _is_before(trial: Trial, event: int) -> bool:
    """Whether a trial is finished, and nothing has happened to it after an event."""
    is_over = trial.told is not None and trial.told <= event
    return is_over and all(happened.told is None or happened.told <= event for happened in trial.events)


def _step_of(trial: Trial, told: Observation) -> int:
    """Return the step of a report: the one name at which its fidelity is not the one that was handed out."""
    return next((int(value) for name, value in told.z.items() if value != trial.planned[name]), trial.reached)


def _when_told(trial: Trial) -> int:
    return trial.number if trial.told is None else trial.told


def best_of(complete: Iterable[Trial], direction: Direction | None) -> Trial | None:
    """Return the trial with the best value, the first of equals; None if none has a value."""
    better = sign(direction)
    valued = [t for t in complete if t.value is not None]
    return max(valued, key=lambda t: better * (t.value or 0.0), default=None)


@dataclass(frozen=True)
class Taken:
    """Queries that no suggestion may repeat: `(point_key(x), point_key(z)) in taken`.

    Of evaluations that pass through steps no two run at one x and one combination of the other fidelities: the one
    would evaluate what the other does on its way.
    """

    queries: frozenset[tuple[PointKey, PointKey]]
    running: frozenset[tuple[PointKey, PointKey]]
    steps: str | None = None

    def __contains__(self, query: tuple[PointKey, PointKey]) -> bool:
        if query in self.queries:
            return True
        return self.steps is not None and (query[0], _beside(query[1], self.steps)) in self.running


def occupied(problem: Problem, history: History) -> Taken:
    """Return the queries that are running: no other trial repeats them while another point exists."""
    return _taken(problem, history.running, ())


def unavailable(problem: Problem, history: History) -> Taken:
    """Return the queries that no suggestion may have while others exist.

    These are the ones that are running, those with a result if a query always gives the same value, and those that were
    run if x is not to be repeated.
    """
    known: tuple[Trial, ...] = history.complete if problem.deterministic else ()
    if not problem.space.repeats:
        known = history.finished
    return _taken(problem, history.running, known)


def _taken(problem: Problem, running: Iterable[Trial], known: Iterable[Trial]) -> Taken:
    out = {(point_key(t.x), point_key(t.planned)) for t in running}
    beside = {(x, _beside(z, problem.steps)) for x, z in out} if problem.steps is not None else set()
    done = {(point_key(t.x), point_key(z)) for t in known for z in (t.z, *(o.z for o in t.observations))}
    return Taken(frozenset(out | done), frozenset(beside), problem.steps)


def _beside(z: PointKey, steps: str) -> PointKey:
    return tuple(pair for pair in z if pair[0] != steps)


def is_exhausted(problem: Problem, history: History) -> bool:
    """Whether every point was run at the target, or is running there, and none is to be repeated."""
    if problem.space.repeats:
        return False
    target = point_key(problem.target)
    done = {x for x, z in unavailable(problem, history).queries if z == target}
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
