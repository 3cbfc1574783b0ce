"""A search spends the seconds that it was promised, by a clock that only fits move."""

from __future__ import annotations

import math
import time

import pytest
from sklearn.base import BaseEstimator, RegressorMixin

import boca
from boca.accounting.ledger import Ledger
from boca.domain.budget import Limit
from boca.integrations.sklearn import FidelitySearchCV
from integrations.searches import XR, YR

FOLDS = 2
SAMPLES = len(XR) / 2  # of a training part


class Clock:
    """Seconds that pass only in fits."""

    now = 0.0


class Timed(RegressorMixin, BaseEstimator):
    """Predicts a constant, and takes a time that falls less than the samples do and depends on its own settings."""

    def __init__(self, level=0.0, size=0.0, full=2.0, fixed=0.2, spread=0.0):
        self.level = level
        self.size = size
        self.full = full
        self.fixed = fixed
        self.spread = spread

    def fit(self, X, y):
        share = self.fixed + (1 - self.fixed) * len(X) / SAMPLES
        Clock.now += self.full / FOLDS * share * math.exp(self.spread * (self.size - 0.5))
        self.n_features_in_ = X.shape[1]
        return self

    def predict(self, X):
        return [200.0 * (self.level - 0.4) + 50.0 * self.size] * len(X)


@pytest.fixture(autouse=True)
def no_other_time_passes(monkeypatch):
    Clock.now = 0.0
    monkeypatch.setattr(time, "perf_counter", lambda: Clock.now)


def found(estimator, seed, **settings):
    return FidelitySearchCV(
        estimator,
        {"level": (0.0, 1.0), "size": (0.0, 1.0)},
        {"n_samples": (20, None)},
        scoring="neg_root_mean_squared_error",
        cv=FOLDS,
        refit=False,
        random_state=seed,
        **settings,
    ).fit(XR, YR)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("fixed", [0.0, 0.5])
@pytest.mark.parametrize("full", [2.0, 7.0, 17.0])
def test_a_budget_of_seconds_is_spent_and_not_overshot(full, fixed, seed):
    done = found(Timed(full=full, fixed=fixed), seed, budget=boca.seconds(60))
    assert done.result_.spent == pytest.approx(Clock.now)
    assert min(54, 60 - full) <= Clock.now <= 63  # what is left at the end buys no full evaluation
    assert done.cv_results_["at_target"].sum() >= (2 if full < 10 else 1)


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("full", [3.0, 10.0])
def test_settings_that_take_longer_than_others_do_not_end_it_early(full, seed):
    slow = Timed(full=full, spread=2.5)  # the slowest settings take twelve times as long as the fastest
    done = found(slow, seed, budget=boca.seconds(60))
    usual = Ledger(done.result_.study.problem, done.history_, boca.seconds(60)).target
    assert 60 - usual <= Clock.now <= 72
    early = [warning for warning in done.result_.warnings if "another full evaluation" in warning]
    assert bool(early) == (Clock.now < 54)


def test_by_default_a_budget_in_evaluations_is_time():
    done = found(Timed(full=4.0, fixed=0.5), 0, n_iter=9)
    assert done.result_.spent == pytest.approx(Clock.now)
    assert 8 * 4.0 <= Clock.now <= 9.5 * 4.0  # and not the seventy seconds of as many shares of samples
    assert list(done.cv_results_["cost"]) == [trial.seconds for trial in done.history_]
    by_share = found(Timed(full=4.0, fixed=0.5), 0, n_iter=9, cost="product")
    assert sum(by_share.cv_results_["cost"]) <= 9
    assert sum(trial.seconds for trial in by_share.history_) > 9.5 * 4.0


def test_a_number_is_one_of_full_evaluations_unless_the_cost_is_yours():
    assert found(Timed(), 0, budget=3).result_.study.limit == boca.targets(3)
    own = found(Timed(), 0, budget=300, cost=lambda z: z["n_samples"])
    assert own.result_.study.limit == Limit(300, "cost")
    assert own.result_.spent <= 300
