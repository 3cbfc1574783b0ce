"""`boca run`: a study runs to its end, resumes, and exits with a status."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

import boca
from boca.study.storage import Lease, Owner
from cli.studies import SPEC, command, said, stored


def test_a_study_runs_to_its_end_and_running_it_again_does_nothing(folder):
    first = command("run", "study.toml")
    assert first.returncode == 0, first.stderr
    assert "best at the target: -" in first.stdout
    assert re.search(
        r"^recommended: a = 0\.\d+, kind = round: expected .* ± .*; it was run at the target$", first.stdout, re.M
    )
    assert "4 trials, spent 4 of 4 target evaluations" in first.stdout
    assert first.stderr.count(" % spent") == 4
    assert (folder / "bowl.db").exists()
    again = command("run", "study.toml")
    assert again.returncode == 0
    assert again.stdout == first.stdout
    assert again.stderr.count(" % spent") == 1  # what it resumes


def test_a_killed_study_resumes_where_it_was(folder):
    arguments = [sys.executable, "-m", "boca", "run", "study.toml"]
    process = subprocess.Popen(arguments, env={**os.environ, "BOWL_SLEEP": "0.5"}, stderr=subprocess.PIPE, text=True)
    while " 50 % spent" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    again = command("run", "study.toml")
    assert again.returncode == 0, again.stderr
    trials = json.loads(said("show", "bowl.db", "bowl", "--json")[1])
    assert [t["number"] for t in trials] == [0, 1, 2, 3]
    assert all(t["state"] == "complete" for t in trials)
    undisturbed = command("run", "study.toml", "--storage", f"sqlite:///{folder}/other.db")
    assert undisturbed.returncode == 0
    others = json.loads(said("show", "other.db", "bowl", "--json")[1])
    assert [(t["x"], t["z"], t["value"]) for t in trials] == [(t["x"], t["z"], t["value"]) for t in others]


def test_ctrl_c_waits_for_what_runs_and_exits_with_130(folder):
    arguments = [sys.executable, "-m", "boca", "run", "study.toml"]
    process = subprocess.Popen(
        arguments,
        env={**os.environ, "BOWL_SLEEP": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while " 25 % spent" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Ctrl-C again" in err
    assert "interrupted" in err
    trials = json.loads(said("show", "bowl.db", "bowl", "--json")[1])
    assert 1 <= len(trials) < 4
    assert all(t["state"] == "complete" for t in trials)


def test_a_run_that_was_not_interrupted_exits_with_0_whatever_its_failures_say(folder):
    text = (folder / "objective.py").read_text()
    unlucky = "if x['a'] > 0.2:\n        raise OSError('Interrupted system call: the read was interrupted')\n    return"
    (folder / "objective.py").write_text(text.replace("return", unlucky))
    ran = command("run", "study.toml")
    assert "was interrupted" in ran.stderr
    assert ran.returncode == 0, ran.stderr


def test_an_interrupted_run_exits_with_130_also_where_it_found_nothing_at_the_target(folder, monkeypatch):
    found = boca.Result(None, None, None, boca.History(), 0.0, (), interrupted=True)
    monkeypatch.setattr("boca.execution.run.drive", lambda *given, **settings: found)
    assert said("run", "study.toml")[0] == 130


def test_an_objective_that_always_fails_exits_with_1(folder):
    ran = command("run", "study.toml", BOWL_FAILS="1")
    assert ran.returncode == 1
    assert "All 4 trials failed" in ran.stderr
    assert "it broke" in ran.stderr


def test_a_wider_budget_needs_a_word(done):
    text = (done / "study.toml").read_text()
    (done / "study.toml").write_text(text.replace("targets = 4", "targets = 6"))
    refused = command("run", "study.toml")
    assert refused.returncode == 2
    assert "budget was" in refused.stderr
    allowed = command("run", "study.toml", "--allow-change")
    assert allowed.returncode == 0, allowed.stderr
    assert "7 trials" in allowed.stdout


@pytest.mark.parametrize(("description", "words"), [("'{'", "is damaged"), ("'{}'", "'bowl' is damaged")])
def test_a_damaged_study_is_not_resumed(damaged, description, words):
    damaged(SPEC.format(description))
    status, told = said("run", "study.toml")
    assert status == 2
    assert words in told


def test_a_line_per_trial_has_the_time_and_quiet_has_none(folder):
    ran = command("run", "study.toml")
    assert re.match(r"\d\d:\d\d:\d\d     0  -?[\d.]+ +n=10  best ", ran.stderr)
    again = command("run", "study.toml", "--quiet", "--storage", "other.db")
    assert again.stderr == ""
    assert again.stdout == ran.stdout


def test_json_lines_end_with_the_result(folder):
    ran = command("run", "study.toml", "--json")
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["event"] for one in found] == ["trial"] * 4 + ["end"]
    assert found[-1]["value"] == max(one["value"] for one in found[:-1])
    assert found[-1]["trials"] == 4
    assert ran.stderr == ""
    refused = command("run", "study.toml", "--json", "--quiet")
    assert refused.returncode == 2
    assert "Type one of them" in refused.stderr


def test_what_is_resumed_and_taken_over_is_said(folder):
    opt = stored()
    opt.tell(opt.ask(), -0.5)
    opt.ask(lease=Lease(owner=replace(Owner.me(), started="in another life")))
    opt.storage.close()
    said = command("run", "study.toml").stderr
    assert "Resuming 'bowl': 2 trials (1 complete, 1 running), best -0.5 (#0), 25 % spent." in said
    assert f"Trial 1 is taken over (attempt 2): process {os.getpid()} on {Owner.me().host}, the driver died" in said
