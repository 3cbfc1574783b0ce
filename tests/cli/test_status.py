"""`boca status`: for an operator who asks whether it is stuck, and for a monitor that reads the exit status."""

from __future__ import annotations

import json
import os

from boca.study.storage import Lease
from cli.studies import said, stored


def test_a_running_study_is_told_in_words(folder):
    opt = stored()
    opt.tell(opt.ask(), -0.5)
    opt.fail(opt.ask(), "exit status 3: no convergence at a=0.81\nmore")
    opt.ask(lease=Lease())
    status, text = said("status", "bowl.db", "bowl")
    words = " ".join(text.split())
    assert status == 0
    for part in (
        "bowl: running",
        "trials 1 complete, 1 failed, 1 running",
        "budget 50 % spent, ",
        "best -0.5 at a = ",
        "last result trial 1: failed, ",
        f"process {os.getpid()} on ",
        "has 1 trial, since 20",
        "running age cost attempt at",
        "trial 1 failed: exit status 3: no convergence at a=0.81",
        "expected end 20",
    ):
        assert part in words, (part, words)
    opt.storage.close()


def test_a_study_that_nothing_works_on_has_status_1(folder):
    opt = stored()
    opt.tell(opt.ask(), -0.5)
    opt.storage.close()
    assert said("status", "bowl.db", "bowl")[0] == 1
    status, text = said("status", "bowl.db")
    assert status == 1
    assert text.splitlines()[1].split()[:5] == ["bowl", "stopped", "1", "0", "25"]


def test_a_study_that_has_ended_is_finished(done):
    status, text = said("status", "bowl.db", "bowl")
    assert status == 0
    assert "bowl: finished" in text


def test_programs_read_the_same(folder):
    opt = stored()
    opt.tell(opt.ask(), -0.5)
    opt.ask(lease=Lease())
    status, text = said("status", "bowl.db", "bowl", "--json")
    found = json.loads(text)
    assert (status, found["state"], found["share"], found["best"]["value"]) == (0, "running", 0.25, -0.5)
    assert found["drivers"][0]["process"] == os.getpid()
    assert found["running"][0]["number"] == 1
    assert found["running"][0]["age"] >= 0.0
    assert json.loads(said("status", "bowl.db", "--json")[1])[0]["name"] == "bowl"
    opt.storage.close()
