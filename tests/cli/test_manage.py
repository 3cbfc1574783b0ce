"""`boca retry` and `boca delete`."""

from __future__ import annotations

import json
from dataclasses import replace

from boca.study.storage import Lease, Owner
from cli.studies import STUDY, command, said, stored


def test_failed_and_abandoned_trials_are_tried_at_the_next_run(folder):
    opt = stored()
    failed, running = opt.ask(), opt.ask()
    opt.fail(failed, "a full disk")
    assert said("retry", "bowl.db", "bowl", failed.number, running.number) == (
        0,
        "2 trials will be tried at the next run.\n",
    )
    ran = command("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    history = stored().history
    assert history[running.number].state == "complete"
    assert history[running.number].attempt == 1
    again = [t for t in history if t.phase == "queued"]
    assert [t.x for t in again] == [failed.x]
    status, words = said("retry", "bowl.db", "bowl", running.number)
    assert status == 2
    assert f"got {running.number} (complete)" in words


def test_a_trial_that_a_driver_has_is_left_alone(folder):
    opt, lease = stored(), Lease()
    mine, failed = opt.ask(lease=lease), opt.ask()
    opt.fail(failed, "a full disk")
    assert said("retry", "bowl.db", "bowl", 0) == (0, "Trial 0 is skipped: a driver has it.\n")
    assert said("retry", "bowl.db", "bowl", 0, 1) == (
        0,
        "Trial 0 is skipped: a driver has it.\n1 trial will be tried at the next run.\n",
    )
    assert opt.take_over(lease) == opt.take_over(Lease()) == []
    assert opt.tell(mine, 1.0).attempt == 0


def test_a_trial_whose_attempts_are_used_up_is_tried_all_the_same(folder):
    opt = stored()
    opt.ask(lease=Lease(owner=replace(Owner.me(), started="in another life")))
    assert said("retry", "bowl.db", "bowl", 0) == (0, "1 trial will be tried at the next run.\n")
    (folder / "study.toml").write_text(f"max_retries = 0\n{STUDY}")
    assert command("run", "study.toml").returncode == 0
    assert stored().history[0].state == "complete"


def test_to_try_again_what_the_budget_does_not_buy_is_said_so(folder):
    opt = stored()
    for trial in opt.ask(4):
        opt.fail(trial, "a bug")
    status, words = said("retry", "bowl.db", "bowl")
    assert status == 0
    assert words.startswith("4 trials will be tried at the next run.\n")
    assert "0 of the 4 that failed: 0 of 40 cost units" in words
    assert "--allow-change" in words
    (folder / "study.toml").write_text(STUDY.replace("targets = 4", "targets = 6"))
    assert command("run", "study.toml", "--allow-change").returncode == 0
    assert [t.phase for t in stored().history[4:]] == ["queued"] * 2


def test_what_failed_is_tried_once_however_often_it_is_asked_for(folder):
    opt = stored()
    trials = opt.ask(3)
    for trial in trials:
        opt.fail(trial, "a lost node")
    opt.enqueue(trials[0].x, trials[0].z)
    assert said("retry", "bowl.db", "bowl", 1, 1) == (0, "1 trial will be tried at the next run.\n")
    assert said("retry", "bowl.db", "bowl") == (0, "1 trial will be tried at the next run.\n")
    nothing = "Nothing is left to try: the points that failed have succeeded since, are queued, or are running.\n"
    assert said("retry", "bowl.db", "bowl") == (0, nothing)
    assert [q.x for q in opt.storage.read().queue] == [t.x for t in trials]
    first = opt.ask()
    assert said("retry", "bowl.db", "bowl") == (0, nothing)  # it is running
    opt.tell(first, 1.0)
    assert said("retry", "bowl.db", "bowl", 0) == (0, nothing)  # it has succeeded
    assert len(opt.storage.read().queue) == 2


def test_two_failures_at_one_point_are_one_to_try(folder):
    opt = stored()
    for _ in range(2):
        opt.enqueue({"a": 0.5, "kind": "flat"})
        opt.fail(opt.ask(), "a lost node")
    assert said("retry", "bowl.db", "bowl") == (0, "1 trial will be tried at the next run.\n")
    assert len(opt.storage.read().queue) == 1


def test_without_a_failure_there_is_nothing_to_try(folder):
    stored()
    assert said("retry", "bowl.db", "bowl") == (0, "Nothing is left to try: no trial failed.\n")


def test_a_study_is_deleted_only_on_a_yes(done):
    status, words = said("delete", "bowl.db", "bowl", answer="n\n")
    assert status == 1
    assert "with its 5 trials?" in words
    assert len(stored().history) == 5
    assert said("delete", "bowl.db", "bowl", answer="y\n")[0] == 0
    assert json.loads(said("show", "bowl.db", "--json")[1]) == []
    stored()
    assert said("delete", "bowl.db", "bowl", "--yes")[0] == 0
