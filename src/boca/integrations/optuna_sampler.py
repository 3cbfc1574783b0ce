"""A sampler for Optuna that chooses parameters and fidelities with a strategy of boca."""

from __future__ import annotations

import logging
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from secrets import SystemRandom, randbits
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.pruners import BasePruner
from optuna.samplers import BaseSampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial, TrialState

from boca.accounting.ledger import Ledger
from boca.domain.errors import InvalidInput
from boca.domain.problem import CostFunction
from boca.domain.space import Parameter, Point, Space
from boca.domain.trial import History, Trial, sign
from boca.integrations.optuna_branches import branching, sometimes_there
from boca.integrations.optuna_bridge import (
    COST,
    REASON,
    WHY,
    Bridge,
    Dimension,
    aims_of,
    axes_of,
    claim_of,
    direction,
    refuse_misspelled,
    refuse_other_range,
    seconds_between,
)
from boca.strategies import Boca, Strategy
from boca.strategies.base import HasKeepGoing
from boca.study import runs

_MAX_CHOICES = 8  # for one trial, while other workers make the same; then the last one stands


_CONSTRAINTS = "constraints"  # under which Optuna stores what a constraints_func returns
_CHEAP_BEST = "boca: a cheap best"  # among the parameters that were warned of

log = logging.getLogger("boca")


class SpaceChanged(UserWarning):
    """A parameter or a trial that does not fit the space of the study, so the model does not see it."""


