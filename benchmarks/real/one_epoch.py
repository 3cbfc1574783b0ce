"""1-Epoch: random configurations at a cheap fidelity, and the best of them at the target (Egele et al., 2023).

In rounds, so that there is a result early: after every `per_round` random configurations at the cheap fidelity, the
best of all that was not yet run at the target is run there.  One epoch is of no use on some tasks; the cheap fidelity
costs an eighth of the target, which ranks well on those that were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.real.rungs import cheap
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.domain.trial import History, Suggestion, point_key
from boca.problems import Benchmark

_SHARE = 1 / 8  # of the cost of the target


@dataclass(frozen=True)
class OneEpoch:
    """Random at a cheap fidelity, the best to the end."""

    cheap: tuple[tuple[str, Any], ...]
    per_round: int = 8

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        if len(history) % (self.per_round + 1) < self.per_round:
            x = problem.space.from_unit(problem.space.snap(rng.random((1, len(problem.space))))[0])
            return Suggestion(x, dict(self.cheap), _why("A random point at the cheap fidelity."))
        return Suggestion(_best_untried(problem, history), problem.target, _why("The best of the cheap ones."))


def one_epoch(benchmark: Benchmark) -> OneEpoch:
    """Return the method with the cheap fidelity of a task: a step of its training where it has steps."""
    return OneEpoch(tuple(cheap(benchmark, _SHARE).items()))


def _best_untried(problem: Problem, history: History) -> Point:
    verified = {point_key(trial.x) for trial in history if problem.is_target(trial.z)}
    scores = history.scores(problem.direction)
    ranked = sorted(zip(scores, history.finished, strict=True), key=lambda pair: -pair[0])
    return next(
        dict(trial.x) for _, trial in ranked if not problem.is_target(trial.z) and point_key(trial.x) not in verified
    )


def _why(reason: str) -> dict[str, str]:
    return {"reason": reason, "phase": "start"}
