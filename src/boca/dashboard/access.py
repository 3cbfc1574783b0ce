"""Who may ask, and for what: the same for every address.

A page on a loopback address can be reached by any web page that the same browser shows, through a name that resolves
to it.  So a request must name the address that is served.  Nothing but reading is answered.  Beyond loopback a token is
needed, which a script can send in a header and a browser brings once in the address and keeps as a cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from boca.domain.errors import InvalidInput

_SHORTEST = 16  # characters of a token
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

_HEADERS = {
    # Scripts come from here alone.  Plotly brings style sheets as text: without them its titles fall out of the charts.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def is_loopback(address: str) -> bool:
    """Whether nobody but this machine reaches an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def check_token(token: str | None, address: str) -> None:
    """Refuse a token that can be guessed, and an address that needs one and has none."""
    if token is None:
        if not is_loopback(address):
            raise InvalidInput(
                f"Whoever reaches {address} could read your studies: give --token, {_SHORTEST} characters or more, "
                "or stay on 127.0.0.1 and come through ssh -L."
            )
    elif len(token) < _SHORTEST or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(
            f"A token must have {_SHORTEST} printable ASCII characters or more, without spaces; got {len(token)}. "
            'One is: python -c "import secrets; print(secrets.token_urlsafe())"'
        )


def names_of(host: str, address: str) -> frozenset[str] | None:
    """Return the names under which an address may be asked for; None: this machine's, and any number."""
    if is_loopback(address):
        return _LOOPBACK | {host.lower(), address}
    if ipaddress.ip_address(address).is_unspecified:
        return None
    return frozenset({host.lower(), address})


class Guard:
    """Refuse what is not for us, and say on every answer how a browser shall treat it."""

    def __init__(self, app: ASGIApp, *, names: Collection[str] | None, token: str | None, cookie: str) -> None:
        self._app = app
        self._names = names
        self._token = None if token is None else token.encode()
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket: there are none here
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        brought = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        gives_cookie = self._token is not None and any(self._is_right(given) for given in brought)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    answer[name] = value
                answer.setdefault("Cache-Control", "no-store")
                if gives_cookie:
                    answer["Set-Cookie"] = f"{self._cookie}={self._secret()}; Path=/; HttpOnly; SameSite=Strict"
            await send(message)

        refusal = self._refusal(scope["method"], headers, gives_cookie)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, method: str, headers: Headers, has_token: bool) -> PlainTextResponse | None:
        host = headers.get("host")
        if host is None:
            return PlainTextResponse("A request must name the host that it is for.\n", 400)
        if not self._is_ours(_name(host)):
            return PlainTextResponse("This page answers under its own address alone.\n", 421)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("This page is for reading alone.\n", 405, headers={"Allow": "GET, HEAD"})
        if self._token is not None and not has_token and not self._has_proof(headers):
            words = "A token is needed: open the page with ?token=... at the end of its address.\n"
            return PlainTextResponse(words, 401, headers={"WWW-Authenticate": "Bearer"})
        return None

    def _is_ours(self, name: str) -> bool:
        if self._names is not None:
            return name in self._names
        if name in _LOOPBACK or name in (socket.gethostname().lower(), socket.getfqdn().lower()):
            return True
        try:
            ipaddress.ip_address(name)  # a number cannot be made to point elsewhere
        except ValueError:
            return False
        return True

    def _has_proof(self, headers: Headers) -> bool:
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_right(given.strip()):
            return True
        try:
            kept = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return kept is not None and hmac.compare_digest(kept.value.encode(), self._secret().encode())

    def _is_right(self, given: str) -> bool:
        plus = given.replace(" ", "+")  # what an address makes of a plus; a token has no spaces
        return self._token is not None and hmac.compare_digest(plus.encode(), self._token)

    def _secret(self) -> str:
        """Return what the cookie holds: it proves the token and does not show it."""
        assert self._token is not None
        return hmac.new(self._token, b"boca dashboard", hashlib.sha256).hexdigest()


def _name(host: str) -> str:
    """Return the name of a Host header without its port, which a tunnel may change."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
