"""What every strategy is, and what those with a model share: a choice among ranked points, and the words for it.

Also what the methods with finitely many fidelities share: their list.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from boca.accounting.cost import Costs, costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import Choice, FloatArray, Point
from boca.domain.trial import History, Suggestion, barred, occupied, point_key
from boca.search.initial_design import by_preference

_DISTINCT = 64  # x tried at every other fidelity, where all that was wanted is out


@runtime_checkable
class Strategy(Protocol):
    """All trials in, a suggestion out; nothing remembered."""

    def suggest(
        self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator, /
    ) -> Suggestion: ...


class Explained(Protocol):
    """A model whose belief about f can be told to the user."""

    @property
    def fit(self) -> Mapping[str, Any] | None: ...
    def moments(self, U: FloatArray, /) -> tuple[FloatArray, FloatArray]: ...  # (m, d) -> mu (m,), sigma (m,)
    def value_as_told(self, standardised: float, /) -> float: ...
    def deviation_as_told(self, standardised: float, /) -> float: ...
    def hyperparameters(self) -> dict[str, Any]: ...


def beta(t: int, d: int, l: float) -> float:  # noqa: E741 - the paper's symbol
    """Return the exploration weight that the paper runs, l being the L1 diameter in bandwidths.  [K17, app. C.1]"""
    return 0.5 * d * math.log(2.0 * l * t + 1.0)


def first_free(
    problem: Problem,
    history: History,
    ranked: FloatArray,
    fidelity_of: Callable[[FloatArray], Point],
    *,
    others: Sequence[Point] = (),
) -> tuple[FloatArray, Point]:  # ranked (k, d) -> u (d,), z
    """Return the best point with its fidelity that is not out already and has not failed three times.

    Where every ranked point is out at its own fidelity, another one stands in: the `others` first, then any, dearer
    than the target only if it must be; where everything is out, the best that has not failed three times.
    """
    return free_or_stand_in(problem, history, ranked, fidelity_of, others=others)[:2]


def free_or_stand_in(
    problem: Problem,
    history: History,
    ranked: FloatArray,
    fidelity_of: Callable[[FloatArray], Point],
    *,
    others: Sequence[Point] = (),
) -> tuple[FloatArray, Point, bool]:  # ranked (k, d) -> u (d,), z, whether z only stands in
    """Return what `first_free` returns, and whether its fidelity only stands in for the one that was wanted."""
    taken, bad = occupied(history), barred(history)

    def usable(candidates: Iterable[tuple[FloatArray, Point]]) -> tuple[FloatArray, Point] | None:
        for u, z in candidates:
            x = point_key(problem.space.from_unit(u))
            if x not in bad and (x, point_key(z)) not in taken:
                return u, z
        return None

    found = usable((u, fidelity_of(u)) for u in ranked)
    if found is not None:
        return *found, False
    instead = [*map(dict, others), *by_preference(problem, costs(problem, history))]
    _, first = np.unique(ranked, axis=0, return_index=True)
    distinct = ranked[np.sort(first)[:_DISTINCT]]
    found = usable((u, z) for z in instead for u in distinct)
    if found is not None:
        return *found, True
    u = next((u for u in ranked if point_key(problem.space.from_unit(u)) not in bad), ranked[0])
    return u, fidelity_of(u), False


def check_fidelities(problem: Problem, given: object) -> None:
    """Refuse what is no list of fidelities of this problem, before anything is paid for."""
    if given is None:
        if _is_a_list(problem) and problem.fidelity.size > MANY:
            raise InvalidInput(
                f"{problem.fidelity.size:g} fidelities are too many for one model each: name at most {MANY} of them "
                "in fidelities=."
            )
        return
    if isinstance(given, Mapping) or not isinstance(given, Sequence) or not given:
        raise InvalidInput(f"fidelities must be a list of fidelities, a mapping by name each; got {given!r}.")
    for z in given:
        problem.fidelity.validate(z, "a member of fidelities")


def ladder(problem: Problem, given: Sequence[Mapping[str, Any]] | None, price: Costs) -> list[Point]:
    """Return the fidelities that a finite method works with: the cheaper ones in order of cost, the target last.

    By default they lie a third and two thirds of the way to the target, in rescaled coordinates, from the corner where
    every fidelity is at its cheaper end; where all fidelities are options, they are all of those.
    """
    members = [problem.fidelity.validate(z, "z") for z in given] if given else _default_fidelities(problem, price)
    cheaper = [z for z in members if not problem.is_target(z) and price.of(z) < price.target]
    distinct = {point_key(z): z for z in sorted(cheaper, key=price.of)}
    return [*distinct.values(), dict(problem.target)]


def on_levels(history: History, levels: list[Point]) -> History:
    """Return the trials at fidelities of the list: the others say nothing that its models understand."""
    return History([t for t in history if t.z in levels])


STAND_IN = "Every point of the search is out where it was wanted: this fidelity is free, and keeps a worker busy."

MANY = 10


def _is_a_list(problem: Problem) -> bool:
    """Whether all fidelities are options, which have no scale to divide."""
    return len(problem.fidelity) > 0 and all(isinstance(q, Choice) for q in problem.fidelity.values())


def _default_fidelities(problem: Problem, price: Costs) -> list[Point]:
    fidelity = problem.fidelity
    if not fidelity:
        return []
    if _is_a_list(problem):
        return [fidelity.from_unit(u) for u in fidelity.points()]
    target = fidelity.to_unit([problem.target])[0]
    corner = np.array([_cheaper_end(problem, price, name, u) for name, u in zip(fidelity, target, strict=True)])
    steps = [corner + share * (target - corner) for share in (1.0 / 3.0, 2.0 / 3.0)]
    return [fidelity.from_unit(u) for u in fidelity.snap(np.array(steps))]


def _cheaper_end(problem: Problem, price: Costs, name: str, target: float) -> float:
    """Return the end of a fidelity that costs less, of equals the one farther from the target; an option stays."""
    parameter = problem.fidelity[name]
    if isinstance(parameter, Choice):
        return target
    at_end = {u: price.of({**problem.target, name: parameter.from_unit(u)}) for u in (0.0, 1.0)}
    return min(at_end, key=lambda u: (at_end[u], -abs(u - target)))


def explain(
    model: Explained, history: History, u: FloatArray, *, phase: str, reason: str, beta: float, **more: Any
) -> dict[str, Any]:  # u (d,)
    """Return the part of `why` that every decision by a model shares, in the user's units and unrounded."""
    mu, sigma = (float(moment[0]) for moment in model.moments(u[None, :]))
    why: dict[str, Any] = {
        "reason": reason,
        "phase": phase,
        "beta": beta,
        "mean": model.value_as_told(mu),
        "std": model.deviation_as_told(sigma),
        "ucb": model.value_as_told(mu + math.sqrt(beta) * sigma),
        **more,
        "hyperparameters": model.hyperparameters(),
        "refit": model.fit is not None,
        "pending": [t.number for t in history.running],
    }
    if model.fit is not None:
        why["fit"] = model.fit
    return why
