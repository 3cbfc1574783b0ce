"""`Run`: an evaluation that passes through steps, as its objective sees it.

The objective reports its steps, is told to stop, and leaves checkpoints.  How a report travels to the driver is the
matter of a link: a call in the same process, a pipe from a worker, a file that both can read, or none, in which case
the reports come with the result.
"""

from __future__ import annotations

import contextlib
import math
import numbers
import os
import secrets
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, final

from boca.domain.errors import InvalidInput
from boca.execution.executors import stamp
from boca.execution.executors.worker import Report, as_outcome, evaluate, shown

Word: TypeAlias = Literal["go", "stop", "leave"]
"""What a driver says to a run: to go on, to stop where it is, or to leave, since the driver itself is told to end."""

UNAWAITED_SECONDS = 0.05  # after a report that was waited for, in which others are not: at most these can be lost


@dataclass(frozen=True)
class Plan:
    """What a run is to do, as its driver sends it."""

    study: str
    trial: int
    attempt: int
    start: int
    """The step from which it goes on; 0 is from scratch."""
    end: int
    checkpoint: str | None = None
    """Where the checkpoint of `start` is."""
    folder: str | None = None
    """Where it leaves checkpoints; None if it cannot."""
    mailbox: str | None = None
    """The folder in which a run and its driver can leave each other word, if they have no other way."""
    has_reports: bool = False
    """Whether an earlier attempt has reported, so that the trial has a last report whatever this one does."""


class Link(Protocol):
    """The way from a run to its driver."""

    def report(self, step: int, value: float | Mapping[str, Any], noise: Any, *, wait: bool) -> Word:
        """Tell of a step; return what the driver says to it, or said last if this is not waited for."""
        ...

    def saved(self, step: int, path: str) -> None:
        """Tell that there is a checkpoint, and return when that is stored."""
        ...

    def word(self) -> Word:
        """Return what the driver says now."""
        ...

    def flush(self) -> None:
        """Return when everything that was told is stored."""
        ...


@dataclass(frozen=True)
class Begun:
    """A run that begins: what it is to do, and who hears of it."""

    plan: Plan
    link: Link


class CheckpointLost(Exception):
    """A run cannot go on from its checkpoint, which is gone or does not have the stamp that it should have."""


