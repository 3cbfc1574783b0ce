"""Whether a SQLite file in use is still the file that was opened, and still holds what was acknowledged.

SQLite does not notice that its file was removed, renamed, replaced, truncated or written over: it goes on writing to a
file that no path leads to, or to a log beside a file to which that log does not belong.  A cleanup script, `rsync
--delete` or a synchronized folder does this.

Nothing here opens the file except through SQLite: closing any other descriptor of it would drop the locks of SQLite.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from contextlib import closing, suppress
from urllib.parse import quote

from boca.domain.errors import StorageFailed

_SHARE_OF_CHECKS = 0.05  # of the time, for reading the whole file again after others wrote to it
_BESIDE = ("-wal", "-shm")


class FileChanged(StorageFailed):
    """The file of a database is not the one that was opened, or lost what was in it."""


class FileGuard:
    """Compares a file with what it was: two microseconds, and a check of its pages after a checkpoint wrote to it."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        self._identity: tuple[int, int] | None = None  # device and inode
        self._beside: dict[str, tuple[int, int]] = {}
        self._stamp: tuple[int, int] | None = None  # size and time of the last change
        self._stored: dict[int, int] = {}  # study -> the last event known to be stored
        self._next_check = 0.0
        self._lock = threading.Lock()

    def note(self, study: int, event: int) -> None:
        """Remember that a study has got as far as this event."""
        self._stored[study] = max(event, self._stored.get(study, 0))

    def check(self) -> None:
        """Raise `FileChanged` unless the file at the path is the one that was opened, with what was stored in it."""
        with self._lock:
            try:
                now = os.stat(self.path)
            except FileNotFoundError:
                if self._identity is None:
                    return  # it is about to be made
                raise self._changed("was removed or renamed") from None
            except OSError as error:
                raise self._changed(f"cannot be found any more ({error.strerror})") from error
            if self._identity is None:
                self._identity = _identity(now)
            if _identity(now) != self._identity:
                raise self._changed("was replaced by another file")
            stamp = (now.st_size, now.st_mtime_ns)
            if self._stamp is not None and stamp != self._stamp:
                has_shrunk = now.st_size < self._stamp[0]
                if not has_shrunk and time.monotonic() < self._next_check:
                    return  # a later write checks
                self._verify(now.st_size)
            self._stamp = stamp
            if not self._beside:
                self._beside = self._files_beside()

    def unlock(self) -> None:
        """Replace the lock, which another thread of the parent may have held when this process was forked."""
        self._lock = threading.Lock()

    def remove_log(self) -> None:
        """Remove the log that was left beside a path where the file is not any more: SQLite would apply it to another.

        Only after everything in it is elsewhere.
        """
        with suppress(OSError):
            if _identity(os.stat(self.path)) == self._identity:
                return  # the file is there, and the log belongs to it
        for path, identity in self._beside.items():
            with suppress(OSError):
                if _identity(os.stat(path)) == identity:
                    os.unlink(path)

    def _verify(self, size: int) -> None:
        """Read a file that was written to through a new connection, which has no pages in memory.

        `quick_check` does not compare indexes with tables, as another file under the same log needs.
        """
        if size == 0:  # SQLite would remove the log of an empty file
            raise self._changed("was emptied")
        began = time.monotonic()
        try:
            with closing(sqlite3.connect(f"file:{quote(self.path)}?mode=ro", uri=True, timeout=60.0)) as connection:
                if connection.execute("PRAGMA integrity_check(1)").fetchone() != ("ok",):
                    raise self._changed("was written to by something else")
                for study, event in self._stored.items():
                    found = connection.execute("SELECT event FROM boca_studies WHERE id = ?", (study,)).fetchone()
                    if found is not None and found[0] < event:
                        raise self._changed("was replaced by an older copy")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise self._changed(f"was written to by something else (SQLite says: {error})") from error
        except sqlite3.DatabaseError as error:
            raise self._changed(f"was written to by something else (SQLite says: {error})") from error
        self._next_check = time.monotonic() + (time.monotonic() - began) / _SHARE_OF_CHECKS

    def _files_beside(self) -> dict[str, tuple[int, int]]:
        found = {}
        for end in _BESIDE:
            with suppress(OSError):
                found[self.path + end] = _identity(os.stat(self.path + end))
        return found

    def _changed(self, how: str) -> FileChanged:
        return FileChanged(f"The database file {self.path} {how} while it was in use.")


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
