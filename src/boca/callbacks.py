"""Ready-made callbacks for `maximize` and `minimize`: the public names of `boca.execution.callbacks`."""

from boca.execution.callbacks import Log, Progress

__all__ = ["Log", "Progress"]
