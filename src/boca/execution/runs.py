"""The runs of a driver: what they report goes to the study as it comes, and what the driver has to say goes to them.

Reports arrive in the threads of engines, also while a strategy chooses the next trial.
"""

from __future__ import annotations

import inspect
import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, final

from boca.domain.errors import BocaError, InvalidInput, InvalidTrial
from boca.domain.problem import Problem
from boca.domain.trial import Trial
from boca.execution.checkpoints import Checkpoints
from boca.execution.executors.handle import UNAWAITED_SECONDS, Begun, Plan, Told, Word
from boca.study import runs
from boca.study.optimizer import Optimizer

_RUN = "run"  # a third parameter of this name asks for the run, also if it has a default

log = logging.getLogger("boca")


def takes_run(objective: Callable[..., object], problem: Problem) -> bool:
    """Whether an objective asks for its run, by a third argument; refuse one that can have none."""
    try:
        given = list(inspect.signature(objective).parameters.values())
    except (TypeError, ValueError):  # a function of C
        return False
    placed = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(placed) < 3 or not (placed[2].default is placed[2].empty or placed[2].name == _RUN):
        return False
    if problem.steps is None and placed[2].default is placed[2].empty:
        raise InvalidInput(
            f"The objective takes a third argument, {placed[2].name!r}, which is a boca.Run, and no fidelity is Steps. "
            "Make the fidelity that the evaluation passes through a boca.Steps, or leave the argument out."
        )
    return problem.steps is not None


@final
class Runs:
    """The runs of one driver that are under way."""

    def __init__(self, optimizer: Optimizer, checkpoints: Checkpoints) -> None:
        self.optimizer = optimizer
        self.checkpoints = checkpoints
        self.lock = threading.RLock()  # on the study, among the threads that report
        self.is_leaving = False
        self._links: dict[int, RunLink] = {}
        self._is_apart = False
        checkpoints.make()
        checkpoints.sweep()

    def has_checkpoint(self, trial: Trial) -> bool:
        """Whether a trial can begin where it is to begin."""
        return not trial.start or self.checkpoints.has(trial)

    def is_over(self, trial: Trial) -> bool:
        """Whether nothing is left to run of a trial: it has its last report, and the checkpoint of that step.

        Its process died before the result was told.
        """
        problem = self.optimizer.problem
        last = runs.last_step(problem, trial)
        has_ended = trial.stop is not None or last == problem.step(trial.planned)
        return has_ended and trial.start >= last and runs.ended(problem, trial) is not None

    def begin(self, trial: Trial) -> Begun:
        """Return what an engine needs to begin a run."""
        link = self._links[trial.number] = RunLink(self, trial)
        plan = Plan(
            study=self.checkpoints.study,
            trial=trial.number,
            attempt=trial.attempt,
            start=trial.start,
            end=self.optimizer.problem.step(trial.planned),
            checkpoint=trial.checkpoint if trial.start else None,
            folder=str(self.checkpoints.folder),
            mailbox=str(self.checkpoints.talk / f"{trial.number:06d}-{secrets.token_hex(4)}"),
            has_reports=runs.ended(self.optimizer.problem, trial) is not None,
        )
        return Begun(plan, link)

    def leave(self) -> None:
        """Tell every run to leave: the driver is told to end."""
        self.is_leaving = True

    def deliver(self, trial: Trial, told: Iterable[Told]) -> None:
        """Store reports that came with a result."""
        link = self._links[trial.number]
        for step, value, noise in told:
            link.report(step, value, noise, wait=True)

    def note_apart(self) -> None:
        """Say once that the workers cannot reach the checkpoints."""
        if not self._is_apart:
            self._is_apart = True
            log.warning(
                "The workers cannot reach %s: evaluations report when they end, are not stopped, and cannot be "
                "continued. Give checkpoints= a folder that they share with this process.",
                self.checkpoints.folder,
            )

    def is_left(self, trial: Trial) -> bool:
        """Whether a run ended because the driver is to end, before it was through or told to stop."""
        now = self.optimizer.storage.read().history[trial.number]
        is_through = now.stop is not None or now.reached >= self.optimizer.problem.step(now.planned)
        return self._links[trial.number].has_left and not is_through

    def end(self, trial: Trial) -> None:
        """Forget a run that has finished, and delete the checkpoints that nothing needs any more."""
        if self._links.pop(trial.number, None) is not None:
            with self.lock:
                self.checkpoints.after(trial.number)


@final
class RunLink:
    """The link of one run, in the process of its driver."""

    def __init__(self, runs: Runs, trial: Trial) -> None:
        self._runs = runs
        self._trial = trial
        self._end = runs.optimizer.problem.step(trial.planned)
        self._lock = threading.RLock()  # on what waits to be stored, in its order
        self._waiting: list[Told] = []
        self._timer: threading.Timer | None = None
        self._error: BocaError | None = None
        self._is_stopped = False
        self._is_lost = False  # another driver has the trial
        self._checkpoint: str | None = None  # its own newest
        self.has_left = False

    def report(self, step: int, value: float | Mapping[str, Any], noise: Any, *, wait: bool) -> Word:
        with self._lock:
            self._waiting.append((step, value, noise))
            if wait:
                self.flush()
            elif self._timer is None:
                self._timer = threading.Timer(UNAWAITED_SECONDS, self._flush_later)
                self._timer.daemon = True
                self._timer.start()
        return self.word()

    def saved(self, step: int, path: str) -> None:
        with self._lock:
            self.flush()
            self._tell(partial(self._runs.optimizer.saved, self._trial, step, path))
            before, self._checkpoint = self._checkpoint, path
            self._runs.checkpoints.replaced(before)

    def word(self) -> Word:
        if self._runs.is_leaving or self._is_lost:
            self.has_left = True
            return "leave"
        return "stop" if self._is_stopped else "go"

    def flush(self) -> None:
        with self._lock:
            self._store_waiting()
            error, self._error = self._error, None
            if error is not None:
                raise error

    def _flush_later(self) -> None:
        with self._lock:
            self._timer = None
            self._store_waiting()

    def _store_waiting(self) -> None:
        """Store in order; the first error ends it, and is raised where the run next waits."""
        waiting, self._waiting = self._waiting, []
        try:
            for step, value, noise in waiting:
                goes_on = self._tell(partial(self._runs.optimizer.report, self._trial, step, value, noise=noise))
                self._is_stopped = self._is_stopped or (goes_on is False and step < self._end)
        except BocaError as error:
            self._error = error

    def _tell(self, store: Callable[[], Any]) -> Any:
        """Store something of this trial, unless another driver has it now."""
        if self._is_lost:
            return None
        try:
            with self._runs.lock:
                return store()
        except InvalidTrial as error:
            log.warning("Trial %d stops running here: %s", self._trial.number, error)
            self._is_lost = True
            return None
