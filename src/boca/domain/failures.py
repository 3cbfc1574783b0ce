"""Why trials failed, with equal causes together."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from boca.domain.trial import Trial
from boca.domain.words import text

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|0x[0-9a-fA-F]+")
_MAX_SHOWN = 3  # causes in a sentence
_MAX_REASON = 200  # characters of one of them


@dataclass(frozen=True)
class Cause:
    """Failures whose reasons differ in numbers alone."""

    reason: str
    """That of the last one."""
    trials: tuple[Trial, ...]

    @property
    def last(self) -> Trial:
        return self.trials[-1]


def causes(trials: Iterable[Trial]) -> list[Cause]:
    """Return the causes of the trials that failed, the most frequent first, and of equal ones the latest."""
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        if trial.state == "failed":
            groups.setdefault(_NUMBER.sub("#", _first_line(trial)), []).append(trial)
    found = [Cause(_first_line(group[-1]), tuple(group)) for group in groups.values()]
    return sorted(found, key=lambda cause: (-len(cause.trials), -cause.last.number))


def in_words(found: list[Cause]) -> str:
    """Return causes as the end of a sentence: how many trials failed, and with what reason."""
    if len(found) == 1:
        return f"the last with: {text(found[0].reason, _MAX_REASON)}"
    shown = [f"{len(cause.trials)} with: {text(cause.reason, _MAX_REASON)}" for cause in found[:_MAX_SHOWN]]
    more = len(found) - len(shown)
    return "; ".join([*shown, f"and {more} other cause{'' if more == 1 else 's'}"] if more else shown)


def _first_line(trial: Trial) -> str:
    return (trial.reason or "").partition("\n")[0]
