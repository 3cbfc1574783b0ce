"""Who holds a trial: one process of one machine, told apart from any other process that ever had its number."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Owner:
    """A process: `machine` names the host, its boot and its space of process numbers."""

    machine: str
    pid: int
    started: str
    evaluates: bool = True
    """Whether trials run in this very process, and may be what it died of; else in workers, which end with it."""

    @classmethod
    def me(cls) -> Owner:
        return cls(_machine(), os.getpid(), _started(os.getpid()) or "")

    def is_dead(self) -> bool:
        """Whether the process is known to be gone; of a process on another machine that is never known."""
        if not self.is_here:
            return False
        started = _started(self.pid)
        return started is None or ("" not in (started, self.started) and started != self.started)

    @property
    def is_here(self) -> bool:
        """Whether the process is of this machine, where its life can be seen."""
        return self.machine == _machine()

    @property
    def host(self) -> str:
        return self.machine.partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@cache
def _machine() -> str:
    return f"{socket.gethostname()}/{_boot()}/{_namespace()}"


def _boot() -> str:
    """Return what changes with every start of the machine."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return _said("sysctl", "-n", "kern.boottime")


def _namespace() -> str:
    """Return what tells two containers apart that share a host name and a kernel."""
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """Return when a process began, in any unit; None if it does not exist or is a zombie.

    The answer is "" for a process that exists without showing when it began: those of other users may be hidden.
    """
    if sys.platform == "linux":
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return "" if _exists(pid) else None
        return None if fields[0] in "ZX" else fields[19]
    return _said("ps", "-o", "lstart=", "-p", str(pid)) or ("" if _exists(pid) else None)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:  # it exists, and belongs to another user
        return True
    except OSError:
        return False
    return True


def _said(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""
