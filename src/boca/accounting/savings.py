"""What stopping and continuing runs have saved, against the same trials from scratch and nothing else."""

from __future__ import annotations

import math
from dataclasses import dataclass

from boca.accounting.ledger import Ledger
from boca.domain.trial import Trial
from boca.domain.words import readable


@dataclass(frozen=True)
class Savings:
    """In target evaluations: what runs that were stopped did not cost, and what continued ones did not cost again."""

    stopped: float
    stops: int
    continued: float
    continuations: int

    @property
    def words(self) -> str:
        """Both in a sentence each; empty if nothing was stopped or continued."""
        found = []
        if self.stops:
            runs = "run that was" if self.stops == 1 else "runs that were"
            found.append(f"Stopping saved {readable(self.stopped)} target evaluations ({self.stops} {runs} stopped).")
        if self.continuations:
            runs = "run that did" if self.continuations == 1 else "runs that did"
            saved = f"Continuing saved {readable(self.continued)} target evaluations"
            found.append(f"{saved} ({self.continuations} {runs} not begin from scratch).")
        return " ".join(found)


def savings(ledger: Ledger) -> Savings:
    """Return what stopping and continuing have saved in a study."""
    if ledger.problem.steps is None:
        return Savings(0.0, 0, 0.0, 0)
    finished = [t for t in ledger.history.finished if not t.added]
    stopped = [t for t in finished if t.stop is not None and t.z != t.planned]
    continued = [t for t in finished if t.origin]
    target = ledger.costs.target
    return Savings(
        math.fsum(_not_run(ledger, t) for t in stopped) / target,
        len(stopped),
        math.fsum(_not_again(ledger, t) for t in continued) / target,
        len(continued),
    )


def _not_run(ledger: Ledger, trial: Trial) -> float:
    """Return what the rest of a stopped run would have cost."""
    return ledger.costs.going_on(trial.planned, trial.origin) - ledger.costs.going_on(trial.z, trial.origin)


def _not_again(ledger: Ledger, trial: Trial) -> float:
    """Return what the steps before a continued run would have cost again."""
    return ledger.costs.going_on(trial.z, 0) - ledger.costs.going_on(trial.z, trial.origin)
