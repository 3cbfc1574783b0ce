"""Ready-made callbacks for `maximize` and `minimize`: the public names of `boca.execution.callbacks`."""

from boca.execution.callbacks import JsonLines, Log, Progress

__all__ = ["JsonLines", "Log", "Progress"]
