"""The errors and warnings that this library raises on purpose, to be imported from here."""

from boca.domain.errors import (
    BocaError,
    Doubtful,
    InvalidInput,
    InvalidTrial,
    ObjectiveFailed,
    RunStopped,
    StorageFailed,
    Terminated,
    UnknownArgument,
)

__all__ = [
    "BocaError",
    "Doubtful",
    "InvalidInput",
    "InvalidTrial",
    "ObjectiveFailed",
    "RunStopped",
    "StorageFailed",
    "Terminated",
    "UnknownArgument",
]
