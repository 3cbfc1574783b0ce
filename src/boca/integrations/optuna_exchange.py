"""Studies to Optuna and back, and the best trial of an Optuna study at the target."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any

import optuna
from optuna.samplers import BaseSampler
from optuna.trial import FrozenTrial, TrialState

from boca.domain.errors import InvalidInput, instance_of
from boca.domain.objectives import is_told
from boca.domain.observation import OBJECTIVE
from boca.domain.outcomes import AtMost
from boca.domain.problem import Problem
from boca.domain.reasons import Reasons
from boca.domain.space import Point
from boca.domain.trial import History, Trial, sign
from boca.integrations.optuna_bridge import (
    COST,
    REASON,
    WHY,
    aims_of,
    axes_of,
    direction,
    fingerprint,
    reasons,
    seconds_between,
)
from boca.integrations.optuna_sampler import BocaSampler
from boca.study import spec
from boca.study.optimizer import Optimizer

OUTCOMES = "boca:outcomes"
"""The attribute with the outcomes of a trial beside its value, by name."""

NOTES = "boca:notes"
"""The attribute with the notes of a trial."""


def best_at_target(study: optuna.Study, target: Mapping[str, Any] | None = None) -> FrozenTrial | None:
    """Return the best complete trial at the target fidelity, the earliest of equals; None before there is one.

    `study.best_trial` compares values at all fidelities, which means nothing.  A trial without a fidelity counts as one
    at the target.  In a study with constraints, a trial that breaks one or lacks one cannot be the best.  `target` is
    that of the study's sampler; pass it if the study was loaded without that sampler.
    """
    better = sign(direction(study))
    complete = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if target is None:
        if not isinstance(study.sampler, BocaSampler):
            raise InvalidInput(
                f"The target is not known: the sampler of this study is {study.sampler!r}. "
                "Pass target={'epochs': 50}, or load the study with sampler=BocaSampler(...)."
            )
        target = study.sampler.target
    elif not isinstance(target, Mapping):
        raise InvalidInput(f"target must map names to values, such as {{'epochs': 50}}; got {target!r}.")
    elif complete:
        known = {name for t in complete for name in t.params}
        unknown = [name for name in target if name not in known]
        if unknown:
            raise InvalidInput(f"target may only name parameters of the trials, {sorted(known)}; got {unknown}.")
    at_target = [t for t in complete if all(t.params.get(name, value) == value for name, value in target.items())]
    limits = {name for t in complete for name in t.constraints}
    at_target = [t for t in at_target if all(t.constraints.get(name, math.inf) <= 0.0 for name in limits)]
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
    """Return an Optuna study with the finished trials of a boca study; running trials are left out.

    Args:
        source: An `Optimizer`, a history, or the URL or file of a storage.
        problem: The problem of a history.
        name: The study in a storage.
        study_name: As in `optuna.create_study`.
        storage: As in `optuna.create_study`.
        sampler: As in `optuna.create_study`.
    """
    history, problem, strategy = _opened(source, problem, name)
    axes = {part: axes_of(space, part) for part, space in (("x", problem.space), ("z", problem.fidelity))}
    distributions = {name: axis.distribution for part in axes.values() for name, axis in part.items()}
    mark = None if strategy is None else fingerprint(axes["x"], axes["z"], strategy)
    directions = [*problem.objectives.values()] or [problem.direction or "maximize"]
    study = optuna.create_study(directions=directions, study_name=study_name, storage=storage, sampler=sampler)
    if problem.objectives:
        with warnings.catch_warnings():  # Optuna calls it experimental
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names([*problem.objectives])
    study.add_trials(
        [
            optuna.trial.create_trial(
                state=TrialState.FAIL if (values := _values(problem, trial)) is None else TrialState.COMPLETE,
                values=values,
                constraints=_constraints(problem, trial),
                params={name: value for name, value in (trial.x | trial.z).items() if name in distributions},
                distributions={name: distributions[name] for name in distributions if name in trial.x | trial.z},
                user_attrs={
                    WHY: trial.why | {"claim": {"space": mark, "overhead": trial.overhead}},
                    REASON: trial.why.get("reason", ""),
                    **({OUTCOMES: trial.outcomes} if trial.outcomes else {}),
                    **({NOTES: dict(trial.notes)} if trial.notes else {}),
                    # a cost that was only assumed would be taken for measured
                    **({COST: trial.cost} if problem.has_declared_cost or trial.seconds is not None else {}),
                },
            )
            for trial in history
            if trial.state != "running"
        ]
    )
    return study


def _constraints(problem: Problem, trial: Trial) -> dict[str, float]:
    """Return by how much the told outcomes are outside their limits, as Optuna has it: positive is infeasible."""
    return {
        name: value - limit.bound if isinstance(limit := problem.subject_to[name], AtMost) else limit.bound - value
        for name, value in trial.outcomes.items()
        if name in problem.subject_to
    }


def _values(problem: Problem, trial: Trial) -> list[float] | None:
    """Return the values of the objectives; None if they are not all known."""
    if not problem.objectives:
        return None if trial.value is None else [trial.value]
    return [trial.outcomes[name] for name in problem.objectives] if is_told(problem, trial) else None


def _outcomes(problem: Problem, trial: FrozenTrial) -> dict[str, float]:
    """Return the outcomes of one of our trials, or those that Optuna's constraints of their names stand for."""
    if OUTCOMES in trial.user_attrs:
        return {name: value for name, value in trial.user_attrs[OUTCOMES].items() if name in problem.subject_to}
    return {
        name: limit.bound + by if isinstance(limit := problem.subject_to[name], AtMost) else limit.bound - by
        for name, by in trial.constraints.items()
        if name in problem.subject_to
    }


