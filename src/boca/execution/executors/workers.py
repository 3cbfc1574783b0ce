"""Evaluate in worker processes that boca starts, in which a crash costs one trial.

A slot is a thread here that feeds one worker process, and starts another if that one ended.  A worker is a new
interpreter, not a copy of this one: nothing of the calling script runs again, so the script needs no `__main__` guard.
"""

from __future__ import annotations

import logging
import pickle
import queue
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import Point, whole_number
from boca.execution.executors.base import (
    CLOSED,
    Objective,
    Outcome,
    arguments,
    checked_timeout,
    closed,
    finished,
    pickled,
    pickled_arguments,
)
from boca.execution.executors.handle import Begun
from boca.execution.executors.process import End, Worker, frame
from boca.execution.executors.talk import Talk
from boca.execution.executors.worker import described

_LOADING_SECONDS = 600.0  # for a worker to start and import what the objective needs: large libraries on slow disks
_EXIT_SECONDS = 3.0  # for an idle worker to exit by itself, with what the objective registered with `atexit`

log = logging.getLogger("boca")


@dataclass(frozen=True)
class Workers:
    """Worker processes, as many as `workers`, each with at most `memory` bytes.

    `memory` limits the address space, on Linux alone.  Libraries reserve more of it than they use: give a gigabyte more
    than you expect to need.  Each process that the objective starts has the same limit of its own.
    """

    workers: int
    memory: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "workers", whole_number(self.workers, "The number of workers"))
        if self.workers < 1:
            raise InvalidInput(f"The number of workers must be at least 1; got {self.workers!r}.")
        if self.memory is None:
            return
        object.__setattr__(self, "memory", whole_number(self.memory, "memory"))
        if self.memory < 1:
            raise InvalidInput(f"memory must be a positive number of bytes, or None; got {self.memory!r}.")
        if sys.platform != "linux":
            raise InvalidInput(f"memory can be limited on Linux only; this is {sys.platform}. Leave memory out.")


@dataclass(frozen=True)
class _Task:
    message: bytes
    timeout: float | None
    future: Future[Outcome]
    talk: Talk | None = None


@final
class WorkerEngine:
    """The engine of `executor=n` and `executor=Workers(n, memory=...)`.

    A worker starts with the first evaluation of its slot.  A timeout counts from when the worker has loaded the
    objective, since imports may take long; loading has a limit of ten minutes.
    """

    def __init__(self, workers: Workers, objective: Objective, *, takes_fidelity: bool) -> None:
        if not sys.executable:
            raise InvalidInput("Workers need a Python interpreter, and sys.executable is empty. Set it to its path.")
        path = [entry for entry in sys.path if isinstance(entry, str)]
        setup = frame(pickle.dumps((path, workers.memory))) + frame(pickled(objective))
        self._takes_fidelity = takes_fidelity
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._is_closed = False
        slots = [_Slot(setup, Path.cwd(), self._stop) for _ in range(workers.workers)]
        self._threads = [threading.Thread(target=slot.serve, args=(self._tasks,), daemon=True) for slot in slots]
        try:
            for thread in self._threads:
                thread.start()
        except RuntimeError as error:  # the system has no more of them
            raise BocaError(f"No thread can be started for a worker: {error}. Give fewer workers.") from error

    @property
    def slots(self) -> int:
        return len(self._threads)

    def submit(self, x: Point, z: Point, *, timeout: float | None, run: Begun | None = None) -> Future[Outcome]:
        if self._is_closed:
            raise closed()
        limit = checked_timeout(timeout)
        given = arguments(x, z, takes_fidelity=self._takes_fidelity)
        values = pickled_arguments(given, None if run is None else run.plan)
        if isinstance(values, Outcome):
            return finished(values)
        future: Future[Outcome] = Future()
        future.set_running_or_notify_cancel()  # the caller cannot cancel it
        self._tasks.put(_Task(frame(values), limit, future, None if run is None else Talk(run.link)))
        return future

    def close(self, *, now: bool = False) -> None:
        if now:
            self._stop.set()
        if not self._is_closed:
            self._is_closed = True
            for _ in self._threads:
                self._tasks.put(None)
        for thread in self._threads:
            thread.join()


class _Slot:
    """Runs one evaluation at a time, in a worker that it replaces if it ends."""

    def __init__(self, setup: bytes, directory: Path, stop: threading.Event) -> None:
        self._setup = setup
        self._directory = directory
        self._stop = stop
        self._worker: Worker | None = None

    def serve(self, tasks: queue.SimpleQueue[_Task | None]) -> None:
        """Evaluate tasks until there is None."""
        while (task := tasks.get()) is not None:
            began = time.perf_counter()
            try:
                outcome = self._evaluate(task)
            except Exception as error:  # the future must have a result all the same
                self._end_worker()
                reason = f"The evaluation could not be completed: {described(error)}"
                outcome = Outcome(None, reason, "", time.perf_counter() - began, died=True)
            task.future.set_result(outcome)
        self._end_worker(grace=0.0 if self._stop.is_set() else _EXIT_SECONDS)

    def _evaluate(self, task: _Task) -> Outcome:
        if self._stop.is_set():
            return Outcome(None, CLOSED, "", 0.0, died=True)
        if self._worker is not None and not self._worker.is_alive:
            self._end_worker()  # it died between two evaluations, which costs nothing
        if self._worker is None:
            try:
                self._worker = Worker(self._directory)
                loaded = self._worker.ask(self._setup, _LOADING_SECONDS, self._stop)
            except Exception as error:  # no more processes or files
                self._end_worker()
                return Outcome(None, f"{described(error)}", "", 0.0, died=True, lacking=True)
            if isinstance(loaded, End):
                failure = self._failure(loaded, "The worker had not loaded the objective", _LOADING_SECONDS, 0.0)
                return replace(failure, lacking=loaded is End.DEAD)  # the objective was not called
            if loaded["error"] is not None:
                return Outcome(None, loaded["error"], self._end_worker(), 0.0, lacking=loaded["lacking"])
        began = time.perf_counter()
        answer = self._worker.ask(task.message, task.timeout, self._stop, talk=task.talk)
        if isinstance(answer, End):
            return self._failure(answer, "The evaluation had no result", task.timeout, time.perf_counter() - began)
        return Outcome(
            answer["value"],
            answer["error"],
            self._worker.output,
            answer["seconds"],
            lacking=answer["lacking"],
            ended=answer["ended"],
            lost=answer["lost"],
            worker=self._worker.name,
        )

    def _failure(self, end: End, missing: str, limit: float | None, seconds: float) -> Outcome:
        """End a worker that did not answer, and return the outcome."""
        worker, output = self._worker, self._end_worker()
        name = "" if worker is None else worker.name
        if end is End.LATE:
            return Outcome(None, f"{missing} after {limit:g} s; its process was killed.", output, seconds, worker=name)
        reason = CLOSED if end is End.STOPPED or worker is None else f"The worker {worker.fate} and left no result."
        log.info("%s", reason)
        return Outcome(None, reason, output, seconds, died=True, worker=name)

    def _end_worker(self, *, grace: float = 0.0) -> str:
        """End the worker if there is one, and return what it has printed."""
        if self._worker is None:
            return ""
        worker, self._worker = self._worker, None
        worker.end(grace=grace)
        return worker.output
