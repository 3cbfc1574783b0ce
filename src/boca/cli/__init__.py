"""The command `boca`: run studies that files describe, and look at what a storage has."""

from boca.cli.command import app, main

__all__ = ["app", "main"]
