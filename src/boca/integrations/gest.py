"""A generator by the gest-api standard, which libEnsemble, Xopt and optimas have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from boca.domain.budget import Limit
from boca.domain.errors import BocaError, InvalidInput
from boca.domain.outcomes import AtLeast, AtMost, OutcomeLimit
from boca.domain.problem import Problem
from boca.domain.space import Choice, Float, Int, Parameter, Space
from boca.domain.trial import Trial
from boca.integrations.levels import Levels
from boca.strategies import Strategy
from boca.study.optimizer import Optimizer

try:
    from gest_api import Generator
    from gest_api.vocs import (
        VOCS,
        ContextualVariable,
        ContinuousVariable,
        DiscreteVariable,
        GreaterThanConstraint,
        LessThanConstraint,
        MaximizeObjective,
    )
except ImportError as missing:
    raise BocaError("boca.integrations.gest needs the package gest-api. Type: pip install 'boca[gest]'") from missing

ID = "_id"


class BocaGenerator(Generator):  # type: ignore[misc]  # the package has no types
    """Suggest points of a VOCS with a strategy of boca; variables that are fidelities make an evaluation cheaper.

    A suggestion has every variable, fidelities included, every constant, and its `_id`.  Results that are ingested
    without an `_id` are results from outside: they are not charged to the budget.

    Args:
        vocs: Variables, one objective that is minimized or maximized, constraints, constants and observables.
        fidelities: The names of the variables that are fidelities.
        target: The fidelity that counts, by name; a name left out has its upper bound.
        cost: The cost of an evaluation as a function of the fidelities, by name.
        cost_name: The observable with what an evaluation cost, in units of `cost`, or in seconds without `cost`.
        log: The names of variables on a logarithmic scale.
        budget: As in `boca.Optimizer`; None leaves it to the library to stop.
        strategy: As in `boca.Optimizer`.
        seed: As in `boca.Optimizer`.
        storage: As in `boca.Optimizer`.
        name: As in `boca.Optimizer`.
    """

    returns_id = True

    def __init__(
        self,
        vocs: VOCS,
        *,
        fidelities: Sequence[str] = (),
        target: Mapping[str, Any] | None = None,
        cost: Callable[[Mapping[str, Any]], float] | None = None,
        cost_name: str | None = None,
        log: Sequence[str] = (),
        budget: Limit | float | None = None,
        strategy: Strategy | None = None,
        seed: int | None = None,
        storage: str | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(vocs)
        self.vocs = vocs
        self.cost_name = cost_name
        for what, names in (("fidelities", fidelities), ("log", log)):
            unknown = [name for name in names if name not in vocs.variables]
            if isinstance(names, str) or unknown:
                raise InvalidInput(f"{what} is {names!r}, and must be a list of variables: {list(vocs.variables)}.")
        if cost_name is not None and cost_name not in vocs.observables:
            raise InvalidInput(f"cost_name is {cost_name!r}, and must be an observable: {list(vocs.observables)}.")
        self._levels = {n: Levels.of(list(v.values), n) for n, v in vocs.variables.items() if _is_levels(v)}
        parameters = {n: self._parameter(n, n in log) for n in vocs.variables}
        self._fidelities = tuple(fidelities)
        (self._objective, towards), *_ = vocs.objectives.items()
        limits = {n: _limit(constraint, n) for n, constraint in vocs.constraints.items()}
        self.problem = Problem(
            Space({n: p for n, p in parameters.items() if n not in fidelities}),
            Space({n: p for n, p in parameters.items() if n in fidelities}),
            target=None if target is None else {n: self._coded(n, value) for n, value in target.items()},
            cost=None if cost is None else lambda z: cost(self._values(z)),
            direction="maximize" if isinstance(towards, MaximizeObjective) else "minimize",
            subject_to=limits,
            objective=self._objective if limits else None,
        )
        self._settings: dict[str, Any] = {
            "budget": budget,
            "strategy": strategy,
            "seed": seed,
            "storage": storage,
            "name": name,
        }
        self._optimizer: Optimizer | None = None  # opened when it is first needed: it cannot be sent to a process
        self._kept: list[Trial] = []  # asked for, and not handed out because the others could not be

    def _validate_vocs(self, vocs: VOCS) -> None:
        """Refuse what boca cannot search."""
        if not isinstance(vocs, VOCS):
            raise InvalidInput(f"vocs is {vocs!r}, and must be a gest_api.vocs.VOCS.")
        kinds = [type(objective).__name__ for objective in vocs.objectives.values()]
        if kinds not in (["MinimizeObjective"], ["MaximizeObjective"]):
            raise InvalidInput(f"vocs has the objectives {kinds}, and needs one, which is minimized or maximized.")
        for name, variable in vocs.variables.items():
            known = isinstance(variable, ContinuousVariable | DiscreteVariable)
            if not known or isinstance(variable, ContextualVariable):
                raise InvalidInput(
                    f"The variable {name!r} is a {type(variable).__name__}, and must be bounds, [low, high], or a set."
                )

    @property
    def optimizer(self) -> Optimizer:
        """The study: its history, its best trial at the target, its recommendation."""
        if self._optimizer is None:
            self._optimizer = Optimizer(self.problem, **self._settings)
        return self._optimizer

    # What the standard asks for -----------------------------------------------------------------------------------

    def suggest(self, num_points: int | None = None) -> list[dict[str, Any]]:
        """Return exactly this many points to evaluate, or refuse if the budget does not cover them."""
        wanted = 1 if num_points is None else int(num_points)
        trials = self._kept[:wanted]
        if len(trials) < wanted:
            trials += self.optimizer.ask(wanted - len(trials))
        if len(trials) < wanted:
            self._kept = trials
            fewer = f"Ask for {len(trials)} or fewer, ingest" if trials else "Ingest"
            raise InvalidInput(
                f"num_points is {wanted}, and the budget covers {len(trials)} more. {fewer} the results that are "
                "missing, or give a larger budget."
            )
        self._kept = self._kept[wanted:]
        constants = {name: constant.value for name, constant in self.vocs.constants.items()}
        return [{**self._values(t.x), **self._values(t.z), **constants, ID: t.number} for t in trials]

    def ingest(self, results: list[dict[str, Any]]) -> None:
        """Store results: of suggestions, known by their `_id`, or from outside."""
        for result in results:
            told = {name: _plain(value) for name, value in result.items()}
            missing = [n for n in self.vocs.output_names if n not in told]
            if missing:
                raise InvalidInput(f"A result lacks {missing}: it is {told}. Give every output of the VOCS.")
            self._store(told)

    def finalize(self) -> None:
        """Close the storage; the next suggestion opens it again."""
        if self._optimizer is not None and self._settings["storage"] is not None:
            self._optimizer.storage.close()
            self._optimizer = None

    # How ------------------------------------------------------------------------------------------------------------

    def _store(self, told: Mapping[str, Any]) -> None:
        outcomes = {n: told[n] for n in (self._objective, *self.problem.subject_to)}
        notes = {n: told[n] for n in self.vocs.observables if n not in (self.cost_name, *outcomes)}
        cost = None if self.cost_name is None else told[self.cost_name]
        is_failed = not all(isinstance(v, int | float) and math.isfinite(v) for v in outcomes.values())
        value = outcomes if self.problem.subject_to else outcomes[self._objective]
        number = told.get(ID)
        if number is not None:
            if not isinstance(number, int) or not 0 <= number < len(self.optimizer.history):
                raise InvalidInput(f"{ID} is {number!r}, which this generator did not suggest. Leave it out.")
            if is_failed:
                self.optimizer.fail(number, f"The result is {outcomes}.", cost=cost)
            else:
                self.optimizer.tell(number, value, cost=cost, notes=notes)
        elif not is_failed:
            point = {n: self._coded(n, told[n]) for n in self.vocs.variables}
            z = {n: point.pop(n) for n in self._fidelities}
            self.optimizer.add(point, z, value, cost, notes=notes)

    def _parameter(self, name: str, log: bool) -> Parameter:
        variable = self.vocs.variables[name]
        if name in self._levels:
            return self._levels[name].parameter
        if isinstance(variable, DiscreteVariable):
            return Choice(sorted(variable.values, key=str))  # a set has no order, and a study needs one
        low, high = variable.domain
        if variable.dtype in (int, "int", "int64", "i8"):
            return Int(int(low), int(high), log=log)
        return Float(low, high, log=log)

    def _values(self, point: Mapping[str, Any]) -> dict[str, Any]:
        return {n: self._levels[n].value(v) if n in self._levels else v for n, v in point.items()}

    def _coded(self, name: str, value: Any) -> Any:
        known = _plain(value)
        if name in self._levels:
            return self._levels[name].index(known, name)
        is_whole = isinstance(known, float) and known.is_integer()
        return int(known) if is_whole and isinstance(self._parameter(name, False), Int) else known


def _is_levels(variable: object) -> bool:
    if not isinstance(variable, DiscreteVariable):
        return False
    return all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in variable.values)


def _limit(constraint: object, name: str) -> OutcomeLimit:
    if isinstance(constraint, LessThanConstraint):
        return AtMost(constraint.value)
    if isinstance(constraint, GreaterThanConstraint):
        return AtLeast(constraint.value)
    raise InvalidInput(
        f"The constraint {name!r} is a {type(constraint).__name__}; boca has LESS_THAN and GREATER_THAN. "
        "For both, return the outcome under two names."
    )


def _plain(value: Any) -> Any:
    """Return a scalar of Python, also from a NumPy array with one element."""
    if isinstance(value, np.ndarray) and value.size == 1:
        return value.reshape(()).item()
    return value.item() if isinstance(value, np.generic) else value
