"""Runs of a study: what a report may say, what a told result adds to reports, and whether an evaluation goes on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.observation import OBJECTIVE, Observation
from boca.domain.outcomes import checked_notes
from boca.domain.problem import Problem
from boca.domain.runs import RunEvent, Verdict
from boca.domain.space import whole_number
from boca.domain.trial import History, Suggestion, Trial, point_key
from boca.strategies.base import HasKeepGoing
from boca.study.storage import Report
from boca.study.storage.transitions import backward
from boca.study.trial_io import ImportedResult

_ROUNDING = 1e-9  # relative difference of two values of one step that counts as none
_NO_REASONS = {"reason": "The rule gave no reason."}


# Reports --------------------------------------------------------------------------------------------------------------


def checked_step(problem: Problem, trial: Trial, step: object) -> int:
    """Return the step of a report, or refuse it; the trial is as it is stored."""
    if problem.steps is None:
        raise InvalidInput(
            f"Trial {trial.number} reported step {step!r}, and no fidelity of this problem is Steps. Nothing was "
            "changed. Make the fidelity that the evaluation passes through a boca.Steps, or tell the value alone."
        )
    number = whole_number(step, "step")
    planned, reached = problem.step(trial.planned), max(trial.reached, trial.start)
    if number > planned:
        raise InvalidInput(
            f"Trial {trial.number} reported step {number}, and was handed out to end at {problem.steps}={planned}. "
            f"Nothing was changed, and the trial still runs. End the evaluation at step {planned}."
        )
    if number <= reached:
        raise InvalidInput(backward(trial, number, reached))
    return number


def told_at(
    problem: Problem, trial: Trial, step: int, value: Any, noise: Any, seconds: float | None
) -> tuple[Observation, ...]:
    """Return what a report says, or refuse it: the objective comes last."""
    z = problem.at_step(trial.planned, step)
    try:
        told = problem.returned(value, z).values
    except InvalidInput as error:
        raise InvalidInput(
            f"Trial {trial.number}, step {step}: {error} Nothing was changed, and the trial still runs. Leave the "
            "report out, or type opt.fail(trial, reason)."
        ) from None
    known = problem.variances(noise)
    ordered = sorted(told, key=lambda name: name == OBJECTIVE)
    return tuple(Observation(z, told[name], known.get(name), seconds, name) for name in ordered)


def unless_known(problem: Problem, history: History, trial: Trial, report: Report) -> tuple[Report, RunEvent | None]:
    """Return the report without what an earlier attempt, or a trial that this one continues, has told of its step.

    The first value stays.  One that differs by more than rounding is an event, once per trial.
    """
    chain = history.chain(trial)
    before = {o.outcome: o.value for t in chain for o in t.observations if problem.step(o.z) == report.step}
    if not before:
        return report, None
    again = {o.outcome: o.value for o in report.told}
    has_moved = any(not same(before[name], again[name]) for name in before.keys() & again.keys())
    if not has_moved or any(event.kind == "differs" for event in trial.events):
        return replace(report, told=()), None
    values = {"before": before.get(OBJECTIVE), "again": again.get(OBJECTIVE)}
    return replace(report, told=()), RunEvent("differs", report.step, why=values)


def same(one: float, other: float) -> bool:
    """Whether two values of one step differ by rounding at most."""
    return math.isclose(one, other, rel_tol=_ROUNDING, abs_tol=1e-300)


def last_step(problem: Problem, trial: Trial) -> int:
    """Return the last step that any attempt of a trial has reported; 0 if none was."""
    return max((problem.step(told.z) for told in trial.observations), default=0)


# Whether to go on -----------------------------------------------------------------------------------------------------


def verdict(
    rules: Sequence[object], problem: Problem, history: History, trial: Trial, rng: np.random.Generator
) -> Verdict:
    """Return whether a running trial should go on: the first of the rules that has an answer gives it."""
    for rule in rules:
        if isinstance(rule, HasKeepGoing):
            said = rule.keep_going(problem, history, trial, rng)
            return said if isinstance(said, Verdict) else Verdict(bool(said), {} if said else _NO_REASONS)
    return Verdict(True)


def decided_again(
    rules: Sequence[object], problem: Problem, history: History, trial: Trial, seed: int
) -> Verdict | None:
    """Return what the rules say of a stopped trial, from what the decision to stop it read; None if it was not stopped.

    With the rules of the study it is the same decision, with the same reasons.
    """
    stop = trial.stop
    if stop is None or stop.seen is None:
        return None
    past = history.as_of(stop.seen)
    running = replace(past[trial.number], reached=stop.step)
    return verdict(rules, problem, past.replaced(running), running, decision_rng(seed, running))


def has_rule(rules: Sequence[object]) -> bool:
    """Whether anything says when a run is to be stopped."""
    return any(isinstance(rule, HasKeepGoing) for rule in rules)


def decision_rng(seed: int, trial: Trial) -> np.random.Generator:
    """Return the random stream of the decision after a trial's last report."""
    return np.random.default_rng([seed, trial.number, trial.reached])


# Continuing -----------------------------------------------------------------------------------------------------------


