"""The optimiser: the one stateful object.  It asks a strategy, keeps the books, and remembers through a storage."""

from __future__ import annotations

import copy
import math
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, overload

import numpy as np

from boca import cost as cost_models
from boca.errors import InvalidInput, InvalidTrial
from boca.problem import Budget, Capital, Problem
from boca.recommendation import Recommendation, recommend
from boca.space import finite_number
from boca.storage import Memory
from boca.strategies import Boca, Strategy
from boca.trial import History, Trial, occupied, point_key

_START_SHARE = 0.1  # of the capital
_BLIND = 32  # trials out at once while money is counted in seconds and none has been measured
_ENDLESS_START = 1  # targets a dimension (and one) for the start of a study without a budget


class Optimizer:
    """Ask for a query, evaluate it however you like, tell the result."""

    def __init__(
        self,
        problem: Problem,
        *,
        budget: Capital | float | None,
        strategy: Strategy | None = None,
        seed: int | None = None,
        storage: str | None = None,
        name: str | None = None,
    ) -> None:
        if not isinstance(problem, Problem):
            raise InvalidInput(f"problem must be a boca.Problem; got {problem!r}.")
        if storage is not None:
            raise InvalidInput(
                f"storage must be None: this version keeps studies in memory only; got {storage!r}. "
                "Save opt.history.to_dataframe() and bring results back with opt.add."
            )
        strategy = Boca() if strategy is None else strategy
        if not isinstance(strategy, Strategy) or isinstance(strategy, type):
            raise InvalidInput(f"strategy must have a method suggest, such as boca.Boca(); got {strategy!r}.")
        check = getattr(strategy, "check", None)
        if callable(check):  # a strategy may look at the problem before anything is paid for
            check(problem)
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise InvalidInput(f"seed must be a non-negative integer or None; got {seed!r}.")
        self.problem = problem
        self.strategy = strategy
        self.seed = secrets.randbits(63) if seed is None else int(seed)
        self.name = name
        self._capital = budget if isinstance(budget, Capital) or budget is None else Capital(budget, "cost")
        self._storage = Memory()
        self._handed_out: dict[int, float] = {}
        self._was_refused = False

    # What is there ------------------------------------------------------------------------------------------------

    @property
    def history(self) -> History:
        """All trials so far."""
        return self._storage.history()

    @property
    def running(self) -> tuple[Trial, ...]:
        """The trials that are out."""
        return self.history.running

    @property
    def best(self) -> Trial | None:
        """The best complete trial at the target; None before there is one."""
        return self.history.best(self.problem)

    @property
    def budget(self) -> Budget:
        """The money in cost units, with what is spent and what trials that are out have reserved."""
        return _Books(self.problem, self.history, self._capital).budget

    @property
    def spent(self) -> float:
        """What finished trials were charged: cost units, or seconds under a budget in seconds."""
        return _Books(self.problem, self.history, self._capital).spent

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know about this study, in sentences."""
        unaffordable = len(self._storage.queue()) if self._was_refused else 0
        return tuple(_Books(self.problem, self.history, self._capital).warnings(queued=unaffordable))

    def recommend(self) -> Recommendation | None:
        """Return the point to use at the target, with its uncertainty; None before the first result."""
        return recommend(self.problem, self.history, self.strategy)

    # What can be done ---------------------------------------------------------------------------------------------

    @overload
    def ask(self) -> Trial | None: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    def ask(self, n: int | None = None) -> Trial | list[Trial] | None:
        """Return the next trial to evaluate, or None when nothing affordable is left (with trials out: not now).

        `ask(n)` returns a list of at most n trials.
        """
        if n is None:
            return self._ask()
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise InvalidInput(f"ask(n) needs a positive integer; got {n!r}.")
        trials: list[Trial] = []
        while len(trials) < n and (trial := self._ask()) is not None:
            trials.append(trial)
        now = time.perf_counter()  # choosing the later ones is not the earlier ones' time
        self._handed_out.update({trial.number: now for trial in trials})
        return trials

    def tell(
        self,
        trial: Trial | int,
        value: float,
        *,
        cost: float | None = None,
        noise: float | None = None,
        seconds: float | None = None,
    ) -> Trial:
        """Record the result of a trial that is out.

        `cost` replaces the expected cost; `noise` is the variance of this value, where it is known; `seconds` is how
        long the evaluation took, by default the time since the ask: say it where several trials are out.
        """
        running = self._running(trial)
        try:
            result = finite_number(value, "value")
        except InvalidInput as error:
            raise InvalidInput(f"{error} Nothing was changed; opt.fail(trial, reason) gives a trial up.") from None
        finished = self._finished(running, cost, seconds)
        variance = None if noise is None else _not_negative(noise, "noise")
        done = replace(finished, state="complete", value=result, noise=variance, told=self._storage.next_event())
        return self._finish(done)

    def fail(
        self, trial: Trial | int, reason: str, *, cost: float | None = None, seconds: float | None = None
    ) -> Trial:
        """Give a trial up: it is charged, and its point counts as the worst so far."""
        finished = self._finished(self._running(trial), cost, seconds)
        done = replace(finished, state="failed", reason=str(reason), told=self._storage.next_event())
        return self._finish(done)

    def add(
        self,
        x: Mapping[str, Any],
        z: Mapping[str, Any] | None,
        value: float,
        cost: float | None = None,
        *,
        noise: float | None = None,
    ) -> Trial:
        """Bring a result that you already have; it is not charged.  `z=None` means the target."""
        point = self.problem.space.validate(x, "x")
        fidelity = self.problem.fidelity.validate(self.problem.target if z is None else z, "z")
        result = finite_number(value, "value")
        paid = None if cost is None else _positive(cost, "cost")
        variance = None if noise is None else _not_negative(noise, "noise")
        history = self.history
        event = self._storage.next_event()
        trial = Trial(
            number=len(history),
            x=point,
            z=fidelity,
            cost=cost_models.costs(self.problem, history).of(fidelity) if paid is None else paid,
            why={"reason": "A result that was brought along.", "phase": "added"},
            state="complete",
            value=result,
            noise=variance,
            seconds=None if self.problem.has_declared_cost else paid,
            asked=event,
            told=event,
        )
        self._storage.append(trial)
        return copy.deepcopy(trial)

    def enqueue(self, x: Mapping[str, Any], z: Mapping[str, Any] | None = None) -> None:
        """Have a point tried before the strategy's own; `z=None` means the target."""
        point = self.problem.space.validate(x, "x")
        fidelity = self.problem.fidelity.validate(self.problem.target if z is None else z, "z")
        self._storage.enqueue(point, fidelity)

    # How --------------------------------------------------------------------------------------------------------

    def _ask(self) -> Trial | None:
        began = time.perf_counter()
        history = self.history
        books = _Books(self.problem, history, self._capital)
        out = occupied(history)
        for index, (x, z) in enumerate(self._storage.queue()):
            if books.affords(z) and (point_key(x), point_key(z)) not in out:
                self._storage.dequeue(index)
                why = {"reason": "A point that was asked for.", "phase": "queued"}
                return self._hand_out(dict(x), dict(z), why, books, began)
        rng = np.random.default_rng([self.seed, len(history)])
        suggestion = self.strategy.suggest(self.problem, history, books.budget, rng)
        x = self.problem.space.validate(suggestion.x, "the strategy's x")
        z = self.problem.fidelity.validate(suggestion.z, "the strategy's z")
        if not books.affords(z):
            self._was_refused = True
            return None
        return self._hand_out(x, z, dict(suggestion.why), books, began)

    def _hand_out(
        self, x: dict[str, Any], z: dict[str, Any], why: dict[str, Any], books: _Books, began: float
    ) -> Trial:
        number = len(books.history)
        trial = Trial(
            number=number,
            x=x,
            z=z,
            cost=books.costs.of(z),
            why=why,
            asked=self._storage.next_event(),
            overhead=time.perf_counter() - began,
        )
        self._storage.append(trial)
        self._handed_out[number] = time.perf_counter()
        return copy.deepcopy(trial)  # what the user does to it stays the user's

    def _finish(self, trial: Trial) -> Trial:
        self._storage.replace(trial)
        self._handed_out.pop(trial.number, None)
        return copy.deepcopy(trial)

    def _running(self, trial: Trial | int) -> Trial:
        """Return the trial as it is stored, or say why no result can be taken for it."""
        number = trial.number if isinstance(trial, Trial) else trial
        history = self.history
        if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < len(history):
            raise InvalidTrial(f"There is no trial {number!r}; this study has {len(history)}. Nothing was changed.")
        stored = history[int(number)]
        if stored.state != "running":
            told = f"value {stored.value!r}" if stored.state == "complete" else f"failure {stored.reason!r}"
            raise InvalidTrial(
                f"Trial {number} has its result already ({told}) and keeps it. "
                "Use opt.add for a further observation at the same point."
            )
        if isinstance(trial, Trial) and (trial.x != stored.x or trial.z != stored.z):
            raise InvalidTrial(
                f"Trial {number} is another one here: it was handed out at x={stored.x!r}, z={stored.z!r}; "
                f"got x={trial.x!r}, z={trial.z!r}. Is it of another study, or did your code change it? "
                f"opt.tell({number}, value) takes the value for the one here."
            )
        return stored

    def _finished(self, trial: Trial, cost: float | None, seconds: float | None) -> Trial:
        """Return the trial with what it took and what it is charged."""
        paid = None if cost is None else _positive(cost, "cost")
        took = None if seconds is None else _not_negative(seconds, "seconds")
        if took is None and paid is not None and not self.problem.has_declared_cost:
            took = paid  # without a declared cost, cost is seconds
        if took is None and trial.number in self._handed_out:
            took = time.perf_counter() - self._handed_out[trial.number]
        if paid is None:
            measured = not self.problem.has_declared_cost and took is not None
            paid = max(took or 0.0, 1e-9) if measured else trial.cost
        return replace(trial, cost=paid, seconds=took)


