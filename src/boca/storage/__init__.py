"""Where a study lives: in memory, or in a database that many processes may share."""

from boca.storage.base import Lease, Queued, Snapshot, Storage
from boca.storage.memory import Memory
from boca.storage.owner import Owner

__all__ = ["Lease", "Memory", "Owner", "Queued", "Snapshot", "Storage"]
