"""The tools, each a function whose signature and words are what an agent reads.

A tool that changes nothing reads the database of a study; the others go through its `Optimizer`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeAlias, get_args

from pydantic import Field

from boca.agents import answers
from boca.agents.studies import Studies
from boca.domain.errors import InvalidInput, StorageFailed
from boca.domain.space import whole_number
from boca.domain.trial import State

_MAX_TRIALS = 1_000  # in one answer
_NUMBER_OR_NUMBERS: dict[str, Any] = {"anyOf": [{"type": "number"}, {"type": "object"}, {"type": "null"}]}

_Study: TypeAlias = Annotated[str | None, Field(description="The study; needed if the server has more than one.")]
_Numbers: TypeAlias = Annotated[Any, Field(json_schema_extra=_NUMBER_OR_NUMBERS)]
_Value: TypeAlias = Annotated[_Numbers, Field(description="What was observed: a number, or numbers by outcome.")]
_Noise: TypeAlias = Annotated[_Numbers, Field(description="The variance of the value, if it is known.")]
_Running: TypeAlias = Annotated[int, Field(description="The number of a running trial.")]
_Cost: TypeAlias = Annotated[float | None, Field(description="What it cost, in place of what was expected.")]
_Seconds: TypeAlias = Annotated[float | None, Field(description="How long it took; by default the time since ask.")]
_Output: TypeAlias = Annotated[str | None, Field(description="What the evaluation printed, kept with the trial.")]
_Notes: TypeAlias = Annotated[
    dict[str, Any] | None, Field(description="Further values by name: stored, not optimized.")
]
_X: TypeAlias = Annotated[dict[str, Any], Field(description="The point, by name of parameter.")]
_Z: TypeAlias = Annotated[dict[str, Any] | None, Field(description="The fidelity; the target if it is left out.")]
_Last: TypeAlias = Annotated[int, Field(description="How many trials, from the end.")]
_Best: TypeAlias = Annotated[int | None, Field(description="Only this many of the best at the target, best first.")]
_State: TypeAlias = Annotated[str | None, Field(description="Only trials that are running, complete or failed.")]


def reading(studies: Studies) -> list[Callable[..., Any]]:
    """Return the tools that change nothing."""

    def list_studies() -> list[dict[str, Any]]:
        """List the studies: how many trials each has, and its best value at the target."""
        return answers.listing(studies)

    def status(study: _Study = None) -> dict[str, Any]:
        """Say what a study searches (space, fidelities, target, limits), what it has found, spent and warned of."""
        place, name = studies.find(study)
        view = studies.view(name)
        return answers.status(view, answers.queued(place, name))

    def history(
        study: _Study = None,
        last: _Last = 20,
        best: _Best = None,
        state: _State = None,
    ) -> dict[str, Any]:
        """Return trials with their points, fidelities, values and the reasons for which they were chosen."""
        if state is not None and state not in get_args(State):
            raise InvalidInput(f"state is {state!r}, and must be one of {', '.join(get_args(State))}.")
        for what, count in (("last", last), ("best", 1 if best is None else best)):
            if not 1 <= whole_number(count, what) <= _MAX_TRIALS:
                raise InvalidInput(f"{what} is {count!r}, and must be from 1 to {_MAX_TRIALS}.")
        return answers.history(studies.view(study), last=last, best=best, state=state)

    def why(trial: Annotated[int, Field(description="Its number.")], study: _Study = None) -> dict[str, Any]:
        """Say why a trial was chosen: the sentence, and every number behind the decision."""
        view = studies.view(study)
        if not 0 <= trial < len(view.history):
            raise InvalidInput(f"There is no trial {trial}: the study has {len(view.history)}, numbered from 0.")
        return answers.why(view.history[trial], view.problem)

    def recommend(study: _Study = None) -> dict[str, Any]:
        """Return the point to use at the target, what is expected there, and whether it was run there."""
        return answers.recommended(studies.view(study))

    return [list_studies, status, history, why, recommend]


def writing(studies: Studies) -> list[Callable[..., Any]]:
    """Return the tools that change a study."""

    def changed(study: str | None, change: Callable[[Any], Any]) -> Any:
        optimizer = studies.optimizer(study)
        try:
            return change(optimizer)
        except StorageFailed:
            studies.forget(study)
            raise

    def ask(
        study: _Study = None, n: Annotated[int, Field(description="How many trials to run at a time.")] = 1
    ) -> dict[str, Any]:
        """Get the next trials: evaluate each at its point x and fidelity z, then tell the value."""

        def change(opt: Any) -> dict[str, Any]:
            trials = opt.ask(n)
            answer = {"trials": [answers.trial_of(trial, opt.problem) for trial in trials]}
            if trials:
                return answer
            waits = "Tell the running trials first." if opt.running else "The study is done."
            return answer | {"note": f"Nothing affordable is left. {waits}"}

        return dict(changed(study, change))

    def tell(
        trial: _Running,
        value: _Value,
        study: _Study = None,
        cost: _Cost = None,
        noise: _Noise = None,
        seconds: _Seconds = None,
        output: _Output = None,
        notes: _Notes = None,
    ) -> dict[str, Any]:
        """Store the result of a running trial."""

        def change(opt: Any) -> dict[str, Any]:
            told = opt.tell(trial, value, cost=cost, noise=noise, seconds=seconds, output=output, notes=notes)
            return answers.trial_of(told, opt.problem)

        return dict(changed(study, change))

    def fail(
        trial: _Running,
        reason: Annotated[str, Field(description="Why there is no value, in a sentence.")],
        study: _Study = None,
        seconds: _Seconds = None,
        output: _Output = None,
    ) -> dict[str, Any]:
        """Store that a running trial failed. It is charged, and its point is avoided."""

        def change(opt: Any) -> dict[str, Any]:
            return answers.trial_of(opt.fail(trial, reason, seconds=seconds, output=output), opt.problem)

        return dict(changed(study, change))

    def enqueue(x: _X, z: _Z = None, study: _Study = None) -> dict[str, Any]:
        """Queue a point that you want to be tried: the next ask returns it."""
        changed(study, lambda opt: opt.enqueue(x, z))
        place, name = studies.find(study)
        return {"queued": answers.queued(place, name)}

    def add_result(
        x: _X,
        value: _Value,
        z: _Z = None,
        study: _Study = None,
        cost: _Cost = None,
        noise: _Noise = None,
    ) -> dict[str, Any]:
        """Import a result that was observed before, outside of this study; it is not charged to the budget."""

        def change(opt: Any) -> dict[str, Any]:
            return answers.trial_of(opt.add(x, z, value, cost, noise=noise), opt.problem)

        return dict(changed(study, change))

    return [ask, tell, fail, enqueue, add_result]
