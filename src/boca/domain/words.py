"""Values, points and amounts as a person reads them: plain words, not escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
MAX_TEXT = 80  # characters of a value in a table or a sentence
_MAX_PLACES = 8  # after the point, before a mean has an exponent
_MAX_PLAIN = 1e9  # before a mean has an exponent
_DIGITS = 3  # significant ones: enough to compare amounts, few enough to read
_SPANS = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s"))
_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-4, 1e9  # beyond these, zeros are harder to count than an exponent is to read


def text(value: object, longest: int = MAX_TEXT) -> str:
    """Return a value as plain words, not escaped: floats to six digits, nothing for None, long texts cut.

    Six digits are for values and points, which are compared and typed in again; `readable` is for costs and times.
    """
    if value is None:
        return ""
    words = f"{value:.6g}" if isinstance(value, float) else printable(" ".join(str(value).split()))
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def printable(words: str) -> str:
    """Return words without characters that a terminal obeys or cannot show: an escape becomes a visible \\x1b."""
    return _CONTROL.sub(lambda found: repr(found[0])[1:-1], words)


def option(value: object, longest: int = MAX_TEXT) -> str:
    """Return the value of a parameter as plain words: unlike in `text`, None is an option like any other."""
    return "None" if value is None else text(value, longest)


def point(values: Mapping[str, Any]) -> str:
    """Return a point as plain words, not escaped."""
    return ", ".join(f"{text(name)} = {option(value)}" for name, value in values.items())


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


def moment(when: float) -> str:
    """Return a time, in seconds since 1970, as the date and the hour of this place."""
    try:
        return datetime.fromtimestamp(when).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, OSError, ValueError):
        return "unknown"


def duration(seconds: float) -> str:
    """Return a time span in the two largest units that it has: 12.3 s, 4 min 5 s, 2 h 10 min, 3 d 4 h."""
    if seconds < 60.0:
        return f"{readable(seconds)} s"
    if not math.isfinite(seconds):
        return "unknown"
    whole = round(seconds)
    for unit, name, part, smaller in _SPANS:
        if whole >= unit:
            count, rest = divmod(whole, unit)
            return f"{count} {name} {rest // part} {smaller}" if rest >= part else f"{count} {name}"
    return f"{whole} s"


def roughly(seconds: float) -> str:
    """Return a time span in its largest unit: 12 s, 4 min, 2 h, 3 d."""
    if not math.isfinite(seconds):
        return "unknown"
    for unit, name, _, _ in _SPANS:
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def expected(mean: float, std: float) -> str:
    """Return a mean to the last digit that its deviation allows: two digits of the deviation."""
    if not (math.isfinite(std) and std > 0.0):
        return f"{mean:.6g} ± {std:.2g}"
    places = 1 - math.floor(math.log10(std))
    if places > _MAX_PLACES or abs(mean) >= _MAX_PLAIN:
        return f"{mean:.6g} ± {std:.2g}"
    return f"{mean:.{max(places, 0)}f} ± {std:.{max(places, 0)}f}"


def advice(mean: float, std: float, verified: bool, feasible: float | None = None) -> str:
    """Return what a model expects at a point, in plain words."""
    was = "was run" if verified else "was not run"
    within = "" if feasible is None else f", and is within all limits with probability {feasible:.2g}"
    return f"expected {expected(mean, std)}; it {was} at the target{within}"
