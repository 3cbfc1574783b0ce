"""Where the tests keep their studies."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from storage import postgres
from storage.places import Place, on


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place for a study, in every storage in turn."""
    with on(request.param, tmp_path) as found:
        yield found


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """An empty place in every storage that outlives a process."""
    with on(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    """A running PostgreSQL, whatever the test does to it."""
    found = postgres.server()
    yield found
    found.stop()
    found.start()


def pytest_sessionfinish() -> None:
    postgres.remove()
