"""What the sampler suggests, with which trials, and what it refuses."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'boca[optuna]'")

from optuna.distributions import FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from boca.integrations import optuna_bridge  # noqa: E402
from boca.integrations.optuna import BocaPruner, BocaSampler, SpaceChanged, best_at_target, from_optuna  # noqa: E402
from integrations.studies import PROBLEM, SPACE, loss, objective, params_of, phases, sampler, study_of  # noqa: E402


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


# What is suggested ------------------------------------------------------------------------------------------------


def test_fidelities_move_and_the_target_is_hit_exactly() -> None:
    study = study_of(sampler())
    study.optimize(objective, n_trials=25)
    epochs = [trial.params["epochs"] for trial in study.trials]
    assert min(epochs) < 20
    assert epochs.count(50) > 0
    assert "model" in phases(study)
    assert all(trial.params["epochs"] == 50 for trial in study.trials if trial.user_attrs["boca:cost"] == 50.0)
    assert best_at_target(study).value < 0.3


def test_the_best_at_the_target_is_another_thing_than_the_best_trial() -> None:
    """Low fidelities of this objective look better than the target."""

    def flattering(trial: Any) -> float:
        return trial.suggest_float("a", 0.0, 1.0) + trial.suggest_int("epochs", 5, 50)

    study = study_of(sampler())
    assert best_at_target(study) is None
    study.optimize(flattering, n_trials=12)
    study.enqueue_trial({"a": 0.5})  # without a fidelity: at the target
    study.optimize(flattering, n_trials=1)
    best = best_at_target(study)
    assert best.params["epochs"] == 50
    assert best.value == min(t.value for t in study.trials if t.params["epochs"] == 50)
    assert study.best_trial.params["epochs"] < 50
    study.sampler = optuna.samplers.RandomSampler()
    assert best_at_target(study, {"epochs": 50}).number == best.number
    with pytest.raises(InvalidInput, match="target is not known"):
        best_at_target(study)
    with pytest.raises(InvalidInput, match=r"parameters of the trials, \['a', 'epochs'\]; got \['epoch'\]"):
        best_at_target(study, {"epoch": 50})
    with pytest.raises(InvalidInput, match="target must map names to values"):
        best_at_target(study, 50)  # type: ignore[arg-type]
    assert best_at_target(optuna.create_study(), {"epochs": 50}) is None


def test_maximizing_is_minimizing_the_negative() -> None:
    def negative(trial: Any) -> float:
        return -objective(trial)

    down, up = study_of(sampler(space=SPACE)), study_of(sampler(space=SPACE), direction="maximize")
    down.optimize(objective, n_trials=15)
    up.optimize(negative, n_trials=15)
    assert params_of(down) == params_of(up)
    assert best_at_target(up).number == best_at_target(down).number


def test_the_target_may_lie_inside() -> None:
    study = study_of(sampler(target={"epochs": 30}, space=SPACE))
    study.optimize(objective, n_trials=20)
    assert study.sampler.target == {"epochs": 30}
    assert best_at_target(study).params["epochs"] == 30
    assert all(trial.params["epochs"] <= 30 for trial in study.trials)


def test_every_kind_of_parameter_keeps_to_its_values() -> None:
    def mixed(trial: Any) -> float:
        momentum = trial.suggest_float("momentum", 0.1, 0.95, step=0.05)
        width = trial.suggest_int("width", 7, 63, step=8)
        depth = trial.suggest_int("depth", 1, 1000, log=True)
        kind = trial.suggest_categorical("kind", ["relu", None, 3])
        once = trial.suggest_int("once", 4, 4)
        part = trial.suggest_float("part", 0.25, 1.0, step=0.25)
        return (momentum - 0.5) ** 2 + abs(width - 31) / 8 + math.log(depth) + (kind is None) + once - part

    paid: list[dict[str, Any]] = []

    def cost(z: dict[str, Any]) -> float:
        paid.append(z)
        return float(z["part"])

    study = study_of(sampler(fidelity={"part": FloatDistribution(0.25, 1.0, step=0.25)}, cost=cost))
    study.optimize(mixed, n_trials=20)
    for trial in study.trials:
        steps = (trial.params["momentum"] - 0.1) / 0.05
        assert abs(steps - round(steps)) < 1e-9
        assert (trial.params["width"] - 7) % 8 == 0
        assert trial.params["kind"] in ("relu", None, 3)
        assert trial.params["part"] in (0.25, 0.5, 0.75, 1.0)
        assert trial.user_attrs["boca:cost"] == trial.params["part"]
    assert {z["part"] for z in paid} == {0.25, 0.5, 0.75, 1.0}  # the cost sees the objective's values
    assert len({trial.params["part"] for trial in study.trials}) > 1
    assert "once" not in study.trials[-1].user_attrs["boca:why"]["claim"]["params"]
    assert best_at_target(study).params["part"] == 1.0


def test_without_fidelities_it_is_an_ordinary_sampler() -> None:
    study = study_of(BocaSampler(seed=0))
    study.optimize(lambda trial: (trial.suggest_float("a", -1.0, 1.0) - 0.3) ** 2, n_trials=12)
    assert study.best_value < 0.01
    assert best_at_target(study).number == study.best_trial.number


@pytest.mark.parametrize("strategy", [boca.GPUCB(maximizer="sobol"), boca.RandomSearch()])
def test_any_strategy_may_choose(strategy: boca.Strategy) -> None:
    study = study_of(sampler(strategy=strategy))
    study.optimize(objective, n_trials=6)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert {trial.params["epochs"] for trial in study.trials} == {50}  # neither uses fidelities
    assert ("model" in phases(study)) == isinstance(strategy, boca.GPUCB)


# Trials that are out, failed or queued ----------------------------------------------------------------------------


def test_trials_that_are_out_never_coincide_and_are_pending() -> None:
    made = sampler(fidelity={"n": boca.Int(1, 3)}, cost=lambda z: z["n"], space={"a": boca.Int(1, 4)})
    study = study_of(made)
    ranges = {"a": IntDistribution(1, 4), "n": IntDistribution(1, 3)}
    for _ in range(6):
        trial = study.ask(ranges)
        study.tell(trial, float(trial.params["a"] * trial.params["n"]))
    out = [study.ask(ranges) for _ in range(12)]  # as many as there are points
    assert len({(t.params["a"], t.params["n"]) for t in out}) == 12
    assert out[-1].user_attrs["boca:why"]["pending"] == [t.number for t in out[:-1]]


def test_what_another_worker_chose_counts_before_its_objective_has_read_it() -> None:
    study = study_of(sampler(space={"a": boca.Int(1, 2)}, fidelity={}, cost=None))
    for _ in range(3):
        early = study.ask()
        assert early.relative_params.keys() == {"a"}  # chosen, and not yet suggested
        late = study.ask({"a": IntDistribution(1, 2)})
        assert late.params["a"] != early.relative_params["a"]
        study.tell(late, 1.0)
        early.suggest_int("a", 1, 2)
        study.tell(early, 0.0)


def test_two_that_choose_at_once_do_not_end_up_with_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second worker claims between the first one's look and its claim."""
    study = study_of(sampler(space={"a": boca.Int(1, 2)}, fidelity={}, cost=None))
    other = sampler(space={"a": boca.Int(1, 2)}, fidelity={}, cost=None)
    rivals: list[Any] = []
    choose = BocaSampler._choose

    def overtaken(self: BocaSampler, *arguments: Any) -> Any:
        chosen = choose(self, *arguments)
        if self is study.sampler and not rivals:
            rivals.append(None)
            rival = optuna.Study(study_name=study.study_name, storage=study._storage, sampler=other).ask()
            other._choose = lambda *_: chosen  # type: ignore[method-assign]
            rivals[0] = rival.suggest_int("a", 1, 2)
        return chosen

    monkeypatch.setattr(BocaSampler, "_choose", overtaken)
    mine = study.ask({"a": IntDistribution(1, 2)})
    assert rivals
    assert mine.params["a"] != rivals[0]


