"""The problem: the space, the fidelities, the target and the cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from boca.domain import shorthand
from boca.domain.errors import InvalidInput
from boca.domain.objectives import (
    OutcomeAim,
    checked_outcomes,
    checked_reference,
    merged_limits,
    returned_objectives,
    variances_by_name,
)
from boca.domain.other_tools import names_ours
from boca.domain.outcomes import AtMost, OutcomeLimit, Returned, by_outcome, checked_limits, checked_objective, returned
from boca.domain.space import FloatArray, Point, Space, finite_number
from boca.domain.steps import cost_between, from_one, refuse_flat_cost, steps_of

Direction: TypeAlias = shorthand.Direction
CostFunction: TypeAlias = Callable[[Mapping[str, Any]], float]

# Points per axis of the grid of fidelities, by the number of fidelities: at most 1,296 points in all.
_GRID_POINTS_PER_AXIS = {1: 101, 2: 21, 3: 10, 4: 6}
_SOBOL_FIDELITIES = 1296  # with more than four fidelities, instead of a grid: as many points as with four
_MOST_CORNERS = 4 * _SOBOL_FIDELITIES  # with more than twelve fidelities, some are left out

_ASSUMED_COST_OF_OPTION = 0.5  # of the target's: the cost of any other option of a choice, before one is measured
_LEAST_ASSUMED_COST = 0.01  # of the target's, near the low end of a fidelity that starts at zero


class Problem:
    """What is optimized: f(x) = g(target, x), with x in `space` and z in `fidelity`.

    Args:
        space: the parameters to search.
        fidelity: the fidelities; None if there are none.
        cost: a positive function of z in any unit; None to measure it in seconds and learn it.
        target: the fidelity at which f is to be optimal; a name that is left out takes its upper bound.
        direction: "maximize" or "minimize", or "max" or "min".
        deterministic: whether the same x and z always give the same value.  Then nothing is run twice, and nothing
            worse than the best result at the target is recommended.
        first: points to begin with; a name that is left out takes the middle of its range, or the first option.
        subject_to: limits on further outcomes, by name; an evaluation then returns a mapping.
        objective: the key of the objective in that mapping; None if it is the only one that has no limit.
        outcomes: what is wanted of each outcome, by name: "minimize", "maximize" or a limit.  It takes the place of
            direction, objective and subject_to.  With two to four objectives there is no best trial, but a front.
        reference: with several objectives, the worst values that are of interest, by name, from which the hypervolume
            is measured; what is left out is learned from the front.
    """

    @names_ours
    def __init__(
        self,
        space: Space,
        fidelity: Space | None = None,
        *,
        cost: CostFunction | None = None,
        target: Mapping[str, Any] | None = None,
        direction: str = "maximize",
        deterministic: bool = False,
        first: Sequence[Mapping[str, Any]] = (),
        subject_to: Mapping[str, OutcomeLimit] | None = None,
        objective: str | None = None,
        outcomes: Mapping[str, OutcomeAim] | None = None,
        reference: Mapping[str, float] | None = None,
    ) -> None:
        if not isinstance(space, Space) or not len(space):
            raise InvalidInput(f"space must be a boca.Space with at least one parameter; got {space!r}.")
        if fidelity is not None and not isinstance(fidelity, Space):
            raise InvalidInput(f"fidelity must be a boca.Space or None; got {fidelity!r}.")
        if cost is not None and not callable(cost):
            raise InvalidInput(f"cost must be a function of z, or None to have it measured; got {cost!r}.")
        fidelity = fidelity or Space()
        if not fidelity.is_box:
            raise InvalidInput(
                f"fidelity has {fidelity.restriction}, and every combination of fidelities must exist. "
                "Give ranges alone, and let the cost say which combinations are expensive."
            )
        shared = sorted(set(space) & set(fidelity))
        if shared:
            raise InvalidInput(
                f"A name may be in space or in fidelity, not in both; got {shared} in both. Rename one parameter."
            )
        self.steps = steps_of(space, fidelity)
        self.space = space
        self.fidelity = fidelity
        self.direction: Direction | None = shorthand.direction(direction)
        """None if there are several objectives."""
        self.objectives: Mapping[str, Direction] = {}
        """The directions of several objectives, by name; empty if there is one objective."""
        if outcomes is None:
            self.subject_to = checked_limits(subject_to)
            self.objective = checked_objective(objective, self.subject_to)
        else:
            self._take_outcomes(outcomes, subject_to, objective)
        self.reference = checked_reference(reference, self.objectives)
        self._refuse_steps()
        self._target = _target(space, fidelity, {} if target is None else target)
        if not isinstance(deterministic, bool):
            raise InvalidInput(f"deterministic must be True or False; got {deterministic!r}.")
        self.deterministic = deterministic
        self._first = _first_points(space, first)
        self._cost = cost
        if cost is not None:  # refuse a wrong cost now, not in the middle of a study
            _ = self.target_cost, self.grid_costs
            if self.steps is not None:
                refuse_flat_cost(fidelity, self.steps, self._target, self.cost)

    def _take_outcomes(self, outcomes: object, subject_to: object, objective: object) -> None:
        """Take directions and limits from `outcomes`; a single objective is the same as `direction` and `objective`."""
        if objective is not None or self.direction != "maximize":
            said = f"objective={objective!r}" if objective is not None else f"direction={self.direction!r}"
            raise InvalidInput(
                f"{said} and outcomes are both given, and outcomes says what is optimized and in which direction. "
                f"Leave {said.partition('=')[0]} out."
            )
        directions, limits = checked_outcomes(outcomes)
        self.subject_to = merged_limits(limits, subject_to, directions)
        if len(directions) == 1:
            (self.objective, self.direction), *_ = directions.items()
        else:
            self.objectives, self.direction, self.objective = directions, None, None

    def __repr__(self) -> str:
        more = f", subject_to={self.subject_to!r}" if self.subject_to else ""
        more += "" if self.objective is None else f", objective={self.objective!r}"
        return (
            f"Problem({self.space!r}, {self.fidelity!r}, target={self.target!r}, "
            f"cost={'declared' if self.has_declared_cost else 'measured'}, {self._aims}{more})"
        )

    @property
    def _aims(self) -> str:
        if not self.objectives:
            return f"direction={self.direction!r}"
        reference = f", reference={self.reference!r}" if self.reference else ""
        return f"outcomes={dict(self.objectives)!r}{reference}"

    @property
    def aims(self) -> str:
        """What is optimized, in words: "minimize", or "minimize loss, maximize speed"."""
        if not self.objectives:
            return str(self.direction)
        return ", ".join(f"{towards} {name}" for name, towards in self.objectives.items())

    def _repr_html_(self) -> str:
        from boca.domain import html

        return html.problem(self)

    @property
    def target(self) -> Point:
        """The target fidelity, z*."""
        return dict(self._target)

    @property
    def first(self) -> list[Point]:
        """The points to begin with, complete."""
        return [dict(x) for x in self._first]

    @property
    def middle(self) -> Point:
        """The middle of the space; of a choice, the first option."""
        return _middle(self.space, {}, "middle")

    @property
    def has_declared_cost(self) -> bool:
        """Whether the cost is known; without fidelities, every query is at the target and costs one unit."""
        return self._cost is not None or not self.fidelity

    def cost(self, z: Mapping[str, Any]) -> float:
        """Return the declared cost of a query at z; if there is none, what is assumed before the first result."""
        if self._cost is None:
            return self.assumed_cost(z)
        try:
            cost = self._cost(dict(z))
        except Exception as error:
            read = error.args if isinstance(error, KeyError) else ()
            raise InvalidInput(
                f"cost(z) must return a positive number for every fidelity; at z={dict(z)!r} it raised {error!r}."
                f"{_swapped(read, self.space)}"
            ) from error
        try:
            number = finite_number(cost, "cost")
        except InvalidInput:
            number = math.nan
        if not number > 0:
            raise InvalidInput(f"cost(z) must be a positive finite number; got {cost!r} at z={dict(z)!r}.")
        return number

    def assumed_cost(self, z: Mapping[str, Any]) -> float:
        """Return the product of z_i / target_i, or of target_i / z_i if the target is the low end of a fidelity.

        This assumption only decides which fidelities are tried first, and measured.
        """
        return math.prod(self._assumed_share(name, z[name]) for name in self.fidelity)

    def _assumed_share(self, name: str, value: Any) -> float:
        parameter, target = self.fidelity[name], self._target[name]
        if parameter.ends is None:
            return 1.0 if value == target else _ASSUMED_COST_OF_OPTION
        power = self.cost_direction(name)
        if name == self.steps:
            return float(value / target)
        if parameter.ends[0] >= 0 and target > 0:
            return max(math.pow(value / target, power), _LEAST_ASSUMED_COST)
        u = parameter.to_unit([value, target])  # a range without a zero has no ratios: the cost grows along the scale
        return math.exp(power * float(u[0] - u[1]))

    def cost_direction(self, name: str) -> float:
        """Return 1 if a fidelity is assumed to cost more the higher it is, -1 if its target is the low end.

        An example of the second kind is a solver's tolerance.
        """
        ends = self.fidelity[name].ends
        is_low = ends is not None and self._target[name] == ends[0]
        return -1.0 if is_low and name != self.steps else 1.0

    def _refuse_steps(self) -> None:
        if self.objectives and self.steps is not None:
            raise InvalidInput(
                f"outcomes has the objectives {list(self.objectives)}, and the fidelity {self.steps!r} is boca.Steps, "
                "which is for one objective. Type boca.Int for it, and run every evaluation to its end."
            )

    # Steps ----------------------------------------------------------------------------------------------------------

    def step(self, z: Mapping[str, Any]) -> int:
        """Return the step of a fidelity; 0 if no fidelity is `Steps`."""
        return 0 if self.steps is None else int(z[self.steps])

    def at_step(self, z: Mapping[str, Any], step: int) -> Point:
        """Return a fidelity with its step replaced, which may be below the lowest one."""
        return {name: step if name == self.steps else value for name, value in z.items()}

    @cached_property
    def with_all_steps(self) -> Space:
        """The fidelities with steps from 1: what is below the lowest one may be reported and imported."""
        if self.steps is None or self._lowest_step == 1:
            return self.fidelity
        return Space({**self.fidelity, self.steps: from_one(self.fidelity[self.steps])})

    def is_modelled(self, z: Mapping[str, Any]) -> bool:
        """Whether a fidelity is one that says something about the target: not below the lowest step."""
        return self.steps is None or self.step(z) >= self._lowest_step

    @cached_property
    def _lowest_step(self) -> int:
        ends = None if self.steps is None else self.fidelity[self.steps].ends
        return 0 if ends is None else int(ends[0])

    def cost_from(self, z: Mapping[str, Any], start: int = 0) -> float:
        """Return the cost of going on to z from a step: cost(z) less that of z at the step; 0 is from scratch.

        z may be below the lowest step, where it costs a share of that.
        """
        return self.between(z, start, self.cost)

    def between(self, z: Mapping[str, Any], start: int, cost: Callable[[Point], float]) -> float:
        """Return the cost of going on to z from a step, by any function of z that states costs from scratch."""
        if self.steps is None:
            return cost(dict(z))
        return cost_between(start, self.step(z), self._lowest_step, lambda step: cost(self.at_step(z, step)))

    def is_target(self, z: Mapping[str, Any]) -> bool:
        return dict(z) == self._target

    def returned(self, given: Any, z: Mapping[str, Any] | None) -> Returned:
        """Return an evaluation's result at z by outcome, or refuse it; z is None for an imported result."""
        is_target = None if z is None else self.is_target(z)
        if self.objectives:
            return returned_objectives(given, self.objectives, self.subject_to, is_target=is_target)
        return returned(given, self.subject_to, self.objective, is_target=is_target)

    def variances(self, given: Any) -> dict[str, float]:
        """Return told variances by outcome, or refuse them; one number alone is that of the objective."""
        if self.objectives:
            return variances_by_name(given, [*self.outcomes])
        return by_outcome(given, self.subject_to, self.objective, "noise")

    def broken(self, outcomes: Mapping[str, float | None]) -> list[str]:
        """Return the outcomes that are not known to be within their limits."""
        told = ((name, limit, outcomes.get(name)) for name, limit in self.subject_to.items())
        return [name for name, limit, value in told if value is None or not limit.allows(value)]

    def exceeded(self, outcomes: Mapping[str, float | None]) -> list[str]:
        """Return the outcomes that are known to be outside their limits."""
        return [name for name in self.broken(outcomes) if outcomes.get(name) is not None]

    @cached_property
    def outcomes(self) -> Mapping[str, Problem]:
        """A problem for every outcome with a name: each of several objectives, and each limited outcome.

        For a limited outcome, more is better: further within its limit.
        """
        return {
            **{name: self._towards(direction) for name, direction in self.objectives.items()},
            **{name: self._of_outcome(limit) for name, limit in self.subject_to.items()},
        }

    @cached_property
    def success(self) -> Problem:
        """The problem of success, which is 1 where an evaluation completes and 0 where it fails."""
        return Problem(self.space, self.fidelity, cost=self._cost, target=self._target)

    def _of_outcome(self, limit: OutcomeLimit) -> Problem:
        towards: Direction = "minimize" if isinstance(limit, AtMost) else "maximize"
        return Problem(self.space, direction=towards) if limit.at == "any" else self._towards(towards)

    def _towards(self, direction: Direction) -> Problem:
        return Problem(self.space, self.fidelity, cost=self._cost, target=self._target, direction=direction)

    @cached_property
    def grid(self) -> tuple[list[Point], FloatArray]:  # m fidelities, Z (m, p)
        """The fidelities among which a strategy chooses, ends included, in a fixed order."""
        Z = _grid(self.fidelity)
        return [self.fidelity.from_unit(z) for z in Z], Z

    def grid_index(self, z: Mapping[str, Any]) -> int:
        """Return the index of a fidelity in the grid."""
        return self._grid_places[tuple(z.values())]

    @cached_property
    def _grid_places(self) -> dict[tuple[Any, ...], int]:
        return {tuple(z.values()): i for i, z in enumerate(self.grid[0])}

    @cached_property
    def grid_costs(self) -> FloatArray:  # (m,)
        """The declared cost of every point of the grid."""
        return np.array([self.cost(z) for z in self.grid[0]])

    @cached_property
    def target_cost(self) -> float:
        return self.cost(self.target)


