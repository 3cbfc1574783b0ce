"""Trials as files and tables: what other programs read, and what seeds a new study with old results.

CSV has one row per trial with columns `x.NAME` and `z.NAME`, and `outcome.NAME` and `note.NAME` if there are any; of a
trial that reported its steps it has a row per report.  JSON lines have one object per trial, its reasons and reports
included; a pandas table has the columns of the CSV.  What was written can be read again, and so can a table made by
hand: it needs the parameters and `value`, and may have `cost`, `noise` and `number`, which joins the rows of a curve.
There a parameter may go by its name alone, unless another column has that name: then it is `x.noise` or `z.seconds`.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from boca.accounting.cost import CLOCK_RESOLUTION
from boca.domain.attempt import Attempt, Attempts
from boca.domain.errors import InvalidInput, one_of
from boca.domain.observation import OBJECTIVE
from boca.domain.problem import Problem
from boca.domain.space import Parameter, Point, Space
from boca.domain.trial import History, State, Trial

Format: TypeAlias = Literal["csv", "jsonl"]

_FORMULA = re.compile(r"'*[=+\-@\t\r]")
_LONGEST_CELL = 2**27  # characters
_PARTS = {"x": "x", "z": "z", "outcome": "outcomes", "noise": "noises", "note": "notes"}  # column -> key in JSON
_CLOCK = frozenset({"began", "ended", "host", "process", "worker", "attempt", "version"})
_COLUMNS = ("number", "state", "value", "cost", "noise", "seconds", "overhead", "phase", "reason", "failure")


@dataclass(frozen=True)
class ImportedResult:
    """A result from elsewhere with its fidelity and its cost, which is in seconds if the cost is learned."""

    x: Point
    z: Point
    value: float | Mapping[str, Any] | None
    cost: float | None = None
    noise: float | Mapping[str, float] | None = None
    outcomes: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)
    reports: tuple[ImportedResult, ...] = ()
    """What was told of lower steps before."""

    def told(self, problem: Problem) -> float | Mapping[str, Any] | None:
        """Return what `Optimizer.add` takes."""
        if problem.objectives and self.value is None:
            return dict(self.outcomes)
        if not self.outcomes:
            return self.value
        return {problem.objective or OBJECTIVE: self.value, **self.outcomes}


def text(history: History, format: Format, attempts: Attempts | None = None) -> str:
    """Return a history in a format; JSON lines have the attempts without a result too."""
    one_of(format, get_args(Format), "format")
    if format == "jsonl":
        lost = {} if attempts is None else attempts
        found = (_object(trial, lost.get(trial.number, ())) for trial in history)
        return "".join(json.dumps(one, allow_nan=False) + "\n" for one in found)
    rows = [row for trial in history for row in trial.rows()]
    names = dict.fromkeys([*_COLUMNS, *(name for row in rows for name in row)])
    file = io.StringIO()
    writer = csv.DictWriter(file, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _escaped(_cell(value)) for name, value in row.items()} for row in rows)
    return file.getvalue()


def _object(trial: Trial, attempts: Sequence[Attempt]) -> dict[str, Any]:
    """Return all of a trial, its reasons included; `reason` and `failure` mean the same as in a table."""
    names = ("number", "state", "x", "z", "value", "cost", "noise", "seconds", "overhead", "why")
    said = {"reason": trial.why.get("reason"), "failure": trial.reason}
    lost = [attempt.to_json() for attempt in attempts]
    more = {"outcomes": trial.outcomes, "noises": trial.noises, "notes": dict(trial.notes), "attempts": lost}
    rows = trial.rows()
    told = rows[:-1] if trial.state == "complete" else rows if trial.observations else []
    more["reports"] = [_report(row) for row in told]
    own = {name: getattr(trial, name) for name in names} | said | trial.clock()
    return own | {name: kept for name, kept in more.items() if kept}


def _escaped(cell: object) -> object:
    """Return a cell that a spreadsheet does not take for a formula: such a text begins with one apostrophe more."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) and not _is_number(cell) else cell


