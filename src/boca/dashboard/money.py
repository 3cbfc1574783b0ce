"""What the page is told of the money: the books of a study, in numbers that JSON has."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from boca.accounting.ledger import Books
from boca.domain.trial import Trial


def summary(books: Books) -> dict[str, Any]:
    """Return the money in the unit of the books; None is "not known yet" or, for the whole and the rest, "no end"."""
    return {
        "unit": books.unit,
        "capital": None if books.capital is None else asdict(books.capital),
        "total": finite(books.total),
        "spent": books.spent,
        "reserved": books.reserved,
        "left": finite(books.left),
        "target": books.target,
        "is_estimate": not books.is_exact,
    }


def finite(amount: float) -> float | None:
    return amount if math.isfinite(amount) else None


def repriced(books: Books) -> list[tuple[int, float]]:
    """Return the trials whose charge later results may change though nothing happens to them, and what it is now.

    The charge of one that nobody measured follows what is learned, and that of one before the first measured result is
    a share of a target until then.
    """
    if books.problem.has_declared_cost or books.counts_seconds:
        return []
    first = min((_told(t) for t in books.history.complete if t.seconds is not None), default=math.inf)
    return [
        (t.number, books.charge(t))
        for t in books.history
        if t.state != "running" and not t.added and (t.seconds is None or _told(t) < first)
    ]


def _told(trial: Trial) -> int:
    return trial.told or 0
