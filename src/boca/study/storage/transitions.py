"""What a result may do to a trial: the same rules for every storage."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from boca.domain.attempt import Attempt
from boca.domain.errors import InvalidInput, InvalidTrial
from boca.domain.runs import RunEvent
from boca.domain.trial import History, Trial, point_key
from boca.study.storage.base import Lease, Report
from boca.study.storage.owner import Owner


def refuse_unstorable(trial: Trial) -> None:
    """Raise if a trial holds what no database keeps: SQLite turns NaN into NULL, and JSON has no infinity."""
    numbers = [("cost", trial.cost), ("seconds", trial.seconds), ("overhead", trial.overhead)]
    points = [("x", trial.x), ("z", trial.planned)]
    for told in trial.observations:
        numbers += [("value", told.value), ("noise", told.noise), ("seconds", told.seconds)]
        points += [("z", told.z)]
    for name, number in numbers:
        if number is not None and not math.isfinite(number):
            raise InvalidInput(f"{name} is {number!r}, and must be a finite number. Nothing was changed.")
    for name, point in [*points, ("notes", trial.notes), *((f"a {e.kind} event", e.to_json()) for e in trial.events)]:
        as_json(point, name)


def as_json(value: Mapping[str, Any], what: str) -> str:
    """Return a mapping as the JSON that is stored, or raise."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} is {value!r}, and must be JSON without NaN or infinity: {error}.") from error


def storable(text: str | None) -> str | None:
    """Return a text that every database takes: without NUL and lone surrogates, which programs do print."""
    if text is None:
        return None
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def refuse_result(stored: Trial, result: Trial) -> None:
    """Raise unless a stored trial can take this result: it takes one, from its last attempt."""
    if stored.state != "running":
        told = f"value {stored.value!r}" if stored.state == "complete" else f"failure {stored.reason!r}"
        raise InvalidTrial(
            f"Trial {stored.number} already has its result ({told}), and a trial takes one. "
            "To store another observation at the same point, use opt.add."
        )
    if stored.attempt != result.attempt:
        raise InvalidTrial(
            f"This result is from attempt {result.attempt + 1} of trial {stored.number}, which was handed out again "
            f"after its process seemed to have died; only attempt {stored.attempt + 1} can be told. "
            "To store the result as another observation, use opt.add."
        )


def refuse_report(stored: Trial, trial: Trial, reports: Sequence[Report]) -> None:
    """Raise unless a stored trial can take these reports: within one attempt, steps rise."""
    refuse_result(stored, trial)
    reached = max(stored.reached, stored.start)
    for report in reports:
        if report.step <= reached:
            raise InvalidInput(backward(stored, report.step, reached))
        reached = report.step


def backward(stored: Trial, step: int, reached: int) -> str:
    """Return what is wrong with a step that does not follow on the one before it."""
    before = f"reported step {reached} before" if reached > stored.start else f"continues from step {reached}"
    return (
        f"Trial {stored.number} reported step {step}, and {before}; the steps of an evaluation must rise. Nothing was "
        f"changed, and the trial still runs. Report a step beyond {reached}."
    )


def refuse_record(stored: Trial, trial: Trial, event: RunEvent) -> None:
    """Raise unless this can happen to a stored trial."""
    if event.kind != "dropped":
        refuse_result(stored, trial)


def imported_before(history: History, drafts: Sequence[Trial]) -> list[Trial | None]:
    """Return for every imported result the trial that an earlier import made of it; None if there is none.

    One source may have the same value twice, from two measurements: each is a trial of its own.
    """
    had: dict[tuple[object, ...], list[Trial]] = {}
    for trial in reversed(history):
        if trial.added:
            had.setdefault(_import_key(trial), []).append(trial)
    return [found.pop() if (found := had.get(_import_key(draft))) else None for draft in drafts]


def _import_key(trial: Trial) -> tuple[object, ...]:
    told = tuple((o.outcome, o.value, o.noise, point_key(o.z)) for o in trial.observations)
    return point_key(trial.x), point_key(trial.z), told


def clock(lease: Lease | None) -> dict[str, Any]:
    """Return when and where a trial is that is handed out now; what will evaluate it is not known yet."""
    owner = Owner.me() if lease is None else lease.owner
    return {"began": time.time(), "ended": None, "host": owner.host, "process": owner.pid, "worker": None}


def ended(trial: Trial, stored: Trial) -> Trial:
    """Return a trial that ends now, which began as it is stored."""
    return replace(trial, began=stored.began, ended=time.time(), host=stored.host, process=stored.process)


def attempt_of(trial: Trial, ending: str) -> Attempt:
    """Return the attempt of a trial that is to be handed out once more."""
    return Attempt(trial.attempt, trial.began, trial.ended, trial.host, trial.process, ending)


def retried(stored: Trial, overhead: float) -> Trial:
    """Return the next attempt of a trial whose worker died, with the overhead that its driver counts.

    What the attempt that died has left in a checkpoint is evaluation, and no overhead.
    """
    another = replace(stored, attempt=stored.attempt + 1).handed_out_again()
    return replace(another, overhead=max(overhead - (another.carried - stored.carried), stored.overhead))


LET_GO = 0.0
"""The end of a lease that was released or handed back; no lease can time out at this value."""

_OVER = -1.0  # the end of a lease that was made, or renewed, for no time at all

ended_here: set[str] = set()
"""The drivers of this process whose runs are over: what one of them could not release is free."""


def end_of(lease: Lease, now: float) -> float:
    """Return until when a lease that begins now is held."""
    return now + lease.seconds if lease.seconds > 0.0 else _OVER


def has_ended(owner: Owner, driver: str, until: float, now: float) -> bool:
    """Whether no process holds a trial: on its owner's machine the process tells, and elsewhere only the clock can.

    A clock that is set forward, by a time server or after a suspend, must not rob a driver that lives.
    """
    if until <= LET_GO:
        return True
    if not owner.is_here:
        return until < now
    return owner.is_dead() or (driver in ended_here and owner.pid == os.getpid())


def taken_over(trial: Trial, *, driver: str, until: float, max_retries: int, owner: Owner | None = None) -> Trial:
    """Return a trial for its next driver, or as failed if its attempts are used up.

    The death of a driver is no attempt if the trial ran in a worker, which died with it.  A driver of another machine
    may still live: the next attempt has a number of its own, so that a late result is told from the one that counts.
    """
    if owner is not None and not owner.evaluates and until != LET_GO:
        return trial if owner.is_dead() else replace(trial, attempt=trial.attempt + 1)
    if until == LET_GO:  # no process died; only a released trial is known to be evaluated nowhere else
        return replace(trial, attempt=trial.attempt + (0 if driver else 1))
    return given_up(trial) if trial.attempt >= max_retries else replace(trial, attempt=trial.attempt + 1)


def given_up(trial: Trial) -> Trial:
    """Return the trial as failed after its last attempt died; how long that attempt ran is not known."""
    attempts = trial.attempt + 1
    times = "once" if attempts == 1 else f"{attempts} times"
    return replace(trial, state="failed", reason=f"The process that evaluated this trial died {times}.")
