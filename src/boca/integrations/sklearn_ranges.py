"""Ranges of scikit-learn users as a space, fidelities and a cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boca.domain import shorthand
from boca.domain.errors import InvalidInput
from boca.domain.problem import CostFunction
from boca.domain.shorthand import is_number
from boca.domain.space import Choice, Float, Int, Parameter, Point, Space, parameter_from_json

SAMPLES = "n_samples"
_SWITCH = "space"  # the name of the choice among the mappings of a list


@dataclass(frozen=True)
class Settings:
    """What is searched: parameters that vary, ones that do not, and the objects that options stand for.

    A list of mappings is one space: a choice named `switch` says which of them a point belongs to, and what only some
    of them have is active there.  A name that has other ranges in other mappings is several parameters.
    """

    free: Space
    fixed: Point
    named: dict[str, dict[str, Any]]
    switch: str | None = None
    fixed_in: tuple[Point, ...] = ()
    meant: Mapping[str, str] = field(default_factory=dict)
    """The name that the estimator has for a parameter whose name is used more than once."""

    @classmethod
    def read(cls, given: object, known: set[str]) -> Settings:
        if isinstance(given, list) and given:
            return cls._several(given, known)
        free, fixed, named = cls._one(given, known)
        if isinstance(given, Space) and given.constraints:
            return cls(given, {}, {})
        if not free:
            raise InvalidInput(f"space must have at least one parameter that varies; got {given!r}.")
        return cls(Space(free), fixed, named)

    @classmethod
    def _several(cls, given: list[Any], known: set[str]) -> Settings:
        parts = [cls._one(one, known) for one in given]
        if len(parts) == 1:
            return cls.read(given[0], known)
        switch = _SWITCH
        while switch in known:
            switch += "_"
        free: dict[str, Parameter] = {}
        owners: dict[str, list[int]] = {}
        named: dict[str, dict[str, Any]] = {}
        meant: dict[str, str] = {}
        for i, (own, _, objects) in enumerate(parts):
            for name, parameter in own.items():
                same = (key for key in free if meant[key] == name and free[key] == parameter)
                key = next(same, name if name not in free else f"{name} [{i}]")
                free[key], meant[key] = parameter, name
                owners.setdefault(key, []).append(i)
                named |= {key: objects[name]} if name in objects else {}
        whole = {
            key: parameter if len(owners[key]) == len(parts) else _only_in(parameter, switch, owners[key])
            for key, parameter in free.items()
        }
        space = Space({switch: Choice(range(len(parts))), **whole})
        return cls(space, {}, named, switch, tuple(fixed for _, fixed, _ in parts), meant)

    @staticmethod
    def _one(given: object, known: set[str]) -> tuple[dict[str, Parameter], Point, dict[str, dict[str, Any]]]:
        """Return the parameters of one mapping that vary, the others, and the objects that options stand for."""
        free: dict[str, Parameter] = {}
        fixed: Point = {}
        named: dict[str, dict[str, Any]] = {}
        for name, value in _entries(given, "space", known):
            options = list(value) if isinstance(value, list | np.ndarray) else None
            if options is None:
                free[name] = _range(value, f"space[{name!r}]", log=False)
            elif len(options) == 1:
                fixed[name] = options[0]
            else:
                free[name], objects = _choice(options)
                named.update({name: objects} if objects else {})
        return free, fixed, named

    def of(self, x: Mapping[str, Any]) -> Point:
        """Return the settings of the estimator at x."""
        fixed = self.fixed if self.switch is None else self.fixed_in[x[self.switch]]
        return fixed | {
            self.meant.get(name, name): self.named.get(name, {}).get(value, value)
            for name, value in x.items()
            if name != self.switch
        }


def _only_in(parameter: Parameter, switch: str, owners: list[int]) -> Parameter:
    """Return a parameter that is active only in these mappings of the list."""
    return parameter_from_json(parameter.to_json() | {"when": {switch: owners, **(parameter.when or {})}})


def _entries(given: object, what: str, known: set[str]) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a mapping from name to range; refuse a name that the estimator does not have."""
    if not isinstance(given, Mapping):
        or_list = ", or a list of such" if what == "space" else ""
        raise InvalidInput(f"{what} must be a mapping from name to range{or_list}; got {given!r}.")
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(
                f"{what} names {name!r}, which is not a parameter of the estimator; it has "
                f"{', '.join(sorted(known)) or 'none'}."
            )
        yield name, value