def _opened(source: object, problem: Problem | None, name: str) -> tuple[History, Problem, Any]:
    """Return a history with its problem, and its strategy as JSON if that is known."""
    if isinstance(source, Optimizer):
        return source.history, source.problem, spec.plain(source.strategy)
    if isinstance(source, History):
        if not isinstance(problem, Problem):
            raise InvalidInput(f"A history needs its problem; got {problem!r}. Pass to_optuna(history, problem).")
        return source, problem, None
    if isinstance(source, str):
        from boca.study.storage.reader import Reader

        with closing(Reader(source)) as reader:
            stored = reader.study(name)
        return stored.history, stored.problem, stored.spec["strategy"]
    raise InvalidInput(f"to_optuna takes an Optimizer, a History, or the URL or file of a storage; got {source!r}.")


def from_optuna(study: optuna.Study, problem: Problem) -> History:
    """Return the finished trials of an Optuna study as a history, for `opt.add_all`, which takes the complete ones.

    Parameters are matched by name; a fidelity that a trial lacks is that of the target.  The cost is `boca:cost`, or
    the declared one, or the seconds of the trial; otherwise NaN, which `add_all` reads as unknown.  If the problem
    learns its cost, `boca:cost` is taken to be in seconds.  A constraint of Optuna is an outcome of its name, if the
    problem limits that: the bound, plus by how much it is broken.
    """
    instance_of(problem, Problem, "problem")
    names = _names(study, problem)
    _refuse_lost_fidelities(study, problem)
    trials = []
    for trial in study.get_trials(deepcopy=False):
        values = trial.values if trial.state == TrialState.COMPLETE else None
        if not trial.state.is_finished() or (values is None and not _is_whole(trial, problem)):
            continue  # running, or failed before it had all of its parameters
        where = f"trial {trial.number} of the study"
        x = {name: trial.params[name] for name in problem.space if name in trial.params}
        z = problem.target | {name: trial.params[name] for name in problem.fidelity if name in trial.params}
        stored = {key: entry for key, entry in trial.user_attrs.get(WHY, {}).items() if key != "claim"}
        fidelity = problem.fidelity.validate(z, f"z of {where}")
        cost = _known_cost(trial, problem, fidelity)
        failed = Trial(
            number=trial.number,
            x=problem.space.validate(x, f"x of {where}"),
            planned=fidelity,
            cost=cost,
            reasons=Reasons.of(reasons(stored, bool(stored), is_queued=False)),
            state="failed",
            seconds=None if problem.has_declared_cost or math.isnan(cost) else cost,
            reason=f"Optuna's trial was {trial.state.name}",
        )
        if values is None or not all(math.isfinite(value) for value in values):
            trials.append(failed)
            continue
        told = replace(failed, notes=trial.user_attrs.get(NOTES, {}))
        trials.append(told.observed({**_outcomes(problem, trial), **dict(zip(names, values, strict=True))}))
    return History(trials)


def _names(study: optuna.Study, problem: Problem) -> list[str]:
    """Return the outcomes that the values of a study are, in its order; the problem must have the same directions."""
    aims = aims_of(study)
    towards = aims.get("direction")
    if "outcomes" not in aims and not problem.objectives:
        if towards != problem.direction:
            raise InvalidInput(
                f"The study is to {towards}, the problem to {problem.direction}. "
                f"Pass a problem with direction={towards!r}."
            )
        return [OBJECTIVE]
    own = dict(problem.objectives)
    if study.metric_names is None and [*aims.get("outcomes", {}).values()] == [*own.values()]:
        return [*own]  # without names, the order counts
    if aims.get("outcomes") != own:
        said = f"outcomes={aims['outcomes']!r}" if "outcomes" in aims else f"direction={towards!r}"
        raise InvalidInput(
            f"The study has {said}, and the problem is to {problem.aims}. Pass a problem with {said}, or name the "
            "objectives with study.set_metric_names."
        )
    return [*aims["outcomes"]]


def _is_whole(trial: FrozenTrial, problem: Problem) -> bool:
    """Whether a trial has every parameter that is active at its point."""
    if problem.space.keys() <= trial.params.keys():
        return True
    try:
        problem.space.validate({name: v for name, v in trial.params.items() if name in problem.space}, "x")
    except InvalidInput:
        return False
    return True


def _refuse_lost_fidelities(study: optuna.Study, problem: Problem) -> None:
    """Refuse a problem without the fidelities of the sampler: every result would count as one at the target."""
    moved = study.sampler.target if isinstance(study.sampler, BocaSampler) else {}
    lost = [name for name in moved if name not in problem.fidelity and name not in problem.space]
    if lost:
        raise InvalidInput(
            f"The problem lacks the fidelities {lost}; it must have all that the study's sampler moves, {list(moved)}. "
            "Add them to the problem, or use opt.add for the trials at the target only."
        )


def _known_cost(trial: FrozenTrial, problem: Problem, z: Point) -> float:
    if COST in trial.user_attrs:
        return float(trial.user_attrs[COST])
    if problem.has_declared_cost:
        return problem.cost(z)
    if trial.datetime_start is None or trial.datetime_complete is None:
        return math.nan
    took = seconds_between(trial.datetime_start, trial.datetime_complete)
    return took if took > 0.0 else math.nan