@final
class Run:
    """One evaluation that passes through steps: what the third argument of an objective is.

    Its methods may be called from any thread of the process that evaluates, and not from others.
    """

    def __init__(self, plan: Plan, link: Link) -> None:
        if plan.start and not stamp.fits(plan.checkpoint, study=plan.study, step=plan.start):
            raise CheckpointLost(f"There is no checkpoint of step {plan.start} at {plan.checkpoint}.")
        self._plan = plan
        self._link = link
        self._lock = threading.RLock()
        self._checkpoint = None if plan.checkpoint is None or not plan.start else Path(plan.checkpoint)
        self._reached = plan.start  # the last step that was reported
        self._last: object = None  # what was reported there
        self._reports = 0
        self._at: int | None = None  # the step that `steps` has given last
        self._has_ended = False  # whether `steps` has given all
        self._waited_at = -math.inf
        self._process = os.getpid()

    def __repr__(self) -> str:
        return f"Run(trial={self.trial}, start={self.start}, end={self.end})"

    @property
    def trial(self) -> int:
        """The number of the trial."""
        return self._plan.trial

    @property
    def start(self) -> int:
        """The step from which it goes on, that of its checkpoint; 0 if it begins from scratch."""
        return self._plan.start

    @property
    def end(self) -> int:
        """The last step, which is that of z."""
        return self._plan.end

    @property
    def checkpoint(self) -> Path | None:
        """The folder of the newest checkpoint: the one to go on from, then the one saved last; None without one."""
        return self._checkpoint

    def steps(self) -> Iterator[int]:
        """Yield `start + 1` to `end`; end early when the run is to stop."""
        for step in range(self.start + 1, self.end + 1):
            if self.should_stop():
                return
            self._at = step
            yield step
        self._has_ended = True

    def report(self, step: int, value: float | Mapping[str, Any], *, noise: Any = None) -> bool:
        """Report a result at this step, and return whether to go on.

        It is durable when this returns, unless reports come at more than twenty a second: then the driver has it within
        50 ms.  A checkpoint, a stop and the end of the evaluation wait for all.

        Args:
            step: beyond the last one, and not beyond `end`; steps may be left out.
            value: a finite number, or numbers by name if outcomes have limits.
            noise: the variance of this value, if it is known; or variances by name.
        """
        self._refuse_copies("report")
        with self._lock:
            number = self._checked(step)
            told = as_outcome(value)
            if told is None:
                raise InvalidInput(
                    f"run.report got {shown(value)} at step {number}, and a report is a finite number. Nothing was "
                    "stored for this step. Leave the report out, or raise an exception if the evaluation has failed."
                )
            now = time.monotonic()
            wait = now - self._waited_at >= UNAWAITED_SECONDS or number == self.end
            word = self._link.report(number, told, None if noise is None else as_outcome(noise), wait=wait)
            self._reached, self._last, self._reports = number, told, self._reports + 1
            if wait:
                self._waited_at = time.monotonic()
            return word == "go" and number < self.end

    def should_stop(self) -> bool:
        """Return whether to end here: the run is stopped, or what drives it is shutting down.

        Save a checkpoint and return: the trial is then complete at its last step, or goes on from there in another
        process.
        """
        with self._lock:
            return self._link.word() != "go"

    @contextmanager
    def save(self) -> Iterator[Path]:
        """Yield an empty folder, which on leaving becomes the checkpoint of the last reported step, in one move.

        If the block raises, the checkpoint before stays.  Before the first report there is nothing to go on from, and
        the folder is discarded; so it is if the driver cannot read what this process writes.
        """
        self._refuse_copies("save")
        with self._lock:
            step, folder = self._reached, self._plan.folder
            if not step or folder is None:
                with tempfile.TemporaryDirectory(prefix="boca-") as unused:
                    yield Path(unused)
                return
            self._link.flush()
            own = Path(folder) / f"{self.trial:06d}"
            part = own / f".{secrets.token_hex(4)}.part"
            part.mkdir(parents=True)
            try:
                yield part
                self._keep(part, step)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise

    @property
    def inbox(self) -> Path | None:
        """A folder in which a program can leave what `adopt` makes a checkpoint; None if nothing can be continued."""
        if self._plan.folder is None:
            return None
        folder = Path(self._plan.folder) / f"{self.trial:06d}" / f".{secrets.token_hex(4)}.inbox"
        folder.mkdir(parents=True)
        return folder

    def adopt(self, left: Path, step: int) -> None:
        """Make a file or a folder that a program has left in the inbox the checkpoint of a step, under its name."""
        with self._lock:
            self._link.flush()
            part = left.parent.with_name(f".{secrets.token_hex(4)}.part")
            part.mkdir()
            left.rename(part / left.name)
            self._keep(part, step)

    def _keep(self, part: Path, step: int) -> None:
        """Make a folder that is complete the checkpoint."""
        stamp.write(part, study=self._plan.study, trial=self.trial, attempt=self._plan.attempt, step=step)
        path = stamp.move(part, part.with_name(f"{step:08d}-{part.name.split('.')[1]}"))
        self._link.saved(step, os.fspath(path))
        self._checkpoint = path

    def settle(self, returned: object) -> tuple[object, bool]:
        """Return what an objective returned, and whether its last report is the result instead.

        A number is the report at z if the evaluation went through to z.  If it ended before, or if the number is what
        the last step has reported, the last report is the result; without one the number belongs to the step that was
        reached.  A run that was told to leave needs no result.
        """
        with self._lock:
            number = as_outcome(returned)
            if number is not None and self._ended_early:
                if self._reached == self.start and self._at is not None:
                    self.report(self._at, number)
                returned = None
            elif number is not None and self._reports and number == self._last:
                returned = None
            self._link.flush()
            has_reported = self._reports > 0 or self._plan.has_reports
            return returned, returned is None and (has_reported or self._link.word() == "leave")

    @property
    def _ended_early(self) -> bool:
        """Whether an evaluation that has returned did not go through to z.

        `steps` knows.  Of a loop of the objective's own it is known only if that has reported every step.
        """
        if self._at is not None:
            return not self._has_ended and self._at < self.end
        return 0 < self._reports == self._reached - self.start < self.end - self.start - 1

    def give_up(self) -> None:
        """Store what was reported before the objective raised an exception, if that can be done."""
        with contextlib.suppress(Exception):
            self._link.flush()

    def _refuse_copies(self, method: str) -> None:
        """Refuse what only the process can do that evaluates: a copy has no way of its own to the driver."""
        if os.getpid() != self._process:
            raise InvalidInput(
                f"run.{method}() was called in a process that the evaluation started, and only the process of the "
                "evaluation may call it. Send the value to that process and report it there."
            )

    def _checked(self, step: object) -> int:
        if isinstance(step, bool) or not isinstance(step, numbers.Integral):
            raise InvalidInput(
                f"run.report got step {step!r}, and a step is a whole number. Type run.report(step, value)."
            )
        number = int(step)
        if number > self.end:
            raise InvalidInput(
                f"run.report got step {number}, and this run ends at step {self.end}. Nothing was stored for this "
                "step. End the evaluation there: `for step in run.steps()` does."
            )
        if number <= self._reached:
            before = "it continues from" if self._reached == self.start else "it has reported"
            raise InvalidInput(
                f"run.report got step {number}, and {before} step {self._reached}: steps must rise. Nothing was stored "
                f"for this step. Report a step from {self._reached + 1} to {self.end}."
            )
        return number


Told: TypeAlias = tuple[int, Any, Any]
"""A step, its value and its noise."""


@final
class Kept:
    """A link without a way to the driver: what was told comes with the result, and nothing stops the run."""

    def __init__(self) -> None:
        self.told: list[Told] = []

    def report(self, step: int, value: float | Mapping[str, Any], noise: Any, *, wait: bool) -> Word:
        self.told.append((step, value, noise))
        return "go"

    def saved(self, step: int, path: str) -> None:
        """Do nothing: without a common folder nothing is saved."""

    def word(self) -> Word:
        return "go"

    def flush(self) -> None:
        """Do nothing."""


def evaluate_run(
    objective: Callable[..., object],
    arguments: tuple[Any, ...],
    plan: Plan,
    link: Link,
    *,
    passing: tuple[type[BaseException], ...] = (),
) -> Report:
    """Call an objective with its run as the last argument; see `evaluate`."""
    try:
        run = Run(plan, link)
    except CheckpointLost as lost:
        return Report(None, str(lost), 0.0, lost=True)
    return evaluate(objective, arguments, passing=passing, run=run)
