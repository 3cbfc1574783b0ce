"""A worker process and everything that it starts, seen from the driver: start it, ask it, read its output, end it.

A worker leads its own session and process group.  Ctrl-C in a terminal does not reach it, and the processes that its
objective starts are killed with it, unless they start a session of their own.  Beside each worker a shell waits for
the end of a pipe, which comes when the driver dies for any reason, and then kills the group.  A thread of the worker
could not do so: the objective may keep it from running, and if the kernel kills the worker, the thread dies too.
"""

from __future__ import annotations

import contextlib
import enum
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Any

from boca.execution.executors.talk import Talk
from boca.execution.executors.worker import here

OUTPUT_LENGTH = 16_384  # bytes of output that are kept per evaluation, the last ones: it is stored with every trial

_POLL_SECONDS = 0.2  # between two checks whether the worker is alive and its answer is still awaited
_REAP_SECONDS = 5.0  # to wait for a killed process: one that waits for a disk ends only when the disk answers
_LARGEST_PIPE = 1 << 20  # bytes that a pipe may hold, by the default of Linux
_READ_SIZE = 1 << 16  # bytes per read: what a pipe usually holds

_KILL_AT_END_OF_INPUT = 'read -r _; kill -s KILL -- "-$0"'  # nothing is ever sent: `read` returns at the end


def frame(body: bytes) -> bytes:
    """Return a message with its length before it."""
    return len(body).to_bytes(8) + body


class End(enum.Enum):
    """Why there is no answer."""

    LATE = "the timeout has passed"
    DEAD = "the worker ended"
    STOPPED = "its answer is no longer needed"


