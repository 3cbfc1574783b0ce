"""The list of fidelities that the finite methods work with, cheapest first, the target last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boca.accounting.cost import Costs
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, point_key

_MOST_FIDELITIES = 10  # with a model for each: every level needs results of its own


def check_fidelities(problem: Problem, given: object) -> None:
    """Refuse what is no list of fidelities of this problem, before anything is paid for."""
    if given is None:
        if _is_a_list(problem) and problem.fidelity.size > _MOST_FIDELITIES:
            raise InvalidInput(
                f"The fidelity space has {problem.fidelity.size:g} points, and each would need a model of its own. "
                f"At most {_MOST_FIDELITIES} are allowed: name them in fidelities=."
            )
        return
    if isinstance(given, Mapping) or not isinstance(given, Sequence) or not given:
        raise InvalidInput(f"fidelities must be a list of mappings from name to value; got {given!r}.")
    for z in given:
        problem.fidelity.validate(z, "a member of fidelities")


def ladder(problem: Problem, given: Sequence[Mapping[str, Any]] | None, price: Costs) -> list[Point]:
    """Return the fidelities that a finite method works with: the cheaper ones in order of cost, the target last.

    By default they lie a third and two thirds of the way to the target, in rescaled coordinates, from the corner where
    every fidelity is at its cheaper end; if all fidelities are options, they are all of those.
    """
    members = [problem.fidelity.validate(z, "z") for z in given] if given else _default_fidelities(problem, price)
    cheaper = [z for z in members if not problem.is_target(z) and price.of(z) < price.target]
    distinct = {point_key(z): z for z in sorted(cheaper, key=price.of)}
    return [*distinct.values(), dict(problem.target)]


def on_levels(history: History, levels: list[Point]) -> History:
    """Return the trials at fidelities of the list: the others say nothing that its models understand."""
    return History([t for t in history if t.z in levels])


def _is_a_list(problem: Problem) -> bool:
    """Whether all fidelities are options, which have no scale to divide."""
    return len(problem.fidelity) > 0 and not any(parameter.is_ordered for parameter in problem.fidelity.values())


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
    if not parameter.is_ordered:
        return target
    at_end = {u: price.of({**problem.target, name: parameter.from_unit(u)}) for u in (0.0, 1.0)}
    return min(at_end, key=lambda u: (at_end[u], -abs(u - target)))
