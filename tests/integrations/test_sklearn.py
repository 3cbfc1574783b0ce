"""FidelitySearchCV keeps the promises of a scikit-learn search, and those of boca: only the target counts."""

from __future__ import annotations

import builtins
import importlib
import itertools
import pickle
import sys
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats as st
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as hs
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification, make_regression
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import boca
from boca.domain.errors import BocaError, InvalidInput
from boca.integrations.sklearn import FidelitySearchCV, FitsFailed, _Folds, _Settings, nested_subset

X, Y = make_classification(240, 6, n_informative=4, n_classes=3, weights=[0.6, 0.3], flip_y=0.2, random_state=0)
XR, YR = make_regression(200, 5, noise=20.0, random_state=0)
TREE = DecisionTreeClassifier(random_state=0)
DEPTH = {"max_depth": boca.Int(1, 12), "min_samples_leaf": boca.Int(1, 30, log=True)}


def search(estimator=TREE, space=DEPTH, fidelity=None, **settings):
    """Return a small search, which every argument may change."""
    fidelity = {"n_samples": (40, None)} if fidelity is None else fidelity
    return FidelitySearchCV(
        estimator, space, fidelity, **({"budget": boca.targets(3), "cv": 3, "random_state": 0} | settings)
    )


def scores(fitted):
    return fitted.cv_results_["mean_test_score"]


@pytest.fixture(scope="module")
def fitted():
    return search().fit(X, Y)


@dataclass(frozen=True)
class Cheap:
    """A strategy that asks for random points at the lowest fidelity, for the target never, or once after the first."""

    then_target: bool = False

    def suggest(self, problem, history, budget, rng):
        z = {name: parameter.low for name, parameter in problem.fidelity.items()}
        z = problem.target if self.then_target and history else z
        x = problem.space.from_unit(problem.space.snap(rng.random((1, len(problem.space))))[0])
        return boca.Suggestion(x, z, {"reason": "Cheap.", "phase": "start"})


# scikit-learn's own checks ------------------------------------------------------------------------------------------

# error_score="raise", as scikit-learn checks its own searches: they do not look at the data, their estimators do.
CHECKED = {
    "fidelity": {"n_samples": (10, None)},
    "budget": boca.targets(1.99),
    "strategy": Cheap(then_target=True),  # two trials: there are hundreds of fits
    "cv": 2,
    "error_score": "raise",
}
FAILING = {"check_supervised_y_2d": "the estimator takes a column for y; GridSearchCV fails this check just so"}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # of type_of_target, given inf
@parametrize_with_checks(
    [
        search(LogisticRegression(), {"C": boca.Float(0.1, 1.0, log=True)}, **CHECKED),
        search(Ridge(), {"alpha": boca.Float(0.1, 1.0, log=True)}, **CHECKED),
    ],
    expected_failed_checks=lambda checked: FAILING if is_regressor(checked) else {},
)
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


# What counts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimator", "space", "data", "cv", "scoring"),
    [
        (TREE, DEPTH, (X, Y), 3, None),
        (TREE, DEPTH, (X, Y), StratifiedKFold(4, shuffle=True, random_state=1), "f1_macro"),
        (TREE, DEPTH, (X, Y), ShuffleSplit(2, random_state=3), make_scorer(accuracy_score)),
        (TREE, DEPTH, (X, Y), list(KFold(3).split(X)), "accuracy"),
        (DecisionTreeRegressor(random_state=0), DEPTH, (XR, YR), 3, "neg_mean_squared_error"),
        (Ridge(), {"alpha": (0.1, 100.0)}, (XR, YR), TimeSeriesSplit(3), None),
    ],
)
def test_at_the_target_a_score_is_that_of_cross_val_score(estimator, space, data, cv, scoring):
    fitted = search(estimator, space, cv=cv, scoring=scoring).fit(*data)
    rows = np.flatnonzero(fitted.cv_results_["at_target"])
    assert len(rows)
    for row in rows:
        model = clone(estimator).set_params(**fitted.cv_results_["params"][row])
        expected = cross_val_score(model, *data, cv=cv, scoring=scoring)
        seen = [fitted.cv_results_[f"split{k}_test_score"][row] for k in range(len(expected))]
        assert seen == list(expected)
        assert scores(fitted)[row] == expected.mean()
    assert fitted.best_score_ == cross_val_score(fitted.best_estimator_, *data, cv=cv, scoring=scoring).mean()


