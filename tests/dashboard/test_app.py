"""What the live page answers, and to whom."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from importlib import resources

import pytest

from boca import Float, Problem, Space, targets
from boca.dashboard import access
from boca.domain.errors import InvalidInput
from boca.study.storage import Lease
from boca.study.storage.sql import Database
from dashboard.conftest import NAMES, Page, begin, run

TOKEN = "correct-horse-battery"
HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=1</script>&amp;__proto__'
PATHS = [
    "/",
    "/page.js",
    "/style.css",
    "/plotly.js",
    "/api/studies",
    "/api/study?name=bowl",
    "/api/trial?name=bowl&number=0",
]


@pytest.fixture
def study(url):
    return run(begin(url), 5)


@pytest.fixture
def page(study, url, page_of):
    return page_of(url)


# Studies ----------------------------------------------------------------------------------------------------------


def test_the_list_names_every_study_with_its_counts(study, url, page_of):
    begin(url, name="other")
    page = page_of(url)
    answer = page.get("/api/studies").json()
    assert answer["trouble"] is None
    assert [line["name"] for line in answer["studies"]] == ["bowl", "other"]
    bowl, other = answer["studies"]
    assert (bowl["trials"], bowl["complete"], bowl["failed"], bowl["running"]) == (5, 4, 1, 0)
    assert bowl["spent"] == pytest.approx(study.spent)
    assert (other["trials"], other["best"]) == (0, None)


def test_a_study_is_told_in_columns_and_without_reasons(study, page):
    study.ask()
    page.look()
    answer = page.study()
    history = study.history
    assert [p["name"] for p in answer["parameters"]] == ["a", "kind"]
    assert [p["name"] for p in answer["fidelities"]] == ["n", "m"]
    assert answer["target"] == [10, 1.0]
    columns = answer["trials"]
    assert columns["number"] == list(range(6))
    assert columns["state"] == ["complete", "complete", "failed", "complete", "complete", "running"]
    assert columns["value"] == [t.value for t in history]
    assert columns["z"] == [[t.z["n"] for t in history], [t.z["m"] for t in history]]
    assert columns["at_target"] == [study.problem.is_target(t.z) for t in history]
    assert columns["paid"] == [t.cost if t.state != "running" else 0.0 for t in history]
    assert answer["failures"][0]["message"] == "it broke"
    assert answer["counts"]["running"] == len(answer["running"]) == 1
    assert "why" not in json.dumps(answer)
    best = study.best
    assert answer["best"] == (best and {"number": best.number, "value": best.value, "x": list(best.x.values())})


def test_best_is_the_best_at_the_target(url, page_of):
    study = begin(url)
    study.add({"a": 0.1, "kind": "flat"}, {"n": 1, "m": 0.5}, 99.0)
    page = page_of(url)
    assert page.study()["best"] is None
    study.add({"a": 0.2, "kind": "flat"}, None, 3.0)
    study.add({"a": 0.3, "kind": "round"}, None, 2.0)
    page.look()
    assert page.study()["best"] == {"number": 1, "value": 3.0, "x": [0.2, "flat"]}


def test_only_what_changed_is_told_again(study, page):
    before = page.study()
    trial = study.ask()
    page.look()
    after = page.study(key=before["key"], since=before["event"])
    assert after["trials"]["number"] == [5]
    study.tell(trial, 1.0)
    page.look()
    last = page.study(key=before["key"], since=after["event"])
    assert last["trials"]["number"] == [5]
    assert last["trials"]["state"] == ["complete"]
    assert page.study(key=before["key"], since=last["event"])["trials"]["number"] == []


def test_a_page_that_knows_another_study_is_told_everything(page):
    event = page.study()["event"]
    assert page.study(key="another", since=event)["trials"]["number"] == list(range(5))
    assert page.study(key=page.study()["key"], since=event + 1)["trials"]["number"] == list(range(5))
    assert page.study(key=page.study()["key"], since="nonsense")["trials"]["number"] == list(range(5))


def test_nothing_new_is_said_in_one_line(study, page):
    for path in ("/api/study?name=bowl", "/api/studies"):
        tag = page.get(path).headers["etag"]
        again = page.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.content) == (304, b"")
        study.ask()
        page.look()
        assert page.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_a_trial_is_told_with_its_reasons_when_asked_for(study, page):
    answer = page.get("/api/trial", params={"name": "bowl", "number": 2}).json()
    assert answer["why"] == study.history[2].why
    assert (answer["number"], answer["state"], answer["message"]) == (2, "failed", "it broke")


@pytest.mark.parametrize("number", ["5", "-1", "x", "", "9" * 40])
def test_a_trial_that_is_not_there_is_not_found(page, number):
    answer = page.get("/api/trial", params={"name": "bowl", "number": number})
    assert answer.status_code == 404
    assert "from 0 on" in answer.json()["error"]


def test_a_study_that_is_not_there_is_not_found(page):
    for path in ("/api/study", "/api/trial"):
        assert page.get(path, params={"name": "none", "number": 0}).status_code == 404
        assert page.get(path).status_code == 404


def test_an_empty_study_has_nothing_to_tell(url, page_of):
    begin(url)
    answer = page_of(url).study()
    assert answer["trials"]["number"] == []
    assert (answer["best"], answer["advice"], answer["running"], answer["failures"]) == (None, None, [], [])
    assert (answer["money"]["total"], answer["money"]["spent"]) == (500, 0)


def test_a_study_without_fidelities_is_an_ordinary_one(url, page_of):
    study = begin(url, problem=Problem(Space(a=Float(0, 1))))
    study.tell(study.ask(), 2.0)
    answer = page_of(url).study()
    assert (answer["fidelities"], answer["target"], answer["trials"]["z"]) == ([], [], [])
    assert answer["best"]["value"] == 2.0
    assert answer["money"]["total"] == 50


def test_a_study_deleted_and_made_again_is_another_one(study, url, page):
    key = page.study()["key"]
    database = Database(url)
    database.delete("bowl")
    page.look()
    assert page.get("/api/study?name=bowl").status_code == 404
    begin(url).ask()
    page.look()
    answer = page.study(key=key, since=10)
    assert answer["key"] != key
    assert answer["trials"]["number"] == [0]


def test_a_study_deleted_and_made_again_between_two_looks_is_another_one(study, url, page):
    Database(url).delete("bowl")
    begin(url, seed=7).ask()
    page.look()
    assert page.study()["trials"]["number"] == [0]
    assert page.get("/api/studies").json()["studies"][0]["trials"] == 1


def test_a_wider_budget_is_seen(url, page_of):
    begin(url, budget=100.0)
    page = page_of(url)
    assert page.study()["money"]["total"] == 100
    begin(url, budget=300.0, allow_change=True)
    page.look()
    assert page.study()["money"]["total"] == 300


def test_a_study_that_cannot_be_understood_does_not_hide_the_others(study, url, page_of):
    Database(url).create("odd", {"space": "none"})
    page = page_of(url)
    lines = page.get("/api/studies").json()["studies"]
    assert lines[0]["broken"] is None
    assert "cannot be understood" in lines[1]["broken"]
    assert page.get("/api/study?name=odd").status_code == 422
    assert page.study()["counts"]["trials"] == 5


def test_a_trial_whose_reasons_are_damaged_is_told(study, url, page_of):
    page = page_of(url)
    study.storage.close()
    with sqlite3.connect(page.watcher.reader._file) as connection:
        connection.execute("UPDATE boca_trials SET why = '{' WHERE number = 1")
    connection.close()
    answer = page.get("/api/trial?name=bowl&number=1")
    assert answer.status_code == 503
    assert "why of trial 1 must be a JSON object" in answer.json()["error"]
    assert page.get("/api/trial?name=bowl&number=0").status_code == 200


def test_the_age_of_a_running_trial_is_counted_from_when_it_was_handed_out(study, url, page_of, monkeypatch):
    lease = Lease()
    trial = study.ask(lease=lease)
    later = time.time() + 1000.0
    monkeypatch.setattr(time, "time", lambda: later)
    page = page_of(url)  # its server begins now
    (row,) = page.study()["running"]
    assert 999 < row["age"] < 1001
    study.storage.retry(trial, lease)
    page.look()
    (row,) = page.study()["running"]
    assert (row["attempt"], row["age"]) == (1, 0)


def test_a_wider_budget_leaves_running_trials_their_age(study, url, page):
    study.ask()
    page.look()
    begin(url, budget=targets(60), allow_change=True)
    page.look()
    (row,) = page.study()["running"]
    assert 0 <= row["age"] < 60


def test_names_arrive_as_they_are_and_never_in_the_page(url, page_of):
    problem = Problem(Space({HOSTILE: Float(0, 1)}), Space({f"{HOSTILE}z": Float(0, 1)}), cost=lambda z: 1.0)
    study = begin(url, name=HOSTILE, problem=problem)
    study.fail(study.ask(), HOSTILE)
    page = page_of(url)
    answer = page.get("/api/study", params={"name": HOSTILE})
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["parameters"][0]["name"] == HOSTILE
    assert answer.json()["failures"][0]["message"] == HOSTILE
    assert "hacked" not in page.get("/").text
    missing = page.get("/api/study", params={"name": f"{HOSTILE}?"})
    assert "hacked" not in missing.text


def test_two_thousand_trials_are_told_in_columns_and_one_more_in_a_few_bytes(url, page_of):
    import sqlalchemy as sa

    from boca.study.storage import schema

    study = begin(url, budget=None)
    study.tell(study.ask(), 1.0)
    database = Database(url)
    with database._engine.begin() as connection:
        row = dict(connection.execute(sa.select(schema.trials)).one()._mapping)
        rows = [row | {"number": k, "asked": k, "told": k + 1, "event": k + 2, "value": k / 7} for k in range(1, 2000)]
        connection.execute(schema.trials.insert(), rows)
        connection.execute(schema.studies.update().values(trials=2000, event=2001))
    page = page_of(url)
    whole = page.get("/api/study?name=bowl")
    assert len(whole.json()["trials"]["number"]) == 2000
    assert len(whole.content) < 250_000
    study.ask()
    began = time.perf_counter()
    page.look()
    news = page.get("/api/study", params={"name": "bowl", "key": whole.json()["key"], "since": 2001})
    assert news.json()["trials"]["number"] == [2000]
    assert len(news.content) < 10_000
    assert time.perf_counter() - began < 2.0


# Who may ask ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def resting(tmp_path_factory):
    """A page over a study in which nothing happens."""
    url = f"sqlite:///{tmp_path_factory.mktemp('resting')}/study.db"
    begin(url).ask()
    page = Page(url)
    yield page
    page.close()


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


# What it is made of -----------------------------------------------------------------------------------------------


def test_files_are_sent_once(resting):
    for path in ("/", "/page.js", "/style.css", "/plotly.js"):
        first = resting.get(path)
        assert first.status_code == 200
        assert resting.get(path, headers={"If-None-Match": first.headers["etag"]}).status_code == 304


def test_the_page_asks_nobody_else():
    for name in ("page.html", "page.js", "style.css"):
        text = resources.files("boca.dashboard").joinpath("static", name).read_text(encoding="utf-8")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text), name


def test_the_page_makes_no_markup_of_text():
    text = resources.files("boca.dashboard").joinpath("static/page.js").read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
