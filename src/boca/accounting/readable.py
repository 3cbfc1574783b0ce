"""Amounts for people: three significant digits, and no exponent if that can be avoided."""

from __future__ import annotations

import math

_DIGITS = 3  # significant ones: enough to compare amounts, few enough to read
_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-4, 1e9  # beyond these, zeros are harder to count than an exponent is to read


def readable(amount: float) -> str:
    """Return an amount as text: 0.0123, 16.9, 1,230 or 1.23e+12."""
    if not math.isfinite(amount) or amount == 0:
        return f"{amount:g}"
    rounded = float(f"{amount:.{_DIGITS}g}")
    if not _SMALLEST_PLAIN <= abs(rounded) < _LARGEST_PLAIN:
        return f"{rounded:g}"
    decimals = max(0, _DIGITS - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text
