"""Parameters and spaces, and where their points lie in the unit cube.

This is the one place that converts between the values of the user and unit coordinates.  An `Int` is the lattice of
its integers in [0, 1], ends included.  A `Choice` is one coordinate whose codes only mean "same" or "different".  Both
convert exactly, so the model sees the point that is evaluated.
"""

from __future__ import annotations

import copy
import itertools
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain import shorthand
from boca.domain.conditions import INACTIVE, Branch, Conditions, When, branches_of
from boca.domain.constraints import Constraint, example_of, fixed_points
from boca.domain.errors import InvalidInput, flags
from boca.domain.expression import Expression

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.intp]
BoolArray: TypeAlias = NDArray[np.bool_]
Point: TypeAlias = dict[str, Any]
Kind: TypeAlias = Literal["float", "int", "choice", "steps"]

_WIDEST_INT = 2**52  # beyond, neighboring integers would share a unit coordinate
_LARGEST_LOG_INT = 2**45  # likewise on a log scale


def finite_number(value: object, what: str) -> float:
    """Return a finite float, or refuse the value; an array of one number is a number."""
    is_masked = _is_masked(value)
    if isinstance(value, np.ndarray | np.generic) and value.size == 1 and not is_masked:
        value = value.item()
    if isinstance(value, bool | str | bytes | complex) or value is None or is_masked:
        raise InvalidInput(f"{what} must be a finite number; got {value!r}.")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{what} must be a finite number; got {value!r}.") from error
    if not math.isfinite(number):
        raise InvalidInput(f"{what} must be a finite number; got {value!r}.")
    return number


def positive_number(value: object, what: str) -> float:
    """Return a finite float above zero, or refuse the value."""
    number = finite_number(value, what)
    if number <= 0.0:
        raise InvalidInput(f"{what} must be positive; got {value!r}.")
    return number


def non_negative_number(value: object, what: str) -> float:
    """Return a finite float that is not below zero, or refuse the value."""
    number = finite_number(value, what)
    if number < 0.0:
        raise InvalidInput(f"{what} must not be negative; got {value!r}.")
    return number


def _is_masked(value: object) -> bool:
    """Whether a value is what NumPy calls masked: missing, whatever number is behind the mask."""
    return isinstance(value, np.ndarray) and value.size == 1 and bool(getattr(value, "mask", False))


def whole_number(value: object, what: str) -> int:
    """Return an int, or refuse the value; a float without a fraction counts as one."""
    if isinstance(value, bool) or _is_masked(value):
        raise InvalidInput(f"{what} must be an integer; got {value!r}.")
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = finite_number(value, what)
    if number != int(number):
        raise InvalidInput(f"{what} must be an integer; got {value!r}.")
    return int(number)


def _check_bounds(low: float, high: float, log: bool, kind: str) -> None:
    if not low < high:
        raise InvalidInput(
            f"{kind} needs low < high; got low={low!r}, high={high!r}. "
            "A parameter with a single value belongs in your function, not in the space."
        )
    if log and low <= 0:
        raise InvalidInput(f"{kind} on a log scale needs low > 0; got low={low!r}. Raise low or drop log=True.")
    if log and not math.log(low) < math.log(high):
        raise InvalidInput(f"{kind} needs ends whose logarithms differ; got low={low!r}, high={high!r}. Drop log=True.")


