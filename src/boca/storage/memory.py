"""A study in memory: gone with the process, and the reference for every other storage."""

from __future__ import annotations

from boca.space import Point
from boca.trial import History, Trial


class Memory:
    """Trials, the queue, and the number of the next event."""

    def __init__(self) -> None:
        self._trials: list[Trial] = []
        self._queue: list[tuple[Point, Point]] = []
        self._events = 0

    def history(self) -> History:
        return History(self._trials)

    def next_event(self) -> int:
        self._events += 1
        return self._events

    def append(self, trial: Trial) -> None:
        self._trials.append(trial)

    def replace(self, trial: Trial) -> None:
        self._trials[trial.number] = trial

    def queue(self) -> tuple[tuple[Point, Point], ...]:
        return tuple(self._queue)

    def enqueue(self, x: Point, z: Point) -> None:
        self._queue.append((x, z))

    def dequeue(self, index: int) -> None:
        del self._queue[index]
