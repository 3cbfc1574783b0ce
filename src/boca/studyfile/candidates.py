"""A space of a study file that is a list of candidates: `candidates = "rows.csv"` in its table [space]."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from boca.domain.candidates import Candidates
from boca.domain.errors import InvalidInput
from boca.domain.space import Parameter

Table: TypeAlias = Mapping[str, Any]

_EXAMPLE = 'space = { candidates = "rows.csv", labels = ["name"] }'


def is_listed(space: object) -> bool:
    """Whether a table [space] names a file of candidates; a parameter of that name is a table itself."""
    return isinstance(space, dict) and "candidates" in space and not isinstance(space["candidates"], dict)


def listed(space: Table, folder: str, parameter: Callable[[str, object], Parameter]) -> Candidates:
    """Return the candidates of a CSV file.

    Args:
        space: the table: the file, which columns are labels, whether rows may be repeated, and a table for each feature
            that is not to be read off its column, such as a number on a log scale.
        folder: what a relative path is relative to.
        parameter: reads such a table, given its name.
    """
    file, labels, repeat = space["candidates"], space.get("labels", []), space.get("repeat", False)
    if not isinstance(file, str) or not file.strip():
        raise InvalidInput(f"space.candidates is {file!r}, and must be the path of a CSV file. Type {_EXAMPLE}.")
    if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
        raise InvalidInput(f"space.labels is {labels!r}, and must be a list of columns. Type {_EXAMPLE}.")
    if not isinstance(repeat, bool):
        raise InvalidInput(
            f"space.repeat is {repeat!r}, and must be true or false. Type repeat = true, or leave it out."
        )
    known = {name: parameter(name, value) for name, value in space.items() if name not in _KEYS}
    try:
        return Candidates(str(Path(folder, file)), labels=labels, parameters=known, repeat=repeat)
    except InvalidInput as error:
        raise InvalidInput(f"space: {error}") from error


_KEYS = ("candidates", "labels", "repeat")