def _middle(space: Space, values: Mapping[str, Any], what: str) -> Point:
    """Return the middle of the space, with the given values in their places; what these switch off is left out."""
    u = np.array([0.5 if parameter.is_ordered else 0.0 for parameter in space.values()])
    for j, (name, parameter) in enumerate(space.items()):
        if name in values:
            u[j] = parameter.to_unit([parameter.validate(values[name], f"{what}: {name}")])[0]
    return space.from_unit(space.snap(u[None, :])[0])


def _first_points(space: Space, first: Sequence[Mapping[str, Any]]) -> tuple[Point, ...]:
    """Return the points with what is left out filled up by the middle; each is named once."""
    if isinstance(first, str | Mapping) or not isinstance(first, Sequence):
        raise InvalidInput(
            f'first must be a list of mappings from name to value, such as [{{"lr": 0.1}}]; got {first!r}.'
        )
    points = []
    for k, given in enumerate(first):
        if not isinstance(given, Mapping) or set(given) - set(space):
            raise InvalidInput(
                f"first[{k}] must be a mapping with names of the space, which are {', '.join(map(repr, space))}; "
                f"got {given!r}. Leave out what should take the middle of its range."
            )
        filled = _middle(space, given, f"first[{k}]")
        x = space.validate({**filled, **given}, f"first[{k}]")
        inactive = [name for name in given if name not in x]
        if inactive:
            raise InvalidInput(f"first[{k}] gives {inactive}, inactive at {x!r}. Leave out what is inactive there.")
        violated = space.violated(x)
        if violated is not None:
            raise InvalidInput(
                f"first[{k}] is {x!r}, where the constraint {violated.words!r} does not hold. Give a point that "
                "satisfies every constraint, or leave it out."
            )
        if x not in points:
            points.append(x)
    return tuple(points)


