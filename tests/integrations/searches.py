"""Searches in scikit-learn that the tests share, their data, and a strategy with known queries."""

from __future__ import annotations

from dataclasses import dataclass

from sklearn.datasets import make_classification, make_regression
from sklearn.tree import DecisionTreeClassifier

import boca
from boca.integrations.sklearn import FidelitySearchCV

X, Y = make_classification(240, 6, n_informative=4, n_classes=3, weights=[0.6, 0.3], flip_y=0.2, random_state=0)
XR, YR = make_regression(200, 5, noise=20.0, random_state=0)
TREE = DecisionTreeClassifier(random_state=0)
DEPTH = {"max_depth": boca.Int(1, 12), "min_samples_leaf": boca.Int(1, 30, log=True)}


def search(estimator=TREE, space=DEPTH, fidelity=None, **settings):
    """Return a small search without a clock, which every argument may change."""
    fidelity = {"n_samples": (40, None)} if fidelity is None else fidelity
    defaults = {"cost": "product", "budget": boca.targets(3), "cv": 3, "random_state": 0}
    return FidelitySearchCV(estimator, space, fidelity, **(defaults | settings))


def scores(fitted):
    return fitted.cv_results_["mean_test_score"]


@dataclass(frozen=True)
class Cheap:
    """A strategy that asks for random points at the lowest fidelity, for the target never, or once after the first."""

    then_target: bool = False

    def suggest(self, problem, history, budget, rng):
        z = {name: parameter.ends[0] for name, parameter in problem.fidelity.items()}
        z = problem.target if self.then_target and history else z
        x = problem.space.from_unit(problem.space.snap(rng.random((1, len(problem.space))))[0])
        return boca.Suggestion(x, z, {"reason": "Cheap.", "phase": "start"})


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
    """Return a search among depths of which some fail: the first is 6, the second 12."""
    few = {"budget": boca.targets(4), "random_state": 1}
    return search(Fragile(), {"max_depth": (1, 12)}, **(few | settings))