@dataclass(frozen=True)
class Float:
    """A real number in [low, high]; `log=True` searches on a logarithmic scale."""

    kind: ClassVar[Kind] = "float"
    is_ordered: ClassVar[bool] = True
    options: ClassVar[tuple[Any, ...]] = ()

    low: float
    high: float
    log: bool = False
    when: When | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        flags(self, "log")
        _set_condition(self, self.when)
        object.__setattr__(self, "low", finite_number(self.low, "Float low"))
        object.__setattr__(self, "high", finite_number(self.high, "Float high"))
        _check_bounds(self.low, self.high, self.log, "Float")
        if not math.isfinite(self.high - self.low):
            raise InvalidInput(f"Float needs a finite width; got low={self.low!r}, high={self.high!r}. Rescale it.")

    def __repr__(self) -> str:
        return _shown(self)

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return self.low, self.high

    @property
    def levels(self) -> None:
        """How many values there are; None, because they are not countable."""
        return

    def axis(self, points: int) -> FloatArray:  # (k,)
        """Return at most `points` unit coordinates, evenly from end to end; for a choice, one per option."""
        return np.linspace(0.0, 1.0, points)

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "low": self.low, "high": self.high, "log": self.log, **_condition(self.when)}

    def validate(self, value: object, what: str) -> float:
        number = finite_number(value, what)
        if not self.low <= number <= self.high:
            raise InvalidInput(f"{what} must lie in [{self.low!r}, {self.high!r}]; got {value!r}.")
        return number

    def to_unit(self, values: Sequence[Any]) -> FloatArray:  # (n,) -> (n,)
        return _scale(np.asarray(values, dtype=float), self.low, self.high, self.log)

    def from_unit(self, u: float) -> float:
        if u <= 0.0 or u >= 1.0:  # the ends are hit exactly, not up to rounding
            return self.low if u <= 0.0 else self.high
        return float(min(max(_unscale(u, self.low, self.high, self.log), self.low), self.high))

    def snap(self, u: FloatArray) -> FloatArray:  # (n,) -> (n,)
        """Return the nearest coordinates that belong to a value."""
        return np.clip(u, 0.0, 1.0)

    def around(self, u: float) -> list[float]:
        """Return the coordinates of the values on either side of u."""
        return [u]

    def adjacent(self, u: float) -> list[float]:
        """Return the coordinates one discrete step away from the value at u."""
        return []


@dataclass(frozen=True)
class Int:
    """An integer in [low, high], both included."""

    kind: ClassVar[Kind] = "int"
    is_ordered: ClassVar[bool] = True
    options: ClassVar[tuple[Any, ...]] = ()

    low: int
    high: int
    log: bool = False
    when: When | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        flags(self, "log")
        _set_condition(self, self.when)
        object.__setattr__(self, "low", whole_number(self.low, "Int low"))
        object.__setattr__(self, "high", whole_number(self.high, "Int high"))
        _check_bounds(self.low, self.high, self.log, "Int")
        if max(self.high - self.low, -self.low, self.high) > (_LARGEST_LOG_INT if self.log else _WIDEST_INT):
            limit = "2**45 on a log scale" if self.log else "2**52"
            raise InvalidInput(
                f"Int needs bounds and a width of at most {limit}; got low={self.low}, high={self.high}. Use Float."
            )

    def __repr__(self) -> str:
        return _shown(self)

    @property
    def ends(self) -> tuple[int, int]:
        return self.low, self.high

    @property
    def levels(self) -> int:
        return self.high - self.low + 1

    def axis(self, points: int) -> FloatArray:
        if self.levels <= points:
            return self.to_unit(range(self.low, self.high + 1))
        return np.unique(self.snap(np.linspace(0.0, 1.0, points)))

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "low": self.low, "high": self.high, "log": self.log, **_condition(self.when)}

    def validate(self, value: object, what: str) -> int:
        number = whole_number(value, what)
        if not self.low <= number <= self.high:
            raise InvalidInput(f"{what} must lie in [{self.low}, {self.high}]; got {value!r}.")
        return number

    def to_unit(self, values: Sequence[Any]) -> FloatArray:
        return _scale(np.asarray(values, dtype=float), self.low, self.high, self.log)

    def from_unit(self, u: float) -> int:
        return int(min(max(round(_unscale(u, self.low, self.high, self.log)), self.low), self.high))

    def snap(self, u: FloatArray) -> FloatArray:
        inside = np.clip(u, 0.0, 1.0)
        return self.to_unit(np.clip(np.rint(_unscale(inside, self.low, self.high, self.log)), self.low, self.high))

    def around(self, u: float) -> list[float]:
        value = _unscale(min(max(u, 0.0), 1.0), self.low, self.high, self.log)
        return self._units(math.floor(value), math.ceil(value))

    def adjacent(self, u: float) -> list[float]:
        value = self.from_unit(u)
        return self._units(value - 1, value + 1)

    def _units(self, *values: int) -> list[float]:
        inside = sorted({value for value in values if self.low <= value <= self.high})
        return [float(u) for u in self.to_unit(inside)]


def _plain(option: Any) -> Any:
    """Return the value of a NumPy scalar, or of an Enum member that is also a string or a number."""
    if isinstance(option, np.generic):
        return option.item()
    return option.value if isinstance(option, Enum) and isinstance(option, str | int | float) else option


