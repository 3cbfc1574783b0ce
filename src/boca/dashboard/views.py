"""What the page shows, as JSON.

Points are lists in the order of the parameters, never objects by name: a user's name could be one that JavaScript
gives to every object.  Trials are sent as columns, and only those that changed; the rest is small.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from boca.dashboard import spending
from boca.dashboard.advice import Advice
from boca.dashboard.watch import Broken, WatchedStudy, World
from boca.domain.failures import Cause, causes
from boca.domain.problem import Problem
from boca.domain.space import Point, Space
from boca.domain.trial import Trial

_MAX_FAILURES = 12  # trials in the table, the last ones
_MAX_RUNNING = 200  # trials in the table, the first ones
_MAX_MESSAGE = 400  # characters of a message in a table
_CLOCK = ("began", "ended", "host", "process", "worker")
_MAX_OUTPUT = 20_000  # characters of what an evaluation printed, from its end


def listing(world: World, trouble: str | None, place: str) -> dict[str, Any]:
    """Return all studies, one line each."""
    return {
        "place": place,
        "trouble": trouble,
        "studies": [_line(study) for study in world.studies.values()],
    }


def _line(study: WatchedStudy | Broken) -> dict[str, Any]:
    line: dict[str, Any] = {"name": study.row.name, "created": study.row.created}
    if isinstance(study, Broken):
        return line | {"broken": study.reason}
    return line | {
        "broken": None,
        **_counts(study),
        "best": None if study.best is None else study.best.value,
        "front": len(study.front),
        "direction": study.problem.direction,
        "spent": study.ledger.spent,
        "total": spending.finite(study.ledger.total),
    }


def study(shown: WatchedStudy, advice: Advice | None, trouble: str | None, *, since: int) -> dict[str, Any]:
    """Return a study with the trials that changed after the event `since`."""
    problem = shown.problem
    failed = [t for t in shown.history.finished if t.state == "failed"]
    return {
        "name": shown.row.name,
        "key": shown.key,
        "event": shown.event,
        "trouble": trouble,
        "created": shown.row.created,
        "direction": problem.direction,
        "aims": problem.aims,
        "objectives": [[name, towards] for name, towards in problem.objectives.items()],
        "front": [_member(shown, trial) for trial in shown.front],
        "volumes": shown.volumes,
        "strategy": _strategy(shown.spec["strategy"]),
        "parameters": _parameters(problem.space),
        "fidelities": _parameters(problem.fidelity),
        "target": list(problem.target.values()),
        "counts": _counts(shown),
        "budget": spending.summary(shown.ledger),
        "best": _best(shown, advice),
        "advice": _advised(shown, advice),
        "importance": None if advice is None else advice.importance,
        "running": [_running(shown, trial) for trial in shown.history.running[:_MAX_RUNNING]],
        "causes": [_cause(cause) for cause in causes(shown.history)[:_MAX_FAILURES]],
        "failures": [_row(t, problem) for t in failed[: -_MAX_FAILURES - 1 : -1]],
        "trials": _columns(shown, since),
        "repriced": spending.repriced(shown.ledger),
    }


def _member(shown: WatchedStudy, trial: Trial) -> dict[str, Any]:
    """Return a trial of the front with its objectives, in their order."""
    values = [trial.outcomes[name] for name in shown.problem.objectives]
    return {"number": trial.number, "values": values, "x": _values(trial.x, shown.problem.space)}


def _best(shown: WatchedStudy, advice: Advice | None) -> dict[str, Any] | None:
    """Return the best trial; if variances were told, that of the model, as soon as it has been computed."""
    number = None if advice is None or advice.point is None else advice.point.get("best")
    best = shown.best if number is None else shown.history[number]
    if best is None:
        return None
    return {"number": best.number, "value": best.value, "x": _values(best.x, shown.problem.space)}


def trial(shown: WatchedStudy, one: Trial, heavy: Mapping[str, Any]) -> dict[str, Any]:
    """Return one trial with its whole `why` and the end of what it printed."""
    output = heavy["output"]
    return {
        **_row(one, shown.problem),
        "message": one.reason,
        "noise": one.noise,
        "overhead": one.overhead,
        "at_target": shown.problem.is_target(one.z),
        "parameters": list(shown.problem.space.names),
        "fidelities": list(shown.problem.fidelity),
        "why": heavy["why"],
        "outcomes": [[name, value] for name, value in one.outcomes.items()],
        "notes": [[name, str(value)[:_MAX_MESSAGE]] for name, value in heavy.get("notes", {}).items()],
        "output": None if output is None else output[-_MAX_OUTPUT:],
        "attempts": heavy.get("attempts", []),
        "is_cut": output is not None and len(output) > _MAX_OUTPUT,
    }


def _counts(study: WatchedStudy) -> dict[str, int]:
    history = study.history
    complete, running = len(history.complete), len(history.running)
    failed = len(history) - complete - running
    return {
        "trials": len(history),
        "complete": complete,
        "running": running,
        "failed": failed,
        "at_target": sum(study.problem.is_target(t.z) for t in history.complete),
        "queued": study.queued,
    }


def _strategy(stored: Any) -> str:
    named = stored["type"] if isinstance(stored, Mapping) and "type" in stored else stored
    return str(named).rpartition(".")[2]


def _parameters(space: Space) -> list[dict[str, Any]]:
    labels = [{"name": name, "type": "label"} for name in space.names if name not in space]
    return [{"name": name, **parameter.to_json()} for name, parameter in space.items()] + labels


def _values(point: Point, space: Space) -> list[Any]:
    """Return the values in the order of the names; None for what is inactive."""
    return [point.get(name) for name in space.names]


def _advised(shown: WatchedStudy, advice: Advice | None) -> dict[str, Any] | None:
    """Return the recommendation, and whether it knows every result; None before the first result."""
    if not shown.history.complete:
        return None
    if advice is None:
        return {"is_current": False, "point": None, "words": None}
    return {"is_current": advice.told >= shown.told, "point": advice.point, "words": advice.words}


def _running(shown: WatchedStudy, trial: Trial) -> dict[str, Any]:
    return _row(trial, shown.problem) | {
        "age": max(time.time() - shown.began[trial.number], 0.0),
        "is_overdue": trial.number in shown.overdue,
    }


def _row(trial: Trial, problem: Problem) -> dict[str, Any]:
    return {
        "number": trial.number,
        "state": trial.state,
        "value": trial.value,
        "cost": trial.cost,
        "seconds": trial.seconds,
        "phase": trial.phase,
        "attempt": trial.attempt,
        "message": None if trial.reason is None else _cut(trial.reason),
        **_clock(trial),
        "x": _values(trial.x, problem.space),
        "z": _values(trial.z, problem.fidelity),
    }


def _clock(trial: Trial) -> dict[str, Any]:
    """Return when and where a trial ran, in seconds since 1970."""
    found = {name: getattr(trial, name) for name in _CLOCK}
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in found.items()
    }


def _cause(cause: Cause) -> dict[str, Any]:
    return {"count": len(cause.trials), "last": cause.last.number, "message": _cut(cause.reason)}


def _columns(shown: WatchedStudy, since: int) -> dict[str, Sequence[Any]]:
    changed = [t for t, event in zip(shown.history, shown.events, strict=True) if event > since]
    objectives = [*shown.problem.objectives]
    return {
        "number": [t.number for t in changed],
        "state": [t.state for t in changed],
        "value": [t.value for t in changed],
        "told": [t.told for t in changed],
        "paid": [shown.ledger.charge(t) for t in changed],
        "at_target": [shown.problem.is_target(t.z) for t in changed],
        "cost": [t.cost for t in changed],
        "phase": [t.phase for t in changed],
        "y": _transposed(([t.outcomes.get(name) for name in objectives] for t in changed), len(objectives)),
        "x": _transposed((_values(t.x, shown.problem.space) for t in changed), len(shown.problem.space.names)),
        "z": _transposed((_values(t.z, shown.problem.fidelity) for t in changed), len(shown.problem.fidelity)),
    }


def _transposed(points: Iterable[Sequence[Any]], width: int) -> list[list[Any]]:
    rows = list(points)
    return [[row[j] for row in rows] for j in range(width)]


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else f"{text[:_MAX_MESSAGE]} …"
