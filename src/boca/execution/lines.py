"""A run as lines: one for each trial, for people to follow and for programs to read."""

from __future__ import annotations

import json
import math
import sys
import time
from typing import Any, TextIO

from boca.accounting.ledger import Ledger
from boca.domain.attempt import iso
from boca.domain.trial import History, Trial
from boca.domain.words import option, printable, roughly, text
from boca.study.optimizer import Optimizer

_NUMBER_WIDTH = 4  # characters, so that lines of up to 10,000 trials stand below each other
_VALUE_WIDTH = 11  # characters of a value with six digits, its sign and its exponent
_LONGEST_POINT = 60  # characters: with the rest a line of about 120


class Pace:
    """How fast a run spends its budget, since it began."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._before: float | None = None  # what was spent before its first trial

    def seconds_left(self, ledger: Ledger, trial: Trial) -> float | None:
        """Return how long the rest of the budget lasts; None if there is no limit, or nothing to tell it from."""
        if self._before is None:
            self._before = ledger.spent - ledger.charge(trial)
        gained, left = ledger.spent - self._before, max(ledger.total - ledger.spent, 0.0)
        if gained <= 0.0 or not math.isfinite(left):
            return None
        return left * (time.monotonic() - self._began) / gained


def line(ledger: Ledger, trial: Trial, seconds_left: float | None) -> str:
    """Return what happened in one trial, and how far the study is: `61  0.0251  n=42  best 0.09 (#57)  38 % spent`."""
    told = "failed" if trial.state == "failed" else text(_told(trial))
    parts = [f"{trial.number:{_NUMBER_WIDTH}}", f"{told:<{_VALUE_WIDTH}}", where(trial)]
    if trial.state == "failed":
        parts.append(printable((trial.reason or "").partition("\n")[0]))
    parts += [_best(ledger.history, ledger), spent(ledger, seconds_left)]
    return "  ".join(part for part in parts if part)


def where(trial: Trial) -> str:
    """Return the fidelities of a trial, or its parameters if it has none, as NAME=VALUE."""
    pairs = (f"{name}={_short(value)}" for name, value in (trial.z or trial.x).items())
    return text(" ".join(pairs), _LONGEST_POINT)


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else option(value, _VALUE_WIDTH)


def _told(trial: Trial) -> object:
    if trial.value is not None or not trial.outcomes:
        return trial.value
    return " ".join(f"{name}={_short(value)}" for name, value in trial.outcomes.items())


def _best(history: History, ledger: Ledger) -> str:
    if front := history.front(ledger.problem) if ledger.problem.objectives else []:
        return f"front of {len(front)}"
    best = history.best(ledger.problem)
    return "no best yet" if best is None else f"best {text(best.value)} (#{best.number})"


def share(ledger: Ledger) -> float | None:
    """Return the share of the budget that is spent; None without a limit."""
    return min(ledger.spent / ledger.total, 1.0) if math.isfinite(ledger.total) and ledger.total > 0.0 else None


def spent(ledger: Ledger, seconds_left: float | None) -> str:
    """Return what is spent, and how long the rest lasts."""
    part = share(ledger)
    if part is None:
        return f"spent {ledger.in_words(ledger.spent)}"
    words = f"{math.floor(100.0 * part):d} % spent"
    return words if seconds_left is None else f"{words}, {roughly(seconds_left)} left"


def resumed(optimizer: Optimizer) -> str:
    """Return what a study has before a run begins; empty for a new one."""
    history = optimizer.storage.read().history
    if not history:
        return ""
    ledger = Ledger(optimizer.problem, history, optimizer.limit)
    states = (("complete", len(history.complete)), ("failed", len(history.finished) - len(history.complete)))
    counts = [f"{count} {state}" for state, count in (*states, ("running", len(history.running))) if count]
    words = f"{len(history)} trial{'' if len(history) == 1 else 's'} ({', '.join(counts)})"
    return f"Resuming {optimizer.name!r}: {words}, {_best(history, ledger)}, {spent(ledger, None)}."


class JsonLines:
    """One JSON object per trial, in a line of its own, to a stream: by default standard output."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream
        self._pace = Pace()

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        ledger = Ledger(optimizer.problem, optimizer.storage.read().history, optimizer.limit)
        left = self._pace.seconds_left(ledger, trial)
        self.write({"event": "trial", "study": optimizer.name, **_facts(trial), **state(ledger), "seconds_left": left})

    def write(self, event: dict[str, Any]) -> None:
        """Write one event, with the time of it."""
        stream = sys.stdout if self._stream is None else self._stream
        print(json.dumps({"time": iso(time.time())} | event, ensure_ascii=False), file=stream, flush=True)


def _facts(trial: Trial) -> dict[str, Any]:
    names = ("number", "state", "value", "x", "z", "cost", "seconds")
    facts = {name: getattr(trial, name) for name in names} | {"failure": trial.reason} | trial.clock()
    return facts | {name: kept for name, kept in (("outcomes", trial.outcomes), ("notes", dict(trial.notes))) if kept}


def state(ledger: Ledger) -> dict[str, Any]:
    """Return how far a study is, for programs: what is not known, or has no limit, is None."""
    best = ledger.history.best(ledger.problem)
    return {
        "best": None if best is None else {"number": best.number, "value": best.value, "x": best.x},
        "unit": ledger.unit,
        "spent": ledger.spent,
        "total": ledger.total if math.isfinite(ledger.total) else None,
        "share": share(ledger),
    }
