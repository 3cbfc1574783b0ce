"""The addresses of the live page.

/                 the page
/page.js, ...     what it is made of
/api/studies      all studies, a line each
/api/study        one of them, and of its trials those that changed since an event
/api/trial        one trial with its reasons
"""

from __future__ import annotations

import hashlib
import json
import secrets
import zlib
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import cache
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from boca.dashboard import views
from boca.dashboard.access import Guard
from boca.dashboard.advice import Adviser
from boca.dashboard.watch import Broken, WatchedStudy, Watcher
from boca.domain.errors import InvalidInput, StorageFailed

_FILES = {
    "/": ("boca.dashboard", "static/page.html", "text/html"),
    "/page.js": ("boca.dashboard", "static/page.js", "text/javascript"),
    "/style.css": ("boca.dashboard", "static/style.css", "text/css"),
    "/plotly.js": ("plotly", "package_data/plotly.min.js", "text/javascript"),
}


def create(
    watcher: Watcher,
    adviser: Adviser,
    *,
    names: Collection[str] | None,
    token: str | None = None,
    cookie: str = "boca",
) -> Starlette:
    """Return the application; the watcher and the adviser begin and end with it."""
    api = _Api(watcher, adviser)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        watcher.start()
        adviser.start()
        try:
            yield
        finally:
            adviser.stop()
            watcher.stop()

    return Starlette(
        routes=[
            *(Route(path, _file(path)) for path in _FILES),
            Route("/api/studies", api.studies),
            Route("/api/study", api.study),
            Route("/api/trial", api.trial),
        ],
        middleware=[Middleware(Guard, names=names, token=token, cookie=cookie)],
        lifespan=life,
    )


class _Api:
    """The answers.  None of them waits for the database but that on one trial, which then is told."""

    def __init__(self, watcher: Watcher, adviser: Adviser) -> None:
        self._watcher = watcher
        self._adviser = adviser
        self._instance = secrets.token_hex(4)  # versions begin anew with every server

    async def studies(self, request: Request) -> Response:
        world, trouble = self._watcher.world, self._watcher.trouble
        place = self._watcher.reader.place
        return _answer(request, self._version(world.version, trouble), lambda: views.listing(world, trouble, place))

    def study(self, request: Request) -> Response:
        world = self._watcher.world
        shown = world.studies.get(request.query_params.get("name", ""))
        if not isinstance(shown, WatchedStudy):
            return self._missing(shown)
        since = _whole(request.query_params.get("since"))
        if request.query_params.get("key") != shown.key or since > shown.event:
            since = 0  # the page knows another study of this name, or another copy of the database
        advice = self._adviser.of(shown)
        trouble = self._watcher.trouble
        version = self._version(shown.version, None if advice is None else advice.told, trouble)
        return _answer(request, version, lambda: views.study(shown, advice, trouble, since=since))

    def trial(self, request: Request) -> Response:
        shown = self._watcher.world.studies.get(request.query_params.get("name", ""))
        if not isinstance(shown, WatchedStudy):
            return self._missing(shown)
        number = _whole(request.query_params.get("number"), otherwise=-1)
        if not 0 <= number < len(shown.history):
            return _json({"error": f"There is no such trial; there are {len(shown.history)}, from 0 on."}, 404)
        try:
            heavy = self._watcher.reader.heavy(shown.row, number)
        except StorageFailed as error:
            return _json({"error": str(error)}, 503)
        if heavy is None:
            return _json({"error": "The trial is not there any more."}, 404)
        return _json(views.trial(shown, shown.history[number], heavy))

    def _missing(self, shown: Broken | None) -> Response:
        """Say what is wrong with a study that cannot be shown."""
        trouble = self._watcher.trouble
        if shown is not None:
            return _json({"error": shown.reason, "trouble": trouble}, 422)
        return _json({"error": "There is no study of this name.", "trouble": trouble}, 404)

    def _version(self, *parts: object) -> str:
        """Return a name for a state: two states of different parts have different ones."""
        return f"{zlib.crc32(repr(parts).encode()):08x}-{parts[0]}-{self._instance}"


def _file(path: str) -> Callable[[Request], Response]:
    package, name, kind = _FILES[path]

    def answer(request: Request) -> Response:
        content, tag = _content(package, name)
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)

    return answer


@cache
def _content(package: str, name: str) -> tuple[bytes, str]:
    content = resources.files(package).joinpath(name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def missing_files() -> None:
    """Refuse to begin without what the page is made of."""
    try:
        for package, name, _ in _FILES.values():
            _content(package, name)
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise InvalidInput(f"The live page needs plotly: pip install 'boca[dashboard]' ({error}).") from error


def _answer(request: Request, version: str, body: Callable[[], dict[str, Any]]) -> Response:
    """Return a body, or only word that the one of the asker is still the newest."""
    tag = f'"{version}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return _json(body(), headers={"ETag": tag})


def _json(body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(body, allow_nan=False, separators=(",", ":"))
    return Response(text, status, headers, media_type="application/json")


def _whole(text: str | None, otherwise: int = 0) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < 16 else otherwise