@dataclass(frozen=True)
class Choice:
    """One of several options without an order, such as names, flags or information sources.

    The options are plain values, because a storage returns such: a NumPy scalar or an Enum member that is also a string
    or a number is replaced by its value.
    """

    kind: ClassVar[Kind] = "choice"
    is_ordered: ClassVar[bool] = False
    log: ClassVar[bool] = False

    choices: tuple[Any, ...]
    when: When | None = None

    def __init__(self, choices: Sequence[Any], *, when: Mapping[str, Sequence[Any]] | None = None) -> None:
        if isinstance(choices, str) or not isinstance(choices, Sequence):
            raise InvalidInput(f"Choice needs a list of options; got {choices!r}.")
        options = tuple(_plain(option) for option in choices)
        for option in options:
            if option is not None and not isinstance(option, str | bool | int | float):
                raise InvalidInput(
                    f"Choice options must be strings, numbers, booleans or None, so that a study can be stored; "
                    f"got {option!r}. Use a name, and look the object up in your function."
                )
            if isinstance(option, float) and not math.isfinite(option):
                raise InvalidInput(f"Choice options must be finite; got {option!r}.")
        if len(options) < 2:
            raise InvalidInput(f"Choice needs at least two options; got {list(options)!r}.")
        if any(a == b for i, a in enumerate(options) for b in options[:i]):
            raise InvalidInput(f"Choice options must differ from each other; got {list(options)!r}.")
        object.__setattr__(self, "choices", options)
        _set_condition(self, when)

    def __repr__(self) -> str:
        return _shown(self)

    @property
    def options(self) -> tuple[Any, ...]:
        """The options; an ordered parameter has none."""
        return self.choices

    @property
    def ends(self) -> None:
        """A choice has no ends, because it has no order."""
        return

    @property
    def levels(self) -> int:
        return len(self.choices)

    def axis(self, points: int) -> FloatArray:
        return self.to_unit(self.choices)

    def to_json(self) -> dict[str, Any]:
        return {"type": self.kind, "choices": list(self.choices), **_condition(self.when)}

    def validate(self, value: object, what: str) -> Any:
        return self.choices[self._index(value, what)]

    def _index(self, value: object, what: str) -> int:
        for index, option in enumerate(self.choices):
            if option is value or (type(option) is type(value) and option == value):
                return index
        if isinstance(value, str | bool | int | float | np.generic):
            for index, option in enumerate(self.choices):  # 1 for 1.0, a NumPy string for a string
                if option == value:
                    return index
        raise InvalidInput(f"{what} must be one of {list(self.choices)!r}; got {value!r}.")

    def to_unit(self, values: Sequence[Any]) -> FloatArray:
        codes = [self._index(value, "a choice") for value in values]
        return np.asarray(codes, dtype=float) / (self.levels - 1)

    def from_unit(self, u: float) -> Any:
        return self.choices[round(min(max(u, 0.0), 1.0) * (self.levels - 1))]

    def snap(self, u: FloatArray) -> FloatArray:
        """Cut [0, 1] into equal parts, so that a uniform draw favors no option."""
        u = np.clip(u, 0.0, 1.0)
        codes = np.minimum(np.floor(u * self.levels), self.levels - 1)
        already = np.rint(u * (self.levels - 1))
        exact = already / (self.levels - 1) == u  # the coordinate of an option stays
        return np.asarray(np.where(exact, already, codes) / (self.levels - 1), dtype=float)

    def around(self, u: float) -> list[float]:
        return [u]

    def adjacent(self, u: float) -> list[float]:
        here = round(u * (self.levels - 1))
        return [code / (self.levels - 1) for code in range(self.levels) if code != here]


Parameter: TypeAlias = Float | Int | Choice
"""All have `kind`, `is_ordered`, `options` (empty if ordered), `ends` (None if not), `log`, `levels`, `when` (None if
always active) and `to_json`."""


def _set_condition(parameter: Parameter, when: Mapping[str, Sequence[Any]] | None) -> None:
    object.__setattr__(parameter, "when", when if when is None or isinstance(when, When) else When(when))


def _condition(when: When | None) -> dict[str, Any]:
    return {} if when is None else {"when": when.to_json()}


