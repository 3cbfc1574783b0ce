"""Which requests are answered: the same rules for every address.

Any web page that the same browser shows can reach a page on a loopback address, through a host name that resolves to
it.  So a request must name the address that is served.  Only reading is answered.  Beyond loopback a token is needed:
a script sends it in a header; a browser sends it once in the address and keeps a cookie.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Collection
from functools import cache
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from boca.domain.errors import InvalidInput

_MIN_TOKEN = 16  # characters: too many to guess over a network
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

_HEADERS = {
    # Scripts come from here only.  Plotly inserts its style sheets as text, and its titles need them.
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
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def check_token(token: str | None, address: str) -> None:
    """Refuse a token that can be guessed, and an address beyond loopback without a token."""
    if token is None:
        if not is_loopback(address):
            raise InvalidInput(
                f"--host {address} without a token would let everyone who can reach it read your studies. "
                f"A token has {_MIN_TOKEN} characters or more. Add --token, or use 127.0.0.1 through ssh -L."
            )
    elif len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput(
            f"The token given has {len(token)} characters; it must have {_MIN_TOKEN} printable ASCII characters or "
            'more, without spaces. To make one: python -c "import secrets; print(secrets.token_urlsafe())"'
        )


def names_of(host: str, address: str) -> frozenset[str] | None:
    """Return the host names that a request may use; None for the names of this machine, and any IP address."""
    if is_loopback(address):
        return _LOOPBACK | {host.lower(), address}
    if ipaddress.ip_address(address).is_unspecified:
        return None
    return frozenset({host.lower(), address})


class Guard:
    """Refuse requests that are not for this page, and set the headers that protect it in a browser.

    Args:
        app: The application behind.
        names: The host names that a request may use, as `names_of` returns them.
        token: What a request must prove to know; None if no token is needed.
        cookie: The name of the cookie in which a browser keeps the proof.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str] | None, token: str | None, cookie: str) -> None:
        self._app = app
        self._names = names
        self._token = None if token is None else token.encode()
        self._cookie = cookie

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # a web socket, which this page does not have
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        sent = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        gives_cookie = self._token is not None and any(self._is_right(given) for given in sent)

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
            return PlainTextResponse(
                "This request names no host. Send a Host header with the address of the page.\n", 400
            )
        if not self._is_ours(_name(host)):
            return PlainTextResponse(
                "This host name is not that of the page. Use the address that boca dashboard printed.\n", 421
            )
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("This page only reads. Use GET or HEAD.\n", 405, headers={"Allow": "GET, HEAD"})
        if self._token is not None and not has_token and not self._has_proof(headers):
            words = "The token is missing or wrong. Open the page with ?token=... at the end of its address.\n"
            return PlainTextResponse(words, 401, headers={"WWW-Authenticate": "Bearer"})
        return None

    def _is_ours(self, name: str) -> bool:
        if self._names is not None:
            return name in self._names
        if name in _LOOPBACK or name in _names_here():
            return True
        try:
            ipaddress.ip_address(name)  # unlike a name, a number cannot be made to resolve to another address
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
        plus = given.replace(" ", "+")  # a plus in an address is read as a space; a token has no spaces
        return self._token is not None and hmac.compare_digest(plus.encode(), self._token)

    def _secret(self) -> str:
        """Return the content of the cookie: it proves that the token is known, and does not show it."""
        assert self._token is not None
        return hmac.new(self._token, b"boca dashboard", hashlib.sha256).hexdigest()


@cache
def _names_here() -> frozenset[str]:
    """Return the names of this machine, which a slow name server should be asked for once."""
    return frozenset({socket.gethostname().lower(), socket.getfqdn().lower()})


def _name(host: str) -> str:
    """Return the name of a Host header without its port, which a tunnel may change."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
