"""BOCA: Bayesian optimization with continuous approximations.

[K17] Kandasamy, Dasarathy, Schneider, Poczos: Multi-fidelity Bayesian Optimisation with Continuous Approximations,
ICML 2017.

    symbol      meaning
    t           iteration, counted after the start
    xi(z)       information gap: how little a query at z tells about f, from 0 at the target to 1
    gamma(z)    threshold: z is a candidate where the deviation tau is above c gamma(z)
    tau(z, x)   posterior deviation of g at (z, x); sigma(x) = tau(z*, x)
    c           factor of gamma, adapted to the share of queries at the target
    q           exponent of the cost ratio in gamma
    Z_t         candidate fidelities at x_t
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np

from boca.accounting.cost import Costs, amount, costs
from boca.domain.budget import Budget
from boca.domain.errors import InvalidInput, flags, instance_of, one_of
from boca.domain.problem import Problem
from boca.domain.runs import Verdict
from boca.domain.space import FloatArray, Point, finite_number, non_negative_number, positive_number
from boca.domain.trial import History, Suggestion, Trial, barred, best_of, point_key, sign
from boca.model import curves
from boca.model.feasibility import Feasibility
from boca.model.objectives import Objectives
from boca.model.posterior import Model, Posterior
from boca.model.surrogate import Surrogate
from boca.search import acquisition
from boca.search.acquisition import BoundAcquisition, Weighed
from boca.search.candidates import Candidate, best_candidate
from boca.search.initial_design import Design, Fidelities, random_start, start_query
from boca.search.maximizer import MAXIMIZERS, Maximizer, check_maximizer
from boca.strategies import boca_curves
from boca.strategies.base import beta
from boca.strategies.boca_decision import Decision
from boca.strategies.boca_front import BELOW_TARGET_AT_MOST, FrontRules, SharedFront, front_suggestion
from boca.strategies.boca_information import (
    candidate_fidelities,
    fidelity_threshold,
    information_gain,
    information_gap,
    relative_deviation,
)
from boca.strategies.boca_limits import FEASIBILITY, WHERE_FEASIBLE, anchors, cheapest_informative, weighed
from boca.strategies.boca_probe import probe_index
from boca.strategies.boca_turns import AIMS, TURNS

# Members of Z_t that are tried at a time: mostly one of the cheapest is chosen.
_FIRST_FIDELITY_BATCH, _LARGEST_FIDELITY_BATCH = 8, 128
_ROUNDING = 1e-9  # relative difference of costs that counts as none
_C_WINDOW = 20  # iterations between two updates of c
_C_RANGE = (0.1, 20.0)  # beyond, nothing or everything would be a candidate
_C_HALVED_ABOVE, _C_DOUBLED_BELOW = 0.75, 0.25  # share of queries at the target in a window
_CLOCK = "best_mean"  # the turn of a query at the target that is overdue
_OVERDUE = "The target fidelity: enough was spent below it since its last result"
_VERIFY = "verify"  # how the last but one query at the target chooses x
_UNVERIFIED = "The target fidelity: the budget is nearly spent"
_VERIFIES = "tests the best of the cheap results, which is better than all results at the target"
_AIM = "aim"  # the turn at the target that leaves the query to the aim
_MOSTLY_TARGET_SHARE = 0.75  # of the iterations: from here on, improvement could leave one of two aims without a turn


@dataclass(frozen=True)
class Theorem:
    """Constants of the beta_t for which the paper proves its regret bound, with P(|df/dx| > J) <= a exp(-(J/b)^2)."""

    delta: float = 0.1
    a: float = 1.0
    b: float = 1.0
    r: float = 1.0

    def __post_init__(self) -> None:
        if not (0.0 < self.delta < 1.0 and self.a > 0.0 and self.b > 0.0 and self.r > 0.0):
            raise InvalidInput(f"Theorem needs 0 < delta < 1 and positive a, b and r; got {self!r}.")


@dataclass(frozen=True)
class Boca:
    """Choose x by an upper confidence bound of f, then the cheapest z that is still informative there.

    Each field is a departure from the paper, with its reason; `Boca.paper()` switches all of them off.
    """

    surrogate: Surrogate = field(default_factory=Surrogate)
    """The model, with a Matern kernel, an estimated mean, priors and frequent refits: see its fields."""
    maximizer: Maximizer = "sobol"
    """The search for the maximum of an acquisition: DIRECT never reaches a corner, and stalls in six dimensions."""
    start_design: Design = "sobol"
    """How x is drawn in the start: a Sobol sequence leaves smaller gaps than independent draws."""
    start_fidelities: Fidelities = "cheap"
    """How z is drawn in the start: half of its budget is for many points at z = u^2 below the target, half for the
    best of them again at the target, so that the model learns early how far cheap results can be trusted."""
    start_middle: bool = field(default=True, metadata={"off": False})
    """Begin with the middle of the space, if the problem names no first points: ranges are drawn around what works."""
    start_spread: bool = field(default=True, metadata={"off": False})
    """Draw the cost of z evenly on a log scale in the start, over the cheaper half of that scale, and have a result at
    the target as soon as half of its budget is spent: z = u^2 is mostly expensive where trainings take epochs."""
    max_shrink: float = 4.0
    """Decide with length scales divided by s = max_shrink^U: if one is too long for a region, UCB and EI choose the
    same spot in every iteration (16 of 247 runs on Currin; with shrinking, 0 of 203)."""
    first_c: float = 0.25
    """The first c: a smaller one keeps the early queries cheap."""
    adapt_c: bool = field(default=True, metadata={"off": True})
    """Halve or double c every 20 iterations, as the paper does; False keeps `first_c`."""
    information_per_cost: bool = True
    """Query z only if it gives at least as much information about f(x) per cost as the target."""
    information_floor: float = field(default=0.1, metadata={"off": 0.0})
    """A share of the variance of f(x) that counts as noise in that comparison: without noise, the information of a
    query at the target has no limit, and the target would always win."""
    relative_deviation: bool = field(default=True, metadata={"off": False})
    """Compare the deviation tau at z with the threshold as a share of the prior deviation there: if the kernel grows
    away from the target, every cheap fidelity would pass."""
    aims: tuple[str, ...] = ("ucb", "max_value")
    """How x is chosen, in turn.  With many variables or little noise, bounds explore for long: so every other iteration
    chooses the x where a query tells most about the value of the maximum."""
    target_turns: tuple[str, ...] = ("log_ei", "aim", "log_noisy_ei", "ucb_alone")
    """How x is chosen at the target, in turn.  Bounds explore, improvement exploits: so every other target query
    maximizes log EI in the unshrunk model.  Half of these measure improvement over draws of f at the queried points,
    not over the best mean: with noise, a point beside the best one always looks better, because their errors are almost
    equal.  Every fourth target query has the highest bound from the results at the target alone: if cheaper results
    make a good region look bad, no other query goes there (17 of 120 runs ended far below the maximum, now 1)."""
    probe_until: float | None = field(default=0.5, metadata={"off": None})
    """Up to this share of the budget, a turn at the target that explores is made at about an eighth of its cost: eight
    points are explored for the price of one, and a verdict against the cheaper fidelities is tested again."""
    target_every: float | None = field(default=1.5, metadata={"off": None})
    """If this much, in target evaluations, was spent below the target in a row, run the best point there that was only
    run below it, by mean less deviation: however much cheap queries still tell, what they promise is tested."""
    verify_cheap: bool = field(default=True, metadata={"off": False})
    """Before the budget is gone, run the point with the best cheap result at the target, if no result there is as good:
    wherever the model stands, what was seen is tested."""
    reserve_last: bool = True
    """Reserve the cost of one target query for the maximum of the posterior mean, so that every run ends with one."""
    share_batch: bool = field(default=True, metadata={"off": False})
    """Choose the trials of one `ask(n)`, and those for workers that are free together, with one refit, one draw of
    `max_shrink` and one factor: each costs a fraction of a suggestion, and counts the others as running."""
    theorem: Theorem | None = None
    """Use the beta_t of the theorem, which explores far more, instead of the one in the paper's experiments."""
    success: bool = field(default=False, metadata={"off": False})
    """Model where trials fail, and weigh improvement by the probability of success.  A failure then says nothing of f;
    without, it has a bad value, which keeps the search away from a border where the optimum often lies."""
    success_caution: float = field(default=15.0, metadata={"off": 0.0})
    """How many failures it takes until half of a length scale of that model is believed, with fidelities a fifth as
    many: a border that few failures taught is a guess, and each wrong guess is a failure.  0 believes all of it."""
    curves: bool = field(default=True, metadata={"off": False})
    """Where evaluations report the steps that they pass through, let new runs and paused ones compete by what they tell
    about the best mean at the target, for what the steps still ahead cost."""
    stop_runs: bool = field(default=True, metadata={"off": False})
    """Where runs cannot be continued, stop one that is unlikely to beat the best result: see `StopHopeless`."""
    hyperparameters: Mapping[str, Any] | None = None
    """A known GP: nothing is fitted, standardized or shrunk, and only the first aim is used."""

    def __post_init__(self) -> None:
        instance_of(self.surrogate, Surrogate, "surrogate")
        flags(self, "adapt_c", "information_per_cost", "reserve_last", "success")
        flags(self, "relative_deviation", "verify_cheap", "start_middle", "start_spread", "share_batch")
        flags(self, "curves", "stop_runs")
        object.__setattr__(self, "aims", _members(self.aims, [*AIMS], "aims"))
        turns = _members(self.target_turns, [_AIM, *TURNS], "target_turns")
        object.__setattr__(self, "target_turns", _shortest_cycle(turns))
        one_of(self.maximizer, MAXIMIZERS, "maximizer")
        one_of(self.start_design, get_args(Design), "start_design")
        one_of(self.start_fidelities, get_args(Fidelities), "start_fidelities")
        if not finite_number(self.max_shrink, "max_shrink") >= 1.0:
            raise InvalidInput(f"max_shrink must be at least 1; got {self.max_shrink!r}.")
        positive_number(self.first_c, "first_c")
        non_negative_number(self.success_caution, "success_caution")
        if not finite_number(self.information_floor, "information_floor") >= 0.0:
            raise InvalidInput(f"information_floor must be at least 0; got {self.information_floor!r}.")
        if self.probe_until is not None and not 0.0 <= finite_number(self.probe_until, "probe_until") <= 1.0:
            raise InvalidInput(
                f"probe_until must be a share of the budget between 0 and 1, or None; got {self.probe_until!r}."
            )
        if self.target_every is not None:
            positive_number(self.target_every, "target_every")
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
            start_middle=False,
            start_spread=False,
            max_shrink=1.0,
            first_c=1.0,
            information_per_cost=False,
            information_floor=0.0,
            relative_deviation=False,
            aims=("ucb",),
            target_turns=("aim",),
            probe_until=None,
            target_every=None,
            verify_cheap=False,
            reserve_last=False,
            share_batch=False,
            theorem=theorem,
            success=False,
            success_caution=0.0,
            curves=False,
            stop_runs=False,
            hyperparameters=hyperparameters,
        )

    def check(self, problem: Problem) -> None:
        """Refuse a problem that the settings do not fit."""
        check_maximizer(self.maximizer, problem.space)
        if problem.subject_to and self.hyperparameters is not None:
            raise InvalidInput(
                f"hyperparameters is a GP of the objective alone, and subject_to limits {list(problem.subject_to)}. "
                "Leave hyperparameters out."
            )
        self.surrogate.check(problem, self.hyperparameters)

    @property
    def takes_objectives(self) -> bool:
        """Whether several objectives may be searched: the paper has one, and a known GP is of one."""
        return self.takes_outcomes and self.hyperparameters is None

    @property
    def takes_outcomes(self) -> bool:
        """Whether outcomes may have limits: the paper has none."""
        paper = Boca.paper(maximizer=self.maximizer, theorem=self.theorem, hyperparameters=self.hyperparameters)
        return self != paper

    def posterior(self, problem: Problem, history: History) -> Posterior:
        return self._model(problem, history, np.random.default_rng(0))

    def objectives(self, problem: Problem, history: History) -> Objectives:
        return Objectives.after(problem, history, self.surrogate, np.random.default_rng(0))

    def feasibility(self, problem: Problem, history: History) -> Feasibility:
        return self._feasibility(problem, history, np.random.default_rng(0))

    def suggest(self, problem: Problem, history: History, budget: Budget, rng: np.random.Generator) -> Suggestion:
        return self._chosen(problem, history, budget, rng, None)[0]

    def suggest_member(
        self,
        problem: Problem,
        history: History,
        budget: Budget,
        rng: np.random.Generator,
        shared: Shared | SharedFront | None,
    ) -> tuple[Suggestion, Shared | SharedFront | None]:
        suggestion, shared = self._chosen(problem, history, budget, rng, shared)
        if shared is not None and suggestion.why["phase"] == "model":
            suggestion.why["batch"] = shared.first
        return suggestion, shared

    def _chosen(
        self,
        problem: Problem,
        history: History,
        budget: Budget,
        rng: np.random.Generator,
        shared: Shared | SharedFront | None,
    ) -> tuple[Suggestion, Shared | SharedFront | None]:
        """Return a suggestion, and what it shares with others of its batch; None in the start."""
        price = costs(problem, history)
        of_runs = boca_curves.applies(self, problem, history)
        starting = (
            boca_curves.start(self, problem, history, budget, price, rng)
            if of_runs
            else random_start(
                problem,
                history,
                budget,
                rng,
                price,
                design=self.start_design,
                fidelities=self.start_fidelities,
                middle=self.start_middle,
                spread=self.start_spread,
            )
        )
        if starting is not None:
            if not self._is_last(problem, history, budget, price, starting.z, reserve=price.target):
                return starting, shared
            if not history.told(problem):  # the budget allows one target query, and there are no results
                first = start_query(problem, history, rng, price, dict(problem.target), design=self.start_design)
                return first, shared

        if problem.objectives:
            return self._of_front(problem, history, budget, price, rng, shared)
        if not isinstance(shared, Shared):
            model = self._model(problem, history, rng)
            shrink = 1.0 if self.hyperparameters is not None else self.max_shrink ** float(rng.random())
            shared = Shared(len(history), model, model.shrunk(shrink))
        if of_runs:
            runs = boca_curves.Runs(self, problem, history, budget, price, rng)
            models = shared.models(history)
            return boca_curves.decide(runs, *models, lambda: self._model(problem, history, rng, refit=True)), shared
        return self._decision(problem, history, budget, price, rng, shared).suggestion(), shared

    def _of_front(
        self,
        problem: Problem,
        history: History,
        budget: Budget,
        price: Costs,
        rng: np.random.Generator,
        shared: Shared | SharedFront | None,
    ) -> tuple[Suggestion, SharedFront]:
        """Return a suggestion for several objectives, and what it shares with others of its batch."""
        if not isinstance(shared, SharedFront):
            model = Objectives.after(problem, history, self.surrogate, rng)
            shared = SharedFront(len(history), model)
        at_target = [problem.is_target(trial.z) for trial in history.chosen]
        rules = FrontRules(
            self.maximizer,
            adapted_c(self.first_c, at_target) if self.adapt_c else self.first_c,
            self.information_per_cost,
            self.information_floor,
            self.relative_deviation,
            lambda z: self._is_last(problem, history, budget, price, z),
            lambda z: self._is_overdue(problem, history, price, z, every=BELOW_TARGET_AT_MOST),
        )

        def refitted() -> tuple[Objectives, Feasibility]:
            found = Objectives.after(problem, history, self.surrogate, rng, force_refit=True)
            return found, self._feasibility(problem, history, rng, refit=True)

        feasibility = self._feasibility(problem, history, rng)
        return front_suggestion(rules, history, price, shared.models(history), feasibility, refitted, rng), shared

    def keep_going(self, problem: Problem, history: History, trial: Trial, rng: np.random.Generator) -> Verdict:
        """Return whether a run should go on: always where runs pause, else by `StopHopeless`."""
        return boca_curves.keep_going(self, problem, history, trial, rng)

    def _decision(
        self,
        problem: Problem,
        history: History,
        budget: Budget,
        price: Costs,
        rng: np.random.Generator,
        shared: Shared,
    ) -> Decision:
        model, shrunk = shared.models(history)
        feasibility = self._feasibility(problem, history, rng)
        iteration = Iteration(self, problem, history, price, shrunk, feasibility)
        asked = best_candidate(problem, history, iteration.rank(rng), iteration.fidelity)
        if self._is_last(problem, history, budget, price, asked.z):
            return self._final(problem, history, price, rng)
        promising = self._unverified(problem, history, budget, price, asked.z)
        if promising is not None:
            return iteration.at_last(promising)
        if self._is_overdue(problem, history, price, asked.z):
            return iteration.overdue(asked, model, rng)
        turn = iteration.turn(iteration.own_turns) if problem.is_target(asked.z) else _AIM
        if problem.is_target(asked.z) and self._probes(budget, iteration, turn) and iteration.probe_at is not None:
            return iteration.probe(asked, iteration.probe_at)
        if turn == _AIM:
            by = FEASIBILITY if iteration.seeks_feasibility else iteration.aim
            return iteration.decision(asked, by)
        return iteration.instead(asked, model, turn, rng)

    def _probes(self, budget: Budget, iteration: Iteration, turn: str) -> bool:
        """Whether a query at the target explores, the budget is young, and no probe came since the last one there."""
        if self.probe_until is None or not math.isfinite(budget.total) or self.hyperparameters is not None:
            return False
        if iteration.feasibility or iteration.model.guard is not None or iteration.has_probed:
            return False
        explores = turn == _AIM or not TURNS[turn].improves
        return explores and budget.spent < self.probe_until * budget.total

    def _model(self, problem: Problem, history: History, rng: np.random.Generator, *, refit: bool = False) -> Model:
        surrogate = self.surrogate
        if boca_curves.applies(self, problem, history):
            surrogate = replace(surrogate, guard=None)  # a run is paused, not tested without its cheaper steps
        return surrogate.model(
            problem,
            history,
            rng,
            hyperparameters=self.hyperparameters,
            force_refit=refit,
            failures=not self.success,
        )

    def _feasibility(
        self, problem: Problem, history: History, rng: np.random.Generator, *, refit: bool = False
    ) -> Feasibility:
        success = self.success or bool(problem.objectives)  # a failure is not the worst of several objectives
        return Feasibility.after(
            problem,
            history,
            self.surrogate,
            rng,
            success=success,
            caution=self.success_caution if self.success else 0.0,
            force_refit=refit,
        )

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
        """Whether a query at z would leave too little for one more target query, while there is enough for one.

        The reserve is pessimistic if costs are learned, but not in the start, which is cheap and from which they are.
        """
        if not self.reserve_last or not math.isfinite(budget.total):
            return False
        least = (price.pessimistic(problem.target) if reserve is None else reserve) * (1.0 - _ROUNDING)
        is_out_of_reach = budget.left < price.target * (1.0 - _ROUNDING)
        if is_out_of_reach and not any(problem.is_target(trial.z) and not trial.added for trial in history):
            return False  # the budget never allowed one, and cheaper queries still tell something about the target
        return budget.left - price.pessimistic(z) < least

    def _is_overdue(
        self, problem: Problem, history: History, price: Costs, z: Point, *, every: float = math.inf
    ) -> bool:
        """Whether a query at z would be too much without a result at the target: above `target_every`, or `every`."""
        if self.target_every is None or problem.is_target(z):
            return False
        own = [trial for trial in history if not trial.added]
        last = max((k for k, trial in enumerate(own) if problem.is_target(trial.z)), default=-1)
        since = sum(amount(trial, problem, price) for trial in own[last + 1 :])
        return since + price.of(z) > min(self.target_every, every) * price.target * (1.0 + _ROUNDING)

    def _unverified(
        self, problem: Problem, history: History, budget: Budget, price: Costs, z: Point
    ) -> FloatArray | None:  # (d,)
        """Return the x to be run at the target before the budget is gone, if there is one.

        It has the best value of all that were never run there, and a better one than all that were.
        """
        if not self.verify_cheap or not math.isfinite(budget.total):
            return None
        two = 2.0 * price.pessimistic(problem.target) * (1.0 - _ROUNDING)
        if not budget.left >= two > budget.left - price.pessimistic(z):
            return None
        ruled_out = {point_key(t.x) for t in history if problem.is_target(t.z)} | barred(history)
        untried = (
            t for t in history.complete if point_key(t.x) not in ruled_out and problem.space.violated(t.x) is None
        )
        found = best_of((t for t in untried if not problem.exceeded(t.outcomes)), problem.direction)
        best, turn = history.best(problem), sign(problem.direction)
        if found is None or (best is not None and turn * (found.value or 0.0) <= turn * (best.value or 0.0)):
            return None
        return np.asarray(problem.space.to_unit([found.x])[0])

    def _final(self, problem: Problem, history: History, price: Costs, rng: np.random.Generator) -> Decision:
        """Return the last query: where the posterior mean is highest, after one more refit.

        Where limits matter, it is where the largest feasible improvement is expected: an infeasible result improves
        nothing.
        """
        model = self._model(problem, history, rng, refit=True)
        feasibility = self._feasibility(problem, history, rng, refit=True)
        iteration = Iteration(self, problem, history, price, model, feasibility)
        if not feasibility:
            found = iteration.at_target(BoundAcquisition(model, acquisition.Mean()), rng)
            return iteration.decision(found, "mean")
        objective = iteration.weighed("log_ei", model, rng)
        by = FEASIBILITY if objective.improvement is None else "log_ei"
        return iteration.decision(iteration.at_target(objective, rng), by, is_last=True)


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


