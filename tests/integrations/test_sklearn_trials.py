"""The table of scikit-learn: a row per trial, failed ones included, and a rank among those at the target."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import (
    StratifiedKFold,
)
from sklearn.tree import DecisionTreeClassifier

import boca
from integrations.searches import X, Y, fragile, scores, search


def test_only_the_target_competes_for_the_best():
    """At low fidelity this estimator scores higher than it ever can at the target."""

    class Flattering(ClassifierMixin, BaseEstimator):
        def __init__(self, a=0.5, effort=100):
            self.a, self.effort = a, effort

        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict(self, X):
            return np.full(len(X), self.classes_[0])

        def score(self, X, y):
            return 1.0 - self.effort / 100 + 0.1 * self.a

    fitted = search(Flattering(), {"a": (0.0, 1.0)}, {"effort": (5, 100)}).fit(X, Y)
    table = fitted.cv_results_
    assert scores(fitted).max() > fitted.best_score_ + 0.2  # the trap was there
    assert table["at_target"][fitted.best_index_]
    assert fitted.best_score_ == scores(fitted)[table["at_target"]].max()
    assert fitted.best_params_["effort"] == 100
    at_target = table["rank_test_score"][table["at_target"]]
    assert sorted(at_target) == list(range(1, len(at_target) + 1))
    assert set(table["rank_test_score"][~table["at_target"]]) == {len(at_target) + 1}
    assert fitted.result_.value == fitted.best_score_
    assert fitted.result_.x == {"a": fitted.best_params_["a"]}


def test_the_table_has_a_row_a_trial_with_the_usual_columns_and_ours(fitted):
    table, history = fitted.cv_results_, fitted.history_
    usual = {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time", "params", "param_max_depth"}
    usual |= {"split0_test_score", "split2_test_score", "mean_test_score", "std_test_score", "rank_test_score"}
    assert usual | {"fidelity_n_samples", "at_target", "cost", "state"} <= set(table)
    assert {len(column) for column in table.values()} == {len(history)}
    assert len(history) > 3
    for row, trial in enumerate(history):
        assert table["params"][row] == trial.x
        assert table["param_max_depth"][row] == trial.x["max_depth"]
        assert table["fidelity_n_samples"][row] == trial.z["n_samples"]
        assert table["cost"][row] == trial.cost == trial.z["n_samples"] / len(X)
        assert table["mean_test_score"][row] == trial.value
        assert table["state"][row] == trial.state == "complete"
        assert table["at_target"][row] == (trial.z["n_samples"] == len(X))
    assert 0 < table["at_target"].sum() < len(history)
    assert fitted.result_.spent == pytest.approx(sum(table["cost"]))
    assert fitted.result_.spent <= 3
    assert pd.DataFrame(table).shape[0] == len(history)


@pytest.mark.parametrize("error_score", [np.nan, -7.0])
def test_a_point_that_cannot_be_fitted_fails_and_the_search_goes_on(error_score):
    with pytest.warns(FitFailedWarning, match=r"trials failed, the last with: RuntimeError: too deep"):
        found = fragile(error_score=error_score).fit(X, Y)
    table = found.cv_results_
    deep = np.array([params["max_depth"] >= 7 for params in table["params"]])
    assert 0 < deep.sum() < len(deep)
    assert list(table["state"]) == ["failed" if bad else "complete" for bad in deep]
    assert [trial.state for trial in found.history_] == list(table["state"])
    assert [trial.x["max_depth"] for trial in found.history_] == list(table["param_max_depth"])
    assert np.array_equal(scores(found)[deep], np.full(deep.sum(), error_score), equal_nan=True)
    assert np.all(np.isfinite(scores(found)[~deep]))
    assert np.array_equal(table["split0_test_score"][deep], scores(found)[deep], equal_nan=True)
    assert list(table["rank_test_score"][deep]) == [table["rank_test_score"].max()] * deep.sum()
    assert found.best_params_["max_depth"] < 7
    failed = next(trial for trial in found.history_ if trial.state == "failed")
    assert "too deep" in failed.reason
    assert "Traceback" in failed.output
    assert table["cost"][failed.number] > 0


def test_a_point_that_fails_in_some_folds_only_follows_error_score():
    class Sometimes(DecisionTreeClassifier):
        def fit(self, X, y):
            if self.max_depth >= 7 and X[0, 0] == X_FIRST:
                raise RuntimeError("not this fold")
            return super().fit(X, y)

    X_FIRST = X[np.sort(next(StratifiedKFold(3).split(X, Y))[0])][0, 0]
    space, calm = {"max_depth": (1, 12)}, {"fidelity": {}, "budget": 8, "strategy": boca.RandomSearch()}
    with pytest.warns(FitFailedWarning):
        found = search(Sometimes(random_state=0), space, **calm).fit(X, Y)
    deep = np.array([params["max_depth"] >= 7 for params in found.cv_results_["params"]])
    assert 0 < deep.sum() < len(deep)
    assert list(np.isnan(scores(found))) == list(deep)
    assert [trial.state == "failed" for trial in found.history_] == list(deep)
    assert not np.isnan(found.cv_results_["split1_test_score"]).any()
    with pytest.warns(FitFailedWarning):
        valued = search(Sometimes(random_state=0), space, error_score=0.0, **calm).fit(X, Y)
    assert {trial.state for trial in valued.history_} == {"complete"}
    assert np.all(valued.cv_results_["split0_test_score"][deep] == 0.0)


def test_training_scores_are_there_if_wanted():
    found = search(return_train_score=True, budget=1).fit(X, Y)
    assert np.all(found.cv_results_["mean_train_score"] >= 0.3)
    assert "mean_train_score" not in search(budget=1).fit(X, Y).cv_results_
