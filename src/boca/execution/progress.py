"""The line that shows how far a run is: in a terminal and in a notebook, unless the user wants none.

Where output goes to a file or to another program nothing is shown, because a line that is written over is of no use
there.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence

from boca.domain.errors import InvalidInput
from boca.domain.trial import Trial
from boca.execution.callbacks import Log, Progress, state_of
from boca.execution.options import Callback
from boca.study.optimizer import Optimizer

_LEAST_SECONDS_BETWEEN = 0.2  # two writings: a notebook keeps every one of them


class NotebookLine:
    """One line below the cell of a notebook, written over as the run proceeds."""

    def __init__(self) -> None:
        self._length = 0
        self._written = -math.inf
        self._optimizer: Optimizer | None = None

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        self._optimizer = optimizer
        if time.monotonic() - self._written >= _LEAST_SECONDS_BETWEEN:
            self._write()

    def close(self) -> None:
        if self._optimizer is not None:
            self._write()
            print(file=sys.stderr)

    def _write(self) -> None:
        assert self._optimizer is not None
        share, words = state_of(self._optimizer)
        line = f"{share:4.0%}  {words}"
        print(f"\r{line:<{self._length}}", end="", file=sys.stderr, flush=True)
        self._length, self._written = len(line), time.monotonic()


def with_progress(callbacks: Sequence[Callback], progress: bool | None) -> list[Callback]:
    """Return the callbacks, and one that shows the progress if the user wants it.

    Args:
        callbacks: Those of the user.
        progress: Whether to show it; None shows it in a terminal and in a notebook, unless a callback does already.
    """
    line = shown(progress, has_own=any(isinstance(one, Log | Progress | NotebookLine) for one in callbacks))
    return [*callbacks, *([] if line is None else [line])]


def shown(progress: bool | None, *, has_own: bool = False) -> Progress | NotebookLine | None:
    """Return what shows the progress here; None if nothing is to."""
    if progress is not None and not isinstance(progress, bool):
        raise InvalidInput(
            f"progress must be True, False or None; got {progress!r}. "
            "None shows a line in a terminal and in a notebook. Type progress=False for none."
        )
    if progress is False:
        return None
    if _is_notebook():
        return None if progress is None and has_own else NotebookLine()
    if progress or (sys.stderr.isatty() and not has_own):
        return Progress()
    return None


def _is_notebook() -> bool:
    """Whether this is the kernel of a notebook; IPython is asked only if it is loaded."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"
