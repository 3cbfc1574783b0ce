"""Run an objective: in this process, in worker processes of our own, in any executor, on Dask or Ray.

`engine` turns what the user calls an executor into one way to evaluate.  Engines know nothing of trials, budgets and
storages: they take a point and return an outcome, whatever becomes of the objective.

| executor | runs in | a crash costs | after a timeout |
| --- | --- | --- | --- |
| None | this process and thread | the run | not possible |
| n, or Workers(n, memory=...) | n worker processes | one trial | the worker is killed |
| a concurrent.futures.Executor | its workers | all that runs, and the pool | the worker stays busy until it is done |
| a Dask Client | its workers | what runs in that worker | the worker is killed if it has one thread |
| the module ray | its workers | one trial | the worker is killed |

Where an evaluation leaves this process, the objective travels by cloudpickle: a function of a script or a notebook goes
whole, with what it refers to, and one of a module by name.  What it changes there stays there.
"""

from __future__ import annotations

import concurrent.futures
from numbers import Integral
from types import ModuleType

from boca.domain.errors import InvalidInput
from boca.execution.executors.base import Engine, Objective, Outcome, checked
from boca.execution.executors.inline import Inline, refuse_timeout
from boca.execution.executors.pool import Pool
from boca.execution.executors.workers import SlotEngine, Workers

__all__ = ["Engine", "Outcome", "Workers", "engine", "refuse_wrong_timeout"]


def engine(executor: object, objective: Objective, *, takes_fidelity: bool) -> Engine:
    """Return what evaluates objective(x, z), or objective(x), in the way that the executor stands for."""
    if not callable(objective):
        raise InvalidInput(f"objective must be a function of x and z; got {objective!r}.")
    if executor is None:
        return Inline(objective, takes_fidelity=takes_fidelity)
    if isinstance(executor, Integral) and not isinstance(executor, bool):
        executor = Workers(int(executor))
    if isinstance(executor, Workers):
        return SlotEngine(executor, objective, takes_fidelity=takes_fidelity)
    if isinstance(executor, concurrent.futures.Executor):
        return Pool(executor, objective, takes_fidelity=takes_fidelity)
    if _is_dask_client(executor):
        from boca.execution.executors.dask import Dask

        return Dask(executor, objective, takes_fidelity=takes_fidelity)
    if isinstance(executor, ModuleType) and executor.__name__ == "ray":
        from boca.execution.executors.ray import Ray

        return Ray(executor, objective, takes_fidelity=takes_fidelity)
    raise InvalidInput(
        "executor must be None for this process, a number of worker processes, boca.executors.Workers(n, memory=...), "
        "a concurrent.futures.Executor, a Dask Client (distributed.Client), or the module ray after ray.init(); "
        f"got {executor!r}."
    )


def refuse_wrong_timeout(timeout: object, executor: object) -> None:
    """Refuse a limit that cannot be meant before anything is made; what a function returns is seen when it is used."""
    if executor is None:
        refuse_timeout(timeout)
    elif not callable(timeout):
        checked(timeout)


def _is_dask_client(executor: object) -> bool:
    """Whether this is a client of Dask; to ask it by name costs no import where it is none."""
    kinds = type(executor).__mro__
    return any(kind.__name__ == "Client" and kind.__module__.split(".")[0] == "distributed" for kind in kinds)
