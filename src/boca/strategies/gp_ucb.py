"""GP-UCB, the paper's first baseline: an upper confidence bound, always at the target.

[S10] Srinivas, Krause, Kakade, Seeger: Gaussian Process Optimization in the Bandit Setting, ICML 2010.
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
class GPUCB:
    """Query the target where the upper confidence bound is highest."""

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
        weight = beta(len(history.chosen) + 1, len(problem.space), model.diameter())
        promise = BoundAcquisition(model, acquisition.UCB(weight))
        ranked = MAXIMIZERS[self.maximizer](promise, problem.space, rng, model.anchors())
        u, z, stands_in = free_or_stand_in(problem, history, ranked, lambda _: dict(problem.target))
        reason = STAND_IN if stands_in else "The highest upper confidence bound at the target fidelity."
        why = explain(model, history, u, phase="model", reason=reason, beta=weight, acquisition="ucb")
        return Suggestion(problem.space.from_unit(u), z, why)
