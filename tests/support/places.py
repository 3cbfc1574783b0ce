"""A place where a study can be kept, the same for tests on every storage; and processes that start together."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boca import Optimizer
from boca.study.storage import Memory, Storage
from boca.study.storage.sql import Database
from support import postgres

SPEC = {"made": "by hand"}


@dataclass
class Place:
    """A place for studies: many handles may be opened on one of them."""

    kind: str
    url: str | None
    prefix: str = ""
    _memories: dict[str, Memory] = field(default_factory=dict)
    _open: list[Any] = field(default_factory=list)
    _shared: Database | None = None

    def study(self, name: str = "study") -> Storage:
        """Return one more handle on a study, which is made with the first."""
        if self.url is None:
            return self._memories.setdefault(name, Memory())
        if self._shared is None:
            self._shared = self.database()
        self._shared.create(self.prefix + name, SPEC)
        return self._shared.study(self.prefix + name)

    def corner(self, name: str) -> Place:
        """Return a place here whose studies have names of their own."""
        return Place(self.kind, self.url, f"{name}: ")

    def database(self) -> Database:
        assert self.url is not None
        database = Database(self.url)
        self._open.append(database)
        return database

    def optimizer(self, problem: Any, *, name: str = "study", **settings: Any) -> Optimizer:
        """Return an optimiser on a study as another process would see it."""
        optimizer = Optimizer(problem, storage=self.url, name=self.prefix + name, **settings)
        if self.url is None:
            optimizer.storage = self._memories.setdefault(name, Memory())
        else:
            self._open.append(optimizer.storage)
        return optimizer

    def close(self) -> None:
        """Close every handle; another one may be opened afterwards."""
        self._shared = None
        while self._open:
            self._open.pop().close()


@contextmanager
def on(kind: str, directory: Path) -> Iterator[Place]:
    """Yield an empty place in memory, in a file or on a server."""
    urls: dict[str, Callable[[], str | None]] = {
        "memory": lambda: None,
        "sqlite": lambda: f"sqlite:///{directory / 'study.db'}",
        "postgres": lambda: postgres.server().fresh(),
    }
    place = Place(kind, urls[kind]())
    try:
        yield place
    finally:
        place.close()


# Processes ------------------------------------------------------------------------------------------------------------

# A server that has everything imported forks them: a fresh interpreter each would take a second to begin.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["pytest", "boca", "boca.study.storage.sql", "psycopg", "support.places"])
_gate: Any = None


def together(count: int, work: Callable[..., Any], *arguments: Any, timeout: float = 120.0) -> list[Any]:
    """Return what `work(k, *arguments)` returns in processes k = 0, 1, ... that begin at the same moment."""
    gate = FORKS.Barrier(count)
    with ProcessPoolExecutor(count, mp_context=FORKS, initializer=_remember, initargs=(gate,)) as pool:
        futures = [pool.submit(_begin, work, k, *arguments) for k in range(count)]
        return [future.result(timeout) for future in futures]


def _remember(gate: Any) -> None:
    global _gate
    _gate = gate
    sys.setswitchinterval(1e-4)


def _begin(work: Callable[..., Any], *arguments: Any) -> Any:
    _gate.wait(60.0)
    return work(*arguments)
