"""Dragonfly's functions for optimization with many fidelities, by its documented arguments.

    from boca.compat.dragonfly import load_config, maximise_multifidelity_function

A program that was written for Dragonfly keeps its function `func(z, x)`, its domains and its configuration.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

from boca.compat.dragonfly_domain import Bounds, Config, Domain, load_config, load_config_file
from boca.domain.budget import Limit, seconds
from boca.domain.errors import InvalidInput, doubt, one_of
from boca.domain.problem import Direction
from boca.domain.trial import Trial
from boca.domain.words import point as in_words
from boca.execution.result import Result
from boca.execution.run import maximize, minimize
from boca.strategies import Boca, RandomSearch, Strategy
from boca.study.optimizer import Optimizer

__all__ = [
    "load_config",
    "load_config_file",
    "maximise_multifidelity_function",
    "maximize_multifidelity_function",
    "minimise_multifidelity_function",
    "minimize_multifidelity_function",
]


@dataclass(frozen=True)
class History:
    """What was evaluated, in the order in which it was told, by Dragonfly's names; failures are left out."""

    query_points: list[Any] = field(default_factory=list)
    query_vals: list[float] = field(default_factory=list)
    query_fidels: list[Any] = field(default_factory=list)
    query_cost_at_fidels: list[float] = field(default_factory=list)
    query_at_fidel_to_opts: list[bool] = field(default_factory=list)
    result: Result | None = None
    """The result of the run, with the reasons of every trial and a recommendation."""


def maximise_multifidelity_function(
    func: Callable[[Any, Any], float],
    fidel_space: Bounds | Domain | None,
    domain: Bounds | Domain | None,
    fidel_to_opt: Sequence[Any] | None,
    fidel_cost_func: Callable[[Any], float],
    max_capital: float,
    capital_type: str = "return_value",
    opt_method: str = "bo",
    config: Config | str | None = None,
    options: object = None,
    reporter: str | TextIO | None = "default",
    *,
    num_workers: int = 1,
    worker_manager: str = "default",
    seed: int | None = None,
) -> tuple[float | None, Any, History]:
    """Maximize func(z, x) over x at z = fidel_to_opt; return the value, the point, and what was evaluated.

    Args:
        func: The function of a fidelity and a point.
        fidel_space: Bounds, `[[l1, u1], [l2, u2], ...]`, variables, or None to take the one of `config`.
        domain: The same for the points.
        fidel_to_opt: The fidelity that counts; None to take the one of `config`.
        fidel_cost_func: The cost of an evaluation as a function of the fidelity.
        max_capital: What may be spent: in the unit of the cost, or in seconds.
        capital_type: "return_value" for the unit of the cost, "realtime" for seconds.
        opt_method: "bo", or "rand" for random search.
        config: What `load_config` returned, or the path of a JSON file.
        options: Settings of Dragonfly, which mean nothing here: a warning says so.
        reporter: "default" for a progress line, "silent", or a stream.
        num_workers: How many processes evaluate at the same time.
        worker_manager: "default".
        seed: The seed of all random choices; None draws one.
    """
    return _optimized(
        "maximize",
        func,
        fidel_space,
        domain,
        fidel_to_opt,
        fidel_cost_func,
        budget=_budget(max_capital, capital_type),
        strategy=_strategy(opt_method),
        config=config,
        options=options,
        reporter=reporter,
        workers=_workers(num_workers, worker_manager),
        seed=seed,
    )


def minimise_multifidelity_function(
    func: Callable[[Any, Any], float],
    fidel_space: Bounds | Domain | None,
    domain: Bounds | Domain | None,
    fidel_to_opt: Sequence[Any] | None,
    fidel_cost_func: Callable[[Any], float],
    max_capital: float,
    capital_type: str = "return_value",
    opt_method: str = "bo",
    config: Config | str | None = None,
    options: object = None,
    reporter: str | TextIO | None = "default",
    *,
    num_workers: int = 1,
    worker_manager: str = "default",
    seed: int | None = None,
) -> tuple[float | None, Any, History]:
    """Minimize func(z, x) over x at z = fidel_to_opt; the arguments are those of `maximise_multifidelity_function`."""
    return _optimized(
        "minimize",
        func,
        fidel_space,
        domain,
        fidel_to_opt,
        fidel_cost_func,
        budget=_budget(max_capital, capital_type),
        strategy=_strategy(opt_method),
        config=config,
        options=options,
        reporter=reporter,
        workers=_workers(num_workers, worker_manager),
        seed=seed,
    )


