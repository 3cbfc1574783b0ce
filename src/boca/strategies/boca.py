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
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from boca.accounting.cost import Costs, costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput, flags, instance_of, one_of
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point, finite_number
from boca.domain.trial import History, Suggestion
from boca.model.posterior import Model
from boca.model.surrogate import Surrogate
from boca.search import acquisition
from boca.search.acquisition import BoundAcquisition
from boca.search.initial_design import Design, Fidelities, random_start, start_query
from boca.search.maximizer import MAXIMIZERS, Maximizer, scattered
from boca.strategies.base import STAND_IN, beta, explain, free_or_stand_in

Turn: TypeAlias = Literal["aim", "log_ei", "log_noisy_ei", "ucb_alone"]
"""What chooses x at the target: what asked for the query, improvement over the best mean or over draws, or a doubt."""

TURNS: tuple[Turn, ...] = ("log_ei", "aim", "log_noisy_ei", "ucb_alone")  # of queries at the target, one after another
_FEW, _MANY = 8, 128  # fidelities examined at first, and at most at a time: the cheapest are mostly the answer
_WINDOW = 20  # iterations between two updates of c
_C_RANGE = (0.1, 20.0)
_MOSTLY = 0.75  # share of iterations at the target from which on improvement would leave one way of choosing x no turn
_MAXIMA = 10  # values of the maximum over which information about it is averaged
_SCATTERED = 256  # points from which they are drawn
_EXACT = 64  # of these, the highest, whose deviations are exact also where results are many
_INCUMBENTS = 16  # x at the target, the best by their means, at which f is drawn ...
_DRAWS = 16  # ... so many times


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
    """Decide with bandwidths divided by s = max_shrink^U: a bandwidth too long for one region makes UCB and EI agree
    on one spot for ever (16 of 247 runs on Currin); shrinking cures it (0 of 203)."""
    first_c: float = 0.25
    """A smaller first threshold keeps the early queries cheap."""
    information_per_cost: bool = True
    """Take z only if it tells as much about f(x) for its money as the target does."""
    learn_maximum: bool = True
    """Choose x in every other iteration where a query tells most about the value of the maximum, not where the bound
    is highest: with many variables or little noise, bounds explore for long."""
    improve_at_target: bool = True
    """Every other target query maximises log EI in the unshrunk model: bounds explore, improvement exploits."""
    improve_on_draws: bool = True
    """Count every other one of these from draws of f where it was queried, not from the best mean: with noise, a point
    beside the best one looks like an improvement over it for ever, since what errs at one errs at both."""
    doubt_fidelities: bool = True
    """Choose every fourth target query by the bound of the results at the target alone: where cheaper ones make a good
    region look bad, nothing else goes there to find out (17 of 120 runs ended far below the maximum, now 1)."""
    reserve_last: bool = True
    """Keep the cost of one target query for the maximiser of the posterior mean: no run ends without one."""
    theorem: Theorem | None = None
    """Use the theorem's beta_t, which is far more cautious, in place of the one that the paper runs."""
    hyperparameters: Mapping[str, Any] | None = None
    """A GP that is known: nothing is fitted, standardised or shrunk, and the bound needs no help."""

    def __post_init__(self) -> None:
        instance_of(self.surrogate, Surrogate, "surrogate")
        flags(self, "information_per_cost", "learn_maximum", "improve_at_target", "improve_on_draws")
        flags(self, "doubt_fidelities", "reserve_last")
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
            learn_maximum=False,
            improve_at_target=False,
            improve_on_draws=False,
            doubt_fidelities=False,
            reserve_last=False,
            theorem=theorem,
            hyperparameters=hyperparameters,
        )

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        self.surrogate.check(problem, self.hyperparameters)

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
        decision = Decision(self, problem, history, price, model.shrunk(shrink))
        ranked = decision.rank(rng)
        u, z, stands_in = free_or_stand_in(problem, history, ranked, decision.fidelity)
        if self._is_last(problem, history, budget, price, z):
            return self._final(problem, history, rng)
        turn = decision.turn(decision.target_queries) if problem.is_target(z) else "aim"
        if turn == "ucb_alone":
            return self._doubt(decision, model, rng, u, stands_in=stands_in)
        if turn != "aim":
            return self._improve(decision, model, rng, u, stands_in=stands_in, over_draws=turn == "log_noisy_ei")
        reason = STAND_IN if stands_in else decision.sentence(z)
        return Suggestion(problem.space.from_unit(u), z, decision.why(u, z, reason=reason))

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
        """Whether buying z would leave too little for one more target query, where there was enough for one.

        The reserve is pessimistic where costs are learned; not so in the start, which is cheap and teaches them.
        """
        if not self.reserve_last or not math.isfinite(budget.total):
            return False
        least = (price.pessimistic(problem.target) if reserve is None else reserve) * (1.0 - 1e-9)
        is_out_of_reach = budget.left < price.target * (1.0 - 1e-9)
        if is_out_of_reach and not any(problem.is_target(trial.z) and not trial.added for trial in history):
            return False  # this budget never bought one, and cheaper queries still teach something about it
        return budget.left - price.pessimistic(z) < least

    def _improve(
        self,
        decision: Decision,
        model: Model,
        rng: np.random.Generator,
        asked_at: FloatArray,
        *,
        stands_in: bool,
        over_draws: bool,
    ) -> Suggestion:
        """Use the target query that the bound asked for where an improvement is likeliest."""
        queried = _queried_at_target(decision.problem, decision.history, model)
        promise = _over_draws(model, queried, rng) if over_draws else _over_best(model, queried)
        unshrunk = Decision(self, decision.problem, decision.history, decision.price, model)
        u, z, is_elsewhere = self._at_target(decision, promise, rng)
        reason = STAND_IN if stands_in or is_elsewhere else decision.sentence_of_improvement()
        why = unshrunk.why(u, z, reason=reason)
        why |= decision.asked(asked_at, acquisition="log_noisy_ei" if over_draws else "log_ei")
        return Suggestion(decision.problem.space.from_unit(u), z, why)

    def _doubt(
        self, decision: Decision, model: Model, rng: np.random.Generator, asked_at: FloatArray, *, stands_in: bool
    ) -> Suggestion:
        """Use a target query as a search of the target alone would."""
        alone = model.at_target().shrunk(decision.model.shrink)
        promise = BoundAcquisition(alone, acquisition.UCB(decision.beta))
        u, z, is_elsewhere = self._at_target(decision, promise, rng)
        reason = STAND_IN if stands_in or is_elsewhere else decision.sentence_of_doubt()
        why = decision.why(u, z, reason=reason) | decision.asked(asked_at, acquisition="ucb_alone")
        return Suggestion(decision.problem.space.from_unit(u), z, why)

    def _at_target(
        self, decision: Decision, promise: BoundAcquisition, rng: np.random.Generator
    ) -> tuple[FloatArray, Point, bool]:
        """Return the free point at the target of the highest promise, and whether its fidelity only stands in."""
        problem = decision.problem
        ranked = MAXIMIZERS[self.maximizer](promise, problem.space, rng, promise.model.anchors())
        return free_or_stand_in(problem, decision.history, ranked, lambda _: dict(problem.target))

    def _final(self, problem: Problem, history: History, rng: np.random.Generator) -> Suggestion:
        """Spend the reserve where the posterior mean is highest, after one more refit."""
        model = self._model(problem, history, rng, refit=True)
        promise = BoundAcquisition(model, acquisition.Mean())
        decision = Decision(self, problem, history, costs(problem, history), model)
        u, z, stands_in = self._at_target(decision, promise, rng)
        last = "The last affordable target query, kept for the point that the model expects to be best."
        why = decision.why(u, z, reason=STAND_IN if stands_in else last)
        why |= {"phase": "final" if problem.is_target(z) else "model", "acquisition": "mean"}
        return Suggestion(problem.space.from_unit(u), z, why)


