"""Conditions: which parameters of a space are active at a point.

A parameter with `when={"kernel": ["rbf", "sigmoid"]}` is active where the parameter `kernel` is active and has one of
these values.  The coordinate of an inactive parameter is `INACTIVE`, outside of the unit cube, so two points that would
differ in nothing else are one.

symbol   shape    meaning
U        (m, d)   unit coordinates of points
A        (m, d)   whether each parameter is active
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.errors import InvalidInput

FloatArray: TypeAlias = NDArray[np.float64]
BoolArray: TypeAlias = NDArray[np.bool_]

INACTIVE = -1.0
_MOST_LAYOUTS = 4096  # combinations of the parameters that conditions name; a space with more is sampled


class When(Mapping[str, tuple[Any, ...]]):
    """The condition of one parameter: names of others, and the values of these at which it is active."""

    def __init__(self, given: object) -> None:
        example = "when={'kernel': ['rbf', 'sigmoid']}"
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(f"when must map names of parameters to lists of values; got {given!r}. Type {example}.")
        for name, values in given.items():
            if not isinstance(name, str) or isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise InvalidInput(
                    f"when[{name!r}] must be a list with at least one value; got {values!r}. Type {example}."
                )
        self._values = {name: tuple(values) for name, values in given.items()}

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mapping) and self.to_json() == {k: list(v) for k, v in other.items()}

    def __repr__(self) -> str:
        return repr(self.to_json())

    def to_json(self) -> dict[str, list[Any]]:
        return {name: list(values) for name, values in self._values.items()}


class Conditional(Protocol):
    """What a condition needs of a parameter."""

    @property
    def when(self) -> When | None: ...
    @property
    def levels(self) -> int | None: ...
    def axis(self, points: int, /) -> FloatArray: ...
    def validate(self, value: object, what: str, /) -> Any: ...
    def to_unit(self, values: Sequence[Any], /) -> FloatArray: ...
    def snap(self, u: FloatArray, /) -> FloatArray: ...


@dataclass(frozen=True)
class Branch:
    """The points with one set of active parameters."""

    active: BoolArray  # (d,)
    layouts: FloatArray  # (k, d): the parameters that conditions name, NaN for other active ones


@dataclass(frozen=True)
class Conditions:
    """The conditions of all parameters of a space."""

    parameters: tuple[Conditional, ...]
    order: tuple[int, ...]
    """The parameters, those that a condition names before those that have it."""
    rules: tuple[tuple[tuple[int, FloatArray], ...], ...]
    """For each parameter: which others its condition names, and their unit coordinates at which it is active."""

    @classmethod
    def of(cls, parameters: Mapping[str, Conditional]) -> Conditions | None:
        """Return the conditions of the parameters; None if there are none."""
        if all(parameter.when is None for parameter in parameters.values()):
            return None
        names = list(parameters)
        rules = tuple(
            tuple((names.index(parent), allowed) for parent, allowed in _allowed(name, parameters))
            for name in parameters
        )
        return cls(tuple(parameters.values()), tuple(_order(names, rules)), rules)

    @cached_property
    def switches(self) -> BoolArray:  # (d,)
        """Which parameters are named by a condition."""
        named = {parent for rule in self.rules for parent, _ in rule}
        return np.array([j in named for j in range(len(self.rules))])

    @cached_property
    def optional(self) -> BoolArray:  # (d,)
        """Which parameters have a condition."""
        return np.array([bool(rule) for rule in self.rules])

    def active(self, U: FloatArray) -> BoolArray:  # (m, d) -> (m, d)
        """Return which parameters are active; the coordinates of the others do not matter."""
        A = np.ones(U.shape, dtype=bool)
        for j in self.order:
            for parent, allowed in self.rules[j]:
                here = self.parameters[parent].snap(U[:, parent])
                A[:, j] &= A[:, parent] & np.isin(here, allowed)
        return A

    def is_active(self, j: int, values: Mapping[int, float]) -> bool:
        """Whether a parameter is active, given the coordinates of those that its condition names, if active."""
        return all(parent in values and bool(np.isin(values[parent], allowed)) for parent, allowed in self.rules[j])

    @cached_property
    def layouts(self) -> FloatArray | None:  # (k, d)
        """Every combination of the switches: inactive ones are `INACTIVE`, active parameters beside them NaN.

        None if there are more than can be listed.
        """
        rows = [np.full(len(self.rules), math.nan)]
        for j in self.order:
            grown = []
            for row in rows:
                if not all(np.isin(row[parent], allowed) for parent, allowed in self.rules[j]):
                    values = [INACTIVE]
                else:
                    levels = self.parameters[j].levels
                    values = self.parameters[j].axis(levels or 0).tolist() if self.switches[j] else [math.nan]
                for value in values:
                    grown.append(row.copy())
                    grown[-1][j] = value
            rows = grown
            if len(rows) > _MOST_LAYOUTS:
                return None
        return np.array(rows)

    def layouts_of(self, U: FloatArray) -> FloatArray:  # (m, d) -> (k, d)
        """Return the layouts of these points, each once."""
        kept = np.where(self.switches | ~self.active(U), U, 0.5)
        distinct = np.unique(kept, axis=0)
        free = ~self.switches & (distinct >= 0.0)
        return np.where(free, math.nan, distinct)


def branches_of(layouts: FloatArray) -> tuple[Branch, ...]:
    """Group layouts by the parameters that are active."""
    groups: dict[bytes, list[FloatArray]] = {}
    for row in layouts:
        groups.setdefault((~(row < 0.0)).tobytes(), []).append(row)
    return tuple(Branch(~(rows[0] < 0.0), np.array(rows)) for rows in groups.values())


def _allowed(name: str, parameters: Mapping[str, Conditional]) -> Iterator[tuple[str, FloatArray]]:
    """Yield which parameters a condition names, with the coordinates of their values; refuse what cannot be met."""
    when = parameters[name].when
    for parent, values in (when or {}).items():
        what = f"Parameter {name!r}: when[{parent!r}]"
        others = [other for other in parameters if other != name]
        if parent not in others:
            raise InvalidInput(f"{what} names no other parameter of the space; it has {others}. Name one of these.")
        if parameters[parent].levels is None:
            raise InvalidInput(
                f"{what} names a Float, and a condition lists values. "
                f"Give {parent!r} as a Choice or an Int, or use a constraint: space.where(...)."
            )
        canonical = [parameters[parent].validate(value, what) for value in values]
        yield parent, parameters[parent].to_unit(canonical)


def _order(names: Sequence[str], rules: Sequence[Sequence[tuple[int, FloatArray]]]) -> list[int]:
    """Return the parameters so that each comes after those that its condition names."""
    order: list[int] = []
    left = list(range(len(rules)))
    while left:
        ready = [j for j in left if all(parent in order for parent, _ in rules[j])]
        if not ready:
            raise InvalidInput(
                f"The conditions of {[names[j] for j in left]} form a circle, so none of them can be decided first. "
                "Remove one of these conditions."
            )
        order += ready
        left = [j for j in left if j not in ready]
    return order
