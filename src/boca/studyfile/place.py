"""Where the evaluations of a study file run: in worker processes of this machine, or on a cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from boca.domain.errors import InvalidInput
from boca.execution.executors import Workers
from boca.studyfile.settings import Table, only

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(k|[KMGT]i|[MGT])?B?\s*", re.ASCII)
_EXAMPLES = {"dask": "tcp://127.0.0.1:8786", "ray": "auto"}


@dataclass(frozen=True)
class Place:
    """Where evaluations run, and with what."""

    kind: Literal["here", "dask", "ray"] = "here"
    address: str = ""
    memory: int | None = None
    """Bytes for each worker process of this machine."""
    environment: tuple[tuple[str, str], ...] = ()

    @contextmanager
    def opened(self, workers: int | None) -> Iterator[Any]:
        """Yield what `executor=` takes, connected as long as the run lasts."""
        os.environ.update(self.environment)  # this process belongs to the study, and its workers inherit it
        if self.kind == "here":
            yield Workers(workers or 1, memory=self.memory)
        elif self.kind == "dask":
            with _dask(self.address) as client:
                yield client
        else:
            with _ray(self.address) as ray:
                yield ray


@contextmanager
def _dask(address: str) -> Iterator[Any]:
    try:
        from distributed import Client
    except ImportError as error:
        raise InvalidInput("executor = { dask = ... } needs Dask. Run `pip install 'boca[dask]'`.") from error
    try:
        client: Any = Client(address, timeout=30)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"No Dask scheduler answers at {address!r}: {error}. Start one with `dask scheduler`, or give its address."
        ) from error
    with client:
        yield client


@contextmanager
def _ray(address: str) -> Iterator[Any]:
    try:
        import ray
    except ImportError as error:
        raise InvalidInput("executor = { ray = ... } needs Ray. Run `pip install 'boca[ray]'`.") from error
    try:
        ray.init(address=address, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"No Ray cluster answers at {address!r}: {error}. Start one with `ray start --head`, or give its address."
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()


def placed(document: Table) -> Place:
    """Return where the evaluations of a study run, or refuse what cannot be meant."""
    environment = _environment(document.get("environment", {}))
    memory = _memory(document.get("memory"))
    given = document.get("executor")
    if given is None:
        return Place(memory=memory, environment=environment)
    if not isinstance(given, dict):
        raise InvalidInput(
            f'executor must be a table such as {{ dask = "tcp://host:8786" }} or {{ ray = "auto" }}; got {given!r}. '
            "For worker processes of this machine leave it out and give workers."
        )
    only(given, _EXAMPLES, "executor")
    if len(given) != 1:
        raise InvalidInput(f"executor must have exactly one of {' and '.join(_EXAMPLES)}; got {given!r}.")
    ((kind, address),) = given.items()
    if not isinstance(address, str) or not address.strip():
        raise InvalidInput(f"executor.{kind} must be an address such as {_EXAMPLES[kind]!r}; got {address!r}.")
    if memory is not None:
        raise InvalidInput(
            f"memory = {document['memory']!r} limits worker processes of this machine, and the executor is {kind}. "
            "Leave memory out, and limit the workers of the cluster."
        )
    return Place(kind, address, None, environment)


def _environment(given: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(given, dict):
        raise InvalidInput(f'environment must be a table such as {{ OMP_NUM_THREADS = "1" }}; got {given!r}.')
    for name, value in given.items():
        if not name or "=" in name or "\0" in name:
            raise InvalidInput(
                f"environment has the name {name!r}, and a name must not be empty or have '=' or NUL in it. Rename it."
            )
        if not isinstance(value, str) or "\0" in value:
            raise InvalidInput(f'environment.{name} must be text such as "1"; got {value!r}.')
    return tuple(given.items())


def _memory(given: object) -> int | None:
    """Return bytes: a whole number, or text with a unit."""
    if given is None:
        return None
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    found = _SIZE.fullmatch(given) if isinstance(given, str) else None
    bytes_ = 0 if found is None else round(float(found[1]) * _UNITS[found[2] or ""])
    if bytes_ < 1:
        raise InvalidInput(f'memory must be a number of bytes, or text such as "4 GB" or "512 MiB"; got {given!r}.')
    return bytes_
