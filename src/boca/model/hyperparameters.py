"""Hyperparameters in the user's units, as decisions show them and as users write them.

Names, sizes and units are those of the blocks that kernels and noise declare.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.space import finite_number
from boca.gp.parameters import Block


def finite(value: float) -> float:
    """Return a float that JSON can hold: the square of 1e300 overflows."""
    return float(np.clip(value, -np.finfo(float).max, np.finfo(float).max))


def as_told(block: Block, values: Sequence[float], *, kappa0: float, scale: float) -> float | list[float]:
    """Return the numbers of a block in the user's units: a list of length scales, or a number."""
    if block.is_list:
        return [math.exp(value) for value in values] if block.unit == "log" else list(values)
    (value,) = values
    if block.unit == "none":
        return value
    return finite((value if block.unit == "variance" else value * kappa0) * scale * scale)


def checked(
    given: Mapping[str, Any], blocks: Sequence[Block], *, ignored: Sequence[str] = ()
) -> dict[str, list[float]]:
    """Return the numbers of a user's mapping by block, with zeros for missing strengths.

    The mean of f is not part of theta, but is required like a block of one number.
    """
    required = {"mean", *(block.name for block in blocks if block.size and not block.is_strength)}
    allowed = required | {block.name for block in blocks} | {*ignored}
    if not isinstance(given, Mapping) or not required <= set(given) <= allowed:
        more = f", and may have {sorted(allowed - required)}" if allowed - required else ""
        raise InvalidInput(f"hyperparameters must be a mapping with the keys {sorted(required)}{more}; got {given!r}.")
    numbers = {"mean": [finite_number(given["mean"], "hyperparameters['mean']")]}
    for block in blocks:
        what = f"hyperparameters[{block.name!r}]"
        values = np.atleast_1d(given.get(block.name, [0.0] if block.is_strength else [])).tolist()
        if len(values) != block.size:
            scales = "1 length scale" if block.size == 1 else f"{block.size} length scales, one per parameter"
            count = scales if block.is_list else "one number"
            raise InvalidInput(f"{what} must have {count}; got {values!r}.")
        numbers[block.name] = [finite_number(value, what) for value in values]
        lowest = min(numbers[block.name], default=1.0)
        may_be_zero = block.is_strength or block.name == "eta2"
        if lowest < 0.0 or (lowest == 0.0 and not may_be_zero):
            limit = "at least 0" if may_be_zero else "positive"
            raise InvalidInput(f"{what} must be {limit}; got {given[block.name]!r}.")
    return numbers
