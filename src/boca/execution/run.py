"""Run an objective until its budget is spent: `maximize` and `minimize`."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from boca.domain.budget import Limit
from boca.domain.errors import BocaError, InvalidInput, RunStopped, Terminated
from boca.domain.other_tools import names_ours
from boca.domain.outcomes import OutcomeLimit
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import Space
from boca.domain.trial import History
from boca.execution import lines
from boca.execution.checkpoints import Checkpoints, default_place
from boca.execution.driver import Driver, Timeout
from boca.execution.executors import engine
from boca.execution.options import Callback, OnError, RunOptions, StudyOptions
from boca.execution.progress import with_progress
from boca.execution.result import Result, result_of
from boca.execution.runs import Runs, takes_run
from boca.execution.stopping import StoppingRule
from boca.execution.watchdog import Watchdog
from boca.strategies import Strategy
from boca.study.optimizer import Optimizer, Told

log = logging.getLogger("boca")


@names_ours
def maximize(
    function: Callable[..., Told],
    /,
    space: Space,
    fidelity: Space | None = None,
    *,
    budget: Limit | float | None = None,
    cost: CostFunction | None = None,
    target: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    first: Sequence[Mapping[str, Any]] = (),
    subject_to: Mapping[str, OutcomeLimit] | None = None,
    objective: str | None = None,
    strategy: Strategy | None = None,
    seed: int | None = None,
    stop: Callable[[History], bool] | StoppingRule | None = None,
    storage: str | None = None,
    name: str | None = None,
    allow_change: bool = False,
    executor: object = None,
    timeout: Timeout | None = None,
    max_retries: int = 2,
    grace: float = 0.0,
    workers: int | None = None,
    on_error: OnError = "fail",
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    keep_checkpoints: int | None = None,
) -> Result:
    """Maximize function(x, z) at z = target within a budget; without fidelities, function(x).

    A trial fails if the function raises, or returns neither a finite number nor a mapping with one.  It is charged, and
    the run continues.  Ctrl-C stops the run after the running trials; a second Ctrl-C stops it at once.

    Args:
        function: A function of x and z, which are dicts by name; of x alone without fidelities.  With a third argument
            it gets its `boca.Run`, to report the steps that it passes through.
        space: The parameters to search.
        fidelity: The fidelities, which make an evaluation cheaper; None if there are none.
        budget: What the run may spend: `boca.targets(30)`, `boca.seconds(600)`, or a number in cost units.  None needs
            `stop`.
        cost: The cost of an evaluation as a function of z, in any unit; None measures it in seconds and learns it.
        target: The fidelities that count, by name; a name left out has its upper bound.
        deterministic: Whether the same x and z always give the same value.  Then nothing is run twice, and nothing
            worse than the best result at the target is recommended.
        first: Points to begin with; a name left out takes the middle of its range, or the first option.
        subject_to: Limits on further outcomes, by name, such as `{"latency": boca.AtMost(20.0)}`.  The function then
            returns a mapping, `{"loss": ..., "latency": ...}`.
        objective: The key of that mapping that is optimized; None if it is the only one without a limit.  Other keys
            are notes.
        strategy: How points are chosen; `boca.Boca()` by default.
        seed: The seed of all random choices; None draws one, or uses that of the stored study.
        stop: A function of the history, called after every trial; the run ends if it returns true.  If a resumed study
            has results, it is called before the first trial too.
        storage: The URL of a database, such as `sqlite:///study.db`; None keeps the study in memory.
        name: The name of the study in the storage, "study" if none is given; if it exists there, the run resumes it.
        allow_change: Whether a resumed study may have a larger budget, or new strategy fields of this version.
        executor: Where trials are evaluated: None for this process, a number of worker processes, an executor of
            `concurrent.futures`, a Dask client, or the module `ray`.
        timeout: Seconds after which an evaluation has failed, or a function from its expected cost to seconds.
        max_retries: How often an evaluation is tried again after its process died.
        grace: Seconds for running trials to finish after SIGTERM or SIGHUP; then they are left to the next run, without
            a retry, and the process exits with status 143.
        workers: How many trials run at once in the executor; by default as many as it has workers.
        on_error: Whether a failed trial lets the run continue ("fail"), or ends it with `ObjectiveFailed` ("raise").
        callbacks: A function of the optimizer and the trial that has just finished, or a list of them; see
            `boca.callbacks`.
        progress: Whether to show a line with the progress; None shows it in a terminal and in a notebook.
        checkpoints: The folder for the checkpoints of evaluations that pass through steps; by default beside the SQLite
            file, `boca-checkpoints` in the current folder for a server, and a temporary folder without a storage.
        keep_checkpoints: How many checkpoints of trials that have ended are kept at most; None keeps all that a
            decision can use.
    """
    problem = Problem(
        space,
        fidelity,
        cost=cost,
        target=target,
        direction="maximize",
        deterministic=deterministic,
        first=first,
        subject_to=subject_to,
        objective=objective,
    )
    study = StudyOptions(
        budget=budget, strategy=strategy, seed=seed, storage=storage, name=name, allow_change=allow_change
    )
    options = RunOptions(
        executor=executor,
        timeout=timeout,
        max_retries=max_retries,
        grace=grace,
        workers=workers,
        on_error=on_error,
        stop=stop,
        callbacks=callbacks,
        progress=progress,
        checkpoints=checkpoints,
        keep_checkpoints=keep_checkpoints,
    )
    return drive(function, problem, study, options)


@names_ours
def minimize(
    function: Callable[..., Told],
    /,
    space: Space,
    fidelity: Space | None = None,
    *,
    budget: Limit | float | None = None,
    cost: CostFunction | None = None,
    target: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    first: Sequence[Mapping[str, Any]] = (),
    subject_to: Mapping[str, OutcomeLimit] | None = None,
    objective: str | None = None,
    strategy: Strategy | None = None,
    seed: int | None = None,
    stop: Callable[[History], bool] | StoppingRule | None = None,
    storage: str | None = None,
    name: str | None = None,
    allow_change: bool = False,
    executor: object = None,
    timeout: Timeout | None = None,
    max_retries: int = 2,
    grace: float = 0.0,
    workers: int | None = None,
    on_error: OnError = "fail",
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool | None = None,
    checkpoints: str | os.PathLike[str] | None = None,
    keep_checkpoints: int | None = None,
) -> Result:
    """Minimize function(x, z) at z = target within a budget; without fidelities, function(x).

    The arguments are those of `maximize`.

    Args:
        function: A function of x and z; of x alone without fidelities.
        space: The parameters to search.
        fidelity: The fidelities, which make an evaluation cheaper.
        budget: What the run may spend.
        cost: The cost of an evaluation as a function of z; None measures it.
        target: The fidelities that count; a name left out has its upper bound.
        deterministic: Whether the same x and z always give the same value.
        first: Points to begin with; a name left out takes the middle of its range.
        subject_to: Limits on further outcomes, by name.
        objective: The key that is optimized, if the function returns more than one that has no limit.
        strategy: How points are chosen.
        seed: The seed of all random choices.
        stop: A function of the history; the run ends if it returns true.
        storage: The URL of a database; None keeps the study in memory.
        name: The name of the study in the storage.
        allow_change: Whether a resumed study may have a larger budget, or new strategy fields.
        executor: Where trials are evaluated.
        timeout: Seconds after which an evaluation has failed, or a function from its expected cost to seconds.
        max_retries: How often an evaluation is tried again after its process died.
        grace: Seconds for running trials to finish after SIGTERM or SIGHUP; then they are left to the next run, without
            a retry, and the process exits with status 143.
        workers: How many trials run at once in the executor; by default as many as it has workers.
        on_error: Whether a failed trial lets the run continue ("fail"), or ends it ("raise").
        callbacks: A function of the optimizer and the trial that has just finished, or a list of them.
        progress: Whether to show a line with the progress; None shows it in a terminal and in a notebook.
        checkpoints: The folder for the checkpoints of evaluations that pass through steps; by default beside the SQLite
            file, `boca-checkpoints` in the current folder for a server, and a temporary folder without a storage.
        keep_checkpoints: How many checkpoints of trials that have ended are kept at most; None keeps all that a
            decision can use.
    """
    problem = Problem(
        space,
        fidelity,
        cost=cost,
        target=target,
        direction="minimize",
        deterministic=deterministic,
        first=first,
        subject_to=subject_to,
        objective=objective,
    )
    study = StudyOptions(
        budget=budget, strategy=strategy, seed=seed, storage=storage, name=name, allow_change=allow_change
    )
    options = RunOptions(
        executor=executor,
        timeout=timeout,
        max_retries=max_retries,
        grace=grace,
        workers=workers,
        on_error=on_error,
        stop=stop,
        callbacks=callbacks,
        progress=progress,
        checkpoints=checkpoints,
        keep_checkpoints=keep_checkpoints,
    )
    return drive(function, problem, study, options)


def drive(
    objective: Callable[..., Told], problem: Problem, study: StudyOptions, options: RunOptions | None = None
) -> Result:
    """Run a problem until its budget is spent; see `maximize`."""
    options = RunOptions() if options is None else options
    if not callable(objective):
        raise InvalidInput(f"objective must be a function of x and z; got {objective!r}.")
    if study.budget is None and options.stop is None:
        raise InvalidInput("A run needs an end; got neither budget nor stop. Give budget=boca.targets(30), or stop=.")
    has_runs = takes_run(objective, problem)
    workers = engine(options.executor, objective, takes_fidelity=bool(problem.fidelity), workers=options.workers)
    try:
        optimizer = study.open(problem)
    except BaseException:
        workers.close(now=True)
        raise
    callbacks = with_progress(options.callback_list, options.progress)
    raises = options.on_error == "raise"
    watchdog = Watchdog(optimizer, callbacks, options.stop, raises=raises, result=lambda: result_of(optimizer))
    with closing(optimizer.storage), _runs(optimizer, study.storage, options, wanted=has_runs) as runs:
        try:
            driver = Driver(
                optimizer,
                workers,
                after=watchdog,
                timeout=options.timeout,
                max_retries=options.max_retries,
                grace=options.grace,
                has_workers=options.has_workers,
                runs=runs,
            )
            if words := lines.resumed(optimizer):
                log.info("%s", words)
            found = _run_to_the_end(optimizer, driver, watchdog)
        except BaseException as error:
            for sentence in _close_callbacks(callbacks, error):
                error.add_note(sentence)
            raise
        return found.with_warnings(_close_callbacks(callbacks))


@contextmanager
def _runs(optimizer: Optimizer, storage: str | None, options: RunOptions, *, wanted: bool) -> Iterator[Runs | None]:
    """Yield what takes the reports of runs, with the folder of their checkpoints; None if there are no runs."""
    if not wanted:
        yield None
        return
    place = default_place(storage) if options.checkpoints is None else Path(options.checkpoints)
    checkpoints = Checkpoints(optimizer, place, keep=options.keep_checkpoints)
    try:
        yield Runs(optimizer, checkpoints)
    finally:
        checkpoints.close()


def _run_to_the_end(optimizer: Optimizer, driver: Driver, watchdog: Watchdog) -> Result:
    """Run until the budget is spent, `stop` says so, Ctrl-C or an error; return what was found."""
    try:
        if watchdog.has_enough():
            log.info("No trial is run: stop returned true for the results that the study has.")
            driver.stop()
        driver.run()
    except KeyboardInterrupt:
        if not optimizer.history.complete:
            raise
        # results that were paid for are worth more than a traceback
        warning = "The run was interrupted: the trials that were running have no result."
        return result_of(optimizer, warning, interrupted=True)
    except Terminated as stopped:
        warning = f"{signal.Signals(stopped.signal).name} ended the run: the next one takes up the unfinished trials."
        stopped.result = result_of(optimizer, warning, interrupted=True)
        raise
    except RunStopped:
        raise
    except Exception as unexpected:
        what = str(unexpected) if isinstance(unexpected, BocaError) else f"{unexpected!r}."
        message = (
            f"The run stopped after {_trials(len(optimizer.history))}. {what} "
            "The .result of this error has everything found so far."
        )
        raise RunStopped(message, result_of(optimizer)) from unexpected
    if driver.was_interrupted:
        warning = "The run was interrupted: it finished the running trials and started no others."
        return result_of(optimizer, warning, interrupted=True)
    watchdog.raise_if_all_failed(at_least=1)
    return result_of(optimizer)


def _trials(count: int) -> str:
    return f"{count} trial{'' if count == 1 else 's'}"


def _close_callbacks(callbacks: Iterable[Callback], error: BaseException | None = None) -> list[str]:
    """Tell every callback that the run has ended, and the error if one ended it; return what failed in doing so."""
    wrong = []
    for callback in callbacks:
        for name, given in [*([] if error is None else [("fail", (error,))]), ("close", ())]:
            try:
                getattr(callback, name, lambda *_: None)(*given)
            except Exception as failure:  # it must cost neither the result nor the other callbacks
                wrong.append(f"{name}() of the callback {callback!r} raised {failure!r} at the end of the run.")
                log.warning("%s", wrong[-1])
    return wrong
