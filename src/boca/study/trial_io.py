"""Trials as files and tables: what other programs read, and what seeds a new study with old results.

CSV has a row a trial with columns `x.NAME` and `z.NAME`; JSON lines have an object a trial, its reasons included; a
pandas table has the columns of the CSV.  What was written can be read again, and so can a table that somebody made by
hand: it needs the parameters, `value`, and where it is known `cost` and `noise`.  There a parameter may go by its name
alone, unless that is the name of another column: then it is `x.noise` or `z.seconds`.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from boca.domain.errors import InvalidInput, one_of
from boca.domain.problem import Problem
from boca.domain.space import Choice, Int, Parameter, Point, Space
from boca.domain.trial import History, State, Trial

Format: TypeAlias = Literal["csv", "jsonl"]

_SHORTEST = 1e-9  # seconds, where the clock saw none: a cost is positive
_COLUMNS = ("number", "state", "value", "cost", "noise", "seconds", "overhead", "phase", "reason", "failure")


@dataclass(frozen=True)
class ImportedResult:
    """A result that somebody has, with its fidelity and its cost; that is in seconds where it is learned."""

    x: Point
    z: Point
    value: float
    cost: float | None = None
    noise: float | None = None


def text(history: History, format: Format) -> str:
    """Return a history in a format."""
    one_of(format, get_args(Format), "format")
    if format == "jsonl":
        return "".join(json.dumps(_object(trial), allow_nan=False) + "\n" for trial in history)
    rows = [trial.row() for trial in history]
    names = dict.fromkeys([*_COLUMNS, *(name for row in rows for name in row)])
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return file.getvalue()


def _object(trial: Trial) -> dict[str, Any]:
    """Return all of a trial, its reasons included; `reason` and `failure` mean what they mean in a table."""
    names = ("number", "state", "x", "z", "value", "cost", "noise", "seconds", "overhead", "why")
    said = {"reason": trial.why.get("reason"), "failure": trial.reason}
    return {name: getattr(trial, name) for name in names} | said


def _cell(value: object) -> object:
    """Return floats with all their digits, and nothing for None."""
    return repr(value) if isinstance(value, float) else "" if value is None else value


# Back ---------------------------------------------------------------------------------------------------------------


def results(source: object, problem: Problem) -> list[ImportedResult]:
    """Return the complete results of a history, a pandas table, or a file of either format, as points of a problem.

    A fidelity that is not said is the target's, and a row without a state is complete.  Nothing is taken from a source
    with a mistake in it.
    """
    is_text = _may_be_text(source)
    found = []
    for where, record in _records(source):
        if not _is_complete(record.get("state"), where):
            continue
        _refuse_foreign(problem, record, where, is_text=is_text)
        if not isinstance(source, History):  # its rows have a column of their own for everything
            _refuse_unclear(problem, record, where)
        found.append(
            ImportedResult(
                _point(problem.space, "x", record, where, {}, is_text=is_text),
                _point(problem.fidelity, "z", record, where, problem.target, is_text=is_text),
                _number(record.get("value"), "value", where),
                _cost(problem, record, where),
                _not_negative(record.get("noise"), "noise", where),
            )
        )
    return found


def _may_be_text(source: object) -> bool:
    """Whether an option may be written out: in a CSV, and in a table that was read from one."""
    is_json = isinstance(source, str | Path) and Path(source).suffix == ".jsonl"
    return not isinstance(source, History) and not is_json


def _is_complete(state: object, where: str) -> bool:
    if not _is_empty(state) and state not in get_args(State):
        raise InvalidInput(f"{where}: state must be one of {list(get_args(State))}, or empty; got {state!r}.")
    return _is_empty(state) or state == "complete"


def _records(source: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield flat rows, each with words for where it stands."""
    if isinstance(source, str | Path):
        yield from _from_file(Path(source))
    elif isinstance(source, History):
        yield from ((f"trial {trial.number}", trial.row()) for trial in source)
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        whole = source.astype(object).where(source.notna(), None)  # type: ignore[attr-defined]
        yield from ((f"row {i}", record) for i, record in enumerate(whole.to_dict("records")))
    else:
        raise InvalidInput(f"Results must be a .csv or .jsonl file, a pandas table or a History; got {source!r}.")


