"""Evaluate as jobs of submitit, which SLURM runs: its executor as one of `concurrent.futures`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import suppress
from typing import Any, final

_POLL_SECONDS = 0.5  # between two looks at the files that jobs leave; submitit asks SLURM itself every 15 s at most


def is_submitit(executor: object) -> bool:
    """Whether this is an executor of submitit, asked by name so that it is not imported if it is not."""
    return any(kind.__module__.partition(".")[0] == "submitit" for kind in type(executor).__mro__)


class _Job(Future[Any]):
    """A job as a future; to cancel it ends it, also if it has begun."""

    def __init__(self, job: Any) -> None:
        super().__init__()
        self.job = job
        self.set_running_or_notify_cancel()

    def cancel(self) -> bool:
        with suppress(Exception):  # it is gone
            self.job.cancel()
        return False

    def look(self) -> bool:
        """Take the result if there is one; return whether the job has ended."""
        try:
            if not self.job.done():
                return False
            self.set_result(self.job.result())
        except Exception as error:  # it was preempted too often, ran out of time or memory, or its files are gone
            self.set_exception(BrokenExecutor(f"job {self.job.job_id}: {error}"))
        return True


@final
class Submitit(Executor):
    """One evaluation per job; a thread looks whether jobs have ended."""

    def __init__(self, executor: Any) -> None:
        self._executor = executor
        self._jobs: set[_Job] = set()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        job = _Job(self._executor.submit(fn, *args, **kwargs))
        with self._lock:
            self._jobs.add(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="boca submitit", daemon=True)
                self._thread.start()
        return job

    def _watch(self) -> None:
        """Look until no job is left."""
        while True:
            with self._lock:
                jobs = list(self._jobs)
                if not jobs:
                    self._thread = None
                    return
            ended = {job for job in jobs if job.look()}
            with self._lock:
                self._jobs -= ended
            time.sleep(_POLL_SECONDS)
