"""How BOCA chooses where evaluations pass through steps: a new run, or one that goes on.

Both kinds of candidates are in one decision: the largest gain per cost wins.  A run that is not worth its next steps is
paused and not lost, because going on with it later is a candidate like any other.

    symbol      meaning
    rungs       the steps where runs pause: those of the target halved again and again
    gain        how much a query is expected to raise the best mean at the target, see `search.continuation`
    cost        of the steps that are still to be made: going on costs less than beginning
    rate        gain over cost

A query is judged by its best rung, however far ahead, and goes to the next one only: pausing there costs nothing, and
the report may change the decision.  Without checkpoints, going on means beginning again, and queries go all the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from boca.accounting.cost import Costs, amount
from boca.domain.budget import Budget
from boca.domain.problem import Problem
from boca.domain.runs import Verdict
from boca.domain.space import FloatArray, Point
from boca.domain.trial import History, Suggestion, Trial, barred, point_key
from boca.model import curves
from boca.model.posterior import Model
from boca.search import acquisition
from boca.search.acquisition import BoundAcquisition
from boca.search.continuation import ImprovementBelow, best_of_others, log_gains
from boca.search.initial_design import random_point, random_start
from boca.search.maximizer import MAXIMIZERS
from boca.strategies import boca_curves_why
from boca.strategies.run_stopping import StopHopeless

if TYPE_CHECKING:
    from boca.strategies.boca import Boca

By: TypeAlias = Literal["knowledge", "log_ei", "best_mean", "mean"]
"""What chose a query: the rate, an improvement near the best, the clock, or the end of the budget."""

START_RUNS = 8
"""New runs before the model decides."""
_FIRST_SHARE = 1.0 / 8.0  # of the cost to the last step: how far a new run goes at most
_RUNS_TOLD = 4  # finished ones, after which a study whose evaluations never report is decided as others are
_NEW_POINTS = 24  # of the best by an approximation, whose rates are compared
_NEW_QUERIES = 1024  # of these points at all fidelities
_OTHER_FIDELITIES = 24  # beside the target's, if there are more combinations of them
_REFINES_FROM = 0.5  # of the budget: from here on, every other query refines the best
_REFINES_EVERY = 2
_TARGETS_WITHOUT_END = 20.0  # whose half is spent before refining, if the budget has no end
_ROUNDING = 1e-9  # relative difference of costs that counts as none
_SAME = 1e-9  # of a unit coordinate: closer points are one
_LEAST_COST = 1e-12  # of the target's: the logarithm of zero is not a number


@dataclass(frozen=True)
class Query:
    """A candidate: a new run, or a run that goes on."""

    u: FloatArray  # (d,)
    z: Point
    before: Trial | None
    """The last trial of the run; None for a new one."""
    start: int
    """The step from which it goes on."""
    cost: float
    log_gain: float = -math.inf

    @property
    def log_rate(self) -> float:
        return self.log_gain - math.log(self.cost)


def applies(strategy: Boca, problem: Problem, history: History) -> bool:
    """Whether runs are decided here: one fidelity is steps, and evaluations report them as far as is known."""
    if not strategy.curves or problem.steps is None or problem.subject_to or strategy.success:
        return False
    own = [t for t in history.complete if not t.added]
    return len(own) < _RUNS_TOLD or any(_has_reported(t) for t in own)


def _has_reported(trial: Trial) -> bool:
    return len(trial.observations) > 1 or trial.continues is not None or bool(trial.events)


def start(
    strategy: Boca, problem: Problem, history: History, budget: Budget, price: Costs, rng: np.random.Generator
) -> Suggestion | None:
    """Return the next query of the start: new runs, each to a rung that costs an eighth; None after its end."""
    if len(curves.curves(history)) >= START_RUNS and history.valued:
        return None
    z = Runs(strategy, problem, history, budget, price, rng).beginning(problem.target)
    design, middle = strategy.start_design, strategy.start_middle
    found = random_start(problem, history, budget, rng, price, design=design, fidelities=[z], middle=middle)
    if found is None or point_key(found.x) in {point_key(x) for x in (*problem.first, problem.middle)}:
        return found
    return replace(found, why={**found.why, "reason": boca_curves_why.of_start(problem, history, price, z)})


class Runs:
    """The runs of a study, and what may be done next."""

    def __init__(
        self,
        strategy: Boca,
        problem: Problem,
        history: History,
        budget: Budget,
        price: Costs,
        rng: np.random.Generator,
    ) -> None:
        self.strategy, self.problem, self.history = strategy, problem, history
        self.budget, self.price, self.rng = budget, price, rng
        self.star = problem.step(problem.target)

    # What there is --------------------------------------------------------------------------------------------------

    @cached_property
    def rungs(self) -> list[int]:
        """The steps at which runs pause, the first one first."""
        ends = self.problem.fidelity[self.problem.steps or ""].ends or (1, self.star)
        return sorted({max(int(ends[0]), self.star // 2**k) for k in range(curves.MOST_RUNGS)})

    @cached_property
    def open(self) -> list[Trial]:
        """The last trials of all runs that may go further."""
        bad, space = barred(self.history), self.problem.space
        last = (run.last for run in curves.curves(self.history))
        found = [t for t in last if t.state == "complete" and self.problem.step(t.z) < self.star]
        return [t for t in found if point_key(t.x) not in bad and space.violated(t.x) is None]

    @cached_property
    def other_fidelities(self) -> list[Point]:
        """The combinations of the other fidelities, with the last step."""
        seen = {point_key(z): z for z in (self.problem.at_step(z, self.star) for z in self.problem.grid[0])}
        seen.pop(point_key(self.problem.target), None)
        rest = list(seen.values())
        kept = rest[:: max(1, math.ceil(len(rest) / _OTHER_FIDELITIES))]
        return [self.problem.target, *kept]

    @property
    def next_curve(self) -> float:
        """The curve of a query that begins one: it has a draw of noise that no result shares."""
        return float(len(self.history))

    @cached_property
    def known(self) -> FloatArray:  # (n, d)
        """The points of all runs."""
        return self.problem.space.to_unit([t.x for t in self.history])

    def is_known(self, u: FloatArray) -> bool:  # (d,)
        """Whether a run has this point, up to the rounding of a point to unit coordinates and back."""
        return bool((np.abs(self.known - u) < _SAME).all(axis=1).any())

    def cost(self, z: Point, start: int) -> float:
        return max(self.price.going_on(z, start), _LEAST_COST * self.price.target)

    def beginning(self, z: Point) -> Point:
        """Return where a new run with these other fidelities pauses first."""
        most = _FIRST_SHARE * self.price.of(self.problem.at_step(z, self.star)) * (1.0 + _ROUNDING)
        ladder = [self.problem.at_step(z, r) for r in self.rungs if r <= self.problem.step(z)]
        affordable = [at for at in ladder if self.price.of(at) <= most]
        return affordable[-1] if affordable else ladder[0]

    def query(self, u: FloatArray, z: Point, before: Trial | None, log_gain: float = -math.inf) -> Query:
        start = 0 if before is None or before.checkpoint is None else before.saved
        return Query(u, z, before, start, self.cost(z, start), log_gain)

    def near(self, query: Query) -> Query:
        """Return the query as far as its next rung, if it can pause there."""
        if query.before is None:
            z = self.beginning(query.z) if self.can_pause else query.z
        elif query.start:
            step = self.problem.step(query.before.z)
            z = self.problem.at_step(query.z, next(r for r in self.rungs if r > step))
        else:
            z = query.z
        return replace(query, z=z, cost=self.cost(z, query.start))

    @cached_property
    def can_pause(self) -> bool:
        """Whether runs leave checkpoints, as far as is known."""
        told = [t for t in self.history.complete if not t.added]
        return not told or any(event.kind == "checkpoint" for t in told for event in t.events)

    # What they promise ----------------------------------------------------------------------------------------------

    def going_on(self, model: Model) -> list[Query]:
        """Return every open run at every rung ahead of it."""
        if not self.open:
            return []
        problem, number = self.problem, curves.numbers(self.history)
        known = model.queried
        U = problem.space.to_unit([t.x for t in self.open])
        best = best_of_others(model.means(known), known, U)
        ahead = [(k, r) for k, t in enumerate(self.open) for r in self.rungs if r > problem.step(t.z)]
        zs = [problem.at_step(self.open[k].z, r) for k, r in ahead]
        of = np.array([k for k, _ in ahead], dtype=np.intp)
        same = [t.checkpoint is not None for t in self.open]  # begun again, it has another draw of noise
        own = np.array([float(number[self.open[k].number]) if same[k] else self.next_curve for k in of])
        gains = log_gains(model, U, of, problem.fidelity.to_unit(zs), own, best)
        return [self.query(U[k], z, self.open[k], float(g)) for k, z, g in zip(of, zs, gains, strict=True)]

    def beginnings(self, model: Model) -> list[Query]:
        """Return the best new runs at every fidelity that costs no more than the target."""
        best = float(np.max(model.means(model.queried)))
        middle = self.problem.at_step(self.problem.target, self.rungs[len(self.rungs) // 2])
        shared, own, star = model.encoding.fidelity_covariance(model.h, self.problem.fidelity.to_unit([middle]))
        formula = ImprovementBelow(best, float(shared[0] / math.sqrt(own[0] * star)))
        return self._judged(model, self._new(self._ranked(BoundAcquisition(model, formula)), _NEW_POINTS), best)

    def _judged(self, model: Model, U: FloatArray, best: float) -> list[Query]:  # (k, d)
        every = [self.problem.at_step(z, r) for z in self.other_fidelities for r in self.rungs]
        zs = [z for z in every if self.price.of(z) <= self.price.target * (1.0 + _ROUNDING)]
        U = U[: max(2, _NEW_QUERIES // len(zs))]
        if not len(U):
            return []
        of = np.repeat(np.arange(len(U)), len(zs))
        Z = np.tile(self.problem.fidelity.to_unit(zs), (len(U), 1))
        gains = log_gains(model, U, of, Z, np.full(len(of), self.next_curve), np.full(len(U), best))
        costs = [self.cost(z, 0) for z in zs] * len(U)
        i = int(np.argmax(gains - np.log(costs)))
        return [Query(U[of[i]], dict((zs * len(U))[i]), None, 0, costs[i], float(gains[i]))]

    def _ranked(self, objective: BoundAcquisition) -> FloatArray:  # (k, d)
        return MAXIMIZERS[self.strategy.maximizer](objective, self.problem.space, self.rng, objective.model.anchors())

    def _new(self, ranked: Iterable[FloatArray], count: int) -> FloatArray:  # (k, d)
        """Return the first points that no run has."""
        found: list[FloatArray] = []
        for u in ranked:
            if len(found) == count:
                break
            if not self.is_known(u):
                found.append(u)
        return np.array(found).reshape(-1, len(self.problem.space))

    # What is due ----------------------------------------------------------------------------------------------------

    @property
    def refines(self) -> bool:
        """Whether the query refines the best: from half of the budget on, every other one does."""
        total = self.budget.total
        half = _REFINES_FROM * (total if math.isfinite(total) else _TARGETS_WITHOUT_END * self.price.target)
        return self.budget.spent >= half and len(self.history.chosen) % _REFINES_EVERY == 0

    def refinement(self, model: Model) -> Query | None:
        """Return a new run where the expected improvement of the unshrunk model is largest."""
        best = float(np.max(model.means(model.queried)))
        points = self._new(self._ranked(BoundAcquisition(model, acquisition.LogEI(best))), 1)
        found = self._judged(model, points, best)
        return found[0] if found else None

    def is_overdue(self, query: Query) -> bool:
        """Whether too much would be spent below the target without a result there; the first one follows the start."""
        every = self.strategy.target_every
        if every is None or self.problem.is_target(query.z):
            return False
        own = [t for t in self.history if not t.added]
        last = max((k for k, t in enumerate(own) if self.problem.is_target(t.planned)), default=None)
        if last is None:
            return True
        since = sum(amount(t, self.problem, self.price) for t in own[last + 1 :])
        return since + query.cost > every * self.price.target * (1.0 + _ROUNDING)

    def leaves_too_little(self, query: Query) -> bool:
        """Whether it would leave less than one more query at the target costs."""
        if not self.strategy.reserve_last or not math.isfinite(self.budget.total):
            return False
        pessimistic = self.price.pessimistic(query.z, query.start)
        return self.budget.left - pessimistic < self.price.target * (1.0 - _ROUNDING)

    def to_the_end(self, model: Model, *, new: bool) -> Query | None:
        """Return the affordable query at the target with the highest mean: of an open run, or of a new one."""
        target, found = self.problem.target, list[Query]()
        tried = {point_key(t.x) for t in self.history if self.problem.is_target(t.planned)}
        for trial in self.open:
            if point_key(trial.x) not in tried:
                (u,) = self.problem.space.to_unit([trial.x])
                others_agree = self.problem.at_step(trial.z, self.star) == target
                found.append(self.query(u, target, trial if others_agree else None))
        if new:
            points = self._new(self._ranked(BoundAcquisition(model, acquisition.Mean())), 1)
            found += [self.query(u, target, None) for u in points]
        found = [q for q in found if self.budget.affords(self.price.pessimistic(q.z, q.start))]
        if not found:
            return None
        means = model.means(np.array([q.u for q in found]))
        return found[int(np.argmax(means))]


def decide(runs: Runs, model: Model, shrunk: Model, refitted: Callable[[], Model]) -> Suggestion:
    """Return the query of the largest rate, unless a query at the target is due."""
    going_on, new = runs.going_on(shrunk), runs.beginnings(shrunk)
    rivals = [max(group, key=lambda q: q.log_rate) for group in (new, going_on) if group]
    if not rivals:
        return _anything(runs)
    by: By = "knowledge"
    best, used = max(rivals, key=lambda q: q.log_rate), shrunk
    if runs.refines and (found := runs.refinement(model)) is not None:
        best, by, used = found, "log_ei", model
    best = runs.near(best)
    if runs.leaves_too_little(best) and (found := runs.to_the_end(last := refitted(), new=True)) is not None:
        best, by, used = found, "mean", last
    elif runs.is_overdue(best) and (found := runs.to_the_end(model, new=False)) is not None:
        best, by, used = found, "best_mean", model
    return boca_curves_why.suggestion(runs, used, best, by, rivals)


def _anything(runs: Runs) -> Suggestion:
    """Return a new run anywhere: every point has one, and none may go on."""
    z = runs.beginning(runs.problem.target)
    x, z = random_point(runs.problem, runs.history, runs.rng, runs.price, z)
    return boca_curves_why.stand_in(x, z)


def keep_going(strategy: Boca, problem: Problem, history: History, trial: Trial, rng: np.random.Generator) -> Verdict:
    """Return whether a run should go on after its last report: a run that can be paused ends at its planned step."""
    can_pause = any(event.kind == "checkpoint" for t in history for event in t.events)
    if not strategy.stop_runs or can_pause:
        return Verdict(True)
    return StopHopeless().keep_going(problem, history, trial, rng)
