"""The driver: it keeps the workers of one engine busy with the trials of one study until the money is gone.

Only the driver touches the storage; workers get a point and return an outcome.  Its claims carry a lease, which a
thread renews, so that trials do not stay out for ever when the driver dies: the next one takes them over.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TypeAlias

from boca.accounting import cost as cost_models
from boca.domain.errors import InvalidTrial, StorageFailed
from boca.domain.trial import Trial
from boca.execution.executors import Engine, Outcome
from boca.execution.executors.base import checked
from boca.study.optimizer import Optimizer
from boca.study.storage import Lease

Timeout: TypeAlias = float | Callable[[float], float]
"""Seconds after which an evaluation has failed, or a function from its expected cost to them.

Where cost is measured, it is expected in seconds, and a function is not asked before there is a result to learn from.
"""

_RENEWAL = 10.0  # seconds between two renewals of the leases, and between two looks for dead drivers
_LOOK = 1.0  # seconds between two looks at what other drivers do

log = logging.getLogger("boca")


class Driver:
    """One run of a study."""

    def __init__(
        self,
        optimizer: Optimizer,
        engine: Engine,
        *,
        after: Callable[[Trial, BaseException | None], bool],
        timeout: Timeout | None = None,
        max_retries: int = 2,
    ) -> None:
        """Drive with this engine; `after` sees every finished trial, what made it fail, and says whether to stop."""
        self._optimizer = optimizer
        self._engine = engine
        self._after = after
        self._timeout = timeout
        self._max_retries = max_retries
        self._lease = Lease()
        self._out: dict[Future[Outcome], Trial] = {}
        self._waiting: list[Trial] = []
        self._is_stopping = False
        self.was_interrupted = False

    def run(self) -> None:
        """Return when nothing affordable is left and nothing is running, or when it is to stop and nothing runs.

        The first Ctrl-C stops asking; the second raises KeyboardInterrupt, and what runs is killed and left to whoever
        drives the study next.
        """
        storage = self._optimizer.storage
        try:
            with self._renewing(), self._listening():
                self._run()
            self._engine.close()
        except SystemExit:
            self._engine.close(now=True)
            storage.renew(replace(self._lease, seconds=0.0))  # an objective that ends the process uses up an attempt
            raise
        except BaseException:
            self._engine.close(now=True)
            storage.release(self._lease)
            raise

    def stop(self) -> None:
        """Ask for nothing more."""
        self._is_stopping = True

    def _run(self) -> None:
        looked = -_RENEWAL
        while True:
            free = self._engine.slots - len(self._out) - len(self._waiting)
            if free > 0 and time.monotonic() - looked >= _RENEWAL and not self._is_stopping:
                for trial in self._optimizer.running:  # before it is taken over, which uses up an attempt
                    self._limit(trial)
                taken = self._optimizer.take_over(self._lease, max_retries=self._max_retries, limit=free)
                self._waiting += taken
                looked = time.monotonic() if len(taken) < free else -_RENEWAL  # there may be more
            self._fill()
            if self._out:
                done, _ = wait(self._out, timeout=_LOOK, return_when=FIRST_COMPLETED)
                self._settle({future: trial for future, trial in self._out.items() if future in done})
            elif self._is_stopping or not self._optimizer.storage.is_held_by_others(self._lease):
                self._optimizer.storage.release(self._lease)  # of trials that wait to be tried again
                return
            else:  # the end of their trials may leave money, and their death may leave work
                time.sleep(_LOOK)
                looked = -_RENEWAL

    def _fill(self) -> None:
        """Give every free worker a trial at once."""
        while len(self._out) < self._engine.slots and not self._is_stopping:
            ask = self._optimizer.ask
            trial = self._waiting.pop(0) if self._waiting else ask(lease=self._lease, check=self._limit)
            if trial is None:
                return
            self._out[self._engine.submit(dict(trial.x), dict(trial.z), timeout=self._limit(trial))] = trial

    def _limit(self, trial: Trial) -> float | None:
        """Return the seconds that a trial may take; an error here must come before it is claimed.

        What it is expected to cost is asked now: before the first result a trial has a share of the target for it.
        """
        if not callable(self._timeout):
            return checked(self._timeout)
        problem = self._optimizer.problem
        costs = cost_models.costs(problem, self._optimizer.storage.read().history)
        is_known = problem.has_declared_cost or isinstance(costs, cost_models.Learned)
        return checked(self._timeout(costs.of(trial.z))) if is_known else None

    def _settle(self, done: dict[Future[Outcome], Trial]) -> None:
        """Store what came of trials, then say so: what hears of one may end the run, and all of them are paid for."""
        stored = []
        for future, trial in done.items():
            del self._out[future]
            finished = self._stored(trial, future.result())
            if finished is not None:
                stored.append((finished, future.result().exception))
        for finished, exception in stored:
            if self._after(finished, exception):
                self._is_stopping = True

    def _stored(self, trial: Trial, outcome: Outcome) -> Trial | None:
        """Store what came of a trial and return it; None where its worker died and it is tried again."""
        try:
            if outcome.died and trial.attempt < self._max_retries:
                log.warning("Trial %d is tried again: %s", trial.number, outcome.error)
                spent = replace(trial, overhead=trial.overhead + outcome.seconds)
                self._waiting.append(self._optimizer.storage.retry(spent, self._lease))
                return None
            if outcome.value is not None:
                output = outcome.output or None
                return self._optimizer.tell(trial, outcome.value, seconds=outcome.seconds, output=output)
            reason, _, story = (outcome.error or "There was no result.").partition("\n")
            output = "\n".join(part for part in (outcome.output, story) if part) or None
            return self._optimizer.fail(trial, reason, seconds=outcome.seconds, output=output)
        except InvalidTrial as error:  # somebody took this driver for dead: the trial is theirs now
            log.warning("The result of trial %d is dropped: %s", trial.number, error)
            return None

    @contextmanager
    def _renewing(self) -> Iterator[None]:
        """Keep the leases alive in a thread, whatever the driver is busy with."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(_RENEWAL):
                try:
                    self._optimizer.storage.renew(self._lease)
                except StorageFailed as error:  # the driver itself will meet it, or it is gone by the next time
                    log.warning("The leases were not renewed: %s", error)

        thread = threading.Thread(target=renew, name="boca leases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=_LOOK)  # it may be waiting for a server that is down

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Take the first Ctrl-C as a wish, in the main thread, where signals are heard."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_interrupt(number: int, frame: FrameType | None) -> None:
            if self.was_interrupted:
                raise KeyboardInterrupt
            self.was_interrupted = self._is_stopping = True
            log.warning("Stopping after what runs. Ctrl-C again stops at once.")

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
