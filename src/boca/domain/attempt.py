"""`Attempt`: a time that a trial was handed out and came back without a result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, Final

DIED: Final = "the worker died"
LOST: Final = "the driver died"
LEFT: Final = "the driver stopped"


@dataclass(frozen=True)
class Attempt:
    """When and where a trial ran, and why that gave no result.

    Args:
        attempt: how often it had been handed out before because a process died.
        began: when it was handed out, in seconds since 1970 by the clock of the process that had it.
        ended: when it ended; None if nothing was left that could notice.
        host: the machine of the process that had it.
        process: the number of that process.
        ending: why there is no result.
    """

    attempt: int
    began: float | None
    ended: float | None
    host: str | None
    process: int | None
    ending: str

    def to_json(self) -> dict[str, Any]:
        """Return it with times that people and programs read."""
        return asdict(self) | {"began": iso(self.began), "ended": iso(self.ended)}


Attempts = Mapping[int, tuple[Attempt, ...]]
"""The attempts without a result, by the number of their trial."""


def iso(moment: float | None) -> str | None:
    """Return a time in the form of ISO 8601, in UTC in whole milliseconds."""
    if moment is None:
        return None
    try:
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):  # a damaged database
        return None
