"""Optuna: a sampler that moves fidelities, and studies from there to here and back.

All that a strategy must know later is kept with Optuna's trials, in the user attributes `boca:why`, `boca:reason` and
`boca:cost`.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from secrets import SystemRandom, randbits
from typing import Any

import numpy as np

from boca.accounting.ledger import Ledger
from boca.domain.errors import BocaError, InvalidInput, instance_of
from boca.domain.problem import CostFunction, Direction, Problem
from boca.domain.reasons import Reasons
from boca.domain.space import Parameter, Point
from boca.domain.trial import History, Trial, sign
from boca.strategies import Boca, Strategy
from boca.study import spec
from boca.study.optimizer import Optimizer

try:
    import optuna
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.search_space import IntersectionSearchSpace
    from optuna.trial import FrozenTrial, TrialState
except ImportError as missing:
    raise BocaError("boca.integrations.optuna needs Optuna 5 or newer. Run `pip install 'boca[optuna]'`.") from missing

from boca.integrations.optuna_bridge import (
    COST,
    REASON,
    WHY,
    Bridge,
    Dimension,
    axes_of,
    claim_of,
    direction,
    fingerprint,
    reasons,
    refuse_other_range,
)

_TRIES = 8  # choices that another worker made too, after which one stands


class SpaceChanged(UserWarning):
    """A parameter or a trial that does not fit the space of the study, so that the model does not see it."""


class BocaSampler(BaseSampler):
    """Choose parameters and fidelities of an Optuna study with a strategy of boca.

    The objective suggests fidelities like any other parameter, with the name and the range that stand in `fidelity`:
    `trial.suggest_int("epochs", 5, 50)`.  `fidelity` and `space` map names to `boca.Float`, `boca.Int`, `boca.Choice`
    or to distributions of Optuna.  `target`, `cost` and `strategy` are those of `boca.maximize`; with `cost=None` it is
    measured in seconds and learned.  Without `space`, parameters are those that all complete trials share, and they
    are drawn at random until there is one.

    There is no budget: a study ends when Optuna ends it, and nothing is kept for a last query.  Trials that run are
    pending, pruned and failed ones count as the worst value so far.
    """

    def __init__(
        self,
        fidelity: Mapping[str, Parameter | BaseDistribution] | None = None,
        *,
        target: Mapping[str, Any] | None = None,
        cost: CostFunction | None = None,
        space: Mapping[str, Parameter | BaseDistribution] | None = None,
        strategy: Strategy | None = None,
        seed: int | None = None,
    ) -> None:
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
        self._warned: set[str] = set()
        self._lock = threading.RLock()
        self._memory: _Memory | None = None
        self._alone = self._bridge({}, "maximize")  # the fidelities by themselves
        if self._space is not None:  # say at once what would otherwise fail in the first trial
            self._bridge(self._space, "maximize")

    @property
    def target(self) -> Point:
        """The fidelity that counts, in the values of the objective."""
        return self._alone.target

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_lock": None, "_memory": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # What Optuna calls ----------------------------------------------------------------------------------------------

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        direction(study)
        with self._lock:
            axes = self._space if self._space is not None else self._remember(study).inferred(study, self._fidelity)
            return {name: axis.distribution for name, axis in (axes | self._fidelity).items()}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        began = time.perf_counter()
        names = [name for name in search_space if name not in self._fidelity]
        with self._lock:  # threads of one process choose one after the other
            memory = self._remember(study)
            bridge = memory.bridge
            if bridge is None or {name: axis.distribution for name, axis in bridge.x.items()} != {
                name: search_space[name] for name in names
            }:
                bridge = self._bridge(
                    {name: Dimension.of(search_space[name], name) for name in names}, direction(study)
                )
                memory.use(bridge)
            for _ in range(_TRIES):
                history = self._history(study, trial.number, memory, bridge)
                params, why = self._choose(trial, history, bridge)
                claim = {"params": params, "space": bridge.fingerprint, "overhead": time.perf_counter() - began}
                _note(study, trial, {WHY: why | {"claim": claim}, REASON: why["reason"]})
                if not self._is_taken(study, trial.number, memory, bridge, params, history):
                    break
                # both see it, and would make the same choice again at the same time
                time.sleep(SystemRandom().uniform(0.0, 2.0 * (time.perf_counter() - began)))
        return params

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        axis = Dimension.of(param_distribution, param_name)
        if param_name in self._fidelity:
            refuse_other_range(param_name, param_distribution, self._fidelity[param_name])
        known = set(claim_of(trial).get("params", {})) - set(self._fidelity)
        if known:  # before the first complete trial nothing is, and all are drawn at random
            has = "changed its range" if param_name in known else f"is not of the space {sorted(known)} of this study"
            self._warn(param_name, f"The parameter {param_name!r} {has}: it is drawn at random, unseen by the model.")
        rng = np.random.default_rng([self.seed, trial.number, zlib.crc32(param_name.encode())])
        return axis.draw(rng)

    def after_trial(
        self, study: optuna.Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        if COST in trial.user_attrs:
            return
        cost = self._paid(trial)
        if cost is not None:
            _note(study, trial, {COST: cost})

    # How ------------------------------------------------------------------------------------------------------------

    def _bridge(self, x: Mapping[str, Dimension], towards: Direction) -> Bridge:
        return Bridge.of(x, self._fidelity, self._target, self._cost, self.strategy, towards)

    def _remember(self, study: optuna.Study) -> _Memory:
        """Return what is known of this study; a sampler that comes to another one starts afresh."""
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
        if fixed and bridge.x.keys() <= fixed.keys():
            params = bridge.filled(fixed)
            return params, {"reason": "A point that was asked for.", "phase": "queued"}
        problem = bridge.problem
        rng = np.random.default_rng([self.seed, trial.number])
        made = self.strategy.suggest(problem, history, Ledger(problem, history, limit=None).budget, rng)
        params = bridge.params(
            problem.space.validate(made.x, "the strategy's x"), problem.fidelity.validate(made.z, "the strategy's z")
        )
        if fixed:
            reason = "A point of which a part was asked for."
            return bridge.filled(params | bridge.target | fixed), {"reason": reason, "phase": "queued"}
        return params, dict(made.why)

    def _is_taken(
        self, study: optuna.Study, number: int, memory: _Memory, bridge: Bridge, params: Point, seen: History
    ) -> bool:
        """Whether another worker has taken the same point since this one looked.

        Everybody writes first and looks then, so of two that coincide at least one sees it and chooses again.
        """
        here = bridge.point(params)
        if here is None or not bridge.x:
            return False
        known = {trial.number for trial in seen}
        return any(
            (trial.x, trial.z) == here and trial.number not in known
            for trial in self._history(study, number, memory, bridge)
        )

    def _paid(self, trial: FrozenTrial) -> float | None:
        """Return the declared cost of a trial, or the seconds that it took without the time to choose it."""
        if self._cost is not None or not self._fidelity:
            try:
                z = {name: axis.encode(trial.params[name], name) for name, axis in self._fidelity.items()}
                return self._alone.problem.cost(z)
            except (KeyError, InvalidInput):
                return None
        if trial.datetime_start is None:
            return None
        took = _seconds_between(trial.datetime_start, datetime.now())
        return max(took - float(claim_of(trial).get("overhead", 0.0)), 1e-6)

    def _warn_of_trial(self, trial: FrozenTrial, bridge: Bridge) -> None:
        self._warn(
            "trial",
            f"Trial {trial.number} has not all of the parameters {[*bridge.x, *bridge.z]}, or lies outside of their "
            "ranges: the model does not see it, nor others of that kind.",
        )

    def _warn(self, what: str, words: str) -> None:
        if what not in self._warned:
            self._warned.add(what)
            warnings.warn(words, SpaceChanged, stacklevel=3)


class _Memory:
    """What a sampler has seen of one study, so that nothing is converted twice."""

    def __init__(self, study: optuna.Study) -> None:
        self.storage = study._storage
        self.study_id = study._study_id
        self.bridge: Bridge | None = None
        self.finished: dict[int, Trial | None] = {}
        self._shared = IntersectionSearchSpace()

    def use(self, bridge: Bridge) -> None:
        """Begin anew with another space."""
        self.bridge = bridge
        self.finished = {}

    def inferred(self, study: optuna.Study, fidelity: Mapping[str, Dimension]) -> dict[str, Dimension]:
        """Return the parameters that all complete trials share."""
        found = self._shared.calculate(study)
        return {n: Dimension.of(d, n) for n, d in found.items() if n not in fidelity and not d.single()}


def _seconds_between(began: datetime, ended: datetime) -> float:
    """Return the seconds between two local times, as Optuna notes them, also when the clocks were changed between."""
    return (ended.astimezone(UTC) - began.astimezone(UTC)).total_seconds()


def _note(study: optuna.Study, trial: FrozenTrial, attributes: Mapping[str, Any]) -> None:
    for name, value in attributes.items():
        study._storage.set_trial_user_attr(trial._trial_id, name, value)
        trial.user_attrs[name] = value  # what `trial.user_attrs` shows in the objective


# Results and studies ------------------------------------------------------------------------------------------------


def best_at_target(study: optuna.Study, target: Mapping[str, Any] | None = None) -> FrozenTrial | None:
    """Return the best complete trial at the target fidelity, the earliest of equals; None before there is one.

    `study.best_trial` compares values of all fidelities with each other, which means nothing.  `target` is that of the
    study's sampler; give it where the study was loaded without one.
    """
    better = sign(direction(study))
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if target is None:
        if not isinstance(study.sampler, BocaSampler):
            raise InvalidInput(
                f"The target must be known; the sampler of this study is {study.sampler!r}. "
                "Give target={'epochs': 50}, or load the study with sampler=BocaSampler(...)."
            )
        target = study.sampler.target
    elif not isinstance(target, Mapping):
        raise InvalidInput(f"target must map names to values, such as {{'epochs': 50}}; got {target!r}.")
    elif complete:
        known = {name for t in complete for name in t.params}
        unknown = [name for name in target if name not in known]
        if unknown:
            raise InvalidInput(f"target may only name parameters of the trials, {sorted(known)}; got {unknown}.")
    at_target = [
        t for t in complete if all(name in t.params and t.params[name] == value for name, value in target.items())
    ]
    return max(at_target, key=lambda t: better * t.values[0], default=None)


def to_optuna(
    source: Optimizer | History | str,
    problem: Problem | None = None,
    *,
    name: str = "study",
    study_name: str | None = None,
    storage: Any = None,
    sampler: BaseSampler | None = None,
) -> optuna.Study:
    """Make an Optuna study of the finished trials of a study of boca.

    `source` is an optimiser, a history with its problem, or the URL or the file of a storage in which `name` is the
    study.  The other arguments are those of `optuna.create_study`.  A trial that is out is not taken: nobody would tell
    its result.
    """
    history, problem, strategy = _opened(source, problem, name)
    axes = {part: axes_of(space, part) for part, space in (("x", problem.space), ("z", problem.fidelity))}
    distributions = {name: axis.distribution for part in axes.values() for name, axis in part.items()}
    mark = None if strategy is None else fingerprint(axes["x"], axes["z"], strategy)
    study = optuna.create_study(direction=problem.direction, study_name=study_name, storage=storage, sampler=sampler)
    study.add_trials(
        [
            optuna.trial.create_trial(
                state=TrialState.COMPLETE if trial.state == "complete" else TrialState.FAIL,
                value=trial.value,
                params={**trial.x, **trial.z},
                distributions=distributions,
                user_attrs={
                    WHY: trial.why | {"claim": {"space": mark, "overhead": trial.overhead}},
                    REASON: trial.why.get("reason", ""),
                    # one that was only assumed would be taken for measured
                    **({COST: trial.cost} if problem.has_declared_cost or trial.seconds is not None else {}),
                },
            )
            for trial in history
            if trial.state != "running"
        ]
    )
    return study


def _opened(source: object, problem: Problem | None, name: str) -> tuple[History, Problem, Any]:
    """Return a history with its problem, and its strategy as JSON where that is known."""
    if isinstance(source, Optimizer):
        return source.history, source.problem, spec.plain(source.strategy)
    if isinstance(source, History):
        if not isinstance(problem, Problem):
            raise InvalidInput(f"A history needs its problem: to_optuna(history, problem); got {problem!r}.")
        return source, problem, None
    if isinstance(source, str):
        from boca.study.storage.reader import Reader

        with closing(Reader(source)) as reader:
            stored = reader.study(name)
        return stored.history, stored.problem, stored.spec["strategy"]
    raise InvalidInput(f"to_optuna takes an Optimizer, a History, or the URL or file of a storage; got {source!r}.")


def from_optuna(study: optuna.Study, problem: Problem) -> History:
    """Return the finished trials of an Optuna study as a history, for `opt.add_all`, which takes the complete ones.

    Parameters go by their names; a fidelity that a trial does not have is the target's.  The cost is `boca:cost`, or
    the declared one, or the seconds that the trial took; NaN, which `add_all` reads as unknown, where nobody knows.
    Where the problem learns its cost, `boca:cost` is taken to be in seconds.
    """
    towards = direction(study)
    instance_of(problem, Problem, "problem")
    if towards != problem.direction:
        raise InvalidInput(f"The study goes to {towards}, and the problem to {problem.direction}.")
    _refuse_lost_fidelities(study, problem)
    trials = []
    for trial in study.get_trials(deepcopy=False):
        value = trial.values[0] if trial.state == TrialState.COMPLETE else None
        if not trial.state.is_finished() or (value is None and not problem.space.keys() <= trial.params.keys()):
            continue  # out, or failed before it had all of its parameters
        where = f"trial {trial.number} of the study"
        x = {name: trial.params[name] for name in problem.space if name in trial.params}
        z = problem.target | {name: trial.params[name] for name in problem.fidelity if name in trial.params}
        known = value is not None and math.isfinite(value)
        stored = {key: entry for key, entry in trial.user_attrs.get(WHY, {}).items() if key != "claim"}
        fidelity = problem.fidelity.validate(z, f"z of {where}")
        cost = _known_cost(trial, problem, fidelity)
        made = Trial(
            number=trial.number,
            x=problem.space.validate(x, f"x of {where}"),
            planned=fidelity,
            cost=cost,
            reasons=Reasons.of(reasons(stored, bool(stored), is_queued=False)),
            state="failed",
            reason=f"Optuna's trial was {trial.state.name}",
            seconds=None if problem.has_declared_cost or math.isnan(cost) else cost,
        )
        trials.append(made if value is None or not known else made.completed(value))
    return History(trials)


def _refuse_lost_fidelities(study: optuna.Study, problem: Problem) -> None:
    """Refuse a problem without the fidelities of the sampler: all results would count as the target's."""
    moved = study.sampler.target if isinstance(study.sampler, BocaSampler) else {}
    lost = [name for name in moved if name not in problem.fidelity and name not in problem.space]
    if lost:
        raise InvalidInput(
            f"The problem must have the fidelities that the study's sampler moves, {list(moved)}; it lacks {lost}. "
            "Give it these; to take the trials at the target alone, pick them and opt.add them."
        )


def _known_cost(trial: FrozenTrial, problem: Problem, z: Point) -> float:
    if COST in trial.user_attrs:
        return float(trial.user_attrs[COST])
    if problem.has_declared_cost:
        return problem.cost(z)
    if trial.datetime_start is None or trial.datetime_complete is None:
        return math.nan
    took = _seconds_between(trial.datetime_start, trial.datetime_complete)
    return took if took > 0.0 else math.nan
