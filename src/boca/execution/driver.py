"""The driver: it keeps the workers of one engine busy with the trials of one study until the budget is spent.

Only the driver touches the storage; workers get a point and return an outcome.  Its trials carry a lease, which a
thread renews.  If the driver dies, the lease ends and the next driver takes over its trials.
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
from boca.domain.errors import InvalidInput, InvalidTrial, StorageFailed
from boca.domain.trial import Trial
from boca.execution.executors import Engine, Outcome
from boca.execution.executors.base import checked_timeout
from boca.study.optimizer import Optimizer
from boca.study.storage import Lease

Timeout: TypeAlias = float | Callable[[float], float]
"""Seconds after which an evaluation has failed, or a function from its expected cost to seconds.

If cost is measured, the expected cost is in seconds, and the function is first called after the first result.
"""

_RENEWAL_SECONDS = 10.0  # between two renewals of the leases, which last a minute, and two searches for dead drivers
_POLL_SECONDS = 1.0  # between two checks of what other drivers do

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
        """Drive a study with an engine.

        Args:
            optimizer: The study.
            engine: What evaluates the trials.
            after: Called with each finished trial and the exception that made it fail; returns whether to stop.
            timeout: Seconds after which an evaluation has failed, or a function from its expected cost to seconds.
            max_retries: How often an evaluation is tried again after its process died.
        """
        self._optimizer = optimizer
        self._engine = engine
        self._after = after
        self._timeout = timeout
        self._max_retries = max_retries
        self._lease = Lease()
        self._running: dict[Future[Outcome], Trial] = {}
        self._to_run: list[Trial] = []  # trials taken over, or to be tried again: they come before new ones
        self._is_stopping = False
        self.was_interrupted = False

    def run(self) -> None:
        """Return when no trial is running, and none is affordable or the run is to stop.

        The first Ctrl-C stops asking for trials.  The second raises KeyboardInterrupt; running trials are killed and
        left to the next run.
        """
        storage = self._optimizer.storage
        try:
            with self._leases_renewed(), self._interrupts_handled():
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
        """Ask for no more trials."""
        self._is_stopping = True

    def _run(self) -> None:
        last_search = -_RENEWAL_SECONDS
        while True:
            free = self._engine.slots - len(self._running) - len(self._to_run)
            if free > 0 and time.monotonic() - last_search >= _RENEWAL_SECONDS and not self._is_stopping:
                is_all = self._take_over(free)
                last_search = time.monotonic() if is_all else -_RENEWAL_SECONDS
            self._fill()
            if self._running:
                done, _ = wait(self._running, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
                self._finish({future: trial for future, trial in self._running.items() if future in done})
            elif self._is_stopping or not self._optimizer.storage.is_held_by_others(self._lease):
                self._optimizer.storage.release(self._lease)  # trials to be tried again, if the run is to stop
                return
            else:  # the trials of other drivers may leave budget when they end, and work if their driver dies
                time.sleep(_POLL_SECONDS)
                last_search = -_RENEWAL_SECONDS

    def _take_over(self, free: int) -> bool:
        """Take over the trials of dead drivers, one per free worker; return whether that was all of them."""
        for trial in self._optimizer.running:  # a timeout that raises must do so before an attempt is used up
            self._timeout_of(trial)
        taken = self._optimizer.take_over(self._lease, max_retries=self._max_retries, limit=free)
        self._to_run += taken
        return len(taken) < free

    def _fill(self) -> None:
        """Give every free worker a trial."""
        while len(self._running) < self._engine.slots and not self._is_stopping:
            ask = self._optimizer.ask
            trial = self._to_run.pop(0) if self._to_run else ask(lease=self._lease, check=self._timeout_of)
            if trial is None:
                return
            timeout = self._timeout_of(trial)
            self._running[self._engine.submit(dict(trial.x), dict(trial.z), timeout=timeout)] = trial

    def _timeout_of(self, trial: Trial) -> float | None:
        """Return the timeout of a trial in seconds; an error here must come before the trial is claimed.

        A learned cost is the one expected now: `trial.cost` may be a share of the target, from before the first result.
        """
        if not callable(self._timeout):
            return checked_timeout(self._timeout)
        problem = self._optimizer.problem
        costs = cost_models.costs(problem, self._optimizer.storage.read().history)
        is_known = problem.has_declared_cost or isinstance(costs, cost_models.Learned)
        return checked_timeout(self._timeout(costs.of(trial.z))) if is_known else None

    def _finish(self, done: dict[Future[Outcome], Trial]) -> None:
        """Store all outcomes before the first callback is called, since a callback may end the run."""
        stored = []
        for future, trial in done.items():
            del self._running[future]
            finished = self._store(trial, future.result())
            if finished is not None:
                stored.append((finished, future.result().exception))
        for finished, exception in stored:
            if self._after(finished, exception):
                self._is_stopping = True

    def _store(self, trial: Trial, outcome: Outcome) -> Trial | None:
        """Store the outcome of a trial and return the trial; None if it has none, or is to be tried again."""
        try:
            if outcome.died and trial.attempt < self._max_retries:
                retry = f"retry {trial.attempt + 1} of {self._max_retries}"
                log.warning("Trial %d is tried again (%s): %s", trial.number, retry, outcome.error)
                died = replace(trial, overhead=trial.overhead + outcome.seconds)
                self._to_run.append(self._optimizer.storage.retry(died, self._lease))
                return None
            if outcome.value is not None:
                output = outcome.output or None
                try:
                    self._optimizer.problem.returned(outcome.value, trial.planned)
                except InvalidInput as error:
                    return self._optimizer.fail(trial, str(error), seconds=outcome.seconds, output=output)
                return self._optimizer.tell(trial, outcome.value, seconds=outcome.seconds, output=output)
            reason, _, traceback = (outcome.error or "The evaluation has no result.").partition("\n")
            output = "\n".join(part for part in (outcome.output, traceback) if part) or None
            return self._optimizer.fail(trial, reason, seconds=outcome.seconds, output=output)
        except InvalidTrial as error:  # another driver took this one for dead and has the trial now
            log.warning("The result of trial %d is dropped: %s", trial.number, error)
            return None

    @contextmanager
    def _leases_renewed(self) -> Iterator[None]:
        """Renew the leases in a thread, also while a strategy or a callback runs."""
        over = threading.Event()

        def renew() -> None:
            while not over.wait(_RENEWAL_SECONDS):
                try:
                    self._optimizer.storage.renew(self._lease)
                except StorageFailed as error:  # the driver will see it too, unless it is gone by the next renewal
                    log.warning("The leases of the running trials were not renewed: %s", error)

        thread = threading.Thread(target=renew, name="boca leases", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=_POLL_SECONDS)  # it may be waiting for a server that is down

    @contextmanager
    def _interrupts_handled(self) -> Iterator[None]:
        """Let the first Ctrl-C stop the run gently; only the main thread receives signals."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_interrupt(number: int, frame: FrameType | None) -> None:
            if self.was_interrupted:
                raise KeyboardInterrupt
            self.was_interrupted = self._is_stopping = True
            log.warning("Stopping after the running trials. Press Ctrl-C again to stop at once.")

        before = signal.signal(signal.SIGINT, on_interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
