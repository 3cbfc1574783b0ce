"""Word between a run and its driver through two files, where engines have no way back for it: pools and clusters.

Both files only grow, a line at a time, and each has one writer.  They lie in the folder of the study's checkpoints, so
that a run that can reach them can also report.  One that cannot sends its reports with its result.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, final

from boca.execution.executors.handle import Kept, Link, Plan, evaluate_run
from boca.execution.executors.talk import Far, Frame, Talk
from boca.execution.executors.worker import Report

_FROM_RUN, _FROM_DRIVER = "run.jsonl", "driver.jsonl"
_SILENCE_SECONDS = 120.0  # without an answer after which the driver is taken for dead: a decision may take a while
_POLL_SECONDS = 0.02  # of the driver, over all of its runs
_PATIENCE = (0.001, 0.03)  # seconds between two looks of a run that waits: the first and the longest

log = logging.getLogger("boca")


class _Lines:
    """The lines of a file that another process writes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def next(self) -> list[Frame]:
        """Return what was added since the last call, whole lines only."""
        try:
            with open(self._path, "rb") as file:  # opened anew: over a network, an open file may not show what is new
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        return [json.loads(line) for line in whole.splitlines()]


def _append(path: Path, frame: Frame) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(frame, allow_nan=False) + "\n")


# The run --------------------------------------------------------------------------------------------------------------


@final
class Mail:
    """The two files as the run has them."""

    def __init__(self, folder: Path) -> None:
        self._out = folder / _FROM_RUN
        self._lines = _Lines(folder / _FROM_DRIVER)
        self._heard: list[Frame] = []

    def send(self, frame: Frame) -> None:
        with contextlib.suppress(FileNotFoundError):  # the driver has closed it and expects nothing more
            _append(self._out, frame)

    def receive(self, *, wait: bool) -> Frame | None:
        pause, deadline = _PATIENCE[0], time.monotonic() + _SILENCE_SECONDS
        while True:
            self._heard += self._lines.next()
            if self._heard:
                return self._heard.pop(0)
            if not wait or time.monotonic() >= deadline or not self._out.parent.is_dir():
                return None
            time.sleep(pause)
            pause = min(2.0 * pause, _PATIENCE[1])


def evaluate_by_mail(objective: Callable[..., object], arguments: tuple[Any, ...], plan: Plan) -> Report:
    """Evaluate a run of a pool or cluster; without a folder that its driver shares, its reports come at the end."""
    if plan.mailbox is not None and Path(plan.mailbox).is_dir():
        return evaluate_run(objective, arguments, plan, Far(Mail(Path(plan.mailbox))))
    kept = Kept()
    report = evaluate_run(objective, arguments, replace(plan, folder=None), kept)
    return report._replace(told=tuple(kept.told), apart=True)


# The driver -----------------------------------------------------------------------------------------------------------


@final
class Box:
    """The mailbox of one run as its driver has it."""

    def __init__(self, folder: Path, link: Link) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._lines = _Lines(folder / _FROM_RUN)
        self._talk = Talk(link)
        self._lock = threading.Lock()

    def serve(self) -> None:
        """Answer what the run has said since, and say what it should hear."""
        with self._lock:
            for frame in self._lines.next():
                self._say(self._talk.hear(frame))
            self._say(self._talk.push())

    def close(self) -> None:
        """Take the last of what the run has said, and remove the files."""
        self.serve()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _say(self, frame: Frame | None) -> None:
        if frame is not None:
            _append(self._folder / _FROM_DRIVER, frame)


@final
class Mailroom:
    """Serves the mailboxes of all runs of an engine, in a thread that ends when there are none."""

    def __init__(self) -> None:
        self._change = threading.Condition()
        self._boxes: list[Box] = []
        self._thread: threading.Thread | None = None

    def open(self, plan: Plan, link: Link) -> Box | None:
        """Return a mailbox at the place that the plan names, None if it names none."""
        if plan.mailbox is None:
            return None
        box = Box(Path(plan.mailbox), link)
        with self._change:
            self._boxes.append(box)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="boca mail", daemon=True)
                self._thread.start()
        return box

    def close(self, box: Box | None) -> None:
        """Close a mailbox once; None is none."""
        with self._change:
            if box is None or box not in self._boxes:
                return
            self._boxes.remove(box)
            self._change.notify_all()
        box.close()

    def _work(self) -> None:
        while True:
            with self._change:
                if not self._boxes:
                    self._thread = None
                    return
                boxes = list(self._boxes)
            for box in boxes:
                try:
                    box.serve()
                except Exception as error:  # the others go on; this run hears nothing, and ends by itself
                    log.warning("A run could not be answered: %r", error)
            with self._change:
                self._change.wait(_POLL_SECONDS)
