"""The command as a whole: its help, its errors, its exit status."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import pytest

import boca
from boca.cli import main
from boca.domain.errors import BocaError
from boca.study.storage.sql import Database
from cli.studies import STUDY, command, said


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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "missing.db"), "There is no file 'missing.db'"),
        (("show", "sqlite:///missing.db"), "There is no file"),
        (("best", "bowl.db", "other"), "which has: bowl"),
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


# Odd surroundings -----------------------------------------------------------------------------------------------------


def shell(line, **environment):
    """Run a line of a shell, in which `boca` is the command."""
    line = line.replace("boca ", f"{sys.executable} -m boca ")
    return subprocess.run(
        ["/bin/sh", "-c", line], capture_output=True, timeout=120, check=False, env={**os.environ, **environment}
    )


@pytest.mark.parametrize(
    ("line", "status", "environment"),
    [
        ("boca show bowl.db bowl > /dev/full", 2, {}),
        ("boca export bowl.db bowl > /dev/full", 2, {}),
        ("boca show bowl.db >&-", 0, {}),
        ("boca show bowl.db bowl 2>&-", 0, {}),
        ("boca show bowl.db bowl", 0, {"PYTHONIOENCODING": "ascii"}),
        ("boca best bowl.db bowl", 0, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
        ("mkdir gone && cd gone && rmdir ../gone && boca run ../study.toml", 2, {}),
        ("boca show bowl.db $(printf '\\355\\240\\200')", 2, {}),
    ],
)
def test_odd_surroundings_give_an_answer_or_a_sentence_and_no_traceback(done, line, status, environment):
    ran = shell(line, **environment)
    assert b"Traceback" not in ran.stderr + ran.stdout
    assert b"Exception ignored" not in ran.stderr
    assert ran.returncode == status, ran.stderr


def test_a_run_without_standard_error_is_run(folder):
    assert shell("boca run study.toml 2>&-").returncode == 0
    assert json.loads(said("show", "bowl.db", "--json")[1])[0]["trials"] == 4


def test_what_a_program_wrote_does_not_reach_the_terminal_as_commands(tmp_path, capsys):
    url = f"sqlite:///{tmp_path}/s.db"
    problem = boca.Problem(boca.Space(a=boca.Choice(["\x1b[31mred", "\x1b[32mgreen"])))
    opt = boca.Optimizer(problem, budget=boca.targets(3), storage=url)
    opt.fail(opt.ask(), "\x1b]0;title\x07 broke")
    opt.tell(opt.ask(), 1.0)
    for arguments in (["show", url, "study"], ["best", url, "study"], ["show", url]):
        with pytest.raises(SystemExit):
            main(arguments)
    shown = capsys.readouterr()
    assert "\x1b" not in shown.out + shown.err
    assert "\\x1b" in shown.out


# Files that are damaged -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE boca_studies SET trials = 500000000",
        "UPDATE boca_studies SET trials = 'many'",
        "UPDATE boca_studies SET trials = 2.5",
        "UPDATE boca_studies SET event = 'late'",
        "UPDATE boca_studies SET name = x'ff00'",
        "UPDATE boca_studies SET created = 9e999",
        "UPDATE boca_studies SET spec = '7'",
        f"UPDATE boca_studies SET spec = '{'[' * 100_000}'",
        "UPDATE boca_meta SET version = -1",
        "UPDATE boca_meta SET version = 0",
        "UPDATE boca_trials SET event = 'never'",
        "DROP TABLE boca_queue; CREATE VIEW boca_queue AS WITH RECURSIVE r(id, study, x, z, token) AS (SELECT 1, 1,"
        " '{}', '{}', '' UNION ALL SELECT id + 1, study, x, z, token FROM r) SELECT * FROM r",
    ],
)
def test_a_damaged_file_gives_sentences(done, change):
    with closing(sqlite3.connect(done / "bowl.db")) as connection:
        connection.executescript(f"PRAGMA journal_mode = DELETE; {change}")
    for line in ("show bowl.db", "show bowl.db bowl", "best bowl.db bowl", "retry bowl.db bowl"):
        with pytest.raises(SystemExit) as ended:  # anything else would be a traceback
            main(line.split())
        assert ended.value.code in (0, 2, None)
    with suppress(BocaError):
        Database("sqlite:///bowl.db").study("bowl").read()
