"""Serve the live page until somebody ends it."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Callable

from boca.domain.errors import InvalidInput
from boca.study.storage.reader import Reader


def serve(
    url: str,
    *,
    host: str = "127.0.0.1",
    port: int = 8321,
    token: str | None = None,
    say: Callable[[str], object] = print,
) -> None:
    """Show the studies of a storage to browsers until Ctrl-C; `say` hears the address.

    A host beyond loopback needs a token of 16 characters or more.  Nothing is written to the storage.
    """
    try:
        import uvicorn

        from boca.dashboard import access, app
    except ModuleNotFoundError as error:
        raise InvalidInput(f"The live page needs {error.name}: pip install 'boca[dashboard]'.") from error
    from boca.dashboard.advice import Adviser
    from boca.dashboard.watch import Watcher

    app.missing_files()
    family, address = _resolved(host, port)
    access.check_token(token, address)
    reader = Reader(url)
    reader.read(lambda _: None)  # what is wrong with the storage is said here, not on a page
    with _listening(family, address, port) as listener:
        bound = int(listener.getsockname()[1])
        watcher = Watcher(reader)
        watcher.look()
        page = app.create(
            watcher,
            Adviser(watcher),
            names=access.names_of(host, address),
            token=token,
            cookie=f"boca_{bound}",  # cookies know no ports
        )
        config = uvicorn.Config(
            page,
            log_level="warning",
            access_log=False,  # it would show the token
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=2,
        )
        shown = f"[{host}]" if ":" in host else host
        say(f"http://{shown}:{bound}/{'' if token is None else '?token=...'} shows {reader.place}. Ctrl-C ends it.")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])


def _resolved(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """Return the one address that a host name stands for."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"--host must be an address of this machine; got {host!r} ({error}).") from error
    family, *_, place = min(found, key=lambda f: f[0] != socket.AF_INET)
    address = str(ipaddress.ip_address(str(place[0]).partition("%")[0]))
    return socket.AddressFamily(family), address


def _listening(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    try:
        return socket.create_server((address, port), family=family)
    except (OSError, OverflowError) as error:
        raise InvalidInput(
            f"The page needs a free port of this machine; {address} with port {port}: {error}. Give another --port."
        ) from error
