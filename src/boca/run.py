"""Run an objective to the end of its budget: `maximize` and `minimize`."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from boca.errors import BocaError, InvalidInput, ObjectiveFailed, RunStopped
from boca.optimizer import Optimizer
from boca.problem import Capital, CostFunction, Problem
from boca.recommendation import Recommendation
from boca.space import Point, Space
from boca.strategies import Strategy
from boca.trial import History, Trial

_HOPELESS = 5  # failures in a row from the first trial on


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


def maximize(
    objective: Callable[..., float],
    space: Space,
    fidelity: Space | None = None,
    *,
    budget: Capital | float | None = None,
    cost: CostFunction | None = None,
    target: Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    seed: int | None = None,
    stop: Callable[[History], bool] | None = None,
    storage: str | None = None,
    name: str | None = None,
) -> Result:
    """Maximise objective(x, z) at z = target within a budget; without fidelities, objective(x).

    A trial whose objective raises or returns something that is not a finite number fails, is charged, and the run
    goes on.  `stop` sees the history after every trial and ends the run when it returns true.
    """
    problem = Problem(space, fidelity, cost=cost, target=target, direction="maximize")
    return _run(objective, problem, budget, strategy, seed, stop, storage, name)


def minimize(
    objective: Callable[..., float],
    space: Space,
    fidelity: Space | None = None,
    *,
    budget: Capital | float | None = None,
    cost: CostFunction | None = None,
    target: Mapping[str, Any] | None = None,
    strategy: Strategy | None = None,
    seed: int | None = None,
    stop: Callable[[History], bool] | None = None,
    storage: str | None = None,
    name: str | None = None,
) -> Result:
    """Minimise objective(x, z) at z = target within a budget; see `maximize`."""
    problem = Problem(space, fidelity, cost=cost, target=target, direction="minimize")
    return _run(objective, problem, budget, strategy, seed, stop, storage, name)


def _run(
    objective: Callable[..., float],
    problem: Problem,
    budget: Capital | float | None,
    strategy: Strategy | None,
    seed: int | None,
    stop: Callable[[History], bool] | None,
    storage: str | None,
    name: str | None,
) -> Result:
    if not callable(objective):
        raise InvalidInput(f"objective must be a function of x and z; got {objective!r}.")
    if budget is None and stop is None:
        raise InvalidInput("A run needs an end: give budget=boca.targets(30), or stop=, or both.")
    optimizer = Optimizer(problem, budget=budget, strategy=strategy, seed=seed, storage=storage, name=name)
    error: Exception | None = None
    try:
        while (trial := optimizer.ask()) is not None:
            error = _evaluate(objective, optimizer, trial)
            _give_up_if_hopeless(optimizer, error, at_least=_HOPELESS)
            if stop is not None and stop(optimizer.history):
                break
    except KeyboardInterrupt:
        if not optimizer.history.complete:
            raise
        # what was paid for is worth more than a traceback
        return result(optimizer, "The run was interrupted; a trial that was running then has no result.")
    except RunStopped:
        raise
    except Exception as unexpected:
        message = f"The run ended after {len(optimizer.history)} trials with {unexpected!r}; see .result for the rest."
        raise RunStopped(message, result(optimizer)) from unexpected
    _give_up_if_hopeless(optimizer, error, at_least=1)
    return result(optimizer)


def _evaluate(objective: Callable[..., float], optimizer: Optimizer, trial: Trial) -> Exception | None:
    """Call the objective and tell what came of it; return what made the trial fail, if anything did."""
    arguments = (dict(trial.x), dict(trial.z)) if optimizer.problem.fidelity else (dict(trial.x),)
    began = time.perf_counter()
    try:
        value = objective(*arguments)
    except Exception as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        optimizer.fail(trial, reason, seconds=time.perf_counter() - began)
        return error
    took = time.perf_counter() - began
    try:
        optimizer.tell(trial, value, seconds=took)
    except InvalidInput as error:
        optimizer.fail(trial, f"The objective returned {value!r}: {error}", seconds=took)
        return error
    return None


def _give_up_if_hopeless(optimizer: Optimizer, error: Exception | None, *, at_least: int) -> None:
    """Raise if so many trials all failed: then the objective, not the point, is to blame."""
    history = optimizer.history
    if len(history) >= at_least and all(trial.state == "failed" for trial in history):
        last = history[-1]
        raise ObjectiveFailed(
            f"The objective failed on every one of {len(history)} trials, the last time at x={last.x!r}, "
            f"z={last.z!r} with: {last.reason}",
            result(optimizer),
        ) from error


def result(optimizer: Optimizer, *warnings: str) -> Result:
    """Return what a study has found so far."""
    best = optimizer.best
    try:
        recommendation = optimizer.recommend()
    except BocaError as error:  # a recommendation that fails must not cost the results
        recommendation, warnings = None, (*warnings, f"There is no recommendation: {error}")
    return Result(
        x=None if best is None else dict(best.x),
        value=None if best is None else best.value,
        recommendation=recommendation,
        history=optimizer.history,
        spent=optimizer.spent,
        warnings=(*warnings, *optimizer.warnings),
    )
