"""Studies go to Optuna and come back, and the best at the target is found."""

from __future__ import annotations

import math
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import boca
from boca.domain.errors import InvalidInput

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'boca[optuna]'")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from boca.integrations import optuna_sampler  # noqa: E402
from boca.integrations.optuna import best_at_target, from_optuna, to_optuna  # noqa: E402
from integrations.studies import PROBLEM, SPACE, loss, objective, sampler, study_of  # noqa: E402


@pytest.fixture(autouse=True)
def quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def optimizer_with_results(trials: int = 12, **settings: Any) -> boca.Optimizer:
    opt = boca.Optimizer(PROBLEM, budget=None, seed=0, **settings)
    for _ in range(trials):
        trial = opt.ask()
        if trial.number == 3:
            opt.fail(trial, "no")
        else:
            opt.tell(trial, loss({**trial.x, **trial.z}))
    return opt


def test_a_study_goes_to_optuna_and_comes_back() -> None:
    opt = optimizer_with_results()
    opt.ask()  # out: not taken
    study = to_optuna(opt, study_name="there")
    assert study.direction == optuna.study.StudyDirection.MINIMIZE
    assert [trial.state.name for trial in study.trials].count("FAIL") == 1
    assert len(study.trials) == 12
    back = from_optuna(study, PROBLEM)
    for trial, old in zip(back, opt.history[:12], strict=True):
        assert (trial.x, trial.z, trial.value, trial.cost, trial.state) == (
            old.x,
            old.z,
            old.value,
            old.cost,
            old.state,
        )
        assert trial.why == old.why
    new = boca.Optimizer(PROBLEM, budget=boca.targets(5), seed=1)
    assert len(new.add_all(back)) == 11
    assert new.best.value == opt.best.value


@pytest.mark.parametrize("source", ["history", "url"])
def test_a_history_and_a_stored_study_go_to_optuna_too(source: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'boca.db'}"
    opt = optimizer_with_results(4, storage=url, name="mine")
    values = [trial.value for trial in opt.history]
    opt.storage.close()
    study = to_optuna(opt.history, PROBLEM) if source == "history" else to_optuna(url, name="mine")
    assert [trial.value for trial in study.trials] == values
    assert study.trials[0].distributions == {
        "lr": FloatDistribution(1e-4, 1.0, log=True),
        "width": IntDistribution(8, 64),
        "epochs": IntDistribution(5, 50),
    }


def test_the_sampler_goes_on_with_what_boca_began() -> None:
    """The hyper-parameters learned there serve here: the first choice is no refit from nothing."""
    opt = optimizer_with_results(20)
    study = to_optuna(opt, sampler=sampler(space=SPACE))
    study.optimize(objective, n_trials=1)
    expected = opt.ask()
    assert study.trials[-1].params == {**expected.x, **expected.z}
    assert study.trials[-1].user_attrs["boca:why"]["hyperparameters"] == expected.why["hyperparameters"]


def test_a_study_of_optuna_alone_seeds_one_of_boca() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def plain(trial: Any) -> float:
        trial.suggest_float("lr", 1e-4, 1.0, log=True)
        trial.suggest_int("width", 8, 64)
        trial.suggest_categorical("unused", ["a", "b"])
        return loss(trial.params | {"epochs": 50})

    study.optimize(plain, n_trials=5)
    study.enqueue_trial({"lr": 0.1})
    opt = boca.Optimizer(PROBLEM, budget=boca.targets(5), seed=0)
    added = opt.add_all(from_optuna(study, PROBLEM))
    assert [trial.z for trial in added] == [{"epochs": 50}] * 5
    assert opt.best.value == study.best_value
    assert opt.ask().why["phase"] == "model"


