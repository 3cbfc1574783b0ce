"""What `executor=` may be besides a number, and the interface of an engine, to be imported from here."""

from boca.execution.executors import Engine, Outcome, Slots

__all__ = ["Engine", "Outcome", "Slots"]
