"""The problem: what to search, at which fidelities, towards which target, at what cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray, Point, Space, finite_number

Direction: TypeAlias = Literal["maximize", "minimize"]
CostFunction: TypeAlias = Callable[[Mapping[str, Any]], float]

# Points a dimension of the grid of fidelities, for one to four dimensions; beyond, Sobol points and the corners.
_GRID = {1: 101, 2: 21, 3: 10, 4: 6}
_GRID_BEYOND = 1296

_ASSUMED_OPTION = 0.5  # share of the target's cost that another option is taken to have before one is measured
_ASSUMED_LEAST = 0.01  # the same for the low end of a fidelity that starts at zero


class Problem:
    """What is optimised: x in `space`, z in `fidelity`, and f(x) = g(target, x) as the aim.

    `cost` is a positive function of z in any unit; None means that it is not known: it is then measured in seconds
    and learned.  `target` names the fidelity that counts; a name left out takes its upper bound.
    """

    def __init__(
        self,
        space: Space,
        fidelity: Space | None = None,
        *,
        cost: CostFunction | None = None,
        target: Mapping[str, Any] | None = None,
        direction: Direction = "maximize",
    ) -> None:
        if not isinstance(space, Space) or not len(space):
            raise InvalidInput(f"space must be a boca.Space with at least one parameter; got {space!r}.")
        if fidelity is not None and not isinstance(fidelity, Space):
            raise InvalidInput(f"fidelity must be a boca.Space or None; got {fidelity!r}.")
        if cost is not None and not callable(cost):
            raise InvalidInput(f"cost must be a function of z, or None to have it measured; got {cost!r}.")
        if direction not in ("maximize", "minimize"):
            raise InvalidInput(f"direction must be 'maximize' or 'minimize'; got {direction!r}.")
        fidelity = fidelity or Space()
        shared = sorted(set(space) & set(fidelity))
        if shared:
            raise InvalidInput(f"A name may be in the space or in the fidelity, not in both; got {shared}.")
        self.space = space
        self.fidelity = fidelity
        self.direction: Direction = direction
        self._target = _target(fidelity, {} if target is None else target)
        self._cost = cost
        if cost is not None:  # say at once what would otherwise fail in the middle of a study
            _ = self.target_cost, self.grid_costs

    def __repr__(self) -> str:
        return (
            f"Problem({self.space!r}, {self.fidelity!r}, target={self.target!r}, "
            f"cost={'declared' if self.has_declared_cost else 'measured'}, direction={self.direction!r})"
        )

    @property
    def target(self) -> Point:
        """The fidelity that counts, z*."""
        return dict(self._target)

    @property
    def has_declared_cost(self) -> bool:
        """Whether cost is known beforehand; without fidelities every query is one target and costs one unit."""
        return self._cost is not None or not self.fidelity

    def cost(self, z: Mapping[str, Any]) -> float:
        """Return the declared cost of a query at z; where there is none, what is assumed before the first result."""
        if self._cost is None:
            return self.assumed_cost(z)
        try:
            cost = self._cost(dict(z))
        except Exception as error:
            raise InvalidInput(
                f"cost(z) must return a positive number for every fidelity; at z={dict(z)!r} it raised {error!r}."
            ) from error
        try:
            number = finite_number(cost, "cost")
        except InvalidInput:
            number = math.nan
        if not number > 0:
            raise InvalidInput(f"cost(z) must be a positive finite number; got {cost!r} at z={dict(z)!r}.")
        return number

    def assumed_cost(self, z: Mapping[str, Any]) -> float:
        """Return the product of z_i / target_i, of target_i / z_i where the target is the low end of a fidelity.

        What is cheaper is found out by trying what looks cheaper.
        """
        return math.prod(self._assumed_share(name, z[name]) for name in self.fidelity)

    def _assumed_share(self, name: str, value: Any) -> float:
        parameter, target = self.fidelity[name], self._target[name]
        if parameter.ends is None:
            return 1.0 if value == target else _ASSUMED_OPTION
        power = self.dearer_towards(name)
        if parameter.ends[0] >= 0 and target > 0:
            return max(math.pow(value / target, power), _ASSUMED_LEAST)
        u = parameter.to_unit([value, target])  # no ratio without a zero: dearer along the scale
        return math.exp(power * float(u[0] - u[1]))

    def dearer_towards(self, name: str) -> float:
        """Return 1 for a fidelity that is taken to cost more the higher it is, -1 where its target is the low end.

        A solver's tolerance is of the second kind.
        """
        ends = self.fidelity[name].ends
        return -1.0 if ends is not None and self._target[name] == ends[0] else 1.0

    def is_target(self, z: Mapping[str, Any]) -> bool:
        return dict(z) == self._target

    @cached_property
    def grid(self) -> tuple[list[Point], FloatArray]:  # m fidelities, Z (m, p)
        """Return the fidelities among which a strategy chooses, ends included, in a fixed order."""
        Z = _grid(self.fidelity)
        return [self.fidelity.from_unit(z) for z in Z], Z

    def grid_index(self, z: Mapping[str, Any]) -> int:
        """Return where a fidelity of the grid is in it."""
        return self._grid_places[tuple(z.values())]

    @cached_property
    def _grid_places(self) -> dict[tuple[Any, ...], int]:
        return {tuple(z.values()): i for i, z in enumerate(self.grid[0])}

    @cached_property
    def grid_costs(self) -> FloatArray:  # (m,)
        """Return the declared cost of every point of the grid; it is asked for once."""
        return np.array([self.cost(z) for z in self.grid[0]])

    @cached_property
    def target_cost(self) -> float:
        return self.cost(self.target)


def _target(fidelity: Space, given: Mapping[str, Any]) -> Point:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"target must map names of fidelities to values; got {given!r}.")
    unknown = [name for name in given if name not in fidelity]
    if unknown:
        raise InvalidInput(f"target may only name fidelities {list(fidelity)}; got {unknown}.")
    full: Point = {}
    for name, parameter in fidelity.items():
        if name in given:
            full[name] = given[name]
        elif parameter.ends is None:
            raise InvalidInput(f"target[{name!r}] must be given: a Choice has no upper bound. One of {parameter}.")
        else:
            full[name] = parameter.ends[1]
    return fidelity.validate(full, "target")


def _grid(fidelity: Space) -> FloatArray:  # (m, p)
    p = len(fidelity)
    if p == 0:
        return np.empty((1, 0))
    if p in _GRID:
        axes = [parameter.axis(_GRID[p]) for parameter in fidelity.values()]
        return np.array(list(itertools.product(*axes)))
    from scipy.stats import qmc

    powers = math.ceil(math.log2(_GRID_BEYOND))
    sobol = fidelity.snap(qmc.Sobol(p, scramble=False).random_base2(powers)[:_GRID_BEYOND])
    ends = [np.array([0.0, 1.0]) if q.is_ordered else q.axis(0) for q in fidelity.values()]
    corners = np.array(list(itertools.islice(itertools.product(*ends), 4 * _GRID_BEYOND)))
    return np.unique(np.vstack([sobol, corners]), axis=0)