def _from_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix not in (".csv", ".jsonl"):
        raise InvalidInput(f"A file of results must end in .csv or .jsonl; got {str(path)!r}.")
    try:
        content = path.read_bytes().decode("utf-8-sig")  # spreadsheets begin a file with a mark
    except OSError as error:
        raise InvalidInput(f"The file of results must be readable; {path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"A file of results must be text in UTF-8; line {number} of {path.name} is not.") from error
    if path.suffix == ".csv":
        reader = csv.DictReader(io.StringIO(content, newline=""))
        for record in reader:
            where = f"line {reader.line_num} of {path.name}"
            if None in record or None in record.values():  # what is too much has no name, and what is missing no text
                raise InvalidInput(
                    f"{where}: a row must have a cell for each of the {len(reader.fieldnames or ())} columns; it has "
                    f"{'more' if None in record else 'fewer'}. A comma within a cell needs quotes around the cell."
                )
            yield where, record
        return
    for number, line in enumerate(content.split("\n"), start=1):  # texts of JSON may hold the other ends of lines
        if line.strip():
            yield f"line {number} of {path.name}", _flat(line, f"line {number} of {path.name}")


def _flat(line: str, where: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = {**json.loads(line)}
        points = {f"{part}.{name}": value for part in ("x", "z") for name, value in record.pop(part, {}).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInput(f"Every line must be a JSON object with x, z and value; {where}: {error}.") from error
    return record | points


def _refuse_foreign(problem: Problem, record: Mapping[str, Any], where: str, *, is_text: bool) -> None:
    """Refuse a value of a parameter that the problem lacks: dropped in silence, a cheap result would be a target's."""
    for column, value in record.items():
        part, dot, name = str(column).partition(".")
        space, kind = {"x": (problem.space, "parameter"), "z": (problem.fidelity, "fidelity")}.get(part, (None, ""))
        if not dot or space is None or name in space or column in (*problem.space, *problem.fidelity):
            continue
        if is_text and _is_empty(value):
            continue
        raise InvalidInput(
            f"{where}: {column} must be a {kind} of this problem, which has {list(space)}; got {value!r}. "
            f"Rename the column if {name!r} has another name now. If it is fixed now, take the results at that value "
            f"alone, and without {column}."
        )


def _refuse_unclear(problem: Problem, record: Mapping[str, Any], where: str) -> None:
    """Refuse a column that may be a parameter and may be something else that a trial has."""
    for part, space in (("x", problem.space), ("z", problem.fidelity)):
        for name in space:
            if name in _COLUMNS and f"{part}.{name}" not in record and not _is_empty(record.get(name)):
                raise InvalidInput(
                    f"{where}: the parameter {name!r} must be in a column {part}.{name}; "
                    f"{name} alone is the {name} of a trial."
                )


def _point(
    space: Space, part: str, record: Mapping[str, Any], where: str, default: Mapping[str, Any], *, is_text: bool
) -> Point:
    """Return the point of a record; what it leaves empty is the default's, where there is one."""
    point = dict(default)
    for name, parameter in space.items():
        column = f"{part}.{name}" if f"{part}.{name}" in record or name in _COLUMNS else name
        if column not in record:
            continue
        value = _value(parameter, record[column], is_text)
        if name not in default or _is_option(parameter, value) or not _is_empty(value):
            point[name] = value
    try:
        return space.validate(point, part)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _is_option(parameter: Parameter, value: Any) -> bool:
    """Whether a value is an option, be it None or an empty text."""
    return isinstance(parameter, Choice) and value in parameter.choices


def _value(parameter: Parameter, given: Any, is_text: bool) -> Any:
    """Return what a cell of text means for a parameter; other values are what they are."""
    if isinstance(parameter, Choice):
        return _meant(parameter, given) if is_text else given
    if not isinstance(given, str):
        return given
    for kind in (int, float) if isinstance(parameter, Int) else (float,):  # pandas writes 10.0 for an integer
        try:
            return kind(given)
        except ValueError:
            continue
    return given


def _meant(parameter: Choice, given: Any) -> Any:
    """Return the option itself where it is one; only then what a text stands for, such as "True" for True."""
    if given in parameter.choices:
        return given
    cell = "" if _is_empty(given) else given  # None and an empty text are written alike
    return next((option for option in parameter.choices if cell in (_cell(option), str(option))), given)


def _cost(problem: Problem, record: Mapping[str, Any], where: str) -> float | None:
    """Return what a result cost; None where nobody knows.

    A learned cost is in seconds.  Where a record says those, or that nobody knows them, its cost counts for nothing: it
    may be in other units, or what was assumed at the time.
    """
    if problem.has_declared_cost or "seconds" not in record:
        cost = _optional(record.get("cost"), "cost", where)
        if cost is not None and cost <= 0.0:
            raise InvalidInput(f"{where}: cost must be positive; got {record['cost']!r}.")
        return cost
    seconds = _not_negative(record["seconds"], "seconds", where)
    return None if seconds is None else max(seconds, _SHORTEST)


def _not_negative(given: Any, name: str, where: str) -> float | None:
    number = _optional(given, name, where)
    if number is not None and number < 0.0:
        raise InvalidInput(f"{where}: {name} must not be negative; got {given!r}.")
    return number


def _optional(given: Any, name: str, where: str) -> float | None:
    return None if _is_empty(given) else _number(given, name, where)


def _number(given: Any, name: str, where: str) -> float:
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{where}: {name} must be a number; got {given!r}.") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: {name} must be finite; got {given!r}.")
    return number


def _is_empty(given: Any) -> bool:
    return given is None or given == "" or given != given  # pandas says NaN for nothing
