"""Why a trial was chosen: by far the largest part of a stored trial, and the one that is read least often."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any


class Reasons:
    """The `why` of a trial: its phase is at hand, the rest is loaded when it is first read."""

    def __init__(self, phase: str, load: Callable[[], dict[str, Any]]) -> None:
        self.phase = phase
        self._load = load
        self._why: dict[str, Any] | None = None

    @classmethod
    def of(cls, why: dict[str, Any]) -> Reasons:
        """Return reasons that need no loading."""
        reasons = cls(str(why.get("phase", "")), lambda: why)
        reasons.fill(why)
        return reasons

    @property
    def is_loaded(self) -> bool:
        return self._why is not None

    def read(self) -> dict[str, Any]:
        if self._why is None:
            self._why = self._load()
        return self._why

    def fill(self, why: dict[str, Any]) -> None:
        """Keep the reasons, so that nothing needs to be loaded."""
        self._why = why

    def copied(self) -> Reasons:
        """Return reasons that their user may change; the copy is made when they are first read."""
        return Reasons(self.phase, lambda: copy.deepcopy(self.read()))

    def __deepcopy__(self, memo: dict[int, Any]) -> Reasons:
        return self.copied()

    def __reduce__(self) -> tuple[Any, ...]:
        return Reasons.of, (self.read(),)  # a database stays where it is

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reasons) and self.read() == other.read()

    __hash__ = None  # type: ignore[assignment]