def test_a_splitter_that_shuffles_anew_gives_all_trials_the_same_folds():
    class Fixed(GaussianNB):
        """An estimator whose parameter does nothing: only the folds could make its scores differ."""

        def __init__(self, mark=0):
            super().__init__()
            self.mark = mark

    found = search(Fixed(), {"mark": (0, 9)}, {}, budget=4, cv=KFold(3, shuffle=True)).fit(X, Y)
    assert len(found.history_) == 4
    assert len(set(scores(found))) == 1


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


def test_what_is_not_a_fit_is_delegated(fitted):
    assert fitted.predict(X).shape == Y.shape
    assert fitted.predict_proba(X).shape == (len(X), 3)
    assert fitted.score(X, Y) == accuracy_score(Y, fitted.predict(X))
    assert list(fitted.classes_) == [0, 1, 2]
    assert fitted.n_features_in_ == 6
    assert is_classifier(fitted)
    assert not hasattr(fitted, "transform")
    assert fitted.best_estimator_.get_params()["max_depth"] == fitted.best_params_["max_depth"]
    with pytest.raises(NotFittedError):
        search().predict(X)


def test_an_estimator_without_y_and_with_transform():
    found = search(KMeans(n_init=1, random_state=0), {"n_clusters": (2, 6)}, {"max_iter": (2, 20)}).fit(XR)
    assert found.transform(XR).shape == (len(XR), found.best_params_["n_clusters"])
    assert found.best_params_["max_iter"] == 20


def test_without_refit_there_is_no_estimator_but_a_best():
    found = search(refit=False).fit(X, Y)
    assert found.best_params_ == found.history_[found.best_index_].x
    assert not hasattr(found, "best_estimator_")
    assert not hasattr(found, "predict")


def test_it_can_be_cloned_set_and_pickled(fitted):
    plain = search()
    parameters = plain.get_params()
    assert parameters["estimator__max_depth"] is None
    assert parameters["cv"] == 3
    other = clone(plain).set_params(estimator__max_depth=4, cv=2, budget=boca.targets(2))
    assert (other.estimator.max_depth, other.cv, other.budget) == (4, 2, boca.targets(2))
    assert plain.estimator.max_depth is None
    assert not hasattr(clone(fitted), "cv_results_")
    again = pickle.loads(pickle.dumps(fitted))
    assert list(again.predict(X)) == list(fitted.predict(X))
    assert len(again.history_) == len(fitted.history_)
    assert not [name for name in vars(fitted) if name.startswith("_n_samples")]


# Equal random_state -------------------------------------------------------------------------------------------------


def essentials(found):
    table = found.cv_results_
    return [table["params"], *(list(table[name]) for name in ("mean_test_score", "fidelity_n_samples", "cost"))]


@pytest.mark.parametrize("change", [{}, {"n_jobs": 2}, {"random_state": np.random.RandomState(5)}])
def test_equal_random_state_gives_equal_results(change):
    same = {"random_state": 5, "budget": boca.targets(2)}
    first = search(**same).fit(X, Y)
    with joblib.parallel_config(backend="threading"):  # processes take seconds to start
        second = search(**(same | change)).fit(X, Y)
    assert essentials(first) == essentials(second)


@pytest.mark.slow
def test_folds_in_other_processes_give_equal_results(fitted):
    assert essentials(search(n_jobs=2).fit(X, Y)) == essentials(fitted)


def test_another_random_state_gives_other_results(fitted):
    assert essentials(search(random_state=1).fit(X, Y)) != essentials(fitted)


# What may vary ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (boca.Int(1, 9, log=True), boca.Int(1, 9, log=True)),
        (st.uniform(1, 2), boca.Float(1, 3)),
        (st.loguniform(1e-3, 1e2), boca.Float(1e-3, 1e2, log=True)),
        (st.reciprocal(1e-3, 1e2), boca.Float(1e-3, 1e2, log=True)),
        (st.randint(2, 9), boca.Int(2, 8)),
        (st.beta(2, 3), boca.Float(0, 1)),
        (st.truncnorm(-1, 2, loc=3, scale=2), boca.Float(1, 7)),
        (st.binom(7, 0.3), boca.Int(0, 7)),
        ((1, 5), boca.Int(1, 5)),
        ((1, 5.0), boca.Float(1, 5)),
        (["gini", "entropy"], boca.Choice(["gini", "entropy"])),
        (np.array([1, 2]), boca.Choice([1, 2])),
    ],
)
def test_ranges_of_all_kinds_mean_parameters(given, expected):
    assert dict(_Settings.read({"a": given}, {"a"}).free) == {"a": expected}