def test_a_duration_is_the_cost_where_none_is_declared() -> None:
    measured = boca.Problem(PROBLEM.space, PROBLEM.fidelity, direction="minimize")
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=1)
    ranges = study.trials[0].distributions
    study.add_trial(optuna.trial.create_trial(value=1.0, params=study.trials[0].params, distributions=ranges))
    run, brought = from_optuna(study, measured)
    assert run.cost == study.trials[0].duration.total_seconds() > 0
    assert math.isnan(brought.cost)
    opt = boca.Optimizer(measured, budget=None, seed=0)
    assert [trial.seconds is None for trial in opt.add_all(from_optuna(study, measured))] == [False, True]


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be set")
def test_a_change_of_the_clocks_is_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = boca.Problem(PROBLEM.space, PROBLEM.fidelity, direction="minimize")
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    try:
        began, ended = (datetime.fromtimestamp(1774745990 + s) for s in (0, 20))  # summer time begins between
        assert (ended - began).total_seconds() == 3620
        study = study_of(sampler(cost=None, space=SPACE))
        study.optimize(objective, n_trials=1)
        [trial] = study.get_trials()
        del trial.user_attrs["boca:cost"]
        trial.datetime_start, trial.datetime_complete = began, ended
        monkeypatch.setattr(optuna_sampler, "datetime", type("Clock", (), {"now": staticmethod(lambda: ended)}))
        overhead = trial.user_attrs["boca:why"]["claim"]["overhead"]
        assert study.sampler._paid(trial, TrialState.COMPLETE) == pytest.approx(20 - overhead)
        plain = optuna.create_study()
        plain.add_trial(trial)
        assert from_optuna(plain, measured)[0].seconds == 20
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_cost_that_was_assumed_does_not_come_back_as_seconds() -> None:
    measured = boca.Problem(PROBLEM.space, PROBLEM.fidelity, direction="minimize")
    opt = boca.Optimizer(measured, budget=None, seed=0)
    opt.add({"lr": 0.1, "width": 8}, {"epochs": 25}, 1.0)  # nobody knows how long it took
    opt.add({"lr": 0.1, "width": 9}, {"epochs": 25}, 1.0, 7.5)
    study = to_optuna(opt)
    assert ["boca:cost" in trial.user_attrs for trial in study.trials] == [False, True]
    back = boca.Optimizer(measured, budget=None, seed=0)
    back.add_all(from_optuna(study, measured))
    assert [trial.seconds for trial in back.history] == [None, 7.5]


def test_a_fidelity_of_the_sampler_is_not_lost_on_the_way() -> None:
    study = study_of(sampler(space=SPACE))
    study.optimize(objective, n_trials=2)
    with pytest.raises(InvalidInput, match=r"lacks the fidelities \['epochs'\]"):
        from_optuna(study, boca.Problem(PROBLEM.space, direction="minimize"))


def test_what_is_no_study_and_what_is_no_problem_are_refused() -> None:
    for call in (lambda: from_optuna(None, PROBLEM), lambda: best_at_target(None), lambda: best_at_target("s", {})):
        with pytest.raises(InvalidInput, match="study must be a study of Optuna"):
            call()
    with pytest.raises(InvalidInput, match="problem must be a Problem; got None"):
        from_optuna(optuna.create_study(), None)  # type: ignore[arg-type]


def test_a_study_that_does_not_fit_is_refused() -> None:
    study = optuna.create_study(direction="maximize")
    with pytest.raises(InvalidInput, match="is to maximize, the problem to minimize"):
        from_optuna(study, PROBLEM)
    strange = optuna.create_study()
    strange.add_trial(
        optuna.trial.create_trial(
            value=1.0, params={"lr": "big"}, distributions={"lr": CategoricalDistribution(["big", "small"])}
        )
    )
    with pytest.raises(InvalidInput, match="x of trial 0"):
        from_optuna(strange, PROBLEM)
    with pytest.raises(InvalidInput, match="needs its problem"):
        to_optuna(boca.History())
    with pytest.raises(InvalidInput, match="takes an Optimizer"):
        to_optuna(3)  # type: ignore[arg-type]


def test_a_name_that_is_not_there_is_told(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'boca.db'}"
    optimizer_with_results(1, storage=url, name="mine").storage.close()
    with pytest.raises(InvalidInput, match=r"no study 'yours'.* has: mine"):
        to_optuna(url, name="yours")


