"""The commands around a study: run it, go on with it, look at it, take it along, try again, delete it."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import boca
from boca import render
from boca.cli import app, main
from boca.study.storage import Lease, Owner

STUDY = """
name = "bowl"
objective = "objective:bowl"
cost = { n = 1 }
budget = { targets = 4 }
seed = 3
strategy = "random"
[space]
a = { type = "float", low = 0, high = 1 }
kind = { type = "choice", choices = ["round", "flat"] }
[fidelity]
n = { type = "int", low = 1, high = 10 }
"""
OBJECTIVE = """
import os, time
def bowl(x, z):
    time.sleep(float(os.environ.get("BOWL_SLEEP", "0")))
    if os.environ.get("BOWL_FAILS"):
        raise ValueError("it broke")
    print("at", x["a"])
    return -(x["a"] - 0.3) ** 2 - (x["kind"] == "flat") - 0.01 * (10 - z["n"])
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "boca", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


@pytest.fixture
def done(folder):
    """A study that has run, with a failure in it."""
    ran = command("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    opt = stored()
    trial = opt.add({"a": 0.5, "kind": "flat"}, None, -1.04)
    assert trial.number == 4
    opt.storage.close()
    return folder


def stored():
    from boca.studyfile import load

    study = load("study.toml")
    return boca.Optimizer(
        study.problem, budget=study.budget, strategy=study.strategy, seed=3, storage=study.storage, name=study.name
    )


def said(*arguments, answer=None):
    """Return exit status and output of a command run in this process."""
    try:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=answer, catch_exceptions=False)
    except boca.BocaError as error:
        return 2, str(error)
    return result.exit_code, result.stdout


def test_a_study_runs_to_its_end_and_running_it_again_does_nothing(folder):
    first = command("run", "study.toml")
    assert first.returncode == 0, first.stderr
    assert "best at the target: -" in first.stdout
    assert re.search(
        r"^recommended: a = 0\.\d+, kind = round: expected .* ± .*; it was run at the target$", first.stdout, re.M
    )
    assert "4 trials, 40 spent" in first.stdout
    assert first.stderr.count("trial ") == 4
    assert (folder / "bowl.db").exists()
    again = command("run", "study.toml")
    assert again.returncode == 0
    assert again.stdout == first.stdout
    assert "trial " not in again.stderr


def test_a_killed_study_goes_on_where_it_was(folder):
    arguments = [sys.executable, "-m", "boca", "run", "study.toml"]
    process = subprocess.Popen(arguments, env={**os.environ, "BOWL_SLEEP": "0.5"}, stderr=subprocess.PIPE, text=True)
    while "trial 1" not in process.stderr.readline():
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
    while "trial 0" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Stopping after what runs" in err
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
    assert "failed on every one of 4 trials" in ran.stderr
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


def test_what_is_stored_can_be_seen(done):
    status, table = said("show", "bowl.db")
    assert status == 0
    assert "bowl" in table
    assert json.loads(said("show", "bowl.db", "--json")[1])[0]["trials"] == 5
    _, trials = said("show", "bowl.db", "bowl")
    for word in ("number", "state", "value", "cost", "kind = ", "n = 10", "A uniform random point", "brought along"):
        assert word in trials
    one = json.loads(said("show", "sqlite:///bowl.db", "bowl", "--trial", 2, "--json")[1])
    assert one["number"] == 2
    assert one["output"].startswith("at ")
    assert one["why"]["phase"] == "start"


def test_the_best_is_at_the_target(done):
    status, line = said("best", "bowl.db", "bowl")
    best = stored().best
    assert status == 0
    assert line == f"{best.value!r} at {render.point(best.x)} (trial {best.number})\n"
    assert json.loads(said("best", "bowl.db", "bowl", "--json")[1])["x"] == best.x


def test_without_a_result_at_the_target_best_exits_with_1(folder):
    stored()
    assert said("best", "bowl.db", "bowl")[0] == 1
    assert said("best", "bowl.db", "bowl", "--json") == (1, "null\n")


