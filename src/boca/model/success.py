"""The probability that a trial completes, from which trials failed: a regression on 1 and 0, read with caution.

symbol   meaning
k        how many trials failed
mu       posterior mean of success at the target; a step of the truth looks smooth to it, and may overshoot 1
P        probability that a query completes

A length scale that few failures taught is a guess, and a search that is drawn to the border of a failing region finds
every place where the guess is too long: so length scales are multiplied by k / (k + caution).  mu above 1 is no more
certain than 1, and mu must lie above a half by a margin, because the step may be anywhere between a failure and a
success.  Failures by chance make P smaller everywhere, so the least probability of a query is at most a share of the
highest one that a queried point has: they do not bar a region.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from boca.domain.outcomes import SUCCESS
from boca.domain.trial import History
from boca.model.outcome_model import OutcomeModel
from boca.model.posterior import Model

BOUND = 0.7
"""Between failure and success: mu at which either is as likely."""
LEAST = 0.95
"""The least probability of a query, where that is possible: a failure is paid for and gives no value."""
_DEVIATION = 0.1  # of single results at a known mu
_SHARE_WITH_FIDELITIES = (
    0.2  # of the caution: cheap trials show what fails, and too much of it never reaches the target
)
_SHARE_OF_BEST = 0.97  # of the highest probability that a queried point has

# Without caution, as studies had it before there was any.
_PLAIN_BOUND, _PLAIN_LEAST, _PLAIN_DEVIATION = 0.5, 0.75, 0.25


def success_model(model: Model, history: History, caution: float) -> OutcomeModel:
    """Return the outcome that a regression on success stands for.

    Args:
        model: the regression.
        history: with at least one failure.
        caution: how many failures it takes until half of a learned length scale is believed; 0 believes all of it, and
            takes the regression as it is.
    """
    scale = model.standard.scale
    if caution <= 0.0:
        noise = max(model.gp.eta2, (_PLAIN_DEVIATION / scale) ** 2)
        return OutcomeModel(SUCCESS, model, _standardized(model, _PLAIN_BOUND), True, noise, _PLAIN_LEAST)
    failures = sum(trial.state == "failed" for trial in history)
    caution *= _SHARE_WITH_FIDELITIES if model.problem.fidelity else 1.0
    careful = model.shrunk(1.0 + caution / failures)
    noise = max(careful.gp.eta2, (_DEVIATION / scale) ** 2)
    found = OutcomeModel(SUCCESS, careful, _standardized(model, BOUND), True, noise, highest=_standardized(model, 1.0))
    best = float(np.max(found.probability(careful.queried)))
    return replace(found, least=min(LEAST, _SHARE_OF_BEST * best))


def _standardized(model: Model, success: float) -> float:
    return float(model.standard.apply(np.array(success)))