def test_a_storage_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no file"):
        to_optuna(f"sqlite:///{tmp_path / 'typo.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_enough(tmp_path: Path) -> None:
    opt = optimizer_with_results(2, storage=f"sqlite:///{tmp_path / 'boca.db'}", name="mine")
    opt.storage.close()
    assert len(to_optuna(str(tmp_path / "boca.db"), name="mine").trials) == 2


def test_limits_are_constraints_there_and_back():
    limits = {"latency": boca.AtMost(20.0), "recall": boca.AtLeast(0.9)}
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), subject_to=limits)
    opt = boca.Optimizer(problem, budget=None, seed=0)
    opt.add({"a": 0.25}, None, {"gain": 1.0, "latency": 25.0, "recall": 0.95}, notes={"host": "n1"})
    opt.add({"a": 0.75}, None, {"gain": 0.5, "latency": 18.0, "recall": 0.95})
    opt.add({"a": 0.5}, None, {"gain": None, "latency": 18.0, "recall": 0.95})
    study = to_optuna(opt)
    assert study.trials[0].constraints == pytest.approx({"latency": 5.0, "recall": -0.05})
    assert study.best_trial.params == {"a": 0.75}  # Optuna leaves the infeasible one out
    back = from_optuna(study, problem)
    assert [t.outcomes for t in back[:2]] == [t.outcomes for t in opt.history[:2]]
    assert back[0].notes == {"host": "n1"}
    assert back[2].state == "failed"


def test_constraints_of_another_sampler_become_outcomes():
    study = optuna.create_study()
    study.add_trial(
        optuna.trial.create_trial(
            value=1.0,
            params={"a": 0.5},
            distributions={"a": optuna.distributions.FloatDistribution(0, 1)},
            constraints={"latency": 2.5},
        )
    )
    problem = boca.Problem(
        boca.Space(a=boca.Float(0, 1)), direction="minimize", subject_to={"latency": boca.AtMost(20.0)}
    )
    assert from_optuna(study, problem)[0].outcomes == {"latency": 22.5}


def test_several_objectives_go_to_optuna_and_back() -> None:
    outcomes = {"loss": "minimize", "speed": "maximize", "recall": boca.AtLeast(0.5)}
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), boca.Space(n=boca.Int(1, 9)), outcomes=outcomes)
    opt = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=0)
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, {"loss": trial.x["a"] ** 2, "speed": trial.x["a"], "recall": 1 - trial.x["a"]}, seconds=1.0)
    opt.tell(opt.ask(), {"loss": None, "speed": 1.0, "recall": 1.0}, seconds=1.0)
    study = to_optuna(opt)
    assert [d.name for d in study.directions] == ["MINIMIZE", "MAXIMIZE"]
    assert study.metric_names == ["loss", "speed"]
    assert [t.values for t in study.trials[:4]] == [[t.outcomes["loss"], t.outcomes["speed"]] for t in opt.history[:4]]
    assert study.trials[4].state.name == "FAIL"
    assert {t.number for t in study.best_trials} == {t.number for t in opt.front}
    other = boca.Optimizer(problem, budget=None, strategy=boca.RandomSearch(), seed=1)
    other.add_all(from_optuna(study, problem))
    assert [t.outcomes for t in other.history] == [t.outcomes for t in opt.history[:4]]
    swapped = boca.Problem(problem.space, problem.fidelity, outcomes={"speed": "minimize", "loss": "minimize"})
    with pytest.raises(InvalidInput, match="to minimize speed"):
        from_optuna(study, swapped)
    with pytest.raises(InvalidInput, match="best_trials"):
        best_at_target(study, target={"n": 9})


def test_objectives_without_names_are_matched_by_their_order() -> None:
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.add_trial(
        optuna.trial.create_trial(values=[1.0, 2.0], params={"a": 0.5}, distributions={"a": FloatDistribution(0, 1)})
    )
    outcomes = {"loss": "minimize", "speed": "maximize"}
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)), outcomes=outcomes)
    assert from_optuna(study, problem)[0].outcomes == {"loss": 1.0, "speed": 2.0}
    with pytest.raises(InvalidInput, match="Pass a problem with outcomes="):
        from_optuna(study, boca.Problem(boca.Space(a=boca.Float(0, 1))))