@pytest.mark.parametrize("unbounded", [st.norm(), st.expon(), st.poisson(3), st.lognorm(1)])
def test_a_distribution_without_bounds_is_refused(unbounded):
    with pytest.raises(InvalidInput, match=f"finite bounds.*{unbounded.dist.name}"):
        search(space={"max_depth": unbounded}).fit(X, Y)


def test_lists_may_hold_objects_and_single_values():
    pipe = make_pipeline(StandardScaler(), SVC())
    space = {
        "standardscaler": [StandardScaler(), PCA(3), "passthrough"],
        "svc__C": st.loguniform(0.1, 10.0),
        "svc__kernel": ["rbf"],
    }
    found = search(pipe, space, budget=boca.targets(4)).fit(X, Y)
    kinds = {type(params["standardscaler"]) for params in found.cv_results_["params"]}
    assert kinds <= {StandardScaler, PCA, str}
    assert len(kinds) > 1
    assert {params["svc__kernel"] for params in found.cv_results_["params"]} == {"rbf"}
    assert set(found.best_estimator_.named_steps) == {"standardscaler", "svc"}
    model = clone(pipe).set_params(**found.best_params_)
    assert found.best_score_ == cross_val_score(model, X, Y, cv=3).mean()


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({"depth": (1, 5)}, "parameters of the estimator.*max_depth.*got 'depth'"),
        ({"max_depth": "deep"}, r"space\['max_depth'\] must be a boca.Float.*got 'deep'"),
        ({"max_depth": (1, 2, 3)}, "must be a boca.Float"),
        ({"max_depth": (5, 1)}, "low < high"),
        ({"max_depth": [3]}, "at least one parameter that varies"),
        ({"criterion": ["gini", "gini"]}, "differ"),
        ([("max_depth", 3)], "mapping"),
    ],
)
def test_a_space_that_cannot_be_meant_is_refused(space, message):
    with pytest.raises(InvalidInput, match=message):
        search(space=space).fit(X, Y)


@pytest.mark.parametrize(
    ("fidelity", "message"),
    [
        ({"trees": (1, 5)}, "parameters of the estimator.*got 'trees'"),
        ({"n_samples": (0.1, 1.0)}, "whole numbers of samples"),
        ({"n_samples": 100}, "whole numbers of samples"),
        ({"n_samples": (None, 100)}, "whole numbers of samples"),
        ({"n_samples": (100, 50)}, "low < high"),
        ({"max_features": boca.Choice(["sqrt", "log2"])}, "upper end is the target"),
        ({"max_depth": (1, 5)}, "in the space or in the fidelity"),
        ({"ccp_alpha": (0.0, 1.0)}, "above zero"),
        (["n_samples"], "mapping"),
    ],
)
def test_a_fidelity_that_cannot_be_meant_is_refused(fidelity, message):
    with pytest.raises(InvalidInput, match=message):
        search(fidelity=fidelity).fit(X, Y)


# Fidelities ---------------------------------------------------------------------------------------------------------


def test_a_parameter_of_the_estimator_is_a_fidelity():
    forest = RandomForestClassifier(random_state=0)
    found = search(
        forest, {"max_features": (0.2, 1.0)}, {"n_samples": (60, None), "n_estimators": (2, 12)}, budget=2
    ).fit(X, Y)
    table = found.cv_results_
    trees = table["fidelity_n_estimators"]
    assert list(table["param_n_estimators"]) == list(trees)
    assert all(isinstance(trial.z["n_estimators"], int) for trial in found.history_)
    assert trees.min() < 12
    assert np.allclose(table["cost"], trees / 12 * table["fidelity_n_samples"] / len(X))
    assert found.best_params_["n_estimators"] == found.best_estimator_.n_estimators == 12


