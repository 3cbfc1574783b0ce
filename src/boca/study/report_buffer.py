"""Reports on their way to a storage: each durable before the call returns, unless they come quickly.

A trial that reports more than twenty times a second does not wait for the storage: its reports are written together, at
most 50 ms after they were made.  That is what a crash of this process may lose.  A checkpoint, a stop and the end of a
trial write what is left.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from boca.domain.trial import Trial
from boca.study.storage import Memory, Report, Storage

INTERVAL = 0.05
"""Seconds between two writes of one trial that reports quickly."""


@dataclass
class _Waiting:
    """The reports of one trial that are not written yet."""

    trial: Trial
    reports: list[Report] = field(default_factory=list)
    written: float = -1.0  # when reports were written last
    timer: threading.Timer | None = None
    error: BaseException | None = None  # of a write that no call waited for


class ReportBuffer:
    """What the trials of one optimizer have reported, until the storage has it."""

    def __init__(self, storage: Callable[[], Storage]) -> None:
        self._storage = storage
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._waiting: dict[int, _Waiting] = {}

    def ahead(self, trial: Trial) -> Trial:
        """Return a running trial with what it has reported and is not written yet."""
        waiting = self._waiting.get(trial.number)
        if waiting is None or not waiting.reports:
            return trial
        with self._lock:
            for report in waiting.reports:
                if report.step > trial.reached:
                    trial = trial.reported(report.step, report.told)
        return trial

    def put(self, trial: Trial, report: Report) -> Trial | None:
        """Write a report, and return the trial as it is then; None if it is written later."""
        with self._lock:
            waiting = self._of(trial)
            self._raise(waiting)
            since = time.monotonic() - waiting.written
            waiting.reports.append(report)
            if since >= INTERVAL or isinstance(self._storage(), Memory):
                return self._write(waiting)
            if waiting.timer is None:
                waiting.timer = threading.Timer(INTERVAL - since, self._write_late, [waiting])
                waiting.timer.start()
            return None

    def flush(self, number: int | None = None) -> None:
        """Write what is left of a trial, or of all of them; raise what a late write raised."""
        with self._lock:
            for waiting in [*self._waiting.values()] if number is None else self._known(number):
                self._write(waiting)

    def forget(self, number: int) -> None:
        """Drop a trial that has ended."""
        with self._lock:
            waiting = self._waiting.pop(number, None)
            if waiting is not None and waiting.timer is not None:
                waiting.timer.cancel()

    def _known(self, number: int) -> list[_Waiting]:
        return [self._waiting[number]] if number in self._waiting else []

    def _of(self, trial: Trial) -> _Waiting:
        if self._process != os.getpid():  # forked: what waits belongs to the parent, which writes it
            self._process, self._waiting = os.getpid(), {}
        waiting = self._waiting.setdefault(trial.number, _Waiting(trial))
        if waiting.trial.attempt != trial.attempt:
            waiting = self._waiting[trial.number] = _Waiting(trial)
        return waiting

    def _write(self, waiting: _Waiting) -> Trial | None:
        if waiting.timer is not None:
            waiting.timer.cancel()
            waiting.timer = None
        self._raise(waiting)
        if not waiting.reports:
            return None
        reports, waiting.reports = waiting.reports, []
        try:
            return self._storage().report(waiting.trial, reports)
        finally:
            waiting.written = time.monotonic()

    def _raise(self, waiting: _Waiting) -> None:
        error, waiting.error = waiting.error, None
        if error is not None:
            raise error

    def _write_late(self, waiting: _Waiting) -> None:
        with self._lock:
            if waiting.timer is None:
                return  # it was written meanwhile
            waiting.timer = None
            try:
                self._write(waiting)
            except BaseException as error:  # the next call raises it
                waiting.error = error
