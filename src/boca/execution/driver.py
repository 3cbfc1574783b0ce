"""The driver: it keeps the workers of one engine busy with the trials of one study until the budget is spent.

Only the driver touches the storage; workers get a point and return an outcome.  Its trials carry a lease, which a
thread renews.  If the driver dies, the lease ends and the next driver takes over its trials.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType
from typing import TypeAlias

from boca.accounting import cost as cost_models
from boca.domain.errors import BocaError, InvalidInput, InvalidTrial, StorageFailed, Terminated
from boca.domain.trial import Trial
from boca.execution.executors import Engine, Outcome
from boca.execution.executors.base import checked_timeout
from boca.execution.executors.remote import raised
from boca.execution.runs import Runs
from boca.execution.timing import Timing
from boca.study.optimizer import Optimizer
from boca.study.storage import Lease, Owner
from boca.study.storage.transitions import ended_here

Timeout: TypeAlias = float | Callable[[float], float]
"""Seconds after which an evaluation has failed, or a function from its expected cost to seconds.

If cost is measured, the expected cost is in seconds, and the function is first called after the first result.
"""

_RENEWAL_SECONDS = 10.0  # between two renewals of the leases, which last a minute, and two searches for dead drivers
_POLL_SECONDS = 1.0  # between two checks of what other drivers do
_SIGNAL_SECONDS = 0.1  # in which a signal that was sent to a worker and to its driver has reached both
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)  # seconds between tries to start a worker on a machine that lacks something
_STOPS = ("SIGTERM", "SIGHUP")  # of service managers and schedulers, and of a terminal that was closed

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
        grace: float = 0.0,
        has_workers: bool = False,
        runs: Runs | None = None,
    ) -> None:
        """Drive a study with an engine.

        Args:
            optimizer: The study.
            engine: What evaluates the trials.
            after: Called with each finished trial and the exception that made it fail; returns whether to stop.
            timeout: Seconds after which an evaluation has failed, or a function from its expected cost to seconds.
            max_retries: How often an evaluation is tried again after its process died.
            grace: Seconds for running trials to finish after SIGTERM or SIGHUP.
            has_workers: Whether trials run in other processes, which end with this one.
            runs: What takes the reports of evaluations that pass through steps; None if the objective makes none.
        """
        self._optimizer = optimizer
        self._engine = engine
        self._after = after
        self._timeout = timeout
        self._max_retries = max_retries
        self._grace = grace
        self._has_workers = has_workers
        self._runs = runs
        self._lease = Lease(owner=replace(Owner.me(), evaluates=not has_workers))
        self._running: dict[Future[Outcome], Trial] = {}
        self._to_run: list[Trial] = []  # trials taken over, or to be tried again: they come before new ones
        self._ahead = optimizer.ahead()
        self._timing = Timing()
        self._taken_at: dict[int, int] = {}  # number -> the attempt in which it was taken over
        self._is_stopping = False
        self._is_submitting = False
        self._signal: signal.Signals | None = None  # that ends this run
        self._leaves_at = 0.0  # when trials that still run are handed back
        self._lacks = 0  # tries in sequence that found the machine lacking something
        self._lacking = ""  # what the last one of them found
        self._rests_until = 0.0
        self.was_interrupted = False

    def run(self) -> None:
        """Return when no trial is running, and none is affordable or the run is to stop.

        The first Ctrl-C stops asking for trials.  The second raises KeyboardInterrupt; running trials are killed and
        left to the next run.  SIGTERM and SIGHUP leave them so after `grace` seconds, and raise Terminated.
        """
        storage = self._optimizer.storage
        try:
            with self._leases_renewed(), self._signals_handled():
                self._run()
            self._engine.close()
        except BaseException as error:
            self._engine.close(now=True)
            if self._is_submitting and isinstance(error, SystemExit) and not isinstance(error, Terminated):
                storage.renew(replace(self._lease, seconds=0.0))  # the objective ended the process: it was an attempt
            else:
                storage.release(self._lease)
            raise
        finally:
            ended_here.add(self._lease.driver)

    def stop(self) -> None:
        """Ask for no more trials."""
        self._is_stopping = True

    def _run(self) -> None:
        last_search = -_RENEWAL_SECONDS
        while True:
            if self._signal is not None and (not self._running or time.monotonic() >= self._leaves_at):
                raise Terminated(self._signal)
            self._finish(self._ended())
            free = self._engine.slots - len(self._running) - len(self._to_run)
            if free > 0 and time.monotonic() - last_search >= _RENEWAL_SECONDS and not self._is_stopping:
                is_all = self._take_over(free)
                last_search = time.monotonic() if is_all else -_RENEWAL_SECONDS
            has_begun = self._fill()
            if self._running:
                if not self._prepare():
                    self._finish(self._done())
            elif has_begun:
                continue  # what has begun has ended too
            elif self._to_run and not self._is_stopping:
                self._refuse_to_wait_forever()
                time.sleep(_SIGNAL_SECONDS)  # the machine lacks something
            elif self._is_stopping or not self._optimizer.storage.is_held_by_others(self._lease):
                self._optimizer.storage.release(self._lease)  # trials to be tried again, if the run is to stop
                return
            else:  # the trials of other drivers may leave budget when they end, and work if their driver dies
                time.sleep(_POLL_SECONDS)
                last_search = -_RENEWAL_SECONDS

    def _done(self) -> dict[Future[Outcome], Trial]:
        """Return the evaluations that have ended, after a second at most; a signal is noticed sooner."""
        deadline = time.monotonic() + _POLL_SECONDS
        while True:
            wait(self._running, timeout=_SIGNAL_SECONDS, return_when=FIRST_COMPLETED)
            done = self._ended()
            if done or self._signal is not None or time.monotonic() >= deadline:
                return done

    def _ended(self) -> dict[Future[Outcome], Trial]:
        """Return the evaluations that have ended by now."""
        return {future: trial for future, trial in self._running.items() if future.done()}

    def _take_over(self, free: int) -> bool:
        """Take over the trials of dead drivers, one per free worker; return whether that was all of them."""
        for trial in self._optimizer.running:  # a timeout that raises must do so before an attempt is used up
            self._timeout_of(trial)
        taken = self._optimizer.take_over(self._lease, max_retries=self._max_retries, limit=free)
        self._to_run += taken
        for trial in taken:
            log.info("%s", self._taken_from(trial))
        if self._has_workers:  # attempts that ended with a driver do not count
            self._taken_at.update({trial.number: trial.attempt for trial in taken})
        return len(taken) < free

    def _taken_from(self, trial: Trial) -> str:
        """Return which trial was taken over, and from what."""
        before = self._optimizer.storage.attempts(trial.number)
        words = f"Trial {trial.number} is taken over (attempt {trial.attempt + 1})"
        return (
            words if not before else f"{words}: process {before[-1].process} on {before[-1].host}, {before[-1].ending}"
        )

    def _fill(self) -> bool:
        """Give every worker that is free now a trial, and store between two of them what others have finished.

        Those that were chosen ahead come first; the others are chosen together.  Workers that become free meanwhile
        have to wait for the next call.  Return whether any trial has begun.
        """
        free = self._engine.slots - len(self._running)
        if not self._timing.wanted(self._engine.slots):
            self._ahead.clear()
        new = self._optimizer.ask_each(max(free - len(self._to_run), 0), lease=self._lease, check=self._timeout_of)
        for count in range(free):
            if count:
                self._finish(self._ended())
            has_room = len(self._running) < self._engine.slots and time.monotonic() >= self._rests_until
            trial = self._next(new) if has_room and not self._is_stopping else None
            if trial is None:
                return count > 0
            timeout = self._timeout_of(trial)
            if self._runs is not None and not self._runs.has_checkpoint(trial):
                trial = self._from_scratch(trial)
            self._is_submitting = True
            future = self._submitted(trial, timeout)
            self._is_submitting = False
            self._running[future] = trial
        return free > 0

    def _submitted(self, trial: Trial, timeout: float | None) -> Future[Outcome]:
        x, z = dict(trial.x), dict(trial.planned)
        if self._runs is None:
            return self._engine.submit(x, z, timeout=timeout)
        begun = self._runs.begin(trial)
        if self._runs.is_over(trial):
            ended: Future[Outcome] = Future()
            ended.set_result(Outcome(None, None, "", 0.0, ended=True))
            return ended
        return self._engine.submit(x, z, timeout=timeout, run=begun)

    def _from_scratch(self, trial: Trial) -> Trial:
        """Return a trial whose checkpoint is gone, to begin from scratch."""
        log.warning("Trial %d begins from scratch: its checkpoint of step %d is gone.", trial.number, trial.start)
        self._optimizer.drop(trial.number)
        return self._optimizer.storage.retry(trial, self._lease)

    def _next(self, new: Iterator[Trial]) -> Trial | None:
        """Return the next trial to run: those taken over and those to be tried again come first."""
        if self._to_run:
            return self._to_run.pop(0)
        if (trial := self._ahead.take(self._lease, self._timeout_of)) is not None:
            return trial
        began = time.perf_counter()
        trial = next(new, None)
        if trial is not None:
            self._timing.choice.add(time.perf_counter() - began)
        return trial

    def _prepare(self) -> bool:
        """Choose a trial for a worker that is still busy if that spares it a wait; return whether one was chosen."""
        wanted = self._timing.wanted(self._engine.slots)
        if len(self._ahead) >= wanted or self._is_stopping or self._to_run or self._ended():
            return False
        began = time.perf_counter()
        has_one = self._ahead.prepare(wanted)
        if has_one:
            self._timing.choice.add(time.perf_counter() - began)
        return has_one

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
            if future.result().error is None:
                self._timing.trial.add(future.result().seconds)
            finished = self._store(trial, future.result())
            if finished is not None:
                if self._runs is not None:
                    self._runs.end(finished)
                stored.append((finished, raised(future.result())))
        for finished, exception in stored:
            if self._after(finished, exception):
                self._is_stopping = True

    def _store(self, trial: Trial, outcome: Outcome) -> Trial | None:
        """Store the outcome of a trial and return the trial; None if it has none, or is to be tried again."""
        if outcome.lacking:
            self._wait_for_machine(trial, outcome)
            return None
        self._lacks = 0
        if outcome.value is None and self._is_of_the_stop(outcome):
            return None  # it is handed back with the others
        try:
            if outcome.died and trial.attempt - self._taken_at.get(trial.number, 0) < self._max_retries:
                deaths = trial.attempt - self._taken_at.get(trial.number, 0) + 1
                retry = f"retry {deaths} of {self._max_retries}"
                log.warning("Trial %d is tried again (%s): %s", trial.number, retry, _first_line(outcome))
                died = replace(trial, overhead=trial.overhead + outcome.seconds)
                self._to_run.append(self._optimizer.storage.retry(died, self._lease))
                return None
            where = outcome.worker or None
            if self._runs is not None:
                if outcome.apart:
                    self._runs.note_apart()
                if outcome.lost:
                    self._to_run.append(self._from_scratch(trial))
                    return None
                self._runs.deliver(trial, outcome.told)
                if self._runs.is_left(trial):
                    return None  # it is handed back with the others, and goes on from its checkpoint
            if outcome.ended:
                output = outcome.output or None
                return self._optimizer.tell(trial, None, seconds=outcome.seconds, output=output, worker=where)
            if outcome.value is not None:
                output = outcome.output or None
                try:
                    self._optimizer.problem.returned(outcome.value, trial.planned)
                except InvalidInput as error:
                    return self._optimizer.fail(trial, str(error), seconds=outcome.seconds, output=output, worker=where)
                return self._optimizer.tell(trial, outcome.value, seconds=outcome.seconds, output=output, worker=where)
            reason, _, traceback = (outcome.error or "The evaluation has no result.").partition("\n")
            output = "\n".join(part for part in (outcome.output, traceback) if part) or None
            return self._optimizer.fail(trial, reason, seconds=outcome.seconds, output=output, worker=where)
        except InvalidTrial as error:  # another driver took this one for dead and has the trial now
            log.warning("The result of trial %d is dropped: %s", trial.number, error)
            return None

    def _is_of_the_stop(self, outcome: Outcome) -> bool:
        """Whether an evaluation ended because everything is to stop: service managers signal the workers too."""
        was_killed = outcome.died or any(f"({name})" in _first_line(outcome) for name in _STOPS)
        if was_killed and self._has_workers and self._signal is None:
            time.sleep(_SIGNAL_SECONDS)  # the worker may have heard of it first
        return was_killed and self._signal is not None

    def _wait_for_machine(self, trial: Trial, outcome: Outcome) -> None:
        """Keep a trial that could not begin for want of processes, files or memory, as if it had not been tried."""
        self._to_run.insert(0, trial)
        now = time.monotonic()
        if now < self._rests_until or self._signal is not None:
            return  # one of several that failed together
        pause = _PAUSES[min(self._lacks, len(_PAUSES) - 1)]
        self._lacks += 1
        self._lacking = outcome.error or ""
        self._rests_until = now + pause
        log.warning("Trial %d waits %g s for a worker: %s", trial.number, pause, _first_line(outcome))

    def _refuse_to_wait_forever(self) -> None:
        if self._lacks > len(_PAUSES):
            raise BocaError(
                f"No worker could be started in {self._lacks} tries: {self._lacking}\nThe trials that were to run are "
                "not charged and come first in the next run. Remove the cause, then run again."
            )

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
    def _signals_handled(self) -> Iterator[None]:
        """Let the first Ctrl-C stop the run gently, and SIGTERM and SIGHUP after `grace` seconds.

        Only the main thread receives signals.  SIGTERM and SIGHUP are left to a handler of the user's, if there is one;
        `nohup` ignores SIGHUP.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def on_interrupt(number: int, frame: FrameType | None) -> None:
            if self.was_interrupted:
                raise KeyboardInterrupt
            self.was_interrupted = self._is_stopping = True
            log.warning("Stopping after the running trials. Press Ctrl-C again to stop at once.")

        handlers: dict[int, Callable[[int, FrameType | None], None]] = {signal.SIGINT: on_interrupt}
        clock: list[threading.Timer] = []
        for number in (getattr(signal, name) for name in _STOPS if hasattr(signal, name)):
            if _is_default(signal.getsignal(number)):
                handlers[number] = lambda number, frame: self._terminate(number, clock)
        with _handled(handlers):
            try:
                yield
            finally:
                for timer in clock:
                    timer.cancel()

    def _terminate(self, number: int, clock: list[threading.Timer]) -> None:
        """Begin to stop; at once if there is no grace and the objective runs in this thread, and the second time."""
        runs_here = self._is_submitting and not self._has_workers
        if self._signal is not None or (runs_here and not self._grace):
            raise Terminated(number)
        self._signal = signal.Signals(number)
        self._is_stopping = True
        if self._runs is not None:
            self._runs.leave()
        self._leaves_at = time.monotonic() + self._grace
        how = f"in {self._grace:g} s, or when the running trials have finished" if self._grace else "now"
        log.warning("%s: stopping %s. The next run takes up what is unfinished.", self._signal.name, how)
        if runs_here:  # nothing but another signal reaches the thread that evaluates
            main = threading.main_thread().ident
            assert main is not None
            clock.append(threading.Timer(self._grace, signal.pthread_kill, (main, number)))
            clock[-1].daemon = True
            clock[-1].start()


def _is_default(handler: object) -> bool:
    """Whether the user did not choose this handler; `ray.init` leaves one that only ends the process."""
    return handler is signal.SIG_DFL or getattr(handler, "__module__", "").partition(".")[0] == "ray"


@contextmanager
def _handled(handlers: Mapping[int, Callable[[int, FrameType | None], None]]) -> Iterator[None]:
    """Handle signals, and put the handlers back that were there."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _first_line(outcome: Outcome) -> str:
    return (outcome.error or "").partition("\n")[0]
