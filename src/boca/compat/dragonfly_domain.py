"""Domains of Dragonfly, bounds or variables with a type, as a space; and points as its functions take them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.expression import Expression
from boca.domain.space import Choice, Float, Int, Parameter, Space
from boca.integrations.levels import Levels

Bounds: TypeAlias = Sequence[Sequence[float]]

_TYPES = ("float", "int", "discrete", "discrete_numeric", "boolean")
_CONFIGURED = ("name", "domain", "fidel_space", "fidel_to_opt", "domain_constraints", "fidel_space_constraints")


@dataclass(frozen=True)
class Variable:
    """One variable, which has one value, or a list of `dim` values."""

    name: str
    parameter: Parameter
    dim: int | None
    levels: Levels | None = None

    @property
    def names(self) -> list[str]:
        """The names of its parameters in the space."""
        return [self.name] if self.dim is None else [f"{self.name}[{i}]" for i in range(self.dim)]

    def value(self, point: Mapping[str, Any]) -> Any:
        """Return its value at a point of the space."""
        values = [point[name] if self.levels is None else self.levels.value(point[name]) for name in self.names]
        return values[0] if self.dim is None else values

    def coded(self, value: Any) -> dict[str, Any]:
        """Return the part of a point of the space that has this value."""
        values = [value] if self.dim is None else value
        if self.dim is not None and (not _is_list(value) or len(value) != self.dim):
            raise InvalidInput(f"{self.name} is {value!r}, and must be a list of {self.dim} values.")
        known = [_plain(one) for one in values]
        if self.levels is not None:
            known = [self.levels.index(one, self.name) for one in known]
        return dict(zip(self.names, known, strict=True))


@dataclass(frozen=True)
class Domain:
    """A space of variables in an order: a point is a list with one entry for each."""

    variables: tuple[Variable, ...]
    is_euclidean: bool
    """Whether it was given as bounds; a point is then an array."""
    constraints: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, given: Any, what: str, prefix: str, constraints: Sequence[Mapping[str, Any]] = ()) -> Domain:
        """Return a domain from bounds, from variables, or as it is."""
        if isinstance(given, Domain):
            return given
        if not isinstance(given, list | tuple | np.ndarray) or not len(given):
            raise InvalidInput(
                f"{what} is {given!r}, and must be a list of bounds, [[0, 1], [5, 10]], or what load_config returned."
            )
        is_euclidean = not isinstance(given[0], Mapping)
        if is_euclidean:
            variables = [_of_bounds(bounds, f"{prefix}{i}", f"{what}[{i}]") for i, bounds in enumerate(given)]
        else:
            variables = [_of_table(table, f"{prefix}{i}", f"{what}[{i}]") for i, table in enumerate(given)]
        names = [variable.name for variable in variables]
        if len(set(names)) < len(names):
            raise InvalidInput(f"{what} has the names {names}; each must be different.")
        limits = tuple(_constraint(table, i) for i, table in enumerate(constraints))
        return cls(tuple(variables), is_euclidean, limits)

    def space(self) -> Space:
        """Return the space in which boca searches."""
        space = Space({name: v.parameter for v in self.variables for name in v.names})
        for words, test in self.constraints:
            space = space.where(self._reading(test), words)
        return space

    def _reading(self, test: Any) -> Callable[[Mapping[str, Any]], bool]:
        """Return a constraint as a function of a point of the space."""
        if callable(test):
            return lambda coded: bool(test(self.point(coded)))
        scalars = [variable for variable in self.variables if variable.dim is None]
        try:
            expression = Expression.parse(test, [variable.name for variable in scalars])
        except InvalidInput as error:
            raise InvalidInput(f"{error} Or give a function of the point, which is a list.") from error
        return lambda coded: bool(expression({variable.name: variable.value(coded) for variable in scalars}))

    def point(self, coded: Mapping[str, Any]) -> Any:
        """Return a point as Dragonfly passes it to a function: an array, or a list of values in order."""
        values = [variable.value(coded) for variable in self.variables]
        return np.array(values, dtype=float) if self.is_euclidean else values

    def coded(self, point: Sequence[Any], what: str) -> dict[str, Any]:
        """Return a point of the space."""
        if not _is_list(point) or len(point) != len(self.variables):
            raise InvalidInput(f"{what} is {point!r}, and must have {len(self.variables)} entries, one per variable.")
        parts = [variable.coded(value) for variable, value in zip(self.variables, point, strict=True)]
        return {name: value for part in parts for name, value in part.items()}

    def renamed(self, names: set[str]) -> Domain:
        """Return the domain with other names where it shares some with another one."""
        if not any(variable.name in names for variable in self.variables):
            return self
        renamed = [Variable(f"fidel.{v.name}", v.parameter, v.dim, v.levels) for v in self.variables]
        return Domain(tuple(renamed), self.is_euclidean, self.constraints)


@dataclass(frozen=True)
class Config:
    """What a configuration says."""

    domain: Domain
    fidel_space: Domain | None = None
    fidel_to_opt: list[Any] | None = None
    name: str = "study"
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)


def load_config(parameters: Mapping[str, Any]) -> Config:
    """Return the configuration that a mapping describes, in the keys of Dragonfly."""
    if not isinstance(parameters, Mapping) or "domain" not in parameters:
        raise InvalidInput(f"config is {parameters!r}, and must be a mapping with the key 'domain'.")
    unknown = [key for key in parameters if key not in _CONFIGURED]
    if unknown:
        raise InvalidInput(f"config has the keys {unknown}; only {', '.join(_CONFIGURED)} are supported here.")
    if parameters.get("fidel_space_constraints"):
        raise InvalidInput(
            "config has fidel_space_constraints, and boca needs every combination of fidelities. "
            "Leave them out, and let fidel_cost_func say which combinations are expensive."
        )
    domain = Domain.of(_listed(parameters["domain"]), "domain", "x", parameters.get("domain_constraints", ()))
    fidelity = parameters.get("fidel_space")
    return Config(
        domain,
        None if fidelity is None else Domain.of(_listed(fidelity), "fidel_space", "z"),
        parameters.get("fidel_to_opt"),
        str(parameters.get("name", "study")),
        parameters,
    )


def load_config_file(file: str | Path) -> Config:
    """Return the configuration of a JSON file."""
    try:
        return load_config(json.loads(Path(file).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidInput(f"config is {str(file)!r}, and must be a file in JSON. It says: {error}.") from error


def _listed(given: Any) -> Any:
    """Return variables as a list: a file may have them by name."""
    if isinstance(given, Mapping):
        return [{"name": name, **table} for name, table in given.items()]
    return given


def _of_bounds(bounds: Any, name: str, what: str) -> Variable:
    if not _is_list(bounds) or len(bounds) != 2:
        raise InvalidInput(f"{what} is {bounds!r}, and must be a pair of bounds such as [0, 1].")
    return Variable(name, Float(float(bounds[0]), float(bounds[1])), None)


def _of_table(table: Any, name: str, what: str) -> Variable:
    if not isinstance(table, Mapping) or table.get("type") not in _TYPES:
        given = table.get("type") if isinstance(table, Mapping) else table
        raise InvalidInput(f"{what} has the type {given!r}, and must have one of {', '.join(_TYPES)}.")
    dim = table.get("dim", "")
    length = None if dim in ("", 1, None) else int(dim)
    name = str(table.get("name", name))
    kind = table["type"]
    needed = {"float": ("min", "max"), "int": ("min", "max"), "boolean": ()}.get(kind, ("items",))
    missing = [key for key in needed if key not in table]
    if missing:
        raise InvalidInput(f"{what} is {dict(table)!r}, and lacks {' and '.join(map(repr, missing))}.")
    if kind == "float":
        return Variable(name, Float(float(table["min"]), float(table["max"])), length)
    if kind == "int":
        return Variable(name, Int(int(table["min"]), int(table["max"])), length)
    if kind == "boolean":
        return Variable(name, Choice([False, True]), length)
    if kind == "discrete":
        return Variable(name, Choice(list(dict.fromkeys(table["items"]))), length)
    levels = Levels.of(_numbers(table["items"], what), what)
    return Variable(name, levels.parameter, length, levels)


def _numbers(items: Any, what: str) -> list[Any]:
    """Return the numbers of a list, or of a range such as "0:0.25:1", without its end."""
    if not isinstance(items, str):
        return [_plain(item) for item in items]
    try:
        start, step, end = (float(part) for part in items.split(":"))
        numbers = [float(number) for number in np.arange(start, end, step)]
    except (ValueError, ZeroDivisionError) as error:
        raise InvalidInput(f"{what} has the items {items!r}, and a range is written '0:0.25:1.01'.") from error
    return [round(number, 12) for number in numbers]


def _constraint(table: Any, i: int) -> tuple[str, Any]:
    if not isinstance(table, Mapping) or "constraint" not in table:
        raise InvalidInput(f"domain_constraints[{i}] is {table!r}, and must be a mapping with 'constraint'.")
    test = table["constraint"]
    if not callable(test) and not isinstance(test, str):
        raise InvalidInput(f"domain_constraints[{i}] is {test!r}, and must be a function of the point, or a text.")
    words = test if isinstance(test, str) else str(table.get("name", f"constraint {i}"))
    return words, test


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | np.ndarray)
