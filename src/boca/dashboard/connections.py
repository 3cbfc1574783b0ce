"""Limits for the connections of the live page: many slow ones must neither stop it nor fill a disk with its log."""

from __future__ import annotations

import asyncio
import logging
import time

from uvicorn.protocols.http.h11_impl import H11Protocol

_HEADER_SECONDS = 10.0  # for a browser to send a request after it connected, or began it
_ANSWER_SECONDS = 60.0  # for it to take the answer, of at most a few megabytes
_MOST_CONNECTIONS = 400  # at once: a browser has six
_SPARE_FILES = 96  # descriptors for the database, the recommendation, and what is accepted at once
BACKLOG = 32
"""Connections that are accepted before the first of them is looked at."""

_SILENCE = 60.0  # seconds between two log lines of one kind


class Limited(H11Protocol):
    """The protocol of uvicorn with a time for everything; if there are too many, the oldest without a request ends."""

    _clock: asyncio.TimerHandle | None = None
    _is_answering = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._opened = time.monotonic()
        self._set_clock()
        if len(self.connections) > most_connections():
            ours = [c for c in self.connections if isinstance(c, Limited) and not c.transport.is_closing()]
            min(ours, key=lambda c: (c._is_answering, c._opened)).transport.abort()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_clock()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: the request is answered as an ordinary one."""

    def _look(self) -> None:
        """Begin to count again when a request has come, or was answered."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering != self._is_answering:
            self._is_answering = is_answering
            self._set_clock()

    def _set_clock(self) -> None:
        self._stop_clock()
        seconds = _ANSWER_SECONDS if self._is_answering else _HEADER_SECONDS
        self._clock = self.loop.call_later(seconds, self.transport.abort)

    def _stop_clock(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None


def most_connections() -> int:
    """Return how many connections may be open, so that descriptors are left for the rest."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return _MOST_CONNECTIONS
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(4, min(_MOST_CONNECTIONS, soft - _SPARE_FILES)) if soft > 0 else _MOST_CONNECTIONS


class Seldom(logging.Filter):
    """Lets one line of each kind through a minute."""

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind, now = str(record.msg)[:80], time.monotonic()
        if now - self._last.get(kind, -_SILENCE) < _SILENCE:
            return False
        self._last[kind] = now
        return True
