"""Parameters and directions as people type them: `(1e-4, 1.0, "log")`, `["a", "b"]`, `"max"`.

`Space` and `Problem` read them in one place each, so that everything behind these two sees one form.

| typed | means |
| --- | --- |
| `(1, 8)` | `Int(1, 8)`: both ends are integers |
| `(0.0, 1.0)`, `(0, 1.5)` | `Float`: one end is a float |
| `(1e-4, 1.0, "log")`, `(16, 4096, "log")` | the same on a logarithmic scale |
| `(1, 52, "steps")` | `Steps(1, 52)`: an evaluation passes through them |
| `["a", "b"]` | `Choice(["a", "b"])`: a list is always a choice |

`(0, 1)` is refused: some who type it mean a switch, and others a share.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

from boca.domain.errors import InvalidInput, doubt

Direction: TypeAlias = Literal["maximize", "minimize"]

_DIRECTIONS: dict[str, Direction] = {
    "maximize": "maximize",
    "maximise": "maximize",
    "max": "maximize",
    "minimize": "minimize",
    "minimise": "minimize",
    "min": "minimize",
}
_LOG = "log"
_STEPS = "steps"
_EXAMPLES = "(1, 8) for an Int, (0.0, 1.0) for a Float, (1e-4, 1.0, 'log') for a log scale, or ['a', 'b'] for a Choice"


def direction(typed: object) -> Direction:
    """Return the direction that a word means, in American or British spelling, or as "max" or "min"."""
    found = _DIRECTIONS.get(typed) if isinstance(typed, str) else None
    if found is None:
        raise InvalidInput(f"direction must be 'maximize' or 'minimize', 'max' or 'min'; got {typed!r}.")
    return found


def described(typed: object, name: str) -> dict[str, Any]:
    """Return the parameter that a tuple or a list means, as `to_json` of a parameter describes it."""
    if isinstance(typed, tuple):
        return _range(typed, name)
    if isinstance(typed, list):
        _warn_of_two_numbers(typed, name)
        return {"type": "choice", "choices": typed}
    raise InvalidInput(
        f"Parameter {name!r} must be boca.Float, boca.Int or boca.Choice; got {typed!r}. Type {_EXAMPLES}."
    )


def is_number(value: object) -> bool:
    """Whether a value is a number of Python or NumPy; True and False are none."""
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)


def is_integer(value: object) -> bool:
    """Whether a value has an integer type of Python or NumPy; True and False have none."""
    return is_number(value) and not isinstance(value, float | np.floating)


def _range(typed: tuple[object, ...], name: str) -> dict[str, Any]:
    ends, scale = typed[:2], typed[2:]
    if len(ends) < 2 or not all(is_number(end) for end in ends) or len(scale) > 1:
        raise InvalidInput(
            f"Parameter {name!r} as a tuple must be (low, high) or (low, high, 'log'), two numbers; got {typed!r}. "
            f"Type {_EXAMPLES}."
        )
    if scale and scale[0] == _STEPS and all(is_integer(end) for end in ends):
        return {"type": _STEPS, "low": ends[0], "high": ends[1], "log": False}
    if scale and scale[0] != _LOG:
        raise InvalidInput(f"The third entry of parameter {name!r} must be 'log'; got {scale[0]!r} in {typed!r}.")
    are_integers = all(is_integer(end) for end in ends)
    if are_integers and ends == (0, 1):
        raise InvalidInput(
            f"Parameter {name!r} must be boca.Float, boca.Int or boca.Choice, or a range that says which; "
            f"got {typed!r}, which may mean two integers or all numbers between them. "
            "Type boca.Int(0, 1) for the integers, or (0.0, 1.0) for the numbers."
        )
    return {"type": "int" if are_integers else "float", "low": ends[0], "high": ends[1], "log": bool(scale)}


def _warn_of_two_numbers(typed: list[Any], name: str) -> None:
    if len(typed) == 2 and all(is_number(option) for option in typed):
        low, high = sorted(typed)
        doubt(
            f"Parameter {name!r} is a Choice between the two options {typed!r}, because a list is always a Choice. "
            f"For the range between them type ({low!r}, {high!r}). "
            f"For the two options without this warning type boca.Choice({typed!r})."
        )
