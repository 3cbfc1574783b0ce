"""Conditions that the trials of an Optuna study show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from boca.domain.conditions import When

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'boca[optuna]'")

from optuna.distributions import CategoricalDistribution, FloatDistribution  # noqa: E402

from boca.integrations.optuna_branches import branching, sometimes_there  # noqa: E402
from boca.integrations.optuna_bridge import Dimension  # noqa: E402


def conditions(objective: Callable[[Any], Any], trials: int = 40) -> dict[str, When | None]:
    """Return what random trials of an objective show of its parameters."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: objective(trial) or 0.0, n_trials=trials)
    shared = optuna.search_space.IntersectionSearchSpace().calculate(study)
    known = {name: Dimension.of(found, name) for name, found in shared.items()}
    axes = branching(known, sometimes_there(study.trials, {}), study.trials)
    return {name: axis.parameter.when for name, axis in axes.items()}


def test_a_choice_decides_what_is_active() -> None:
    def objective(trial: Any) -> None:
        trial.suggest_float("C", 0.0, 1.0)
        if trial.suggest_categorical("kernel", ["rbf", "poly", "linear"]) != "linear":
            trial.suggest_float("gamma", 0.0, 1.0)

    assert conditions(objective) == {"C": None, "kernel": None, "gamma": When({"kernel": ["poly", "rbf"]})}


def test_conditions_nest() -> None:
    def objective(trial: Any) -> None:
        if trial.suggest_categorical("model", ["svm", "forest"]) == "svm":
            if trial.suggest_categorical("kernel", ["rbf", "linear"]) == "rbf":
                trial.suggest_float("gamma", 0.0, 1.0)
        else:
            trial.suggest_int("depth", 1, 30)

    assert conditions(objective) == {
        "model": None,
        "kernel": When({"model": ["svm"]}),
        "depth": When({"model": ["forest"]}),
        "gamma": When({"kernel": ["rbf"]}),
    }


def test_a_number_of_layers_decides_which_layers_there_are() -> None:
    def objective(trial: Any) -> None:
        for layer in range(trial.suggest_int("layers", 1, 3)):
            trial.suggest_int(f"units {layer}", 4, 128)

    found = conditions(objective)
    assert found["units 0"] is None
    assert found["units 1"] == When({"layers": [2, 3]})
    assert found["units 2"] == When({"layers": [3]})


def test_what_no_other_parameter_explains_stays_out() -> None:
    def objective(trial: Any) -> None:
        trial.suggest_categorical("kind", ["a", "b"])
        if trial.number % 3 == 0:
            trial.suggest_float("sometimes", 0.0, 1.0)

    assert conditions(objective) == {"kind": None}


def test_what_is_asked_for_later_explains_nothing() -> None:
    ranges = {"y": FloatDistribution(0.0, 1.0), "parity": CategoricalDistribution(["odd", "even"])}
    trials = [
        optuna.trial.create_trial(params=params, distributions={name: ranges[name] for name in params}, value=0.0)
        for params in ({"y": 0.5, "parity": "odd"}, {"parity": "even"}, {"y": 0.7, "parity": "odd"})
    ]
    assert branching(
        {"parity": Dimension.of(ranges["parity"], "parity")}, sometimes_there(trials, {}), trials
    ).keys() == {"parity"}


def test_a_range_that_changes_has_no_condition() -> None:
    def objective(trial: Any) -> None:
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            trial.suggest_float("x", 0.0, 1.0 + trial.number)

    assert conditions(objective) == {"kind": None}
