"""Compare `FidelitySearchCV` with scikit-learn's random and halving searches, at equal seconds.

    python benchmarks/sklearn_search.py [--seeds 0 1 2 3 4] [--seconds 4] [--problems digits cancer diabetes]

Every method gets the same seconds on one thread, without the final refit.  `FidelitySearchCV` has them as its budget,
with its cost measured; the time to choose counts.  The other two have no limit in time, so they run again and again
with fresh random points, each run with all its usual rounds, as long as a run of the mean length so far still fits; the
best of all their runs counts.  Seconds are those of the processor in this process, so that other programs on the
machine do not count; `--wall` takes those of the clock on the wall.

What a search returns is judged by what it did not see: the score over reference folds, the same for everybody and
other than those of the searches, and the score on samples that were held out.  Both at full fidelity.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: it reads them once

import argparse  # noqa: E402
import math  # noqa: E402
import platform  # noqa: E402
import statistics  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Callable, Mapping, Sequence  # noqa: E402
from dataclasses import dataclass, replace  # noqa: E402
from typing import Any  # noqa: E402

import scipy.stats as st  # noqa: E402
import sklearn  # noqa: E402
from sklearn.base import clone, is_classifier  # noqa: E402
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits  # noqa: E402
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor  # noqa: E402
from sklearn.experimental import enable_halving_search_cv  # noqa: E402, F401
from sklearn.metrics import get_scorer  # noqa: E402
from sklearn.model_selection import (  # noqa: E402
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_score,
    train_test_split,
)
from sklearn.svm import SVC  # noqa: E402

import boca  # noqa: E402
from boca.integrations.sklearn import FidelitySearchCV  # noqa: E402

FOLDS = 3
CANDIDATES, FACTOR = 9, 3  # of a run of halving: nine at a ninth of the resource, three at a third, one at all of it
REFERENCE = 20_170_006  # shuffles the reference folds and draws the held-out samples


@dataclass(frozen=True)
class Task:
    """An estimator on a bundled data set; the ends of the fidelities are those that halving uses too."""

    data: tuple[Any, Any]
    estimator: Any
    space: Mapping[str, Any]
    fidelity: Mapping[str, tuple[int, int | None]]
    resource: str
    scoring: str

    @property
    def parts(self) -> tuple[Any, Any, Any, Any]:
        """Training samples, held-out samples, and their values."""
        X, y = self.data
        stratify = y if is_classifier(self.estimator) else None
        return tuple(train_test_split(X, y, test_size=0.25, random_state=REFERENCE, stratify=stratify))

    def full(self, params: Mapping[str, Any]) -> Any:
        """Return the estimator with these parameters, at the upper end of every fidelity."""
        upper = {name: high for name, (_, high) in self.fidelity.items() if name != "n_samples"}
        return clone(self.estimator).set_params(**{**params, **upper})


def tasks() -> dict[str, Task]:
    digits = load_digits(return_X_y=True)
    boosting = {
        "learning_rate": st.loguniform(0.01, 0.5),
        "max_depth": st.randint(1, 7),
        "subsample": st.uniform(0.4, 0.6),
        "max_features": st.uniform(0.1, 0.9),
    }
    return {
        "digits": Task(
            (digits[0] / 16.0, digits[1]),
            SVC(),
            {"C": st.loguniform(1e-2, 1e3), "gamma": st.loguniform(1e-4, 1e1)},
            {"n_samples": (150, None)},
            "n_samples",
            "accuracy",
        ),
        "cancer": Task(
            load_breast_cancer(return_X_y=True),
            GradientBoostingClassifier(random_state=0),
            boosting,
            {"n_estimators": (6, 54)},
            "n_estimators",
            "neg_log_loss",
        ),
        "diabetes": Task(
            load_diabetes(return_X_y=True),
            GradientBoostingRegressor(random_state=0),
            boosting,
            {"n_estimators": (11, 99)},
            "n_estimators",
            "neg_root_mean_squared_error",
        ),
    }


# The methods --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What a search returned, with the seconds that it took and how often it evaluated at full fidelity."""

    params: Mapping[str, Any]
    seconds: float
    evaluations: int
    full: int
    reference: float = math.nan
    held_out: float = math.nan


def fidelity(task: Task, X: Any, y: Any, seed: int, seconds: float) -> Found:
    search = FidelitySearchCV(
        task.estimator,
        task.space,
        task.fidelity,
        cost="measured",
        budget=boca.seconds(seconds),
        scoring=task.scoring,
        cv=FOLDS,
        refit=False,
        random_state=seed,
    )
    began = time.perf_counter()
    search.fit(X, y)
    took = time.perf_counter() - began
    return Found(search.best_params_, took, len(search.history_), int(search.cv_results_["at_target"].sum()))