def test_trials_are_exported(done):
    rows = list(csv.DictReader(io.StringIO(said("export", "bowl.db", "bowl", "--format", "csv")[1])))
    assert [row["number"] for row in rows] == ["0", "1", "2", "3", "4"]
    lines = [json.loads(line) for line in said("export", "bowl.db", "bowl", "--format", "jsonl")[1].splitlines()]
    assert [line["x"] for line in lines] == [t.x for t in stored().history]
    assert said("export", "bowl.db", "bowl", "--out", done / "out.csv") == (0, "")
    assert (done / "out.csv").read_text().count("\n") == 6
    assert said("export", "bowl.db", "bowl", "--format", "xml")[0] == 2
    status, words = said("export", "bowl.db", "bowl", "--out", done / "no" / "out.csv")
    assert status == 2
    assert "--out must be a file that can be written" in words


@pytest.mark.parametrize("verb", ["export", "report"])
@pytest.mark.parametrize(
    "name", ["bowl.db", "./bowl.db", "link.db", "twin.db", "bowl.db-wal", "bowl.db-shm", "link.db-wal"]
)
def test_nothing_is_written_over_a_database(folder, verb, name):
    opt = stored()
    opt.tell(opt.ask(), 1.0)  # it is open: its log is there
    (folder / "link.db").symlink_to("bowl.db")
    (folder / "link.db-wal").symlink_to("bowl.db-wal")
    (folder / "twin.db").hardlink_to("bowl.db")
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    status, words = said(verb, "bowl.db", "bowl", "--out", name)
    assert status == 2
    assert "must not be a database: " in words
    assert words.endswith("Name another file.")
    after = {file.name: file.read_bytes() for file in folder.iterdir()}
    assert {file for file in before | after if before.get(file) != after.get(file)} <= {
        "bowl.db-shm"
    }  # locks of readers
    opt.storage.close()


def test_an_older_export_is_replaced(done):
    (done / "out.csv").write_text("old")
    assert said("export", "bowl.db", "bowl", "--out", "out.csv") == (0, "")
    assert (done / "out.csv").read_text().startswith("number,")


def test_failed_trials_and_those_that_are_out_are_tried_at_the_next_run(folder):
    opt = stored()
    failed, out = opt.ask(), opt.ask()
    opt.fail(failed, "a full disk")
    assert said("retry", "bowl.db", "bowl", failed.number, out.number) == (
        0,
        "2 trials will be tried at the next run.\n",
    )
    ran = command("run", "study.toml")
    assert ran.returncode == 0, ran.stderr
    history = stored().history
    assert history[out.number].state == "complete"
    assert history[out.number].attempt == 1
    again = [t for t in history if t.phase == "queued"]
    assert [t.x for t in again] == [failed.x]
    status, words = said("retry", "bowl.db", "bowl", out.number)
    assert status == 2
    assert "must have failed or still be out" in words


def test_a_trial_that_a_driver_has_is_left_alone(folder):
    opt, lease = stored(), Lease()
    mine, failed = opt.ask(lease=lease), opt.ask()
    opt.fail(failed, "a full disk")
    assert said("retry", "bowl.db", "bowl", 0) == (0, "Trial 0 is left alone: a driver has it.\n")
    assert said("retry", "bowl.db", "bowl", 0, 1) == (
        0,
        "Trial 0 is left alone: a driver has it.\n1 trial will be tried at the next run.\n",
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
    assert said("retry", "bowl.db", "bowl") == (
        0,
        "4 trials will be tried at the next run.\nBut the budget buys 0 of the 4 that failed: 0 of 40 is left. "
        "Give a wider one, and boca run --allow-change.\n",
    )
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
    nothing = "Nothing is left to try: what failed has succeeded since, waits for its turn or is out.\n"
    assert said("retry", "bowl.db", "bowl") == (0, nothing)
    assert [q.x for q in opt.storage.read().queue] == [t.x for t in trials]
    first = opt.ask()
    assert said("retry", "bowl.db", "bowl") == (0, nothing)  # it is out
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


LOOKS = (("show",), ("show", "bowl"), ("best", "bowl"), ("export", "bowl"), ("report", "bowl"))
CHANGES = (("retry", "bowl"), ("delete", "bowl", "--yes"))


@pytest.mark.parametrize(("verb", "arguments"), [(verb, rest) for verb, *rest in (*LOOKS, *CHANGES)])
def test_a_database_of_another_program_stays_as_it_was(folder, verb, arguments):
    path = folder / "photos.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE photos(id)")
        connection.commit()
    before = path.read_bytes()
    status, words = said(verb, path, *arguments)
    assert status == 2
    assert "no tables of boca" in words
    assert path.read_bytes() == before
    assert not list(folder.glob("photos.db-*"))


