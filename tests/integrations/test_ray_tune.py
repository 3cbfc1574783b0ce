"""The search algorithm for Ray Tune: most of it without a cluster, and one run with one."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'boca[ray]'")
pytest.importorskip("ray.tune", reason="Ray Tune is not installed: pip install 'boca[ray]'")

pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own


def problem(**settings: Any) -> boca.Problem:
    space = boca.Space(a=boca.Float(0.0, 1.0), kind=boca.Choice(["round", "square"]))
    settings = {"cost": lambda z: z["n"], **settings}
    return boca.Problem(space, boca.Space(n=boca.Int(1, 10)), **settings)


def value(config: dict[str, Any]) -> float:
    return -((config["a"] - 0.3) ** 2) - 1.0 / config["n"] - (config["kind"] == "square")


def search(**settings: Any) -> Any:
    from boca.integrations.ray_tune import BocaSearch

    return BocaSearch(problem(), **({"metric": "score", "budget": boca.targets(5), "seed": 0} | settings))


def drive(searcher: Any, trials: int) -> list[dict[str, Any]]:
    """Run some trials as Tune does."""
    configs = []
    for _ in range(trials):
        name = f"t{len(searcher.optimizer.history)}"
        configs.append(searcher.suggest(name))
        searcher.on_trial_complete(name, {"score": value(configs[-1]), "time_total_s": 0.5})
    return configs


@pytest.mark.slow
def test_a_tuner_runs_to_the_end_of_the_budget_and_not_further(tmp_path: Path) -> None:
    from ray import tune

    def score(config: dict[str, Any]) -> dict[str, float]:  # travels by value, as it is not of this module
        return {"score": -((config["a"] - 0.3) ** 2) - 1.0 / config["n"] - (config["kind"] == "square")}

    searcher = search(budget=boca.targets(1.5), seed=1)
    ray.init(
        address="local",
        _node_ip_address="127.0.0.1",
        include_dashboard=False,
        num_cpus=2,
        object_store_memory=100 * 2**20,
        log_to_driver=False,
        logging_level="ERROR",
    )
    try:
        tuner = tune.Tuner(
            score,
            tune_config=tune.TuneConfig(
                search_alg=searcher, num_samples=100, max_concurrent_trials=2, reuse_actors=True
            ),
            run_config=tune.RunConfig(storage_path=str(tmp_path), name="run", verbose=0),
        )
        results = tuner.fit()
    finally:
        ray.shutdown()
    history = searcher.optimizer.history
    assert 0 < len(results) == len(history) < 100
    assert all(trial.state == "complete" for trial in history)
    assert all(trial.value == pytest.approx(value({**trial.x, **trial.z})) for trial in history)
    assert searcher.optimizer.spent <= 15
    assert {trial.z["n"] for trial in history} - {10}  # fidelities move,
    assert searcher.optimizer.best.z == {"n": 10}  # and the best is of the target
    again = search()
    again.restore_from_dir(str(tmp_path / "run"))
    assert list(again.optimizer.history) == list(history)


def test_a_configuration_has_the_fidelity_by_its_name() -> None:
    config = search().suggest("t0")
    assert set(config) == {"a", "kind", "n"}
    assert isinstance(config["n"], int)


def test_the_end_of_the_budget_is_told_only_when_nothing_is_out() -> None:
    searcher = search(budget=boca.targets(1), strategy=boca.RandomSearch())
    assert searcher.suggest("t0")["n"] == 10
    assert searcher.suggest("t1") is None
    searcher.on_trial_complete("t0", {"score": 1.0})
    assert searcher.suggest("t1") == "FINISHED"


def test_trials_that_are_out_differ() -> None:
    searcher = search(budget=boca.targets(30))
    drive(searcher, 12)
    out = [tuple(searcher.suggest(f"out{i}").values()) for i in range(4)]
    assert len(set(out)) == 4


@pytest.mark.parametrize(
    ("result", "error"), [(None, True), ({"score": math.nan}, False), ({"loss": 1.0}, False), ({"score": 1.0}, True)]
)
def test_what_has_no_result_has_failed(result: dict[str, Any] | None, error: bool) -> None:
    searcher = search()
    searcher.suggest("t0")
    searcher.on_trial_complete("t0", result, error=error)
    assert [trial.state for trial in searcher.optimizer.history] == ["failed"]


def test_a_second_result_of_a_trial_changes_nothing() -> None:
    searcher = search()
    searcher.suggest("t0")
    searcher.on_trial_complete("t0", {"score": 1.0})
    searcher.on_trial_complete("t0", {"score": 2.0})
    searcher.on_trial_complete("another", {"score": 2.0})
    assert [trial.value for trial in searcher.optimizer.history] == [1.0]


def test_a_restored_search_goes_on_as_the_first_would_have(tmp_path: Path) -> None:
    first = search(seed=3, budget=boca.targets(30))
    drive(first, 8)
    first.suggest("out")
    first.optimizer.add({"a": 0.1, "kind": "round"}, {"n": 2}, 0.5)
    first.optimizer.enqueue({"a": 0.7, "kind": "square"})
    first.save(str(tmp_path / "state.pkl"))

    second = search(seed=99, budget=boca.targets(30))
    second.restore(str(tmp_path / "state.pkl"))
    assert list(second.optimizer.history) == list(first.optimizer.history)
    for searcher in (first, second):
        searcher.on_trial_complete("out", {"score": 0.25, "time_total_s": 0.5})
    expected = drive(first, 3)
    assert expected[0] == {"a": 0.7, "kind": "square", "n": 10}
    assert drive(second, 3) == expected


def test_a_search_travels_by_value() -> None:
    first = search(seed=3)
    drive(first, 6)
    second = ray.cloudpickle.loads(ray.cloudpickle.dumps(first))
    assert drive(second, 2) == drive(first, 2)


def test_a_search_with_a_storage_finds_its_study_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    first = search(storage=url, name="tune")
    drive(first, 3)
    first.suggest("out")
    second = ray.cloudpickle.loads(ray.cloudpickle.dumps(first))
    second.on_trial_complete("out", {"score": 1.0})
    assert [trial.state for trial in first.optimizer.history] == ["complete"] * 4


def test_measured_seconds_are_those_of_ray() -> None:
    from boca.integrations.ray_tune import BocaSearch

    searcher = BocaSearch(problem(cost=None), metric="score", budget=None, seed=0)
    searcher.suggest("t0")
    searcher.on_trial_complete("t0", {"score": 1.0, "time_total_s": 7.5})
    assert searcher.optimizer.history[0].cost == 7.5


def test_a_result_from_elsewhere_is_added() -> None:
    searcher = search()
    searcher.add_evaluated_point({"a": 0.5, "kind": "round", "n": 4}, 0.1)
    searcher.add_evaluated_point({"a": 0.5, "kind": "round", "n": 4}, 0.1, error=True)
    assert [(trial.z, trial.value, trial.added) for trial in searcher.optimizer.history] == [({"n": 4}, 0.1, True)]


def test_what_the_tuner_says_otherwise_is_refused() -> None:
    searcher = search()
    assert searcher.mode == "max"
    assert searcher.set_search_properties("score", "max", {"device": "cpu"}) is False
    with pytest.raises(InvalidInput, match="mode='min', and the search has 'max'"):
        searcher.set_search_properties("score", "min", {})
    with pytest.raises(InvalidInput, match=r"metric=.*, and the search has"):
        searcher.set_search_properties("loss", None, {})
    with pytest.raises(InvalidInput, match=r"metric is .* name of a reported value"):
        search(metric=None)


def test_reported_outcomes_are_held_to_their_limits() -> None:
    searcher = search_of(limited())
    for _ in range(12):
        name = f"t{len(searcher.optimizer.history)}"
        config = searcher.suggest(name)
        searcher.on_trial_complete(name, {"loss": -config["a"], "latency": 30.0 * config["a"], "time_total_s": 0.5})
    history = searcher.optimizer.history
    assert [trial.outcomes["latency"] for trial in history] == [30.0 * trial.x["a"] for trial in history]
    assert 0.3 < searcher.optimizer.best.x["a"] <= 0.4
    assert set(history[-1].why["outcomes"]) == {"latency"}


def test_a_trial_that_does_not_report_its_outcome_has_failed() -> None:
    searcher = search_of(limited())
    searcher.suggest("one")
    searcher.on_trial_complete("one", {"loss": 1.0})
    assert searcher.optimizer.history[0].state == "failed"
    assert "no 'latency'" in searcher.optimizer.history[0].reason


def test_the_metric_is_no_limited_outcome() -> None:
    with pytest.raises(InvalidInput, match="optimized or limited, not both"):
        search_of(limited(), metric="latency")


def test_several_objectives_are_refused() -> None:
    several = boca.Problem(boca.Space(a=boca.Float(0, 1)), outcomes={"loss": "minimize", "size": "minimize"})
    with pytest.raises(InvalidInput, match=r"reports one metric. Use boca.optimize with executor=ray"):
        search_of(several)


def limited() -> boca.Problem:
    limits = {"latency": boca.AtMost(12.0)}
    return boca.Problem(boca.Space(a=boca.Float(0, 1)), direction="minimize", subject_to=limits)


def search_of(of: boca.Problem, metric: str = "loss") -> Any:
    from boca.integrations.ray_tune import BocaSearch

    return BocaSearch(of, metric=metric, budget=boca.targets(20), seed=0)


def test_reports_count_at_their_steps_and_a_stopped_trial_is_complete_there() -> None:
    from boca.integrations.ray_tune import BocaSearch

    training = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Steps(1, 10)), cost=lambda z: z["n"])
    searcher = BocaSearch(training, metric="score", budget=boca.targets(5), seed=0, strategy=boca.GPUCB())
    searcher.suggest("whole")
    for step in range(1, 10):
        searcher.on_trial_result("whole", {"score": step / 10, "training_iteration": step})
    searcher.on_trial_result("whole", {"score": 0.0, "training_iteration": 4})  # told before
    searcher.on_trial_complete("whole", {"score": 1.0, "training_iteration": 10})
    searcher.suggest("stopped")
    searcher.on_trial_result("stopped", {"score": 0.1, "n": 2, "training_iteration": 1})
    searcher.on_trial_complete("stopped", {"score": 0.3, "n": 4, "training_iteration": 2})
    whole, stopped = searcher.optimizer.history
    assert [(o.z["n"], o.value) for o in whole.observations] == [(step, step / 10) for step in range(1, 11)]
    assert (whole.value, whole.cost) == (1.0, 10.0)
    assert [(o.z["n"], o.value) for o in stopped.observations] == [(2, 0.1), (4, 0.3)]
    assert (stopped.z, stopped.value, stopped.cost, stopped.state) == ({"n": 4}, 0.3, 4.0, "complete")


def test_reports_with_limits_and_a_last_one_that_is_no_number() -> None:
    limits = {"latency": boca.AtMost(12.0)}
    of = boca.Problem(
        boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Steps(1, 4)), cost=lambda z: z["n"], subject_to=limits
    )
    searcher = search_of(of)
    searcher.suggest("one")
    searcher.on_trial_result("one", {"loss": 1.0, "latency": 9.0, "training_iteration": 1})
    searcher.on_trial_complete("one", {"loss": 2.0, "latency": 8.0, "training_iteration": 2})
    searcher.suggest("two")
    searcher.on_trial_result("two", {"loss": 1.0, "latency": 9.0, "training_iteration": 1})
    searcher.on_trial_complete("two", {"loss": float("nan"), "latency": 8.0, "training_iteration": 2})
    one, two = searcher.optimizer.history
    assert (one.z, one.value, one.outcomes) == ({"n": 2}, 2.0, {"latency": 8.0})
    assert [(o.outcome, o.value) for o in one.observations[:2]] == [("latency", 9.0), ("value", 1.0)]
    assert (two.state, len(two.observations)) == ("failed", 2)
    assert "'loss'" in two.reason


def test_a_trial_that_the_default_would_stop_counts_with_all_of_its_reports() -> None:
    of = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Steps(1, 9)), cost=lambda z: z["n"])
    searcher = search_of(of)
    for number in range(12):
        config = searcher.suggest(f"t{number}")
        for step in range(1, config["n"] + 1):
            searcher.on_trial_result(f"t{number}", {"loss": -config["a"] - 1 / step, "training_iteration": step})
        searcher.on_trial_complete(f"t{number}", {"loss": -config["a"] - 1 / step, "training_iteration": step})
    assert [len(t.observations) for t in searcher.optimizer.history] == [
        t.planned["n"] for t in searcher.optimizer.history
    ]
    assert {t.state for t in searcher.optimizer.history} == {"complete"}
