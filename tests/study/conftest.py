"""Where the tests keep their studies."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from support import postgres
from support.places import Place, on


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Place]]:
    """A place of each kind for all tests that are content with a study of their own in it."""
    with ExitStack() as stack:

        @functools.cache
        def place_of(kind: str) -> Place:
            return stack.enter_context(on(kind, tmp_path_factory.mktemp(kind)))

        yield place_of


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def place(request: pytest.FixtureRequest, shared: Callable[[str], Place]) -> Iterator[Place]:
    """A place for a new study, in every storage in turn."""
    found = shared(request.param).corner(request.node.name)
    yield found
    found.close()


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


@pytest.fixture
def statements() -> Iterator[list[str]]:
    """Every statement that any database is sent, as it is sent."""
    sent: list[str] = []

    def note(connection: Any, cursor: Any, statement: str, parameters: Any, context: Any, executemany: bool) -> None:
        sent.append(" ".join(statement.split()))

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    yield sent
    sa.event.remove(sa.Engine, "before_cursor_execute", note)


def pytest_sessionfinish() -> None:
    postgres.remove()
