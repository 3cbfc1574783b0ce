"""Parameters and trials of Optuna as those of boca, and back: what the sampler and the exchange of studies share.

A parameter with a step is an `Int` here, the number of its steps; any other parameter keeps its kind.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from boca.domain.errors import InvalidInput
from boca.domain.observation import OBJECTIVE, Observation
from boca.domain.outcomes import AtMost
from boca.domain.problem import CostFunction, Direction, Problem
from boca.domain.reasons import Reasons
from boca.domain.space import Choice, Float, Int, Parameter, Point, Space
from boca.domain.trial import State, Trial
from boca.strategies.base import check
from boca.study import spec

WHY, REASON, COST = "boca:why", "boca:reason", "boca:cost"
"""User attributes of a trial: the decision in numbers, the same in a sentence, and what the trial cost.
An objective that knows its cost better than `cost` sets the last one itself."""

_UNKNOWN = Space({"not known yet": Float(0.0, 1.0)})  # stands in for x before the first trial has shown its parameters


def direction(study: optuna.Study) -> Direction:
    """Return the direction of a study; it must have one objective."""
    _refuse_other(study)
    if len(study.directions) != 1:
        raise InvalidInput(
            f"This study has {len(study.directions)} objectives, and a best trial needs one. Use study.best_trials."
        )
    return _direction(study.direction)


def _refuse_other(study: object) -> None:
    if not isinstance(study, optuna.Study):
        raise InvalidInput(f"study must be a study of Optuna, such as optuna.load_study(...); got {study!r}.")


def _direction(of: optuna.study.StudyDirection) -> Direction:
    return "maximize" if of == optuna.study.StudyDirection.MAXIMIZE else "minimize"


def names_of(study: optuna.Study) -> list[str]:
    """Return the names of the objectives of a study: those that the user set, or "objective 0" and so on."""
    _refuse_other(study)
    return list(study.metric_names or [f"objective {k}" for k in range(len(study.directions))])


def aims_of(study: optuna.Study) -> dict[str, Any]:
    """Return what a study optimizes, as `Problem` takes it."""
    names = names_of(study)
    if len(study.directions) == 1:
        return {"direction": _direction(study.direction)}
    return {"outcomes": {name: _direction(of) for name, of in zip(names, study.directions, strict=True)}}


def claim_of(trial: FrozenTrial) -> dict[str, Any]:
    """Return what was chosen for a trial, for which space and in how many seconds; empty if it was not chosen."""
    return dict(trial.user_attrs.get(WHY, {}).get("claim", {}))


@dataclass(frozen=True)
class Dimension:
    """A parameter of Optuna and what it is here; with a step, `low` is the value at the code `first`."""

    distribution: BaseDistribution
    parameter: Parameter
    step: float | None = None
    low: float = 0.0
    first: int = 0

    @classmethod
    def of(cls, given: object, name: str) -> Dimension:
        if isinstance(given, Parameter):
            return cls(distribution_of(given), given)
        if isinstance(given, CategoricalDistribution):
            return cls(given, Choice(given.choices))
        if isinstance(given, FloatDistribution | IntDistribution):
            if given.step is not None and (isinstance(given, FloatDistribution) or given.step > 1):
                return cls._stepped(given, given.step)
            kind: Callable[..., Parameter] = Float if isinstance(given, FloatDistribution) else Int
            return cls(given, kind(given.low, given.high, log=given.log))
        if isinstance(given, tuple | list):
            parameter = Space({name: given})[name]
            return cls(distribution_of(parameter), parameter)
        raise InvalidInput(
            f"The parameter {name!r} must be boca.Float, boca.Int, boca.Choice, a tuple such as (5, 50), or a "
            f"distribution of Optuna; got {given!r}."
        )

    @classmethod
    def _stepped(cls, given: FloatDistribution | IntDistribution, step: float) -> Dimension:
        """Count the steps: from zero if zero is on the lattice, so that ratios keep their meaning, else from `low`."""
        steps_to_low = given.low / step
        first = round(steps_to_low) if abs(steps_to_low - round(steps_to_low)) < 1e-9 else 0
        return cls(given, Int(first, first + round((given.high - given.low) / step)), step, given.low, first)

    def encode(self, value: Any, what: str) -> Any:
        """Return a value of the objective as a value here."""
        if self.step is None:
            return self.parameter.validate(value, what)
        steps = (float(value) - self.low) / self.step
        if abs(steps - round(steps)) > 1e-6:
            raise InvalidInput(f"{what} must be {self.low!r} plus whole steps of {self.step!r}; got {value!r}.")
        return self.parameter.validate(self.first + round(steps), what)

    def decode(self, code: Any) -> Any:
        if self.step is None:
            return code
        value = self.low + (code - self.first) * self.step
        assert isinstance(self.distribution, FloatDistribution | IntDistribution)
        return min(value, self.distribution.high)  # rounding may exceed it

    def draw(self, rng: np.random.Generator) -> Any:
        return self.decode(self.parameter.from_unit(float(self.parameter.snap(rng.random(1))[0])))


def axes_of(given: Mapping[str, Any], what: str) -> dict[str, Dimension]:
    if not isinstance(given, Mapping):
        raise InvalidInput(
            f"{what} must map names to parameters, such as {{'epochs': boca.Int(5, 50)}}; got {given!r}."
        )
    return {name: Dimension.of(parameter, name) for name, parameter in given.items()}


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """Return a parameter as a distribution of Optuna."""
    if parameter.ends is None:
        return CategoricalDistribution(parameter.options)
    kind: Callable[..., BaseDistribution] = IntDistribution if parameter.kind in ("int", "steps") else FloatDistribution
    return kind(*parameter.ends, log=parameter.log)


def refuse_other_range(name: str, suggested: BaseDistribution, axis: Dimension) -> None:
    if suggested != axis.distribution:
        raise InvalidInput(
            f"The objective suggests the fidelity {name!r} from {suggested!r}, and the sampler was given "
            f"{axis.distribution!r}. They must agree: change one of them."
        )


def refuse_misspelled(
    name: str, suggested: BaseDistribution, fidelities: Mapping[str, Dimension], trial: FrozenTrial
) -> None:
    """Refuse a parameter that has the range of a fidelity and nearly its name, while that one was not suggested."""
    alike = [
        other for other, axis in fidelities.items() if axis.distribution == suggested and other not in trial.params
    ]
    meant = difflib.get_close_matches(name, alike, n=1)
    if meant:
        raise InvalidInput(
            f"The objective suggests {name!r} from {suggested!r}, and the sampler has a fidelity {meant[0]!r} "
            "with that range. They must have one name: change one of them."
        )


@dataclass(frozen=True)
class Bridge:
    """A problem and the way from Optuna's parameters to its points and back."""

    x: Mapping[str, Dimension]
    z: Mapping[str, Dimension]
    problem: Problem
    fingerprint: str
    """Of the spaces and the strategy: stored hyperparameters are valid only for the same ones."""

    @classmethod
    def of(
        cls,
        x: Mapping[str, Dimension],
        z: Mapping[str, Dimension],
        target: Mapping[str, Any],
        cost: CostFunction | None,
        strategy: object,
        aims: Mapping[str, Any],
        *,
        space: Space | None = None,
        limits: Sequence[str] = (),
    ) -> Bridge:
        """Return the bridge of a study.

        Args:
            x: The parameters.
            z: The fidelities.
            target: The fidelity that counts, in Optuna's values.
            cost: A function of the fidelities in Optuna's values; None if it is measured.
            strategy: What chooses; it may refuse the problem.
            aims: What the study optimizes; see `aims_of`.
            space: The parameters with their constraints, if they have any.
            limits: The names of the outcomes that Optuna constrains, each to at most zero.
        """
        if cost is not None and not callable(cost):
            raise InvalidInput(f"cost must be a function of z, or None to have it measured; got {cost!r}.")
        unknown = [name for name in target if name not in z]
        if unknown:
            raise InvalidInput(f"target may only name fidelities {list(z)}; got {unknown}.")

        def cost_of_codes(codes: Mapping[str, Any]) -> float:
            assert cost is not None
            return cost({name: axis.decode(codes[name]) for name, axis in z.items()})

        plain = Space({name: axis.parameter for name, axis in x.items()}) if x else _UNKNOWN
        problem = Problem(
            plain if space is None else space,
            Space({name: axis.parameter for name, axis in z.items()}),
            cost=cost_of_codes if cost is not None else None,
            target={name: z[name].encode(value, f"target[{name!r}]") for name, value in target.items()},
            subject_to={name: AtMost(0.0) for name in limits} or None,
            **aims,
        )
        if x:
            check(strategy, problem)
        settings = spec.plain(strategy)
        if known := [constraint.fingerprint for constraint in problem.space.constraints]:
            settings = [settings, known]
        if limits:
            settings = [settings, {"subject_to": sorted(limits)}]
        return cls(x, z, problem, fingerprint(x, z, settings))

    @property
    def target(self) -> Point:
        return {name: axis.decode(self.problem.target[name]) for name, axis in self.z.items()}

    def params(self, x: Point, z: Point) -> Point:
        """Return a point as Optuna's parameters."""
        known = {name: axis.decode(x[name]) for name, axis in self.x.items() if name in x}
        return known | {name: axis.decode(z[name]) for name, axis in self.z.items()}

    def filled(self, params: Mapping[str, Any]) -> Point:
        """Return the parameters of this problem; fidelities that are missing are at the target."""
        return {name: value for name, value in {**self.target, **params}.items() if name in self.x or name in self.z}

    def point(self, params: Mapping[str, Any]) -> tuple[Point, Point] | None:
        """Return Optuna's parameters as a point; None if active ones are missing or out of range."""
        try:
            x = {name: axis.encode(params[name], name) for name, axis in self.x.items() if name in params}
            z = {name: axis.encode(params[name], name) for name, axis in self.z.items()}
            return self.problem.space.validate(x, "x"), z
        except (KeyError, InvalidInput):
            return None

    def trial(self, trial: FrozenTrial) -> Trial | None:
        """Return a trial of Optuna as one of ours; None if it says nothing about this space."""
        stored = dict(trial.user_attrs.get(WHY, {}))
        claim = stored.pop("claim", {})
        fixed: Point = trial.system_attrs.get("fixed_params", {})
        if trial.state.is_finished():
            if trial.state == TrialState.COMPLETE:
                self.refuse_unread_fidelities(trial)
            params = self._completed(trial, claim.get("params", {}))
        else:  # running: what was chosen or queued, until the objective has read it
            params = (self.filled(fixed) if fixed else {}) | claim.get("params", {}) | trial.params
        point = self.point(params) if self.x else None
        if point is None:
            return None
        why = reasons(stored, claim.get("space") == self.fingerprint, is_queued=bool(fixed))
        state = _STATES[trial.state]
        values = trial.values if trial.state == TrialState.COMPLETE else None
        reports = self._reports(trial, point[1])
        if trial.state == TrialState.PRUNED and reports:
            state = "complete"
        if values is not None and not all(math.isfinite(value) for value in values):
            state, values = "failed", None
        told = COST in trial.user_attrs
        ended = reports[-1].z if trial.state == TrialState.PRUNED and reports else point[1]
        cost = float(trial.user_attrs[COST]) if told else self.problem.cost_from(ended)
        is_measured = told and not self.problem.has_declared_cost and state != "running"
        known = Trial(
            number=trial.number,
            x=point[0],
            planned=point[1],
            cost=cost,
            reasons=Reasons.of(why),
            state=state,
            seconds=cost if is_measured else None,
            overhead=float(claim.get("overhead", 0.0)),
            reason=f"Optuna's trial was {trial.state.name}" if state == "failed" else None,
            observations=tuple(reports),
            reached=self.problem.step(reports[-1].z) if reports else 0,
        )
        if state == "complete" and values is None:  # pruned, with the constraints that were set before
            limits = [Observation(ended, by, None, None, name) for name, by in self._outcomes(trial).items()]
            return replace(known, observations=(*reports[:-1], *limits, reports[-1]))
        if values is None:
            return known
        optimized = dict(zip([*self.problem.objectives] or [OBJECTIVE], values, strict=True))
        before = tuple(told for told in reports if told.z != point[1])
        complete = known.observed({**self._outcomes(trial), **optimized})
        return replace(complete, observations=before + complete.observations)

    def _outcomes(self, trial: FrozenTrial) -> dict[str, float]:
        """Return the constraints of a trial that are numbers: positive is infeasible."""
        told = trial.constraints if self.problem.subject_to else {}
        return {name: by for name, by in told.items() if name in self.problem.subject_to and math.isfinite(by)}

    def _reports(self, trial: FrozenTrial, z: Point) -> list[Observation]:
        """Return the intermediate values of a trial that passes through steps, those beyond its own step left out."""
        if self.problem.steps is None:
            return []
        told = sorted((s, v) for s, v in trial.intermediate_values.items() if 1 <= s <= self.problem.step(z))
        return [Observation(self.problem.at_step(z, s), v, None, None, OBJECTIVE) for s, v in told if math.isfinite(v)]

    def _completed(self, trial: FrozenTrial, chosen: Mapping[str, Any]) -> Point:
        """Return the parameters of a finished trial, with a value for those that its objective did not read.

        A fidelity is that of the target: the trial is older than the fidelity.  A parameter is what the sampler chose
        for it, or else the middle of its range: its branch of the objective has no use for it.
        """
        middle = {name: axis.decode(axis.parameter.from_unit(0.5)) for name, axis in self.x.items()}
        return {**self.target, **middle, **chosen, **trial.params}

    def refuse_unread_fidelities(self, trial: FrozenTrial) -> None:
        """Refuse a trial for which the sampler chose a fidelity that the objective did not read, or read elsewhere."""
        chosen = claim_of(trial).get("params", {})
        for name, axis in self.z.items():
            if name not in chosen:
                continue
            if name not in trial.distributions:
                raise InvalidInput(
                    f"The objective did not read the fidelity {name!r}: trial {trial.number} suggested only "
                    f"{sorted(trial.distributions)}. Call trial.suggest_int({name!r}, ...) or the like in every trial."
                )
            refuse_other_range(name, trial.distributions[name], axis)