def test_failed_and_pruned_trials_count_as_the_worst() -> None:
    seen: list[boca.History] = []

    class Watching(boca.RandomSearch):
        def suggest(self, problem: Any, history: Any, budget: Any, rng: Any) -> Any:
            seen.append(history)
            return super().suggest(problem, history, budget, rng)

    def unreliable(trial: Any) -> float:
        value = objective(trial)
        if trial.number == 1:
            raise ValueError("no")
        if trial.number == 2:
            raise optuna.TrialPruned
        if trial.number == 3:
            return math.inf
        return value

    study = study_of(sampler(strategy=Watching(), space=SPACE))
    study.optimize(unreliable, n_trials=6, catch=(ValueError,))
    assert [trial.state for trial in seen[-1]] == ["complete", "failed", "failed", "failed", "complete"]
    scores = seen[-1].scores("minimize")
    assert scores[1] == scores[2] == scores[3] == min(scores[0], scores[4])
    assert all(trial.user_attrs["boca:cost"] == trial.params["epochs"] for trial in study.trials)


def test_queued_trials_are_run_as_they_were_asked_for() -> None:
    study = study_of(sampler())
    study.enqueue_trial({"lr": 0.01, "width": 32})
    study.enqueue_trial({"lr": 0.02, "width": 16, "epochs": 7})
    study.enqueue_trial({"lr": 0.03})
    study.optimize(objective, n_trials=8)
    first, second, third = study.trials[:3]
    assert first.params == {"lr": 0.01, "width": 32, "epochs": 50}  # without a fidelity: the target
    assert second.params == {"lr": 0.02, "width": 16, "epochs": 7}
    assert (third.params["lr"], third.params["epochs"]) == (0.03, 50)
    assert third.user_attrs["boca:why"]["phase"] == "queued"
    assert [trial.user_attrs["boca:cost"] for trial in study.trials[:3]] == [50.0, 7.0, 50.0]