def repeated(make: Callable[[int], Any], X: Any, y: Any, seed: int, seconds: float) -> Found:
    """Run searches with fresh seeds while one of the mean length so far still fits; return the best of all."""
    began, best, runs, evaluations, full = time.perf_counter(), None, 0, 0, 0
    while True:
        search = make(100_000 * (seed + 1) + runs).fit(X, y)
        runs += 1
        table = search.cv_results_
        evaluations += len(table["params"])
        last = table["n_resources"] == table["n_resources"].max() if "n_resources" in table else None
        full += len(table["params"]) if last is None else int(last.sum())
        if best is None or search.best_score_ > best.best_score_:
            best = search
        took = time.perf_counter() - began
        if took * (runs + 1) / runs > seconds:
            return Found(best.best_params_, took, evaluations, full)


def random(task: Task, X: Any, y: Any, seed: int, seconds: float) -> Found:
    def make(seed: int) -> Any:
        estimator = task.full({})
        return RandomizedSearchCV(
            estimator, task.space, n_iter=1, scoring=task.scoring, cv=FOLDS, refit=False, random_state=seed
        )

    return repeated(make, X, y, seed, seconds)


def halving(task: Task, X: Any, y: Any, seed: int, seconds: float) -> Found:
    high = task.fidelity[task.resource][1]

    def make(seed: int) -> Any:
        return HalvingRandomSearchCV(
            task.estimator,
            task.space,
            n_candidates=CANDIDATES,
            factor=FACTOR,
            resource=task.resource,
            min_resources="exhaust",
            max_resources="auto" if high is None else high,
            scoring=task.scoring,
            cv=FOLDS,
            refit=False,
            random_state=seed,
        )

    return repeated(make, X, y, seed, seconds)


METHODS = {"FidelitySearchCV": fidelity, "HalvingRandomSearchCV": halving, "RandomizedSearchCV": random}


def judged(task: Task, found: Found) -> Found:
    """Return what was found with its scores where no search looked."""
    X, X_test, y, y_test = task.parts
    kind = StratifiedKFold if is_classifier(task.estimator) else KFold
    folds = kind(FOLDS, shuffle=True, random_state=REFERENCE)
    model = task.full(found.params)
    reference = cross_val_score(model, X, y, scoring=task.scoring, cv=folds).mean()
    held_out = get_scorer(task.scoring)(model.fit(X, y), X_test, y_test)
    return replace(found, reference=float(reference), held_out=float(held_out))


# The table ----------------------------------------------------------------------------------------------------------


def mean(values: Sequence[float]) -> str:
    """Return the mean and its standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return f"{statistics.fmean(values):.4g} ± {error:.2g}"


def rows(name: str, task: Task, runs: Mapping[str, Sequence[Found]]) -> list[str]:
    ours = runs["FidelitySearchCV"]
    lines = []
    for method, found in runs.items():
        cells = [name, task.scoring, f"`{method}`"]
        for key in ("reference", "held_out"):
            values = [getattr(f, key) for f in found]
            gains = [getattr(f, key) - value for f, value in zip(ours, values, strict=True)]
            cells += [mean(values), "" if found is ours else mean(gains)]
        cells += [f"{statistics.fmean(getattr(f, key) for f in found):.1f}" for key in ("evaluations", "full")]
        cells.append(f"{statistics.fmean(f.seconds for f in found):.1f}")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


HEAD = [
    "| data | score | method | reference folds | ours − it | held out | ours − it | evaluations | at full | seconds |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
]


def main() -> None:
    everything = tasks()
    parser = argparse.ArgumentParser(description="FidelitySearchCV beside scikit-learn's searches, at equal seconds.")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(5)), help="default: 0 to 4")
    parser.add_argument("--seconds", type=float, default=4.0, help="of every search (default: 4)")
    parser.add_argument("--wall", action="store_true", help="seconds of the wall clock, not of the processor")
    parser.add_argument("--problems", nargs="+", choices=everything, default=list(everything))
    options = parser.parse_args()
    if not options.wall:
        time.perf_counter = time.process_time  # the clock of this program and of boca alike

    clock = "by the clock" if options.wall else "of processor time"
    print(
        f"{options.seconds:g} s {clock} a search, seeds {' '.join(map(str, options.seeds))}, one thread. "
        f"Python {platform.python_version()}, scikit-learn {sklearn.__version__}.\n"
        "Means ± standard errors; differences are paired by seed, and more is better.\n"
    )
    print("\n".join(HEAD), flush=True)
    for name in options.problems:
        task = everything[name]
        X, _, y, _ = task.parts
        runs: dict[str, list[Found]] = {method: [] for method in METHODS}
        for seed in options.seeds:
            turn = list(METHODS)
            turn = turn[seed % len(turn) :] + turn[: seed % len(turn)]  # no method is always the first
            for method in turn:
                runs[method].append(judged(task, METHODS[method](task, X, y, seed, options.seconds)))
            print(f"{name}, seed {seed} done", file=sys.stderr, flush=True)
        print("\n".join(rows(name, task, runs)), flush=True)


if __name__ == "__main__":
    main()
