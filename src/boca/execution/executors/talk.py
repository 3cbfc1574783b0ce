"""What a run and its driver say to each other where they are not in one process: JSON, over a pipe or through files.

The run says what it has reached and saved, and waits for an answer where it has to.  Every answer has the driver's
word, to go on, to stop or to leave; the driver may say that unasked too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, TypeAlias, cast, final

from boca.domain.errors import BocaError, InvalidInput
from boca.execution.executors.handle import Link, Word

Frame: TypeAlias = dict[str, Any]


class Transport(Protocol):
    """A way for frames, as the run has it."""

    def send(self, frame: Frame) -> None: ...

    def receive(self, *, wait: bool) -> Frame | None:
        """Return the next frame of the driver; without `wait`, None if there is none yet."""
        ...


@final
class Far:
    """The link of a run to a driver in another process."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._word: Word = "go"
        self._has_unanswered = False

    def report(self, step: int, value: float | Mapping[str, Any], noise: Any, *, wait: bool) -> Word:
        self._say({"talk": "report", "step": step, "value": value, "noise": noise}, wait=wait)
        return self._word

    def saved(self, step: int, path: str) -> None:
        self._say({"talk": "saved", "step": step, "path": path}, wait=True)

    def word(self) -> Word:
        while (frame := self._transport.receive(wait=False)) is not None:
            self._hear(frame)
        return self._word

    def flush(self) -> None:
        if self._has_unanswered:
            self._say({"talk": "flush"}, wait=True)

    def _say(self, frame: Frame, *, wait: bool) -> None:
        self._transport.send({**frame, "wait": wait})
        self._has_unanswered = not wait
        while wait:
            answer = self._transport.receive(wait=True)
            if answer is None:  # nothing will answer any more
                self._word = "leave"
                return
            wait = not self._hear(answer)
        self.word()

    def _hear(self, frame: Frame) -> bool:
        """Take a frame of the driver, and return whether it is an answer."""
        self._word = cast(Word, frame["word"])
        if frame.get("error") is not None:
            raise InvalidInput(frame["error"])
        return bool(frame.get("answers"))


@final
class Talk:
    """The same as its driver has it: what arrives goes to a link here."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._said: Word = "go"
        self._error: str | None = None

    def hear(self, frame: Frame) -> Frame | None:
        """Take what a run says, and return the answer if it waits for one."""
        try:
            if frame["talk"] == "report":
                self._link.report(frame["step"], frame["value"], frame["noise"], wait=True)
            elif frame["talk"] == "saved":
                self._link.saved(frame["step"], frame["path"])
            else:
                self._link.flush()
        except BocaError as error:  # the run must hear of it when it next listens
            self._error = str(error)
        if not frame["wait"] and self._error is None:
            return None
        self._said = self._link.word()
        wrong, self._error = self._error, None
        return {"word": self._said, "answers": bool(frame["wait"]), "error": wrong}

    def push(self) -> Frame | None:
        """Return what the run should hear now although it has not asked, once."""
        word = self._link.word()
        if word == self._said:
            return None
        self._said = word
        return {"word": word}