def test_ask_and_tell_is_the_same_as_optimize() -> None:
    ranges = {
        "lr": FloatDistribution(1e-4, 1.0, log=True),
        "width": IntDistribution(8, 64),
        "epochs": IntDistribution(5, 50),
    }
    asked, run = study_of(sampler()), study_of(sampler())
    for _ in range(14):
        trial = asked.ask(ranges)
        asked.tell(trial, loss(trial.params))
    run.optimize(objective, n_trials=14)
    assert params_of(asked) == params_of(run)


# Studies that are stored ------------------------------------------------------------------------------------------


def test_a_resumed_study_goes_on_as_an_undisturbed_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    study = study_of(sampler(), storage=url, study_name="s")
    study.optimize(objective, n_trials=13)
    again = optuna.load_study(study_name="s", storage=url, sampler=sampler())
    again.optimize(objective, n_trials=5)
    whole = study_of(sampler())
    whole.optimize(objective, n_trials=18)
    assert phases(whole)[13:] == ["model"] * 5
    assert params_of(again) == params_of(whole)


def test_another_seed_gives_another_study() -> None:
    one, two = study_of(sampler(seed=1)), study_of(sampler(seed=2))
    for study in (one, two):
        study.optimize(objective, n_trials=3)
    assert params_of(one) != params_of(two)


def test_threads_share_a_study() -> None:
    study = study_of(sampler())
    study.optimize(objective, n_trials=16, n_jobs=2)
    assert len(study.trials) == 16
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert len({tuple(params.items()) for params in params_of(study)}) == 16


WORKER = """
import sys, time, optuna, boca
from boca.integrations.optuna import BocaSampler

def objective(trial):
    a, n = trial.suggest_float("a", 0.0, 1.0), trial.suggest_int("n", 1, 9)
    trial.set_user_attr("chosen", time.time())
    time.sleep(0.1)
    return (a - 0.3) ** 2 + 1.0 / n

optuna.logging.set_verbosity(optuna.logging.WARNING)
made = BocaSampler({"n": boca.Int(1, 9)}, cost=lambda z: z["n"], seed=int(sys.argv[2]))
study = optuna.load_study(study_name="s", storage=sys.argv[1], sampler=made)
study.set_user_attr(sys.argv[2], "ready")
while len(study.user_attrs) < 2:
    time.sleep(0.02)
study.optimize(objective, n_trials=6)
"""


def test_processes_share_a_study(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'optuna.db'}"
    study = optuna.create_study(storage=url, study_name="s")
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, url, str(seed)]) for seed in (0, 1)]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    assert len(study.trials) == 12
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)
    points = [(trial.params["a"], trial.params["n"]) for trial in study.trials]
    out_together = [
        (points[one.number], points[other.number])
        for one in study.trials
        for other in study.trials
        if one.number != other.number
        and one.user_attrs["chosen"] <= other.user_attrs["chosen"] < one.datetime_complete.timestamp()
    ]
    assert out_together
    assert all(here != there for here, there in out_together)


def test_no_finished_trial_is_converted_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    converted: list[int] = []
    trial_of = optuna_bridge.Bridge.trial

    def counting(self: Any, trial: Any) -> Any:
        converted.extend([trial.number] if trial.state.is_finished() else [])
        return trial_of(self, trial)

    monkeypatch.setattr(optuna_bridge.Bridge, "trial", counting)
    study = study_of(sampler(strategy=boca.RandomSearch(), space=SPACE))
    study.optimize(objective, n_trials=30)
    assert converted == list(range(29))


def test_a_sampler_can_be_used_for_a_second_study_and_be_pickled() -> None:
    made = sampler(cost=None, space=SPACE)
    study_of(made).optimize(objective, n_trials=3)
    first, second = study_of(pickle.loads(pickle.dumps(made))), study_of(made)
    for study in (first, second):
        study.optimize(objective, n_trials=2)
    assert params_of(first)[0] == params_of(second)[0]
    assert all(trial.user_attrs["boca:why"]["phase"] == "start" for trial in second.trials)


# Cost -------------------------------------------------------------------------------------------------------------


