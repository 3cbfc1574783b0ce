"""Where a study lives."""

from boca.storage.memory import Memory

__all__ = ["Memory"]
