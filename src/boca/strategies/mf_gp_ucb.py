"""MF-GP-UCB, the paper's third baseline: upper confidence bounds over a finite list of fidelities.

[K16] Kandasamy, Dasarathy, Oliva, Schneider, Poczos: Gaussian Process Bandit Optimisation with Multi-fidelity
Evaluations, NIPS 2016.

    symbol      meaning
    m           level: 0 is the cheapest fidelity of the list, M - 1 the target; every level has a GP of its own
    zeta        how far two neighboring levels may differ; level m may differ from the target by (M - 1 - m) zeta
    phi_m(x)    mu_m(x) + sqrt(beta) sigma_m(x) + (M - 1 - m) zeta: a bound of f from level m alone
    phi(x)      the least of them
    gamma_m     threshold of sqrt(beta) sigma_m, below which level m is known well enough

zeta and the gammas adapt, and are computed from the history: zeta from checks, which repeat a query one level below if
its result was not predicted there; the gammas from the levels that were queried.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from boca.accounting.cost import Costs, costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput, instance_of, one_of
from boca.domain.problem import Problem
from boca.domain.reasons import Reasons
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion, Trial, barred, point_key, sign, unavailable
from boca.model.dataset import Dataset
from boca.model.fit_record import Fit
from boca.model.posterior import Model, Posterior
from boca.model.surrogate import Surrogate
from boca.search import acquisition
from boca.search.acquisition import BoundAcquisition
from boca.search.candidates import STAND_IN, best_candidate
from boca.search.initial_design import random_start, start_query
from boca.search.maximizer import MAXIMIZERS, Maximizer
from boca.strategies.base import beta, explain, refuse_restricted
from boca.strategies.ladder import check_fidelities, ladder, on_levels

_RESULTS_FOR_A_FIT = 3  # with fewer, a level uses the hyperparameters of another
_FIRST_SHARE = 0.01  # of the range of the results of the start: the first zeta and gammas, small because both only grow
_OF_ONE_LEVEL = ("kappa0", "eta2", "mean", "h_x")  # hyperparameters of the model of one level


@dataclass(frozen=True)
class MFGPUCB:
    """Query where the least of the levels' bounds is highest, at the lowest level that is still uncertain there."""

    fidelities: Sequence[Mapping[str, Any]] | None = None
    """The fidelities, to which the target is added; by default a third and two thirds of the way to the target."""
    surrogate: Surrogate = field(default_factory=Surrogate.paper)
    maximizer: Maximizer = "direct"
    hyperparameters: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        instance_of(self.surrogate, Surrogate, "surrogate")
        one_of(self.maximizer, MAXIMIZERS, "maximizer")
        if self.surrogate.fidelity_kernel not in (None, "se"):
            raise InvalidInput(
                "MFGPUCB has an independent model for each fidelity, so surrogate.fidelity_kernel must be None."
            )

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        refuse_restricted(problem, type(self).__name__)
        given = self.hyperparameters
        has_h_z = not isinstance(given, Mapping) or "h_z" in given
        self.surrogate.check(problem if has_h_z else _domain(problem), given)
        check_fidelities(problem, self.fidelities)

    def posterior(self, problem: Problem, history: History) -> Posterior:
        """Return a GP over all fidelities: the levels' own GPs know nothing of the target before it is queried."""
        known = self.hyperparameters
        if known is not None and problem.fidelity and "h_z" not in known:
            known = None  # of single levels: the correlation between levels is learned
        return self.surrogate.model(problem, history, np.random.default_rng(0), hyperparameters=known)

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        price = costs(problem, history)
        levels = ladder(problem, self.fidelities, price)
        starting = random_start(problem, history, budget, rng, price, design="uniform", fidelities=levels)
        if starting is not None:
            return starting
        if not on_levels(history, levels).complete:  # all results are at fidelities that are not in the list
            z = levels[int(rng.integers(len(levels)))]
            return start_query(problem, history, rng, price, z, design="uniform")
        return _LevelIteration(self, problem, history, price, levels, rng).suggestion()