@dataclass(frozen=True)
class Shared:
    """What the trials of a batch share: the models of the first one, with what a refit for it learned."""

    first: int
    """The number of that trial."""
    model: Model
    shrunk: Model

    def models(self, history: History) -> tuple[Model, Model]:
        """Return both models with the trials of the batch so far as running."""
        members = [t for t in history.running if t.number >= self.first]
        of = curves.of_trials(history, members)
        return self.model.joined(members, of), self.shrunk.joined(members, of)


class Iteration:
    """One iteration of Algorithm 1, with the numbers that the choices of x_t and z_t share."""

    def __init__(
        self,
        strategy: Boca,
        problem: Problem,
        history: History,
        price: Costs,
        model: Model,
        feasibility: Feasibility | None = None,
    ) -> None:
        self.strategy = strategy
        self.feasibility = Feasibility(problem, ()) if feasibility is None else feasibility
        self.seeks_feasibility = False  # until an acquisition finds nothing to improve upon
        self.problem = problem
        self.history = history
        self.price = price
        self.model = model
        d, p = problem.space.widest, len(problem.fidelity)
        at_target = [problem.is_target(trial.z) for trial in history.chosen]
        self.t = len(at_target) + 1
        self.target_queries = sum(at_target)
        probes = sum("probe" in t.why for t in history.chosen)  # each takes the place of a turn
        self.own_turns = self.target_queries - self._out_of_turn() + probes
        self.aim = self._aim()
        self.c = adapted_c(strategy.first_c, at_target) if strategy.adapt_c else strategy.first_c
        self.beta = self._beta(model)
        k, own, star = model.encoding.fidelity_covariance(model.h, problem.grid[1])
        self.xi = information_gap(k, own, star)  # (m,)
        self.least_gap = float(np.max(self.xi)) / math.sqrt(self.beta)
        self.own = relative_deviation(own, star) if strategy.relative_deviation else np.ones(len(own))
        self.gamma = fidelity_threshold(model.kappa0, self.xi, price.grid / price.target, q=1.0 / (p + d + 2))

    def _beta(self, model: Model) -> float:
        d = self.problem.space.widest
        theorem = self.strategy.theorem
        return beta(self.t, d, model.diameter()) if theorem is None else theorem_beta(self.t, d, theorem)

    # How x is chosen -----------------------------------------------------------------------------------------------

    def _aim(self) -> str:
        """Return how x is chosen in this iteration; a known GP uses the first aim only.

        If most queries are at the target, where improvement has turns of its own, the aims alternate over the others.
        """
        aims, turns = self.strategy.aims, self.strategy.target_turns
        if self.strategy.hyperparameters is not None:
            return aims[0]
        count = self.t - 1
        if (
            any(turn != _AIM and TURNS[turn].improves for turn in turns)
            and self.target_queries >= _MOSTLY_TARGET_SHARE * count
        ):
            count -= sum(self.turn(k) != _AIM for k in range(self.own_turns)) + self.target_queries - self.own_turns
        return aims[count % len(aims)]

    def _out_of_turn(self) -> int:
        """Return how many queries at the target were made because of the clock or the end: turns go on without them."""
        if self.strategy.target_every is None and not self.strategy.verify_cheap:
            return 0
        return sum(
            self.problem.is_target(t.z) and t.why.get("acquisition") in (_CLOCK, _VERIFY) for t in self.history.chosen
        )

    def turn(self, k: int) -> str:
        """Return how x is chosen for query k at the target."""
        turns = self.strategy.target_turns
        turn = turns[k % len(turns)]
        return _AIM if turn != _AIM and TURNS[turn].tests_cheap_results and not self._can_test_cheap_results else turn

    @cached_property
    def _can_test_cheap_results(self) -> bool:
        """Whether the model uses results away from the target, and has some at the target to compare with."""
        if self.strategy.hyperparameters is not None:
            return False
        is_known_there = any(self.problem.is_target(trial.z) for trial in self.history.valued)
        return is_known_there and not bool(np.all(self.model.data.is_target))

    # x --------------------------------------------------------------------------------------------------------------

    def rank(self, rng: np.random.Generator) -> FloatArray:  # (k, d)
        """Return points in falling order of the aim's acquisition."""
        if self.feasibility:
            return self._ranked(self.weighed(self.aim, self.model, rng), rng)
        formula = AIMS[self.aim].formula(self.model, self.beta, rng)
        return self._ranked(BoundAcquisition(self.model, formula), rng)

    def weighed(self, by: str, model: Model, rng: np.random.Generator) -> Weighed:
        """Return the acquisition of an aim or a turn, weighed by the probability of feasibility."""
        found = weighed(by, model, self.history, self.feasibility, self._beta(model), rng)
        self.seeks_feasibility = found.improvement is None
        return found

    def _ranked(self, objective: BoundAcquisition | Weighed, rng: np.random.Generator) -> FloatArray:  # (k, d)
        maximize = MAXIMIZERS[self.strategy.maximizer]
        if isinstance(objective, Weighed):
            return maximize(objective, self.problem.space, rng, anchors(self.model, self.feasibility))
        return maximize(objective, self.problem.space, rng, objective.model.anchors())

    def at_target(self, objective: BoundAcquisition | Weighed, rng: np.random.Generator) -> Candidate:
        """Return the free point at the target with the highest acquisition."""
        ranked = self._ranked(objective, rng)
        return best_candidate(self.problem, self.history, ranked, lambda _: dict(self.problem.target))

    # z --------------------------------------------------------------------------------------------------------------

    def fidelity(self, u: FloatArray) -> Point:  # (d,)
        """Return the cheapest member of Z_t(x); the target if there is none, or if the others are switched off."""
        if self.feasibility:
            index = self._cheapest_informative(u)
        elif self.model.guard is not None:
            return dict(self.problem.target)
        else:
            index = self._cheapest_candidate(u)
        return dict(self.problem.target if index is None else self.problem.grid[0][index])

    def _cheapest_informative(self, u: FloatArray) -> int | None:
        """Return the cheapest fidelity that is still informative, about f or about an outcome whose limit is open."""
        return cheapest_informative(
            u,
            [self.model],
            self.feasibility,
            cost=self.price.grid,
            target_cost=self.price.target,
            beta=self.beta,
            c=self.c,
            per_cost=self.strategy.information_per_cost,
            floor=self.strategy.information_floor,
            relative=self.strategy.relative_deviation,
        )

    def _cheapest_candidate(self, u: FloatArray) -> int | None:
        cost, xi = self.price.grid, self.xi
        possible = np.flatnonzero((cost < self.price.target) & (xi > self.least_gap))
        # cheapest first, of equal cost the smallest gap, then the first in the grid
        order = possible[np.lexsort((possible, xi[possible], cost[possible]))]
        gp = self.model.gp
        star = np.concatenate([self.model.encoding.x_features(u[None, :])[0], self.model.encoding.target])
        start, end = 0, _FIRST_FIDELITY_BATCH
        while start < len(order):
            chunk = order[start:end]
            queries = self.model.at(u, self.problem.grid[1][chunk])
            tau2, covariance, sigma2 = gp.covariance_with(queries, star)
            passes = candidate_fidelities(
                cost[chunk],
                self.price.target,
                np.sqrt(tau2) / self.own[chunk],
                self.c * self.gamma[chunk],
                xi[chunk],
                self.least_gap,
            )
            if self.strategy.information_per_cost:
                floor = self.strategy.information_floor * sigma2
                gain = information_gain(covariance, sigma2, tau2, self.model.noise(queries) + floor)
                at_target = float(information_gain(np.array([sigma2]), sigma2, np.array([sigma2]), gp.eta2 + floor)[0])
                passes &= gain / cost[chunk] >= at_target / self.price.target
            if passes.any():
                return int(chunk[int(np.argmax(passes))])
            start, end = end, end + min(4 * (end - start), _LARGEST_FIDELITY_BATCH)
        return None

    # The decision ------------------------------------------------------------------------------------------------

    def decision(self, chosen: Candidate, by: str, *, is_last: bool = False) -> Decision:
        """Return the record of a decision; `by` is how x was chosen."""
        xi, gamma = self._gap_and_threshold(chosen.z)
        return Decision(
            self.problem,
            self.history,
            self.model,
            u=chosen.u,
            z=chosen.z,
            acquisition=by,
            where=WHERE_FEASIBLE if self.seeks_feasibility else AIMS[self.aim].where,
            instead=TURNS[by].does if by in TURNS else None,
            beta=self.beta,
            xi=xi,
            gamma=gamma,
            c=self.c,
            cost_share=self.price.of(chosen.z) / self.price.target,
            guard=self.model.guard,
            stands_in=chosen.stands_in,
            is_last=is_last,
            feasibility=self.feasibility,
        )

    def instead(self, asked: Candidate, model: Model, by: str, rng: np.random.Generator) -> Decision:
        """Make the target query where the acquisition of this turn is highest, instead of at the chosen x."""
        turn = TURNS[by]
        chooses = model if turn.is_unshrunk else self.model
        objective: BoundAcquisition | Weighed
        if self.feasibility:
            by = "log_ei" if by == _CLOCK else by  # the highest mean may lie where it is not feasible
            objective = self.weighed(by, chooses, rng)
            by = FEASIBILITY if self.seeks_feasibility else by
        else:
            objective = turn.objective(chooses, self.beta, rng)
        found = self.at_target(objective, rng)
        decision = replace(
            self.decision(found, by),
            asked_at=(asked.u, self.model.shrink),
            stands_in=asked.stands_in or found.stands_in,
        )
        return replace(decision, model=model, beta=self._beta(model)) if turn.is_unshrunk else decision

    @cached_property
    def probe_at(self) -> Point | None:
        """The fidelity of a probe; None if none costs about an eighth of the target."""
        index = probe_index(self.price.grid / self.price.target, self.xi)
        return None if index is None else dict(self.problem.grid[0][index])

    @property
    def has_probed(self) -> bool:
        """Whether there was a probe since the last query at the target."""
        since = itertools.takewhile(lambda t: not self.problem.is_target(t.z), reversed(self.history.chosen))
        return any("probe" in t.why for t in since)

    def probe(self, asked: Candidate, z: Point) -> Decision:
        """Explore below the target, where the aim would explore at it."""
        found = best_candidate(self.problem, self.history, asked.u[None, :], lambda _: dict(z))
        return replace(self.decision(found, self.aim), is_probe=True)

    def at_last(self, u: FloatArray) -> Decision:  # (d,)
        """Run a point at the target because of its cheap result."""
        chosen = Candidate(u, dict(self.problem.target), stands_in=False)
        return replace(self.decision(chosen, _VERIFY), instead=_VERIFIES, because=_UNVERIFIED)

    def overdue(self, asked: Candidate, model: Model, rng: np.random.Generator) -> Decision:
        """Run the surest point that was only run below the target there; without one, where the mean is highest."""
        known = {tuple(u) for u in model.data.U[model.data.is_target]}
        untried = np.array([u for u in model.queried if tuple(u) not in known])
        if self.feasibility or not len(untried):  # the surest point may lie where it is not feasible
            return replace(self.instead(asked, model, _CLOCK, rng), because=_OVERDUE)
        mu, sigma = model.moments(untried)
        ranked = untried[np.argsort(sigma - mu, kind="stable")]
        found = best_candidate(self.problem, self.history, ranked, lambda _: dict(self.problem.target))
        unshrunk = replace(self.decision(found, _CLOCK), model=model, beta=self._beta(model))
        return replace(unshrunk, because=_OVERDUE, asked_at=(asked.u, self.model.shrink))

    def _gap_and_threshold(self, z: Point) -> tuple[float, float]:
        if self.problem.is_target(z):
            return 0.0, 0.0
        index = self.problem.grid_index(z)
        return float(self.xi[index]), float(self.gamma[index])


def theorem_beta(t: int, d: int, constants: Theorem) -> float:
    """Return the beta_t of the theorem.  [K17, theorem 8]"""
    delta, a, b, r = constants.delta, constants.a, constants.b, constants.r
    inner = b * r * d * math.log(6.0 * a * d / delta)
    tail = 2.0 * d * math.log(inner) if inner > 1.0 else 0.0  # the theorem's max with zero
    return 2.0 * math.log(math.pi**2 * t**2 / (2.0 * delta)) + 4.0 * d * math.log(t) + tail


def adapted_c(first: float, at_target: Sequence[bool]) -> float:
    """Return c after these iterations: halved if over 75 % of the last 20 were at the target, doubled if under 25 %.

    [K17, app. C.1]
    """
    c = first
    for end in range(_C_WINDOW, len(at_target) + 1, _C_WINDOW):
        share = sum(at_target[end - _C_WINDOW : end]) / _C_WINDOW
        if share > _C_HALVED_ABOVE:
            c /= 2.0
        elif share < _C_DOUBLED_BELOW:
            c *= 2.0
        c = min(max(c, _C_RANGE[0]), _C_RANGE[1])
    return c
