"""What happens after a trial: callbacks are called, and the run continues, stops, or gives up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from boca.domain.errors import ObjectiveFailed
from boca.domain.trial import History, Trial
from boca.domain.words import point
from boca.execution.executors.remote import is_mistake
from boca.execution.options import Callback
from boca.execution.stopping import StoppingRule
from boca.study.optimizer import Optimizer

GIVE_UP_AFTER_FAILURES = 5
"""Finished trials, all of them failed, after which the objective is at fault and not the points."""


class Watchdog:
    """Called by the driver after every trial; says whether to stop."""

    def __init__(
        self,
        optimizer: Optimizer,
        callbacks: Sequence[Callback],
        stop: Callable[[History], bool] | StoppingRule | None,
        *,
        raises: bool,
        result: Callable[[], object],
    ) -> None:
        """Watch a study; `raises` ends the run at the first failure, and `result` is called for the error's."""
        self._optimizer = optimizer
        self._callbacks = callbacks
        self._stop: Callable[[History], bool] | None
        if isinstance(stop, StoppingRule):
            self._stop = stop.of(optimizer.problem, optimizer.strategy)
        else:
            self._stop = stop
        self._raises = raises
        self._result = result
        self._error: BaseException | None = None
        self._has_seen_a_trial = False
        self._had_enough = False  # before the first trial

    def has_enough(self) -> bool:
        """Return whether to stop before the first trial, because `stop` accepts the results of a resumed study."""
        history = self._optimizer.history
        self._had_enough = self._stop is not None and bool(history.finished) and bool(self._stop(history))
        return self._had_enough

    def __call__(self, trial: Trial, error: BaseException | None) -> bool:
        """Return whether to stop after this trial."""
        self._error = error
        self._has_seen_a_trial = True
        for callback in self._callbacks:
            callback(self._optimizer, trial)
        if self._raises and trial.state == "failed":
            raise ObjectiveFailed(f"Trial {trial.number} failed {_where_and_why(trial)}", self._result()) from error
        if is_mistake(error) and not self._optimizer.storage.read().history.complete:
            raise ObjectiveFailed(_mistake(trial), self._result()) from error
        self.raise_if_all_failed(at_least=GIVE_UP_AFTER_FAILURES)
        return self._stop is not None and bool(self._stop(self._optimizer.history))

    def raise_if_all_failed(self, *, at_least: int) -> None:
        """Raise if `at_least` trials have finished and every one has failed."""
        failed = all_failed(self._optimizer.storage.read().history, at_least=at_least)
        if not failed:
            return
        what = "The only trial failed" if len(failed) == 1 else f"All {len(failed)} trials failed, the last one"
        message = f"{what} {_where_and_why(failed[-1])}"
        if not self._has_seen_a_trial:
            why = "stop returned true" if self._had_enough else "the budget does not cover another trial"
            message += (
                f"\nNo trial was run this time: {why}. Once the objective is fixed, give a larger budget with "
                "allow_change=True, or another name."
            )
        raise ObjectiveFailed(message, self._result()) from self._error


def all_failed(history: History, *, at_least: int) -> tuple[Trial, ...]:
    """Return the finished trials if there are `at_least`, and every one has failed; else none.

    Running trials do not matter.
    """
    finished = history.finished
    return finished if len(finished) >= at_least and not history.complete else ()


def _mistake(trial: Trial) -> str:
    """Return what to do about a mistake in the objective, with the names that it may read."""
    reads = f"x has the names {list(trial.x)}" + (f", z has {list(trial.z)}" if trial.z else "")
    return (
        f"Trial {trial.number} failed {_where_and_why(trial)}\nThis is a mistake in the objective, where {reads}. "
        "No trial is complete, so the run stopped here. Correct the objective and run it again."
    )


def _where_and_why(trial: Trial) -> str:
    where = ", ".join(words for words in (point(trial.x), point(trial.z)) if words)
    return f"at {where}: {trial.reason}"
