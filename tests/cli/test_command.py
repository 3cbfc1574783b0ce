"""The command as a whole: its help, its errors, its exit status."""

from __future__ import annotations

import json

import pytest

from boca.cli import main
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
