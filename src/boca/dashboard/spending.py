"""The budget on the page: the ledger of a study, in numbers that JSON can hold."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from boca.accounting.ledger import Ledger
from boca.domain.trial import Trial


def summary(ledger: Ledger) -> dict[str, Any]:
    """Return the budget in the unit of the ledger; None for not known yet and, in `total` and `left`, for no limit."""
    return {
        "unit": ledger.unit,
        "limit": None if ledger.limit is None else asdict(ledger.limit),
        "total": finite(ledger.total),
        "spent": ledger.spent,
        "reserved": ledger.reserved,
        "left": finite(ledger.left),
        "target": ledger.target,
        "is_estimate": not ledger.is_exact,
    }


def finite(amount: float) -> float | None:
    return amount if math.isfinite(amount) else None


def repriced(ledger: Ledger) -> list[tuple[int, float]]:
    """Return the trials whose charge may change with later results, and what it is now.

    The charge of a trial that was not measured follows the learned cost.  Before the first measured result, a charge
    is a share of the target's cost.
    """
    if ledger.problem.has_declared_cost or ledger.counts_seconds:
        return []
    first_measured = min((_told(t) for t in ledger.history.complete if t.seconds is not None), default=math.inf)
    return [
        (t.number, ledger.charge(t))
        for t in ledger.history
        if t.state != "running" and not t.added and (t.seconds is None or _told(t) < first_measured)
    ]


def _told(trial: Trial) -> int:
    return trial.told or 0