def test_more_samples_than_there_are_drop_that_fidelity():
    dropped = search(fidelity={"n_samples": (len(X), None)}, budget=3).fit(X, Y)
    assert dropped.cv_results_["at_target"].all()
    assert set(dropped.cv_results_["fidelity_n_samples"]) == {len(X)}
    assert all(trial.z == {} for trial in dropped.history_)
    assert len(dropped.history_) == 3
    without = search(fidelity={}, budget=3).fit(X, Y)
    assert dropped.cv_results_["params"] == without.cv_results_["params"]
    almost = search(fidelity={"n_samples": (len(X) - 1, None)}, budget=3).fit(X, Y)
    assert all("n_samples" in trial.z for trial in almost.history_)


def test_an_upper_end_beyond_the_data_is_the_data():
    for samples in ((40, 10**6), boca.Int(40, 10**6)):
        found = search(fidelity={"n_samples": samples}, budget=2).fit(X, Y)
        assert found.cv_results_["fidelity_n_samples"].max() == len(X)
    below = search(fidelity={"n_samples": (40, 120)}, budget=2).fit(X, Y)
    assert below.cv_results_["fidelity_n_samples"][below.best_index_] == 120


@given(
    counts=hs.lists(hs.integers(1, 40), min_size=1, max_size=6),
    shares=hs.tuples(hs.floats(0.0, 1.0), hs.floats(0.0, 1.0)).map(sorted),
    seed=hs.integers(0, 2**32 - 1),
)
def test_a_smaller_subset_lies_within_a_larger_one_and_has_every_class(counts, shares, seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    priority = rng.permutation(10 * len(labels))[: len(labels)]
    small, large = (nested_subset(share, priority, labels) for share in shares)
    assert not np.any(small & ~large)
    for share, subset in zip(shares, (small, large), strict=True):
        assert set(labels[subset]) == set(labels)
        assert subset.sum() == max(round(share * len(labels)), len(counts))
    # in proportion, but for one sample of each class that came first
    kept = np.bincount(labels[large], minlength=len(counts))
    fair = large.sum() / len(labels) * np.array(counts)
    assert np.all(np.abs(kept - fair) <= len(counts) + 1)


@settings(deadline=None, max_examples=50)
@given(
    counts=hs.lists(hs.integers(3, 30), min_size=2, max_size=4),
    sizes=hs.tuples(hs.integers(1, 120), hs.integers(1, 120)).map(sorted),
    seed=hs.integers(0, 2**32 - 1),
)
def test_folds_are_nested_and_have_every_class(counts, sizes, seed):
    y = np.random.default_rng(seed).permutation(np.repeat(np.arange(len(counts)), counts))
    data = np.zeros((len(y), 1))
    folds = _Folds(StratifiedKFold(3), len(y), seed, is_classification=True)
    small, large, full = (folds.of(n, data, y, {}) for n in (*sizes, len(y)))
    assert [[list(part) for part in fold] for fold in full] == [
        [list(part) for part in fold] for fold in StratifiedKFold(3).split(data, y)
    ]
    for parts in zip(small, large, full, strict=True):
        for few, more, all_of_it in zip(*parts, strict=True):
            assert set(few) <= set(more) <= set(all_of_it)
            assert set(y[few]) == set(y[more]) == set(y[all_of_it])
            assert list(few) == [i for i in all_of_it if i in set(few)]  # in the user's order


def test_folds_of_a_regression_are_nested_and_of_the_size_that_was_asked_for():
    folds = _Folds(5, 200, 0, is_classification=False)
    previous = [(set(), set())] * 5
    for n in (10, 50, 130, 200):
        current = folds.of(n, XR, YR, {})
        assert [(len(train), len(test)) for train, test in current] == [(0.8 * n, 0.2 * n)] * 5
        for (train, test), (less_train, less_test) in zip(current, previous, strict=True):
            assert less_train <= set(train)
            assert less_test <= set(test)
        previous = [(set(train), set(test)) for train, test in current]


def test_masks_and_several_labels_a_sample_are_folds_too():
    masks = [(np.arange(40) < 30, np.arange(40) >= 30)]
    folds = _Folds(masks, 40, 0, is_classification=True)
    several = np.ones((40, 2), dtype=int)
    several[::2, 0] = 0
    ((train, test),) = folds.of(20, np.zeros((40, 1)), several, {})
    assert len(train) == 15
    assert len(test) == 5
    assert max(train) < 30 <= min(test)


def test_the_estimator_sees_so_many_samples():
    class Counting(GaussianNB):
        seen: list = []  # noqa: RUF012

        def __init__(self, a=0.5):
            super().__init__()
            self.a = a

        def fit(self, X, y):
            Counting.seen.append(len(y))
            return super().fit(X, y)

    found = search(Counting(), {"a": (0.0, 1.0)}, refit=False).fit(X, Y)
    seen = np.array(Counting.seen).reshape(-1, 3).mean(axis=1)
    assert np.allclose(seen, found.cv_results_["fidelity_n_samples"] * 2 / 3, atol=1.0)
    assert seen.min() < 80


# Cost and budget ----------------------------------------------------------------------------------------------------


def test_a_cost_of_the_users_is_charged_and_sees_every_fidelity():
    zs = []

    def cost(z):
        zs.append(z)
        return 5.0 * z["n_samples"] ** 2

    found = search(cost=cost, budget=3 * 5.0 * len(X) ** 2).fit(X, Y)
    table = found.cv_results_
    assert list(table["cost"]) == [5.0 * n**2 for n in table["fidelity_n_samples"]]
    assert found.result_.spent <= 3 * 5.0 * len(X) ** 2
    zs.clear()
    search(cost=cost, fidelity={"n_samples": (500, None)}).fit(X, Y)
    assert zs
    assert all(z == {"n_samples": len(X)} for z in zs)


@pytest.mark.filterwarnings("ignore:The budget ended before")  # as it may, on a machine that falters
def test_a_measured_cost_is_seconds():
    found = search(cost="measured", budget=boca.targets(2)).fit(X, Y)
    table = found.cv_results_
    evaluation = 3 * (table["mean_fit_time"] + table["mean_score_time"])
    assert np.all(table["cost"] >= evaluation)
    assert [trial.seconds for trial in found.history_] == list(table["cost"])


def test_a_budget_may_be_in_seconds(monkeypatch):
    ticks = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: 0.01 * next(ticks))  # a hundredth of a second a look
    found = search(budget=boca.seconds(1.0)).fit(X, Y)
    assert found.result_.spent == pytest.approx(sum(trial.seconds + trial.overhead for trial in found.history_))
    assert 0.5 < found.result_.spent <= 1.0
    assert found.cv_results_["at_target"][found.best_index_]


