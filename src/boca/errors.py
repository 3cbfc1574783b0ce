"""What can go wrong, said so that the reader knows what to do next.

Every message names the invariant, the value that was seen, and the way out.
"""

from collections.abc import Iterable


class BocaError(Exception):
    """The base of every error that this library raises on purpose."""


class InvalidInput(BocaError, ValueError):
    """A space, a point, a value, a cost or a setting that cannot be meant."""


class InvalidTrial(BocaError, ValueError):
    """A result for a trial that is unknown or already has one."""


class ObjectiveFailed(BocaError, RuntimeError):
    """The user's function failed on every one of the first trials."""


def one_of(value: object, allowed: Iterable[object], what: str) -> None:
    """Refuse a misspelt option where it is written, not in the middle of a study."""
    options = list(allowed)
    if value not in options:
        raise InvalidInput(f"{what} must be one of {options}; got {value!r}.")


class BocaWarning(UserWarning):
    """Something worth knowing that does not stop the study."""
