"""Ready-made callbacks for `maximize` and `minimize`, to be imported from here."""

from boca.execution.callbacks import Log, Progress

__all__ = ["Log", "Progress"]
