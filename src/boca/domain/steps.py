"""`Steps`: the fidelity that an evaluation passes through, such as the epochs of a training.

An evaluation at z reaches every lower step on its way: it can report there, be stopped there, and be continued from a
checkpoint that it left there.  Steps are counted from 1; 0 stands for "from scratch".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from boca.domain.errors import InvalidInput
from boca.domain.space import Int, Kind, Parameter, Point

_COST_CHECKED_AT = 101  # steps at most, at every combination of the ends of the other fidelities
_MOST_COMBINATIONS = 64  # of these ends


@dataclass(frozen=True, repr=False)
class Steps(Int):
    """The steps of an evaluation, from low to high, both included; at most one in a fidelity space.

    Args:
        low: the first step that says something about the target; lower ones may be reported, and are not modelled.
        high: the last step.
        log: whether the model sees them on a logarithmic scale.
    """

    kind: ClassVar[Kind] = "steps"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low < 1:
            raise InvalidInput(
                f"Steps low is {self.low}, and must be 1 or more: step 0 is an evaluation that has not begun. "
                f"Type boca.Steps(1, {self.high})."
            )


def from_one(parameter: Parameter) -> Parameter:
    """Return steps without a lowest one."""
    assert isinstance(parameter, Steps)
    return replace(parameter, low=1)


def steps_of(space: Mapping[str, Parameter], fidelity: Mapping[str, Parameter]) -> str | None:
    """Return the name of the steps among the fidelities, None if there are none; refuse them elsewhere."""
    misplaced = [name for name, parameter in space.items() if isinstance(parameter, Steps)]
    if misplaced:
        raise InvalidInput(
            f"space has {misplaced[0]!r} as Steps, and only a fidelity can be Steps: an evaluation passes through "
            f"them. Move {misplaced[0]!r} to the fidelities, or make it a boca.Int."
        )
    names = [name for name, parameter in fidelity.items() if isinstance(parameter, Steps)]
    if len(names) > 1:
        raise InvalidInput(
            f"fidelity has {' and '.join(map(repr, names))} as Steps, and at most one fidelity can be: an evaluation "
            "reports one step at a time. Make the others a boca.Int."
        )
    return names[0] if names else None


def refuse_flat_cost(
    fidelity: Mapping[str, Parameter], steps: str, target: Mapping[str, Any], cost: Callable[[Point], float]
) -> None:
    """Raise unless the cost rises with the steps, at the target's other fidelities and at all of their ends."""
    ladder = [fidelity[steps].from_unit(u) for u in fidelity[steps].axis(_COST_CHECKED_AT)]
    for others in itertools.islice(_others(fidelity, steps, target), _MOST_COMBINATIONS):
        costs = [cost({name: {**others, steps: step}[name] for name in fidelity}) for step in ladder]
        for (s, below), (t, above) in itertools.pairwise(zip(ladder, costs, strict=True)):
            if not above > below:
                raise InvalidInput(
                    f"cost(z) must rise with the steps {steps!r}, since an evaluation passes through them; it is "
                    f"{below!r} at {steps}={s} and {above!r} at {steps}={t}{_beside(others)}. "
                    f"Return a cost that grows with z[{steps!r}], or make {steps!r} a boca.Int."
                )


def _others(fidelity: Mapping[str, Parameter], steps: str, target: Mapping[str, Any]) -> Iterator[Point]:
    """Yield the other fidelities of the target, then the combinations of their ends and options."""
    rest = {name: parameter for name, parameter in fidelity.items() if name != steps}
    yield {name: target[name] for name in rest}
    ends = [parameter.ends or parameter.options for parameter in rest.values()]
    for values in itertools.product(*ends):
        yield dict(zip(rest, values, strict=True))


def _beside(others: Mapping[str, Any]) -> str:
    return f" (with {', '.join(f'{name}={value!r}' for name, value in others.items())})" if others else ""


def cost_at(step: int, low: int, cost: Callable[[int], float]) -> float:
    """Return the cost of the first steps of an evaluation; below `low`, where z ends, a share of the cost of `low`."""
    if step <= 0:
        return 0.0
    return cost(step) if step >= low else cost(low) * step / low


def cost_between(start: int, end: int, low: int, cost: Callable[[int], float]) -> float:
    """Return the cost of going on from one step to another; positive, whatever rounding does."""
    whole = cost_at(end, low, cost)
    return max(whole - cost_at(start, low, cost), math.ulp(whole)) if start else whole
