"""Run an objective with several outcomes until its budget is spent: `optimize`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from boca.domain.budget import Limit
from boca.domain.objectives import OutcomeAim
from boca.domain.other_tools import names_ours
from boca.domain.problem import CostFunction, Problem
from boca.domain.space import Space
from boca.domain.trial import History
from boca.execution.driver import Timeout
from boca.execution.options import Callback, OnError, RunOptions, StudyOptions
from boca.execution.result import Result
from boca.execution.run import drive
from boca.execution.stopping import StoppingRule
from boca.strategies import Strategy
from boca.study.optimizer import Told


@names_ours
def optimize(
    function: Callable[..., Told],
    /,
    space: Space,
    fidelity: Space | None = None,
    *,
    outcomes: Mapping[str, OutcomeAim],
    reference: Mapping[str, float] | None = None,
    budget: Limit | float | None = None,
    cost: CostFunction | None = None,
    target: Mapping[str, Any] | None = None,
    deterministic: bool = False,
    first: Sequence[Mapping[str, Any]] = (),
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
    """Optimize several outcomes of function(x, z) at z = target within a budget; without fidelities, of function(x).

    The function returns a mapping with every outcome.  With two to four objectives, `result.front` has the trials that
    none dominates; with one, this is `maximize` or `minimize` with limits.  The others are arguments of `maximize`.

    Args:
        function: A function of x and z that returns a mapping; of x alone without fidelities.
        space: The parameters to search.
        fidelity: The fidelities, which make an evaluation cheaper.
        outcomes: What is wanted of each outcome, by name: "minimize", "maximize", `boca.AtMost(20.0)` or
            `boca.AtLeast(0.9)`.
        reference: The worst values of objectives that are of interest, by name, from which the hypervolume is measured;
            what is left out is learned from the front.
        budget: What the run may spend.
        cost: The cost of an evaluation as a function of z; None measures it.
        target: The fidelities that count; a name left out has its upper bound.
        deterministic: Whether the same x and z always give the same value.
        first: Points to begin with; a name left out takes the middle of its range.
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
        deterministic=deterministic,
        first=first,
        outcomes=outcomes,
        reference=reference,
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