@dataclass(frozen=True)
class FitsByLevel:
    """What a refit of all levels learned, as stored in `why["fits"]`."""

    levels: Mapping[str, Fit]
    scale: float
    """The scale of the level whose hyperparameters the others use."""
    results: int
    iteration: int

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> FitsByLevel:
        levels = {name: Fit.from_json(fit) for name, fit in stored["levels"].items()}
        return cls(levels, stored["scale"], int(stored["results"]), int(stored["iteration"]))

    def to_json(self) -> dict[str, Any]:
        levels = {name: fit.to_json() for name, fit in self.levels.items()}
        return {"levels": levels, "scale": self.scale, "results": self.results, "iteration": self.iteration}


class _LevelIteration:
    """One iteration, with the numbers that the choices of x and of the level share."""

    def __init__(
        self,
        strategy: MFGPUCB,
        problem: Problem,
        history: History,
        price: Costs,
        levels: list[Point],
        rng: np.random.Generator,
    ) -> None:
        self.strategy = strategy
        self.problem = problem
        self.history = history
        self.known = on_levels(history, levels)
        self.levels = levels
        self.rng = rng
        self.fits: FitsByLevel | None = None  # what a refit for this decision learned
        self.models = self._models()
        first = _FIRST_SHARE * self._range_of_start()
        self.zeta = adapted_zeta(first, self._prediction_errors(), len(levels))
        queried = [levels.index(trial.z) for trial in history.chosen if trial.z in levels]
        self.gamma = adapted_gammas(first, queried, [price.of(z) for z in levels])
        self.beta = beta(len(history.chosen) + 1, len(problem.space), self.models[-1].diameter())

    def suggestion(self) -> Suggestion:
        check = self._check()
        if check is not None:
            return check
        ranked = MAXIMIZERS[self.strategy.maximizer](self.bound, self.problem.space, self.rng, self._anchors())
        u, z, stands_in = best_candidate(
            self.problem, self.history, ranked, lambda u: dict(self.levels[self.level(u)]), others=self.levels
        )
        why = self._why(u, z, reason=STAND_IN if stands_in else self._sentence(z))
        return Suggestion(self.problem.space.from_unit(u), z, why)

    # The models -------------------------------------------------------------------------------------------------

    def _models(self) -> list[Model]:
        """Return a GP for each level; one with fewer than three results uses the hyperparameters of another."""
        given, surrogate = self.strategy.hyperparameters, self.surrogate
        domain = _domain(self.problem)
        datasets = [Dataset.from_history(domain, self._at(z)) for z in self.levels]
        if given is not None:
            of_x = {key: value for key, value in given.items() if key in _OF_ONE_LEVEL}
            return [surrogate.known(dataset, of_x) for dataset in datasets]
        fits = self._fits(datasets)
        return [surrogate.condition(dataset, fit) for dataset, fit in zip(datasets, fits, strict=True)]

    @cached_property
    def surrogate(self) -> Surrogate:
        """The strategy's, without a warp: the bound adds differences of levels, which need one unit of the values."""
        return replace(self.strategy.surrogate, warp=False)

    def _at(self, z: Point) -> History:
        """Return the trials of one level as the history of a problem without fidelities.

        Failures become results with the worst value of all levels.  A level without a result gets one with infinite
        variance at the median of all results, so that its model is the prior around it.
        """
        scores = self.known.scores(self.problem.direction)
        turn = sign(self.problem.direction)
        pairs = zip(self.known.finished, scores, strict=True)
        told = [replace(t, planned={}).completed(turn * float(y), noise=t.noise) for t, y in pairs if t.z == z]
        if not told:
            anywhere = dict(self.known.finished[0].x)
            middle = 2.0 * float(np.median(0.5 * scores))  # halved, because the sum of two floats may overflow
            told = [Trial(0, anywhere, {}, 0.0, Reasons.of({})).completed(turn * middle, noise=math.inf)]
        return History([*told, *(replace(t, planned={}) for t in self.history.running if t.planned == z)])

    def _fits(self, datasets: Sequence[Dataset]) -> list[Fit]:
        """Return the hyperparameters of every level, learned again for all of them if a refit is due."""
        names = [repr(tuple(z.values())) for z in self.levels]
        last = next((t.why["fits"] for t in reversed(self.history.chosen) if "fits" in t.why), None)
        stored = None if last is None else FitsByLevel.from_json(last)
        counts = [d.results for d in datasets]
        fallback = fallback_level(counts)
        own = [
            i for i in range(len(names)) if counts[i] >= _RESULTS_FOR_A_FIT or i == fallback
        ]  # with a scale of their own
        if stored is not None and not self._is_due(stored, names, own, datasets):
            return [stored.levels[name] for name in names]
        before = {} if stored is None else stored.levels
        learned = {i: self.surrogate.fit(datasets[i], self.rng, before.get(names[i])) for i in own}
        self.fits = FitsByLevel(
            {name: learned.get(i, learned[fallback]) for i, name in enumerate(names)},
            learned[fallback].scale,
            results=len(self.history.finished),
            iteration=len(self.history.chosen),
        )
        return [self.fits.levels[name] for name in names]

    def _is_due(self, stored: FitsByLevel, names: list[str], own: list[int], datasets: Sequence[Dataset]) -> bool:
        """Whether hyperparameters are to be learned again."""
        iterations, results = len(self.history.chosen) - stored.iteration, len(self.history.finished)
        if set(names) - set(stored.levels):
            return True
        if self.strategy.surrogate.is_scheduled(iterations, results, since=stored.results):
            return True
        return any(stored.levels[names[i]].is_outdated(datasets[i].scores) for i in own)

    # The choice -------------------------------------------------------------------------------------------------

    @cached_property
    def bound(self) -> _Bound:
        M = len(self.levels)
        return _Bound(self.models, self.beta, [(M - 1 - m) * self.zeta for m in range(M)])

    def level(self, u: FloatArray) -> int:  # (d,)
        """Return the lowest level that is still uncertain at x, or the target."""
        for m, (model, gamma) in enumerate(zip(self.models, self.gamma, strict=False)):
            sigma = model.deviation_as_told(float(model.moments(u[None, :])[1][0]))
            if math.sqrt(self.beta) * sigma > gamma:
                return m
        return len(self.levels) - 1

    def _anchors(self) -> FloatArray:  # (k, d)
        """Return the queried x with the highest bounds."""
        xs = {point_key(t.x): t.x for t in self.history.finished}
        U = self.problem.space.to_unit(list(xs.values()))
        return U[np.argsort(-self.bound.value(U), kind="stable")[:5]]

    # Adaptation -------------------------------------------------------------------------------------------------

    def _range_of_start(self) -> float:
        """Return the range of the results before the first iteration; if they are all equal, the models' scale."""
        first = self.history.chosen[0].number if self.history.chosen else len(self.history)
        values = [t.value for t in self.known.complete if t.number < first and t.value is not None]
        width = (
            0.5 * max(values) - 0.5 * min(values) if values else 0.0
        )  # halved, because the difference of two floats may overflow
        return 2.0 * min(width, 0.25 * sys.float_info.max) or self.models[-1].standard.scale

    def _prediction_errors(self) -> list[tuple[int, float, float]]:
        """Return, for every query whose x has a result one level below: that level, and how far the value was from the
        mean and from the result there."""
        told = {(point_key(t.x), point_key(t.z)): t.value for t in self.history.complete}
        found = []
        for trial in self.history.chosen:
            below = trial.why.get("below")
            if trial.value is None or below is None or below["z"] not in self.levels[:-1]:
                continue
            value = told.get((point_key(trial.x), point_key(below["z"])))
            if value is not None:
                level = self.levels.index(below["z"])
                found.append((level, abs(trial.value - below["mean"]), abs(trial.value - value)))
        return found

    def _check(self) -> Suggestion | None:
        """Return the query that checks a result which was not predicted one level below; None if there is none."""
        taken, bad = unavailable(self.problem, self.history), barred(self.history)
        tried = {(point_key(t.x), point_key(t.z)) for t in self.history}
        for trial in self.history.chosen:
            below = trial.why.get("below")
            if trial.value is None or below is None or below["z"] not in self.levels[:-1]:
                continue
            allowed = (len(self.levels) - 1 - self.levels.index(below["z"])) * self.zeta
            place = (point_key(trial.x), point_key(below["z"]))
            if (
                abs(trial.value - below["mean"]) > allowed
                and place not in tried
                and place not in taken
                and place[0] not in bad
            ):
                u = self.problem.space.to_unit([trial.x])[0]
                reason = (
                    f"A check of trial {trial.number}: the same point at the next cheaper fidelity, which had not "
                    "predicted its value."
                )
                why = self._why(u, below["z"], reason=reason) | {"checks": trial.number}
                return Suggestion(dict(trial.x), dict(below["z"]), why)
        return None

    # Why ------------------------------------------------------------------------------------------------------

    def _why(self, u: FloatArray, z: Point, *, reason: str) -> dict[str, Any]:
        m = self.levels.index(z) if z in self.levels else None
        target = self.models[-1]
        why = explain(
            target,
            self.history,
            u,
            phase="model",
            reason=reason,
            beta=self.beta,
            acquisition="ucb",
            bound=target.value_as_told(float(self.bound.value(u[None, :])[0])),
            **({} if m is None else {"level": m + 1}),
            zeta=self.zeta,
            thresholds=self.gamma,
        )
        why["hyperparameters"].pop("h_z", None)
        why["refit"] = self.fits is not None
        if self.fits is not None:
            why["fits"] = self.fits.to_json()
        if m:
            below = self.models[m - 1]
            mean = below.value_as_told(float(below.moments(u[None, :])[0][0]))
            why["below"] = {"z": dict(self.levels[m - 1]), "mean": mean}
        return why

    def _sentence(self, z: Point) -> str:
        m, M = self.levels.index(z), len(self.levels)
        if M == 1:
            return "The highest upper confidence bound."
        if m == M - 1:
            return "The target fidelity: every cheaper one of the list is known well enough where the bound is highest."
        return f"Fidelity {m + 1} of {M}, the cheapest of the list that is still uncertain where the bound is highest."


