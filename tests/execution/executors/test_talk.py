"""What a run and its driver say to each other."""

from __future__ import annotations

from typing import Any

import pytest

from boca.domain.errors import InvalidInput
from boca.execution.executors.talk import Far, Talk
from execution.executors.run_contract import Heard


class Wire:
    """Both ends in one thread: the driver answers as soon as it is told."""

    def __init__(self, talk: Talk | None) -> None:
        self.talk, self.frames, self.sent = talk, [], []  # type: ignore[var-annotated]

    def send(self, frame: dict[str, Any]) -> None:
        self.sent.append(frame)
        answer = None if self.talk is None else self.talk.hear(frame)
        self.frames += [] if answer is None else [answer]

    def receive(self, *, wait: bool) -> dict[str, Any] | None:
        return self.frames.pop(0) if self.frames else None


def test_what_is_waited_for_is_answered_with_the_word_of_the_driver():
    heard = Heard(stop_at=2)
    far = Far(Wire(Talk(heard)))
    assert far.report(1, 0.5, None, wait=True) == "go"
    assert far.report(2, {"loss": 1.0}, 0.25, wait=True) == "stop"
    far.saved(2, "/a/folder")
    assert (heard.reports, heard.checkpoints) == ([(1, 0.5, None), (2, {"loss": 1.0}, 0.25)], [(2, "/a/folder")])


def test_what_is_not_waited_for_has_no_answer_until_a_flush():
    wire = Wire(Talk(Heard()))
    far = Far(wire)
    far.flush()
    assert wire.sent == []  # nothing to wait for
    far.report(1, 0.5, None, wait=False)
    assert wire.frames == []
    far.flush()
    assert [frame["talk"] for frame in wire.sent] == ["report", "flush"]


def test_a_word_is_pushed_once():
    heard = Heard()
    talk = Talk(heard)
    assert talk.push() is None
    heard.leaves.set()
    assert talk.push() == {"word": "leave"}
    assert talk.push() is None
    wire = Wire(talk)
    wire.frames.append({"word": "leave"})
    assert Far(wire).word() == "leave"


def test_an_error_is_raised_where_the_run_next_listens():
    far = Far(Wire(Talk(Heard(refuse=2))))
    far.report(1, 0.5, None, wait=True)
    with pytest.raises(InvalidInput, match="Step 2 is refused"):
        far.report(2, 0.5, None, wait=False)
    assert far.report(3, 0.5, None, wait=True) == "go"


def test_without_an_answer_a_run_is_to_leave():
    assert Far(Wire(None)).report(1, 0.5, None, wait=True) == "leave"