def test_ten_targets_are_the_default_budget():
    found = search(fidelity={}, budget=None, strategy=boca.RandomSearch(), cv=2).fit(X, Y)
    assert len(found.history_) == 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": boca.targets(0.5)}, "at least one evaluation at the target, which costs 1; got 0.5"),
        ({"budget": 0.5}, "costs 1; got 0.5"),
        ({"cost": lambda z: z["n_samples"], "budget": 100}, "costs 240; got 100"),
        ({"cost": "measured", "budget": boca.targets(0.9)}, "costs 1; got 0.9"),
        ({"budget": -1}, "positive"),
        ({"budget": "much"}, "finite number"),
        ({"cost": "free"}, "cost must be 'product', 'measured' or a function"),
        ({"cost": lambda z: -1.0}, "positive finite number"),
        ({"strategy": "boca"}, "strategy"),
    ],
)
def test_money_that_cannot_do_is_refused_before_anything_runs(settings, message):
    class Untouched(DecisionTreeClassifier):
        def fit(self, X, y):
            raise AssertionError("it ran")

    with pytest.raises(InvalidInput, match=message):
        search(Untouched(), error_score="raise", **settings).fit(X, Y)


def test_where_the_target_was_never_reached_the_recommended_point_is_run_there():
    with pytest.warns(UserWarning, match="recommended point was evaluated there beyond it"):
        found = search(strategy=Cheap(), budget=1).fit(X, Y)
    table = found.cv_results_
    assert list(np.flatnonzero(table["at_target"])) == [len(found.history_) - 1] == [found.best_index_]
    assert found.history_[-1].phase == "added"
    assert found.best_score_ == cross_val_score(clone(TREE).set_params(**found.best_params_), X, Y, cv=3).mean()
    assert found.best_params_ in table["params"][:-1]


# Failures -----------------------------------------------------------------------------------------------------------