def _domain(problem: Problem) -> Problem:
    """Return the problem without its fidelities, as the model of one level knows it."""
    return Problem(problem.space, direction=problem.direction or "maximize")


@dataclass(frozen=True)
class _Bound:
    """phi(x) in the target's standardized units."""

    models: Sequence[Model]
    beta: float
    slack: Sequence[float]  # (M,), as told

    @cached_property
    def _terms(self) -> list[tuple[BoundAcquisition, float, float]]:
        """Every level's bound, with the factor and the shift to the units of the target."""
        star = self.models[-1].standard
        terms = []
        for model, slack in zip(self.models, self.slack, strict=True):
            shift = float(star.apply(np.array(model.standard.location))) + slack / star.scale
            objective = BoundAcquisition(model, acquisition.UCB(self.beta))
            terms.append((objective, model.standard.scale / star.scale, shift))
        return terms

    def value(self, U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        bounds = [shift + factor * objective.value(U) for objective, factor, shift in self._terms]
        return np.asarray(np.min(bounds, axis=0))

    def value_and_gradient(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:  # (m, d) -> (m,), (m, d)
        values, gradients = [], []
        for objective, factor, shift in self._terms:
            value, gradient = objective.value_and_gradient(U)
            values.append(shift + factor * value)
            gradients.append(factor * gradient)
        least = np.argmin(values, axis=0)
        rows = np.arange(len(U))
        return np.array(values)[least, rows], np.array(gradients)[least, rows]


def fallback_level(counts: Sequence[int]) -> int:
    """Return the level whose hyperparameters others use: the target, or the one with most results if it has too few."""
    last = len(counts) - 1
    return last if counts[last] >= _RESULTS_FOR_A_FIT else max(range(len(counts)), key=lambda m: (counts[m], m))


def adapted_zeta(first: float, errors: Sequence[tuple[int, float, float]], M: int) -> float:
    """Return zeta after prediction errors at these levels: twice a difference of two results that it did not allow."""
    zeta = first
    for m, error, difference in errors:
        if min(error, difference) > (M - 1 - m) * zeta:
            zeta = min(2.0 * difference, sys.float_info.max / M)
    return zeta


def adapted_gammas(first: float, queried: Sequence[int], cost: Sequence[float]) -> list[float]:
    """Return the gammas after queries at these levels.

    gamma_m doubles after more than cost_{m+1} / cost_m queries in a row at or below level m.
    """
    gamma = [first] * (len(cost) - 1)
    idle = [0] * (len(cost) - 1)
    for level in queried:
        for m in range(len(gamma)):
            idle[m] = 0 if level > m else idle[m] + 1
            if idle[m] > cost[m + 1] / cost[m]:
                gamma[m] = min(2.0 * gamma[m], sys.float_info.max)
                idle[m] = 0
    return gamma
