"""The version of this library, which every trial carries."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.1.0"
