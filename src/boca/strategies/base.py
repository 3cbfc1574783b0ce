"""What every strategy is, and what those with a model share: the paper's beta, and how a decision is explained."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np

from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.space import FloatArray
from boca.domain.trial import History, Suggestion
from boca.model.posterior import Posterior
from boca.model.surrogate import Surrogate


@runtime_checkable
class Strategy(Protocol):
    """All trials in, a suggestion out; nothing remembered."""

    def suggest(
        self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator, /
    ) -> Suggestion: ...


@runtime_checkable
class Checking(Protocol):
    """A strategy that looks at a problem before anything is paid for."""

    def check(self, problem: Problem, /) -> None:
        """Refuse a problem that the settings do not fit."""
        ...


@runtime_checkable
class Believing(Protocol):
    """A strategy that has a model: recommendations, plots and reports use it."""

    def posterior(self, problem: Problem, history: History, /) -> Posterior:
        """Return what the strategy believes of f after a history with at least one complete trial."""
        ...


def check(strategy: object, problem: Problem) -> None:
    """Refuse a problem that the settings of a strategy do not fit; one that does not look accepts every problem."""
    if isinstance(strategy, Checking):
        strategy.check(problem)


def posterior(strategy: object, problem: Problem, history: History) -> Posterior | None:
    """Return what a strategy believes of f after everything that was told; None before the first result.

    Running trials are left out.  A strategy without a model is given that of `Boca()`.
    """
    if not history.complete:
        return None
    told = History([t for t in history if t.state != "running"]) if history.running else history
    if isinstance(strategy, Believing):
        return strategy.posterior(problem, told)
    return Surrogate().model(problem, told, np.random.default_rng(0))


def beta(t: int, d: int, l: float) -> float:  # noqa: E741 - the paper's symbol
    """Return the exploration weight that the paper runs, l being the L1 diameter in length scales.  [K17, app. C.1]"""
    return 0.5 * d * math.log(2.0 * l * t + 1.0)


def explain(
    model: Posterior, history: History, u: FloatArray, *, phase: str, reason: str, beta: float, **more: Any
) -> dict[str, Any]:  # u (d,)
    """Return the part of `why` that every decision by a model shares, in the user's units and unrounded.

    Args:
        model: what is believed of f.
        history: the trials that the decision read.
        u: the chosen x in unit coordinates.
        phase: "model" or "final".
        reason: one sentence that a person understands.
        beta: weight of exploration in the bound.
        more: further keys.
    """
    mu, sigma = (float(moment[0]) for moment in model.moments(u[None, :]))
    learned = model.learned()
    return {
        "reason": reason,
        "phase": phase,
        "beta": beta,
        "mean": model.value_as_told(mu),
        "std": model.deviation_as_told(sigma),
        "ucb": model.value_as_told(mu + math.sqrt(beta) * sigma),
        **more,
        "hyperparameters": model.hyperparameters(),
        "refit": bool(learned),
        "pending": [t.number for t in history.running],
        **learned,
    }
