"""The list of fidelities of the finite methods: the cheapest first, the target last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boca.accounting.cost import Costs
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, point_key

_MOST_FIDELITIES = 10  # in a default list: each needs a model, and results of its own


def check_fidelities(problem: Problem, given: object) -> None:
    """Refuse a value of `fidelities` that does not fit the problem, before a trial runs."""
    if given is None:
        if _has_only_choices(problem) and problem.fidelity.size > _MOST_FIDELITIES:
            raise InvalidInput(
                f"The fidelity space has {problem.fidelity.size:g} points; each needs a model, and at most "
                f"{_MOST_FIDELITIES} are used by default. Name those to use in fidelities=."
            )
        return
    if isinstance(given, Mapping) or not isinstance(given, Sequence) or not given:
        raise InvalidInput(f"fidelities must be a list of mappings from name to value; got {given!r}.")
    for z in given:
        problem.fidelity.validate(z, "a member of fidelities")


def ladder(problem: Problem, given: Sequence[Mapping[str, Any]] | None, price: Costs) -> list[Point]:
    """Return the fidelities that a finite method uses: the cheaper ones in order of cost, the target last.

    By default there are two cheaper ones, at a third and two thirds of the way to the target in unit coordinates, from
    the corner where every parameter is at its cheaper end.  If all parameters are choices, all options are used.
    """
    members = [problem.fidelity.validate(z, "z") for z in given] if given else _default_fidelities(problem, price)
    cheaper = [z for z in members if not problem.is_target(z) and price.of(z) < price.target]
    distinct = {point_key(z): z for z in sorted(cheaper, key=price.of)}
    return [*distinct.values(), dict(problem.target)]


def on_levels(history: History, levels: list[Point]) -> History:
    """Return the trials at fidelities of the list: the models have no place for the others."""
    return History([t for t in history if t.z in levels])


def _has_only_choices(problem: Problem) -> bool:
    """Whether all fidelities are choices, which have no scale to divide."""
    return len(problem.fidelity) > 0 and not any(parameter.is_ordered for parameter in problem.fidelity.values())


def _default_fidelities(problem: Problem, price: Costs) -> list[Point]:
    fidelity = problem.fidelity
    if not fidelity:
        return []
    if _has_only_choices(problem):
        return [fidelity.from_unit(u) for u in fidelity.points()]
    target = fidelity.to_unit([problem.target])[0]
    corner = np.array([_cheaper_end(problem, price, name, u) for name, u in zip(fidelity, target, strict=True)])
    steps = [corner + share * (target - corner) for share in (1.0 / 3.0, 2.0 / 3.0)]
    return [fidelity.from_unit(u) for u in fidelity.snap(np.array(steps))]


def _cheaper_end(problem: Problem, price: Costs, name: str, target: float) -> float:
    """Return the cheaper end of a fidelity, of equals the one farther from the target; a choice stays at the target."""
    parameter = problem.fidelity[name]
    if not parameter.is_ordered:
        return target
    at_end = {u: price.of({**problem.target, name: parameter.from_unit(u)}) for u in (0.0, 1.0)}
    return min(at_end, key=lambda u: (at_end[u], -abs(u - target)))
