"""What makes a folder a checkpoint: a stamp that says of which study, trial and step it is.

A folder without a stamp, or with another one, is never trusted: it was not finished, or belongs to something else.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

NAME = "boca-checkpoint.json"


def write(folder: Path, *, study: str, trial: int, attempt: int, step: int) -> None:
    """Stamp a folder, and return when it is on the disk with all that is in it."""
    said = {"study": study, "trial": trial, "attempt": attempt, "step": step}
    (folder / NAME).write_text(json.dumps(said))
    for inside in folder.rglob("*"):
        if inside.is_file() and not inside.is_symlink():
            _to_disk(inside)
    for inside in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        _to_disk(inside)


def move(folder: Path, to: Path) -> Path:
    """Give a stamped folder its name, in one move that is on the disk when this returns."""
    folder.rename(to)
    _to_disk(to.parent)
    return to


def fits(path: str | os.PathLike[str] | None, *, study: str, step: int, trial: int | None = None) -> bool:
    """Whether a folder is a checkpoint of this study and step, and of this trial if one is given."""
    if path is None:
        return False
    try:
        said = json.loads((Path(path) / NAME).read_text())
    except (OSError, ValueError):
        return False
    if not isinstance(said, dict) or (said.get("study"), said.get("step")) != (study, step):
        return False
    return trial is None or said.get("trial") == trial


def _to_disk(path: Path) -> None:
    """Write to the disk what the system may still have in memory; file systems that cannot do so for folders say so."""
    number = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(number)
    finally:
        os.close(number)
