"""When to choose trials before workers are free for them, and how many."""

from __future__ import annotations

import math

_IDLE_SHARE = 0.05  # of an expected trial, for which a worker may wait for its choice: less is not worth old news
_WEIGHT = 0.2  # of the last measurement in a mean: the last ten or so count, as trials grow longer and models larger


class Mean:
    """A mean in which old values fade; None before the first."""

    def __init__(self) -> None:
        self.value: float | None = None

    def add(self, value: float) -> None:
        self.value = value if self.value is None else (1.0 - _WEIGHT) * self.value + _WEIGHT * value


class Timing:
    """How long trials take, and how long it takes to choose one."""

    def __init__(self) -> None:
        self.trial = Mean()
        self.choice = Mean()

    def wanted(self, workers: int) -> int:
        """Return how many trials to choose ahead: none if a worker would hardly wait for its choice, or is alone.

        While one trial runs, every worker needs another one.  If choosing these takes the share `load` of that time,
        the workers whose trials end at about the same moment find that many of theirs ready.
        """
        trial, choice = self.trial.value, self.choice.value
        if workers < 2 or trial is None or choice is None or choice <= _IDLE_SHARE * trial:
            return 0
        load = workers * choice / trial if trial > 0.0 else math.inf
        return max(1, min(workers, math.ceil(load * workers) if math.isfinite(load) else workers))
