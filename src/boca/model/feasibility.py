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
from boca.model.posterior import Model
from boca.model.surrogate import Surrogate

LEAST_RESULTS = 2  # of an outcome, before it has a model: one result has no scale
LEAST_SUCCESS = 0.75  # a failure is paid for and gives no value, so a query needs more than even odds
_LEAST_DEVIATION_OF_SUCCESS = 0.25  # of single results, which are 0 or 1: a smooth model is no step
LIKELY = 0.5  # a point is taken for feasible from this probability on


@dataclass(frozen=True)
class OutcomeModel:
    """The model of one outcome, and where its limit lies."""

    name: str
    model: Model
    bound: float
    """Standardized."""
    tells_below: bool
    """Whether a query below the target tells it."""
    noise: float = 0.0
    """The variance of a single result, standardized: success is what happens next, not what happens on average."""
    least: float = 0.0
    """The least probability of a point that is queried."""

    @property
    def is_everywhere_alike(self) -> bool:
        """Whether it does not depend on the fidelity, so that any query tells it."""
        return not self.model.problem.fidelity

    def probability(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        """Return the probability that the outcome is within its limit at the target.  [G14, eq. 4]"""
        from scipy.special import ndtr

        mu, sigma = self.model.moments(U)
        return np.asarray(ndtr((mu - self.bound) / np.sqrt(sigma * sigma + self.noise)))


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
        force_refit: bool = False,
    ) -> Feasibility:
        """Return what a history says about feasibility; hyperparameters are learned as those of the objective are.

        The values stay as told: a map of them, or a value for failures, would move them against the limit.
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
                noise = max(model.gp.eta2, (_LEAST_DEVIATION_OF_SUCCESS / model.standard.scale) ** 2)
                found.append(OutcomeModel(SUCCESS, model, bound, tells, noise, LEAST_SUCCESS))
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
        return 0.5 if name == SUCCESS else self.problem.subject_to[name].bound


def _tells_below(problem: Problem, history: History, outcome: str) -> bool:
    """Whether a query below the target has told an outcome, or none was made that could have."""
    below = [t for t in history.complete if not problem.is_target(t.z)]
    return outcome == SUCCESS or not below or any(outcome in t.outcomes for t in below)
