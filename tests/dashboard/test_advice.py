"""The recommendation on the page is that of the optimiser, and nobody waits for it."""

from __future__ import annotations

import shutil
import sys
import threading
import time

import pytest

import boca
from boca.dashboard import advice
from boca.dashboard.advice import Advice, Adviser, advise
from boca.dashboard.watch import WatchedStudy
from dashboard.conftest import begin, run

KNOWN = {"kappa0": 1.0, "eta2": 0.01, "mean": 0.0, "h_x": [0.3, 1.0], "h_z": [1.0, 1.0]}


def wait_for(condition, seconds=30.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


def as_point(found):
    return {"x": list(found.x.values()), "mean": found.mean, "std": found.std, "verified": found.verified}


@pytest.mark.parametrize(
    "strategy",
    [
        boca.Boca(),
        boca.Boca.paper(),
        boca.Boca(hyperparameters=KNOWN),
        boca.Boca(surrogate=boca.Surrogate(kernel="se", mean="median")),
        boca.GPUCB(),
        boca.MFGPUCB([{"n": 5, "m": 1.0}]),
        boca.MFSKO([{"n": 5, "m": 1.0}]),
        boca.RandomSearch(),
    ],
    ids=["default", "paper", "known", "surrogate", "gp-ucb", "mf-gp-ucb", "mf-sko", "random"],
)
def test_the_recommendation_is_that_of_the_optimiser(url, page_of, strategy):
    study = begin(url, strategy=strategy)
    for k in range(6):
        study.add({"a": k / 5, "kind": "flat"}, {"n": 10 - k, "m": 1.0}, -((k / 5 - 0.3) ** 2))
    if strategy == boca.Boca():  # its own trials keep what it learned
        study.tell(study.ask(), 0.1)
        study.ask()
    page = page_of(url)
    found = advise(page.watcher.world.studies["bowl"])
    assert found.words is None
    assert found.point == as_point(study.recommend())


def test_a_recommendation_that_cannot_be_had_says_why(url, page_of):
    strategy = boca.Boca(surrogate=boca.Surrogate(fidelity_kernel=lambda a, b: (a["n"] == b["n"]) * 1.0))
    study = begin(url, strategy=strategy)
    study.add({"a": 0.5, "kind": "flat"}, None, 1.0)
    found = advise(page_of(url).watcher.world.studies["bowl"])
    assert found.point is None
    assert "code is not stored" in found.words


def test_it_is_computed_once_for_each_result(url, page_of):
    study = run(begin(url), 2)
    page = page_of(url)
    with page.client:
        assert page.study()["advice"] == {"is_current": False, "point": None, "words": None}
        wait_for(lambda: page.study()["advice"]["is_current"])
        assert page.study()["advice"]["point"]["mean"] == 1.0
        for _ in range(20):
            page.study()
        trial = study.ask()  # a trial that is out tells nothing new
        wait_for(lambda: page.study()["counts"]["running"] == 1)
        assert page.study()["advice"]["is_current"]
        assert len(page.asked) == 1
        study.tell(trial, 1.0)
        wait_for(lambda: page.study()["advice"]["is_current"] and len(page.asked) == 2)
        assert page.asked == sorted(set(page.asked))


def test_a_new_recommendation_is_news(url, page_of):
    run(begin(url), 2)
    page = page_of(url)
    with page.client:
        tag = page.get("/api/study?name=bowl").headers["etag"]
        wait_for(lambda: page.get("/api/study?name=bowl", headers={"If-None-Match": tag}).status_code == 200)


def test_a_slow_model_keeps_nobody_waiting(url, page_of):
    run(begin(url), 2)
    hangs, entered = threading.Event(), threading.Event()

    def slow(study):
        entered.set()
        hangs.wait(30)
        return Advice(study.told)

    page = page_of(url, compute=slow)
    with page.client:
        page.study()
        assert entered.wait(10)
        began = time.monotonic()
        answer = page.study()
        assert time.monotonic() - began < 5
        assert answer["advice"] == {"is_current": False, "point": None, "words": None}
        hangs.set()


def test_nobody_asks_for_a_study_before_its_first_result(url, page_of):
    begin(url).ask()
    page = page_of(url)
    with page.client:
        assert page.study()["advice"] is None
        time.sleep(0.2)
        assert page.asked == []


def test_it_comes_from_a_process_of_its_own(url, page_of):
    study = run(begin(url), 4)
    page = page_of(url)
    shown = page.watcher.world.studies["bowl"]
    assert isinstance(shown, WatchedStudy)
    found = Adviser(page.watcher)._in_a_process(shown)
    assert found.words is None
    assert found.told == shown.told
    assert found.point == as_point(study.recommend())


def test_what_lies_in_the_working_folder_is_not_imported(url, page_of, tmp_path, monkeypatch):
    run(begin(url), 4)
    page = page_of(url)
    (tmp_path / "queue.py").write_text("raise ValueError('of the user')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", ".")])
    found = Adviser(page.watcher)._in_a_process(page.watcher.world.studies["bowl"])
    assert found.words is None
    assert found.point is not None


def test_the_process_searches_where_the_server_does(url, page_of, tmp_path, monkeypatch):
    """As for a server that runs from a checkout: `python -m boca` puts the working folder on its path."""
    run(begin(url), 4)
    page = page_of(url)
    (tmp_path / "queue.py").write_text("raise ValueError('of the user')")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = Adviser(page.watcher)._in_a_process(page.watcher.world.studies["bowl"])
    assert "of the user" in found.words


def test_an_older_copy_that_was_put_back_is_advised_anew(url, page_of, tmp_path):
    run(begin(url), 1).storage.close()
    shutil.copy(tmp_path / "study.db", tmp_path / "old.db")
    run(begin(url), 2).storage.close()
    page = page_of(url)
    with page.client:
        wait_for(lambda: page.study()["advice"]["is_current"])
        (tmp_path / "old.db").replace(tmp_path / "study.db")
        wait_for(lambda: page.study()["counts"]["trials"] == 1)
        wait_for(lambda: page.study()["advice"]["is_current"])
    assert len(page.asked) == 2
    assert page.asked[1] < page.asked[0]


def test_a_process_that_takes_too_long_is_ended(url, page_of, monkeypatch):
    run(begin(url), 4)
    page = page_of(url)
    monkeypatch.setattr(advice, "_MAX_SECONDS", 0.05)
    found = Adviser(page.watcher)._in_a_process(page.watcher.world.studies["bowl"])
    assert found.point is None
    assert "longer than" in found.words


def test_ending_the_server_ends_the_process(url, page_of):
    run(begin(url), 4)
    page = page_of(url)
    adviser = Adviser(page.watcher)
    adviser.of(page.watcher.world.studies["bowl"])
    adviser.start()
    wait_for(lambda: adviser._process is not None)
    process = adviser._process
    adviser.stop()
    assert process.poll() is not None
    assert not adviser._thread.is_alive()


def test_it_rests_between_two_results_but_not_before_the_first_of_another_study(url, page_of, monkeypatch):
    monkeypatch.setattr(advice, "_REST_RATIO", 1e6)  # after the first, for ever
    study = run(begin(url), 2)
    run(begin(url, name="other"), 2)
    page = page_of(url)
    with page.client:
        wait_for(lambda: page.study()["advice"]["is_current"])
        study.tell(study.ask(), 1.0)
        wait_for(lambda: page.study()["counts"]["trials"] == 3)
        wait_for(lambda: page.study("other")["advice"]["is_current"])
        assert not page.study()["advice"]["is_current"]
        assert page.study()["advice"]["point"] is not None  # the one before
        assert len(page.asked) == 2
