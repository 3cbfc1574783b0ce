"""The engine, which evaluates an objective somewhere, and the outcome of one evaluation."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import Point, finite_number
from boca.execution.executors.handle import Begun, Plan
from boca.execution.executors.worker import Report, cut

Objective: TypeAlias = Callable[..., object]

CLOSED = "The engine was closed before the evaluation ended."

_PICKLING_ERROR_LENGTH = 500  # characters; errors of pickling may quote the whole object


@dataclass(frozen=True)
class Outcome:
    """The result of one evaluation, or why it has none."""

    value: float | dict[str, Any] | None
    """A finite number, or outcomes and notes by name; None if the evaluation failed."""
    error: str | None
    """Why there is no value: the first line says what happened, and the traceback follows if there is one."""
    output: str
    """What the objective printed, cut to its end if it is long; empty if the engine does not capture it."""
    seconds: float
    """How long the evaluation took, measured where it ran; until its end was noticed here if it has no result."""
    died: bool = False
    """Whether the process ended, and not the objective: the evaluation may succeed if it is tried again."""
    exception: BaseException | None = None
    """What the objective raised, if it ran in this process."""
    lacking: bool = False
    """Whether the machine lacked what it takes to begin, such as processes: the objective was not called."""
    ended: bool = False
    """Whether the last report of a run is its result."""
    lost: bool = False
    """Whether the checkpoint is not there that a run was to go on from: the objective was not called."""
    told: tuple[Any, ...] = ()
    """What a run has reported, if it had no way to do so before."""
    apart: bool = False
    """Whether it had no folder in common with its driver."""
    worker: str = ""
    """The machine and the process that evaluated, as `host:number`; empty if they are not known."""


class Engine(Protocol):
    """Evaluates an objective somewhere."""

    @property
    def slots(self) -> int:
        """How many evaluations may run at the same time; ask again before each `submit`, which does not check it."""

    def submit(self, x: Point, z: Point, *, timeout: float | None, run: Begun | None = None) -> Future[Outcome]:
        """Evaluate at x and z; whatever the objective does, the result of the future is an outcome.

        With `run` the objective takes a `boca.Run`; what it says goes to the link of `run`, from any thread.
        An evaluation without a result after `timeout` seconds has failed.  A `BocaError` means that this engine cannot
        evaluate any more.
        """

    def close(self, *, now: bool = False) -> None:
        """Wait for running evaluations, or kill them with `now`; no process of the engine remains."""


def arguments(x: Point, z: Point, *, takes_fidelity: bool) -> tuple[Point, ...]:
    """Return the arguments of the objective, as copies that it may change."""
    return (dict(x), dict(z)) if takes_fidelity else (dict(x),)


def pickled(objective: Objective) -> bytes:
    """Return an objective in a form that another process can load; functions of scripts and notebooks go by value."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(objective))
    except Exception as error:
        raise InvalidInput(
            f"The objective cannot be sent to another process: cloudpickle refuses {objective!r} with "
            f"{cut(str(error), _PICKLING_ERROR_LENGTH)}. Open files, locks and connections inside the objective, "
            "or run it in this process with executor=None."
        ) from error


def pickled_arguments(values: tuple[Point, ...], plan: Plan | None = None) -> bytes | Outcome:
    """Return the arguments of one call in a form that another process can load, or the failure of that call."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(values if plan is None else {"arguments": values, "plan": plan}))
    except Exception as error:
        reason = f"The point cannot be sent to another process: {cut(str(error), _PICKLING_ERROR_LENGTH)}"
        return Outcome(None, reason, "", 0.0)


def checked_timeout(timeout: object) -> float | None:
    """Return a timeout in seconds, or refuse a value that is not positive."""
    if timeout is None:
        return None
    seconds = finite_number(timeout, "timeout")
    if seconds <= 0:
        raise InvalidInput(f"timeout must be a positive number of seconds, or None for no limit; got {timeout!r}.")
    return seconds


def finished(outcome: Outcome) -> Future[Outcome]:
    """Return a future that already has its result."""
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return future


def closed() -> BocaError:
    """Return the error for an evaluation that is submitted after `close`."""
    return BocaError("This engine is closed and cannot evaluate any more. Create another one.")


def outcome_of(report: Report) -> Outcome:
    """Return the outcome of an evaluation that ended in another process or thread."""
    return Outcome(
        report.value,
        report.error,
        "",
        report.seconds,
        lacking=report.lacking,
        ended=report.ended,
        lost=report.lost,
        told=report.told,
        apart=report.apart,
        worker=report.worker,
    )
