"""Where the tests keep their studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import postgres
from support.places import Place, on


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place in every storage that outlives a process."""
    with on(request.param, tmp_path) as found:
        yield found


def pytest_sessionfinish() -> None:
    postgres.remove()
