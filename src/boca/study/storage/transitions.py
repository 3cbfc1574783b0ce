"""What a result may do to a trial: the same rules for every storage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from boca.domain.errors import InvalidInput, InvalidTrial
from boca.domain.trial import Trial


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
    for name, point in [*points, ("notes", trial.notes)]:
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


LET_GO = 0.0
"""The end of a lease that was released or handed back; no lease can time out at this value."""


def taken_over(trial: Trial, *, driver: str, until: float, max_retries: int) -> Trial:
    """Return a trial for its next driver, or as failed if its attempts are used up."""
    if until == LET_GO:  # no process died; only a released trial is known to be evaluated nowhere else
        return replace(trial, attempt=trial.attempt + (0 if driver else 1))
    return given_up(trial) if trial.attempt >= max_retries else replace(trial, attempt=trial.attempt + 1)


def given_up(trial: Trial) -> Trial:
    """Return the trial as failed after its last attempt died; how long that attempt ran is not known."""
    attempts = trial.attempt + 1
    times = "once" if attempts == 1 else f"{attempts} times"
    return replace(trial, state="failed", reason=f"The process that evaluated this trial died {times}.")
