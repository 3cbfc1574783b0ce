"""Rules for `stop=` of `maximize` and `minimize`: the public names of `boca.execution.stopping`."""

from boca.execution.stopping import NotWorthIt

__all__ = ["NotWorthIt"]