class BocaSampler(BaseSampler):
    """Choose parameters and fidelities of an Optuna study with a strategy of boca.

    The objective suggests fidelities like any other parameter, with the name and the range given in `fidelity`:
    `trial.suggest_int("epochs", 5, 50)`.  There is no budget: a study ends when Optuna ends it, and nothing is kept
    for a last query.  Running trials are pending; pruned and failed ones count as worse than every result so far.  If a
    fidelity is `boca.Steps`, what `trial.report(value, step)` says counts at that step, and a pruned trial is complete
    at its last one: with any pruner of Optuna, or with `BocaPruner`, which stops trials by the strategy's own rule.
    Constraints, `trial.set_constraint("latency", latency - 20)`, are limits at the target.
    A study may have up to four directions: then the sampler searches for a front.

    It takes over a study of another sampler: trials without a fidelity count as trials at the target.  With `space`, a
    parameter that a trial has no use for counts with the value that was chosen for it.

    Args:
        fidelity: Maps names to `boca.Float`, `boca.Int`, `boca.Choice`, tuples such as `(5, 50)` or distributions of
            Optuna.
        target: The fidelity that counts; a name left out takes its upper bound.
        cost: A function of the fidelities; None if it is measured in seconds and learned.
        space: Like `fidelity`, for the parameters; None for those that all complete trials share, which are drawn at
            random until there is such a trial.  A parameter that the objective suggests only for some values of another
            one gets this condition from the trials; a `boca.Space` with `when` says so from the first trial on.
        strategy: What chooses; None for `boca.Boca()`.
        seed: Equal seeds give equal studies; None draws one.
        constraints_func: As in the samplers of Optuna: from a trial to numbers that are feasible up to zero.  Better:
            `trial.set_constraint("latency", latency - 20)` in the objective, which also names them.
    """

    def __init__(
        self,
        fidelity: Mapping[str, Parameter | BaseDistribution | tuple[Any, ...]] | None = None,
        *,
        target: Mapping[str, Any] | None = None,
        cost: CostFunction | None = None,
        space: Mapping[str, Parameter | BaseDistribution | tuple[Any, ...] | list[Any]] | None = None,
        strategy: Strategy | None = None,
        seed: int | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        if constraints_func is not None and not callable(constraints_func):
            raise InvalidInput(
                f"constraints_func is {constraints_func!r}, and must be a function from a trial to numbers, or None. "
                "Type constraints_func=lambda trial: [trial.user_attrs['latency'] - 20]."
            )
        self._constraints_func = constraints_func
        strategy = Boca() if strategy is None else strategy
        if not isinstance(strategy, Strategy) or isinstance(strategy, type):
            raise InvalidInput(f"strategy must have a method suggest, such as boca.Boca(); got {strategy!r}.")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0):
            raise InvalidInput(f"seed must be a non-negative integer or None; got {seed!r}.")
        self.strategy = strategy
        self.seed = randbits(63) if seed is None else int(seed)
        self._cost = cost
        self._target = dict(target or {})
        self._fidelity = axes_of(fidelity or {}, "fidelity")
        self._space = None if space is None else axes_of(space, "space")
        self._whole = space if isinstance(space, Space) else None  # with what single parameters do not say
        self._warned: set[str] = set()
        self._lock = threading.RLock()
        self._memory: _Memory | None = None
        one: Mapping[str, Any] = {"direction": "maximize"}
        self._fidelities_only = self._bridge({}, one)  # the fidelities without parameters
        if self._space is not None:  # refuse now what would otherwise fail in the first trial
            self._bridge(self._space, one)

    @property
    def target(self) -> Point:
        """The fidelity that counts, in the values of the objective."""
        return self._fidelities_only.target

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lock": None, "_memory": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # What Optuna calls ----------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        aims_of(study)
        with self._lock:
            axes = self._axes(study)
            # fidelities are asked for one by one, where their name and range can be checked before the evaluation
            return {name: axis.distribution for name, axis in axes.items()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        began = time.perf_counter()
        names = [name for name in search_space if name not in self._fidelity]
        with self._lock:  # threads of one process choose one after another
            memory = self._remember(study)
            bridge = memory.bridge
            axes, limits = self._axes(study), _constrained(study)
            if bridge is None or bridge.x != axes or [*bridge.problem.subject_to] != limits:
                bridge = self._bridge(axes, aims_of(study), limits)
                memory.use(bridge)
            for _ in range(_MAX_CHOICES):
                history = self._history(study, trial.number, memory, bridge)
                params, why = self._choose(trial, history, bridge)
                claim = {"params": params, "space": bridge.fingerprint, "overhead": time.perf_counter() - began}
                _note(study, trial, {WHY: why | {"claim": claim}, REASON: why["reason"]})
                if not self._is_taken(study, trial.number, memory, bridge, params, history):
                    break
                # the other worker sees it too, and would choose the same again at the same time
                time.sleep(SystemRandom().uniform(0.0, 2.0 * (time.perf_counter() - began)))
            if bridge.x and not history.complete:
                self._warn_of_no_model(study, trial.number)
        return {name: params[name] for name in names if name in params}  # what is inactive is not suggested

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        chosen = claim_of(trial).get("params", {})
        if param_name in self._fidelity:
            refuse_other_range(param_name, param_distribution, self._fidelity[param_name])
            return chosen.get(param_name, self.target[param_name])
        refuse_misspelled(param_name, param_distribution, self._fidelity, trial)
        known_axes = {} if self._memory is None or self._memory.bridge is None else self._memory.bridge.x
        has_range = param_name in known_axes and known_axes[param_name].distribution == param_distribution
        if param_name in chosen and has_range:
            return chosen[param_name]  # of a branch that another worker's trial showed after this one was asked for
        axis = Dimension.of(param_distribution, param_name)
        known = set(chosen) - set(self._fidelity)
        if known:  # before the first complete trial nothing is known, and all are drawn at random
            has = "changed its range" if param_name in known else f"is not in the space {sorted(known)} of this study"
            self._warn(
                param_name, f"The parameter {param_name!r} {has}: it is drawn at random, and the model does not see it."
            )
        rng = np.random.default_rng([self.seed, trial.number, zlib.crc32(param_name.encode())])
        return axis.draw(rng)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        cost = None if COST in trial.user_attrs else self._paid(trial, state)
        if cost is not None:
            _note(study, trial, {COST: cost})
        if state == TrialState.COMPLETE and self._constraints_func is not None:
            broken_by = [float(by) for by in self._constraints_func(trial)]
            study._storage.set_trial_system_attr(trial._trial_id, _CONSTRAINTS, broken_by)
        if state == TrialState.COMPLETE:
            self._fidelities_only.refuse_unread_fidelities(trial)  # now, and not after another evaluation
            self._warn_of_a_cheap_best(study, trial, values)

    def stops(self, study: optuna.Study, trial: FrozenTrial, rule: HasKeepGoing | None) -> bool:
        """Whether a running trial should end after its last report, by the rule of the strategy, or else by `rule`."""
        with self._lock:
            memory = self._remember(study)
            bridge = memory.bridge
            if bridge is None or bridge.problem.steps is None:
                return False
            running = bridge.trial(trial)
            if running is None or not running.observations:
                return False
            z = running.observations[-1].z
            if not bridge.problem.is_modelled(z) or bridge.problem.step(z) >= bridge.problem.step(running.planned):
                return False
            others = self._history(study, trial.number, memory, bridge)
        history = History(sorted([*others, running], key=lambda known: known.number))
        rng = runs.decision_rng(self.seed, running)
        return not runs.verdict((self.strategy, rule), bridge.problem, history, running, rng).go_on

    # How it chooses -------------------------------------------------------------------------------------------------

    def _bridge(self, x: Mapping[str, Dimension], aims: Mapping[str, Any], limits: Sequence[str] = ()) -> Bridge:
        space = self._whole if x else None
        return Bridge.of(x, self._fidelity, self._target, self._cost, self.strategy, aims, space=space, limits=limits)

    def _axes(self, study: optuna.Study) -> dict[str, Dimension]:
        """Return the parameters that the model knows, with the conditions that the complete trials show.

        The conditions of a `boca.Space` are the user's own, and stay.
        """
        trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        sometimes = sometimes_there(trials, self._fidelity)
        if self._space is None:
            return branching(self._remember(study).inferred(study, self._fidelity), sometimes, trials)
        if self._whole is not None:
            return self._space
        lacking = {name: axis for name, axis in self._space.items() if name in sometimes}
        return branching(self._space, lacking, trials)

    def _remember(self, study: optuna.Study) -> _Memory:
        """Return what was seen of this study; with another study, a sampler starts anew."""
        memory = self._memory
        if memory is None or memory.storage is not study._storage or memory.study_id != study._study_id:
            memory = self._memory = _Memory(study)
        return memory

    def _history(self, study: optuna.Study, number: int, memory: _Memory, bridge: Bridge) -> History:
        """Return the trials that the model sees; finished ones are converted once."""
        seen = []
        for trial in study.get_trials(deepcopy=False):
            if trial.number == number:
                continue
            if trial.number not in memory.finished:
                converted = bridge.trial(trial)
                if converted is None and bridge.x and trial.state == TrialState.COMPLETE:
                    self._warn_of_trial(trial, bridge)
                if not trial.state.is_finished():
                    seen += [] if converted is None else [converted]
                    continue
                memory.finished[trial.number] = converted
            known = memory.finished[trial.number]
            if known is not None:
                seen.append(known)
        return History(seen)

    def _choose(self, trial: FrozenTrial, history: History, bridge: Bridge) -> tuple[Point, dict[str, Any]]:
        fixed: Point = trial.system_attrs.get("fixed_params", {})
        if fixed and bridge.x and bridge.point(bridge.filled(fixed)) is not None:
            params = bridge.filled(fixed)
            return params, {"reason": "Queued by the user.", "phase": "queued"}
        problem = bridge.problem
        rng = np.random.default_rng([self.seed, trial.number])
        made = self.strategy.suggest(problem, history, Ledger(problem, history, limit=None).budget, rng)
        params = bridge.params(
            problem.space.validate(made.x, "the strategy's x"), problem.fidelity.validate(made.z, "the strategy's z")
        )
        if fixed:
            reason = "Queued by the user in part; the strategy chose the rest."
            return bridge.filled(params | bridge.target | fixed), {"reason": reason, "phase": "queued"}
        return params, dict(made.why)

    def _is_taken(
        self, study: optuna.Study, number: int, memory: _Memory, bridge: Bridge, params: Point, seen: History
    ) -> bool:
        """Whether another worker has chosen the same point since this one looked.

        Every worker writes first and looks then, so of two that coincide at least one sees it and chooses again.
        """
        here = bridge.point(params)
        if here is None or not bridge.x:
            return False
        known = {trial.number for trial in seen}
        return any(
            (trial.x, trial.z) == here and trial.number not in known
            for trial in self._history(study, number, memory, bridge)
        )

    def _paid(self, trial: FrozenTrial, state: TrialState) -> float | None:
        """Return the declared cost of a trial, up to where it was pruned, or its seconds without the time to choose."""
        if self._cost is not None or not self._fidelity:
            problem = self._fidelities_only.problem
            try:
                z = {name: axis.encode(trial.params[name], name) for name, axis in self._fidelity.items()}
                if state == TrialState.PRUNED and problem.steps is not None and trial.last_step:
                    z = problem.at_step(z, min(trial.last_step, problem.step(z)))
                return problem.cost_from(z)
            except (KeyError, InvalidInput):
                return None
        if trial.datetime_start is None:
            return None
        took = seconds_between(trial.datetime_start, datetime.now())
        return max(took - float(claim_of(trial).get("overhead", 0.0)), 1e-6)

    def _warn_of_a_cheap_best(self, study: optuna.Study, trial: FrozenTrial, values: Sequence[float] | None) -> None:
        """Say once that `study.best_trial` is not at the target, when a trial makes it so."""
        target = self.target
        is_cheap = any(trial.params.get(name, value) != value for name, value in target.items())
        if not values or not is_cheap or _CHEAP_BEST in self._warned or len(study.directions) > 1:
            return
        others = [t.values[0] for t in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))]
        better = sign(direction(study))
        if all(better * values[0] >= better * value for value in others):
            self._warned.add(_CHEAP_BEST)
            at = {name: trial.params[name] for name in target if name in trial.params}
            log.warning(
                "study.best_trial is trial %d, which ran at %s and not at the target %s: values of other fidelities "
                "cannot be compared. Use boca.integrations.optuna.best_at_target(study).",
                trial.number,
                at,
                target,
            )

    @staticmethod
    def _warn_of_no_model(study: optuna.Study, number: int) -> None:
        """Say for every trial that is chosen without a model although there are results."""
        complete = len(study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
        if complete:
            log.warning(
                "Trial %d is drawn at random: none of the %d complete trials fits the space of this sampler. Give the "
                "sampler the ranges of the suggest calls.",
                number,
                complete,
            )

    def _warn_of_trial(self, trial: FrozenTrial, bridge: Bridge) -> None:
        self._warn(
            "trial",
            f"Trial {trial.number} lies outside the ranges of {[*bridge.x, *bridge.z]}: the model ignores it and "
            "others like it.",
        )

    def _warn(self, what: str, words: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(words, SpaceChanged, stacklevel=3)


class BocaPruner(BasePruner):
    """Prune by the rule with which the strategy of a `BocaSampler` stops evaluations, or by another one.

    Args:
        rule: What says whether a trial goes on if the strategy has no rule of its own: an object with `keep_going`.
    """

    def __init__(self, rule: HasKeepGoing | None = None) -> None:
        if rule is not None and not isinstance(rule, HasKeepGoing):
            raise InvalidInput(f"rule is {rule!r}, and must have a method keep_going, or be None.")
        self._rule = rule

    def prune(self, study: optuna.Study, trial: FrozenTrial) -> bool:
        if not isinstance(study.sampler, BocaSampler):
            raise InvalidInput(
                f"BocaPruner needs the model of a BocaSampler, and the sampler is {study.sampler!r}. Type "
                "create_study(sampler=BocaSampler(...), pruner=BocaPruner())."
            )
        return study.sampler.stops(study, trial, self._rule)


class _Memory:
    """What a sampler has seen of one study, so that nothing is converted twice."""

    def __init__(self, study: optuna.Study) -> None:
        self.storage = study._storage
        self.study_id = study._study_id
        self.bridge: Bridge | None = None
        self.finished: dict[int, Trial | None] = {}
        self._shared = IntersectionSearchSpace()

    def use(self, bridge: Bridge) -> None:
        """Start anew with another space."""
        self.bridge = bridge
        self.finished = {}

    def inferred(self, study: optuna.Study, fidelity: Mapping[str, Dimension]) -> dict[str, Dimension]:
        """Return the parameters that all complete trials share."""
        found = self._shared.calculate(study)
        return {n: Dimension.of(d, n) for n, d in found.items() if n not in fidelity and not d.single()}


def _constrained(study: optuna.Study) -> list[str]:
    """Return the names of the constraints that complete trials have, sorted."""
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return sorted({name for trial in complete for name in trial.constraints})


def _note(study: optuna.Study, trial: FrozenTrial, attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        study._storage.set_trial_user_attr(trial._trial_id, name, value)
        trial.user_attrs[name] = value  # the objective sees it in `trial.user_attrs`
