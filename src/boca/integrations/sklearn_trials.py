"""Trials of a search in scikit-learn: each cross-validated, and a row of its table."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from boca.domain.errors import InvalidInput
from boca.domain.observation import OBJECTIVE
from boca.domain.shorthand import is_number
from boca.domain.space import Point
from boca.domain.trial import History
from boca.integrations.sklearn_folds import Folds, Splitter
from boca.integrations.sklearn_ranges import SAMPLES, Settings
from boca.study.optimizer import Optimizer

Table: TypeAlias = dict[str, Any]
"""What scikit-learn calls `cv_results_`: an array for every column."""

_NO_FOLD_FITTED = "All the "  # the start of scikit-learn's error if no fold could be fitted


def refit_needed(refit: object) -> InvalidInput:
    return InvalidInput(
        f"refit={refit!r} does not name a metric; with more than one, it must name the one to search by. "
        "Pass refit='accuracy', for example."
    )


@dataclass(frozen=True)
class Plan:
    """A search before its first fit."""

    optimizer: Optimizer
    settings: Settings
    full: Point
    folds: Folds

    def fidelities(self, z: Mapping[str, Any]) -> Point:
        """Return every fidelity that the user named, also one that does not vary with these data."""
        return self.full | dict(z)

    def parameters(self, x: Mapping[str, Any], z: Mapping[str, Any]) -> Point:
        """Return the settings of the estimator."""
        own = {name: value for name, value in self.fidelities(z).items() if name != SAMPLES}
        return self.settings.of(x) | own

    def splitter(self, z: Mapping[str, Any]) -> Splitter:
        return Splitter(self.folds, self.fidelities(z).get(SAMPLES, self.folds.total))


@dataclass(frozen=True)
class Score:
    """The result of one cross-validation."""

    value: float | None
    seconds: float
    reason: str = ""
    output: str | None = None
    outcomes: Mapping[str, float] = field(default_factory=dict)
    """The means of the metrics that have limits."""

    @property
    def told(self) -> Any:
        """What is told of the trial: the score, by name if other metrics have limits."""
        return self.value if not self.outcomes else {OBJECTIVE: self.value, **self.outcomes}


class Trials:
    """Cross-validates through scikit-learn, and keeps scikit-learn's table in the order of the trials."""

    def __init__(self, plan: Plan, evaluate: Callable[..., Table], refit: object, error_score: object) -> None:
        self._plan = plan
        self._evaluate = evaluate
        self._refit = refit
        self._error_score = error_score
        self._table: Table = {}
        self._has_row: list[bool] = []
        self._params: list[Point] = []

    def run(self, x: Mapping[str, Any], z: Mapping[str, Any]) -> Score:
        """Return the mean score over the folds, or why there is none."""
        params = self._plan.parameters(x, z)
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                # it would come for the whole table at every trial; failures are reported once, at the end
                warnings.filterwarnings("ignore", message="One or more of the (test|train) scores are non-finite")
                self._table = self._evaluate([params], cv=self._plan.splitter(z))
        except ValueError as error:
            output = str(error).strip()
            if self._error_score == "raise" or not output.startswith(_NO_FOLD_FITTED):
                raise
            score = Score(None, time.perf_counter() - began, output.splitlines()[-1], output)
        else:
            value = float(self._table[f"mean_test_{self._metric()}"][-1])
            seconds = time.perf_counter() - began
            if math.isfinite(value):
                score = Score(value, seconds, outcomes=self._outcomes())
            else:
                score = Score(None, seconds, f"The mean score is {value}: a fold could not be fitted or scored.")
        self._has_row.append(score.value is not None or score.output is None)
        self._params.append(params)
        return score

    def _outcomes(self) -> dict[str, float]:
        """Return the means of the metrics that have limits, as far as they are scored."""
        limits = self._plan.optimizer.problem.subject_to
        means = {
            name: float(self._table[f"mean_test_{name}"][-1]) for name in limits if f"mean_test_{name}" in self._table
        }
        return {name: mean for name, mean in means.items() if math.isfinite(mean)}

    @property
    def partly_fitted(self) -> Point | None:
        """The settings that were tried last; None if none of their folds could be fitted."""
        return self._params[-1] if self._has_row[-1] else None

    def _metric(self) -> str:
        if "mean_test_score" in self._table:
            return "score"
        if not isinstance(self._refit, str) or f"mean_test_{self._refit}" not in self._table:
            raise refit_needed(self._refit)  # scoring is a function that returned more than one
        return self._refit

    def complete_table(self, history: History) -> None:
        """Give failed trials their rows, rank the trials at the target, and add the columns of fidelities and costs.

        The table is changed in place, because scikit-learn uses the one that it returned last.
        """
        table = self._table if all(self._has_row) else self._with_failed_rows()
        problem = self._plan.optimizer.problem
        at_target = np.array([problem.is_target(trial.z) for trial in history])
        complete = np.array([trial.state == "complete" for trial in history])
        eligible = at_target & complete
        within = np.array([not problem.broken(trial.outcomes) for trial in history])
        if (eligible & within).any():
            eligible &= within
        else:
            warnings.warn(
                f"No trial at the target keeps {list(problem.subject_to)} within the limits of subject_to: best_* are "
                "the best of all trials there. Pass a larger budget, or wider limits.",
                stacklevel=5,
            )
        for name in [name for name in table if name.startswith("rank_test_")]:
            table[name] = _ranked(table[name.replace("rank", "mean", 1)], eligible)
        fidelities = [self._plan.fidelities(trial.z) for trial in history]
        table.update({f"fidelity_{name}": np.array([z[name] for z in fidelities]) for name in self._plan.full})
        table["at_target"] = at_target
        table["cost"] = np.array([trial.cost for trial in history])
        table["state"] = np.array([trial.state for trial in history], dtype=object)
        self._table.update(table)

    def _with_failed_rows(self) -> Table:
        rows = np.flatnonzero(self._has_row)
        table: Table = {}
        for name, column in self._table.items():
            if name == "params":
                table[name] = self._params
            elif name.startswith("param_"):
                key = name.removeprefix("param_")
                hidden = [key not in params for params in self._params]
                table[name] = np.ma.MaskedArray(_column([params.get(key) for params in self._params]), mask=hidden)
            else:
                is_score = "_test_" in name or "_train_" in name
                unknown = self._error_score if is_score and not name.startswith("std_") else np.nan
                table[name] = np.full(len(self._has_row), unknown, dtype=float)
                table[name][rows] = column
        return table


def _column(values: list[Any]) -> NDArray[Any]:
    """Return numbers as an array of numbers, and anything else as an array of objects."""
    if all(is_number(value) for value in values) or all(isinstance(value, bool) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _ranked(scores: NDArray[np.float64], eligible: NDArray[np.bool_]) -> NDArray[np.int32]:
    """Rank the eligible, equal scores alike; all others share the next rank."""
    from scipy.stats import rankdata

    ranks = np.full(len(scores), np.count_nonzero(eligible) + 1, dtype=np.int32)
    known = eligible & np.isfinite(scores)
    ranks[known] = rankdata(-scores[known], method="min").astype(np.int32)
    return ranks