maximize_multifidelity_function = maximise_multifidelity_function
minimize_multifidelity_function = minimise_multifidelity_function


def _optimized(
    direction: Direction,
    func: Callable[[Any, Any], float],
    fidel_space: Any,
    domain: Any,
    fidel_to_opt: Any,
    fidel_cost_func: Callable[[Any], float],
    *,
    budget: Limit | float,
    strategy: Strategy,
    config: Config | str | None,
    options: object,
    reporter: str | TextIO | None,
    workers: int | None,
    seed: int | None,
) -> tuple[float | None, Any, History]:
    if options is not None:
        doubt(f"options={options!r} are settings of Dragonfly and have no effect here. Leave them out.")
    known = load_config_file(config) if isinstance(config, str) else config
    points = Domain.of(domain if domain is not None or known is None else known.domain, "domain", "x")
    given = fidel_space if fidel_space is not None or known is None else known.fidel_space
    fidels = Domain.of(given, "fidel_space", "z").renamed({variable.name for variable in points.variables})
    target = fidel_to_opt if fidel_to_opt is not None or known is None else known.fidel_to_opt
    if target is None:
        raise InvalidInput("fidel_to_opt is missing, and must be the fidelity that counts, such as [1.0].")
    run = maximize if direction == "maximize" else minimize
    result = run(
        lambda x, z: func(fidels.point(z), points.point(x)),
        points.space(),
        fidels.space(),
        cost=lambda z: fidel_cost_func(fidels.point(z)),
        target=fidels.coded(target, "fidel_to_opt"),
        budget=budget,
        strategy=strategy,
        executor=workers,
        seed=seed,
        callbacks=() if reporter is None or isinstance(reporter, str) else _Lines(reporter),
        progress=None if _is_shown(reporter) else False,
    )
    best = None if result.x is None else points.point(result.x)
    return result.value, best, _history(result, points, fidels)


def _history(result: Result, points: Domain, fidels: Domain) -> History:
    told: list[Trial] = [trial for trial in result.history.complete if trial.value is not None]
    problem = None if result.study is None else result.study.problem
    return History(
        [points.point(trial.x) for trial in told],
        [float(trial.value) for trial in told if trial.value is not None],
        [fidels.point(trial.z) for trial in told],
        [trial.cost for trial in told],
        [problem is not None and problem.is_target(trial.z) for trial in told],
        result,
    )


def _budget(max_capital: float, capital_type: str) -> Limit | float:
    one_of(capital_type, ("return_value", "realtime"), "capital_type")
    return seconds(max_capital) if capital_type == "realtime" else max_capital


def _strategy(opt_method: str) -> Strategy:
    one_of(opt_method, ("bo", "rand"), "opt_method")
    return Boca() if opt_method == "bo" else RandomSearch()


def _workers(num_workers: int, worker_manager: str) -> int | None:
    if worker_manager != "default":
        raise InvalidInput(
            f"worker_manager is {worker_manager!r}, and only 'default' is supported. Give num_workers=4 for four "
            "processes, or use boca.maximize with executor= for a cluster."
        )
    return None if num_workers == 1 else num_workers


def _is_shown(reporter: object) -> bool:
    if isinstance(reporter, str):
        one_of(reporter, ("default", "silent"), "reporter")
        return reporter == "default"
    if reporter is not None and not callable(getattr(reporter, "write", None)):
        raise InvalidInput(f"reporter is {reporter!r}, and must be 'default', 'silent' or a stream.")
    return False


@dataclass(frozen=True)
class _Lines:
    """A callback that writes one line per trial."""

    stream: TextIO = field(default_factory=lambda: sys.stdout)

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        what = f"failed: {trial.reason}" if trial.value is None else f"{trial.value:.6g}"
        where = in_words({**trial.x, **trial.z})
        self.stream.write(f"trial {trial.number}: {what} at {where}; spent {optimizer.spent:.6g}\n")
