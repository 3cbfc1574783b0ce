"""Where a study lives: in memory, or in a database that many processes may share."""

from boca.study.storage.base import Lease, Queued, Report, Snapshot, Storage
from boca.study.storage.memory import Memory
from boca.study.storage.owner import Owner

__all__ = ["Lease", "Memory", "Owner", "Queued", "Report", "Snapshot", "Storage"]
