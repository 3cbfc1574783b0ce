"""Tune a scikit-learn pipeline: a scaler, an approximate kernel, a linear classifier.

    python examples/pipeline.py [TARGETS]

Two fidelities make an evaluation cheaper: how many images take part, and the rank of the approximation of the kernel.
No cost is declared: it is measured and learned.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import boca

IMAGES, DIGITS = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(DIGITS))  # so that the first N are a fair sample
SCALERS = {"standard": StandardScaler, "range": MinMaxScaler}

SPACE = boca.Space(
    scaler=boca.Choice(list(SCALERS)),
    gamma=boca.Float(1e-4, 10, log=True),
    alpha=boca.Float(1e-4, 1e2, log=True),
)
FIDELITY = boca.Space(images=boca.Int(200, len(DIGITS), log=True), rank=boca.Int(50, 400, log=True))


def accuracy(x, z):
    """Return the mean accuracy over three folds of the first images."""
    kernel = Nystroem(gamma=x["gamma"], n_components=min(z["rank"], 2 * z["images"] // 3 - 1), random_state=0)
    model = make_pipeline(SCALERS[x["scaler"]](), kernel, RidgeClassifier(alpha=x["alpha"]))
    rows = ORDER[: z["images"]]
    return cross_val_score(model, IMAGES[rows], DIGITS[rows], cv=3).mean()


def main(budget: float = 10.0) -> None:
    result = boca.maximize(accuracy, SPACE, FIDELITY, budget=boca.targets(budget), seed=0)
    full = [t for t in result.history if (t.z["images"], t.z["rank"]) == (len(DIGITS), 400)]
    if not full:
        sys.exit("The budget was spent before a full evaluation could begin: give more TARGETS.")
    each = np.mean([t.seconds for t in full])
    print(f"Best pipeline at the target: {result.value:.4f} of the digits are read correctly.")
    print(f"  scaler {result.x['scaler']}, gamma {result.x['gamma']:.3g}, alpha {result.x['alpha']:.3g}")
    print(f"It took {len(result.history)} evaluations, {len(full)} of them in full, at {each:.2f} s each.")
    print(f"Seconds spent: {result.spent:.1f}; as many full evaluations would have taken", end=" ")
    print(f"{each * len(result.history):.1f}.")
    for warning in result.warnings:
        print("note:", warning)


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
