"""Folds for fewer samples are nested, have every class, and lie within the user's own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as hs
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    StratifiedKFold,
    cross_val_score,
)
from sklearn.naive_bayes import GaussianNB

from boca.integrations.sklearn_folds import Folds, nested_subset
from integrations.searches import XR, YR, X, Y, scores, search


def test_a_splitter_that_shuffles_anew_gives_all_trials_the_same_folds():
    class Fixed(GaussianNB):
        """An estimator whose parameter does nothing: only the folds could make its scores differ."""

        def __init__(self, mark=0):
            super().__init__()
            self.mark = mark

    found = search(Fixed(), {"mark": (0, 9)}, {}, budget=4, cv=KFold(3, shuffle=True)).fit(X, Y)
    assert len(found.history_) == 4
    assert len(set(scores(found))) == 1


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
    folds = Folds(StratifiedKFold(3), len(y), seed, is_classification=True)
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
    folds = Folds(5, 200, 0, is_classification=False)
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
    folds = Folds(masks, 40, 0, is_classification=True)
    several = np.ones((40, 2), dtype=int)
    several[::2, 0] = 0
    ((train, test),) = folds.of(20, np.zeros((40, 1)), several, {})
    assert len(train) == 15
    assert len(test) == 5
    assert max(train) < 30 <= min(test)


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
