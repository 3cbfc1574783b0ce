"""What can go wrong, said so that the reader knows what to do next.

Every message names the invariant, the value that was seen, and the way out.
"""

from collections.abc import Iterable
from typing import Any


class BocaError(Exception):
    """The base of every error that this library raises on purpose."""


class InvalidInput(BocaError, ValueError):
    """A space, a point, a value, a cost or a setting that cannot be meant."""


class InvalidTrial(BocaError, ValueError):
    """A result for a trial that is unknown or already has one."""


class StorageFailed(BocaError, RuntimeError):
    """A database that cannot be opened, read or written; what it acknowledged before is still there."""


class RunStopped(BocaError, RuntimeError):
    """A run that an error ended; `result` holds everything that was found until then."""

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.result), self.__dict__  # an exception is made anew of its args alone


class ObjectiveFailed(RunStopped):
    """A run that the objective ended: every trial failed, or with on_error="raise" the first one that did."""


def instance_of(value: object, kind: type, what: str) -> None:
    """Refuse a setting of another type."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} must be a {kind.__name__}; got {value!r}.")


def flags(settings: object, *names: str) -> None:
    """Refuse a switch that is neither on nor off: a word such as "no" would count as on."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be True or False; got {value!r}.")


def one_of(value: object, allowed: Iterable[object], what: str) -> None:
    """Refuse a misspelt option where it is written, not in the middle of a study."""
    options = list(allowed)
    if value not in options:
        raise InvalidInput(f"{what} must be one of {options}; got {value!r}.")
