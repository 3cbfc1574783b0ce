"""`boca mcp`: what is wrong with a place is said before an agent is served; tests/agents has conversations."""

from __future__ import annotations

import pytest

from cli.studies import command, said


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("missing.db", "There is no file 'missing.db'"),
        ("missing.toml", "missing.toml: The file cannot be read"),
        ("sqlite://", "must name a file"),
    ],
)
def test_a_wrong_place_is_an_error_of_the_command(folder, place, words):
    status, answer = said("mcp", "study.toml", place)
    assert status == 2
    assert words in answer


def test_a_client_that_leaves_ends_the_server(folder):
    """Its standard input is at its end from the beginning."""
    assert command("mcp", "study.toml", "--write").returncode == 0
    assert not (folder / "bowl.db").exists()  # nobody asked for a trial
