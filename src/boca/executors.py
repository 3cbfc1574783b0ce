"""Values of `executor=` beside a number, and the interface of an engine: the public names of `boca.execution`."""

from boca.execution.executors import Engine, Outcome, Workers

Slots = Workers
"""The former name of `Workers`, kept for programs that use it."""

__all__ = ["Engine", "Outcome", "Slots", "Workers"]
