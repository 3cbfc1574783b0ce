"""The probability that a point is feasible at the target: that every outcome is within its limit, and no trial fails.

symbol     shape   meaning
mu, sigma  (m,)    posterior mean and deviation of one outcome at the target, larger being further within its limit
bound              the limit in the same units
p          (m,)    P(outcome >= bound) = Phi((mu - bound) / sigma)

Outcomes are modelled one by one and taken as independent given x, so their probabilities are multiplied.  Success is
one more outcome: 1 where a trial is complete, 0 where it failed, with the limit in the middle.

[G14] Gardner, Kusner, Xu, Weinberger, Cunningham: Bayesian Optimization with Inequality Constraints, ICML 2014.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boca.domain.outcomes import SUCCESS
from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import History
from boca.model.dataset import Dataset
from boca.model.outcome_model import OutcomeModel
from boca.model.success import success_model
from boca.model.surrogate import Surrogate

LEAST_RESULTS = 2  # of an outcome, before it has a model: one result has no scale
LIKELY = 0.5  # a point is taken for feasible from this probability on


@dataclass(frozen=True)
class Feasibility:
    """The models of all outcomes that have limits, as far as there are results."""

    problem: Problem
    outcomes: tuple[OutcomeModel, ...]

    @classmethod
    def after(
        cls,
        problem: Problem,
        history: History,
        surrogate: Surrogate,
        rng: np.random.Generator,
        *,
        success: bool = False,
        caution: float = 0.0,
        force_refit: bool = False,
    ) -> Feasibility:
        """Return what a history says about feasibility; hyperparameters are learned as those of the objective are.

        The values stay as told: a map of them, or a value for failures, would move them against the limit.
        `success` adds a model of success if a trial failed, which is read with `caution` (see `success_model`).
        """
        surrogate = replace(surrogate, warp=False, failures="worst")
        datasets = [Dataset.of_outcome(problem, history, name) for name in problem.subject_to]
        if success and any(t.state == "failed" for t in history.finished):
            datasets.append(Dataset.of_success(problem, history))
        found = []
        for dataset in datasets:
            if len(dataset.scores) < LEAST_RESULTS or dataset.bound is None:
                continue
            model = surrogate.learned(dataset, history, rng, force_refit=force_refit)
            bound = float(model.standard.apply(np.array(dataset.bound)))
            tells = _tells_below(problem, history, dataset.outcome)
            if dataset.outcome == SUCCESS:
                found.append(success_model(model, history, caution))
            else:
                found.append(OutcomeModel(dataset.outcome, model, bound, tells))
        return cls(problem, tuple(found))

    def __bool__(self) -> bool:
        return bool(self.outcomes)

    def probabilities(self, U: FloatArray) -> dict[str, FloatArray]:  # (m, d) -> (m,) each
        return {outcome.name: outcome.probability(U) for outcome in self.outcomes}

    def probability(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        """Return the probability that every outcome is within its limit at the target."""
        return np.asarray(np.prod([outcome.probability(U) for outcome in self.outcomes] or [np.ones(len(U))], axis=0))

    def likely(self, U: FloatArray) -> FloatArray:  # (k, d) -> (j, d)
        """Return the points that are more likely feasible than not."""
        return U[self.probability(U) >= LIKELY]

    def why(self, u: FloatArray) -> dict[str, Any]:  # (d,)
        """Return what is believed of every outcome at x and the target, in the user's units and unrounded."""
        if not self.outcomes:
            return {}
        outcomes = {}
        for outcome in self.outcomes:
            mu, sigma = (float(moment[0]) for moment in outcome.model.moments(u[None, :]))
            outcomes[outcome.name] = {
                "mean": outcome.model.value_as_told(mu),
                "std": outcome.model.interval_as_told(mu, sigma),
                "limit": self._limit(outcome.name),
                "probability": float(outcome.probability(u[None, :])[0]),
                "hyperparameters": outcome.model.hyperparameters(),
                **outcome.model.learned(),
            }
        return {"feasible": float(self.probability(u[None, :])[0]), "outcomes": outcomes}

    def _limit(self, name: str) -> float:
        if name != SUCCESS:
            return self.problem.subject_to[name].bound
        (bound,) = (o.model.value_as_told(o.bound) for o in self.outcomes if o.name == SUCCESS)
        return round(bound, 9)  # without the rounding of the units


def _tells_below(problem: Problem, history: History, outcome: str) -> bool:
    """Whether a query below the target has told an outcome, or none was made that could have."""
    below = [t for t in history.complete if not problem.is_target(t.z)]
    return outcome == SUCCESS or not below or any(outcome in t.outcomes for t in below)
