"""Which peer is here: the version goes into every record."""

from __future__ import annotations

from importlib import metadata

from boca.domain.errors import BocaError


def version(package: str, make: str = "peers") -> str:
    """Return the version of an installed peer, or say how to get it."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as missing:
        raise BocaError(
            f"This adapter needs {package}, which is not in this environment. `make {make}` makes one that has it."
        ) from missing
