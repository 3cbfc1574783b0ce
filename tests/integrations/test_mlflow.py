"""The callback for MLflow, with a store in a database of SQLite, which takes seconds to make: one for all tests."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput, ObjectiveFailed

pytest.importorskip("mlflow", reason="MLflow is not installed: pip install 'boca[mlflow]'")

pytestmark = pytest.mark.filterwarnings("default")  # of MLflow's own

SPACE = boca.Space(a=boca.Float(0.0, 1.0), kind=boca.Choice(["round", "square"]))
FIDELITY = boca.Space(n=boca.Int(1, 10))


def objective(x: dict[str, Any], z: dict[str, Any]) -> float:
    if x["a"] > 0.8:
        raise ValueError("too far")
    return -((x["a"] - 0.3) ** 2) - 1.0 / z["n"]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("mlflow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
        patch.chdir(folder)
        yield f"sqlite:///{folder / 'mlflow.db'}"


def run(logger: Any, *, trials: int = 8, seed: int = 0, **settings: Any) -> boca.Result:
    return boca.maximize(
        objective,
        SPACE,
        FIDELITY,
        cost=lambda z: z["n"],
        budget=boca.targets(4),
        strategy=boca.RandomSearch(),
        seed=seed,
        stop=lambda history: len(history) >= trials,
        callbacks=logger,
        **settings,
    )


def runs_of(uri: str, experiment: str) -> dict[str, Any]:
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    found = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return {run.info.run_id: run for run in found}


def children(runs: dict[str, Any], parent: str) -> list[Any]:
    nested = [r for r in runs.values() if r.data.tags.get("mlflow.parentRunId") == parent]
    return sorted(nested, key=lambda r: int(r.data.tags["boca.number"]))


def test_every_trial_is_a_run_nested_in_that_of_the_study(uri: str) -> None:
    from boca.integrations.mlflow import MLflowLogger

    logger = MLflowLogger("svm", tracking_uri=uri)
    result = run(logger, trials=4, name="first")
    runs = runs_of(uri, "svm")
    study = runs[logger.run_id]
    assert study.info.run_name == "first"
    assert study.info.status == "FINISHED"
    assert study.data.params == {"direction": "maximize", "strategy": "RandomSearch", "seed": "0", "target.n": "10"}
    assert study.data.metrics["spent"] == result.spent
    assert study.data.metrics["best"] == result.value
    nested = children(runs, logger.run_id)
    assert len(nested) == len(result.history) == len(runs) - 1
    for logged, trial in zip(nested, result.history, strict=True):
        assert logged.data.params == {name: str(value) for name, value in {**trial.x, **trial.z}.items()}
        assert logged.data.metrics["cost"] == trial.cost
        assert logged.data.metrics.get("value") == trial.value
        assert logged.data.tags["boca.state"] == trial.state
        assert logged.data.tags["boca.reason"] == trial.why["reason"]
        assert logged.data.tags["boca.phase"] == trial.phase
        assert logged.data.tags["boca.at_target"] == str(trial.z == {"n": 10})


def test_a_failed_trial_is_a_failed_run_with_its_reason(uri: str) -> None:
    from boca.integrations.mlflow import MLflowLogger

    logger = MLflowLogger(tracking_uri=uri)
    problem = boca.Problem(SPACE, FIDELITY, cost=lambda z: z["n"])
    opt = boca.Optimizer(problem, budget=boca.targets(4), seed=1)
    logger(opt, opt.fail(opt.ask(), "no memory"))
    logger(opt, opt.tell(opt.ask(), 2.0))
    failed, told = children(runs_of(uri, "boca"), logger.run_id)
    assert (failed.info.status, told.info.status) == ("FAILED", "FINISHED")
    assert failed.data.tags["boca.failure"] == "no memory"
    assert "value" not in failed.data.metrics
    assert told.data.metrics["value"] == 2.0
    assert "boca.failure" not in told.data.tags


def test_a_study_that_an_error_ended_is_a_failed_run(uri: str) -> None:
    from boca.integrations.mlflow import MLflowLogger

    def always(x: dict[str, Any]) -> float:
        raise ValueError("always")

    logger = MLflowLogger("ends", tracking_uri=uri)
    with pytest.raises(ObjectiveFailed):
        boca.maximize(always, SPACE, budget=boca.targets(9), strategy=boca.RandomSearch(), seed=0, callbacks=logger)
    assert runs_of(uri, "ends")[logger.run_id].info.status == "FAILED"
    run(logger, trials=1)
    assert runs_of(uri, "ends")[logger.run_id].info.status == "FINISHED"
    logger.fail(KeyboardInterrupt())
    logger.close()
    assert runs_of(uri, "ends")[logger.run_id].info.status == "KILLED"


def test_a_run_that_is_given_is_gone_on_with_and_left_open(uri: str) -> None:
    import mlflow

    from boca.integrations.mlflow import MLflowLogger

    mlflow.set_tracking_uri(uri)
    mlflow.set_experiment("mine")
    with contextlib.ExitStack() as after:
        after.callback(mlflow.set_tracking_uri, None)
        mine = after.enter_context(mlflow.start_run())
        result = run(MLflowLogger(tracking_uri=uri, run_id=mine.info.run_id), trials=3)
        assert mlflow.active_run().info.run_id == mine.info.run_id
        runs = runs_of(uri, "mine")
        assert runs[mine.info.run_id].info.status == "RUNNING"
        assert len(children(runs, mine.info.run_id)) == len(result.history) == 3


def test_a_trial_lasts_as_long_as_it_took(uri: str) -> None:
    from boca.integrations.mlflow import MLflowLogger

    logger = MLflowLogger(tracking_uri=uri)
    opt = boca.Optimizer(boca.Problem(SPACE, FIDELITY, cost=lambda z: z["n"]), budget=boca.targets(4), seed=1)
    logger(opt, opt.tell(opt.ask(), 1.0, seconds=12.5))
    (logged,) = children(runs_of(uri, "boca"), logger.run_id)
    assert math.isclose(logged.info.end_time - logged.info.start_time, 12500, abs_tol=1)
    assert logged.data.metrics["seconds"] == 12.5


def test_an_experiment_needs_a_name() -> None:
    from boca.integrations.mlflow import MLflowLogger

    with pytest.raises(InvalidInput, match="experiment is ''"):
        MLflowLogger("")


def test_several_objectives_are_logged_by_name(uri: str) -> None:
    from boca.integrations.mlflow import MLflowLogger

    logger = MLflowLogger("two", tracking_uri=uri)
    result = boca.optimize(
        lambda x: {"loss": x["a"], "size": 1 - x["a"]},
        boca.Space(a=boca.Float(0, 1)),
        outcomes={"loss": "minimize", "size": "minimize"},
        strategy=boca.RandomSearch(),
        budget=boca.targets(3),
        seed=0,
        callbacks=logger,
    )
    runs = runs_of(uri, "two")
    study = runs[logger.run_id]
    assert study.data.params["direction"] == "minimize loss, minimize size"
    assert study.data.metrics["front"] == len(result.front) == 3
    for logged, trial in zip(children(runs, logger.run_id), result.history, strict=True):
        assert logged.data.metrics["outcome.loss"] == trial.outcomes["loss"]
        assert "value" not in logged.data.metrics


def test_the_reports_of_a_training_are_at_their_own_steps(uri: str) -> None:
    from mlflow.tracking import MlflowClient

    def training(x: dict[str, Any], z: dict[str, Any], run: boca.Run) -> None:
        for step in run.steps():
            run.report(step, 1.0 / step)

    from boca.integrations.mlflow import MLflowLogger

    logger = MLflowLogger("steps", tracking_uri=uri)
    boca.minimize(
        training,
        SPACE,
        boca.Space(epochs=boca.Steps(1, 4)),
        cost=lambda z: z["epochs"],
        budget=boca.targets(1),
        strategy=boca.GPUCB(),
        seed=0,
        callbacks=logger,
    )
    (trial,) = [run for run in runs_of(uri, "steps").values() if "boca.number" in run.data.tags]
    history = MlflowClient(tracking_uri=uri).get_metric_history(trial.info.run_id, "value")
    assert [(metric.step, metric.value) for metric in history] == [(step, 1.0 / step) for step in range(1, 5)]
    assert trial.data.metrics["cost"] == 4.0
