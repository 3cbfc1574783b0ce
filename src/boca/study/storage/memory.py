"""A study in memory: gone with the process, and the reference for every other storage."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from boca.domain.attempt import DIED, LEFT, LOST, Attempt
from boca.domain.runs import RunEvent
from boca.domain.space import Point
from boca.domain.trial import History, Trial
from boca.study.storage.base import CHANGES_CHOICES, Lease, Queued, Report, Snapshot
from boca.study.storage.transitions import (
    LET_GO,
    as_json,
    attempt_of,
    clock,
    end_of,
    ended,
    has_ended,
    imported_before,
    refuse_record,
    refuse_report,
    refuse_result,
    refuse_unstorable,
    retried,
    taken_over,
)


class Memory:
    """Trials, the queue, the number of the last event, and who holds what until when."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._trials: list[Trial] = []
        self._history = History()
        self._queue: list[Queued] = []
        self._queued = 0
        self._event = 0
        self._last_choice = 0  # the last event that invalidates a choice: any but a report
        self._leases: dict[int, tuple[Lease, float]] = {}
        self._attempts: dict[int, list[Attempt]] = {}  # that ended without a result

    def read(self) -> Snapshot:
        with self._lock:
            return Snapshot(self._history, self._event, tuple(self._queue))

    def claim(
        self,
        draft: Trial,
        *,
        affords: Callable[[History], bool] | None = None,
        queued: Queued | None = None,
        lease: Lease | None = None,
    ) -> Trial | None:
        refuse_unstorable(draft)
        as_json(draft.why, "why")
        with self._lock:
            changed = self._last_choice > draft.seen
            if changed and (affords is None or not affords(self.read().history)):
                return None
            if queued is not None:
                if queued not in self._queue:
                    return None
                self._queue.remove(queued)
            asked = self._event + 1
            trial = self._append(replace(draft.dated(asked), asked=asked, **clock(lease)))
            if lease is not None:
                self._leases[trial.number] = (lease, end_of(lease, time.monotonic()))
            return trial

    def report(self, trial: Trial, reports: Sequence[Report]) -> Trial:
        with self._lock:
            stored = self._trials[trial.number]
            refuse_report(stored, trial, reports)
            event, known = self._event, len(stored.observations)
            for report in reports:
                event += 1
                stored = stored.reported(report.step, report.told).dated(event)
            refuse_unstorable(replace(stored, observations=stored.observations[known:]))
            self._trials[trial.number], self._event = stored, event
            self._history = History(self._trials)
            return stored

    def record(self, trial: Trial, event: RunEvent) -> Trial:
        with self._lock:
            stored = self._trials[trial.number]
            refuse_record(stored, trial, event)
            happened = stored.happened(event).dated(self._event + 1)
            refuse_unstorable(happened)
            before = self._last_choice
            self._change(happened)
            if event.kind not in CHANGES_CHOICES:
                self._last_choice = before
            return happened

    def finish(self, trial: Trial) -> Trial:
        refuse_unstorable(trial)
        with self._lock:
            stored = self._trials[trial.number]
            refuse_result(stored, trial)
            done = ended(trial.stored_at(self._event + 1), stored)
            self._change(done)
            self._leases.pop(trial.number, None)
            return done

    def add(self, draft: Trial) -> Trial:
        refuse_unstorable(draft)
        as_json(draft.why, "why")
        with self._lock:
            event = self._event + 1
            return self._append(replace(draft.stored_at(event), asked=event))

    def add_many(self, drafts: Sequence[Trial]) -> Sequence[Trial]:
        for draft in drafts:
            refuse_unstorable(draft)
        with self._lock:
            stored = []
            for draft, known in zip(drafts, imported_before(self._history, drafts), strict=True):
                if known is None:
                    self._event = self._last_choice = self._event + 1
                    known = replace(draft.stored_at(self._event), number=len(self._trials), asked=self._event)
                    self._trials.append(known)
                stored.append(known)
            self._history = History(self._trials)
            return stored

    def enqueue_chosen(self, choose: Callable[[Snapshot], Sequence[tuple[Point, Point]]]) -> int:
        with self._lock:
            points = choose(self.read())
            for x, z in points:
                self.enqueue(x, z)
            return len(points)

    def enqueue(self, x: Point, z: Point) -> None:
        as_json(x, "x")
        as_json(z, "z")
        with self._lock:
            self._queued += 1
            self._queue.append(Queued(self._queued, dict(x), dict(z)))

    def seconds_out(self, number: int) -> float | None:
        return None  # one process asks and tells, and has a better clock

    def load_reasons(self) -> None:
        pass

    def take_over(self, lease: Lease, *, max_retries: int, limit: int | None = None) -> Sequence[Trial]:
        with self._lock:
            taken: list[Trial] = []
            for number, (held, until) in sorted(self._leases.items()):
                if limit is not None and len(taken) >= limit:
                    break
                if held.driver == lease.driver or not _has_ended(held, until):
                    continue
                stored = self._trials[number]
                trial = taken_over(stored, driver=held.driver, until=until, max_retries=max_retries, owner=held.owner)
                if trial.state == "running":
                    self._keep_attempt(stored, LEFT if until == LET_GO else LOST)
                    taken.append(self._handed_out(trial.handed_out_again(), lease))
                else:
                    self.finish(trial)
            return taken

    def retry(self, trial: Trial, lease: Lease) -> Trial:
        with self._lock:
            stored = self._trials[trial.number]
            refuse_result(stored, trial)
            self._keep_attempt(ended(stored, stored), DIED)
            return self._handed_out(retried(stored, trial.overhead), lease)

    def hand_back(self, trial: Trial) -> bool:
        with self._lock:
            held = self._leases.get(trial.number)
            if self._trials[trial.number].state != "running" or (held is not None and not _has_ended(*held)):
                return False
            self._leases[trial.number] = (Lease(driver=""), LET_GO)
            return True

    def is_held_by_others(self, lease: Lease) -> bool:
        with self._lock:
            return any(held.driver != lease.driver for held, _ in self._leases.values())

    def renew(self, lease: Lease) -> None:
        self._set_ends(lease, end_of(lease, time.monotonic()))

    def release(self, lease: Lease) -> None:
        self._set_ends(lease, LET_GO)
        with self._lock:
            for number, (held, _) in self._leases.items():
                if held.driver == lease.driver:
                    self._trials[number] = ended(self._trials[number], self._trials[number])
            self._history = History(self._trials)

    def attempts(self, number: int) -> Sequence[Attempt]:
        with self._lock:
            return list(self._attempts.get(number, ()))

    def _keep_attempt(self, trial: Trial, ending: str) -> None:
        self._attempts.setdefault(trial.number, []).append(attempt_of(trial, ending))

    def _set_ends(self, lease: Lease, until: float) -> None:
        with self._lock:
            for number, (held, _) in self._leases.items():
                if held.driver == lease.driver:
                    self._leases[number] = (held, until)

    def close(self) -> None:
        pass

    def _handed_out(self, trial: Trial, lease: Lease) -> Trial:
        again = replace(trial.dated(self._event + 1), **clock(lease))
        self._change(again)
        self._leases[trial.number] = (lease, end_of(lease, time.monotonic()))
        return again

    def _append(self, draft: Trial) -> Trial:
        trial = replace(draft, number=len(self._trials))
        self._trials.append(trial)
        self._event = self._last_choice = self._event + 1
        self._history = History(self._trials)
        return trial

    def _change(self, trial: Trial) -> None:
        self._trials[trial.number] = trial
        self._event = self._last_choice = self._event + 1
        self._history = History(self._trials)


def _has_ended(lease: Lease, until: float) -> bool:
    return has_ended(lease.owner, lease.driver, until, time.monotonic())