def _queried_at_target(problem: Problem, history: History, model: Model) -> FloatArray:
    """Return the x that were run at the target; all that were run, before there is one."""
    at_target = [t.x for t in history.finished if problem.is_target(t.z)]
    return problem.space.to_unit(at_target) if at_target else model.queried


def _over_best(model: Model, queried: FloatArray) -> BoundAcquisition:  # queried (k, d)
    """Return the improvement over the highest mean at these x."""
    best = float(np.max(model.means(queried)))
    return BoundAcquisition(model, acquisition.LogEI(best))


def _over_draws(model: Model, queried: FloatArray, rng: np.random.Generator) -> BoundAcquisition:  # queried (k, d)
    """Return the improvement over what f may be at the best of these x, each draw of it believed in turn."""
    x = np.unique(queried, axis=0)
    best = x[np.argsort(-model.means(x), kind="stable")[:_INCUMBENTS]]
    section, values = model.drawn(best, rng.standard_normal((len(best), _DRAWS)))
    highest = np.max(values, axis=0)
    return BoundAcquisition(model, acquisition.LogNoisyEI(highest), section)


class Decision:
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
        self.may_doubt = strategy.doubt_fidelities and strategy.hyperparameters is None and self._are_there_two_sides()
        aims = self.t
        if strategy.improve_at_target and self.target_queries >= _MOSTLY * len(at_target):
            aims -= sum(self.turn(k) != "aim" for k in range(self.target_queries))  # the rest take turns
        is_turn = strategy.learn_maximum and strategy.hyperparameters is None and aims % 2 == 0
        self.aim: Literal["ucb", "max_value"] = "max_value" if is_turn else "ucb"
        self.c = adapted_c(strategy.first_c, at_target)
        self.beta = (
            beta(self.t, d, model.diameter()) if strategy.theorem is None else theorem_beta(self.t, d, strategy.theorem)
        )
        k, own, star = model.encoding.fidelity_covariance(model.h, problem.grid[1])
        self.xi = information_gap(k, own, star)  # (m,)
        self.least_gap = float(np.max(self.xi)) / math.sqrt(self.beta)
        self.gamma = fidelity_threshold(model.kappa0, self.xi, price.grid / price.target, q=1.0 / (p + d + 2))

    def turn(self, k: int) -> Turn:
        """Return what chooses x for query k at the target."""
        turn = TURNS[k % len(TURNS)]
        if turn == "ucb_alone":
            return turn if self.may_doubt else "aim"
        if turn == "aim" or not self.strategy.improve_at_target:
            return "aim"
        return turn if self.strategy.improve_on_draws else "log_ei"

    def _are_there_two_sides(self) -> bool:
        """Whether results away from the target have a say, and there are some at it to hold against them."""
        is_known_there = any(self.problem.is_target(trial.z) for trial in self.history.complete)
        return is_known_there and not bool(np.all(self.model.encoding.is_target(self.model.data.X)))

    def rank(self, rng: np.random.Generator) -> FloatArray:  # (k, d)
        """Return points by their upper confidence bound, or by what they tell about the maximum, the best first."""
        if self.aim == "ucb":
            promise = BoundAcquisition(self.model, acquisition.UCB(self.beta))
        else:
            eta2, maxima = self.model.gp.eta2, self._maxima(rng)
            promise = BoundAcquisition(self.model, acquisition.LogInformation(eta2, maxima))
        maximise = MAXIMIZERS[self.strategy.maximizer]
        return maximise(promise, self.problem.space, rng, self.model.anchors())

    def _maxima(self, rng: np.random.Generator) -> FloatArray:  # (_MAXIMA,)
        """Draw what the maximum of f may be, from its moments all over the domain and where it is best known."""
        points = np.vstack([scattered(self.problem.space, rng, _SCATTERED), self.model.anchors()])
        return acquisition.drawn_maxima(*self.model.rough_moments(points, exact=_EXACT), rng, _MAXIMA)

    def fidelity(self, u: FloatArray) -> Point:  # (d,)
        """Return the cheapest member of Z_t(x); the target where there is none or the others are switched off."""
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
        start, end = 0, _FEW
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
            start, end = end, end + min(4 * (end - start), _MANY)
        return None

    def why(self, u: FloatArray, z: Point, *, reason: str) -> dict[str, Any]:
        """Return the decision in numbers and in a sentence."""
        gap, threshold = self._gap_and_threshold(z)
        return explain(
            self.model,
            self.history,
            u,
            phase="model",
            reason=reason,
            beta=self.beta,
            acquisition=self.aim,
            xi=gap,
            gamma=self.model.deviation_as_told(threshold),
            c=self.c,
            shrink=self.model.shrink,
            **({} if self.model.guard is None else {"guard": self.model.guard}),
        )

    def asked(self, u: FloatArray, *, acquisition: str) -> dict[str, Any]:
        """Return what is to be said where this decision asked for the target at u, and the query goes elsewhere."""
        asked_by = {"x": self.problem.space.from_unit(u), "shrink": self.model.shrink}
        return {"acquisition": acquisition, "fidelity_by": asked_by}

    def _gap_and_threshold(self, z: Point) -> tuple[float, float]:
        if self.problem.is_target(z):
            return 0.0, 0.0
        index = self.problem.grid[0].index(z)
        return float(self.xi[index]), float(self.gamma[index])

    @property
    def _where(self) -> str:
        """Where x is, in words."""
        return {"ucb": "where the bound is highest", "max_value": "where most is learned about the maximum"}[self.aim]

    @property
    def _off(self) -> str:
        return (
            "The target fidelity: the cheaper ones are switched off, since results at the target are predicted "
            f"better without them (by {self.model.guard:.2g} nats)"
        )

    def sentence(self, z: Point) -> str:
        """Return why the point is where it is, and why at this fidelity."""
        if not self.problem.fidelity:
            return f"The point {self._where}."
        if self.problem.is_target(z) and self.model.guard is not None:
            return f"{self._off}."
        if self.problem.is_target(z):
            return (
                f"The target fidelity: {self._where}, every cheaper one is known too well or says too little about "
                "the target."
            )
        share, gap = self.price.of(z) / self.price.target, self._gap_and_threshold(z)[0]
        return (
            f"A lower fidelity at {share:.3g} of the target's cost: it is the cheapest that is still uncertain "
            f"{self._where}, and it leaves a gap of {gap:.2g} (0 is the target itself, 1 is no information)."
        )

    def sentence_of_improvement(self) -> str:
        """Return why the target query that this decision asked for went where an improvement is likeliest."""
        there = "the point with the largest expected improvement"
        if not self.problem.fidelity:
            return f"{there.capitalize()}."
        nothing_cheaper = f"The target fidelity: no cheaper one had enough to teach {self._where}"
        return f"{nothing_cheaper if self.model.guard is None else self._off}, and this query goes to {there}."

    def sentence_of_doubt(self) -> str:
        """Return why the target query that this decision asked for went where the target's own results send it."""
        return (
            f"The target fidelity: no cheaper one had enough to teach {self._where}, and this query goes where the "
            "results at the target alone would send it: a test of what the others say."
        )


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
    for end in range(_WINDOW, len(at_target) + 1, _WINDOW):
        share = sum(at_target[end - _WINDOW : end]) / _WINDOW
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
