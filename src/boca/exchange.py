"""Trials as files and tables: what other programs read, and what seeds a new study with old results.

CSV has a row a trial with columns `x.NAME` and `z.NAME`; JSON lines have an object a trial, its reasons included; a
pandas table has the columns of the CSV.  What was written can be read again, and so can a table that somebody made by
hand: it needs the parameters, `value`, and where it is known `cost` and `noise`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from boca.errors import InvalidInput, one_of
from boca.problem import Problem
from boca.space import Choice, Int, Parameter, Point, Space
from boca.trial import History, Trial

Format: TypeAlias = Literal["csv", "jsonl"]

_COLUMNS = ("number", "state", "value", "cost", "noise", "seconds", "overhead", "phase", "reason")


@dataclass(frozen=True)
class Known:
    """A result that somebody has, with its fidelity and its cost."""

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
    names = ("number", "state", "x", "z", "value", "cost", "noise", "seconds", "overhead", "reason", "why")
    return {name: getattr(trial, name) for name in names}


def _cell(value: object) -> object:
    """Return floats with all their digits, and nothing for None."""
    return repr(value) if isinstance(value, float) else "" if value is None else value


# Back ---------------------------------------------------------------------------------------------------------------


def results(source: object, problem: Problem) -> list[Known]:
    """Return the complete results of a history, a pandas table, or a file of either format, as points of a problem.

    A fidelity that is not said is the target's.  Nothing is taken from a source with a mistake in it.
    """
    return [
        Known(
            _point(problem.space, "x", record, where),
            _point(problem.fidelity, "z", record, where, problem.target),
            _number(record.get("value"), "value", where),
            *(
                None if _is_empty(record.get(name)) else _number(record[name], name, where)
                for name in ("cost", "noise")
            ),
        )
        for where, record in _records(source)
        if record.get("state") in ("complete", "", None)
    ]


def _records(source: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield flat rows, each with words for where it stands."""
    if isinstance(source, str | Path):
        yield from _from_file(Path(source))
    elif isinstance(source, History):
        yield from ((f"trial {trial.number}", trial.row()) for trial in source)
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        yield from ((f"row {i}", record) for i, record in enumerate(source.to_dict("records")))
    else:
        raise InvalidInput(f"Results must be a .csv or .jsonl file, a pandas table or a History; got {source!r}.")


def _from_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix not in (".csv", ".jsonl"):
        raise InvalidInput(f"A file of results must end in .csv or .jsonl; got {str(path)!r}.")
    try:
        content = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"The file of results must be readable; {path}: {error.strerror}.") from error
    if path.suffix == ".csv":
        for number, record in enumerate(csv.DictReader(io.StringIO(content)), start=2):
            yield f"line {number} of {path.name}", record
        return
    for number, line in enumerate(content.splitlines(), start=1):
        if line.strip():
            yield f"line {number} of {path.name}", _flat(line, f"line {number} of {path.name}")


def _flat(line: str, where: str) -> dict[str, Any]:
    try:
        record: dict[str, Any] = {**json.loads(line)}
        points = {f"{part}.{name}": value for part in ("x", "z") for name, value in record.pop(part, {}).items()}
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidInput(f"Every line must be a JSON object with x, z and value; {where}: {error}.") from error
    return record | points


def _point(
    space: Space, part: str, record: Mapping[str, Any], where: str, default: Mapping[str, Any] | None = None
) -> Point:
    point = {}
    for name, parameter in space.items():
        value = record.get(f"{part}.{name}", record.get(name))
        if value is None and default is not None:
            value = default[name]
        point[name] = _value(parameter, value)
    try:
        return space.validate(point, part)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _value(parameter: Parameter, given: Any) -> Any:
    """Return what a cell of text means for a parameter; other values are what they are."""
    if isinstance(parameter, Choice):
        return next((option for option in parameter.choices if _cell(option) == given or str(option) == given), given)
    if isinstance(given, str):
        try:
            return int(given) if isinstance(parameter, Int) else float(given)
        except ValueError:
            return given
    return int(given) if isinstance(parameter, Int) and isinstance(given, float) and given.is_integer() else given


def _number(given: Any, name: str, where: str) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise InvalidInput(f"{where}: {name} must be a number; got {given!r}.") from None


def _is_empty(given: Any) -> bool:
    return given is None or given == "" or given != given  # pandas says NaN for nothing
