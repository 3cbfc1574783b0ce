"""The subcommands that read a storage show what is there and change no byte."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from boca.cli import app
from boca.domain.words import point
from cli.studies import SPEC, said, stored


def test_the_best_is_at_the_target(done):
    status, line = said("best", "bowl.db", "bowl")
    best = stored().best
    assert status == 0
    assert line == f"{best.value!r} at {point(best.x)} (trial {best.number})\n"
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
    assert "a database that would be lost" in words
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
        assert told.startswith("The study 'bowl' is damaged: ")
        assert words in told
    assert said("delete", "bowl.db", "bowl", "--yes") == (0, "Deleted 'bowl'.\n")
    assert said("show", "bowl.db")[0] == 0


def test_trials_can_be_saved_from_a_study_whose_description_is_damaged(damaged):
    damaged(SPEC.format("'{'"))
    assert said("export", "bowl.db", "bowl")[1].count("\n") == 3
    assert "complete" in said("show", "bowl.db", "bowl")[1]


def test_damaged_reasons_of_a_trial_are_no_damage_to_the_others(damaged):
    damaged("UPDATE boca_trials SET why = '{' WHERE number = 0")
    words = "The study 'bowl' is damaged: why of trial 0 is '{', and must be a JSON object."
    assert said("show", "bowl.db")[0] == 0
    assert said("show", "bowl.db", "bowl")[0] == 0
    assert said("best", "bowl.db", "bowl")[0] == 0
    assert said("show", "bowl.db", "bowl", "--trial", 1)[0] == 0
    assert "A uniform random point" in said("show", "bowl.db", "bowl", "--why", 1)[1]
    for looks in (("show", "--trial", 0), ("show", "--why", 0), ("show", "--json"), ("export",), ("report",)):
        status, told = said(looks[0], "bowl.db", "bowl", *looks[1:])
        assert status == 2
        assert words in told


@pytest.mark.parametrize("statement", ["DELETE FROM boca_meta", "UPDATE boca_meta SET version = 'one'"])
@pytest.mark.parametrize(("verb", "arguments"), [(verb, rest) for verb, *rest in (*LOOKS, *CHANGES)])
def test_tables_without_their_version_are_told(damaged, verb, arguments, statement):
    damaged(statement)
    status, words = said(verb, "bowl.db", *arguments)
    assert status == 2
    assert "must hold one number, the version of the tables" in words
