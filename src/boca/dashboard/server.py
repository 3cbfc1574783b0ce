"""Serve the live page until Ctrl-C."""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from boca.domain.errors import InvalidInput
from boca.study.storage.reader import Reader

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette


def serve(
    url: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    say: Callable[[str], object] = print,
) -> None:
    """Show the studies of a storage to browsers until Ctrl-C.  Nothing is written to the storage.

    Args:
        url: The URL of the storage, or the file of a SQLite database.
        host: The address to serve at; beyond loopback it needs a token.
        port: The port; 0 for any that is free.
        token: What a browser must know, 16 characters or more; None if no token is needed.
        say: Called with a line that has the address.
    """
    try:
        import uvicorn

        from boca.dashboard import access, app
    except ModuleNotFoundError as error:
        raise InvalidInput(f"The live page needs {error.name}. Run `pip install 'boca[dashboard]'`.") from error
    from boca.dashboard.advice import Adviser
    from boca.dashboard.watch import Watcher

    family, address = _resolved(host, port)
    access.check_token(token, address)
    reader = Reader(url)
    reader.read(lambda _: None)  # what is wrong with the storage is an error here, not on a page
    with _listening(family, address, port) as listener:
        bound = int(listener.getsockname()[1])
        watcher = Watcher(reader)
        watcher.look()
        page = app.create(
            watcher,
            Adviser(watcher),
            names=access.names_of(host, address),
            token=token,
            cookie=f"boca_{bound}",  # browsers share cookies between ports
        )
        shown = f"[{host}]" if ":" in host else host
        say(
            f"http://{shown}:{bound}/{'' if token is None else '?token=...'} shows {reader.place}. Stop it with Ctrl-C."
        )
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(_configured(page)).run(sockets=[listener])


def _configured(page: Starlette) -> uvicorn.Config:
    import uvicorn

    from boca.dashboard.connections import BACKLOG, Limited, Seldom

    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(Seldom())
    return uvicorn.Config(
        page,
        http=Limited,
        backlog=BACKLOG,
        log_level="warning",
        access_log=False,  # it would show the token
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=2,
    )


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """Return the one address that a host name stands for."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InvalidInput(
            f"--host {host!r} cannot be resolved ({error}). It must be an address of this machine, such as 127.0.0.1."
        ) from error
    family, *_, place = min(found, key=lambda f: f[0] != socket.AF_INET)
    address = str(ipaddress.ip_address(str(place[0]).partition("%")[0]))
    return socket.AddressFamily(family), address


def _listening(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=family)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"The page cannot be served at {address} with port {port}: {error}. It needs an address of this machine "
            "and a free port. Pass another --port."
        ) from error
