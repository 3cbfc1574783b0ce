"""Outcomes beside the objective: limits on them, and what one evaluation returned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from boca.domain.errors import InvalidInput, one_of
from boca.domain.observation import OBJECTIVE
from boca.domain.space import finite_number

At: TypeAlias = Literal["target", "any"]
"""Where an outcome counts.  "target": there, and cheaper fidelities may leave it out.  "any": it is the same at all
fidelities, such as the size of a part."""

SUCCESS: Final = "success"
"""The name under which a success model stands in `why`, beside the outcomes that have limits."""

_LONGEST_NOTE = 300  # characters of a note that is no JSON, which is kept as text


@dataclass(frozen=True)
class AtMost:
    """A limit on an outcome: at the target it must not be above `bound`."""

    bound: float
    at: At = "target"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", finite_number(self.bound, "The bound of AtMost"))
        one_of(self.at, get_args(At), "at")

    def allows(self, value: float) -> bool:
        return value <= self.bound

    def __str__(self) -> str:
        return f"at most {self.bound:.6g}"


@dataclass(frozen=True)
class AtLeast:
    """A limit on an outcome: at the target it must not be below `bound`."""

    bound: float
    at: At = "target"

    def __post_init__(self) -> None:
        object.__setattr__(self, "bound", finite_number(self.bound, "The bound of AtLeast"))
        one_of(self.at, get_args(At), "at")

    def allows(self, value: float) -> bool:
        return value >= self.bound

    def __str__(self) -> str:
        return f"at least {self.bound:.6g}"


OutcomeLimit: TypeAlias = AtMost | AtLeast


@dataclass(frozen=True)
class Returned:
    """What an evaluation returned: numbers by outcome, the objective last, and the rest as notes."""

    values: Mapping[str, float]
    notes: Mapping[str, Any]


def checked_limits(subject_to: object) -> dict[str, OutcomeLimit]:
    """Return the limits by outcome, or refuse them."""
    if subject_to is None:
        return {}
    if not isinstance(subject_to, Mapping):
        raise InvalidInput(
            f"subject_to is {subject_to!r}, and must map names of outcomes to limits. "
            "Type subject_to={'latency': boca.AtMost(20.0)}."
        )
    for name, limit in subject_to.items():
        refuse_name(name, "subject_to")
        if not isinstance(limit, AtMost | AtLeast):
            raise InvalidInput(
                f"subject_to[{name!r}] is {limit!r}, and must be a limit. Type boca.AtMost(20.0) or boca.AtLeast(0.9)."
            )
    return dict(subject_to)


def refuse_name(name: object, argument: str) -> None:
    """Refuse what cannot be the name of an outcome."""
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"An outcome is named {name!r}, and its name must be a text that is not empty.")
    if name in (OBJECTIVE, SUCCESS):
        raise InvalidInput(
            f"{argument} has the name {name!r}, which boca uses itself; any other text will do. Rename the outcome."
        )


def checked_objective(objective: object, limits: Mapping[str, OutcomeLimit]) -> str | None:
    """Return the key of the objective in what an evaluation returns; None if it is the one that has no limit."""
    if objective is None:
        return None
    if not isinstance(objective, str) or not objective:
        raise InvalidInput(f"objective is {objective!r}, and must name what is optimized, such as 'loss', or be None.")
    if objective in limits:
        raise InvalidInput(
            f"objective is {objective!r}, which subject_to limits; one outcome is optimized or limited, not both. "
            "Return it under two names to do both."
        )
    return objective


def returned(
    given: Any, limits: Mapping[str, OutcomeLimit], objective: str | None, *, is_target: bool | None
) -> Returned:
    """Return an evaluation's result by outcome: from a number, or from a mapping by name.

    Args:
        given: what the objective returned.
        limits: the limits of the problem.
        objective: the key of the objective; None if it is the one that has no limit.
        is_target: whether the result is from the target, where every limited outcome must be told; None leaves that
            open, for imported results.
    """
    if not isinstance(given, Mapping):
        number = finite_number(given, "value")
        if limits and is_target is not None:
            missing = [name for name, limit in limits.items() if is_target or limit.at == "any"]
            if missing:
                raise InvalidInput(
                    f"value is {given!r}, and must be a mapping with the outcomes {missing} too, since they have "
                    f"limits. Give {{'loss': {given!r}, {missing[0]!r}: ...}}."
                )
        return Returned({OBJECTIVE: number}, {})
    if not limits and objective is None:
        first = next(iter(given), "loss")
        raise InvalidInput(
            f"The objective must return a finite number; it returned {_short(given)}. To return values by name, say "
            f"which one is optimized: objective={first!r}."
        )
    key = _objective_key(given, limits, objective)
    values: dict[str, float] = {}
    for name, limit in limits.items():
        if name in given and given[name] is not None:
            values[name] = finite_number(given[name], name)
        elif name not in given and is_target is not None and (is_target or limit.at == "any"):
            where = "at the target" if limit.at == "target" else "at every fidelity, since its limit has at='any'"
            raise InvalidInput(
                f"The result has no {name!r}; it has {list(given)}. An outcome with a limit must be told {where}. "
                f"If it is not known, give {{{name!r}: None}}."
            )
    if given[key] is not None:
        values[OBJECTIVE] = finite_number(given[key], key)
    if not values:
        raise InvalidInput("The result has no number: every outcome is None. Give one, or let the trial fail.")
    rest = {name: value for name, value in given.items() if name != key and name not in limits}
    return Returned(values, plain_notes(rest))


def _short(given: Mapping[str, Any]) -> str:
    return words if len(words := repr(dict(given))) <= _LONGEST_NOTE else f"{words[:_LONGEST_NOTE]}…"


def _objective_key(given: Mapping[str, Any], limits: Mapping[str, OutcomeLimit], objective: str | None) -> str:
    if objective is not None:
        if objective not in given:
            raise InvalidInput(f"The result has no {objective!r}, the objective; it has {list(given)}. Return it too.")
        return objective
    free = [name for name in given if name not in limits]
    if len(free) == 1:
        return free[0]
    if OBJECTIVE in free:
        return OBJECTIVE
    what = "no key" if not free else f"the keys {free}"
    raise InvalidInput(
        f"The result has {what} beside those with limits; exactly one is the objective. "
        + ("Return it too." if not free else f"Name it: objective={free[0]!r}. The others are then notes.")
    )


def by_outcome(given: Any, limits: Mapping[str, OutcomeLimit], objective: str | None, what: str) -> dict[str, float]:
    """Return numbers that are not negative by outcome, such as variances; one number alone is the objective's."""
    if given is None:
        return {}
    found = {}
    for name, value in (given if isinstance(given, Mapping) else {OBJECTIVE: given}).items():
        of = OBJECTIVE if name not in limits else name
        if name not in limits and name not in (objective, OBJECTIVE) and objective is not None:
            raise InvalidInput(f"{what} has {name!r}, and may have {[objective, *limits]}. Remove it.")
        if of in found:
            raise InvalidInput(f"{what} has two numbers for the objective; got {given!r}. Give one.")
        if value is None:
            continue
        number = finite_number(value, what if of == OBJECTIVE else f"{what}[{name!r}]")
        if number < 0:
            raise InvalidInput(f"{what} must not be negative; got {value!r}.")
        found[of] = number
    return found


# Notes ----------------------------------------------------------------------------------------------------------------


def checked_notes(notes: object) -> dict[str, Any]:
    """Return notes as JSON, or refuse what has no names."""
    if notes is None:
        return {}
    if not isinstance(notes, Mapping):
        raise InvalidInput(f"notes is {notes!r}, and must map names to values. Type notes={{'epochs': 12}}.")
    return plain_notes(notes)


def plain_notes(notes: Mapping[Any, Any]) -> dict[str, Any]:
    """Return notes as JSON: a note is shown and never computed with, so what JSON lacks becomes text."""
    return {str(name): _plain(value) for name, value in notes.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return plain_notes(value)
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return repr(value)[:_LONGEST_NOTE]