def _unescaped(cell: Any) -> Any:
    return cell[1:] if isinstance(cell, str) and cell.startswith("'") and _FORMULA.match(cell) else cell


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _report(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a report as what differs from the other ones of its trial."""
    nested: dict[str, Any] = {name: row[name] for name in ("value", "seconds")}
    for column, key in (("z", "z"), ("outcome", "outcomes"), ("noise", "noises")):
        nested[key] = {name[len(column) + 1 :]: v for name, v in row.items() if name.startswith(f"{column}.")}
    return {"noise": row["noise"], **nested}


def _cell(value: object) -> object:
    """Return floats with all their digits, and nothing for None."""
    return repr(value) if isinstance(value, float) else "" if value is None else value


# Back ---------------------------------------------------------------------------------------------------------------


def results(source: object, problem: Problem) -> list[ImportedResult]:
    """Return the complete results of a history, a pandas table, or a file of either format, as points of a problem.

    A fidelity that is left out is the target's, and a row without a state is complete.  One mistake in a source imports
    nothing of it.
    """
    is_text = _may_be_text(source)
    found: list[ImportedResult] = []
    numbers: list[object] = []
    for where, written in _records(source):
        record = _without_clock(written)
        if not _is_complete(record.get("state"), where):
            continue
        _refuse_foreign(problem, record, where, is_text=is_text)
        if not isinstance(source, History):  # its rows have no such columns
            _refuse_unclear(problem, record, where)
        outcomes = _outcomes(problem, record, where)
        found.append(
            ImportedResult(
                _point(problem.space, "x", record, where, {}, is_text=is_text),
                _point(problem.with_all_steps, "z", record, where, problem.target, is_text=is_text),
                _value_of(problem, record, where, may_be_missing=bool(outcomes)),
                _cost(problem, record, where),
                _noise(problem, record, where),
                outcomes,
                _notes(problem, record),
            )
        )
        numbers.append(record.get("number"))
    return found if problem.steps is None else _curves(problem, found, numbers)


def _curves(problem: Problem, found: list[ImportedResult], numbers: list[object]) -> list[ImportedResult]:
    """Return the results with the rows of one trial as one: it reported its steps, which rise."""
    joined: list[ImportedResult] = []
    for k, result in enumerate(found):
        before = joined[-1] if joined else None
        is_same = before is not None and not _is_empty(numbers[k]) and numbers[k] == numbers[k - 1]
        if before is not None and is_same and problem.step(before.z) < problem.step(result.z):
            reports = (*before.reports, replace(before, reports=()))
            joined[-1] = replace(result, reports=reports)
        else:
            joined.append(result)
    return joined


def _without_clock(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what was exported without when and where it ran: a parameter or an outcome may have such a name."""
    if not record.keys() >= _CLOCK:
        return record
    return {name: value for name, value in record.items() if name not in _CLOCK and name != "attempts"}


def _value_of(problem: Problem, record: Mapping[str, Any], where: str, *, may_be_missing: bool) -> float | None:
    """Return the value of the objective, which may go by its name; None if only other outcomes were told.

    Several objectives are outcomes, each by its name.
    """
    if problem.objectives and may_be_missing:
        return None
    if problem.objectives:
        raise InvalidInput(
            f"{where} has none of the outcomes {[*problem.outcomes]}. Name the columns outcome.NAME, such as "
            f"{f'outcome.{next(iter(problem.objectives))}'!r}."
        )
    name = "value" if "value" in record or problem.objective is None else problem.objective
    return None if may_be_missing and _is_empty(record.get(name)) else _number(record.get(name), name, where)


def _outcomes(problem: Problem, record: Mapping[str, Any], where: str) -> dict[str, float]:
    """Return what was told of outcomes with a name, from columns `outcome.NAME` or of their name alone."""
    found = {}
    for name in problem.outcomes:
        is_taken = name in _COLUMNS or name in problem.space or name in problem.fidelity
        column = f"outcome.{name}" if f"outcome.{name}" in record or is_taken else name
        number = _optional(record.get(column), column, where)
        if number is not None:
            found[name] = number
    return found


def _noise(problem: Problem, record: Mapping[str, Any], where: str) -> dict[str, float] | None:
    columns = {} if problem.objectives else {problem.objective or OBJECTIVE: "noise"}
    columns |= {name: f"noise.{name}" for name in problem.outcomes}
    told = {name: _not_negative(record.get(column), column, where) for name, column in columns.items()}
    return {name: number for name, number in told.items() if number is not None} or None


def _notes(problem: Problem, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the notes, and the outcomes that have no limit in this problem: nothing that was stored is lost."""
    found = {}
    for column, value in record.items():
        part, dot, name = str(column).partition(".")
        is_note = part == "note" or (part == "outcome" and name not in problem.outcomes)
        if dot and is_note and not _is_empty(value):
            found[name] = value
    return found


def _may_be_text(source: object) -> bool:
    """Whether options may be text: in a CSV, and in a table that was read from one."""
    is_json = isinstance(source, str | Path) and Path(source).suffix == ".jsonl"
    return not isinstance(source, History) and not is_json


def _is_complete(state: object, where: str) -> bool:
    if not _is_empty(state) and state not in get_args(State):
        raise InvalidInput(f"{where}: state is {state!r}, and must be empty or one of {list(get_args(State))}.")
    return _is_empty(state) or state == "complete"


def _records(source: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield flat rows, each with words for its place in the source."""
    if isinstance(source, str | Path):
        yield from _from_file(Path(source))
    elif isinstance(source, History):
        yield from ((f"trial {trial.number}", row) for trial in source for row in trial.rows())
    elif hasattr(source, "to_dict") and hasattr(source, "columns"):
        whole = source.astype(object).where(source.notna(), None)  # type: ignore[attr-defined]
        yield from ((f"row {i}", record) for i, record in enumerate(whole.to_dict("records")))
    else:
        raise InvalidInput(f"Results are {source!r}, and must be a .csv or .jsonl file, a pandas table or a History.")


def _from_file(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.suffix not in (".csv", ".jsonl"):
        raise InvalidInput(f"The file of results is {str(path)!r}, and its name must end in .csv or .jsonl.")
    try:
        content = path.read_bytes().decode("utf-8-sig")  # spreadsheets begin a file with a mark
    except OSError as error:
        raise InvalidInput(f"The file of results {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        number = error.object.count(b"\n", 0, error.start) + 1
        raise InvalidInput(f"Line {number} of {path.name} is not UTF-8, as a file of results must be.") from error
    if path.suffix == ".csv":
        reader = csv.DictReader(io.StringIO(content, newline=""))
        csv.field_size_limit(max(csv.field_size_limit(), _LONGEST_CELL))  # a failure may quote a whole output
        for record in _readable(reader, path.name):
            where = f"line {reader.line_num} of {path.name}"
            if None in record or None in record.values():  # a surplus cell has no name, and a missing one no text
                more, columns = "more" if None in record else "fewer", len(reader.fieldnames or ())
                raise InvalidInput(
                    f"{where} has {more} cells than the file has columns ({columns}). "
                    "Put quotes around a cell that contains a comma."
                )
            yield where, {name: _unescaped(cell) for name, cell in record.items()}
        return
    for number, line in enumerate(content.split("\n"), start=1):  # JSON texts may hold the other line separators
        if line.strip():
            where = f"line {number} of {path.name}"
            yield from ((where, record) for record in _flat(line, where))


def _readable(reader: csv.DictReader[str], name: str) -> Iterator[dict[str, Any]]:
    try:
        yield from reader
    except csv.Error as error:
        raise InvalidInput(f"line {reader.line_num} of {name} is not CSV: {error}.") from error


def _flat(line: str, where: str) -> list[dict[str, Any]]:
    """Return the records of a line: one, after one for every report."""
    try:
        record: dict[str, Any] = {**json.loads(line)}
        reports = record.pop("reports", [])
        apart = {"cost": None, "overhead": None}
        return [*(_parts({**record, **apart, **report}) for report in reports), _parts(record)]
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{where} is not a JSON object with x, z and value: {error}.") from error


def _parts(record: dict[str, Any]) -> dict[str, Any]:
    points = {f"{p}.{name}": value for p, key in _PARTS.items() for name, value in record.pop(key, {}).items()}
    return record | points


def _refuse_foreign(problem: Problem, record: Mapping[str, Any], where: str, *, is_text: bool) -> None:
    """Refuse a value of a parameter that the problem lacks: without it a cheap result would become a target's."""
    for column, value in record.items():
        part, dot, name = str(column).partition(".")
        space, kind = {"x": (problem.space, "parameter"), "z": (problem.fidelity, "fidelity")}.get(part, (None, ""))
        if not dot or space is None or name in space.names or column in (*problem.space.names, *problem.fidelity):
            continue
        if is_text and _is_empty(value):
            continue
        raise InvalidInput(
            f"{where}: {column} is {value!r}, and this problem has no {kind} {name!r}; it has {list(space)}. "
            f"If {name!r} was renamed, rename the column. If it is fixed now, keep only the results at that value, and "
            f"remove the column."
        )


def _refuse_unclear(problem: Problem, record: Mapping[str, Any], where: str) -> None:
    """Refuse a column that may be a parameter or a property of the trial."""
    for part, space in (("x", problem.space), ("z", problem.fidelity)):
        for name in space:
            if name in _COLUMNS and f"{part}.{name}" not in record and not _is_empty(record.get(name)):
                raise InvalidInput(
                    f"{where}: column {name!r} is the {name} of a trial, and the problem has a parameter of that name. "
                    f"Name the column of the parameter {part}.{name}."
                )


def _point(
    space: Space, part: str, record: Mapping[str, Any], where: str, default: Mapping[str, Any], *, is_text: bool
) -> Point:
    """Return the point of a record; what it leaves empty takes the default, if there is one."""
    point = dict(default)
    for name, parameter in space.items():
        column = f"{part}.{name}" if f"{part}.{name}" in record or name in _COLUMNS else name
        if column not in record:
            continue
        value = _value(parameter, record[column], is_text, where)
        if name not in default or _is_option(parameter, value) or not _is_empty(value):
            point[name] = value
    for name in space.names[len(space) :]:
        if not _is_empty(record.get(f"{part}.{name}")) and not is_text:  # a label is text in a CSV, whatever it was
            point[name] = record[f"{part}.{name}"]
    try:
        return space.validate(point, part)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _is_option(parameter: Parameter, value: Any) -> bool:
    """Whether a value is an option, be it None or an empty text."""
    return value in parameter.options


def _value(parameter: Parameter, given: Any, is_text: bool, where: str) -> Any:
    """Return what a cell of text means for a parameter; other values are what they are."""
    if not parameter.is_ordered:
        return _meant(parameter.options, given, where) if is_text else given
    if not isinstance(given, str):
        return given
    for kind in (int, float) if parameter.kind in ("int", "steps") else (float,):  # pandas writes 10.0 for an integer
        try:
            return kind(given)
        except ValueError:
            continue
    return given


def _meant(options: Sequence[Any], given: Any, where: str) -> Any:
    """Return an option as it is; otherwise the option that a text stands for, such as True for "True"."""
    if _is_empty(given) and None in options and "" in options:
        raise InvalidInput(
            f"{where}: an empty cell may be any of the options None and ''. Import JSON lines, which tell them apart."
        )
    if given in options:
        return given
    cell = "" if _is_empty(given) else given  # None and an empty text are written alike
    return next((option for option in options if cell in (_cell(option), str(option))), given)


def _cost(problem: Problem, record: Mapping[str, Any], where: str) -> float | None:
    """Return what a result cost; None if that is not known.

    A learned cost is in seconds.  If a record has a column for these, its cost is ignored: it may be in other units, or
    what was assumed at the time.
    """
    if problem.has_declared_cost or "seconds" not in record:
        cost = _optional(record.get("cost"), "cost", where)
        if cost is not None and cost <= 0.0:
            raise InvalidInput(f"{where}: cost is {record['cost']!r}, and must be positive.")
        return cost
    seconds = _not_negative(record["seconds"], "seconds", where)
    return None if seconds is None else max(seconds, CLOCK_RESOLUTION)


def _not_negative(given: Any, name: str, where: str) -> float | None:
    number = _optional(given, name, where)
    if number is not None and number < 0.0:
        raise InvalidInput(f"{where}: {name} is {given!r}, and must not be negative.")
    return number


def _optional(given: Any, name: str, where: str) -> float | None:
    return None if _is_empty(given) else _number(given, name, where)


def _number(given: Any, name: str, where: str) -> float:
    try:
        number = float(given)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(f"{where}: {name} is {given!r}, and must be a number.") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{where}: {name} is {given!r}, and must be finite.")
    return number


def _is_empty(given: Any) -> bool:
    return given is None or (isinstance(given, str | float) and (given == "" or given != given))  # NaN in pandas
