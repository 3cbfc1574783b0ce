"""Random search: the baseline of baselines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from boca.accounting.cost import costs
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.trial import History, Suggestion
from boca.search.candidates import STAND_IN
from boca.search.initial_design import random_point


@dataclass(frozen=True)
class RandomSearch:
    """Query the target at independent uniform points."""

    takes_objectives: ClassVar[bool] = True
    takes_outcomes: ClassVar[bool] = True  # a random point heeds nothing; what is best is decided by the limits

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        x, z = random_point(problem, history, rng, costs(problem, history), dict(problem.target))
        reason = "A uniform random point at the target fidelity." if problem.is_target(z) else STAND_IN
        return Suggestion(x, z, {"reason": reason, "phase": "start"})
