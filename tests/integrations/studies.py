"""Studies of Optuna that the tests share."""

from __future__ import annotations

import math
from typing import Any

import pytest

import boca

optuna = pytest.importorskip("optuna", reason="Optuna is not installed: pip install 'boca[optuna]'")


from boca.integrations.optuna import BocaSampler  # noqa: E402

EPOCHS = {"epochs": boca.Int(5, 50)}
SPACE = {"lr": boca.Float(1e-4, 1.0, log=True), "width": boca.Int(8, 64)}
PROBLEM = boca.Problem(boca.Space(SPACE), boca.Space(EPOCHS), cost=lambda z: z["epochs"], direction="minimize")


def loss(params: dict[str, Any]) -> float:
    return (math.log10(params["lr"]) + 2) ** 2 + (params["width"] - 32) ** 2 / 400 + 1.0 / params["epochs"]


def objective(trial: Any) -> float:
    trial.suggest_float("lr", 1e-4, 1.0, log=True)
    trial.suggest_int("width", 8, 64)
    trial.suggest_int("epochs", 5, 50)
    return loss(trial.params)


def sampler(**settings: Any) -> BocaSampler:
    return BocaSampler(**({"fidelity": EPOCHS, "cost": lambda z: z["epochs"], "seed": 0} | settings))


def study_of(made: BocaSampler, **settings: Any) -> Any:
    return optuna.create_study(sampler=made, **settings)


def params_of(study: Any) -> list[dict[str, Any]]:
    return [dict(sorted(trial.params.items())) for trial in study.trials]


def phases(study: Any) -> list[str]:
    return [trial.user_attrs["boca:why"]["phase"] for trial in study.trials]
