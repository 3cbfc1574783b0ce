"""A study in memory: gone with the process, and the reference for every other storage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from boca.space import Point
from boca.storage.base import Lease, Queued, Snapshot
from boca.storage.rules import given_up, refuse_no_json, refuse_no_number, refuse_result
from boca.trial import History, Trial


class Memory:
    """Trials, the queue, the number of the last event, and who holds what until when."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._trials: list[Trial] = []
        self._history = History()
        self._queue: list[Queued] = []
        self._queued = 0
        self._event = 0
        self._leases: dict[int, tuple[Lease, float]] = {}

    def read(self) -> Snapshot:
        with self._lock:
            return Snapshot(self._history, self._event, tuple(self._queue))

    def claim(
        self,
        draft: Trial,
        *,
        seen: int,
        affords: Callable[[History], bool] | None = None,
        queued: Queued | None = None,
        lease: Lease | None = None,
    ) -> Trial | None:
        refuse_no_number(draft)
        with self._lock:
            changed = self._event != seen
            if changed and (affords is None or not affords(self.read().history)):
                return None
            if queued is not None:
                if queued not in self._queue:
                    return None
                self._queue.remove(queued)
            trial = self._append(replace(draft, asked=self._event + 1))
            if lease is not None:
                self._leases[trial.number] = (lease, time.time() + lease.seconds)
            return trial

    def finish(self, trial: Trial) -> Trial:
        refuse_no_number(trial)
        with self._lock:
            refuse_result(self._trials[trial.number], trial)
            done = replace(trial, told=self._event + 1)
            self._change(done)
            self._leases.pop(trial.number, None)
            return done

    def add(self, draft: Trial) -> Trial:
        refuse_no_number(draft)
        with self._lock:
            return self._append(replace(draft, asked=self._event + 1, told=self._event + 1))

    def enqueue(self, x: Point, z: Point) -> None:
        refuse_no_json(x, "x")
        refuse_no_json(z, "z")
        with self._lock:
            self._queued += 1
            self._queue.append(Queued(self._queued, dict(x), dict(z)))

    def seconds_out(self, number: int) -> float | None:
        return None  # whoever asked and whoever tells are one process, which has a better clock

    def load_reasons(self) -> None:
        pass

    def retake(self, lease: Lease, *, max_retries: int) -> Sequence[Trial]:
        with self._lock:
            taken = []
            for number, (held, until) in list(self._leases.items()):
                if held.driver == lease.driver or not (held.owner.is_dead() or until < time.time()):
                    continue
                trial = self._trials[number]
                if trial.attempt >= max_retries:
                    self.finish(given_up(trial))
                    continue
                taken.append(self._taken_over(trial, lease))
            return taken

    def again(self, trial: Trial, lease: Lease) -> Trial:
        with self._lock:
            refuse_result(self._trials[trial.number], trial)
            return self._taken_over(self._trials[trial.number], lease)

    def is_held_by_others(self, lease: Lease) -> bool:
        with self._lock:
            return any(held.driver != lease.driver for held, _ in self._leases.values())

    def renew(self, lease: Lease) -> None:
        self._set_ends(lease, time.time() + lease.seconds)

    def release(self, lease: Lease) -> None:
        self._set_ends(lease, 0.0)

    def _set_ends(self, lease: Lease, until: float) -> None:
        with self._lock:
            for number, (held, _) in self._leases.items():
                if held.driver == lease.driver:
                    self._leases[number] = (held, until)

    def close(self) -> None:
        pass

    def _taken_over(self, trial: Trial, lease: Lease) -> Trial:
        again = replace(trial, attempt=trial.attempt + 1)
        self._change(again)
        self._leases[trial.number] = (lease, time.time() + lease.seconds)
        return again

    def _append(self, draft: Trial) -> Trial:
        trial = replace(draft, number=len(self._trials))
        self._trials.append(trial)
        self._event += 1
        self._history = History(self._trials)
        return trial

    def _change(self, trial: Trial) -> None:
        self._trials[trial.number] = trial
        self._event += 1
        self._history = History(self._trials)
