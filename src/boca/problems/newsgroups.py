"""A support vector machine on the 20 Newsgroups, as in the BOCA paper [K17].

g(z, x) is the accuracy, in 5-fold stratified cross-validation on N documents, of a classifier with a Gaussian kernel of
precision gamma and penalty C, whose solver stops after T iterations for each pair of classes.

The documents stand in one fixed random order, and N of them are the first N.  Their tf-idf weights are computed once,
from all documents, when the problem is made.  No label enters them, and an evaluation then takes only the time of the
classifier, which the cost N T describes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boca.domain.budget import Limit, seconds
from boca.domain.errors import InvalidInput
from boca.domain.problem import Problem
from boca.domain.space import Float, Int, Point, Space
from boca.problems import data
from boca.problems.benchmark import Benchmark

_ORDER = 20_170_004  # seeds the order of the documents
_FOLDS = 5  # as in the paper


def newsgroups(seed: int) -> Benchmark:
    """Return the problem of the paper: d = 2, p = 2, up to 15,000 documents."""
    return _benchmark("newsgroups", seed, documents=Int(5000, 15_000), budget=seconds(14_400))


def newsgroups_small(seed: int) -> Benchmark:
    """Return the same problem with a tenth of the documents."""
    return _benchmark("newsgroups-small", seed, documents=Int(500, 1500), budget=seconds(300))


def _benchmark(name: str, seed: int, *, documents: Int, budget: Limit) -> Benchmark:
    _require_scikit_learn()
    _corpus(data.locate("newsgroups"))  # reading takes seconds, which no evaluation should be charged with
    return Benchmark(
        name=name,
        problem=Problem(
            Space(C=Float(1e-2, 1e3, log=True), gamma=Float(1e-2, 1e3, log=True)),
            Space(N=documents, T=Int(20, 100)),
            cost=_cost,
        ),
        budget=budget,
        function=_accuracy,
        optimum=None,
        maximizer=None,
        noise_variance=0.0,
        hyperparameters=None,
        seed=seed,
    )


def _require_scikit_learn() -> None:
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise InvalidInput("The newsgroups problems need scikit-learn. Run `pip install 'boca[problems]'`.") from error


def _cost(z: Mapping[str, Any]) -> float:
    return float(z["N"] * z["T"])


def _accuracy(x: Point, z: Point) -> float:
    """Return the mean accuracy over the folds.

    The data are kept by the process, not by the benchmark, which stays small enough to be sent to another process.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.svm import SVC

    weights, labels = _corpus(data.locate("newsgroups"))
    machine = SVC(kernel="rbf", C=x["C"], gamma=x["gamma"], max_iter=z["T"])
    with warnings.catch_warnings():
        # A low T means to stop early.
        warnings.filterwarnings("ignore", message="Solver terminated early", category=ConvergenceWarning)
        scores = cross_val_score(machine, weights[: z["N"]], labels[: z["N"]], cv=StratifiedKFold(_FOLDS))
    return float(np.mean(scores))


@lru_cache(maxsize=1)
def _corpus(path: Path) -> tuple[Any, NDArray[np.str_]]:  # sparse (n, terms), (n,)
    """Return tf-idf weights and labels of all documents in their fixed order."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    documents = data.newsgroups(path)
    order = np.random.default_rng(_ORDER).permutation(len(documents))
    weights = TfidfVectorizer().fit_transform([documents[i].text for i in order])
    return weights.tocsr(), np.array([documents[i].label for i in order])