@dataclass(frozen=True)
class _Books:
    """What a history has cost, and what may still be bought, under a capital in its own unit."""

    problem: Problem
    history: History
    capital: Capital | None

    @cached_property
    def costs(self) -> cost_models.Costs:
        return cost_models.costs(self.problem, self.history)

    @cached_property
    def budget(self) -> Budget:
        """Return the money in cost units."""
        spent = math.fsum(self._amount(t) for t in self.history.finished if not t.added)
        reserved = math.fsum(self._amount(t) for t in self.history.running)
        target = self.costs.target
        if self.capital is None:
            return Budget(math.inf, _ENDLESS_START * (len(self.problem.space) + 1) * target, spent, reserved)
        if self._is_unmeasured:  # anything may be bought, at random, until the first result says what it costs
            return Budget(math.inf, math.inf)
        if self.capital.unit == "seconds":
            return self._from_seconds(self.capital.amount)
        total = self.capital.amount * (target if self.capital.unit == "targets" else 1.0)
        return Budget(total, _START_SHARE * total, spent, reserved)

    def _from_seconds(self, amount: float) -> Budget:
        """Return seconds as cost units, at the rate of a slow query at the target."""
        model = self.seconds
        assert model is not None
        rate = model.pessimistic(self.problem.target) / self.costs.pessimistic(self.problem.target)
        total = amount / rate
        reserved = math.fsum(model.of(t.z) for t in self.history.running) / rate
        return Budget(total, _START_SHARE * total, self._seconds_spent() / rate, reserved)

    @property
    def _is_unmeasured(self) -> bool:
        """Whether money is counted in seconds and no result has told yet how many a query takes."""
        if self.capital is None or self.capital.unit == "targets":
            return False
        return (self.capital.unit == "seconds" or not self.problem.has_declared_cost) and self.seconds is None

    @cached_property
    def seconds(self) -> cost_models.Seconds | None:
        return cost_models.seconds(self.problem, self.history)

    def _amount(self, trial: Trial) -> float:
        return cost_models.amount(trial, self.problem, self.costs)

    def _seconds_spent(self) -> float:
        return math.fsum((t.seconds or 0.0) + t.overhead for t in self.history.finished if not t.added)

    @property
    def spent(self) -> float:
        in_seconds = self.capital is not None and self.capital.unit == "seconds"
        return self._seconds_spent() if in_seconds else self.budget.spent

    def warnings(self, *, queued: int) -> list[str]:
        found = []
        failed = [t for t in self.history if t.state == "failed"]
        total, target, unit = self._in_its_own_unit()
        if total < target * (1.0 - 1e-9):
            found.append(
                f"The budget of {total:.6g}{unit} does not buy one query at the target, which costs {target:.6g}: "
                "the recommendation is unverified."
            )
        elif self.history.complete and self.history.best(self.problem) is None:
            found.append("Nothing was completed at the target: there is no best value, only a recommendation.")
        if self.spent > total * (1.0 + 1e-9):
            found.append(
                f"Trials cost {self.spent - total:.6g}{unit} more than the budget of {total:.6g}: "
                "their cost was learned or corrected only after they were handed out."
            )
        if failed:
            found.append(f"{len(failed)} of {len(self.history)} trials failed, the last with: {failed[-1].reason}")
        if queued:
            points = "1 queued point was" if queued == 1 else f"{queued} queued points were"
            found.append(f"{points} never run: more than was left.")
        return found

    def _in_its_own_unit(self) -> tuple[float, float, str]:
        """Return all the money, the cost of a target query, and the unit: seconds or cost units."""
        if self.capital is not None and self.capital.unit == "seconds":
            return self.capital.amount, self.seconds.target if self.seconds else 0.0, " s"
        return self.budget.total, self.costs.target, ""

    def affords(self, z: Mapping[str, Any]) -> bool:
        """Whether a query at z fits: exactly where the cost is declared, with nine chances in ten where learned."""
        if self.capital is None:
            return True
        if self._is_unmeasured:
            return self._seconds_spent() < self.capital.amount and len(self.history.running) < _BLIND
        if self.capital.unit == "seconds":
            assert self.seconds is not None
            out = math.fsum(self.seconds.of(t.z) for t in self.history.running)
            return self.seconds.pessimistic(z) <= self.capital.amount - self._seconds_spent() - out
        return self.budget.affords(self.costs.pessimistic(z))


def _positive(value: float, what: str) -> float:
    number = finite_number(value, what)
    if number <= 0:
        raise InvalidInput(f"{what} must be positive; got {value!r}.")
    return number


def _not_negative(value: float, what: str) -> float:
    number = finite_number(value, what)
    if number < 0:
        raise InvalidInput(f"{what} must not be negative; got {value!r}.")
    return number
