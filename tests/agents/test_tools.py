"""The tools as functions; test_server.py calls them as an agent does."""

from __future__ import annotations

import pytest

from boca.agents.studies import Studies
from boca.agents.tools import reading, writing
from boca.errors import BocaError, StorageFailed


@pytest.fixture
def tools(folder):
    studies = Studies(["study.toml"])
    yield {tool.__name__: tool for tool in (*reading(studies), *writing(studies))}
    studies.close()


def test_every_tool_says_what_it_does(tools):
    assert all(tool.__doc__ and tool.__doc__.splitlines()[0].endswith((".", ":")) for tool in tools.values())


def test_a_result_from_outside_is_imported_and_not_charged(tools):
    added = tools["add_result"]({"a": 0.5, "kind": "flat"}, -1.0)
    assert added["phase"] == "added"
    assert added["at_target"]
    assert tools["status"]()["spent"].startswith("0 of 4")


def test_asking_says_why_there_is_nothing(tools):
    while trials := tools["ask"](n=3)["trials"]:
        kept = trials
    assert "Tell the running trials first." in tools["ask"]()["note"]
    for trial in tools["history"](state="running")["trials"]:
        tools["tell"](trial["number"], 1.0)
    assert tools["ask"]()["note"] == "Nothing affordable is left. The study is done."
    assert kept


def test_a_database_that_was_replaced_is_opened_anew(tools, folder):
    tools["ask"]()
    (folder / "bowl.db").unlink()
    for file in folder.glob("bowl.db-*"):
        file.unlink()
    with pytest.raises(BocaError):
        tools["tell"](0, 1.0)
    try:
        answer = tools["ask"]()
    except StorageFailed:  # the first call notices, the next has the new file
        answer = tools["ask"]()
    assert answer["trials"][0]["number"] == 0
