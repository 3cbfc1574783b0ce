"""Which requests the live page answers, and with which headers."""

from __future__ import annotations

import pytest

from boca.dashboard import access
from boca.domain.errors import InvalidInput
from dashboard.conftest import NAMES

TOKEN = "correct-horse-battery"
HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>&amp;__proto__'
PATHS = [
    "/",
    "/page.js",
    "/timeline.js",
    "/compare.js",
    "/start.js",
    "/style.css",
    "/plotly.js",
    "/api/studies",
    "/api/study?name=bowl",
    "/api/trial?name=bowl&number=0",
    "/api/timeline?name=bowl",
    "/api/compare?name=bowl",
]


@pytest.fixture
def locked(resting, page_of):
    return page_of(resting.watcher.reader.url, token=TOKEN, cookie="boca_1")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_nothing_but_reading_is_answered(resting, path, method):
    answer = resting.client.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", PATHS)
def test_a_head_is_an_answer_without_its_body(resting, path):
    answer = resting.client.head(path)
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("host", ["127.0.0.1:8321", "127.0.0.1", "localhost:9000", "LOCALHOST", "[::1]:8321"])
def test_a_request_under_our_own_address_is_answered(resting, host):
    assert resting.get("/api/studies", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "localhost.evil.example", "", "[::2]", "10.0.0.1"],
)
def test_a_request_under_another_name_is_refused(resting, host):
    for path in PATHS:
        assert resting.get(path, headers={"Host": host}).status_code == 421


def test_names_of_an_address():
    assert access.names_of("127.0.0.1", "127.0.0.1") == NAMES
    assert access.names_of("box.lan", "192.168.0.7") == {"box.lan", "192.168.0.7"}
    assert access.names_of("0.0.0.0", "0.0.0.0") is None


def test_an_address_that_is_all_addresses_answers_numbers_and_its_own_name(resting, page_of):
    page = page_of(resting.watcher.reader.url, names=None, token=TOKEN)
    statuses = {
        host: page.get("/api/studies", headers={"Host": host, "Authorization": f"Bearer {TOKEN}"}).status_code
        for host in ("192.168.0.7:8321", "localhost", "evil.example")
    }
    assert statuses == {"192.168.0.7:8321": 200, "localhost": 200, "evil.example": 421}


def test_without_its_token_nothing_is_shown(locked):
    for path in PATHS:
        answer = locked.get(path)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        assert "set-cookie" not in answer.headers
        assert "bowl" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer ünïcode"},
        {"Cookie": f"boca_1={TOKEN}"},
        {"Cookie": "boca_1="},
        {"Cookie": "=;;boca_1"},
    ],
)
def test_a_wrong_token_is_none(locked, headers):
    coded = {name: value.encode() for name, value in headers.items()}
    assert locked.get("/api/studies", headers=coded).status_code == 401


def test_a_plus_in_an_address_is_a_plus(resting, page_of):
    page = page_of(resting.watcher.reader.url, token="a+b/c=d+e-f_g.h~i")
    assert page.get("/?token=a+b/c=d+e-f_g.h~i").status_code == 200


def test_a_wrong_token_in_the_address_is_none(locked):
    assert locked.get("/?token=").status_code == 401
    assert locked.get(f"/?token={TOKEN[:-1]}").status_code == 401


def test_a_script_brings_its_token_in_a_header(locked):
    answer = locked.get("/api/studies", headers={"Authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers


def test_a_browser_brings_its_token_once_and_keeps_a_cookie(locked):
    first = locked.get(f"/?token={TOKEN}")
    assert first.status_code == 200
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    assert locked.get("/api/studies").status_code == 200  # the client kept it
    assert "set-cookie" not in locked.get("/api/studies").headers


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with spaces in the middle", "ümlaut" * 5, "line\nbreak" * 3])
def test_a_token_that_can_be_guessed_or_not_be_sent_is_refused(token):
    with pytest.raises(InvalidInput, match="16 printable ASCII characters"):
        access.check_token(token, "127.0.0.1")


def test_an_address_that_others_reach_needs_a_token():
    for address in ("0.0.0.0", "192.168.0.7", "::"):
        with pytest.raises(InvalidInput, match="--token"):
            access.check_token(None, address)
        access.check_token(TOKEN, address)
    access.check_token(None, "127.0.0.1")
    access.check_token(None, "::1")


@pytest.mark.parametrize(
    ("request_of", "status"),
    [
        (lambda p: p.get("/"), 200),
        (lambda p: p.get("/api/studies"), 200),
        (lambda p: p.get("/nowhere"), 404),
        (lambda p: p.client.post("/"), 405),
        (lambda p: p.get("/", headers={"Host": "evil.example"}), 421),
    ],
)
def test_every_answer_says_how_a_browser_shall_treat_it(resting, request_of, status):
    answer = request_of(resting)
    assert answer.status_code == status
    policy = dict(part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] in ("no-store", "no-cache")
    assert "access-control-allow-origin" not in answer.headers


def test_a_web_socket_is_refused(resting):
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), resting.client.websocket_connect("/api/studies"):
        pass
