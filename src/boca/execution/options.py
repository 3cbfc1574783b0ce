"""The arguments of `maximize` and `minimize` beside the objective and the problem, checked before anything is made."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Literal, TypeAlias, cast, get_args

from boca.domain.budget import Limit
from boca.domain.errors import InvalidInput, one_of
from boca.domain.problem import Problem
from boca.domain.space import finite_number
from boca.domain.trial import History, Trial
from boca.execution.checkpoints import checked_keep, checked_place
from boca.execution.driver import Timeout
from boca.execution.executors import checked_workers, refuse_wrong_timeout
from boca.execution.stopping import StoppingRule
from boca.strategies import Strategy
from boca.study.optimizer import Optimizer

OnError: TypeAlias = Literal["fail", "raise"]
Callback: TypeAlias = Callable[[Optimizer, Trial], object]
"""Called with the optimizer and the trial that has just finished; `boca.callbacks` says which methods it may have."""


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """Which study a run works on: what `Optimizer` takes beside the problem."""

    budget: Limit | float | None = None
    strategy: Strategy | None = None
    seed: int | None = None
    storage: str | None = None
    name: str | None = None
    allow_change: bool = False

    def open(self, problem: Problem) -> Optimizer:
        """Create the study, or resume it if its storage has it."""
        return Optimizer(
            problem,
            budget=self.budget,
            strategy=self.strategy,
            seed=self.seed,
            storage=self.storage,
            name=self.name,
            allow_change=self.allow_change,
        )


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run evaluates its trials, and when it ends before the budget does."""

    executor: object = None
    timeout: Timeout | None = None
    max_retries: int = 2
    grace: float = 0.0
    workers: int | None = None
    on_error: OnError = "fail"
    stop: Callable[[History], bool] | StoppingRule | None = None
    callbacks: Callback | Sequence[Callback] = ()
    progress: bool | None = None
    checkpoints: str | os.PathLike[str] | None = None
    keep_checkpoints: int | None = None

    def __post_init__(self) -> None:
        one_of(self.on_error, get_args(OnError), "on_error")
        retries = self.max_retries
        if isinstance(retries, bool) or not isinstance(retries, Integral) or retries < 0:
            raise InvalidInput(f"max_retries must be a whole number, 0 or more; got {retries!r}.")
        is_rule = isinstance(self.stop, StoppingRule) and not isinstance(self.stop, type)
        if self.stop is not None and not callable(self.stop) and not is_rule:
            raise InvalidInput(
                f"stop must be a function of the history, a rule of boca.stopping, or None; got {self.stop!r}. "
                "Try stop=boca.stopping.NotWorthIt(price=...)."
            )
        grace = finite_number(self.grace, "grace")
        if grace < 0:
            raise InvalidInput(f"grace must be a number of seconds, 0 or more; got {self.grace!r}.")
        object.__setattr__(self, "grace", grace)
        if self.workers is not None:
            object.__setattr__(self, "workers", checked_workers(self.workers, self.executor))
        refuse_wrong_timeout(self.timeout, self.workers if self.executor is None else self.executor)
        object.__setattr__(self, "max_retries", int(retries))
        object.__setattr__(self, "checkpoints", checked_place(self.checkpoints))
        object.__setattr__(self, "keep_checkpoints", checked_keep(self.keep_checkpoints))
        object.__setattr__(self, "callbacks", _callback_list(self.callbacks))

    @property
    def has_workers(self) -> bool:
        """Whether trials run in other processes than this one."""
        is_here = self.executor is None and self.workers is None
        return not is_here and not isinstance(self.executor, ThreadPoolExecutor)

    @property
    def callback_list(self) -> Sequence[Callback]:
        """The callbacks, also if only one was given."""
        return _callback_list(self.callbacks)


def _callback_list(callbacks: object) -> list[Callback]:
    """Return the callbacks as a list, or refuse what cannot be called with an optimizer and a trial."""
    is_list = isinstance(callbacks, Iterable) and not callable(callbacks) and not isinstance(callbacks, str)
    found: list[Any] = list(cast(Iterable[Any], callbacks)) if is_list else [callbacks]
    for callback in found:
        if not callable(callback) or isinstance(callback, type):
            raise InvalidInput(
                f"callbacks must be functions of the optimizer and the trial; got {callback!r}. Give a function, an "
                "object that can be called, such as boca.callbacks.Log(), or a list of them."
            )
    return found
