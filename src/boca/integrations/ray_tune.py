"""Ray Tune: a search algorithm whose suggestions include their fidelity, with a budget of boca."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from boca.domain.budget import Limit
from boca.domain.errors import BocaError, InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import finite_number
from boca.domain.trial import Trial
from boca.strategies import Strategy
from boca.study.optimizer import Optimizer
from boca.study.storage import Memory

try:
    from ray.tune.search import Searcher
except ImportError as missing:
    raise BocaError("boca.integrations.ray_tune needs Ray Tune. Run `pip install 'boca[ray]'`.") from missing

log = logging.getLogger("boca")


class BocaSearch(Searcher):
    """Suggest configurations of Ray Tune with a strategy of boca: x and z, by their names, in one mapping.

    A trainable reads its fidelity from its config, `config["epochs"]`, and reports `metric`; the last report counts.
    Outcomes that `problem.subject_to` limits are reported beside it, under their names.
    The search ends when the budget is spent, or after `num_samples`.  The results are in `search.optimizer`.

    If a fidelity is `boca.Steps`, every report counts: at the step that it names, as in
    `tune.report({"loss": 0.3, "epochs": 4})`, or else at its own number.  A trial that a scheduler stops is then
    complete at its last report.  Without `Steps`, use no scheduler that stops trials early: the value of a stopped
    trial would count as one at its full fidelity.

    Args:
        problem: What to search.
        metric: The name of the value that the trainable reports.
        budget: As in `boca.Optimizer`.
        strategy: As in `boca.Optimizer`.
        seed: As in `boca.Optimizer`.
        storage: As in `boca.Optimizer`.
        name: As in `boca.Optimizer`.
    """

    def __init__(
        self,
        problem: Problem,
        *,
        metric: str,
        budget: Limit | float | None,
        strategy: Strategy | None = None,
        seed: int | None = None,
        storage: str | None = None,
        name: str = "study",
    ) -> None:
        if not isinstance(metric, str) or not metric:
            raise InvalidInput(f"metric is {metric!r}, and must be the name of a reported value, such as 'loss'.")
        if isinstance(problem, Problem) and problem.objectives:
            raise InvalidInput(
                f"outcomes has the objectives {list(problem.objectives)}, and Ray Tune's search reports one metric. "
                "Use boca.optimize with executor=ray, or keep one objective."
            )
        if isinstance(problem, Problem) and metric in problem.subject_to:
            raise InvalidInput(
                f"metric is {metric!r}, which subject_to limits; one value is optimized or limited, not both. "
                "Name the reported value that is optimized, such as metric='loss'."
            )
        self.optimizer = Optimizer(problem, budget=budget, strategy=strategy, seed=seed, storage=storage, name=name)
        self._settings: dict[str, Any] = {"budget": budget, "strategy": strategy, "storage": storage, "name": name}
        self._live: dict[str, int] = {}  # Ray's name of a trial -> its number
        super().__init__(metric=metric, mode="max" if problem.direction == "maximize" else "min")

    # What Ray calls -------------------------------------------------------------------------------------------------

    def set_search_properties(self, metric: str | None, mode: str | None, config: dict[str, Any], **spec: Any) -> bool:
        """Check the settings of the Tuner; the problem defines the space, so search spaces of Ray are refused."""
        for what, told, own in (("metric", metric, self.metric), ("mode", mode, self.mode)):
            if told is not None and told != own:
                raise InvalidInput(
                    f"TuneConfig has {what}={told!r}, and the search has {own!r}. Leave it out of TuneConfig."
                )
        return False

    def suggest(self, trial_id: str) -> Any:
        """Return a configuration, None for "not now", or Ray's value for the end."""
        trial = self.optimizer.ask()
        if trial is None:
            return None if self._live else Searcher.FINISHED
        self._live[trial_id] = trial.number
        return {**trial.x, **trial.z}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        """Take a report of a trial that passes through steps."""
        number, problem = self._live.get(trial_id), self.optimizer.problem
        if number is None or problem.steps is None or result.get(self.metric) is None:
            return
        trial = self.optimizer.storage.read().history[number]
        step = result.get(problem.steps, result.get("training_iteration"))
        if not isinstance(step, int) or not max(trial.reached, trial.start) < step <= problem.step(trial.planned):
            return  # a step that was reported before, or is beyond what was suggested, says nothing new
        try:
            self.optimizer.report(number, step, self._told(result))
        except InvalidInput as refused:
            log.warning("%s", refused)

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        number = self._live.get(trial_id)
        if number is None:
            log.warning("Ray's trial %s is not one of this search, or already has a result; it is ignored.", trial_id)
            return
        seconds = (result or {}).get("time_total_s")
        try:
            if error or not result:
                raise InvalidInput("The trial ended without a result.")
            told = self._told(result)
            self.optimizer.flush()
            self.on_trial_result(trial_id, result)  # of the last report, Ray may tell here alone
            has_reports = bool(self.optimizer.storage.read().history[number].observations)
            self.optimizer.tell(number, None if has_reports else told, seconds=seconds)
        except InvalidInput as refused:
            self.optimizer.fail(number, str(refused), seconds=seconds)
        del self._live[trial_id]

    def _told(self, result: Mapping[str, Any]) -> float | dict[str, Any]:
        """Return the metric of a result, with the outcomes that have limits."""
        problem = self.optimizer.problem
        value = finite_number(result.get(self.metric), f"The reported {self.metric!r}")
        limited = {name: result[name] for name in problem.subject_to if name in result}
        return {problem.objective or self.metric: value, **limited} if problem.subject_to else value

    def add_evaluated_point(
        self,
        parameters: dict[str, Any],
        value: float,
        error: bool = False,
        pruned: bool = False,
        intermediate_values: list[float] | None = None,
    ) -> None:
        """Import a result; one that failed or was stopped early is ignored.

        Args:
            parameters: x and z by name.
            value: The value of the metric.
            error: Whether the trial failed.
            pruned: Whether the trial was stopped early.
            intermediate_values: Ignored.
        """
        if not error and not pruned:
            problem = self.optimizer.problem
            x, z = ({name: parameters.get(name) for name in part} for part in (problem.space, problem.fidelity))
            self.optimizer.add(x, z, value)

    def save(self, checkpoint_path: str) -> None:
        Path(checkpoint_path).write_bytes(pickle.dumps(self._state()))

    def restore(self, checkpoint_path: str) -> None:
        """Resume where the search was saved; of a study in a storage, only Ray's names of trials are restored."""
        self._resume(pickle.loads(Path(checkpoint_path).read_bytes()))

    # Saving and restoring -------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        rest = {key: value for key, value in self.__dict__.items() if key != "optimizer"}
        return {"rest": rest, "problem": self.optimizer.problem, "state": self._state()}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        self.__dict__.update(pickled["rest"])
        self.optimizer = Optimizer(pickled["problem"], seed=pickled["state"]["seed"], **self._settings)
        self._resume(pickled["state"])

    def _state(self) -> dict[str, Any]:
        now = self.optimizer.storage.read()
        is_ours = self._settings["storage"] is None
        trials = list(now.history) if is_ours else None
        queue = [(queued.x, queued.z) for queued in now.queue] if is_ours else None
        return {"trials": trials, "queue": queue, "live": self._live, "seed": self.optimizer.seed}

    def _resume(self, state: dict[str, Any]) -> None:
        self._live = dict(state["live"])
        self.optimizer.seed = state["seed"]
        if state["trials"] is not None:
            self.optimizer.storage = _replayed(state["trials"])
            for x, z in state["queue"]:
                self.optimizer.enqueue(x, z)


def _replayed(trials: list[Trial]) -> Memory:
    """Return a study in memory in which the same events happened in the same order."""
    memory = Memory()
    events = [(t.asked, t) for t in trials] + [(t.told, t) for t in trials if t.told not in (None, t.asked)]
    for event, trial in sorted(events, key=lambda pair: pair[0] or 0):
        if trial.asked == trial.told:
            memory.add(trial)
        elif event == trial.told:
            memory.finish(trial)
        else:
            draft = replace(trial, state="running", observations=(), reason=None, told=None, output=None)
            memory.claim(replace(draft, seen=memory.read().event))
    return memory
