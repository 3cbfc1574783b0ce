"""The models of several objectives: one each, over x and the fidelities.

symbol     shape    meaning
mu, sigma  (n, m)   posterior means and deviations at the target in the user's units, turned so that more is better

Objectives are modelled one by one and taken as independent given x.  Their values stay as told: a map of them would
change what a hypervolume means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from boca.domain.objectives import turns_of
from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import History, Trial
from boca.model.dataset import Dataset
from boca.model.posterior import Model, leading_count
from boca.model.surrogate import Surrogate


@dataclass(frozen=True)
class Objectives:
    """The models of all objectives, in the order of the problem."""

    problem: Problem
    models: Mapping[str, Model]

    @classmethod
    def after(
        cls,
        problem: Problem,
        history: History,
        surrogate: Surrogate,
        rng: np.random.Generator,
        *,
        force_refit: bool = False,
    ) -> Objectives:
        """Return the models after a history, in which every objective was told at least once."""
        surrogate = replace(surrogate, warp=False, failures="worst")
        datasets = {name: Dataset.of_outcome(problem, history, name) for name in problem.objectives}
        return cls(
            problem,
            {name: surrogate.learned(d, history, rng, force_refit=force_refit) for name, d in datasets.items()},
        )

    def joined(self, trials: Sequence[Trial]) -> Objectives:
        """Return the models with further running trials."""
        return replace(self, models={name: model.joined(trials) for name, model in self.models.items()})

    @property
    def queried(self) -> FloatArray:  # (k, d)
        """The x of all results, each once, in unit coordinates."""
        U = np.vstack([model.queried for model in self.models.values()])
        _, first = np.unique(U, axis=0, return_index=True)
        return U[np.sort(first)]

    def moments(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (n, d) -> mu, sigma (n, m)
        found = [model.moments(U) for model in self.models.values()]
        scales = [model.standard for model in self.models.values()]
        mu = [s.location + s.scale * mean for s, (mean, _) in zip(scales, found, strict=True)]
        return np.stack(mu, axis=1), np.stack([s.scale * d for s, (_, d) in zip(scales, found, strict=True)], axis=1)

    def upper_bounds(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (n, d) -> mu, sigma (n, m)
        """Return upper bounds of the moments, which cost less than these with many results."""
        mu, sigma = [], []
        for model in self.models.values():
            leading = leading_count(model.target_slice)
            if leading is None:
                mean, deviation = model.moments(U)
            else:
                mean, variance = model.target_slice.upper_bounds(model.encoding.x_features(U), leading)
                deviation = np.sqrt(variance)
            mu.append(model.standard.location + model.standard.scale * mean)
            sigma.append(model.standard.scale * deviation)
        return np.stack(mu, axis=1), np.stack(sigma, axis=1)

    def means(self, U: FloatArray) -> FloatArray:  # (n, d) -> (n, m)
        found = [m.standard.location + m.standard.scale * m.means(U) for m in self.models.values()]
        return np.stack(found, axis=1)

    def as_told(self, mu: FloatArray) -> dict[str, float]:  # (m,)
        """Return turned values as the user tells them."""
        return {name: turn * float(value) for (name, turn), value in zip(self._turns, mu, strict=True)}

    @property
    def _turns(self) -> list[tuple[str, float]]:
        return list(turns_of(self.problem).items())

    def diameter(self) -> float:
        """Return the largest L1 diameter of the domain, each dimension divided by its length scale."""
        return max(model.diameter() for model in self.models.values())

    def why(self, u: FloatArray) -> dict[str, Any]:  # (d,)
        """Return what is believed of every objective at x and the target, in the user's units and unrounded."""
        mu, sigma = self.moments(u[None, :])
        means = self.as_told(mu[0])
        return {
            name: {
                "mean": means[name],
                "std": float(deviation),
                "hyperparameters": model.hyperparameters(),
                **({} if model.guard is None else {"guard": model.guard}),
                **model.warnings(),
                **model.described(),
                **model.learned(),
            }
            for (name, model), deviation in zip(self.models.items(), sigma[0], strict=True)
        }
