"""What a result may do to a trial: the same rules for every storage."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from boca.domain.errors import InvalidInput, InvalidTrial
from boca.domain.space import Point
from boca.domain.trial import Trial


def refuse_no_number(trial: Trial) -> None:
    """Raise where a trial holds what no database keeps: SQLite makes NULL of NaN, and JSON knows neither."""
    for name in ("cost", "value", "noise", "seconds", "overhead"):
        number = getattr(trial, name)
        if number is not None and not math.isfinite(number):
            raise InvalidInput(f"{name} must be a finite number; got {number!r}. Nothing was changed.")
    for name in ("x", "z", "why"):
        refuse_no_json(getattr(trial, name), name)


def refuse_no_json(value: Point, what: str) -> None:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{what} must be JSON without NaN or infinity ({error}); got {value!r}.") from error


def storable(text: str | None) -> str | None:
    """Return a text that every database takes: without NUL and halves of characters, which programs do print."""
    if text is None:
        return None
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


def refuse_result(stored: Trial, result: Trial) -> None:
    """Raise unless a result may be taken for the trial as it is stored: one a trial, and of its last attempt."""
    if stored.state != "running":
        told = f"value {stored.value!r}" if stored.state == "complete" else f"failure {stored.reason!r}"
        raise InvalidTrial(
            f"Trial {stored.number} has its result already ({told}) and keeps it. "
            "Use opt.add for a further observation at the same point."
        )
    if stored.attempt != result.attempt:
        raise InvalidTrial(
            f"Trial {stored.number} was handed out again, because whoever had it seemed to be dead: the result of "
            f"attempt {result.attempt + 1} comes too late for attempt {stored.attempt + 1}. "
            "Use opt.add to bring it as a further observation."
        )


LET_GO = 0.0
"""When the lease of a trial ended that its driver released, or that was abandoned: no lease ends then by itself."""


def taken_over(trial: Trial, *, driver: str, until: float, max_retries: int) -> Trial:
    """Return a trial as it goes on after its driver has left it, or as failed where its attempts are used up."""
    if until == LET_GO:  # nobody died; only of what a driver released is it known that nobody else has it
        return replace(trial, attempt=trial.attempt + (0 if driver else 1))
    return given_up(trial) if trial.attempt >= max_retries else replace(trial, attempt=trial.attempt + 1)


def given_up(trial: Trial) -> Trial:
    """Return the trial as failed after its last attempt died; the seconds of attempts that died are not known."""
    attempts = trial.attempt + 1
    times = "once" if attempts == 1 else f"{attempts} times"
    return replace(trial, state="failed", reason=f"The process that evaluated this trial died {times}.")
