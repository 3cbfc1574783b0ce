"""Ranges of every kind mean parameters; what cannot be meant is refused."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats as st
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import (
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import boca
from boca.domain.errors import InvalidInput
from boca.integrations.sklearn_ranges import Settings
from integrations.searches import X, Y, search


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
    assert dict(Settings.read({"a": given}, {"a"}).free) == {"a": expected}


@pytest.mark.parametrize("unbounded", [st.norm(), st.expon(), st.poisson(3), st.lognorm(1)])
def test_a_distribution_without_bounds_is_refused(unbounded):
    with pytest.raises(InvalidInput, match=f"{unbounded.dist.name} lies in .*finite bounds"):
        search(space={"max_depth": unbounded}).fit(X, Y)


def test_lists_may_hold_objects_and_single_values():
    pipe = make_pipeline(StandardScaler(), SVC())
    space = {
        "standardscaler": [StandardScaler(), PCA(3), "passthrough"],
        "svc__C": st.loguniform(0.1, 10.0),
        "svc__kernel": ["rbf"],
    }
    found = search(pipe, space, budget=boca.targets(4), random_state=2).fit(X, Y)
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
        ({"depth": (1, 5)}, "names 'depth'.*estimator.*max_depth"),
        ({"max_depth": "deep"}, r"space\['max_depth'\] must be a boca.Float.*got 'deep'"),
        ({"max_depth": (1, 2, 3)}, "must be 'log'; got 3"),
        ({"max_depth": (1, 2, 3, 4)}, "must be a boca.Float"),
        ({"max_depth": (0, 1)}, r"boca.Int\(0, 1\)"),
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
        ({"trees": (1, 5)}, "names 'trees'.*estimator"),
        ({"n_samples": (0.1, 1.0)}, "whole numbers of samples"),
        ({"n_samples": 100}, "whole numbers of samples"),
        ({"n_samples": (None, 100)}, "whole numbers of samples"),
        ({"n_samples": (100, 50)}, "low < high"),
        ({"max_features": boca.Choice(["sqrt", "log2"])}, "upper end is the target"),
        ({"max_depth": (1, 5)}, r"max_depth.* in both"),
        ({"ccp_alpha": (0.0, 1.0)}, "above zero"),
        (["n_samples"], "mapping"),
    ],
)
def test_a_fidelity_that_cannot_be_meant_is_refused(fidelity, message):
    with pytest.raises(InvalidInput, match=message):
        search(fidelity=fidelity).fit(X, Y)


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


def test_a_list_of_mappings_is_one_space_with_conditions():
    settings = Settings.read(
        [
            {"kernel": ["rbf"], "C": boca.Float(0.1, 10), "gamma": boca.Float(0.01, 1)},
            {"kernel": ["poly"], "C": boca.Float(0.1, 10), "degree": (2, 4), "gamma": boca.Float(0.1, 1)},
        ],
        {"kernel", "C", "gamma", "degree"},
    )
    space = settings.free
    assert space["C"].when is None
    assert {name: p.when for name, p in space.items() if p.when} == {
        "gamma": {"space": [0]},
        "degree": {"space": [1]},
        "gamma [1]": {"space": [1]},
    }
    assert settings.of({"space": 0, "C": 1.0, "gamma": 0.5}) == {"kernel": "rbf", "C": 1.0, "gamma": 0.5}
    x = {"space": 1, "C": 1.0, "degree": 3, "gamma [1]": 0.5}
    assert settings.of(x) == {"kernel": "poly", "C": 1.0, "degree": 3, "gamma": 0.5}


def test_a_list_of_one_mapping_is_that_mapping():
    assert Settings.read([{"C": (1, 5)}], {"C"}) == Settings.read({"C": (1, 5)}, {"C"})


def test_objects_stay_those_of_their_mapping():
    one, two = object(), object()
    settings = Settings.read([{"step": [one, two]}, {"step": [two, one], "C": (1, 5)}], {"step", "C"})
    found = [settings.of(settings.free.from_unit(u)) for u in settings.free.points()]
    assert {id(params["step"]) for params in found} == {id(one), id(two)}
    assert sum("C" in params for params in found) == 10


def test_a_list_of_anything_else_is_refused():
    with pytest.raises(InvalidInput, match="list of such"):
        Settings.read([("C", 1)], {"C"})
