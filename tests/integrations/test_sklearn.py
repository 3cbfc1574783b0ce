"""FidelitySearchCV keeps the promises of a scikit-learn search, and those of boca: only the target counts."""

from __future__ import annotations

import builtins
import importlib
import itertools
import pickle
import sys
import time
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from scipy.stats import randint
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import (
    GroupKFold,
    KFold,
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
from boca.integrations.sklearn import FidelitySearchCV, FitsFailed
from boca.plots.study import study
from integrations.searches import DEPTH, TREE, XR, YR, Cheap, Fragile, X, Y, fragile, scores, search

# scikit-learn's own checks ------------------------------------------------------------------------------------------

# Like a search of scikit-learn, it does not look at the data; its estimators do, also with error_score=nan.
CHECKED = {
    "fidelity": {"n_samples": (10, None)},
    "budget": boca.targets(1.99),
    "strategy": Cheap(then_target=True),  # two trials: there are hundreds of fits
    "cv": 2,
}
FAILING = {"check_supervised_y_2d": "the estimator takes a column for y; GridSearchCV fails this check just so"}
OF_TREES = {"check_estimators_nan_inf": "a tree takes NaN; GridSearchCV fails this check just so"}


def failing(checked):
    """Return the checks that GridSearchCV fails with the same estimator."""
    is_tree = isinstance(checked.estimator, DecisionTreeClassifier)
    return {**(FAILING if is_tree or is_regressor(checked) else {}), **(OF_TREES if is_tree else {})}


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")  # of type_of_target, given inf
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning", "ignore:Scoring failed:UserWarning")
@parametrize_with_checks(
    [
        search(LogisticRegression(), {"C": boca.Float(0.1, 1.0, log=True)}, **CHECKED),
        search(Ridge(), {"alpha": boca.Float(0.1, 1.0, log=True)}, **CHECKED),
        search(DecisionTreeClassifier(random_state=0), {"max_depth": boca.Int(3, 5)}, **CHECKED),
        search(make_pipeline(StandardScaler(), SVC()), {"svc__C": boca.Float(0.1, 1.0, log=True)}, **CHECKED),
    ],
    expected_failed_checks=failing,
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
        ({"budget": boca.targets(0.5)}, "budget of 0.5 does not cover one evaluation at the target, which costs 1;"),
        ({"budget": 0.5}, "budget of 0.5 .* costs 1;"),
        ({"cost": lambda z: z["n_samples"], "budget": 100}, "budget of 100 .* costs 240;"),
        ({"cost": "measured", "budget": boca.targets(0.9)}, "budget of 0.9 .* costs 1;"),
        ({"budget": -1}, "positive"),
        ({"budget": "much"}, "finite number"),
        ({"cost": "free"}, "cost must be 'product', 'measured' or a function"),
        ({"cost": lambda z: -1.0}, "positive finite number"),
        ({"strategy": "boca"}, "strategy"),
    ],
)
def test_a_budget_that_is_too_small_is_refused_before_anything_runs(settings, message):
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
        with pytest.raises(InvalidInput, match="must name the one to search by"):
            search(scoring=both, refit=refit).fit(X, Y)


@pytest.mark.parametrize("refit", [False, lambda results: 0])
def test_several_metrics_without_one_to_search_by_are_refused(refit):
    with pytest.raises(InvalidInput, match="must name the one to search by"):
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


# Names of other searches --------------------------------------------------------------------------------------------


def test_a_search_takes_the_names_of_a_random_search(fitted):
    distributions = {"max_depth": randint(1, 12), "min_samples_leaf": (1, 30, "log")}
    ours = search(space={"max_depth": (1, 11), "min_samples_leaf": boca.Int(1, 30, log=True)}).fit(X, Y)
    theirs = FidelitySearchCV(
        TREE,
        param_distributions=distributions,
        fidelity={"n_samples": (40, None)},
        cost="product",
        n_iter=3,
        cv=3,
        random_state=0,
    ).fit(X, Y)
    assert essentials(theirs) == essentials(ours)
    assert theirs.get_params()["n_iter"] == 3
    assert theirs.result_.study.limit == boca.targets(3)


@pytest.mark.parametrize(
    ("both", "words"),
    [
        ({"n_iter": 3}, ["n_iter", "budget", "Pass budget alone"]),
        ({"param_distributions": DEPTH}, ["param_distributions", "space", "Pass space alone"]),
        ({"space": {"max_depth": (0, 1)}}, ["boca.Int(0, 1)", "(0.0, 1.0)"]),
        ({"space": {"max_depth": (1, 9, "lin")}}, ["'log'", "'lin'"]),
        ({"progress": "no"}, ["progress=False", "'no'"]),
    ],
)
def test_what_has_two_meanings_is_refused(both, words):
    with pytest.raises(InvalidInput) as refused:
        search(**both).fit(X, Y)
    assert [word for word in words if word not in str(refused.value)] == []


def test_an_argument_of_another_tool_is_refused_with_ours():
    with pytest.raises(TypeError, match=r"boca.FidelitySearchCV has no argument 'n_trials'.*boca.targets\(20\)"):
        FidelitySearchCV(TREE, DEPTH, n_trials=20)


def test_the_progress_is_shown_where_it_is_wanted(capsys):
    search(progress=True, strategy=boca.RandomSearch()).fit(X, Y)
    assert "3 trials, best " in capsys.readouterr().err
    search(strategy=boca.RandomSearch()).fit(X, Y)
    assert capsys.readouterr().err == ""


