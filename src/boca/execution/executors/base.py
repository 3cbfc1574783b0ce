"""What every engine is, and what comes of an evaluation."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import Point, finite_number
from boca.execution.executors.worker import Report, cut

Objective: TypeAlias = Callable[..., object]

CLOSED = "The engine was closed before there was a result."


@dataclass(frozen=True)
class Outcome:
    """What came of one evaluation."""

    value: float | None
    """A finite number; None where there is none."""
    error: str | None
    """Why there is no value: what happened in the first line, then the traceback if there is one."""
    output: str
    """What the objective printed, its end if it was much; empty where the engine cannot tell."""
    seconds: float
    """Of the evaluation itself, measured where it ran; up to its end as seen from here where it has no result."""
    died: bool = False
    """Whether the attempt ended with its process, not by the objective's doing: it may be worth another one."""
    exception: BaseException | None = None
    """What was raised, where it was raised in this process."""


class Engine(Protocol):
    """Evaluates an objective somewhere."""

    @property
    def slots(self) -> int:
        """How many evaluations may run at once; whoever submits keeps to it, and looks again before every one."""

    def submit(self, x: Point, z: Point, *, timeout: float | None) -> Future[Outcome]:
        """Evaluate at x and z; whatever the objective does, the future's result is an outcome.

        After `timeout` seconds without a result the evaluation has failed.  A `BocaError` means that this engine will
        evaluate nothing any more.
        """

    def close(self, *, now: bool = False) -> None:
        """Wait for what runs, or with `now` kill it; no process of the engine's own is left."""


def arguments(x: Point, z: Point, *, takes_fidelity: bool) -> tuple[Point, ...]:
    """Return what the objective is called with: copies, which it may change."""
    return (dict(x), dict(z)) if takes_fidelity else (dict(x),)


def pickled(objective: Objective) -> bytes:
    """Return an objective as it travels to another process: a function of a script or notebook goes whole."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(objective))
    except Exception as error:
        raise InvalidInput(
            "The objective must be something that another process can have, which cloudpickle refuses for "
            f"{objective!r}: {cut(str(error), 500)}. Open files, locks and connections inside of it, "
            "or run it in this process with executor=None."
        ) from error


def pickled_arguments(values: tuple[Point, ...]) -> bytes | Outcome:
    """Return the arguments of one call as they travel, or the failure of that call."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(values))
    except Exception as error:
        return Outcome(None, f"The point cannot be sent to another process: {cut(str(error), 500)}", "", 0.0)


def checked(timeout: object) -> float | None:
    """Return a limit in seconds, or refuse what is none."""
    if timeout is None:
        return None
    seconds = finite_number(timeout, "timeout")
    if seconds <= 0:
        raise InvalidInput(f"timeout must be a positive number of seconds, or None for no limit; got {timeout!r}.")
    return seconds


def finished(outcome: Outcome) -> Future[Outcome]:
    """Return a future that has its result."""
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return future


def closed() -> BocaError:
    """Return what to raise for an evaluation after the last."""
    return BocaError("This engine is closed and evaluates nothing any more: make another one.")


def outcome_of(report: Report) -> Outcome:
    """Return the outcome of an evaluation that came to its end elsewhere."""
    return Outcome(report.value, report.error, "", report.seconds)
