"""The errors that this library raises on purpose, to be imported from here."""

from boca.domain.errors import (
    BocaError,
    InvalidInput,
    InvalidTrial,
    ObjectiveFailed,
    RunStopped,
    StorageFailed,
    Terminated,
)

__all__ = ["BocaError", "InvalidInput", "InvalidTrial", "ObjectiveFailed", "RunStopped", "StorageFailed", "Terminated"]
