"""What the page shows of studies and trials, as JSON."""

from __future__ import annotations

import json
import time

import pytest

from boca import Choice, Float, Int, Problem, Space, targets
from boca.dashboard.advice import advise
from boca.dashboard.watch import Watcher
from boca.study.storage import Lease
from boca.study.storage.reader import Reader
from dashboard.conftest import PROBLEM, begin, run

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
def study(url):
    return run(begin(url), 5)


@pytest.fixture
def page(study, url, page_of):
    return page_of(url)


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


def test_failures_are_grouped_by_cause(url, page_of):
    study = begin(url)
    for k in range(3):
        study.fail(study.ask(), f"exit status 3: diverged at a=0.{k}")
    study.fail(study.ask(), "exit status 1: no license")
    causes = page_of(url).study()["causes"]
    assert [(c["count"], c["last"], c["message"]) for c in causes] == [
        (3, 2, "exit status 3: diverged at a=0.2"),
        (1, 3, "exit status 1: no license"),
    ]


def test_an_empty_study_has_nothing_to_tell(url, page_of):
    begin(url)
    answer = page_of(url).study()
    assert answer["trials"]["number"] == []
    assert (answer["best"], answer["advice"], answer["running"], answer["failures"]) == (None, None, [], [])
    assert (answer["budget"]["total"], answer["budget"]["spent"]) == (500, 0)


def test_a_study_without_fidelities_is_an_ordinary_one(url, page_of):
    study = begin(url, problem=Problem(Space(a=Float(0, 1))))
    study.tell(study.ask(), 2.0)
    answer = page_of(url).study()
    assert (answer["fidelities"], answer["target"], answer["trials"]["z"]) == ([], [], [])
    assert answer["best"]["value"] == 2.0
    assert answer["budget"]["total"] == 50


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


def test_parameters_are_described_as_they_are_stored(url, page_of):
    space = Space(a=Float(0.5, 2.0, log=True), k=Choice(["x", None]))
    begin(url, problem=Problem(space, Space(n=Int(1, 9)), cost=lambda z: 1.0))
    answer = page_of(url).study()
    assert answer["parameters"] == [
        {"name": "a", "type": "float", "low": 0.5, "high": 2.0, "log": True},
        {"name": "k", "type": "choice", "choices": ["x", None]},
    ]
    assert answer["fidelities"] == [{"name": "n", "type": "int", "low": 1, "high": 9, "log": False}]


def test_a_long_message_and_a_long_output_are_cut(url, page_of):
    study = begin(url)
    study.fail(study.ask(), "m" * 5000, output="start" + "o" * 30_000 + "end")
    page = page_of(url)
    message = page.study()["failures"][0]["message"]
    assert len(message) < 450
    assert message.endswith("…")
    trial = page.get("/api/trial?name=bowl&number=0").json()
    assert trial["is_cut"]
    assert trial["output"].endswith("end")
    assert "start" not in trial["output"]
    assert len(trial["message"]) == 5000


TWO = Problem(PROBLEM.space, PROBLEM.fidelity, cost=PROBLEM.cost, outcomes={"loss": "minimize", "speed": "maximize"})


def test_a_front_is_told_with_its_hypervolume(url, page_of):
    study = begin(url, problem=TWO)
    study.add({"a": 0.1, "kind": "flat"}, {"n": 1, "m": 0.5}, {"loss": 0.0, "speed": 9.0})
    for loss, speed in ((1.0, 1.0), (2.0, 3.0), (3.0, 2.0)):
        study.add({"a": loss / 5, "kind": "flat"}, None, {"loss": loss, "speed": speed})
    page = page_of(url)
    answer = page.study()
    assert (answer["direction"], answer["best"], answer["aims"]) == (None, None, "minimize loss, maximize speed")
    assert answer["objectives"] == [["loss", "minimize"], ["speed", "maximize"]]
    assert [(one["number"], one["values"]) for one in answer["front"]] == [(1, [1.0, 1.0]), (2, [2.0, 3.0])]
    numbers, volumes = zip(*answer["volumes"], strict=True)
    assert numbers == (1, 2, 3)
    assert volumes[0] < volumes[1] == volumes[2]
    assert answer["trials"]["y"] == [[0.0, 1.0, 2.0, 3.0], [9.0, 1.0, 3.0, 2.0]]
    (line,) = page.get("/api/studies").json()["studies"]
    assert (line["best"], line["front"]) == (None, 2)


def test_a_front_has_advice_in_words(url):
    study = begin(url, problem=TWO)
    for k in range(6):
        x = {"a": k / 6, "kind": "flat"}
        study.add(x, None if k % 2 else {"n": 5, "m": 0.5}, {"loss": (x["a"] - 0.5) ** 2, "speed": x["a"]})
    watcher = Watcher(Reader(url))
    watcher.look()
    words = advise(watcher.world.studies["bowl"]).words
    assert "the front" in words or "loss" in words