def _shown(parameter: Parameter) -> str:
    """Return a parameter as code, its condition only if it has one."""
    names = ["choices"] if isinstance(parameter, Choice) else ["low", "high", "log"]
    values = [f"{name}={getattr(parameter, name)!r}" for name in names]
    values += [] if parameter.when is None else [f"when={parameter.when!r}"]
    return f"{type(parameter).__name__}({', '.join(values)})"


def parameter_from_json(described: Mapping[str, Any]) -> Parameter:
    """Return the parameter that `to_json` described."""
    when = described.get("when")
    if described["type"] == "choice":
        return Choice(described["choices"], when=when)
    if described["type"] == "steps":
        from boca.domain.steps import Steps  # which is an Int

        return Steps(described["low"], described["high"], log=described["log"], when=when)
    kind = Float if described["type"] == "float" else Int
    return kind(described["low"], described["high"], log=described["log"], when=when)


def _parameter(typed: object, name: str) -> Parameter:
    """Return the parameter that the user typed, as a parameter or as a short form of one."""
    if isinstance(typed, Parameter):
        return typed
    described = shorthand.described(typed, name)
    try:
        return parameter_from_json(described)
    except InvalidInput as error:
        raise InvalidInput(f"Parameter {name!r}: {error}") from error


def _scale(values: FloatArray, low: float, high: float, log: bool) -> FloatArray:
    if log:
        values, low, high = np.log(values), math.log(low), math.log(high)
    return np.clip((values - low) / (high - low), 0.0, 1.0)


def _unscale(u: Any, low: float, high: float, log: bool) -> Any:
    if log:
        return np.exp(math.log(low) + u * (math.log(high) - math.log(low)))
    return low + u * (high - low)