def continued(problem: Problem, history: History, suggestion: Suggestion) -> Trial | None:
    """Return the trial that a suggestion continues, None if it begins from scratch; refuse what cannot be continued."""
    number = suggestion.continues
    if number is None:
        return None
    said = f"The strategy continues trial {number!r}"
    if problem.steps is None:
        raise InvalidInput(f"{said}, and no fidelity of this problem is Steps.")
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < len(history):
        raise InvalidInput(f"{said}, and this study has {len(history)} trials.")
    before = history[number]
    if before.state != "complete" or before.checkpoint is None:
        raise InvalidInput(f"{said}, which is {before.state} and has the checkpoint {before.checkpoint!r}.")
    others = problem.at_step(before.planned, 0), problem.at_step(suggestion.z, 0)
    if point_key(before.x) != point_key(suggestion.x) or others[0] != others[1]:
        raise InvalidInput(
            f"{said}, which is at x={before.x!r}, z={before.planned!r}; got x={suggestion.x!r}, z={suggestion.z!r}. "
            f"Only {problem.steps!r} may differ."
        )
    if problem.step(suggestion.z) <= max(before.saved, problem.step(before.z)):
        raise InvalidInput(
            f"{said} to {problem.steps}={problem.step(suggestion.z)}, and that ended at {problem.step(before.z)}, with "
            f"a checkpoint at {before.saved}. The next step must be beyond both."
        )
    return before


def from_checkpoint(draft: Trial, before: Trial | None) -> Trial:
    """Return a draft that goes on from the checkpoint of a trial, if it continues one."""
    if before is None:
        return draft
    event = RunEvent("continued", before.saved, path=before.checkpoint)
    going_on = replace(draft, continues=before.number, start=before.saved, reached=before.saved)
    return going_on.happened(event)


# Results after reports ------------------------------------------------------------------------------------------------


def ended(problem: Problem, trial: Trial) -> Trial | None:
    """Return a running trial as complete at its last report; None if it has not reported the objective."""
    if not any(told.outcome == OBJECTIVE for told in trial.observations):
        return None
    return replace(trial, state="complete", reason=None)


def is_over(trial: Trial) -> bool:
    """Whether a running trial has ended where its last report lies: at the planned step, or because it was stopped."""
    return trial.stop is not None or trial.observations[-1].z == trial.planned


def joined(problem: Problem, ended: Trial, values: Mapping[str, float], variances: Mapping[str, float]) -> Trial:
    """Return a trial that ended at its last report with the result that was told of it.

    The report stays, and a value that differs from it by more than rounding is an event.
    """
    z = ended.z
    last = {o.outcome: o.value for o in ended.observations if o.z == z}
    new = {name: value for name, value in values.items() if name not in last}
    told = [Observation(z, value, variances.get(name), None, name) for name, value in new.items()]
    complete = replace(ended, observations=(*ended.observations, *told))
    moved = any(not same(values[name], last[name]) for name in values.keys() & last.keys())
    if not moved or any(event.kind == "differs" for event in ended.events):
        return complete
    said = {"before": last.get(OBJECTIVE), "again": values.get(OBJECTIVE)}
    return complete.happened(RunEvent("differs", problem.step(z), why=said))


def difference_in_words(trial: Trial, event: RunEvent) -> str:
    """Return what a step that has two values means for the study."""
    before, again = event.why.get("before"), event.why.get("again")
    return (
        f"Trial {trial.number} has told two values of step {event.step}: {before!r}, and later {again!r}. The first "
        "one is kept. Check that the evaluation continues exactly from its checkpoint."
    )


def checkpoint(problem: Problem, trial: Trial, step: object, path: str, seconds: float | None) -> RunEvent:
    """Return the checkpoint that a running evaluation has left, or refuse it."""
    if problem.steps is None:
        raise InvalidInput(
            f"Trial {trial.number} left a checkpoint, and no fidelity of this problem is Steps. Nothing was changed. "
            "Make the fidelity that the evaluation passes through a boca.Steps."
        )
    number, planned = whole_number(step, "step"), problem.step(trial.planned)
    if not max(trial.start, 1) <= number <= planned:
        raise InvalidInput(
            f"Trial {trial.number} left a checkpoint of step {number}, and runs from {trial.start} to {planned}. "
            "Nothing was changed. Give the step after which it was saved."
        )
    return RunEvent("checkpoint", number, path=path, seconds=seconds)


# Imports --------------------------------------------------------------------------------------------------------------


def is_curve(value: object) -> TypeGuard[Mapping[int, Any]]:
    """Whether a value is one of many by step: names of outcomes are texts."""
    return isinstance(value, Mapping) and bool(value) and not any(isinstance(key, str) for key in value)


def curve(
    problem: Problem,
    x: Mapping[str, Any],
    z: Mapping[str, Any] | None,
    values: Mapping[int, Any],
    cost: float | None,
    noise: Any,
    notes: Mapping[str, Any] | None,
) -> ImportedResult:
    """Return a curve as an imported result at its last step, with the others before it."""
    if problem.steps is None:
        raise InvalidInput(
            f"value is {values!r}, one by step, and no fidelity of this problem is Steps. Nothing was changed. "
            "Make the fidelity that the evaluation passed through a boca.Steps, or give one number."
        )
    steps = sorted(whole_number(step, f"a step of {problem.steps!r}") for step in values)
    given = {name: value for name, value in (problem.target if z is None else z).items() if name != problem.steps}
    point = problem.space.validate(x, "x")
    fidelities = [problem.with_all_steps.validate({**given, problem.steps: step}, "z") for step in steps]
    told = zip(fidelities, steps, strict=True)
    known = [ImportedResult(point, fidelity, values[step], None, noise) for fidelity, step in told]
    return replace(known[-1], cost=cost, notes=checked_notes(notes), reports=tuple(known[:-1]))


def imported_reports(problem: Problem, reports: Sequence[ImportedResult]) -> tuple[Observation, ...]:
    """Return what an imported curve says before its last step."""
    found: list[Observation] = []
    for report in reports:
        values, known = problem.returned(report.told(problem), None).values, problem.variances(report.noise)
        ordered = sorted(values, key=lambda name: name == OBJECTIVE)
        found += [Observation(report.z, values[n], known.get(n), None, n) for n in ordered]
    return tuple(found)
