"""What `executor=` may be besides a number, and the interface of an engine, to be imported from here."""

from boca.execution.executors import Engine, Outcome, Workers

Slots = Workers
"""The name until 0.1: programs that use it go on working."""

__all__ = ["Engine", "Outcome", "Slots", "Workers"]
