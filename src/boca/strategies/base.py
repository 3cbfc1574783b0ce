"""The protocols of a strategy, and what strategies with a model share: the paper's beta, and `why`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np

from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.runs import Verdict
from boca.domain.space import FloatArray
from boca.domain.trial import History, Suggestion, Trial
from boca.model.feasibility import Feasibility
from boca.model.objectives import Objectives
from boca.model.posterior import Posterior
from boca.model.surrogate import Surrogate


@runtime_checkable
class Strategy(Protocol):
    """All trials in, a suggestion out; no state."""

    def suggest(
        self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator, /
    ) -> Suggestion: ...


@runtime_checkable
class HasCheck(Protocol):
    """A strategy that checks a problem before a trial runs."""

    def check(self, problem: Problem, /) -> None:
        """Refuse a problem that the settings do not fit."""
        ...


@runtime_checkable
class HasPosterior(Protocol):
    """A strategy with a model, which recommendations, plots and reports use."""

    def posterior(self, problem: Problem, history: History, /) -> Posterior:
        """Return the posterior of f after a history with at least one complete trial."""
        ...


@runtime_checkable
class TakesHyperparameters(Protocol):
    """A strategy whose GP the user may know."""

    @property
    def hyperparameters(self) -> Mapping[str, Any] | None: ...


@runtime_checkable
class TakesOutcomes(Protocol):
    """A strategy that says whether it heeds the limits on outcomes."""

    @property
    def takes_outcomes(self) -> bool: ...


@runtime_checkable
class TakesObjectives(Protocol):
    """A strategy that says whether it searches for a front of several objectives."""

    @property
    def takes_objectives(self) -> bool: ...


@runtime_checkable
class HasFeasibility(Protocol):
    """A strategy with models of the outcomes that have limits."""

    def feasibility(self, problem: Problem, history: History, /) -> Feasibility:
        """Return what a history says about feasibility."""
        ...


@runtime_checkable
class HasObjectives(Protocol):
    """A strategy with models of several objectives."""

    def objectives(self, problem: Problem, history: History, /) -> Objectives:
        """Return the models after a history in which every objective was told."""
        ...


@runtime_checkable
class HasKeepGoing(Protocol):
    """A strategy, or a rule of a study, that says whether an evaluation that passes through steps should go on."""

    def keep_going(
        self, problem: Problem, history: History, trial: Trial, rng: np.random.Generator, /
    ) -> Verdict | bool:
        """Return whether a running trial should go on after its last report; a pure function of its arguments.

        `history` is the study as it was when the report was stored, with the trial in it.
        """
        ...


@runtime_checkable
class SharesBatches(Protocol):
    """A strategy that chooses trials which are asked for together from what the first of them read."""

    @property
    def share_batch(self) -> bool:
        """Whether it does; otherwise every trial is chosen by itself."""
        ...

    def suggest_member(
        self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator, shared: Any, /
    ) -> tuple[Suggestion, Any]:
        """Return the next of these trials, and what it shares with the following ones.

        `shared` is None for the first one, and then what the call before returned.  `history` has the results that the
        first one read, and the trials of the batch so far as running.
        """
        ...


def shares_batches(strategy: object) -> TypeGuard[SharesBatches]:
    """Return whether trials that are asked for together share what it takes to choose them."""
    return isinstance(strategy, SharesBatches) and strategy.share_batch


def knows_gp(strategy: object) -> bool:
    """Whether a strategy was given its GP, so that nothing is fitted."""
    return isinstance(strategy, TakesHyperparameters) and strategy.hyperparameters is not None


def check(strategy: object, problem: Problem) -> None:
    """Refuse a problem that the settings of a strategy do not fit.

    A strategy without `check` accepts every problem, limits on outcomes only if it has `takes_outcomes = True`, and
    several objectives only if it has `takes_objectives = True`.
    """
    if problem.objectives and not (isinstance(strategy, TakesObjectives) and strategy.takes_objectives):
        raise InvalidInput(
            f"outcomes has the objectives {list(problem.objectives)}, and {type(strategy).__name__} with these "
            "settings has one objective: its paper has no front. Use boca.Boca() or boca.RandomSearch(), or keep one "
            "objective and give the others limits, such as boca.AtMost(20.0)."
        )
    if problem.subject_to and not (isinstance(strategy, TakesOutcomes) and strategy.takes_outcomes):
        raise InvalidInput(
            f"subject_to limits {list(problem.subject_to)}, and {type(strategy).__name__} with these settings does not "
            "heed limits: its paper has none. Use boca.Boca() or boca.RandomSearch(), or leave subject_to out."
        )
    if isinstance(strategy, HasCheck):
        strategy.check(problem)


def refuse_restricted(problem: Problem, name: str) -> None:
    """Refuse a space that is no box: the papers have none."""
    if not problem.space.is_box:
        raise InvalidInput(
            f"{name} searches a box, as its paper does, and this space has {problem.space.restriction}. "
            "Use boca.Boca() or boca.RandomSearch()."
        )


def posterior(strategy: object, problem: Problem, history: History) -> Posterior | None:
    """Return the posterior of f under a strategy's model after all results; None before the first one.

    Running trials are left out.  For a strategy without a model, it is that of `Boca()`.
    """
    if not history.valued:
        return None
    told = History([t for t in history if t.state != "running"]) if history.running else history
    if isinstance(strategy, HasPosterior):
        return strategy.posterior(problem, told)
    return Surrogate().model(problem, told, np.random.default_rng(0))


def objectives(strategy: object, problem: Problem, history: History) -> Objectives | None:
    """Return the models of several objectives after all results; None before a trial has told them all.

    For a strategy without such models, they are those of `Boca()`.
    """
    if not problem.objectives or not history.told(problem):
        return None
    told = History([t for t in history if t.state != "running"]) if history.running else history
    if isinstance(strategy, HasObjectives):
        return strategy.objectives(problem, told)
    return Objectives.after(problem, told, Surrogate(), np.random.default_rng(0))


def feasibility(strategy: object, problem: Problem, history: History) -> Feasibility:
    """Return what a strategy believes of feasibility after all results; it is empty if nothing can be infeasible.

    For a strategy without such models, they are those of `Boca()`.
    """
    told = History([t for t in history if t.state != "running"]) if history.running else history
    if isinstance(strategy, HasFeasibility):
        return strategy.feasibility(problem, told)
    success = bool(problem.objectives)
    return Feasibility.after(problem, told, Surrogate(), np.random.default_rng(0), success=success)


def beta(t: int, d: int, l: float) -> float:  # noqa: E741 - the paper's symbol
    """Return the exploration weight that the paper runs, l being the L1 diameter in length scales.  [K17, app. C.1]"""
    return 0.5 * d * math.log(2.0 * l * t + 1.0)


def explain(
    model: Posterior, history: History, u: FloatArray, *, phase: str, reason: str, beta: float, **more: Any
) -> dict[str, Any]:  # u (d,)
    """Return the part of `why` that every decision by a model shares, in the user's units and unrounded.

    Args:
        model: the posterior that is shown.
        history: the trials that the decision was made from.
        u: the chosen x in unit coordinates.
        phase: "model" or "final".
        reason: one sentence for the user.
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
        "std": model.interval_as_told(mu, sigma),
        "ucb": model.value_as_told(mu + math.sqrt(beta) * sigma),
        **more,
        "hyperparameters": model.hyperparameters(),
        **model.described(),
        "refit": bool(learned),
        "pending": [t.number for t in history.running],
        **learned,
    }
