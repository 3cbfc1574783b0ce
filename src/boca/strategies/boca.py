"""BOCA: Bayesian optimisation with continuous approximations.

[K17] Kandasamy, Dasarathy, Schneider, Poczos: Multi-fidelity Bayesian Optimisation with Continuous Approximations,
ICML 2017.

    symbol      meaning
    t           iteration, counted after the start
    xi(z)       information gap: what a query at z leaves unknown of f, from 0 at the target to 1
    gamma(z)    threshold of the deviation below which z has nothing more to teach
    tau(z, x)   posterior deviation of g at (z, x); sigma(x) = tau(z*, x)
    c           factor of gamma, adapted
    q           exponent of the cost ratio in gamma
    Z_t         fidelities worth a query at x_t
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from boca.accounting.cost import Costs, costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput, flags, instance_of, one_of
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point, finite_number
from boca.domain.trial import History, Suggestion
from boca.model.posterior import Model, Posterior
from boca.model.surrogate import Surrogate
from boca.search import acquisition
from boca.search.acquisition import Acquisition, BoundAcquisition
from boca.search.candidates import Candidate, best_candidate
from boca.search.initial_design import Design, Fidelities, random_start, start_query
from boca.search.maximizer import MAXIMIZERS, Maximizer, scattered
from boca.strategies.base import beta
from boca.strategies.boca_decision import Aim, Decision, Turn

_FIRST_FIDELITIES, _MOST_FIDELITIES = 8, 128  # examined at first, and at most at a time: the cheapest mostly serve
_C_WINDOW = 20  # iterations between two updates of c
_C_RANGE = (0.1, 20.0)
_MOSTLY_AT_TARGET = 0.75  # share of iterations from which on improvement would leave one of two aims no turn
_MAXIMA = 10  # values of the maximum over which information about it is averaged
_MAXIMA_POINTS = 256  # all over the space, from which these are drawn
_MAXIMA_EXACT = 64  # of these, the highest, whose deviations are exact also with many results
_INCUMBENTS = 16  # x at the target, the best by their means, at which f is drawn
_INCUMBENT_DRAWS = 16  # of f at these


@dataclass(frozen=True)
class Theorem:
    """The constants of the beta_t for which the paper proves its regret bound; P(|df/dx| > J) <= a exp(-(J/b)^2)."""

    delta: float = 0.1
    a: float = 1.0
    b: float = 1.0
    r: float = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.delta < 1.0 and self.a > 0.0 and self.b > 0.0 and self.r > 0.0):
            raise InvalidInput(f"The theorem needs 0 < delta < 1 and positive a, b, r; got {self!r}.")


@dataclass(frozen=True)
class Boca:
    """Choose x by an upper confidence bound of f, then the cheapest z that still has something to teach there.

    Each field is a departure from the paper, with its reason; `Boca.paper()` has them all off.
    """

    surrogate: Surrogate = field(default_factory=Surrogate)
    """Matern kernel, estimated mean, priors, refits as data come: see its fields."""
    maximizer: Maximizer = "sobol"
    """DIRECT never reaches a corner and stalls in six dimensions."""
    start_design: Design = "sobol"
    """A Sobol sequence leaves smaller holes than independent draws."""
    start_fidelities: Fidelities = "cheap"
    """Half of the start buys many points at z = u^2 below the target, the other half the best of them again at it, from
    which the model learns early what the cheap ones are worth."""
    max_shrink: float = 4.0
    """Decide with length scales divided by s = max_shrink^U: one that is too long for a region makes UCB and EI agree
    on the same spot in every iteration (16 of 247 runs on Currin); shrinking cures it (0 of 203)."""
    first_c: float = 0.25
    """A smaller first threshold keeps the early queries cheap."""
    information_per_cost: bool = True
    """Take z only if it tells at least as much about f(x) per cost as the target does."""
    aims: tuple[Aim, ...] = ("ucb", "max_value")
    """What x is chosen by, in turn.  With many variables or little noise, bounds explore for long: every other
    iteration asks instead where a query tells most about the value of the maximum."""
    target_turns: tuple[Turn, ...] = ("log_ei", "aim", "log_noisy_ei", "ucb_alone")
    """What chooses x at the target, in turn.  Bounds explore, improvement exploits: every other target query maximises
    log EI in the unshrunk model.  Every other of these counts from draws of f where it was queried, not from the best
    mean: with noise, a point beside the best one always looks like an improvement over it, since what errs at one
    errs at both.  Every fourth query has the highest bound by the results at the target alone: if cheaper ones make a
    good region look bad, nothing else goes there to find out (17 of 120 runs ended far below the maximum, now 1)."""
    reserve_last: bool = True
    """Keep the cost of one target query for the maximum of the posterior mean: no run ends without one."""
    theorem: Theorem | None = None
    """Use the theorem's beta_t, which is far more cautious, in place of the one that the paper runs."""
    hyperparameters: Mapping[str, Any] | None = None
    """A GP that is known: nothing is fitted, standardised or shrunk, and the bound needs no help."""

    def __post_init__(self) -> None:
        instance_of(self.surrogate, Surrogate, "surrogate")
        flags(self, "information_per_cost", "reserve_last")
        object.__setattr__(self, "aims", _members(self.aims, get_args(Aim), "aims"))
        turns = _members(self.target_turns, get_args(Turn), "target_turns")
        object.__setattr__(self, "target_turns", _shortest_cycle(turns))
        one_of(self.maximizer, MAXIMIZERS, "maximizer")
        one_of(self.start_design, get_args(Design), "start_design")
        one_of(self.start_fidelities, get_args(Fidelities), "start_fidelities")
        if not finite_number(self.max_shrink, "max_shrink") >= 1.0:
            raise InvalidInput(f"max_shrink must be at least 1; got {self.max_shrink!r}.")
        if not finite_number(self.first_c, "first_c") > 0.0:
            raise InvalidInput(f"first_c must be positive; got {self.first_c!r}.")
        if self.theorem is not None:
            instance_of(self.theorem, Theorem, "theorem")

    @classmethod
    def paper(
        cls,
        *,
        maximizer: Maximizer = "direct",
        theorem: Theorem | None = None,
        hyperparameters: Mapping[str, Any] | None = None,
    ) -> Boca:
        """Return Algorithm 1 with the details of the paper's appendix."""
        return cls(
            surrogate=Surrogate.paper(),
            maximizer=maximizer,
            start_design="uniform",
            start_fidelities="uniform",
            max_shrink=1.0,
            first_c=1.0,
            information_per_cost=False,
            aims=("ucb",),
            target_turns=("aim",),
            reserve_last=False,
            theorem=theorem,
            hyperparameters=hyperparameters,
        )

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        self.surrogate.check(problem, self.hyperparameters)

    def posterior(self, problem: Problem, history: History) -> Posterior:
        return self._model(problem, history, np.random.default_rng(0))

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        price = costs(problem, history)
        starting = random_start(
            problem, history, budget, rng, price, design=self.start_design, fidelities=self.start_fidelities
        )
        if starting is not None:
            if not self._is_last(problem, history, budget, price, starting.z, reserve=price.target):
                return starting
            if not history.complete:  # the budget buys one target query, and there is nothing to learn from
                return start_query(problem, history, rng, price, dict(problem.target), design=self.start_design)

        model = self._model(problem, history, rng)
        shrink = 1.0 if self.hyperparameters is not None else self.max_shrink ** float(rng.random())
        iteration = Iteration(self, problem, history, price, model.shrunk(shrink))
        asked = best_candidate(problem, history, iteration.rank(rng), iteration.fidelity)
        if self._is_last(problem, history, budget, price, asked.z):
            return self._final(problem, history, price, rng).suggestion()
        turn = iteration.turn(iteration.target_queries) if problem.is_target(asked.z) else "aim"
        match turn:
            case "aim":
                return iteration.decision(asked, iteration.aim).suggestion()
            case "ucb_alone":
                return iteration.alone(asked, rng).suggestion()
            case "log_ei" | "log_noisy_ei":
                return iteration.improvement(asked, model, turn, rng).suggestion()

    def _model(self, problem: Problem, history: History, rng: np.random.Generator, *, refit: bool = False) -> Model:
        return self.surrogate.model(problem, history, rng, hyperparameters=self.hyperparameters, force_refit=refit)

    def _is_last(
        self,
        problem: Problem,
        history: History,
        budget: Budget,
        price: Costs,
        z: Point,
        *,
        reserve: float | None = None,
    ) -> bool:
        """Whether running z would leave too little for one more target query, if there was enough for one.

        The reserve is pessimistic where costs are learned; not so in the start, which is cheap and teaches them.
        """
        if not self.reserve_last or not math.isfinite(budget.total):
            return False
        least = (price.pessimistic(problem.target) if reserve is None else reserve) * (1.0 - 1e-9)
        is_out_of_reach = budget.left < price.target * (1.0 - 1e-9)
        if is_out_of_reach and not any(problem.is_target(trial.z) and not trial.added for trial in history):
            return False  # this budget never bought one, and cheaper queries still teach something about it
        return budget.left - price.pessimistic(z) < least

    def _final(self, problem: Problem, history: History, price: Costs, rng: np.random.Generator) -> Decision:
        """Spend the reserve where the posterior mean is highest, after one more refit."""
        model = self._model(problem, history, rng, refit=True)
        iteration = Iteration(self, problem, history, price, model)
        return iteration.decision(iteration.at_target(BoundAcquisition(model, acquisition.Mean()), rng), "mean")


