"""Where the data of the tasks lie: `$BOCA_DATA/real` for what others made, `tables/` for what this project made."""

from __future__ import annotations

import os
from pathlib import Path

from boca.domain.errors import BocaError

TABLES = Path(__file__).with_name("tables")


class DataMissing(BocaError):
    """The data of a task are not on this machine."""


def shared(name: str) -> Path:
    """Return a file or folder under `$BOCA_DATA/real`, or say what is missing."""
    root = os.environ.get("BOCA_DATA")
    if root is None:
        raise DataMissing(
            f"BOCA_DATA is not set, and {name} is read from $BOCA_DATA/real. Type export BOCA_DATA=FOLDER, the folder "
            "that has real/yahpo and real/taskset, or choose tasks of the families tables and live."
        )
    path = Path(root) / "real" / name
    if not path.exists():
        raise DataMissing(
            f"{path} does not exist. BOCA_DATA must name the folder that has real/{name}; it is {root}. Lay the data "
            "there, or choose tasks of the families tables and live."
        )
    return path


def table(name: str) -> Path:
    """Return the file of a table that this project made."""
    return TABLES / f"{name}.npz"


def has_shared() -> bool:
    """Whether the data that others made are on this machine."""
    try:
        return shared("yahpo").is_dir() and shared("taskset").is_dir()
    except DataMissing:
        return False
