"""Searches that run: learners of scikit-learn on data that come with it, judged by the clock.

The cost is not declared: a method measures it, and the time to choose counts.  One target is the number of seconds in
`_SEARCHES`, whatever a training takes on this machine: the budget is the same number of seconds for every method.
The optimum is not known; `compared` takes the best that any run found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from benchmarks.real.task import Task
from boca.domain.budget import seconds
from boca.domain.errors import BocaError
from boca.domain.problem import Problem
from boca.domain.space import Choice, Float, Int, Parameter, Point, Space

_FOLDS = 3
_SEED = 20_170_006  # shuffles the samples once, so that the first n are a sample of all


@dataclass(frozen=True)
class Search:
    """A learner, its ranges, and the scorer of its cross-validation.

    Args:
        data: a data set of scikit-learn.
        learner: from a configuration to an estimator; fidelities other than `samples` are in it too.
        space: what is searched.
        fidelity: what makes a training cheaper; `samples` is how many samples are used.
        scoring: as in scikit-learn; more is better.
        target_seconds: what an evaluation at the target took on one core of a small machine, roughly.
    """

    data: str
    learner: Callable[[Mapping[str, Any]], Any]
    space: Mapping[str, Parameter]
    fidelity: Mapping[str, Parameter]
    scoring: str
    target_seconds: float


def _support_vectors(p: Mapping[str, Any]) -> Any:
    from sklearn.svm import SVC

    return SVC(C=p["C"], gamma=p["gamma"], kernel=p["kernel"])


def _network(p: Mapping[str, Any]) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        hidden_layer_sizes=(p["width"],),
        alpha=p["alpha"],
        learning_rate_init=p["rate"],
        batch_size=p["batch"],
        max_iter=p["epochs"],
        random_state=0,
    )


def _trees(p: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import GradientBoostingClassifier

    return GradientBoostingClassifier(
        learning_rate=p["rate"],
        max_depth=p["depth"],
        subsample=p["subsample"],
        max_features=p["features"],
        n_estimators=p["trees"],
        random_state=0,
    )


def _forest(p: Mapping[str, Any]) -> Any:
    from sklearn.ensemble import ExtraTreesRegressor

    return ExtraTreesRegressor(
        n_estimators=p["trees"],
        max_features=p["features"],
        min_samples_leaf=p["least"],
        max_depth=p["depth"],
        random_state=0,
    )


SEARCHES: Mapping[str, Search] = {
    "live_svc_digits": Search(
        "digits",
        _support_vectors,
        {"C": Float(1e-2, 1e3, log=True), "gamma": Float(1e-6, 1.0, log=True), "kernel": Choice(["rbf", "sigmoid"])},
        {"samples": Int(150, 1797, log=True)},
        "accuracy",
        0.3,
    ),
    "live_mlp_digits": Search(
        "digits",
        _network,
        {
            "width": Int(4, 128, log=True),
            "alpha": Float(1e-6, 10.0, log=True),
            "rate": Float(1e-4, 0.3, log=True),
            "batch": Int(16, 256, log=True),
        },
        {"samples": Int(150, 1797, log=True), "epochs": Int(2, 30)},
        "neg_log_loss",
        0.7,
    ),
    "live_trees_cancer": Search(
        "breast_cancer",
        _trees,
        {
            "rate": Float(0.01, 1.0, log=True),
            "depth": Int(1, 7),
            "subsample": Float(0.3, 1.0),
            "features": Float(0.05, 1.0),
        },
        {"trees": Int(5, 80)},
        "neg_log_loss",
        0.4,
    ),
    "live_forest_diabetes": Search(
        "diabetes",
        _forest,
        {"features": Float(0.05, 1.0), "least": Int(1, 50, log=True), "depth": Int(1, 15)},
        {"samples": Int(60, 442, log=True), "trees": Int(4, 100, log=True)},
        "r2",
        0.2,
    ),
}


def task(name: str, seed: int) -> Task:
    """Return the task of a search; the seed picks nothing."""
    search = SEARCHES[name]
    return Task(
        name=name,
        problem=Problem(Space(search.space), Space(search.fidelity)),
        budget=seconds(15 * search.target_seconds),
        function=lambda x, z: score(name, {**x, **z}),
        optimum=None,
        maximizer=None,
        noise_variance=0.0,
        hyperparameters=None,
        seed=seed,
        family="live",
        target_seconds=search.target_seconds,
    )


def score(name: str, p: Point) -> float:
    """Return the mean score over the folds; a training that diverged scores as the worst finite one would, -10."""
    import warnings

    from sklearn.model_selection import cross_val_score

    search = SEARCHES[name]
    X, y = _data(search.data)
    n = int(p.get("samples", len(X)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = float(
            cross_val_score(
                search.learner(p), X[:n], y[:n], cv=_FOLDS, scoring=search.scoring, error_score=-10.0
            ).mean()
        )
    return max(found, -10.0) if math.isfinite(found) else -10.0


@cache
def _data(name: str) -> tuple[Any, Any]:
    try:
        from sklearn import datasets
        from sklearn.utils import shuffle
    except ImportError as missing:
        raise BocaError(
            "The live searches need scikit-learn, which is not in this environment. Type `pip install scikit-learn`."
        ) from missing
    X, y = shuffle(*getattr(datasets, f"load_{name}")(return_X_y=True), random_state=_SEED)
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9), y
