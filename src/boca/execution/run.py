"""Run an objective to the end of its budget: `maximize` and `minimize`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Literal, TypeAlias, get_args

from boca.domain.budget import Limit
from boca.domain.errors import BocaError, InvalidInput, ObjectiveFailed, RunStopped, one_of
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import Point, Space
from boca.domain.trial import History, Trial
from boca.execution.driver import Driver, Timeout
from boca.execution.executors import engine, refuse_wrong_timeout
from boca.strategies import Strategy
from boca.study.optimizer import Optimizer
from boca.study.recommendation import Recommendation

OnError: TypeAlias = Literal["fail", "raise"]
Callback: TypeAlias = Callable[[Optimizer, Trial], object]
"""Called with the optimiser and the trial that was finished; `boca.callbacks` says what else it may have."""

HOPELESS = 5  # trials that are finished, and none of them complete

log = logging.getLogger("boca")


@dataclass(frozen=True)
class Result:
    """What was found and what it cost."""

    x: Point | None
    """The best point observed at the target; None if nothing was."""
    value: float | None
    """What was observed there."""
    recommendation: Recommendation | None
    """The point to use: by the model, with its uncertainty."""
    history: History
    spent: float
    """In cost units; in seconds for a budget in seconds."""
    warnings: tuple[str, ...]
    interrupted: bool = False
    """Whether Ctrl-C ended the run before its end."""

    @property
    def study(self) -> Optimizer | None:
        """The study itself, from which pictures and a report are made; None for a result that was pickled."""
        return self.__dict__.get("_study")

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}  # cost functions and connections stay here

    def _repr_html_(self) -> str:
        from boca import render

        return render.result(self)


def maximize(
    objective: Callable[..., float],
    space: Space,
    fidelity: Space | None = None,
    *,
    budget: Limit | float | None = None,
    cost: CostFunction | None = None,
    target: Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    seed: int | None = None,
    stop: Callable[[History], bool] | None = None,
    storage: str | None = None,
    name: str = "study",
    allow_change: bool = False,
    executor: object = None,
    timeout: Timeout | None = None,
    max_retries: int = 2,
    on_error: OnError = "fail",
    callbacks: Callback | Sequence[Callback] = (),
) -> Result:
    """Maximise objective(x, z) at z = target within a budget; without fidelities, objective(x).

    A trial whose objective raises or returns something that is not a finite number fails, is charged, and the run
    goes on; with `on_error="raise"` it ends there.  `stop` sees the history after every trial, and before the first
    where a study goes on that has results, and ends the run when it returns true; `callbacks` are called with the
    optimiser and the trial.

    `storage` and `name` keep the study in a database and go on with one that is there: see `Optimizer`.  `executor`
    says where trials are evaluated: None, here; a number, in so many processes; or an executor of
    `concurrent.futures`, a Dask client, or the module `ray`.  `timeout`, in seconds or as a function of the expected
    cost, ends an evaluation that hangs; one whose process dies is tried again `max_retries` times.

    Ctrl-C stops after what is running; a second one stops at once.
    """
    return drive(
        objective,
        Problem(space, fidelity, cost=cost, target=target, direction="maximize"),
        budget=budget,
        strategy=strategy,
        seed=seed,
        stop=stop,
        storage=storage,
        name=name,
        allow_change=allow_change,
        executor=executor,
        timeout=timeout,
        max_retries=max_retries,
        on_error=on_error,
        callbacks=callbacks,
    )


def minimize(
    objective: Callable[..., float],
    space: Space,
    fidelity: Space | None = None,
    *,
    budget: Limit | float | None = None,
    cost: CostFunction | None = None,
    target: Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    seed: int | None = None,
    stop: Callable[[History], bool] | None = None,
    storage: str | None = None,
    name: str = "study",
    allow_change: bool = False,
    executor: object = None,
    timeout: Timeout | None = None,
    max_retries: int = 2,
    on_error: OnError = "fail",
    callbacks: Callback | Sequence[Callback] = (),
) -> Result:
    """Minimise objective(x, z) at z = target within a budget; see `maximize`."""
    return drive(
        objective,
        Problem(space, fidelity, cost=cost, target=target, direction="minimize"),
        budget=budget,
        strategy=strategy,
        seed=seed,
        stop=stop,
        storage=storage,
        name=name,
        allow_change=allow_change,
        executor=executor,
        timeout=timeout,
        max_retries=max_retries,
        on_error=on_error,
        callbacks=callbacks,
    )


def drive(
    objective: Callable[..., float],
    problem: Problem,
    *,
    budget: Limit | float | None,
    strategy: Strategy | None,
    seed: int | None,
    stop: Callable[[History], bool] | None,
    storage: str | None,
    name: str,
    allow_change: bool,
    executor: object,
    timeout: Timeout | None,
    max_retries: int,
    on_error: OnError,
    callbacks: Callback | Sequence[Callback],
) -> Result:
    """Run a problem to the end of its budget; see `maximize`."""
    if not callable(objective):
        raise InvalidInput(f"objective must be a function of x and z; got {objective!r}.")
    if budget is None and stop is None:
        raise InvalidInput("A run needs an end: give budget=boca.targets(30), or stop=, or both.")
    one_of(on_error, get_args(OnError), "on_error")
    if isinstance(max_retries, bool) or not isinstance(max_retries, Integral) or max_retries < 0:
        raise InvalidInput(f"max_retries must be a whole number, 0 or more; got {max_retries!r}.")
    if stop is not None and not callable(stop):
        raise InvalidInput(f"stop must be a function of the history, or None; got {stop!r}.")
    refuse_wrong_timeout(timeout, executor)
    heard = _checked(callbacks)
    workers = engine(executor, objective, takes_fidelity=bool(problem.fidelity))
    try:
        optimizer = Optimizer(
            problem, budget=budget, strategy=strategy, seed=seed, storage=storage, name=name, allow_change=allow_change
        )
    except BaseException:
        workers.close(now=True)
        raise
    judge = _Watchdog(optimizer, heard, stop, raises=on_error == "raise")
    with closing(optimizer.storage):
        try:
            driver = Driver(optimizer, workers, after=judge, timeout=timeout, max_retries=int(max_retries))
            found = _driven(optimizer, driver, judge)
        except BaseException as error:
            for sentence in _dismiss(heard, error):
                error.add_note(sentence)
            raise
        return _with_warnings(found, _dismiss(heard))


def _checked(callbacks: object) -> list[Callback]:
    """Return the callbacks as a list, or refuse what cannot be called with an optimiser and a trial."""
    found: list[Any] = list(callbacks) if isinstance(callbacks, Iterable) and not callable(callbacks) else [callbacks]
    for callback in found:
        if not callable(callback) or isinstance(callback, type):
            raise InvalidInput(
                "callbacks must be a function of the optimiser and the trial, an object that can be called so, such as "
                f"boca.callbacks.Log(), or a list of them; got {callback!r}."
            )
    return found


def _driven(optimizer: Optimizer, driver: Driver, judge: _Watchdog) -> Result:
    """Run to the end, whatever that is, and return what was found."""
    try:
        if judge.has_enough():
            log.info("Nothing is run: stop returned true for the results that are there.")
            driver.stop()
        driver.run()
    except KeyboardInterrupt:
        if not optimizer.history.complete:
            raise
        # what was paid for is worth more than a traceback
        return result(
            optimizer, "The run was interrupted; a trial that was running then has no result.", interrupted=True
        )
    except RunStopped:
        raise
    except Exception as unexpected:
        message = f"The run ended after {len(optimizer.history)} trials with {unexpected!r}; see .result for the rest."
        raise RunStopped(message, result(optimizer)) from unexpected
    if driver.was_interrupted:
        return result(
            optimizer, "The run was interrupted: it stopped asking, and waited for what was running.", interrupted=True
        )
    judge.give_up_if_hopeless(at_least=1)
    return result(optimizer)


def _dismiss(callbacks: Iterable[Callback], error: BaseException | None = None) -> list[str]:
    """Tell every callback that the run is over, and of the error if one ended it; return what went wrong with that."""
    wrong = []
    for callback in callbacks:
        for name, told in [*([] if error is None else [("fail", (error,))]), ("close", ())]:
            try:
                getattr(callback, name, lambda *_: None)(*told)
            except Exception as its_own:  # neither the result nor the other callbacks are to pay for it
                wrong.append(f"The callback {callback!r} raised {its_own!r} in {name}, when the run was over.")
                log.warning("%s", wrong[-1])
    return wrong


class _Watchdog:
    """What happens after a trial: the user hears of it, and the run goes on or not."""

    def __init__(
        self,
        optimizer: Optimizer,
        callbacks: Sequence[Callback],
        stop: Callable[[History], bool] | None,
        *,
        raises: bool,
    ) -> None:
        self._optimizer = optimizer
        self._callbacks = callbacks
        self._stop = stop
        self._raises = raises
        self._error: BaseException | None = None
        self._has_heard = False  # of a trial
        self._has_enough = False  # before the first one

    def has_enough(self) -> bool:
        """Return whether to stop before the first trial, where a study goes on that has results."""
        history = self._optimizer.history
        self._has_enough = self._stop is not None and bool(history.finished) and bool(self._stop(history))
        return self._has_enough

    def __call__(self, trial: Trial, error: BaseException | None) -> bool:
        """Return whether to stop."""
        self._error = error
        self._has_heard = True
        for callback in self._callbacks:
            callback(self._optimizer, trial)
        if self._raises and trial.state == "failed":
            raise ObjectiveFailed(_words("failed", trial), result(self._optimizer)) from error
        self.give_up_if_hopeless(at_least=HOPELESS)
        return self._stop is not None and bool(self._stop(self._optimizer.history))

    def give_up_if_hopeless(self, *, at_least: int) -> None:
        """Raise if so many trials all failed."""
        failed = hopeless(self._optimizer.storage.read().history, at_least=at_least)
        if failed:
            what = f"failed on every one of {len(failed)} trials, the last time"
            words = _words(what, failed[-1])
            if not self._has_heard:
                why = "stop returned true for them" if self._has_enough else "the budget does not buy another trial"
                words += (
                    f" Nothing was run this time, as {why}. If the objective is mended, give a wider budget with "
                    "allow_change=True, or another name."
                )
            raise ObjectiveFailed(words, result(self._optimizer)) from self._error


def hopeless(history: History, *, at_least: int) -> tuple[Trial, ...]:
    """Return the failed trials if they are so many and none is complete, whatever is still out; else none.

    Then the objective, not the point, is to blame.
    """
    failed = history.finished
    return failed if len(failed) >= at_least and not history.complete else ()


def _words(what: str, trial: Trial) -> str:
    return f"The objective {what} at x={trial.x!r}, z={trial.z!r} with: {trial.reason}"


def result(optimizer: Optimizer, *warnings: str, interrupted: bool = False) -> Result:
    """Return what a study has found so far."""
    history, best = optimizer.history, optimizer.best
    optimizer.storage.load_reasons()  # with the result they outlive the storage
    try:
        recommendation = optimizer.recommend()
    except Exception as error:  # a recommendation that fails must not cost the results
        words = str(error) if isinstance(error, BocaError) else repr(error)
        recommendation, warnings = None, (*warnings, f"There is no recommendation: {words}")
    found = Result(
        x=None if best is None else dict(best.x),
        value=None if best is None else best.value,
        recommendation=recommendation,
        history=history,
        spent=optimizer.spent,
        warnings=(*warnings, *optimizer.warnings),
        interrupted=interrupted,
    )
    found.__dict__["_study"] = optimizer  # no field: it is neither printed, compared nor copied
    return found


def _with_warnings(found: Result, warnings: Sequence[str]) -> Result:
    warned = replace(found, warnings=(*found.warnings, *warnings))
    warned.__dict__["_study"] = found.study
    return warned