class Fragile(DecisionTreeClassifier):
    """A tree that cannot be grown deep, or not in some folds."""

    def __init__(self, max_depth=3, breaks_at=7, random_state=0, only_large=False):
        super().__init__(max_depth=max_depth, random_state=random_state)
        self.breaks_at = breaks_at
        self.only_large = only_large

    def fit(self, X, y, sample_weight=None):
        if self.max_depth >= self.breaks_at and not (self.only_large and len(X) < 160):
            raise RuntimeError(f"too deep: {self.max_depth}")
        return super().fit(X, y, sample_weight=sample_weight)


def fragile(**settings):
    return search(Fragile(), {"max_depth": (1, 12)}, **({"budget": boca.targets(4)} | settings))


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


def test_an_error_is_raised_where_the_user_wants_it():
    with pytest.raises(RuntimeError, match="too deep"):
        fragile(error_score="raise").fit(X, Y)


def test_a_search_in_which_everything_fails_stops_early_and_shows_why():
    broken = search(Fragile(breaks_at=0), {"max_depth": (1, 12)}, budget=boca.targets(50))
    with pytest.raises(FitsFailed, match=r"All 5 trials failed.*too deep") as caught:
        broken.fit(X, Y)
    assert isinstance(caught.value, ValueError)
    assert len(caught.value.result.history) == 5
    assert not hasattr(broken, "cv_results_")
    arrived = pickle.loads(pickle.dumps(caught.value))  # from a process of a pool
    assert type(arrived) is FitsFailed
    assert str(arrived) == str(caught.value)
    assert len(arrived.result.history) == 5


def test_a_search_that_fails_only_at_the_target_says_so():
    broken = search(Fragile(breaks_at=0, only_large=True), {"max_depth": (1, 12)}, budget=boca.targets(2))
    with pytest.raises(FitsFailed, match=r"No trial at the target was complete.*too deep") as caught:
        broken.fit(X, Y)
    assert caught.value.result.history.complete


# Scoring ------------------------------------------------------------------------------------------------------------


def test_several_metrics_are_searched_by_the_one_that_refit_names():
    found = search(scoring=["accuracy", "f1_macro"], refit="f1_macro").fit(X, Y)
    table = found.cv_results_
    assert [trial.value for trial in found.history_] == list(table["mean_test_f1_macro"])
    assert table["rank_test_f1_macro"][found.best_index_] == 1
    assert {"mean_test_accuracy", "split0_test_accuracy", "rank_test_accuracy"} <= set(table)
    expected = cross_val_score(found.best_estimator_, X, Y, cv=3, scoring="f1_macro").mean()
    assert found.best_score_ == expected


def both(estimator, X, y):
    right = estimator.predict(X) == y
    return {"right": right.mean(), "wrong": 1 - right.mean()}


def test_a_function_may_return_several_metrics():
    found = search(scoring=both, refit="right").fit(X, Y)
    assert [trial.value for trial in found.history_] == list(found.cv_results_["mean_test_right"])
    for refit in (True, "left", False):
        with pytest.raises(InvalidInput, match="refit must name the one to search by"):
            search(scoring=both, refit=refit).fit(X, Y)


@pytest.mark.parametrize("refit", [False, lambda results: 0])
def test_several_metrics_without_one_to_search_by_are_refused(refit):
    with pytest.raises(InvalidInput, match="refit must name the one to search by"):
        search(scoring=["accuracy", "f1_macro"], refit=refit).fit(X, Y)


def test_refit_may_choose_among_the_trials_at_the_target():
    def shallowest(results):
        rows = np.flatnonzero(results["at_target"])
        return int(rows[np.argmin(results["param_max_depth"][rows])])

    found = search(refit=shallowest, budget=boca.targets(4)).fit(X, Y)
    at_target = found.cv_results_["at_target"]
    assert found.best_params_["max_depth"] == found.cv_results_["param_max_depth"][at_target].min()
    with pytest.raises(InvalidInput, match=r"complete trial at the target.*got 0"):
        search(refit=lambda results: 0).fit(X, Y)


def test_training_scores_are_there_if_wanted():
    found = search(return_train_score=True, budget=1).fit(X, Y)
    assert np.all(found.cv_results_["mean_train_score"] >= 0.3)
    assert "mean_train_score" not in search(budget=1).fit(X, Y).cv_results_