class Worker:
    """One process that runs `worker.py` for one thread, and ends before that thread does."""

    def __init__(self, directory: Path) -> None:
        with ExitStack() as ours, ExitStack() as theirs:
            requests, self._requests = _pipe(theirs, ours)
            self._replies, replies = _pipe(ours, theirs)
            self._printed, printed = _pipe(ours, theirs)
            for pipe in (self._requests, self._replies, self._printed):
                os.set_blocking(pipe.fileno(), False)
            self._selector = ours.enter_context(selectors.DefaultSelector())
            self._selector.register(self._replies, selectors.EVENT_READ, self._take_answer)
            self._selector.register(self._printed, selectors.EVENT_READ, self._take_output)
            # -P: a module beside the script must not be imported in place of another one
            script = [sys.executable, "-P", str(Path(__file__).with_name("worker.py"))]
            self._process = subprocess.Popen(
                [*script, str(requests.fileno()), str(replies.fileno()), str(os.getpid())],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                pass_fds=(requests.fileno(), replies.fileno()),
                cwd=directory,
                start_new_session=True,
            )
            # if the shell does not start, the pipes close here, and the worker ends
            self._watch = ours.enter_context(
                subprocess.Popen(
                    ["/bin/sh", "-c", _KILL_AT_END_OF_INPUT, str(self._process.pid)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            )
            ours.callback(self._watch.kill)
            self._resources = ours.pop_all()
        self._unsent = memoryview(b"")
        self._received = bytearray()
        self._output = _Tail()

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    @property
    def output(self) -> str:
        """What was printed since the last `ask`, up to now."""
        return self._output.text

    @property
    def name(self) -> str:
        """Its machine and its number."""
        return here(self._process.pid)

    @property
    def fate(self) -> str:
        """How the process ended, in words."""
        status = self._process.returncode
        if status is None:
            return "did not end"
        if status >= 0:
            return f"ended with exit status {status}"
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        hint = "; the system does this when memory runs out" if -status == signal.SIGKILL else ""
        return f"was killed by {name} ({signal.strsignal(-status)}{hint})"

    def ask(
        self, message: bytes, seconds: float | None, stop: threading.Event, *, talk: Talk | None = None
    ) -> dict[str, Any] | End:
        """Send a message and return the answer, or why there is none: then the worker must be ended.

        What a run says before goes to `talk`.
        """
        self._take_all_output()
        self._output = _Tail()  # without what threads of earlier evaluations have printed since
        self._push(message)
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            if talk is not None:
                self._say(talk.push())
            self._serve_pipes(left)
            is_dead = not self.is_alive
            if is_dead:  # a process that the objective forked may hold the pipe open, which then does not end
                self._take_answer()
            while (answer := self._answer()) is not None:
                if talk is None or "talk" not in answer:
                    self._take_all_output()
                    return answer
                self._say(talk.hear(answer))
            if is_dead:
                return End.DEAD
            if stop.is_set():
                return End.STOPPED
            if left <= 0:
                return End.LATE

    def end(self, *, grace: float = 0.0) -> None:
        """Kill the worker and its process group; an idle worker may exit by itself within `grace` seconds."""
        if grace:
            self._requests.close()
            deadline = time.monotonic() + grace
            while self.is_alive and (left := deadline - time.monotonic()) > 0:
                self._serve_pipes(left)  # or it could wait forever to write its last output
        with contextlib.suppress(ProcessLookupError, PermissionError):  # macOS: not permitted if all are dead
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_SECONDS)
        self._take_all_output()
        self._resources.close()

    # Pipes --------------------------------------------------------------------------------------------------------

    def _serve_pipes(self, seconds: float) -> None:
        """Read and write the pipes that are ready; wait for one at most until the next poll."""
        for key, _ in self._selector.select(max(0.0, min(seconds, _POLL_SECONDS))):
            key.data()

    def _say(self, word: dict[str, Any] | None) -> None:
        """Send a word to a run."""
        if word is not None:
            self._push(frame(json.dumps(word, allow_nan=False).encode()))

    def _push(self, message: bytes) -> None:
        """Send a message, as soon as the worker reads."""
        if not self._unsent:
            self._selector.register(self._requests, selectors.EVENT_WRITE, self._write)
        self._unsent = memoryview(bytes(self._unsent) + message)

    def _write(self) -> None:
        try:
            sent = self._requests.write(self._unsent)
        except BrokenPipeError:  # it is dead, or the objective closed the pipe: there will be no answer
            sent = len(self._unsent)
        self._unsent = self._unsent[sent or 0 :]
        if not self._unsent:
            self._selector.unregister(self._requests)

    def _take_answer(self) -> None:
        data = self._replies.read(_READ_SIZE)
        if data:
            self._received += data
        elif data == b"":
            self._forget(self._replies)

    def _answer(self) -> dict[str, Any] | None:
        end = 8 + int.from_bytes(self._received[:8])
        if len(self._received) < max(end, 9):
            return None
        body = bytes(self._received[8:end])
        del self._received[:end]
        answer: dict[str, Any] = json.loads(body)
        return answer

    def _take_output(self) -> int:
        data = self._printed.read(_READ_SIZE)
        if data:
            self._output.add(data)
        elif data == b"":
            self._forget(self._printed)
        return len(data or b"")

    def _take_all_output(self) -> None:
        """Take what is in the pipe, but not more than it can hold: a process may print without end."""
        taken = 0
        while taken < _LARGEST_PIPE and (length := self._take_output()):
            taken += length

    def _forget(self, pipe: FileIO) -> None:
        """Stop reading a pipe that has ended."""
        with contextlib.suppress(KeyError):
            self._selector.unregister(pipe)


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[FileIO, FileIO]:
    """Return both ends of a pipe, each closed by its stack."""
    ends = os.pipe()
    return reader.enter_context(FileIO(ends[0], "r")), writer.enter_context(FileIO(ends[1], "w"))


class _Tail:
    """The last bytes of the output, with a note on how many were cut."""

    def __init__(self) -> None:
        self._kept = bytearray()
        self._length = 0

    def add(self, data: bytes) -> None:
        self._length += len(data)
        self._kept += data
        del self._kept[:-OUTPUT_LENGTH]

    @property
    def text(self) -> str:
        text = self._kept.decode("utf-8", "replace").replace("\0", "\\0")
        missing = self._length - len(self._kept)
        return f"[... {missing} bytes cut ...]\n{text}" if missing else text