def test_a_fitted_search_can_be_plotted(fitted):
    assert study(fitted).history is fitted.result_.history
    assert study(fitted).best.value == fitted.best_score_
    with pytest.raises(InvalidInput, match="Call its method fit first"):
        study(search())


def test_if_all_scores_are_nan_the_error_is_that_of_the_estimator():
    broken = X.copy()
    broken[0, 0] = np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="Input X contains infinity") as raised:
            search(LogisticRegression(), {"C": (0.1, 1.0)}, strategy=boca.RandomSearch()).fit(broken, Y)
        assert isinstance(raised.value.__context__, FitsFailed)
        with pytest.raises(FitsFailed):
            search(LogisticRegression(), {"C": (0.1, 1.0)}, strategy=boca.RandomSearch(), refit=False).fit(broken, Y)


# Data of all kinds --------------------------------------------------------------------------------------------------


def test_tables_and_sparse_matrices_are_data(fitted):
    names = [f"column {i}" for i in range(6)]
    table = search().fit(pd.DataFrame(X, columns=names), pd.Series(Y, index=np.arange(len(Y)) + 1000))
    assert essentials(table) == essentials(fitted)
    assert list(table.feature_names_in_) == names
    assert essentials(search().fit(X.tolist(), Y.tolist())) == essentials(fitted)
    words = np.array(["few", "many", "most"], dtype=object)[Y]  # in the order of the numbers
    assert essentials(search().fit(X, words)) == essentials(fitted)
    sparse = search(Ridge(), {"alpha": (0.1, 10.0)}).fit(sp.csr_matrix(XR), YR)
    dense = search(Ridge(), {"alpha": (0.1, 10.0)}).fit(XR, YR)
    assert sparse.cv_results_["params"][0] == dense.cv_results_["params"][0]
    assert scores(sparse)[0] == pytest.approx(scores(dense)[0], abs=1e-3)
    assert sparse.predict(sp.csr_matrix(XR)).shape == YR.shape


# No leaf has class 0 alone, so a tree predicts that class only if it counts.
LARGE_LEAVES = {"max_depth": boca.Int(1, 12), "min_samples_leaf": boca.Int(20, 60, log=True)}


def test_sample_weights_reach_the_estimator():
    weights = np.where(Y == 0, 1e-9, 1.0)
    found = search(space=LARGE_LEAVES, scoring=make_scorer(accuracy_score)).fit(X, Y, sample_weight=weights)
    assert 0 not in found.predict(X)
    assert 0 in search(space=LARGE_LEAVES, scoring=make_scorer(accuracy_score)).fit(X, Y).predict(X)


def test_metadata_go_where_they_were_requested():
    weights = np.where(Y == 0, 1e-9, 1.0)
    groups = np.arange(len(X)) % 6
    with sklearn.config_context(enable_metadata_routing=True):
        tree = DecisionTreeClassifier(random_state=0).set_fit_request(sample_weight=True)
        scorer = make_scorer(accuracy_score).set_score_request(sample_weight="importance")
        found = search(tree, LARGE_LEAVES, cv=GroupKFold(3), scoring=scorer)
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


class _Traded(ClassifierMixin, BaseEstimator):
    """Accurate where it is slow, with a speed that is a metric of its own."""

    def __init__(self, a=0.5, b=0.5):
        self.a, self.b = a, b

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


TRADE = {"accuracy": lambda model, X, y: model.a, "speed": lambda model, X, y: 1.0 - model.a}


def test_the_best_keeps_the_limits_on_other_metrics():
    fitted = search(
        _Traded(),
        {"a": (0.0, 1.0)},
        scoring=TRADE,
        refit="accuracy",
        subject_to={"speed": boca.AtLeast(0.6)},
        budget=boca.targets(15),
    ).fit(X, Y)
    table = fitted.cv_results_
    assert 0.3 < fitted.best_score_ <= 0.4
    assert table["mean_test_accuracy"].max() > 0.4  # some broke the limit
    assert table["mean_test_speed"][fitted.best_index_] >= 0.6
    assert [t.outcomes["speed"] for t in fitted.history_] == table["mean_test_speed"].tolist()


def test_limits_that_nothing_keeps_are_warned_of():
    with pytest.warns(UserWarning, match="No trial at the target keeps"):
        fitted = search(
            _Traded(),
            {"a": (0.0, 1.0)},
            scoring=TRADE,
            refit="accuracy",
            subject_to={"speed": boca.AtLeast(2.0)},
            budget=boca.targets(3),
        ).fit(X, Y)
    assert fitted.best_score_ == max(fitted.cv_results_["mean_test_accuracy"][fitted.cv_results_["at_target"]])


@pytest.mark.parametrize("settings", [{}, {"scoring": TRADE, "refit": "speed"}, {"scoring": "accuracy"}])
def test_limits_must_name_other_metrics(settings):
    with pytest.raises(InvalidInput, match="must name metrics of scoring"):
        search(_Traded(), {"a": (0.0, 1.0)}, subject_to={"speed": boca.AtLeast(0.6)}, **settings).fit(X, Y)


def test_the_constraints_of_a_space_hold():
    space = boca.Space(a=boca.Float(0, 1), b=boca.Float(0, 1)).where("a + b <= 1")
    fitted = search(_Traded(), space, scoring=TRADE, refit="accuracy", budget=boca.targets(6)).fit(X, Y)
    assert all(trial.x["a"] + trial.x["b"] <= 1.0 for trial in fitted.history_)