def test_a_cost_that_is_not_declared_is_measured() -> None:

    def slow(trial: Any) -> float:
        value = objective(trial)
        time.sleep(0.002 * trial.params["epochs"])
        return value

    study = study_of(sampler(cost=None, space=SPACE))
    study.optimize(slow, n_trials=4)
    for trial in study.trials:
        assert 0.002 * trial.params["epochs"] <= trial.user_attrs["boca:cost"] < trial.duration.total_seconds()


def test_an_objective_may_say_what_it_cost() -> None:
    def honest(trial: Any) -> float:
        trial.set_user_attr("boca:cost", 123.0)
        return objective(trial)

    study = study_of(sampler(space=SPACE))
    study.optimize(honest, n_trials=2)
    assert [trial.user_attrs["boca:cost"] for trial in study.trials] == [123.0, 123.0]
    assert from_optuna(study, PROBLEM)[0].cost == 123.0


def test_the_reason_can_be_read_in_the_objective() -> None:
    reasons = []

    def curious(trial: Any) -> float:
        value = objective(trial)
        reasons.append(trial.user_attrs["boca:reason"])
        return value

    study = study_of(sampler(space=SPACE))
    study.optimize(curious, n_trials=1)
    assert reasons == [study.trials[0].user_attrs["boca:why"]["reason"]]
    assert reasons[0].startswith("Start, query 1")


# Spaces that change and bad input ---------------------------------------------------------------------------------


def test_a_parameter_that_comes_later_is_drawn_at_random_with_a_warning() -> None:
    def growing(trial: Any) -> float:
        value = objective(trial)
        return value + (trial.suggest_float("extra", 0.0, 1.0) if trial.number >= 3 else 0.0)

    study = study_of(sampler())
    with pytest.warns(SpaceChanged, match="'extra' is not in the space") as caught:
        study.optimize(growing, n_trials=6)
    assert len(caught) == 1  # once a name
    assert len({trial.params["extra"] for trial in study.trials[3:]}) == 3


def test_a_parameter_that_goes_leaves_the_model() -> None:
    """After the space has shrunk, hyper-parameters of the larger one must not be used."""

    def shrinking(trial: Any) -> float:
        a = trial.suggest_float("a", 0.0, 1.0)
        b = trial.suggest_float("b", 0.0, 1.0) if trial.number < 10 else 0.0
        return (a - 0.3) ** 2 + b + 1.0 / trial.suggest_int("epochs", 5, 50)

    study = study_of(sampler(cost=lambda z: z["epochs"] ** 3))
    study.optimize(shrinking, n_trials=20)
    claims = [trial.user_attrs["boca:why"]["claim"] for trial in study.trials]
    assert set(claims[9]["params"]) == {"a", "b", "epochs"}
    assert set(claims[11]["params"]) == {"a", "epochs"}
    assert claims[9]["space"] != claims[11]["space"]
    assert len(study.trials[-1].user_attrs["boca:why"]["hyperparameters"]["h_x"]) == 1


def test_a_range_that_changes_is_told() -> None:
    def wandering(trial: Any) -> float:
        return trial.suggest_float("a", trial.number, trial.number + 0.5) + trial.suggest_int("epochs", 5, 50)

    study = study_of(sampler(space={"a": boca.Float(0.0, 1.0)}))
    with (
        pytest.warns(SpaceChanged, match="'a' changed its range"),
        pytest.warns(SpaceChanged, match="Trial 1 lies outside the ranges"),
    ):
        study.optimize(wandering, n_trials=4)
    assert [math.floor(trial.params["a"]) for trial in study.trials] == [0, 1, 2, 3]


def test_the_fidelity_must_be_suggested_as_it_was_declared() -> None:
    study = study_of(sampler())
    with pytest.raises(InvalidInput, match=r"the fidelity 'epochs' from .* must agree"):
        study.optimize(lambda t: t.suggest_float("a", 0, 1) + t.suggest_int("epochs", 1, 100), n_trials=3)


def test_an_objective_that_does_not_read_its_fidelity_is_told() -> None:
    study = study_of(sampler())
    with pytest.raises(InvalidInput, match=r"did not read the fidelity 'epochs'"):
        study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=3)


