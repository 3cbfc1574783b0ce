"""Run an objective: in this process, in worker processes of boca, in any executor, on Dask or Ray.

`engine` turns the user's `executor=` into an engine.  Engines know nothing of trials, budgets and storages: they take a
point and return an outcome, whatever the objective does.

| executor | runs in | a crash costs | after a timeout |
| --- | --- | --- | --- |
| None | this process and thread | the run | not possible |
| n, or Workers(n, memory=...) | n worker processes | one trial | the worker is killed |
| a concurrent.futures.Executor | its workers | all running trials, and the pool | the worker stays busy until it ends |
| an executor of submitit | jobs of SLURM | one trial | the job is cancelled |
| a Dask Client | its workers | the trials of that worker | the worker is killed if it has one thread and a nanny |
| the module ray | its workers | one trial | the worker is killed |

If an evaluation leaves this process, cloudpickle sends the objective: a function of a script or a notebook by value,
with everything that it refers to, and a function of a module by name.  Changes that it makes stay in the worker.
"""

from __future__ import annotations

import concurrent.futures
from numbers import Integral
from types import ModuleType

from boca.domain.errors import InvalidInput
from boca.domain.space import whole_number
from boca.execution.executors.base import Engine, Objective, Outcome, checked_timeout
from boca.execution.executors.inflight import InFlightEngine
from boca.execution.executors.inline import Inline, refuse_timeout
from boca.execution.executors.pool import Pool
from boca.execution.executors.submitit import Submitit, is_submitit
from boca.execution.executors.workers import WorkerEngine, Workers

__all__ = ["Engine", "Outcome", "Workers", "checked_workers", "engine", "refuse_wrong_timeout"]


def engine(executor: object, objective: Objective, *, takes_fidelity: bool, workers: int | None = None) -> Engine:
    """Return the engine that evaluates objective(x, z), or objective(x), in this executor.

    `workers` says how many trials run at once; by default as many as the executor has workers.
    """
    if not callable(objective):
        raise InvalidInput(f"objective must be a function of x and z; got {objective!r}.")
    if executor is None and workers is None:
        return Inline(objective, takes_fidelity=takes_fidelity)
    if executor is None:
        executor = workers
    if isinstance(executor, Integral) and not isinstance(executor, bool):
        executor = Workers(int(executor))
    if isinstance(executor, Workers):
        return WorkerEngine(executor, objective, takes_fidelity=takes_fidelity)
    if is_submitit(executor):
        executor = Submitit(executor)
    if isinstance(executor, concurrent.futures.Executor):
        return InFlightEngine(Pool(executor, objective, workers), takes_fidelity=takes_fidelity, workers=workers)
    if _is_dask_client(executor):
        from boca.execution.executors.dask import Dask

        return InFlightEngine(Dask(executor, objective), takes_fidelity=takes_fidelity, workers=workers)
    if isinstance(executor, ModuleType) and executor.__name__ == "ray":
        from boca.execution.executors.ray import Ray

        return InFlightEngine(Ray(executor, objective), takes_fidelity=takes_fidelity, workers=workers)
    raise InvalidInput(
        "executor must be None for this process, a number of worker processes, boca.executors.Workers(n, memory=...), "
        "a concurrent.futures.Executor, an executor of submitit, a Dask Client (distributed.Client), or the module ray "
        f"after ray.init(); got {executor!r}."
    )


def checked_workers(workers: object, executor: object) -> int:
    """Return how many trials are to run at once, or refuse what cannot be meant."""
    number = whole_number(workers, "workers")
    if number < 1:
        raise InvalidInput(f"workers must be at least 1; got {workers!r}.")
    own = executor.workers if isinstance(executor, Workers) else executor
    if isinstance(own, Integral) and int(own) != number:
        raise InvalidInput(f"workers is {number} and executor has {own} workers. Give one of the two.")
    return number


def refuse_wrong_timeout(timeout: object, executor: object) -> None:
    """Refuse an impossible timeout before a study exists; what a function returns is checked when it is used."""
    if executor is None:
        refuse_timeout(timeout)
    elif not callable(timeout):
        checked_timeout(timeout)


def _is_dask_client(executor: object) -> bool:
    """Whether this is a client of Dask, asked by name so that Dask is not imported if it is not."""
    kinds = type(executor).__mro__
    return any(kind.__name__ == "Client" and kind.__module__.split(".")[0] == "distributed" for kind in kinds)