def _members(given: object, allowed: Sequence[str], what: str) -> tuple[Any, ...]:
    """Return a sequence of options as a tuple, or refuse it."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise InvalidInput(f"{what} must be a sequence with at least one of {list(allowed)}; got {given!r}.")
    for member in given:
        one_of(member, allowed, f"A member of {what}")
    return tuple(given)


def _shortest_cycle(turns: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the shortest sequence that, repeated, gives the same turns: equal settings are stored alike."""
    n = len(turns)
    period = next(k for k in range(1, n + 1) if n % k == 0 and turns == turns[:k] * (n // k))
    return turns[:period]


class Iteration:
    """One iteration of Algorithm 1: everything that the choice of x_t and z_t needs, computed once."""

    def __init__(self, strategy: Boca, problem: Problem, history: History, price: Costs, model: Model) -> None:
        self.strategy = strategy
        self.problem = problem
        self.history = history
        self.price = price
        self.model = model
        d, p = len(problem.space), len(problem.fidelity)
        at_target = [problem.is_target(trial.z) for trial in history.chosen]
        self.t = len(at_target) + 1
        self.target_queries = sum(at_target)
        self.aim = self._aim()
        self.c = adapted_c(strategy.first_c, at_target)
        self.beta = self._beta(model)
        k, own, star = model.encoding.fidelity_covariance(model.h, problem.grid[1])
        self.xi = information_gap(k, own, star)  # (m,)
        self.least_gap = float(np.max(self.xi)) / math.sqrt(self.beta)
        self.gamma = fidelity_threshold(model.kappa0, self.xi, price.grid / price.target, q=1.0 / (p + d + 2))

    def _beta(self, model: Model) -> float:
        d = len(self.problem.space)
        theorem = self.strategy.theorem
        return beta(self.t, d, model.diameter()) if theorem is None else theorem_beta(self.t, d, theorem)

    # Whose turn it is -----------------------------------------------------------------------------------------------

    def _aim(self) -> Aim:
        """Return what x is chosen by; a GP that is known needs no help for its first aim.

        With most queries at the target, where improvement takes turns of its own, the aims alternate over the queries
        that are left to them.
        """
        aims, turns = self.strategy.aims, self.strategy.target_turns
        if self.strategy.hyperparameters is not None:
            return aims[0]
        count = self.t - 1
        improves = "log_ei" in turns or "log_noisy_ei" in turns
        if improves and self.target_queries >= _MOSTLY_AT_TARGET * count:
            count -= sum(self.turn(k) != "aim" for k in range(self.target_queries))
        return aims[count % len(aims)]

    def turn(self, k: int) -> Turn:
        """Return what chooses x for query k at the target."""
        turns = self.strategy.target_turns
        turn = turns[k % len(turns)]
        return "aim" if turn == "ucb_alone" and not self._are_there_two_sides else turn

    @cached_property
    def _are_there_two_sides(self) -> bool:
        """Whether results away from the target have a say, and there are some at it to hold against them."""
        if self.strategy.hyperparameters is not None:
            return False
        is_known_there = any(self.problem.is_target(trial.z) for trial in self.history.complete)
        return is_known_there and not bool(np.all(self.model.data.is_target))

    # x --------------------------------------------------------------------------------------------------------------

    def rank(self, rng: np.random.Generator) -> FloatArray:  # (k, d)
        """Return points by what the aim says of them, the best first."""
        formula: Acquisition
        if self.aim == "ucb":
            formula = acquisition.UCB(self.beta)
        else:
            formula = acquisition.LogInformation(self.model.gp.eta2, self._maxima(rng))
        return self._ranked(BoundAcquisition(self.model, formula), rng)

    def _ranked(self, promised: BoundAcquisition, rng: np.random.Generator) -> FloatArray:  # (k, d)
        maximise = MAXIMIZERS[self.strategy.maximizer]
        return maximise(promised, self.problem.space, rng, promised.model.anchors())

    def _maxima(self, rng: np.random.Generator) -> FloatArray:  # (_MAXIMA,)
        """Draw what the maximum of f may be, from its moments all over the domain and where it is best known."""
        points = np.vstack([scattered(self.problem.space, rng, _MAXIMA_POINTS), self.model.anchors()])
        return acquisition.drawn_maxima(*self.model.rough_moments(points, exact=_MAXIMA_EXACT), rng, _MAXIMA)

    def at_target(self, promised: BoundAcquisition, rng: np.random.Generator) -> Candidate:
        """Return the free point at the target that promises most."""
        ranked = self._ranked(promised, rng)
        return best_candidate(self.problem, self.history, ranked, lambda _: dict(self.problem.target))

    # z --------------------------------------------------------------------------------------------------------------

    def fidelity(self, u: FloatArray) -> Point:  # (d,)
        """Return the cheapest member of Z_t(x); the target if there is none or the others are switched off."""
        if self.model.guard is not None:
            return dict(self.problem.target)
        index = self._cheapest_candidate(u)
        return dict(self.problem.target if index is None else self.problem.grid[0][index])

    def _cheapest_candidate(self, u: FloatArray) -> int | None:
        cost, xi = self.price.grid, self.xi
        possible = np.flatnonzero((cost < self.price.target) & (xi > self.least_gap))
        # cheapest first; of equal cost the smallest gap, then the first in the grid, the same way every time
        order = possible[np.lexsort((possible, xi[possible], cost[possible]))]
        gp = self.model.gp
        star = np.concatenate([self.model.encoding.x_features(u[None, :])[0], self.model.encoding.target])
        start, end = 0, _FIRST_FIDELITIES
        while start < len(order):
            chunk = order[start:end]
            queries = self.model.at(u, self.problem.grid[1][chunk])
            tau2, covariance, sigma2 = gp.covariance_with(queries, star)
            passes = candidate_fidelities(
                cost[chunk], self.price.target, np.sqrt(tau2), self.c * self.gamma[chunk], xi[chunk], self.least_gap
            )
            if self.strategy.information_per_cost:
                gain = information_gain(covariance, sigma2, tau2, self.model.noise(queries))
                at_target = float(information_gain(np.array([sigma2]), sigma2, np.array([sigma2]), gp.eta2)[0])
                passes &= gain / cost[chunk] >= at_target / self.price.target
            if passes.any():
                return int(chunk[int(np.argmax(passes))])
            start, end = end, end + min(4 * (end - start), _MOST_FIDELITIES)
        return None

    # What is decided ------------------------------------------------------------------------------------------------

    def decision(self, chosen: Candidate, by: Aim | Turn | Literal["mean"]) -> Decision:
        """Return the record of a choice."""
        xi, gamma = self._gap_and_threshold(chosen.z)
        return Decision(
            self.problem,
            self.history,
            self.model,
            chosen.u,
            chosen.z,
            self.aim,
            by,
            beta=self.beta,
            xi=xi,
            gamma=gamma,
            c=self.c,
            cost_share=self.price.of(chosen.z) / self.price.target,
            guard=self.model.guard,
            stands_in=chosen.stands_in,
        )

    def improvement(
        self, asked: Candidate, model: Model, by: Literal["log_ei", "log_noisy_ei"], rng: np.random.Generator
    ) -> Decision:
        """Use the target query that was asked for where an improvement is likeliest in the unshrunk model."""
        queried = self._queried_at_target(model)
        promised = _over_best(model, queried) if by == "log_ei" else _over_draws(model, queried, rng)
        return replace(self._instead(asked, promised, by, rng), model=model, beta=self._beta(model))

    def alone(self, asked: Candidate, rng: np.random.Generator) -> Decision:
        """Use the target query that was asked for as a search of the target alone would."""
        at_target = self.model.at_target()
        return self._instead(asked, BoundAcquisition(at_target, acquisition.UCB(self.beta)), "ucb_alone", rng)

    def _instead(self, asked: Candidate, promised: BoundAcquisition, by: Turn, rng: np.random.Generator) -> Decision:
        found = self.at_target(promised, rng)
        return replace(
            self.decision(found, by),
            asked_at=(asked.u, self.model.shrink),
            stands_in=asked.stands_in or found.stands_in,
        )

    def _queried_at_target(self, model: Model) -> FloatArray:  # (k, d)
        """Return the x that were run at the target; all that were run, before there is one."""
        at_target = model.data.U[model.data.is_target]
        return at_target if len(at_target) else model.queried

    def _gap_and_threshold(self, z: Point) -> tuple[float, float]:
        if self.problem.is_target(z):
            return 0.0, 0.0
        index = self.problem.grid_index(z)
        return float(self.xi[index]), float(self.gamma[index])


def _over_best(model: Model, queried: FloatArray) -> BoundAcquisition:  # queried (k, d)
    """Return the improvement over the highest mean at these x."""
    return BoundAcquisition(model, acquisition.LogEI(float(np.max(model.means(queried)))))


def _over_draws(model: Model, queried: FloatArray, rng: np.random.Generator) -> BoundAcquisition:  # queried (k, d)
    """Return noisy EI: the improvement over the incumbent, averaged over posterior draws of f at the best queried x."""
    x = np.unique(queried, axis=0)
    best = x[np.argsort(-model.means(x), kind="stable")[:_INCUMBENTS]]
    section, values = model.drawn(best, rng.standard_normal((len(best), _INCUMBENT_DRAWS)))
    return BoundAcquisition(model, acquisition.LogNoisyEI(np.max(values, axis=0)), section)


def information_gap(k: FloatArray, own: FloatArray, star: float) -> FloatArray:  # (m,), (m,) -> (m,)
    """Return xi(z) from k(z, z*), k(z, z) and k(z*, z*): for a radial kernel sqrt(1 - phi(z - z*)^2).  [K17, eq. 4]"""
    return np.sqrt(np.maximum(1.0 - k * k / (own * star), 0.0))


def fidelity_threshold(kappa0: float, xi: FloatArray, cost_ratio: FloatArray, *, q: float) -> FloatArray:  # (m,)
    """Return gamma(z) = sqrt(kappa0) xi(z) (cost(z) / cost(z*))^q.  [K17, eq. 7]"""
    return math.sqrt(kappa0) * xi * cost_ratio**q


def candidate_fidelities(
    cost: FloatArray, target_cost: float, tau: FloatArray, threshold: FloatArray, xi: FloatArray, least_gap: float
) -> NDArray[np.bool_]:  # all (m,) -> (m,)
    """Return which fidelities are in Z_t: cheaper than the target, uncertain enough, and not next to it.  [K17, eq. 7]

    `threshold` is c gamma(z); `least_gap` is the largest xi over the fidelity space divided by sqrt(beta), which
    keeps queries from creeping up to the target without ever making one there.
    """
    return np.asarray((cost < target_cost) & (tau > threshold) & (xi > least_gap))


def theorem_beta(t: int, d: int, constants: Theorem) -> float:
    """Return the beta_t of the theorem.  [K17, theorem 8]"""
    delta, a, b, r = constants.delta, constants.a, constants.b, constants.r
    inner = b * r * d * math.log(6.0 * a * d / delta)
    tail = 2.0 * d * math.log(inner) if inner > 1.0 else 0.0  # the theorem's max with zero
    return 2.0 * math.log(math.pi**2 * t**2 / (2.0 * delta)) + 4.0 * d * math.log(t) + tail


def adapted_c(first: float, at_target: Sequence[bool]) -> float:
    """Return c after these iterations: halved where the target had over 75 % of the last 20, doubled under 25 %.

    [K17, app. C.1]
    """
    c = first
    for end in range(_C_WINDOW, len(at_target) + 1, _C_WINDOW):
        share = sum(at_target[end - _C_WINDOW : end]) / _C_WINDOW
        if share > 0.75:
            c /= 2.0
        elif share < 0.25:
            c *= 2.0
        c = min(max(c, _C_RANGE[0]), _C_RANGE[1])
    return c


def information_gain(
    covariance: FloatArray, sigma2: float, tau2: FloatArray, eta2: FloatArray | float
) -> FloatArray:  # (m,), (m,) and (m,) or a number -> (m,)
    """Return how many nats a noisy query at (z, x) tells about f(x)."""
    explained = np.minimum(covariance**2 / (sigma2 * (tau2 + eta2)), 1.0 - 1e-15)
    return -0.5 * np.log1p(-explained)