def test_a_study_of_another_sampler_is_taken_over_at_the_target() -> None:
    """Its trials lack the fidelity, and so do those of a sampler of ours that had none."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def old(trial: Any) -> float:
        return (trial.suggest_float("a", 0.0, 1.0) - 0.3) ** 2

    study.optimize(old, n_trials=5)
    study.sampler = BocaSampler(seed=0)
    study.optimize(old, n_trials=1)
    study.sampler = sampler()
    study.optimize(lambda t: old(t) + 1.0 / t.suggest_int("epochs", 5, 50), n_trials=4)
    seen: list[boca.History] = []

    class Watching(boca.RandomSearch):
        def suggest(self, problem: Any, history: Any, budget: Any, rng: Any) -> Any:
            seen.append(history)
            return super().suggest(problem, history, budget, rng)

    study.sampler = sampler(strategy=Watching())
    study.ask().suggest_float("a", 0.0, 1.0)
    assert [trial.state for trial in seen[0]] == ["complete"] * 10
    assert [trial.z["epochs"] for trial in seen[0]][:6] == [50] * 6
    assert (
        best_at_target(study).number
        == min((t for t in study.trials[:10] if t.params.get("epochs", 50) == 50), key=lambda t: t.value).number
    )


def test_a_flat_space_gets_the_condition_that_the_trials_show() -> None:
    seen: list[boca.History] = []

    class Watching(boca.RandomSearch):
        def suggest(self, problem: Any, history: Any, budget: Any, rng: Any) -> Any:
            seen.append(history)
            return super().suggest(problem, history, budget, rng)

    def branching(trial: Any) -> float:
        c = trial.suggest_float("c", 0.0, 1.0)
        gamma = (
            trial.suggest_float("gamma", 0.0, 1.0)
            if trial.suggest_categorical("kernel", ["rbf", "poly"]) == "rbf"
            else 1
        )
        return c + gamma + 1.0 / trial.suggest_int("epochs", 5, 50)

    space = {"c": (0.0, 1.0), "kernel": ["rbf", "poly"], "gamma": (0.0, 1.0)}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(branching, n_trials=6)
    study.sampler = sampler(strategy=Watching(), space=space)
    study.optimize(branching, n_trials=6)
    assert {len(trial.params) for trial in study.trials} == {3, 4}  # with and without gamma
    assert [len(history) for history in seen] == [6, 7, 8, 9, 10, 11]
    for trial, known in zip(study.trials, seen[-1], strict=False):
        assert known.x == {name: value for name, value in trial.params.items() if name != "epochs"}


def test_a_fidelity_is_checked_before_the_first_evaluation() -> None:
    evaluated = []

    def wrong_range(trial: Any) -> float:
        a, n = trial.suggest_float("a", 0.0, 1.0), trial.suggest_int("epochs", 1, 100)
        evaluated.append(n)
        return a

    def wrong_name(trial: Any) -> float:
        n = trial.suggest_int("epoch", 5, 50)
        evaluated.append(n)
        return trial.suggest_float("a", 0.0, 1.0)

    with pytest.raises(InvalidInput, match=r"'epochs' from .*high=100.*high=50.*must agree"):
        study_of(sampler()).optimize(wrong_range, n_trials=3)
    with pytest.raises(InvalidInput, match=r"suggests 'epoch' .* fidelity 'epochs'"):
        study_of(sampler()).optimize(wrong_name, n_trials=3)
    assert evaluated == []
    study = study_of(sampler())
    with pytest.raises(InvalidInput, match="did not read the fidelity 'epochs'"):
        study.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=3)
    assert len(study.trials) == 1


def test_a_fidelity_may_be_a_tuple() -> None:
    one, other = study_of(sampler(fidelity={"epochs": (5, 50)})), study_of(sampler())
    for study in (one, other):
        study.optimize(objective, n_trials=3)
    assert params_of(one) == params_of(other)


def test_it_is_said_once_that_the_best_trial_is_a_cheap_one(caplog: pytest.LogCaptureFixture) -> None:
    def flattering(trial: Any) -> float:
        return trial.suggest_float("a", 0.0, 1.0) + trial.suggest_int("epochs", 5, 50)

    study = study_of(sampler())
    study.optimize(flattering, n_trials=12)
    said = [text for text in caplog.messages if "study.best_trial" in text]
    assert len(said) == 1
    for words in ("best_at_target(study)", "{'epochs': 50}"):
        assert words in said[0]
    caplog.clear()
    honest = study_of(sampler(fidelity={}, cost=None))
    honest.optimize(lambda trial: trial.suggest_float("a", 0.0, 1.0), n_trials=3)
    assert caplog.messages == []


def test_random_trials_are_never_silent(caplog: pytest.LogCaptureFixture) -> None:
    study = study_of(sampler(space={"a": (0.0, 1.0)}))
    with pytest.warns(SpaceChanged):
        study.optimize(lambda t: t.suggest_float("a", 2.0, 3.0) + t.suggest_int("epochs", 5, 50), n_trials=4)
    said = [text for text in caplog.messages if "drawn at random" in text]
    assert len(said) == 3  # for every trial but the first
    assert "none of the 3 complete trials" in said[-1]


def test_several_directions_are_searched_for_a_front() -> None:
    def two(trial: optuna.Trial) -> tuple[float, float]:
        a, b = trial.suggest_float("a", 0.0, 1.0), trial.suggest_float("b", 0.0, 1.0)
        n = trial.suggest_int("n", 1, 10)
        return a + b + 0.1 / n, (a - 1) ** 2 + b

    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=BocaSampler({"n": boca.Int(1, 10)}, cost=lambda z: z["n"], seed=0)
    )
    study.optimize(two, n_trials=14)
    assert [t.state.name for t in study.trials] == ["COMPLETE"] * 14
    why = [t.user_attrs["boca:why"] for t in study.trials]
    chosen = [each for each in why if each["phase"] == "model"]
    assert chosen
    assert [*chosen[-1]["outcomes"]] == ["objective 0", "objective 1"]
    assert chosen[-1]["acquisition"] == "log_ehvi"
    assert min(t.params["n"] for t in study.trials) < 10


def test_more_directions_than_four_are_refused() -> None:
    study = optuna.create_study(directions=["minimize"] * 5, sampler=BocaSampler(seed=0))
    with pytest.raises(InvalidInput, match="5 objectives"):
        study.optimize(lambda trial: [trial.suggest_float("a", 0.0, 1.0)] * 5, n_trials=2)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"fidelity": {"epochs": 50}}, "'epochs' must be boca.Float"),
        ({"fidelity": {"epochs": (0, 1)}}, r"boca.Int\(0, 1\)"),
        ({"fidelity": ["epochs"]}, "fidelity must map names"),
        ({"target": {"epoch": 50}}, "target may only name fidelities"),
        ({"target": {"epochs": 51}}, "must lie in"),
        ({"cost": 3.0}, "cost must be a function"),
        ({"cost": lambda z: -1.0}, "positive finite number"),
        ({"space": {"epochs": boca.Int(1, 3)}}, "not in both"),
        ({"strategy": boca.Boca}, "must have a method suggest"),
        ({"seed": -1}, "must be a non-negative integer"),
        ({"fidelity": {"source": boca.Choice(["a", "b"])}}, "target"),
        ({"fidelity": {"n": IntDistribution(3, 3)}}, "low < high"),
        ({"fidelity": {"n": IntDistribution(5, 50, step=5)}, "target": {"n": 12}}, "whole steps of 5"),
    ],
)
def test_bad_settings_are_refused_when_the_sampler_is_made(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        sampler(**settings)


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution")
def test_options_that_no_study_can_store_are_refused_in_the_first_trial() -> None:
    study = study_of(sampler())
    with pytest.raises(InvalidInput, match="Choice options must be"):
        study.optimize(lambda trial: len(trial.suggest_categorical("layers", [(8,), (8, 8)])), n_trials=1)


def test_a_parameter_that_a_trial_leaves_out_at_random_leaves_it_in_the_model() -> None:
    seen: list[boca.History] = []

    class Watching(boca.RandomSearch):
        def suggest(self, problem: Any, history: Any, budget: Any, rng: Any) -> Any:
            seen.append(history)
            return super().suggest(problem, history, budget, rng)

    def moody(trial: Any) -> float:
        c = trial.suggest_float("c", 0.0, 1.0)
        gamma = 1.0 if trial.number % 2 else trial.suggest_float("gamma", 0.0, 1.0)
        return c + gamma + 1.0 / trial.suggest_int("epochs", 5, 50)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(moody, n_trials=6)
    study.sampler = sampler(strategy=Watching(), space={"c": (0.0, 1.0), "gamma": (0.0, 1.0)})
    study.optimize(moody, n_trials=6)
    assert [len(history) for history in seen] == [6, 7, 8, 9, 10, 11]
    for trial, known in zip(study.trials, seen[-1], strict=False):
        chosen = trial.user_attrs.get("boca:why", {}).get("claim", {}).get("params", {})
        assert known.x["gamma"] == trial.params.get("gamma", chosen.get("gamma", 0.5))


PIPELINE = boca.Space(
    kernel=boca.Choice(["rbf", "linear"]),
    C=boca.Float(0.0, 1.0),
    gamma=boca.Float(0.0, 1.0, when={"kernel": ["rbf"]}),
)


def conditional(trial: optuna.Trial) -> float:
    kernel = trial.suggest_categorical("kernel", ["rbf", "linear"])
    score = -((trial.suggest_float("C", 0.0, 1.0) - 0.3) ** 2)
    if kernel == "rbf":
        score += 1.0 - (trial.suggest_float("gamma", 0.0, 1.0) - 0.6) ** 2
    return score


def test_an_objective_with_branches_is_chosen_for_by_the_model() -> None:
    study = optuna.create_study(direction="maximize", sampler=BocaSampler(space=PIPELINE, seed=0))
    study.optimize(conditional, n_trials=20)
    assert phases(study)[-10:] == ["model"] * 10
    assert all(("gamma" in t.params) == (t.params["kernel"] == "rbf") for t in study.trials)
    assert study.best_value > 0.98
    problem = boca.Problem(PIPELINE)
    back = from_optuna(study, problem)
    assert [trial.x for trial in back] == [t.params for t in study.trials]


def test_the_constraints_of_a_space_hold_in_optuna() -> None:
    space = PIPELINE.where("C + gamma <= 0.8")
    study = optuna.create_study(direction="maximize", sampler=BocaSampler(space=space, seed=0))
    study.optimize(conditional, n_trials=12)
    assert all(space.violated(t.params) is None for t in study.trials)


def test_a_branch_that_the_space_does_not_know_is_not_drawn_in_silence() -> None:
    flat = {"kernel": PIPELINE["kernel"], "C": PIPELINE["C"]}
    study = optuna.create_study(direction="maximize", sampler=BocaSampler(space=flat, seed=0))
    with pytest.warns(SpaceChanged, match="gamma"):
        study.optimize(conditional, n_trials=8)


@pytest.mark.filterwarnings("ignore::boca.integrations.optuna.SpaceChanged")
def test_without_a_space_the_branches_of_an_objective_are_learned() -> None:
    study = optuna.create_study(direction="maximize", sampler=BocaSampler(seed=0))
    study.optimize(conditional, n_trials=30)
    assert phases(study)[-15:] == ["model"] * 15
    drawn = [
        t
        for t in study.trials[8:]
        if set(t.params) - set(t.user_attrs["boca:why"]["claim"]["params"])  # suggested, but not by the model
    ]
    assert drawn == []
    assert study.best_value > 0.98


@pytest.mark.filterwarnings("ignore::boca.integrations.optuna.SpaceChanged")
@pytest.mark.parametrize("space", [None, {"x": (0.0, 1.0)}])
def test_constraints_of_trials_are_limits(space: dict[str, Any] | None) -> None:
    def limited(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("latency", 30.0 * x - 12.0)
        return -x

    study = optuna.create_study(sampler=BocaSampler(seed=0, space=space))
    study.optimize(limited, n_trials=20)
    last = study.trials[-1].user_attrs["boca:why"]
    assert set(last["outcomes"]) == {"latency"}
    assert 0.37 < study.best_params["x"] <= 0.4
    assert sum(t.constraints["latency"] > 0.0 for t in study.trials[10:]) <= 4
    best = best_at_target(study)
    assert best is not None
    assert best.number == study.best_trial.number


def test_a_constraints_function_is_taken_as_by_other_samplers() -> None:
    def limited(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_user_attr("latency", 30.0 * x)
        return -x

    choosing = BocaSampler(seed=0, constraints_func=lambda t: [t.user_attrs["latency"] - 12.0])
    study = optuna.create_study(sampler=choosing)
    study.optimize(limited, n_trials=15)
    assert [t.constraints["0"] for t in study.trials] == [t.user_attrs["latency"] - 12.0 for t in study.trials]
    assert 0.3 < study.best_params["x"] <= 0.4
    with pytest.raises(InvalidInput, match="constraints_func is 3"):
        BocaSampler(constraints_func=3)  # type: ignore[arg-type]


def test_a_strategy_of_a_paper_refuses_constraints() -> None:
    def limited(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("latency", x - 0.4)
        return -x

    study = optuna.create_study(sampler=BocaSampler(seed=0, strategy=boca.Boca.paper()))
    with pytest.raises(InvalidInput, match="limits"):
        study.optimize(limited, n_trials=3)


# Steps ----------------------------------------------------------------------------------------------------------------


def training(trial: Any) -> float:
    a, epochs = trial.suggest_float("a", 0.0, 1.0), trial.suggest_int("epochs", 1, 9)
    for epoch in range(1, epochs + 1):
        trial.report((a - 0.3) ** 2 + 1.0 / epoch, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return float((a - 0.3) ** 2 + 1.0 / epochs)


class Odd:
    """A rule that stops every other trial at its fourth step, and keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[tuple[int, int, int]] = []

    def keep_going(self, problem: Any, history: Any, trial: Any, rng: Any) -> bool:
        self.shown.append((trial.number, trial.reached, len(history[trial.number].observations)))
        return bool(trial.number % 2 == 0 or trial.reached < 4)


