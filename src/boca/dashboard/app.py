"""The addresses of the live page.

/                 the page
/page.js, ...     its parts
/api/studies      all studies, one line each
/api/study        one study, with the trials that changed since an event
/api/trial        one trial, with why it was chosen
/api/timeline     when the last trials of a study ran
/api/compare      the best so far of several studies
"""

from __future__ import annotations

import gzip
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

from boca.dashboard import clock, comparing, views
from boca.dashboard.access import Guard
from boca.dashboard.advice import Adviser
from boca.dashboard.watch import Broken, WatchedStudy, Watcher
from boca.domain.errors import StorageFailed
from boca.report.library import FILE

_MOST_COMPARED = 8  # studies in one chart
_MAX_DIGITS = 16  # of a number in a request: no study has more trials, and int() takes no longer text
_FILES = {
    "/": ("boca.dashboard", "static/page.html", "text/html"),
    "/page.js": ("boca.dashboard", "static/page.js", "text/javascript"),
    "/timeline.js": ("boca.dashboard", "static/timeline.js", "text/javascript"),
    "/compare.js": ("boca.dashboard", "static/compare.js", "text/javascript"),
    "/start.js": ("boca.dashboard", "static/start.js", "text/javascript"),
    "/style.css": ("boca.dashboard", "static/style.css", "text/css"),
    "/plotly.js": ("boca.report", FILE, "text/javascript"),
}


def create(
    watcher: Watcher,
    adviser: Adviser,
    *,
    names: Collection[str] | None,
    token: str | None = None,
    cookie: str = "boca",
) -> Starlette:
    """Return the application; the watcher and the adviser start and stop with it.

    Args:
        watcher: What reads the database.
        adviser: What computes recommendations.
        names: The host names that a request may use; None for the names of this machine, and any IP address.
        token: What a request must prove to know; None if no token is needed.
        cookie: The name of the cookie in which a browser keeps the proof.
    """
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
            Route("/api/timeline", api.timeline),
            Route("/api/compare", api.compare),
        ],
        middleware=[Middleware(Guard, names=names, token=token, cookie=cookie)],
        lifespan=life,
    )


class _Api:
    """The answers.  Only that on one trial waits for the database; it says so if the database cannot be read."""

    def __init__(self, watcher: Watcher, adviser: Adviser) -> None:
        self._watcher = watcher
        self._adviser = adviser
        self._instance = secrets.token_hex(4)  # the versions of every server start at zero

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
            since = 0  # the page has an earlier study of this name, or another copy of the database
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
            return _json(
                {"error": f"There is no such trial: the study has {len(shown.history)}, numbered from 0 on."}, 404
            )
        try:
            heavy = self._watcher.reader.heavy(shown.row, number)
        except StorageFailed as error:
            return _json({"error": str(error)}, 503)
        if heavy is None:
            return _json({"error": "The trial was deleted."}, 404)
        return _json(views.trial(shown, shown.history[number], heavy))

    def timeline(self, request: Request) -> Response:
        shown = self._watcher.world.studies.get(request.query_params.get("name", ""))
        if not isinstance(shown, WatchedStudy):
            return self._missing(shown)
        return _answer(request, self._version(shown.version), lambda: {"timeline": clock.timeline(shown)})

    def compare(self, request: Request) -> Response:
        """Answer with the curves of the named studies; one that is broken or gone is left out."""
        known = self._watcher.world.studies
        asked = dict.fromkeys(request.query_params.getlist("name")[:_MOST_COMPARED])
        shown = [study for study in map(known.get, asked) if isinstance(study, WatchedStudy)]
        version = self._version(len(shown), tuple(asked), *(study.version for study in shown))
        return _answer(request, version, lambda: comparing.curves(shown))

    def _missing(self, shown: Broken | None) -> Response:
        """Say what is wrong with a study that cannot be shown."""
        trouble = self._watcher.trouble
        if shown is not None:
            return _json({"error": shown.reason, "trouble": trouble}, 422)
        return _json({"error": "There is no study with this name.", "trouble": trouble}, 404)

    def _version(self, *parts: object) -> str:
        """Return a tag for a state: states that differ in one of the parts have different tags."""
        return f"{zlib.crc32(repr(parts).encode()):08x}-{parts[0]}-{self._instance}"


def _file(path: str) -> Callable[[Request], Response]:
    package, name, kind = _FILES[path]

    def answer(request: Request) -> Response:
        content, tag = _content(package, name)
        headers = {"ETag": tag, "Cache-Control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if not name.endswith(".gz"):
            return Response(content, media_type=kind, headers=headers)
        headers["Vary"] = "Accept-Encoding"
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(content), media_type=kind, headers=headers)
        return Response(content, media_type=kind, headers=headers | {"Content-Encoding": "gzip"})

    return answer


@cache
def _content(package: str, name: str) -> tuple[bytes, str]:
    content = resources.files(package).joinpath(name).read_bytes()
    return content, f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def _answer(request: Request, version: str, body: Callable[[], dict[str, Any]]) -> Response:
    """Return a body, or only the status 304 if the page already has it."""
    tag = f'"{version}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return _json(body(), headers={"ETag": tag})


def _json(body: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> Response:
    text = json.dumps(body, allow_nan=False, separators=(",", ":"))
    return Response(text, status, headers, media_type="application/json")


def _whole(text: str | None, otherwise: int = 0) -> int:
    return (
        int(text) if text is not None and text.isascii() and text.isdigit() and len(text) < _MAX_DIGITS else otherwise
    )
