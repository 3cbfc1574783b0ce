"""Tables for a terminal: plain columns that fit its width, and a pager if they are longer than it."""

from __future__ import annotations

import os
import pydoc
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from boca.domain.words import text

_GAP = "  "
_LONGEST_CELL = 14  # characters: a number of six digits with its exponent, and a short name
_WIDTH_OF_A_PIPE = 80  # columns, unless COLUMNS says otherwise; programs read --json


class Column(NamedTuple):
    """One column: its head, its cells, and whether it is for numbers, which end at the same place."""

    head: str
    cells: Sequence[str]
    is_number: bool = True

    @property
    def width(self) -> int:
        return max(map(len, self._texts()))

    def lines(self) -> list[str]:
        """Return the head and the cells, each as wide as the column."""
        align = str.rjust if self.is_number else str.ljust
        return [align(cell, self.width) for cell in self._texts()]

    def _texts(self) -> list[str]:
        half = _LONGEST_CELL // 2  # long names often differ in their ends
        head = self.head if len(self.head) <= _LONGEST_CELL else f"{self.head[: half - 1]}…{self.head[-half:]}"
        return [head, *(text(cell, _LONGEST_CELL) for cell in self.cells)]


def columns_of_terminal() -> int:
    """Return how many characters a line may have here."""
    return shutil.get_terminal_size((_WIDTH_OF_A_PIPE, 24)).columns


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the first columns that fit the width, at least one."""
    found: list[Column] = []
    taken = 0
    for column in columns:
        taken += column.width + (len(_GAP) if found else 0)
        if found and taken > width:
            break
        found.append(column)
    return found


def lines_of(columns: Sequence[Column]) -> list[str]:
    """Return the table as lines, its heads first."""
    return [_GAP.join(cells).rstrip() for cells in zip(*(column.lines() for column in columns), strict=True)]


def wrapped(words: str, width: int, *, indent: str = "") -> list[str]:
    """Return a sentence as lines that fit the width."""
    return textwrap.wrap(words, width, initial_indent=indent, subsequent_indent=indent)


def page(lines: Sequence[str]) -> None:
    """Print lines; in a terminal that is too short for them, through a pager, which opens at their end."""
    height = shutil.get_terminal_size((_WIDTH_OF_A_PIPE, 24)).lines
    if not sys.stdout.isatty() or len(lines) < height:
        print("\n".join(lines))
        return
    os.environ.setdefault("LESS", "-FRX +G")
    pydoc.pager("\n".join(lines) + "\n")
