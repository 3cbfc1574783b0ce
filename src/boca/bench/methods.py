"""Names for methods and problems, and import paths for those that are not part of the package.

A method is a function of a benchmark and of `learn` that returns a strategy.  Where the benchmark knows the Gaussian
process that it was drawn from, every method with a model is given it, unless `learn` is set: that is how the paper ran
its GP samples, and it keeps the fit out of the comparison.

An import path `package.module:name` may name
    for a problem: a `Benchmark`, or a function from a seed to one;
    for a method: a strategy, a class of strategies, or a function from a benchmark to a strategy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias

from boca import problems
from boca.domain.errors import BocaError, InvalidInput
from boca.problems import Benchmark
from boca.strategies import MFGPUCB, MFSKO, Boca, Strategy, Theorem
from boca.strategies.registry import STRATEGIES
from boca.studyfile.importing import imported

Method: TypeAlias = Callable[[Benchmark, bool], Strategy]
ProblemMaker: TypeAlias = Callable[[int], Benchmark]


def _known(benchmark: Benchmark, learn: bool) -> Mapping[str, Any] | None:
    return None if learn else benchmark.hyperparameters


def _branin_list(strategy: Strategy, benchmark: Benchmark) -> Strategy:
    """Give a finite method the ten fidelities that the paper has on Branin; on other problems it has three."""
    if benchmark.name != "branin" or not isinstance(strategy, MFGPUCB | MFSKO):
        return strategy
    return replace(strategy, fidelities=[dict.fromkeys(benchmark.problem.fidelity, k / 10) for k in range(1, 11)])


def _three_fidelities(make: Callable[[], Strategy]) -> Method:
    """Return a finite method with three fidelities on every problem, Branin included."""
    return lambda benchmark, learn: _informed(make(), benchmark, learn)


def _registered(make: Callable[[], Strategy]) -> Method:
    return lambda benchmark, learn: _informed(_branin_list(make(), benchmark), benchmark, learn)


METHODS: Mapping[str, Method] = {
    **{name: _registered(make) for name, make in STRATEGIES.items()},
    "boca-learned": lambda benchmark, learn: Boca(),
    "boca-paper-sobol": _registered(lambda: Boca.paper(maximizer="sobol")),
    "boca-paper-c1": _registered(lambda: replace(Boca.paper(), adapt_c=False)),
    "boca-paper-theorem": _registered(lambda: Boca.paper(theorem=Theorem())),
    "mf-gp-ucb-3": _three_fidelities(MFGPUCB),
    "mf-sko-3": _three_fidelities(MFSKO),
}

DEFAULT_METHODS = tuple(STRATEGIES)

# Roughly how long a suggestion takes in units of one by `boca`: it decides what runs first, and first guesses of the
# time left.
EFFORT = {
    "random": 0.2,
    **dict.fromkeys(("boca-paper", "boca-paper-c1", "boca-paper-theorem"), 20.0),
    **dict.fromkeys(("gp-ucb", "gp-ei"), 15.0),
    **dict.fromkeys(("mf-gp-ucb", "mf-gp-ucb-3"), 40.0),
    **dict.fromkeys(("mf-sko", "mf-sko-3"), 60.0),
}


def method(name: str) -> Method:
    """Return the method of this name or import path."""
    if name in METHODS:
        return METHODS[name]
    if ":" not in name:
        raise InvalidInput(
            f"{name!r} is not a method: --method must be one of {', '.join(METHODS)}, or an import path "
            "package.module:name."
        )
    return _as_method(name, imported(name, "--method", os.getcwd()))


def problem(name: str) -> ProblemMaker:
    """Return the problem of this name or import path, as a function of the seed."""
    if name in problems.names():
        return lambda seed: _comparable(name, problems.get(name, seed=seed))
    if ":" not in name:
        raise InvalidInput(
            f"{name!r} is not a problem: --problem must be one of {', '.join(problems.names())}, or an import path "
            "package.module:name."
        )
    found = imported(name, "--problem", os.getcwd())
    if not (isinstance(found, Benchmark) or callable(found)):
        raise InvalidInput(f"{name} must be a Benchmark or a function from a seed to one; got {found!r}.")
    return lambda seed: _comparable(name, found if isinstance(found, Benchmark) else _made(name, found, seed))


def _made(name: str, factory: Callable[[int], Any], seed: int) -> Any:
    try:
        return factory(seed)
    except BocaError:
        raise
    except Exception as error:
        raise InvalidInput(
            f"{name} must be a Benchmark or a function from a seed to one; with the seed {seed} it raised {error!r}."
        ) from error


def _comparable(name: str, benchmark: Any) -> Benchmark:
    """Refuse a benchmark whose budget is not the same for every method before the first query."""
    if not isinstance(benchmark, Benchmark):
        raise InvalidInput(f"{name} must return a Benchmark; got {benchmark!r}.")
    if not (benchmark.problem.has_declared_cost or benchmark.budget.unit == "seconds"):
        raise InvalidInput(
            f"{name} must have a declared cost or a budget in seconds, so that every method has the same budget; "
            f"got {benchmark.budget!r} and {benchmark.problem!r}. Pass cost= to Problem, or use boca.seconds(s)."
        )
    return benchmark


def _as_method(path: str, found: Any) -> Method:
    if isinstance(found, type):
        return lambda benchmark, learn: _informed(_checked(path, found()), benchmark, learn)
    if isinstance(found, Strategy):
        return lambda benchmark, learn: _informed(found, benchmark, learn)
    if callable(found):
        return lambda benchmark, learn: _checked(path, found(benchmark))
    raise InvalidInput(
        f"{path} must be a strategy, a class of strategies or a function from a benchmark to a strategy; got {found!r}."
    )


def _checked(path: str, strategy: Any) -> Strategy:
    if not isinstance(strategy, Strategy):
        raise InvalidInput(f"{path} must give an object with a method suggest; got {strategy!r}.")
    return strategy


def _informed(strategy: Strategy, benchmark: Benchmark, learn: bool) -> Strategy:
    """Give the strategy the true GP, if it is known and the strategy has an empty field for it."""
    known = _known(benchmark, learn)
    if known is None or not is_dataclass(strategy) or isinstance(strategy, type):
        return strategy
    if all(field.name != "hyperparameters" for field in fields(strategy)) or strategy.hyperparameters is not None:
        return strategy
    informed: Strategy = replace(strategy, hyperparameters=known)
    return informed
