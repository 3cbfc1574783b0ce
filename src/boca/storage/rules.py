"""What a result may do to a trial: the same rules for every storage."""

from __future__ import annotations

from dataclasses import replace

from boca.errors import InvalidTrial
from boca.trial import Trial


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


def given_up(trial: Trial) -> Trial:
    """Return the trial as failed after its last attempt died; the seconds of attempts that died are not known."""
    attempts = trial.attempt + 1
    times = "once" if attempts == 1 else f"{attempts} times"
    return replace(trial, state="failed", reason=f"The process that evaluated this trial died {times}.")