def steps_study(pruner: Any) -> Any:
    fidelity = {"epochs": boca.Steps(1, 9)}
    space = {"a": boca.Float(0.0, 1.0)}
    own = BocaSampler(fidelity, cost=lambda z: z["epochs"], space=space, strategy=boca.GPUCB(), seed=0)
    return optuna.create_study(sampler=own, pruner=pruner, direction="minimize")


def test_a_rule_of_ours_prunes_and_a_pruned_trial_is_complete_at_its_last_step() -> None:
    rule = Odd()
    study = steps_study(BocaPruner(rule))
    study.optimize(training, n_trials=6)
    states = [trial.state.name for trial in study.trials]
    assert states == ["COMPLETE", "PRUNED"] * 3
    assert [trial.user_attrs["boca:cost"] for trial in study.trials] == [9.0, 4.0] * 3
    assert {(reached, count) for _, reached, count in rule.shown} == {(step, step) for step in range(1, 9)}
    bridge = study.sampler._remember(study).bridge
    whole, stopped = (bridge.trial(study.trials[number]) for number in (0, 1))
    assert [o.z["epochs"] for o in whole.observations] == list(range(1, 10))
    assert (whole.state, whole.value) == ("complete", study.trials[0].value)
    assert (stopped.state, stopped.z, len(stopped.observations)) == ("complete", {"epochs": 4}, 4)
    assert stopped.value == study.trials[1].intermediate_values[4]


