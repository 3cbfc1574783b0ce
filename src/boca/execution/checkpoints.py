"""The folder of a study's checkpoints: where it is, what in it can be trusted, and when something in it is deleted.

A checkpoint is a folder with a stamp; the storage says which one a trial has.  Both must agree before anything goes on
from it.  One is deleted when no decision can use it any more: when there is a later one of the same chain, when the
chain has reached the last step, and when its trial has failed.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
import shutil
import tempfile
from pathlib import Path

from boca.domain.errors import InvalidInput
from boca.domain.space import whole_number
from boca.domain.trial import History, Trial, sign
from boca.execution.executors import stamp
from boca.study.optimizer import Optimizer
from boca.study.storage.location import location, sqlite_path

_SERVER_FOLDER = "boca-checkpoints"  # in the current folder, for a study whose storage is a server
_TALK = "talk"  # the part of the folder for word between runs and their drivers
_NAME_LENGTH = 40  # characters of a study's name in the name of its folder

log = logging.getLogger("boca")


def checked_keep(keep: object) -> int | None:
    """Return how many checkpoints are kept at most, or refuse what cannot be meant."""
    if keep is None:
        return None
    number = whole_number(keep, "keep_checkpoints")
    if number < 0:
        raise InvalidInput(
            f"keep_checkpoints is {keep!r}, and must be 0 or more, or None for as many as decisions can use. "
            "Type keep_checkpoints=20."
        )
    return number


def checked_place(place: object) -> Path | None:
    """Return the folder that a user names for checkpoints, or refuse what is none."""
    if place is None:
        return None
    if not isinstance(place, str | os.PathLike) or not os.fspath(place):
        raise InvalidInput(f"checkpoints is {place!r}, and must be a folder. Type checkpoints='/shared/checkpoints'.")
    path = Path(os.fsdecode(os.fspath(place))).absolute()
    if path.exists() and not path.is_dir():
        raise InvalidInput(f"checkpoints is {str(place)!r}, which is a file, and must be a folder. Name another one.")
    return path


def default_place(storage: str | None) -> Path | None:
    """Return where checkpoints are if the user does not say: beside a SQLite file; None for a temporary folder."""
    if storage is None:
        return None
    file = sqlite_path(location(storage))
    if file is not None:
        return Path(f"{file}-checkpoints").absolute()
    return None if location(storage).startswith("sqlite") else Path(_SERVER_FOLDER).absolute()


class Checkpoints:
    """The checkpoints of one study."""

    def __init__(self, optimizer: Optimizer, place: Path | None, *, keep: int | None = None) -> None:
        """Use a folder under `place`, or a temporary one; of those for later decisions, keep at most `keep`."""
        self.study = hashlib.sha256(f"{optimizer.name}\0{optimizer.seed}".encode()).hexdigest()[:12]
        self._optimizer = optimizer
        self._temporary = None if place is not None else tempfile.mkdtemp(prefix="boca-checkpoints-")
        name = re.sub(r"[^\w.-]+", "_", optimizer.name)[:_NAME_LENGTH]
        self.folder = Path(self._temporary or str(place)) / f"{name}-{self.study}"
        self._keep = keep

    @property
    def talk(self) -> Path:
        """The folder for the mailboxes of runs."""
        return self.folder / _TALK

    def make(self) -> None:
        """Make the folder, or say why it cannot be."""
        try:
            self.talk.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(
                f"The folder for checkpoints, {str(self.folder)!r}, cannot be made: {error.strerror}. Name one that "
                "can be written to with checkpoints=."
            ) from error

    def has(self, trial: Trial) -> bool:
        """Whether the checkpoint that a trial goes on from is there, and is what it should be."""
        return stamp.fits(trial.checkpoint, study=self.study, step=trial.saved)

    def sweep(self) -> None:
        """Forget checkpoints that are gone, and delete those that no trial knows and no process is writing."""
        history = self._optimizer.storage.read().history
        for trial in history:
            if self._is_own(trial.checkpoint) and not self.has(trial):
                log.warning("The checkpoint of trial %d is gone: no trial can continue it.", trial.number)
                self._optimizer.drop(trial.number)
        known = {trial.checkpoint for trial in history}
        running = {f"{trial.number:06d}" for trial in history.running}
        for own in self.folder.glob("[0-9]*"):
            if own.name in running:
                continue
            for path in own.iterdir():
                if str(path) not in known:
                    shutil.rmtree(path, ignore_errors=True)
            _remove_if_empty(own)

    def replaced(self, before: str | None) -> None:
        """Delete the checkpoint of a trial that has left a newer one."""
        if self._is_own(before) and before is not None:
            shutil.rmtree(before, ignore_errors=True)

    def after(self, number: int) -> None:
        """Delete what no decision can use, now that this trial has finished."""
        history = self._optimizer.storage.read().history
        for trial in self._useless(history, history[number]):
            self._drop(trial)
        if self._keep is not None:
            history = self._optimizer.storage.read().history
            for trial in self._least_promising(history):
                self._drop(trial)

    def close(self) -> None:
        """Remove a temporary folder; others stay for the next run."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
        else:
            _remove_if_empty(self.talk)

    def _useless(self, history: History, trial: Trial) -> list[Trial]:
        """Return the trials of a chain whose checkpoints nothing can go on from any more."""
        *before, own = history.chain(trial)
        if own.state == "failed":
            return [own] if own.checkpoint is not None else []
        is_over = self._optimizer.problem.step(own.z) >= self._last_step
        has_later = own.checkpoint is not None and own.saved > own.origin
        useless = [*before, own] if is_over else before if has_later else []
        return [t for t in useless if t.checkpoint is not None]

    def _least_promising(self, history: History) -> list[Trial]:
        """Return the trials to forget beyond those that are kept: the worst values go first, of equals the older."""
        in_use = {trial.continues for trial in history.running}
        paused = [t for t in history.complete if t.checkpoint is not None and t.number not in in_use]
        turn = sign(self._optimizer.problem.direction)
        paused.sort(key=lambda t: (turn * t.value if t.value is not None else -math.inf, t.number))
        return paused[: max(0, len(paused) - (self._keep or 0))]

    def _drop(self, trial: Trial) -> None:
        path = trial.checkpoint
        self._optimizer.drop(trial.number)  # first, so that a crash between the two leaves none that is not there
        shared = any(t.checkpoint == path for t in self._optimizer.storage.read().history)
        if not shared and self._is_own(path) and path is not None:
            shutil.rmtree(path, ignore_errors=True)
            _remove_if_empty(Path(path).parent)

    @property
    def _last_step(self) -> float:
        problem = self._optimizer.problem
        ends = None if problem.steps is None else problem.fidelity[problem.steps].ends
        return math.inf if ends is None else ends[1]

    def _is_own(self, path: str | None) -> bool:
        return path is not None and Path(path).is_relative_to(self.folder)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return
