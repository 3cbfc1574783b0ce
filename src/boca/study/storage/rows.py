"""Rows of a database as trials, from the tables of every version.

A trial is one row, joined with a row for each of its observations, so that one statement reads both at one moment.
JSON comes as text: if it makes no sense, an error can say in which trial.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeAlias, get_args

import sqlalchemy as sa

from boca.domain.errors import InvalidInput
from boca.domain.observation import OBJECTIVE, Observation
from boca.domain.reasons import Reasons
from boca.domain.runs import RunEvent
from boca.domain.trial import State, Trial
from boca.study.storage.schema import VERSION, Json, observations, trials

Found: TypeAlias = sa.Row[Any, Any]

# What a look at a trial needs; `why` and `output` are most of a row, and are read when they are asked for.
LIGHT = (
    "number",
    "event",
    "x",
    "planned",
    "cost",
    "phase",
    "state",
    "seconds",
    "overhead",
    "reason",
    "asked",
    "told",
    "seen",
    "pending",
    "attempt",
    "began",
    "ended",
    "host",
    "process",
    "worker",
    "version",
    "start",
    "reached",
    "continues",
    "events",
)
_NUMBERS = ("cost", "seconds", "overhead", "asked", "told", "seen", "attempt", "began", "ended", "process")
_WHERE = ("ended", "host", "process", "worker", "version")  # since version 4
_OF_A_RUN = {"start": 0, "reached": 0, "continues": None, "events": None}  # since version 5; what a trial before is
_OF_AN_OBSERVATION = ("position", "outcome", "z", "value", "noise", "seconds", "told")


@dataclass(frozen=True)
class Layout:
    """Where one version of the tables has the parts of a trial, by the names of today."""

    columns: Mapping[str, sa.ColumnElement[Any]]
    source: sa.FromClause
    """The trials, joined with their observations where these have a table of their own."""

    def select(self, *more: str) -> sa.Select[Any]:
        """Return a statement for what a look at trials needs, and more by name, in the order of their numbers."""
        names = [*LIGHT, *more, *(f"o_{name}" for name in _OF_AN_OBSERVATION)]
        labelled = [self.columns[name].label(name) for name in names]
        return sa.select(*labelled).select_from(self.source).order_by(self["number"], self["o_position"])

    def __getitem__(self, name: str) -> sa.ColumnElement[Any]:
        return self.columns[name]


def _as_text(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.type_coerce(column, sa.Text) if isinstance(column.type, Json) else column


def _names(table: sa.Table) -> list[str]:
    return [column.name for column in table.columns]


def _layout() -> Layout:
    own = {column.name: _as_text(column) for column in trials.c}
    told = {f"o_{name}": _as_text(observations.c[name]) for name in _OF_AN_OBSERVATION}
    return Layout(own | told, trials.outerjoin(observations))


def _layout_4() -> Layout:
    """Return the layout of version 4, where no trial was a run."""
    now = _layout()
    return Layout({**now.columns, **_no_run()}, now.source)


def _no_run() -> dict[str, sa.ColumnElement[Any]]:
    return {name: sa.null() if value is None else sa.literal(value) for name, value in _OF_A_RUN.items()}


def _layout_3() -> Layout:
    """Return the layout of version 3, where a trial had neither an end nor a place."""
    later = _layout_4()
    return Layout({**later.columns, **{name: sa.null() for name in _WHERE}}, later.source)


def _layout_2() -> Layout:
    """Return the layout of version 2, where a trial had no notes."""
    later = _layout_3()
    return Layout({**later.columns, "notes": sa.null()}, later.source)


def _layout_1() -> Layout:
    """Return the layout of version 1, where a trial had one value in its own row."""
    kept = [name for name in _names(trials) if name not in ("planned", "seen", "pending", "notes", *_WHERE, *_OF_A_RUN)]
    table = sa.table("boca_trials", *(sa.column(name, trials.c[name].type) for name in kept), *_VALUE_1)
    own = {name: _as_text(table.c[name]) for name in kept}
    own |= {"planned": table.c.z, "seen": table.c.asked - 1, "pending": sa.literal("[]"), "notes": sa.null()}
    own |= {name: sa.null() for name in _WHERE} | _no_run()
    told: dict[str, sa.ColumnElement[Any]] = {
        "o_position": sa.case((table.c.value.is_not(None), 0)),
        "o_outcome": sa.literal(OBJECTIVE),
        "o_z": sa.null(),
        **{f"o_{name}": table.c[name] for name in ("value", "noise", "seconds", "told")},
    }
    return Layout(own | told, table)


_VALUE_1 = (sa.column("z", sa.Text), sa.column("value", sa.Double), sa.column("noise", sa.Double))

LAYOUTS: Mapping[int, Layout] = {1: _layout_1(), 2: _layout_2(), 3: _layout_3(), 4: _layout_4(), VERSION: _layout()}


def trials_of(rows: Iterable[Found], reasons: Callable[[Found], Reasons]) -> Iterator[tuple[Found, Trial]]:
    """Yield the trials of the rows of a layout, each with its first row; `reasons` finds the why of that."""
    for _, group in groupby(rows, key=lambda row: row.number):
        own = list(group)
        yield own[0], _trial(own, reasons(own[0]))


def _trial(rows: list[Found], reasons: Reasons) -> Trial:
    """Return the trial of its rows, or refuse what the library never wrote."""
    row = rows[0]
    of = f"of trial {row.number}"
    values = {name: value for name, value in row._mapping.items() if not name.startswith("o_")}
    for name in ("event", "phase", "why"):
        values.pop(name, None)
    if row.state not in get_args(State):
        raise InvalidInput(f"state {of} is {row.state!r:.40}, and must be one of {', '.join(get_args(State))}.")
    for name in _NUMBERS:
        if not isinstance(values[name], int | float | None):
            raise InvalidInput(f"{name} {of} is {values[name]!r:.40}, and must be a number.")
    values["x"] = object_of(row.x, f"x {of}")
    values["planned"] = object_of(row.planned, f"z {of}")
    values["notes"] = {} if values.get("notes") is None else object_of(values["notes"], f"notes {of}")
    values["pending"] = tuple(_pending(row.pending, of))
    told = tuple(_observation(one, values["planned"], of) for one in rows if one.o_position is not None)
    if row.state == "complete" and not told:
        raise InvalidInput(f"value {of} is none, and a complete trial has one.")
    for name in ("start", "reached", "continues"):
        if not isinstance(values[name], int | None):
            raise InvalidInput(f"{name} {of} is {values[name]!r:.40}, and must be an integer.")
    values["events"] = () if row.events is None else tuple(_events(row.events, of))
    return Trial(**values, reasons=reasons, observations=told)


def _observation(row: Found, planned: dict[str, Any], of: str) -> Observation:
    for name in ("o_value", "o_noise", "o_seconds", "o_told"):
        number = row._mapping[name]
        if not isinstance(number, int | float | None):
            raise InvalidInput(f"{name[2:]} {of} is {number!r:.40}, and must be a number.")
    z = planned if row.o_z is None else object_of(row.o_z, f"z {of}")
    return Observation(z, row.o_value, row.o_noise, row.o_seconds, row.o_outcome, row.o_told)


def _events(stored: Any, of: str) -> Iterator[RunEvent]:
    try:
        for one in json.loads(stored):
            yield RunEvent(**one)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"events {of} are {stored!r:.40}, and must be a JSON list of what happened.") from error


def _pending(stored: Any, of: str) -> list[int]:
    if stored == "[]":
        return []
    try:
        found = json.loads(stored)
    except (ValueError, TypeError):
        found = None
    if not isinstance(found, list) or not all(isinstance(number, int) for number in found):
        raise InvalidInput(f"pending {of} is {stored!r:.40}, and must be a JSON list of numbers.")
    return found


def object_of(stored: Any, what: str) -> dict[str, Any]:
    """Return a stored JSON object."""
    try:
        found = json.loads(stored)
    except (ValueError, TypeError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInput(f"{what} is {stored!r:.40}, and must be a JSON object.")
    return found
