"""The addresses of the live page, and what they answer."""

from __future__ import annotations

import re
import sqlite3
import time
from importlib import resources

import pytest

from boca import Float, Problem, Space
from boca.study.storage.sql import Database
from dashboard.conftest import begin, run

TOKEN = "correct-horse-battery"
SCRIPTS = ("page.js", "timeline.js", "compare.js", "start.js")
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
def study(url):
    return run(begin(url), 5)


@pytest.fixture
def page(study, url, page_of):
    return page_of(url)


# Studies ----------------------------------------------------------------------------------------------------------


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
    assert page.study()["budget"]["total"] == 100
    begin(url, budget=300.0, allow_change=True)
    page.look()
    assert page.study()["budget"]["total"] == 300


def test_a_study_that_cannot_be_understood_does_not_hide_the_others(study, url, page_of):
    Database(url).create("odd", {"space": "none"})
    page = page_of(url)
    lines = page.get("/api/studies").json()["studies"]
    assert lines[0]["broken"] is None
    assert "is damaged" in lines[1]["broken"]
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
    assert "why of trial 1 is" in answer.json()["error"]
    assert page.get("/api/trial?name=bowl&number=0").status_code == 200


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
        value = dict(connection.execute(sa.select(schema.observations)).one()._mapping)
        rows = [row | {"number": k, "asked": k, "told": k + 1, "event": k + 2} for k in range(1, 2000)]
        connection.execute(schema.trials.insert(), rows)
        values = [value | {"trial": k, "told": k + 1, "value": k / 7} for k in range(1, 2000)]
        connection.execute(schema.observations.insert(), values)
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


# The timeline -------------------------------------------------------------------------------------------------------


def test_the_timeline_is_sent_when_it_changed(study, url, page_of):
    page = page_of(url)
    answer = page.get("/api/timeline?name=bowl")
    assert sorted(answer.json()["timeline"]["number"]) == list(range(5))
    tag = {"If-None-Match": answer.headers["etag"]}
    assert page.get("/api/timeline?name=bowl", headers=tag).status_code == 304
    run(study, 1)
    page.look()
    assert page.get("/api/timeline?name=bowl", headers=tag).status_code == 200
    assert page.get("/api/timeline?name=nothing").status_code == 404


# Several studies -----------------------------------------------------------------------------------------------------


def test_studies_are_compared_in_the_order_in_which_they_are_named(study, url, page_of):
    run(begin(url, name="other", seed=1), 4)
    page = page_of(url)
    answer = page.get("/api/compare?name=other&name=bowl&name=missing&name=other")
    assert [curve["name"] for curve in answer.json()["curves"]] == ["other", "bowl"]
    again = page.get("/api/compare?name=other&name=bowl", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 200  # other names, another answer
    same = page.get(
        "/api/compare?name=other&name=bowl&name=missing&name=other", headers={"If-None-Match": answer.headers["etag"]}
    )
    assert same.status_code == 304
    assert page.get("/api/compare").json() == {"curves": []}
    assert page.get("/api/compare?name=%E2%82%AC").json() == {"curves": []}


# What it is made of -----------------------------------------------------------------------------------------------


def test_files_are_sent_once(resting):
    for path in ("/", "/page.js", "/timeline.js", "/compare.js", "/start.js", "/style.css", "/plotly.js"):
        first = resting.get(path)
        assert first.status_code == 200
        assert resting.get(path, headers={"If-None-Match": first.headers["etag"]}).status_code == 304


def test_the_page_asks_nobody_else():
    for name in ("page.html", *SCRIPTS, "style.css"):
        text = resources.files("boca.dashboard").joinpath("static", name).read_text(encoding="utf-8")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text), name


def test_the_page_makes_no_markup_of_text():
    for name in SCRIPTS:
        text = resources.files("boca.dashboard").joinpath("static", name).read_text(encoding="utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", text)
