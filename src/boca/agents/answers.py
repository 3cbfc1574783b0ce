"""What the tools answer, as JSON: points by name, values as told, sentences where a person would want one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from boca.agents.studies import Place, Studies
from boca.domain.candidates import Candidates
from boca.domain.failures import causes
from boca.domain.problem import Problem
from boca.domain.space import Space
from boca.domain.trial import Trial, sign
from boca.plots.study import StudyView
from boca.study.recommendation import nothing_best
from boca.study.storage.reader import Reader

_MAX_TEXT = 2_000  # characters of a failure or of what an evaluation printed, from its end


def listing(studies: Studies) -> list[dict[str, Any]]:
    """Return every study in a line: what it has found, and why it cannot be read if it cannot."""
    return [_line(studies, place, name) for place, name in studies.offered()]


def _line(studies: Studies, place: Place, name: str) -> dict[str, Any]:
    line: dict[str, Any] = {"study": name, "storage": place.given}
    if not place.has_begun:
        return line | {"trials": 0, "note": "It has not begun."}
    trouble = studies.trouble(name)
    if trouble is not None:
        return line | {"note": trouble}
    view = studies.view(name)
    return line | {"direction": view.problem.aims, **_counts(view), "best": _best(view)}


def status(view: StudyView, queued: int) -> dict[str, Any]:
    """Return what a study searches, what it has found, and what it has spent."""
    problem = view.problem
    return {
        "study": view.name,
        "direction": problem.aims,
        "space": _space(problem.space),
        "constraints": [constraint.words for constraint in problem.space.constraints],
        "fidelity": _space(problem.fidelity),
        "target": problem.target,
        "subject_to": {name: repr(limit) for name, limit in problem.subject_to.items()},
        "deterministic": problem.deterministic,
        **_counts(view),
        "queued": queued,
        "spent": view.ledger.spent_in_words,
        "best": _best(view),
        "running_trials": [trial.number for trial in view.history.running],
        "failures": [{"count": len(c.trials), "last": c.last.number, "reason": c.reason} for c in causes(view.history)],
        "warnings": [*view.ledger.warnings(queued=0), *([] if view.caveat is None else [view.caveat])],
    }


def queued(place: Place, name: str) -> int:
    """Return how many points wait in the queue of a study."""
    with closing(Reader(place.url)) as reader:
        row = reader.row(name)
        return reader.read(reader.queues).get(row.id, 0)


def history(view: StudyView, *, last: int, best: int | None, state: str | None) -> dict[str, Any]:
    """Return trials in order of number, or the best at the target with the best one first."""
    problem = view.problem
    if best is not None:
        better = sign(problem.direction)
        ranked = sorted(view.history.feasible(problem), key=lambda t: -better * (t.value or 0.0))
        trials: Sequence[Trial] = (view.front if problem.objectives else ranked)[:best]
    else:
        trials = [trial for trial in view.history if state in (None, trial.state)][-last:]
    return {"of": len(view.history), "trials": [trial_of(t, problem) for t in trials]}


def why(trial: Trial, problem: Problem) -> dict[str, Any]:
    """Return one trial with all that decided it, and the end of what it printed."""
    output = trial.output
    more = {} if output is None else {"output": output[-_MAX_TEXT:]}
    return trial_of(trial, problem) | more | {"why": trial.why}


def recommended(view: StudyView) -> dict[str, Any]:
    """Return the point to use at the target, with what the model expects of it."""
    if view.problem.objectives:
        members = [
            {"x": one.x, "mean": one.mean, "std": one.std, "verified": one.verified, "words": one.words}
            for one in view.recommended_front
        ]
        return {"front": members}
    advised = view.recommendation
    if advised is None:
        return {"x": None, "words": view.why_no_model}
    return {
        "x": advised.x,
        "mean": advised.mean,
        "std": advised.std,
        "verified": advised.verified,
        **({} if advised.feasible is None else {"feasible": advised.feasible}),
        "words": advised.words,
    }


def trial_of(trial: Trial, problem: Problem) -> dict[str, Any]:
    """Return a trial with its reason as a sentence; what does not apply is absent."""
    told = {
        "value": trial.value,
        "noise": trial.noise,
        "seconds": trial.seconds,
        "failure": None if trial.reason is None else trial.reason[-_MAX_TEXT:],
    }
    parts = {"outcomes": trial.outcomes, "notes": dict(trial.notes)}
    return {
        "number": trial.number,
        "state": trial.state,
        "x": trial.x,
        "z": trial.z,
        "at_target": problem.is_target(trial.z),
        "cost": trial.cost,
        **{name: value for name, value in told.items() if value is not None},
        **{name: part for name, part in parts.items() if part},
        "phase": trial.phase,
        "reason": trial.why.get("reason", ""),
    }


def _best(view: StudyView) -> dict[str, Any]:
    if view.problem.objectives:
        return {"front": [{"number": t.number, "outcomes": t.outcomes, "x": t.x} for t in view.front]}
    found = view.best
    if found is None:
        return {"number": None, "words": nothing_best(view.problem, view.history)}
    return {"number": found.number, "value": found.value, "x": found.x}


def _counts(view: StudyView) -> dict[str, int]:
    counts = {state: sum(t.state == state for t in view.history) for state in ("complete", "running", "failed")}
    return {"trials": len(view.history), **counts}


def _space(space: Space) -> dict[str, Any]:
    parts = {name: parameter.to_json() for name, parameter in space.items()}
    return parts | {"rows": space.size} if isinstance(space, Candidates) else parts
