"""Folds for fewer samples: nested in each other, and within the user's own folds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import type_of_target

Indices: TypeAlias = NDArray[np.intp]


class Folds:
    """The user's own folds, and smaller ones within them.

    With n of N samples, the training part and the test part of each fold keep the share n / N.  So groups that the
    user's folds separate stay separated, and any splitter works.
    """

    def __init__(self, cv: Any, total: int, seed: int, *, is_classification: bool) -> None:
        self._cv = cv
        self._is_classification = is_classification
        self._priority = np.random.default_rng(seed).permutation(total)
        self._full: list[tuple[Any, ...]] | None = None
        self._labels = np.zeros(total, dtype=np.intp)

    @property
    def total(self) -> int:
        return len(self._priority)

    def of(self, n: int, X: Any, y: Any, split_params: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Return the folds for n samples; for all samples, exactly the user's own.

        The splitter is called once, so all trials have the same folds even if it shuffles at every call.
        """
        if self._full is None:
            splitter = check_cv(self._cv, y, classifier=self._is_classification)
            self._full = list(splitter.split(X, y, **split_params))
            if self._is_classification and type_of_target(y) in ("binary", "multiclass"):
                self._labels = np.unique(np.asarray(y).ravel(), return_inverse=True)[1]
        if n >= self.total:
            return self._full
        return [tuple(self._subset(n, _indices(part)) for part in fold) for fold in self._full]

    def _subset(self, n: int, part: Indices) -> Indices:
        return part[nested_subset(n / self.total, self._priority[part], self._labels[part])]


def nested_subset(share: float, priority: Indices, labels: Indices) -> NDArray[np.bool_]:  # (m,), (m,) -> (m,)
    """Return which of m samples belong to the subset of this share: the first in an order that does not depend on it.

    So a smaller subset lies within every larger one.  The order starts with one sample of each class, and then keeps
    the classes in proportion.
    """
    order = np.lexsort((priority, labels))
    first, behind = (np.searchsorted(labels[order], labels, side=side) for side in ("left", "right"))
    place = np.empty(len(labels), dtype=np.intp)
    place[order] = np.arange(len(labels))
    place -= first  # within its class
    key = np.where(place == 0, -1.0, (place + 0.5) / (behind - first))
    subset = np.zeros(len(labels), dtype=bool)
    subset[np.lexsort((priority, key))[: max(round(share * len(labels)), np.count_nonzero(place == 0))]] = True
    return subset


def _indices(part: Any) -> Indices:
    """Return a part of a fold as indices; a mask is allowed too."""
    given = np.asarray(part)
    return np.flatnonzero(given) if given.dtype == bool else given


@dataclass(frozen=True)
class Splitter:
    """The folds for n samples, as a splitter of scikit-learn."""

    folds: Folds
    n: int

    def split(self, X: Any, y: Any = None, **split_params: Any) -> list[tuple[Any, ...]]:
        return self.folds.of(self.n, X, y, split_params)
