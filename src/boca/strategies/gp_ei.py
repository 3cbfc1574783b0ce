"""GP-EI, the paper's second baseline: expected improvement, always at the target.

[J98] Jones, Schonlau, Welch: Efficient Global Optimization of Expensive Black-Box Functions, 1998.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.errors import instance_of, one_of
from boca.domain.problem import Problem
from boca.domain.trial import History, Suggestion
from boca.model.surrogate import Surrogate
from boca.search import acquisition
from boca.search.acquisition import BoundAcquisition
from boca.search.initial_design import random_start
from boca.search.maximizer import MAXIMIZERS, Maximizer
from boca.strategies.base import STAND_IN, beta, explain, free_or_stand_in


@dataclass(frozen=True)
class GPEI:
    """Query the target where the improvement over the largest posterior mean at a queried x is expected to be most."""

    surrogate: Surrogate = field(default_factory=Surrogate.paper)
    maximizer: Maximizer = "direct"
    hyperparameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        instance_of(self.surrogate, Surrogate, "surrogate")
        one_of(self.maximizer, MAXIMIZERS, "maximizer")

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        self.surrogate.check(problem, self.hyperparameters)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        starting = random_start(
            problem, history, budget, rng, costs(problem, history), design="uniform", fidelities="target"
        )
        if starting is not None:
            return starting
        model = self.surrogate.model(problem, history, rng, hyperparameters=self.hyperparameters)
        best = float(np.max(model.means(model.queried)))
        promise = BoundAcquisition(model, acquisition.LogEI(best))
        ranked = MAXIMIZERS[self.maximizer](promise, problem.space, rng, model.anchors())
        u, z, stands_in = free_or_stand_in(problem, history, ranked, lambda _: dict(problem.target))
        reason = STAND_IN if stands_in else "The largest expected improvement at the target fidelity."
        weight = beta(len(history.chosen) + 1, len(problem.space), model.diameter())
        why = explain(model, history, u, phase="model", reason=reason, beta=weight, acquisition="log_ei")
        return Suggestion(problem.space.from_unit(u), z, why)
