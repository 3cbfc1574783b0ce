"""MLflow: a callback that logs every trial as a run, nested in a run for the study."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from boca.domain.errors import BocaError, InvalidInput
from boca.domain.observation import OBJECTIVE
from boca.domain.problem import Problem
from boca.domain.trial import Trial
from boca.study.optimizer import Optimizer

try:
    from mlflow.entities import Metric, Param, RunTag
    from mlflow.tracking import MlflowClient
except ImportError as missing:
    raise BocaError("boca.integrations.mlflow needs MLflow. Run `pip install 'boca[mlflow]'`.") from missing

_MAX_TAG = 5000  # characters that every tracking server takes


class MLflowLogger:
    """Log a study: pass it as `callbacks=`, or call it with the optimizer and a finished trial.

    The run of the study has the target, the strategy and the seed, and as metrics over the trials `best` (at the
    target) and `spent`.  The run of a trial has x and z as parameters, `value`, `outcome.NAME`, `cost` and `seconds` as
    metrics, and its state, its phase, its reason and its notes as tags.  Of an evaluation that passes through steps,
    `value` and `outcome.NAME` have every report, at its own step.  It ends as FAILED if the trial failed, and the
    run of the study if an error ended it.  No run becomes MLflow's active one, so what an objective logs itself is not
    affected.

    `experiment` is the name of MLflow's experiment, created if it does not exist; `tracking_uri` is MLflow's own by
    default.  `run_id` is an existing run of the study: your own, or that of a study that resumes.
    """

    def __init__(self, experiment: str = "boca", *, tracking_uri: str | None = None, run_id: str | None = None) -> None:
        if not isinstance(experiment, str) or not experiment:
            raise InvalidInput(
                f"experiment is {experiment!r}, and must be the name of an MLflow experiment, such as 'boca'."
            )
        self._client = MlflowClient(tracking_uri=tracking_uri)
        self._experiment = experiment
        self._is_mine = run_id is None
        self.run_id = run_id
        """The run of the study; None before the first trial, unless it was given."""
        self._experiment_id = "" if run_id is None else self._client.get_run(run_id).info.experiment_id
        self._status = "FINISHED"

    def __call__(self, optimizer: Optimizer, trial: Trial) -> None:
        if self.run_id is None:
            self._experiment_id = self._experiment_of(self._experiment)
            self.run_id = self._begin(optimizer)
        self._log_trial(optimizer, trial)
        best = optimizer.best
        totals = {"spent": optimizer.spent} | ({} if best is None else {"best": best.value})
        totals |= {"front": float(len(optimizer.front))} if optimizer.problem.objectives else {}
        self._client.log_batch(self.run_id, metrics=_metrics(totals, step=trial.number))

    def fail(self, error: BaseException) -> None:
        """Note that the run of the study failed, or was killed by Ctrl-C; `close` then ends it so."""
        self._status = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"

    def close(self) -> None:
        """End the run of the study, unless it was given: then its owner ends it."""
        status, self._status = self._status, "FINISHED"  # for the next run, if there is one
        if self.run_id is not None and self._is_mine:
            self._client.set_terminated(self.run_id, status=status)

    def _experiment_of(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        return str(self._client.create_experiment(name) if found is None else found.experiment_id)

    def _begin(self, optimizer: Optimizer) -> str:
        run = self._client.create_run(self._experiment_id, run_name=optimizer.name, tags={"boca.study": optimizer.name})
        problem = optimizer.problem
        settings = {
            "direction": problem.aims,
            "strategy": type(optimizer.strategy).__name__,
            "seed": optimizer.seed,
            **{f"target.{name}": value for name, value in problem.target.items()},
        }
        self._client.log_batch(run.info.run_id, params=_params(settings))
        return str(run.info.run_id)

    def _log_trial(self, optimizer: Optimizer, trial: Trial) -> None:
        now = int(1000 * time.time())
        run = self._client.create_run(
            self._experiment_id,
            start_time=now - int(1000 * (trial.seconds or 0.0)),
            run_name=f"{optimizer.name} {trial.number}",
            tags={"mlflow.parentRunId": str(self.run_id)},
        )
        tags = {
            "boca.number": trial.number,
            "boca.state": trial.state,
            "boca.phase": trial.phase,
            "boca.at_target": optimizer.problem.is_target(trial.z),
            "boca.reason": trial.why.get("reason", ""),
            **({"boca.failure": trial.reason} if trial.state == "failed" else {}),
            **{f"boca.note.{name}": value for name, value in trial.notes.items()},
        }
        self._client.log_batch(
            run.info.run_id,
            metrics=_metrics_of(optimizer.problem, trial),
            params=_params({**trial.x, **trial.z}),
            tags=[RunTag(name, str(text)[:_MAX_TAG]) for name, text in tags.items()],
        )
        status = "FAILED" if trial.state == "failed" else "FINISHED"
        self._client.set_terminated(run.info.run_id, status=status, end_time=now)


def _measured(trial: Trial) -> dict[str, float | None]:
    """Return the numbers of a trial: its value, its outcomes by name, its cost and its seconds."""
    own: dict[str, float | None] = {"value": trial.value, "cost": trial.cost, "seconds": trial.seconds}
    return {f"outcome.{name}": value for name, value in trial.outcomes.items()} | own


def _metrics_of(problem: Problem, trial: Trial) -> list[Any]:
    """Return the metrics of a trial; its reports at their steps, if it passes through steps."""
    if problem.steps is None:
        return _metrics(_measured(trial), step=trial.number)
    found = _metrics({"cost": trial.cost, "seconds": trial.seconds}, step=trial.number)
    for told in trial.observations:
        name = "value" if told.outcome == OBJECTIVE else f"outcome.{told.outcome}"
        found += _metrics({name: told.value}, step=problem.step(told.z))
    return found


def _metrics(values: Mapping[str, float | None], *, step: int) -> list[Any]:
    now = int(1000 * time.time())
    return [Metric(name, float(value), now, step) for name, value in values.items() if value is not None]


def _params(values: Mapping[str, Any]) -> list[Any]:
    return [Param(name, str(value)) for name, value in values.items()]
