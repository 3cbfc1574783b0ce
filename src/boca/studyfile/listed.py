"""A finite list of candidates as the space of a study file: the rows of a CSV beside it."""

from __future__ import annotations

import os
from collections.abc import Mapping

from boca.domain.candidates import Candidates
from boca.domain.errors import InvalidInput
from boca.domain.space import Parameter
from boca.studyfile.settings import only

_EXAMPLE = '{ file = "compounds.csv", labels = ["name"] }'


def candidates(given: object, parameters: Mapping[str, Parameter], folder: str) -> Candidates:
    """Return the rows of a CSV file as a space; `parameters` are the columns that [space] describes."""
    if not isinstance(given, dict):
        raise InvalidInput(f"candidates must be a table such as {_EXAMPLE}; got {given!r}.")
    only(given, ("file", "labels", "repeat"), "candidates")
    file, labels = given.get("file"), given.get("labels", [])
    if not isinstance(file, str) or not file:
        raise InvalidInput(f"candidates.file must name a CSV file beside the study file; got {file!r}.")
    if not isinstance(labels, list) or not all(isinstance(name, str) for name in labels):
        raise InvalidInput(f'candidates.labels must be a list of columns such as ["name"]; got {labels!r}.')
    try:
        return Candidates(
            os.path.join(folder, file), labels=labels, parameters=parameters, repeat=given.get("repeat", False)
        )
    except InvalidInput as error:
        raise InvalidInput(f"candidates: {error}") from error