def _swapped(names: Iterable[object], space: Space) -> str:
    """Return a hint if names that belong to a fidelity are parameters of the space; else nothing."""
    found = [name for name in names if name in space]
    if not found:
        return ""
    return f" {found[0]!r} is a parameter of space: were space and fidelity swapped? The space comes first."


def _target(space: Space, fidelity: Space, given: Mapping[str, Any]) -> Point:
    if not isinstance(given, Mapping):
        raise InvalidInput(f"target must map names of fidelities to values; got {given!r}.")
    unknown = [name for name in given if name not in fidelity]
    if unknown:
        raise InvalidInput(
            f"target may only name fidelities {list(fidelity)}; got {unknown}.{_swapped(unknown, space)}"
        )
    full: Point = {}
    for name, parameter in fidelity.items():
        if name in given:
            full[name] = given[name]
        elif parameter.ends is None:
            raise InvalidInput(
                f"target[{name!r}] is missing, and a Choice has no upper bound; give one of {list(parameter.options)}."
            )
        else:
            full[name] = parameter.ends[1]
    return fidelity.validate(full, "target")


def _grid(fidelity: Space) -> FloatArray:  # (m, p)
    p = len(fidelity)
    if p == 0:
        return np.empty((1, 0))
    if p in _GRID_POINTS_PER_AXIS:
        axes = [parameter.axis(_GRID_POINTS_PER_AXIS[p]) for parameter in fidelity.values()]
        return np.array(list(itertools.product(*axes)))
    from scipy.stats import qmc

    powers = math.ceil(math.log2(_SOBOL_FIDELITIES))
    sobol = fidelity.snap(qmc.Sobol(p, scramble=False).random_base2(powers)[:_SOBOL_FIDELITIES])
    ends = [np.array([0.0, 1.0]) if q.is_ordered else q.axis(0) for q in fidelity.values()]
    corners = np.array(list(itertools.islice(itertools.product(*ends), _MOST_CORNERS)))
    return np.unique(np.vstack([sobol, corners]), axis=0)
