"""No test of the engines may leave a process behind."""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left_behind() -> Iterator[None]:
    """Fail a module after which processes run that it started, children of children included."""
    mark = f"BOCA_TEST={uuid.uuid4().hex}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*mark.split("="))
        yield
    if sys.platform == "linux":
        deadline = time.monotonic() + 5.0
        while (left := started_with(mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == []


def started_with(mark: str) -> list[str]:
    """Return the commands of the processes whose environment has the mark."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.name != str(os.getpid()) and mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:  # it has ended, or belongs to another user
            continue
    # the standard library keeps one of these as long as this process runs
    return [command for command in found if "resource_tracker" not in command]
