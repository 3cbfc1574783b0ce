"""From what a user writes to a URL, and what a message may show of it."""

from __future__ import annotations

import pytest

from boca.domain.errors import InvalidInput
from boca.study.storage.location import file_url, location, parsed, sqlite_path, without_password


def test_a_file_becomes_a_url_and_a_url_stays():
    assert location("study.db") == "sqlite:///study.db"
    assert location("sqlite:///study.db") == "sqlite:///study.db"
    assert location("postgresql+psycopg://host/name") == "postgresql+psycopg://host/name"


@pytest.mark.parametrize("path", ["study.db", "/a b/study.db", "100%.db", "a?b.db", "ü.db", "a#b.db"])
def test_any_path_survives_the_way_through_a_url(path):
    assert sqlite_path(file_url(path)) == path


def test_memory_is_no_file():
    assert sqlite_path("sqlite://") is None
    assert sqlite_path("sqlite:///:memory:") is None
    assert sqlite_path("postgresql://host/name") is None


def test_what_is_neither_text_nor_url_is_refused():
    with pytest.raises(InvalidInput, match="storage is 3"):
        location(3)
    with pytest.raises(InvalidInput, match=r"nonsense.*sqlite:///study\.db"):
        parsed("nonsense")


def test_a_password_is_never_shown():
    assert without_password("postgresql://me:secret@host/name") == "postgresql://me:***@host/name"
    assert without_password("postgresql://host/name") == "postgresql://host/name"
    with pytest.raises(InvalidInput) as raised:
        parsed("postgresql://me:secret@host:port/name")
    assert "secret" not in str(raised.value)
