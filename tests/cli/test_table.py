"""Tables that fit a terminal, and the pager for those that are longer than it."""

from __future__ import annotations

import io
import os
import sys

import pytest

from boca.cli import table
from boca.cli.table import Column

COLUMNS = [Column("a", ["1", "22"]), Column("name", ["x", "long" * 9], is_number=False), Column("b", ["3", ""])]


def test_numbers_end_and_words_begin_at_the_same_place():
    assert table.lines_of(COLUMNS[:2]) == [" a  name", " 1  x", "22  longlonglongl…"]


def test_long_heads_that_differ_in_their_ends_stay_different():
    heads = [Column(f"a_name_that_is_long_{k}", ["1"]).lines()[0] for k in (1, 2)]
    assert len(set(heads)) == 2
    assert max(map(len, heads)) <= 14


@pytest.mark.parametrize(("width", "count"), [(1, 1), (2, 1), (17, 1), (18, 2), (20, 2), (21, 3), (99, 3)])
def test_as_many_columns_as_fit_are_shown_and_at_least_one(width, count):
    found = table.fitting(COLUMNS, width)
    assert len(found) == count
    assert count == 1 or max(map(len, table.lines_of(found))) <= width


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("screen", "count", "paged"), [(Screen, 30, True), (Screen, 5, False), (io.StringIO, 30, False)]
)
def test_a_pager_opens_in_a_terminal_that_is_too_short(screen, count, paged, monkeypatch):
    called = []
    monkeypatch.setattr("pydoc.pager", called.append)
    monkeypatch.delenv("LESS", raising=False)
    monkeypatch.setenv("LINES", "24")
    monkeypatch.setattr(sys, "stdout", screen())
    lines = [str(k) for k in range(count)]
    table.page(lines)
    assert (called == ["\n".join(lines) + "\n"]) is paged
    assert (sys.stdout.getvalue() == "\n".join(lines) + "\n") is not paged
    if paged:
        assert "+G" in os.environ["LESS"]
