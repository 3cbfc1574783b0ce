"""A command that passes through steps, while it runs: its reports are taken, its checkpoints kept, and it is stopped.

    for step in range(start + 1, end + 1):
        train_one_epoch()
        print(step, loss, file=reports, flush=True)        # reports = open(os.environ["BOCA_REPORTS"], "w")
        save("state.tmp")                                  # in the folder $BOCA_SAVE
        os.replace("state.tmp", str(step))

A report is a line on a pipe, and is not waited for.  A checkpoint is whatever is renamed to its step, a file or a
folder: a rename is done or not done.  A stop is SIGTERM to the process group of the command, upon which it may save
once more, and SIGKILL some time later.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import time
from pathlib import Path
from typing import Any, final

from boca.domain.errors import BocaError, InvalidInput
from boca.execution.executors.handle import Run

TICK_SECONDS = 0.1  # between two looks at what the command has saved and whether it is to stop
_READ_SIZE = 2**16
_LINE_LENGTH = 200  # characters of a wrong line that an error shows


@final
class Watch:
    """What a command and its run have to do with each other."""

    def __init__(self, run: Run, scratch: str, *, grace: float) -> None:
        self._run = run
        self._grace = grace
        self._path = Path(scratch) / "reports"
        os.mkfifo(self._path)
        self.pipe = os.open(self._path, os.O_RDWR | os.O_NONBLOCK)  # for writing too, or it would end with each writer
        self._inbox = run.inbox
        self._rest = b""
        self._stopped_at: float | None = None
        self._is_killed = False
        self.has_reported = False

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.pipe)
        if self._inbox is not None:
            shutil.rmtree(self._inbox, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """What the command finds in its environment."""
        restored = "" if self._run.checkpoint is None else str(self._run.checkpoint / str(self._run.start))
        return {
            "BOCA_REPORTS": str(self._path),
            "BOCA_START": str(self._run.start),
            "BOCA_END": str(self._run.end),
            "BOCA_CHECKPOINT": restored,
            **({} if self._inbox is None else {"BOCA_SAVE": str(self._inbox)}),
        }

    @property
    def has_stopped(self) -> bool:
        """Whether the command was told to stop: however it ended then, its last report is the result."""
        return self._stopped_at is not None

    def take(self) -> None:
        """Report the lines that have come, and keep what was saved."""
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self.pipe, _READ_SIZE):
                self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        for line in lines:
            if line.strip():
                self._run.report(*_understood(line.decode(errors="replace")))
                self.has_reported = True
        self._keep_saved()

    def stop_if_due(self, group: bytes) -> None:
        """Tell the process group of the command to end if the run is to, and kill it if it takes too long."""
        if not group.isdigit() or self._is_killed or not (self.has_stopped or self._run.should_stop()):
            return
        if self._stopped_at is None:
            self._stopped_at = time.monotonic()
            _signal(int(group), signal.SIGTERM)
        elif time.monotonic() - self._stopped_at >= self._grace:
            self._is_killed = True
            _signal(int(group), signal.SIGKILL)

    def _keep_saved(self) -> None:
        """Make the latest of what was renamed to its step the checkpoint, and remove the others."""
        if self._inbox is None:
            return
        saved = sorted((int(path.name), path) for path in self._inbox.iterdir() if path.name.isdecimal())
        for step, path in saved:
            if path != saved[-1][1]:
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
            elif max(self._run.start, 1) <= step <= self._run.end:
                self._run.adopt(path, step)
            else:
                raise InvalidInput(
                    f"The command left the checkpoint {path.name} in $BOCA_SAVE, and runs from step "
                    f"{self._run.start} to {self._run.end}. Rename a checkpoint to the step after which it was saved."
                )


class WrongReport(BocaError, ValueError):
    """A line of a command that is no report."""

    speaks_for_itself = True


def _understood(line: str) -> tuple[int, Any]:
    """Return the step and the value of a line."""
    step, _, value = line.strip().partition(" ")
    try:
        number = int(step)
        return number, json.loads(value) if value.lstrip().startswith("{") else float(value)
    except ValueError as error:
        raise WrongReport(
            f"The command wrote {line[:_LINE_LENGTH]!r} to $BOCA_REPORTS. A report is a line with a step and a number, "
            "such as '12 0.37', or outcomes by name as JSON."
        ) from error


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(OSError):  # it has ended
        os.killpg(group, number)