def _choice(options: list[Any]) -> tuple[Choice, dict[str, Any]]:
    """Return a choice among options; those that a study cannot store, such as estimators, are named by their text."""
    try:
        return Choice(options), {}
    except InvalidInput:
        return Choice([repr(option) for option in options]), {repr(option): option for option in options}


def _range(value: Any, what: str, *, log: bool) -> Parameter:
    """Return the parameter that a range means; `log` puts tuples of positive numbers on a log scale."""
    if isinstance(value, Parameter):
        return value
    if isinstance(value, tuple) and len(value) in (2, 3) and all(is_number(end) for end in value[:2]):
        described = shorthand.described(value, what)
        return parameter_from_json(described | {"log": described["log"] or (log and described["low"] > 0)})
    if callable(getattr(value, "support", None)) and hasattr(value, "dist"):
        return _from_distribution(value, what)
    raise InvalidInput(
        f"{what} must be a boca.Float, Int or Choice, a tuple of two numbers (low, high), a list of options or a "
        f"frozen distribution of scipy.stats; got {value!r}."
    )


def _from_distribution(frozen: Any, what: str) -> Parameter:
    """Return the bounds of a distribution; its shape between them is not used."""
    from scipy.stats import rv_discrete

    low, high = (float(end) for end in frozen.support())
    if not (math.isfinite(low) and math.isfinite(high)):
        raise InvalidInput(
            f"{what}: scipy.stats.{frozen.dist.name} lies in [{low}, {high}], and a range needs finite bounds. "
            "Pass boca.Float(low, high), with log=True for orders of magnitude."
        )
    if isinstance(frozen.dist, rv_discrete):
        return Int(low, high)  # type: ignore[arg-type]  # floats without fraction
    return Float(low, high, log=frozen.dist.name in ("loguniform", "reciprocal"))


def fidelities_of(given: object, known: set[str], n: int) -> tuple[Space, Point]:
    """Return the fidelities that vary, and the target, which also has those that do not."""
    free: dict[str, Parameter] = {}
    full: Point = {}
    for name, value in _entries({} if given is None else given, "fidelity", known | {SAMPLES}):
        what = f"fidelity[{name!r}]"
        ends = tuple(value) if isinstance(value, list) else value
        parameter = _samples(ends, what, n) if name == SAMPLES else _range(ends, what, log=True)
        if parameter is None:
            full[name] = n
        elif parameter.ends is None:
            raise InvalidInput(f"{what} must be a range, whose upper end is the target; got {value!r}.")
        else:
            full[name] = parameter.ends[1]
            free[name] = parameter
    return Space(free), full


def _samples(value: Any, what: str, n: int) -> Parameter | None:
    """Return the range of the number of samples; None if even its lower end is all of them."""
    low: Any
    high: Any
    if isinstance(value, Parameter) and value.kind == "int" and value.ends is not None:
        (low, high), log = value.ends, value.log
    else:
        (low, high), log = _pair(value, what), True
    high = n if high is None else min(high, n)
    return None if low >= n else Int(low, high, log=log)


def _pair(value: Any, what: str) -> tuple[Any, Any]:
    is_pair = isinstance(value, tuple) and len(value) == 2
    if not is_pair or not all(isinstance(end, int | np.integer) for end in value if end is not None) or not value[0]:
        raise InvalidInput(
            f"{what} must be (low, high) in whole numbers of samples, with high=None for all, or a boca.Int; "
            f"got {value!r}."
        )
    return value[0], value[1]


def cost_of(given: Any, fidelity: Space, full: Point) -> CostFunction | None:
    """Return the cost as a function of the fidelities that vary; None if it is measured."""
    if given == "measured":
        return None
    if callable(given):
        return lambda z: given({**full, **z})
    if given != "product":
        raise InvalidInput(f"cost must be 'product', 'measured' or a function of the fidelities; got {given!r}.")
    for name, parameter in fidelity.items():
        if parameter.ends is not None and not parameter.ends[0] > 0:
            raise InvalidInput(
                f"The fidelity {name!r} starts at {parameter.ends[0]!r}; cost='product' needs fidelities above zero. "
                "Raise its lower end, or pass cost='measured' or a function."
            )
    return lambda z: math.prod(value / full[name] for name, value in z.items())
