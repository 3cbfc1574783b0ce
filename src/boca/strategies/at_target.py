"""One decision of a method that queries only the target: the start, a model, and the maximum of an acquisition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.trial import History, Suggestion
from boca.model.posterior import Model
from boca.model.surrogate import Surrogate
from boca.search.acquisition import Acquisition, BoundAcquisition
from boca.search.candidates import STAND_IN, best_candidate
from boca.search.initial_design import random_start
from boca.search.maximizer import MAXIMIZERS, Maximizer
from boca.strategies.base import beta, explain


def suggest_at_target(
    problem: Problem,
    history: History,
    budget: Budget,
    rng: np.random.Generator,
    surrogate: Surrogate,
    maximizer: Maximizer,
    *,
    hyperparameters: Mapping[str, Any] | None,
    acquisition: str,
    formula: Callable[[Model, float], Acquisition],
    reason: str,
) -> Suggestion:
    """Suggest the x at the target with the highest acquisition; `formula` makes it from the model and beta_t."""
    starting = random_start(
        problem, history, budget, rng, costs(problem, history), design="uniform", fidelities="target"
    )
    if starting is not None:
        return starting
    model = surrogate.model(problem, history, rng, hyperparameters=hyperparameters)
    weight = beta(len(history.chosen) + 1, len(problem.space), model.diameter())
    objective = BoundAcquisition(model, formula(model, weight))
    ranked = MAXIMIZERS[maximizer](objective, problem.space, rng, model.anchors())
    u, z, stands_in = best_candidate(problem, history, ranked, lambda _: dict(problem.target))
    reason = STAND_IN if stands_in else reason
    why = explain(
        model, history, u, phase="model", reason=reason, beta=weight, acquisition=acquisition, **model.warnings()
    )
    return Suggestion(problem.space.from_unit(u), z, why)
