"""Small trainings on data that come with scikit-learn; each returns a curve and its seconds.

    symbol      meaning
    ----------  -----------------------------------------------------------------------------------
    x           the configuration, by name
    n           how many training samples are used, drawn by the seed
    steps       epochs, or trees
    curve       the validation loss after every step, (steps,); lower is better

A seed draws the samples, the initial weights and the order of the batches.  Losses that are not finite count as twice
the loss of guessing, and so do larger ones.  Seconds are of the processor, since other work shares the machine.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Data:
    """Training and validation parts, features standardised; labels are classes, or standardised numbers."""

    X: Array
    y: Any
    X_valid: Array
    y_valid: Any
    classes: int
    """0 for a regression."""

    @property
    def worst(self) -> float:
        """Twice the loss of guessing."""
        return 2 * math.log(self.classes) if self.classes else 2.0

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Array, Any]:
        rows = rng.permutation(len(self.X))[:n]
        return self.X[rows], self.y[rows]


class Trained(NamedTuple):
    """A training: its curve and its seconds."""

    curve: Array
    seconds: float


@cache
def data(name: str) -> Data:
    """Return a data set of scikit-learn, two thirds of it to train on; the split never changes."""
    from sklearn import datasets

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    regression = name == "diabetes"
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order].astype(float), y[order]
    cut = 2 * len(X) // 3
    mean, deviation = X[:cut].mean(axis=0), X[:cut].std(axis=0)
    X = (X - mean) / np.where(deviation > 0, deviation, 1.0)
    if regression:
        y = (y - y[:cut].mean()) / y[:cut].std()
    return Data(X[:cut], y[:cut], X[cut:], y[cut:], 0 if regression else int(y.max()) + 1)


# Networks -----------------------------------------------------------------------------------------------------------


def perceptron(name: str, x: Mapping[str, Any], n: int, steps: int, seed: int) -> Trained:
    """Train one hidden layer by stochastic gradients with momentum and weight decay."""
    d, rng = data(name), np.random.default_rng(seed)
    X, y = d.sample(n, rng)
    width, scale = int(x["width"]), x.get("scale", 1.0)
    inputs = X.shape[1]
    weights = [
        scale * rng.standard_normal((inputs, width)) * math.sqrt(2 / inputs),
        np.zeros(width),
        scale * rng.standard_normal((width, d.classes)) * math.sqrt(1 / width),
        np.zeros(d.classes),
    ]

    def gradients(B: Array, labels: Labels) -> list[Array]:
        hidden = np.maximum(B @ weights[0] + weights[1], 0.0)
        error = _error(hidden @ weights[2] + weights[3], labels)
        back = (error @ weights[2].T) * (hidden > 0)
        return [B.T @ back, back.sum(axis=0), hidden.T @ error, error.sum(axis=0)]

    def loss() -> float:
        return _loss(np.maximum(d.X_valid @ weights[0] + weights[1], 0.0) @ weights[2] + weights[3], d.y_valid)

    return _descended(x, weights, gradients, loss, X, y, steps, d.worst, rng)


def convolution(name: str, x: Mapping[str, Any], n: int, steps: int, seed: int) -> Trained:
    """Train one layer of 3 x 3 filters on the 8 x 8 digits, the largest of 2 x 2 places, and a linear layer."""
    d, rng = data(name), np.random.default_rng(seed)
    X, y = d.sample(n, rng)
    filters = int(x["filters"])
    weights = [
        rng.standard_normal((9, filters)) / 3.0,
        np.zeros(filters),
        rng.standard_normal((9 * filters, d.classes)) / math.sqrt(9 * filters),
        np.zeros(d.classes),
    ]
    P, P_valid = _patches(X), _patches(d.X_valid)

    def forward(P: Array) -> tuple[Array, Array, Array]:
        places = np.maximum(P @ weights[0] + weights[1], 0.0).reshape(len(P), 9, 4, filters)
        pooled = places.max(axis=2)
        return places, pooled, pooled.reshape(len(P), -1) @ weights[2] + weights[3]

    def gradients(B: Array, labels: Labels) -> list[Array]:
        places, pooled, scores = forward(B)
        error = _error(scores, labels)
        flat = pooled.reshape(len(B), -1)
        back = (error @ weights[2].T).reshape(len(B), 9, 1, filters) * (places == pooled[:, :, None, :]) * (places > 0)
        slope = back.reshape(-1, filters)
        return [B.reshape(-1, 9).T @ slope, slope.sum(axis=0), flat.T @ error, error.sum(axis=0)]

    return _descended(x, weights, gradients, lambda: _loss(forward(P_valid)[2], d.y_valid), P, y, steps, d.worst, rng)


def _patches(X: Array) -> Array:  # (n, 64) -> (n, 36, 9), the four places of a pool side by side
    windows = np.lib.stride_tricks.sliding_window_view(X.reshape(-1, 8, 8), (3, 3), axis=(1, 2))
    blocks = windows.reshape(len(X), 3, 2, 3, 2, 9).transpose(0, 1, 3, 2, 4, 5)
    return np.ascontiguousarray(blocks.reshape(len(X), 36, 9))


def _descended(
    x: Mapping[str, Any],
    weights: list[Array],
    gradients: Callable[[Array, Labels], list[Array]],
    loss: Callable[[], float],
    X: Array,
    y: Labels,
    steps: int,
    worst: float,
    rng: np.random.Generator,
) -> Trained:
    """Run the epochs; a training that diverged stays at the worst loss."""
    rate, momentum, decay = x["rate"], x.get("momentum", 0.9), x.get("decay", 0.0)
    speed = [np.zeros_like(w) for w in weights]
    curve = np.full(steps, worst)
    began = time.process_time()
    with np.errstate(all="ignore"):
        for step in range(steps):
            for rows in _batches(len(X), int(x.get("batch", 32)), rng):
                for w, v, g in zip(weights, speed, gradients(X[rows], y[rows]), strict=True):
                    v *= momentum
                    v -= rate * (g + decay * w)
                    w += v
            curve[step] = _bounded(loss(), worst)
            if not math.isfinite(float(weights[0].sum())):
                break
    return Trained(curve, time.process_time() - began)


def _batches(n: int, size: int, rng: np.random.Generator) -> Iterator[Labels]:
    order = rng.permutation(n)
    return (order[start : start + size] for start in range(0, n, size))


def _error(scores: Array, labels: Labels) -> Array:
    """Return the slope of the mean cross-entropy over the scores."""
    p = _softmax(scores)
    p[np.arange(len(labels)), labels] -= 1.0
    return p / len(labels)


def _loss(scores: Array, labels: Labels) -> float:
    """Return the cross-entropy, each label having a probability of 1e-6 at least."""
    return float(-np.log(np.maximum(_softmax(scores)[np.arange(len(labels)), labels], 1e-6)).mean())


def _softmax(scores: Array) -> Array:
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _bounded(loss: float, worst: float) -> float:
    return min(loss, worst) if math.isfinite(loss) else worst


# Learners of scikit-learn -------------------------------------------------------------------------------------------


def boosting(name: str, x: Mapping[str, Any], n: int, steps: int, seed: int) -> Trained:
    """Grow boosted trees on histograms; a step is a tree."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    d, rng = data(name), np.random.default_rng(seed)
    X, y = d.sample(n, rng)
    kind = HistGradientBoostingClassifier if d.classes else HistGradientBoostingRegressor
    model = kind(
        learning_rate=x["rate"],
        max_iter=steps,
        max_leaf_nodes=int(x["leaves"]),
        min_samples_leaf=int(x["least"]),
        l2_regularization=x["l2"],
        max_bins=31,
        early_stopping=False,
        random_state=seed,
    )
    began = time.process_time()
    model.fit(X, y)
    took = time.process_time() - began
    if d.classes:
        rows = np.arange(len(d.y_valid))
        losses = [-np.log(np.maximum(p[rows, d.y_valid], 1e-6)).mean() for p in model.staged_predict_proba(d.X_valid)]
    else:
        losses = [((p - d.y_valid) ** 2).mean() for p in model.staged_predict(d.X_valid)]
    return Trained(np.array([_bounded(float(loss), d.worst) for loss in losses]), took)


def linear(name: str, x: Mapping[str, Any], n: int, steps: int, seed: int) -> Trained:
    """Train a linear classifier by `partial_fit`; the loss is the share of wrong labels."""
    from sklearn.linear_model import SGDClassifier

    d, rng = data(name), np.random.default_rng(seed)
    X, y = d.sample(n, rng)
    model = SGDClassifier(
        loss=x["loss"],
        penalty=x["penalty"],
        alpha=x["alpha"],
        learning_rate="invscaling",
        eta0=x["rate"],
        power_t=x["power"],
        random_state=seed,
    )
    curve, took = np.ones(steps), 0.0
    for step in range(steps):
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model.partial_fit(X, y, classes=np.arange(d.classes))
            except ValueError:  # scikit-learn refuses to go on with weights that overflowed
                break
        took += time.process_time() - began
        curve[step] = float((model.predict(d.X_valid) != d.y_valid).mean())
    return Trained(curve, took)


TRAININGS: Mapping[str, Callable[[str, Mapping[str, Any], int, int, int], Trained]] = {
    "perceptron": perceptron,
    "convolution": convolution,
    "boosting": boosting,
    "linear": linear,
}
