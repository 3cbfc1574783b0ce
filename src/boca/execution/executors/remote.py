"""What an objective raised in another process, as an exception of this one.

Not every exception can be pickled, and a worker of boca answers in JSON.  So only the text comes here: the exception in
its first line, and its traceback.  `RemoteTraceback` carries it, so that it can be the cause of an error here.
"""

from __future__ import annotations

from boca.execution.executors.base import Outcome

_TRACEBACK = "Traceback (most recent call last):"

MISTAKES: tuple[type[Exception], ...] = (KeyError, NameError, TypeError)
"""What a mistake in the code of an objective raises, and a bad point seldom does."""
_NAMES_OF_MISTAKES = frozenset({"KeyError", "NameError", "UnboundLocalError", "TypeError"})


class RemoteTraceback(Exception):
    """The traceback of an exception that another process raised, as text."""

    def __init__(self, kind: str, traceback: str) -> None:
        super().__init__(kind, traceback)
        self.kind = kind
        self.traceback = traceback

    def __str__(self) -> str:
        return f'\n"""\n{self.traceback}\n"""'


def raised(outcome: Outcome) -> BaseException | None:
    """Return what the objective raised, as an exception to chain; None if it raised nothing."""
    if outcome.exception is not None or outcome.error is None or outcome.died:
        return outcome.exception
    begin = outcome.error.find(_TRACEBACK)
    if begin < 0:
        return None
    kind = outcome.error.partition("\n")[0].partition(":")[0]
    return RemoteTraceback(kind, outcome.error[begin:])


def is_mistake(error: BaseException | None) -> bool:
    """Whether an error is a mistake in the code of the objective, here or in another process."""
    if isinstance(error, RemoteTraceback):
        return error.kind in _NAMES_OF_MISTAKES
    return isinstance(error, MISTAKES)