def test_any_pruner_of_optuna_serves() -> None:
    study = steps_study(optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=2))
    study.optimize(training, n_trials=12)
    pruned = [trial for trial in study.trials if trial.state == optuna.trial.TrialState.PRUNED]
    assert pruned
    assert all(trial.user_attrs["boca:cost"] == trial.last_step for trial in pruned)


def test_a_pruner_of_ours_needs_our_sampler_and_a_rule() -> None:
    study = optuna.create_study(pruner=BocaPruner(), sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(InvalidInput, match=r"BocaSampler\(...\), pruner=BocaPruner"):
        study.optimize(training, n_trials=1)
    with pytest.raises(InvalidInput, match="keep_going"):
        BocaPruner("median")  # type: ignore[arg-type]
    plain = optuna.create_study(sampler=sampler(), pruner=BocaPruner())  # without steps nothing is pruned
    plain.optimize(lambda trial: (trial.report(1.0, 1), objective(trial), float(trial.should_prune()))[2], n_trials=2)
    assert [trial.value for trial in plain.trials] == [0.0, 0.0]


def test_the_default_learns_from_pruned_trials() -> None:
    fidelity, space = {"epochs": boca.Steps(1, 9)}, {"a": (0.0, 1.0)}
    own = BocaSampler(fidelity, cost=lambda z: z["epochs"], space=space, seed=0)
    study = optuna.create_study(sampler=own, pruner=BocaPruner(), direction="minimize")
    study.optimize(training, n_trials=15)
    assert "model" in phases(study)[-3:]
    assert all(t.user_attrs["boca:cost"] == t.last_step for t in study.trials)
    best = best_at_target(study)
    assert best is not None
    assert abs(best.params["a"] - 0.3) < 0.1


def test_a_pruned_trial_has_the_constraints_that_it_set() -> None:
    def limited(trial: optuna.Trial) -> float:
        trial.set_constraint("latency", trial.suggest_float("a", 0.0, 1.0) - 0.5)
        value = training(trial)
        if trial.number == 1:
            raise optuna.TrialPruned
        return value

    own = BocaSampler({"epochs": boca.Steps(1, 9)}, cost=lambda z: z["epochs"], space={"a": (0.0, 1.0)}, seed=0)
    study = optuna.create_study(sampler=own, pruner=optuna.pruners.NopPruner(), direction="minimize")
    study.optimize(limited, n_trials=5)
    pruned: Any = own._remember(study).bridge.trial(study.trials[1])  # type: ignore[union-attr]
    assert pruned.outcomes == {"latency": study.trials[1].params["a"] - 0.5}
    assert (pruned.state, pruned.value) == ("complete", study.trials[1].intermediate_values[pruned.z["epochs"]])


def test_a_pruned_trial_of_another_sampler_is_complete_at_its_last_step() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0), direction="minimize")

    def pruned(trial: optuna.Trial) -> float:
        trial.report(trial.suggest_float("a", 0.0, 1.0), 2)
        raise optuna.TrialPruned

    study.optimize(pruned, n_trials=1)
    study.sampler = BocaSampler({"epochs": boca.Steps(1, 9)}, cost=lambda z: z["epochs"], space={"a": (0.0, 1.0)})
    study.optimize(training, n_trials=1)
    known: Any = study.sampler._remember(study).bridge.trial(study.trials[0])  # type: ignore[union-attr]
    assert (known.state, known.z, known.cost) == ("complete", {"epochs": 2}, 2.0)
