"""A parameter that has one of a list of numbers: an integer to the model, so that neighbors are known to be near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from boca.domain.errors import InvalidInput
from boca.domain.space import Int, finite_number


@dataclass(frozen=True)
class Levels:
    """The numbers in ascending order; a parameter has the index of one."""

    values: tuple[Any, ...]

    @classmethod
    def of(cls, values: Sequence[Any], what: str) -> Levels:
        """Return the levels of at least two different numbers."""
        for value in values:
            finite_number(value, what)
        levels = tuple(sorted({float(value): value for value in values}.values()))
        if len(levels) < 2:
            raise InvalidInput(f"{what} has {list(values)!r}, and needs at least two different numbers.")
        return cls(levels)

    @property
    def parameter(self) -> Int:
        return Int(0, len(self.values) - 1)

    def value(self, index: int) -> Any:
        return self.values[index]

    def index(self, value: Any, what: str) -> int:
        """Return the index of a value, or refuse one that is not of the list."""
        found = [i for i, known in enumerate(self.values) if known == value]
        if not found:
            raise InvalidInput(f"{what} is {value!r}, and must be one of {list(self.values)}.")
        return found[0]
