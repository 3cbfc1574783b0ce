"""A finite list of points: compounds, machines, catalogues, tables of benchmarks.

Every column of the rows is a feature, which the model sees, or is named as a label, which it does not.  x has both.  A
feature that a row lacks is inactive there.  Of the rows, a study stores a fingerprint.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from boca.domain.constraints import Constraint, Test
from boca.domain.errors import InvalidInput, flags
from boca.domain.expression import Expression
from boca.domain.space import BoolArray, Choice, Float, FloatArray, Int, IntArray, Parameter, Point, Space

MOST_ROWS = 100_000
_MOST_OPTIONS = 256  # of a column of texts: each is a column of the model
_EXAMPLE = "boca.Candidates([{'name': 'A', 'size': 1.0}, {'name': 'B', 'size': 2.0}], labels=['name'])"


class Candidates(Space):
    """A space whose points are the rows of a list; none is run twice at a fidelity, unless `repeat` is set.

    Args:
        rows: mappings from column to value, a pandas table, or the path of a CSV file with a head line.
        labels: the columns that the model does not see, such as names.
        parameters: maps features to the `boca.Float`, `Int` or `Choice` that they are, such as one on a log scale;
            other numbers lie between the lowest and the highest of their column, other texts are options.
        repeat: whether a row may be run again at a fidelity where it has a result.
    """

    def __init__(
        self,
        rows: object,
        *,
        labels: Sequence[str] = (),
        parameters: Mapping[str, Parameter] | None = None,
        repeat: bool = False,
    ) -> None:
        table = _table(rows)
        columns = list(dict.fromkeys(name for row in table for name in row))
        _check_names(columns, labels, parameters or {})
        features = [name for name in columns if name not in labels]
        known = {
            name: _parameter(name, [row[name] for row in table if name in row], (parameters or {}).get(name))
            for name in features
        }
        super().__init__(known)
        self.labels = tuple(labels)
        self.repeat = repeat
        flags(self, "repeat")
        self._rows = [_canonical(row, columns, known) for row in table]
        self._U = self.to_unit(self._rows)
        self._optional = np.array([any(name not in row for row in self._rows) for name in features])
        self._kept = np.arange(len(self._rows))
        self._index = self._indexed()
        self._by_features = {self._features(row): i for i, row in enumerate(self._rows)}

    def __repr__(self) -> str:
        limits = "".join(f".where({constraint.words!r})" for constraint in self.constraints)
        return f"Candidates({len(self._rows)} rows, features={list(self)!r}, labels={list(self.labels)!r}){limits}"

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidates) and self._identity() == other._identity()

    def _identity(self) -> tuple[object, ...]:
        return self.fingerprint, tuple(self.items()), self.labels, self.repeat, self._known_constraints()

    # What exists ----------------------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        return *self, *self.labels

    @property
    def is_list(self) -> bool:
        return True

    @property
    def repeats(self) -> bool:
        return self.repeat

    @property
    def size(self) -> int:
        return len(self._kept)

    @property
    def rows(self) -> list[Point]:
        """The rows that every constraint allows."""
        return [dict(self._rows[i]) for i in self._kept]

    @cached_property
    def fingerprint(self) -> str:
        """What a study stores of the rows: a digest of all their values."""
        return hashlib.sha256(json.dumps(self._rows).encode()).hexdigest()[:16]

    def points(self) -> FloatArray:  # (k, d)
        return self._U[self._kept]

    # Constraints ----------------------------------------------------------------------------------------------------

    def where(
        self, test: Test | Callable[[Point], bool] | str, words: str | None = None, *, example: Any = None
    ) -> Self:
        """Return the rows at which a constraint holds; an `example` is not needed.

        Args:
            test: a function of x that returns True or False, or an expression such as "a + b <= 1".
            words: the constraint in words.
            example: ignored: every row is tried.
        """
        if isinstance(test, str):
            words = test if words is None else words
            test = Expression.parse(test, self.names)
        constraint = Constraint.of_answers(test, words, [self._rows[i] for i in range(len(self._rows))], self.names)
        narrower = self._narrowed(constraint)
        narrower._kept = np.array([i for i in self._kept if constraint.holds(self._rows[i])], dtype=np.intp)
        if not len(narrower._kept):
            raise InvalidInput(
                f"No row satisfies {constraint.words!r} and the constraints before it; a space must have a point. "
                "Drop the constraint, or add rows."
            )
        return narrower

    # Points -----------------------------------------------------------------------------------------------------------

    def validate(self, point: Mapping[str, Any], what: str) -> Point:
        """Return the row that a point is, or refuse it; its features say which, or its labels alone."""
        if not isinstance(point, Mapping):
            raise InvalidInput(f"{what} must be a mapping with the names {list(self.names)}; got {point!r}.")
        unknown = [name for name in point if name not in self.names]
        if unknown:
            raise InvalidInput(f"{what} may have the names {list(self.names)}; got {unknown}. Leave them out.")
        given = {name: value for name, value in point.items() if not _is_missing(value)}
        features = {name: self[name].validate(given[name], f"{what}[{name!r}]") for name in self if name in given}
        if features:
            index = self._by_features.get(self._features(features))
            row = None if index is None else self._rows[index]
        else:
            row = self._labelled(given)
        if row is None or any(row.get(name) != given[name] for name in self.labels if name in given):
            raise InvalidInput(
                f"{what} is {dict(point)!r}, which is none of the {len(self._rows):,} rows of the candidates. "
                "Give the features of a row, or labels that only one row has."
            )
        return dict(row)

    def _features(self, point: Mapping[str, Any]) -> tuple[Any, ...]:
        return tuple((name, point[name]) for name in self if name in point)

    def _labelled(self, given: Mapping[str, Any]) -> Point | None:
        """Return the only row with these labels."""
        found = [row for row in self._rows if all(row.get(name) == value for name, value in given.items())]
        return found[0] if given and len(found) == 1 else None

    def to_unit(self, points: Sequence[Mapping[str, Any]]) -> FloatArray:  # n points -> (n, d)
        return self._to_unit_active(points)

    def from_unit(self, u: FloatArray) -> Point:  # (d,) -> the row there, or the nearest one
        place = np.ascontiguousarray(u, dtype=float)
        index = self._index.get(place.tobytes())
        return dict(self._rows[int(self._nearest(place[None, :])[0]) if index is None else index])

    def snap(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m, d)
        """Return the nearest row for every row of U."""
        return self._U[self._nearest(U)]

    def feasible(self, U: FloatArray) -> BoolArray:  # (m, d) -> (m,)
        """Return which points are rows that every constraint allows."""
        kept = set(self._kept.tolist())
        return np.array([self._index.get(u.tobytes()) in kept for u in np.ascontiguousarray(U)], dtype=bool)

    def _nearest(self, U: FloatArray) -> IntArray:  # (m, d) -> (m,)
        from scipy.spatial import cKDTree

        _, nearest = cKDTree(self._U[self._kept]).query(U)
        return np.asarray(self._kept[nearest])

    def _indexed(self) -> dict[bytes, int]:
        """Return the row of every point in unit coordinates; refuse two rows with the same features."""
        index: dict[bytes, int] = {}
        for i, u in enumerate(self._U):
            first = index.setdefault(u.tobytes(), i)
            if first != i:
                raise InvalidInput(
                    f"Rows {first} and {i} of the candidates have the same features, {self._rows[i]!r}; each row must "
                    "be a point of its own. Leave one of them out, or make a label that tells them apart a feature."
                )
        return index


def _table(rows: object) -> list[dict[str, Any]]:
    """Return the rows as mappings without missing values."""
    if isinstance(rows, str | Path):
        found = _from_csv(Path(rows))
    elif hasattr(rows, "to_dict") and hasattr(rows, "columns"):
        found = rows.to_dict("records")
    elif isinstance(rows, Sequence) and all(isinstance(row, Mapping) for row in rows):
        found = list(rows)
    else:
        raise InvalidInput(
            f"Candidates must be a list of mappings, a pandas table or the path of a CSV; got {rows!r:.100}. "
            f"Type {_EXAMPLE}."
        )
    if not 2 <= len(found) <= MOST_ROWS:
        raise InvalidInput(
            f"Candidates must have 2 to {MOST_ROWS:,} rows; got {len(found):,}. Give at least two, and thin out a "
            "longer list."
        )
    table = [{name: _plain(value) for name, value in row.items() if not _is_missing(value)} for row in found]
    for i, row in enumerate(table):
        for name, value in row.items():
            if not isinstance(name, str) or not isinstance(value, str | bool | int | float):
                raise InvalidInput(
                    f"Row {i} of the candidates has {name!r}: {value!r}; names must be texts, and values texts, "
                    "numbers or flags, so that it can be stored. Give a text, and look the object up in your function."
                )
    return table


def _from_csv(path: Path) -> list[dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"The candidates in {path} cannot be read: {error}. Give a CSV in UTF-8.") from error
    records = list(csv.DictReader(text.splitlines()))
    if any(None in record or None in record.values() for record in records):
        raise InvalidInput(
            f"A line of {path.name} has more or fewer cells than its head. Put quotes around a cell with a comma."
        )
    columns = {name: _numbers([record[name] for record in records]) for name in (records[0] if records else ())}
    return [{name: columns[name][i] for name in columns} for i in range(len(records))]


def _numbers(cells: Sequence[str]) -> list[Any]:
    """Return the cells of a column as numbers, if all of them are."""
    for kind in (int, float):
        try:
            return [None if cell == "" else kind(cell) for cell in cells]
        except ValueError:
            continue
    return list(cells)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value) or bool(np.isscalar(value) and value != value)


def _check_names(columns: Sequence[str], labels: Sequence[str], parameters: Mapping[str, Parameter]) -> None:
    if isinstance(labels, str):
        raise InvalidInput(f"labels must be a list of columns; got {labels!r}. Type labels=[{labels!r}].")
    for what, names in (("labels", labels), ("parameters", parameters)):
        unknown = [name for name in names if name not in columns]
        if unknown:
            raise InvalidInput(f"{what} names {unknown}, and the columns are {list(columns)}. Name some of these.")
    if not [name for name in columns if name not in labels]:
        raise InvalidInput(f"Candidates must have a feature; all of {list(columns)} are labels. Take one from labels.")


def _parameter(name: str, values: Sequence[Any], given: Parameter | None) -> Parameter:
    """Return the parameter that a column is."""
    what = f"The column {name!r} of the candidates"
    if given is not None:
        for value in values:
            given.validate(value, what)
        return given
    distinct = list(dict.fromkeys(values))
    if len(distinct) < 2:
        raise InvalidInput(
            f"{what} has one value, {distinct[0]!r}, and tells no rows apart. Name it in labels=[{name!r}]."
        )
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in distinct):
        if not all(math.isfinite(value) for value in distinct):
            raise InvalidInput(f"{what} has an infinite value; a feature must be finite. Leave the row out.")
        kind = Int if all(isinstance(value, int) for value in distinct) else Float
        return kind(min(distinct), max(distinct))
    if len(distinct) > _MOST_OPTIONS:
        raise InvalidInput(
            f"{what} has {len(distinct):,} different texts, and a feature may have {_MOST_OPTIONS}. "
            f"If it is a name, type labels=[{name!r}]; otherwise group its values."
        )
    return Choice(distinct)


def _canonical(row: Mapping[str, Any], columns: Sequence[str], known: Mapping[str, Parameter]) -> Point:
    """Return a row with its values as the parameters have them, in the order of the columns."""
    return {
        name: known[name].validate(row[name], name) if name in known else row[name] for name in columns if name in row
    }