class Space(Mapping[str, Parameter]):
    """A read-only mapping from name to parameter; its order is the order of the coordinates.

    A tuple of two integers stands for an `Int`, one with a float for a `Float`; a third entry "log" sets the scale.  A
    list stands for a `Choice`.
    """

    def __init__(self, parameters: Mapping[str, Any] | None = None, /, **named: Any) -> None:
        if parameters is not None and not isinstance(parameters, Mapping):
            raise InvalidInput(f"Space takes a mapping from name to parameter, or keywords; got {parameters!r}.")
        twice = [name for name in named if name in (parameters or {})]
        if twice:
            raise InvalidInput(
                f"Space needs every name once; got {twice} both in the mapping and as keywords. "
                "To replace a parameter, give Space({**parameters, name: parameter})."
            )
        given = {**(parameters or {}), **named}
        for name in given:
            if not isinstance(name, str) or not name:
                raise InvalidInput(f"A parameter's name must be a non-empty string; got {name!r}.")
        self._parameters = {name: _parameter(typed, name) for name, typed in given.items()}
        self._conditions = Conditions.of(self._parameters)
        self.constraints: tuple[Constraint, ...] = ()
        self._example: Point | None = None
        self.described_labels: tuple[str, ...] = ()
        self._optional = np.array([parameter.when is not None for parameter in self._parameters.values()], dtype=bool)
        self.is_continuous = all(isinstance(parameter, Float) for parameter in self._parameters.values())
        self.has_choices = any(isinstance(parameter, Choice) for parameter in self._parameters.values())

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __hash__(self) -> int:
        return hash((tuple(self._parameters.items()), self._known_constraints()))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Space)
            and tuple(self.items()) == tuple(other.items())
            and self._known_constraints() == other._known_constraints()
        )

    def _known_constraints(self) -> tuple[tuple[str, str], ...]:
        return tuple((constraint.words, constraint.fingerprint) for constraint in self.constraints)

    def __repr__(self) -> str:
        limits = "".join(f".where({constraint.words!r})" for constraint in self.constraints)
        return f"Space({', '.join(f'{name}={parameter!r}' for name, parameter in self.items())}){limits}"

    # What exists ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names that a point may have: of the parameters, and of labels that no model sees."""
        return *self, *self.described_labels

    @property
    def is_list(self) -> bool:
        """Whether the points are the rows of a list, as those of `Candidates` are."""
        return False

    @property
    def repeats(self) -> bool:
        """Whether a point may be run again at a fidelity where it has a result."""
        return True

    @property
    def is_box(self) -> bool:
        """Whether every combination of values is a point."""
        return self._conditions is None and not self.constraints and not self.is_list

    @property
    def restriction(self) -> str:
        """What makes the space no box, in words."""
        if self.is_list:
            return "a list of candidates"
        return "conditions" if self._conditions is not None else "known constraints"

    @property
    def switches(self) -> BoolArray:  # (d,)
        """Which parameters are named by a condition of another one."""
        return np.zeros(len(self), dtype=bool) if self._conditions is None else self._conditions.switches

    @property
    def optional(self) -> BoolArray:  # (d,)
        """Which parameters may be inactive."""
        return self._optional

    @cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The sets of parameters that are active together; without conditions there is one, of all parameters."""
        if self._conditions is None:
            return (Branch(np.ones(len(self), dtype=bool), np.full((1, len(self)), math.nan)),)
        layouts = self._conditions.layouts
        if layouts is None:
            layouts = self._conditions.layouts_of(self.snap(fixed_points(len(self))))
        return branches_of(layouts)

    @cached_property
    def widest(self) -> int:
        """How many parameters are active together at most."""
        return max(int(branch.active.sum()) for branch in self.branches)

    def _repr_html_(self) -> str:
        from boca.domain import html

        return html.space(self, f"{len(self)} parameter{'' if len(self) == 1 else 's'}")

    @property
    def size(self) -> int | float:
        """How many points there are, those outside of constraints included; infinite if one parameter is a Float."""
        levels = [p.levels for p in self.values()]
        if None in levels:
            return math.inf
        known = [level for level in levels if level is not None]
        layouts = None if self._conditions is None else self._conditions.layouts
        if layouts is None:
            return math.prod(known)
        return sum(math.prod(known[j] for j in np.flatnonzero(np.isnan(row))) for row in layouts)

    def points(self) -> FloatArray:  # (k, d)
        """Return every point of a finite space that its constraints allow, in unit coordinates."""
        axes = [p.axis(p.levels) for p in self.values() if p.levels is not None]
        if len(axes) < len(self):
            raise InvalidInput(f"Only a finite space can be listed; got {self!r}.")
        layouts = None if self._conditions is None else self._conditions.layouts
        if layouts is None:
            every = np.array(list(itertools.product(*axes)))
        else:
            of = (
                itertools.product(*(axes[j] if math.isnan(u) else [u] for j, u in enumerate(row.tolist())))
                for row in layouts
            )
            every = np.array(list(itertools.chain.from_iterable(of)))
        return every[self.feasible(every)] if self.constraints else every

    # Known constraints ----------------------------------------------------------------------------------------------

    def where(
        self,
        test: Callable[[Point], bool] | str,
        words: str | None = None,
        *,
        example: Mapping[str, Any] | None = None,
    ) -> Self:
        """Return the space with one more known constraint: only points at which it holds are suggested.

        Args:
            test: a function of x that returns True or False, or an expression such as "a + b <= 1".
            words: the constraint in words, which a study stores and shows; an expression needs none.
            example: a point that satisfies every constraint; needed if 131,072 tries find none.
        """
        if isinstance(test, str):
            words = test if words is None else words
            test = Expression.parse(test, self.names)
        constraint = Constraint.checked(test, words, self)
        narrower = self._narrowed(constraint)
        narrower._example = example_of(narrower, example, self._example)
        return narrower

    def described(
        self, known: Sequence[tuple[str, str]], *, labels: Sequence[str] = (), optional: Sequence[str] = ()
    ) -> Self:
        """Return the space as those see it who read a stored study.

        Args:
            known: words and fingerprints of its constraints.
            labels: names in x that no model sees.
            optional: parameters that may be inactive, although no condition says when.
        """
        described = copy.copy(self)
        described.described_labels = tuple(labels)
        described._optional = self._optional | np.array([name in optional for name in self], dtype=bool)
        described.constraints = tuple(Constraint(None, words, fingerprint) for words, fingerprint in known)
        return described

    def _narrowed(self, constraint: Constraint) -> Self:
        """Return a copy with one more constraint."""
        narrower = copy.copy(self)
        narrower.constraints = (*self.constraints, constraint)
        return narrower

    @property
    def example(self) -> Point | None:
        """A point that satisfies every constraint; None if there are none."""
        return None if self._example is None else dict(self._example)

    def violated(self, point: Mapping[str, Any]) -> Constraint | None:
        """Return the first constraint that does not hold at a point."""
        return next((constraint for constraint in self.constraints if not constraint.holds(point)), None)

    def feasible(self, U: FloatArray) -> BoolArray:  # (m, d) -> (m,)
        """Return at which points every constraint holds."""
        if not self.constraints:
            return np.ones(len(U), dtype=bool)
        return np.array([self.violated(self._at(u)) is None for u in U.tolist()], dtype=bool)

    # Points -----------------------------------------------------------------------------------------------------------

    def validate(self, point: Mapping[str, Any], what: str) -> Point:
        """Return the point with every value in its canonical type, or refuse it; inactive parameters are left out."""
        if not isinstance(point, Mapping):
            raise InvalidInput(f"{what} must be a mapping with the names {list(self)}; got {point!r}.")
        unknown = [name for name in point if name not in self._parameters]
        if self._conditions is not None and not unknown:
            return self._validate_active(self._conditions, point, what)
        missing = [name for name in self if name not in point]
        if missing or unknown:
            raise InvalidInput(
                f"{what} must have exactly the names {list(self)}; "
                f"missing: {missing or 'none'}, unknown: {unknown or 'none'}."
            )
        return {name: parameter.validate(point[name], f"{what}[{name!r}]") for name, parameter in self.items()}

    def _validate_active(self, conditions: Conditions, point: Mapping[str, Any], what: str) -> Point:
        names = list(self)
        active: Point = {}
        units: dict[int, float] = {}
        for j in conditions.order:
            name, parameter = names[j], self[names[j]]
            if not conditions.is_active(j, units):
                continue
            if name not in point:
                condition = "" if parameter.when is None else f", which is active when {parameter.when!r}"
                raise InvalidInput(
                    f"{what} has no {name!r}{condition}; got {dict(point)!r}. "
                    f"x holds every active parameter: give {name!r} too."
                )
            active[name] = parameter.validate(point[name], f"{what}[{name!r}]")
            if conditions.switches[j]:
                units[j] = float(parameter.to_unit([active[name]])[0])
        return {name: active[name] for name in self if name in active}

    def to_unit(self, points: Sequence[Mapping[str, Any]]) -> FloatArray:  # n points -> (n, d)
        """Return unit coordinates; those of inactive parameters are `INACTIVE`."""
        if self.optional.any():
            return self._to_unit_active(points)
        columns = [parameter.to_unit([point[name] for point in points]) for name, parameter in self.items()]
        return np.column_stack(columns) if columns else np.empty((len(points), 0))

    def _to_unit_active(self, points: Sequence[Mapping[str, Any]]) -> FloatArray:
        U = np.full((len(points), len(self)), INACTIVE)
        for j, (name, parameter) in enumerate(self.items()):
            here = [i for i, point in enumerate(points) if name in point]
            U[here, j] = parameter.to_unit([points[i][name] for i in here])
        return U

    def from_unit(self, u: FloatArray) -> Point:  # (d,) -> a point
        return self._at(np.asarray(u, dtype=float).tolist())

    def _at(self, u: Sequence[float]) -> Point:
        pairs = zip(self._parameters.items(), u, strict=True)
        if self._conditions is None:
            return {name: parameter.from_unit(v) for (name, parameter), v in pairs}
        return {name: parameter.from_unit(v) for (name, parameter), v in pairs if v >= 0.0}

    def columns(self, U: FloatArray) -> dict[str, Any]:  # (m, d) -> name to (m,)
        """Return the values of many points by name; every parameter must be active at them."""
        return {
            name: np.array([parameter.from_unit(u) for u in U[:, j].tolist()])
            for j, (name, parameter) in enumerate(self.items())
        }

    def snap(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m, d)
        """Return the nearest combination of values for every row, whether constraints allow it or not.

        A parameter that is active and has no coordinate takes the middle of its range.
        """
        if self.is_continuous:
            return np.minimum(np.maximum(U, 0.0), 1.0)
        if self._conditions is not None:
            U = np.where(U < 0.0, 0.5, U)
        snapped = np.empty_like(U, dtype=float)
        for j, parameter in enumerate(self.values()):
            snapped[:, j] = parameter.snap(U[:, j])
        if self._conditions is not None:
            snapped[~self._conditions.active(snapped)] = INACTIVE
        return snapped