# Data of all kinds --------------------------------------------------------------------------------------------------


def test_tables_and_sparse_matrices_are_data(fitted):
    names = [f"column {i}" for i in range(6)]
    table = search().fit(pd.DataFrame(X, columns=names), pd.Series(Y, index=np.arange(len(Y)) + 1000))
    assert essentials(table) == essentials(fitted)
    assert list(table.feature_names_in_) == names
    assert essentials(search().fit(X.tolist(), Y.tolist())) == essentials(fitted)
    words = np.array(["low", "middle", "high"], dtype=object)[Y]
    assert essentials(search().fit(X, words))[2] == essentials(fitted)[2]
    sparse = search(Ridge(), {"alpha": (0.1, 10.0)}).fit(sp.csr_matrix(XR), YR)
    dense = search(Ridge(), {"alpha": (0.1, 10.0)}).fit(XR, YR)
    assert sparse.cv_results_["params"][0] == dense.cv_results_["params"][0]
    assert scores(sparse)[0] == pytest.approx(scores(dense)[0], abs=1e-3)
    assert sparse.predict(sp.csr_matrix(XR)).shape == YR.shape


@pytest.mark.parametrize("cv", [GroupKFold(3), LeaveOneGroupOut()])
def test_groups_reach_the_splitter_and_stay_apart_at_every_fidelity(cv):
    groups = np.arange(len(X)) % 6
    seen = []

    class Spying(GaussianNB):
        def __init__(self, a=0.5):
            super().__init__()
            self.a = a

        def fit(self, X, y):
            seen.append({WHERE[row.tobytes()] for row in X})
            return super().fit(X, y)

    WHERE = {row.tobytes(): group for row, group in zip(X, groups, strict=True)}
    found = search(Spying(), {"a": (0.0, 1.0)}, cv=cv, refit=False).fit(X, Y, groups=groups)
    splits = cv.get_n_splits(X, Y, groups)
    assert set(map(len, seen)) == {6 - 6 // splits}
    best = clone(Spying()).set_params(**found.best_params_)
    assert found.best_score_ == cross_val_score(best, X, Y, groups=groups, cv=cv).mean()


def test_sample_weights_reach_the_estimator():
    weights = np.where(Y == 0, 1e-9, 1.0)
    found = search(scoring=make_scorer(accuracy_score)).fit(X, Y, sample_weight=weights)
    assert 0 not in found.predict(X)
    assert 0 in search(scoring=make_scorer(accuracy_score)).fit(X, Y).predict(X)


def test_metadata_go_where_they_were_requested():
    weights = np.where(Y == 0, 1e-9, 1.0)
    groups = np.arange(len(X)) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeClassifier(random_state=0).set_fit_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight="importance")
        found = search(tree, cv=GroupKFold(3), scoring=scorer)
        found.fit(X, Y, sample_weight=weights, importance=np.where(Y == 1, 1.0, 0.0), groups=groups)
        assert 0 not in found.predict(X)
        assert found.best_score_ > 0.6  # of class 1 alone, which is easy if class 0 is nothing
        with pytest.raises(ValueError, match="sample_weight"):
            search(DecisionTreeClassifier(random_state=0)).fit(X, Y, sample_weight=weights)


def test_it_searches_within_a_search(fitted):
    inner = search(budget=1, cv=2)
    assert cross_val_score(inner, X, Y, cv=2).shape == (2,)


# The package around it ----------------------------------------------------------------------------------------------


def test_without_scikit_learn_the_extra_is_named(monkeypatch):
    original = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == "sklearn":
            raise ImportError(name)
        return original(name, *rest, **more)

    monkeypatch.delitem(sys.modules, "boca.integrations.sklearn")
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(BocaError, match=r"pip install 'boca\[sklearn\]'"):
        importlib.import_module("boca.integrations.sklearn")


def test_the_programs_of_the_guide_run():
    guide = Path(__file__).parents[2] / "docs" / "integrations" / "sklearn.md"
    text = guide.read_text(encoding="utf-8")
    parts = text.split("```python\n")[1:]
    assert len(parts) >= 2
    namespace = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for part in parts:
            exec(compile(part.split("```", 1)[0], str(guide), "exec"), namespace)
    assert namespace["search"].best_score_ > 0.9
