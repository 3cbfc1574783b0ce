"""The errors of the library.

A message has three parts: what is wrong with the value seen, what is allowed, what to type.
"""

import sys
import warnings
from collections.abc import Iterable
from typing import Any


class BocaError(Exception):
    """The base of all errors that the library raises on purpose."""


class InvalidInput(BocaError, ValueError):
    """A space, point, value, cost or setting that is not allowed."""


class UnknownArgument(BocaError, TypeError):
    """An argument that a function does not have."""


class InvalidTrial(BocaError, ValueError):
    """A result for a trial that does not exist or already has one."""


class StorageFailed(BocaError, RuntimeError):
    """A database that cannot be opened, read or written; what it has acknowledged is not lost."""


class RunStopped(BocaError, RuntimeError):
    """A run that was ended by an error; `result` holds everything found until then."""

    def __init__(self, message: str, result: object) -> None:
        super().__init__(message)
        self.result = result

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (*self.args, self.result), self.__dict__  # unpickling passes only `args`


class ObjectiveFailed(RunStopped):
    """A run in which every trial failed or, with on_error="raise", one did."""


class Terminated(SystemExit):
    """A run that SIGTERM or SIGHUP ended; `result` holds everything found until then.

    Unless it is caught, the process ends with the status that a shell gives to the signal: 143 for SIGTERM.
    """

    def __init__(self, signal: int, result: object = None) -> None:
        super().__init__(128 + signal)
        self.signal = signal
        self.result = result


class Doubtful(UserWarning):
    """Input that is allowed, and that many users do not mean."""


def doubt(words: str) -> None:
    """Warn of input that is probably not what the user meant, at the line of the user's code that has it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "boca":
        frame, level = frame.f_back, level + 1
    warnings.warn(words, Doubtful, stacklevel=level)


def instance_of(value: object, kind: type, what: str) -> None:
    """Refuse a setting of another type."""
    if not isinstance(value, kind):
        raise InvalidInput(f"{what} must be a {kind.__name__}; got {value!r}.")


def flags(settings: object, *names: str) -> None:
    """Refuse settings that are neither True nor False: a word such as "no" would count as True."""
    for name in names:
        value = getattr(settings, name)
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be True or False; got {value!r}.")


def one_of(value: object, allowed: Iterable[object], what: str) -> None:
    """Refuse a value that is not one of the allowed ones."""
    options = list(allowed)
    if value not in options:
        raise InvalidInput(f"{what} must be one of {options}; got {value!r}.")