@pytest.mark.parametrize(("verb", "arguments"), [(verb, rest) for verb, *rest in LOOKS])
def test_to_look_changes_no_byte(done, verb, arguments):
    with closing(sqlite3.connect("bowl.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # to write would switch it back
    before = (done / "bowl.db").read_bytes()
    assert said(verb, "bowl.db", *arguments)[0] == 0
    assert (done / "bowl.db").read_bytes() == before


def damage(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
        connection.commit()


@pytest.fixture
def damaged(folder):
    """Make a database of two studies and damage it; the first has two trials."""
    opt = stored()
    opt.tell(opt.ask(), 1.0)
    opt.tell(opt.ask(), 2.0)
    opt.storage.close()
    other = boca.Problem(boca.Space(a=boca.Float(0, 1)))
    boca.Optimizer(other, budget=boca.targets(4), storage="sqlite:///bowl.db", name="other").storage.close()
    return lambda statement: damage("bowl.db", statement)


SPEC = "UPDATE boca_studies SET spec = {} WHERE name = 'bowl'"
TRIAL = "UPDATE boca_trials SET {} WHERE number = 1"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (SPEC.format("'{'"), "its description is '{', and must be a JSON object"),
        (SPEC.format("'[1]'"), "its description is '[1]', and must be a JSON object"),
        (SPEC.format("'{}'"), "its description has no space, fidelity, target"),
        (SPEC.format("replace(spec, 'low', 'lo')"), "KeyError('low')"),
        (SPEC.format("""replace(spec, '"high":1.0', '"high":-1')"""), "low < high"),
        (TRIAL.format("x = '{'"), "x of trial 1 is '{', and must be a JSON object"),
        (TRIAL.format("planned = '5'"), "z of trial 1 is '5', and must be a JSON object"),
        (TRIAL.format("state = 'lost'"), "state of trial 1 is 'lost', and must be one of running, complete, failed"),
        ("DELETE FROM boca_observations WHERE trial = 1", "value of trial 1 is none"),
        (TRIAL.format("cost = 'much'"), "cost of trial 1 is 'much', and must be a number"),
        ("DELETE FROM boca_trials WHERE number = 0", "2 trials, numbered from 0; it has 1"),
    ],
)
def test_a_damaged_study_is_told_and_hides_no_other(damaged, statement, words):
    damaged(statement)
    status, shown = said("show", "bowl.db", "--json")
    assert status == 2
    bowl, other = json.loads(shown)
    assert bowl["name"] == "bowl"
    assert words in bowl["broken"]
    assert bowl["trials"] is None
    assert (other["name"], other["trials"], other["broken"]) == ("other", 0, None)
    result = CliRunner().invoke(app, ["show", "bowl.db"])
    assert result.exit_code == 2
    assert "other" in result.stdout
    assert words in result.stderr
    for verb in ("best", "report"):
        status, told = said(verb, "bowl.db", "bowl")
        assert status == 2
        assert told.startswith("The study 'bowl' cannot be understood: ")
        assert words in told
    assert said("delete", "bowl.db", "bowl", "--yes") == (0, "Deleted 'bowl'.\n")
    assert said("show", "bowl.db")[0] == 0


@pytest.mark.parametrize(("description", "words"), [("'{'", "must hold JSON"), ("'{}'", "'bowl' cannot be understood")])
def test_a_damaged_study_is_not_gone_on_with(damaged, description, words):
    damaged(SPEC.format(description))
    status, told = said("run", "study.toml")
    assert status == 2
    assert words in told


def test_trials_can_be_saved_from_a_study_whose_description_is_damaged(damaged):
    damaged(SPEC.format("'{'"))
    assert said("export", "bowl.db", "bowl")[1].count("\n") == 3
    assert "complete" in said("show", "bowl.db", "bowl")[1]


def test_damaged_reasons_of_a_trial_are_no_damage_to_the_others(damaged):
    damaged("UPDATE boca_trials SET why = '{' WHERE number = 0")
    words = "The study 'bowl' cannot be understood: why of trial 0 must be a JSON object; got '{'."
    assert said("show", "bowl.db")[0] == 0
    status, table = said("show", "bowl.db", "bowl")
    assert status == 0
    assert words in table
    assert "A uniform random point" in table
    assert said("best", "bowl.db", "bowl")[0] == 0
    assert said("show", "bowl.db", "bowl", "--trial", 1)[0] == 0
    for looks in (("show", "--trial", 0), ("show", "--json"), ("export",), ("report",)):
        status, told = said(looks[0], "bowl.db", "bowl", *looks[1:])
        assert status == 2
        assert words in told


@pytest.mark.parametrize("statement", ["DELETE FROM boca_meta", "UPDATE boca_meta SET version = 'one'"])
@pytest.mark.parametrize(("verb", "arguments"), [(verb, rest) for verb, *rest in (*LOOKS, *CHANGES)])
def test_tables_without_their_version_are_told(damaged, verb, arguments, statement):
    damaged(statement)
    status, words = said(verb, "bowl.db", *arguments)
    assert status == 2
    assert "boca_meta must hold one number, the version of the tables" in words


def test_a_trial_needs_the_name_of_its_study(done):
    status, words = said("show", "bowl.db", "--trial", 1)
    assert status == 2
    assert "--trial must come with the name of a study" in words


def test_a_file_is_the_same_file_to_every_command(folder):
    (folder / "study.toml").rename(folder / "what?.toml")
    (folder / "what?.toml").write_text(STUDY.replace('name = "bowl"', ""))
    assert command("run", "what?.toml").returncode == 0
    assert json.loads(said("show", "what?.db", "--json")[1])[0]["trials"] == 4
    assert said("retry", "what?.db", "what?")[0] == 0
    assert said("report", "what?.db", "what?")[0] == 0
    assert command("run", "what?.toml", "--storage", "how?.db").returncode == 0
    assert said("best", "how?.db", "what?")[0] == 0
    assert said("delete", "how?.db", "what?", "--yes")[0] == 0
    assert sorted(path.name for path in folder.glob("*.db")) == ["how?.db", "what?.db"]


def test_a_study_is_deleted_only_on_a_yes(done):
    status, words = said("delete", "bowl.db", "bowl", answer="n\n")
    assert status == 1
    assert "with its 5 trials?" in words
    assert len(stored().history) == 5
    assert said("delete", "bowl.db", "bowl", answer="y\n")[0] == 0
    assert json.loads(said("show", "bowl.db", "--json")[1]) == []
    stored()
    assert said("delete", "bowl.db", "bowl", "--yes")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "missing.db"), "There is no file 'missing.db'"),
        (("show", "sqlite:///missing.db"), "There is no file"),
        (("best", "bowl.db", "other"), "the database has: bowl"),
        (("show", "bowl.db", "bowl", "--trial", "9"), "must be one of the 5 trials"),
        (("run", "missing.toml"), "missing.toml"),
        (("show", "nonsense://x"), "cannot be opened"),
    ],
)
def test_a_mistake_is_a_sentence_and_exits_with_2(done, arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err
    assert not (done / "missing.db").exists()


def test_help_teaches():
    status, words = said("--help")
    assert status == 0
    for name in ("run", "show", "best", "export", "retry", "delete", "bench", "data"):
        assert name in words
