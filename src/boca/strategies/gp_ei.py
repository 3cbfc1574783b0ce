"""GP-EI, the paper's second baseline: expected improvement, always at the target.

[J98] Jones, Schonlau, Welch: Efficient Global Optimization of Expensive Black-Box Functions, 1998.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boca.domain.budget import Budget
from boca.domain.errors import instance_of, one_of
from boca.domain.problem import Problem
from boca.domain.trial import History, Suggestion
from boca.model.posterior import Posterior
from boca.model.surrogate import Surrogate
from boca.search.acquisition import LogEI
from boca.search.maximizer import MAXIMIZERS, Maximizer
from boca.strategies.at_target import suggest_at_target
from boca.strategies.base import refuse_restricted


@dataclass(frozen=True)
class GPEI:
    """Query the target at the largest expected improvement over the highest posterior mean of a queried x."""

    surrogate: Surrogate = field(default_factory=Surrogate.paper)
    maximizer: Maximizer = "direct"
    hyperparameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        instance_of(self.surrogate, Surrogate, "surrogate")
        one_of(self.maximizer, MAXIMIZERS, "maximizer")

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        refuse_restricted(problem, type(self).__name__)
        self.surrogate.check(problem, self.hyperparameters)

    def posterior(self, problem: Problem, history: History) -> Posterior:
        return self.surrogate.model(problem, history, np.random.default_rng(0), hyperparameters=self.hyperparameters)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return suggest_at_target(
            problem,
            history,
            budget,
            rng,
            self.surrogate,
            self.maximizer,
            hyperparameters=self.hyperparameters,
            acquisition="log_ei",
            formula=lambda model, weight: LogEI(float(np.max(model.means(model.queried)))),
            reason="The largest expected improvement at the target fidelity.",
        )