_STATES: dict[TrialState, State] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "failed",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "running",
}


def reasons(stored: Mapping[str, Any], is_ours: bool, *, is_queued: bool) -> dict[str, Any]:
    """Return the `why` of a trial; the whole of it only if it was made for this space by this strategy."""
    if is_ours:
        return dict(stored)
    if stored:
        return {"reason": stored.get("reason", ""), "phase": stored.get("phase", "added")}
    if is_queued:
        return {"reason": "Queued by the user.", "phase": "queued"}
    return {"reason": "Imported result.", "phase": "added"}


def fingerprint(x: Mapping[str, Dimension], z: Mapping[str, Dimension], strategy: object) -> str:
    """Return a short name for spaces and a strategy, given as JSON."""
    spaces = [[[name, repr(axis.distribution), *_condition(axis)] for name, axis in axes.items()] for axes in (x, z)]
    return hashlib.sha256(json.dumps([spaces, strategy], sort_keys=True).encode()).hexdigest()[:12]


def _condition(axis: Dimension) -> list[str]:
    return [] if axis.parameter.when is None else [repr(axis.parameter.when)]


def seconds_between(began: datetime, ended: datetime) -> float:
    """Return the seconds between two local times, as Optuna stores them, also across a change of the clocks."""
    return (ended.astimezone(UTC) - began.astimezone(UTC)).total_seconds()
