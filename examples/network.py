"""Train a small neural network, and stop early and train on few images when that tells enough.

    python examples/network.py [TARGETS]

The fidelities are epochs and images; the cost is declared as their product, so every run does the same.  A picture
in letters shows how expensive the queries were as the run went on.
"""

import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

import boca

SPACE = boca.Space(
    units=boca.Int(8, 128, log=True),
    rate=boca.Float(1e-4, 1e-1, log=True),
    decay=boca.Float(1e-6, 1e-1, log=True),
    batch=boca.Choice([16, 32, 64]),
)
FIDELITY = boca.Space(epochs=boca.Int(2, 30, log=True), images=boca.Int(150, 1200, log=True))

images, digits = load_digits(return_X_y=True)
TRAIN, TEST, TRAIN_DIGITS, TEST_DIGITS = train_test_split(images / 16, digits, train_size=1200, random_state=0)


def log_loss(x, z):
    """Return the mean surprise at the digits that were held out; less is better."""
    network = MLPClassifier(
        x["units"], learning_rate_init=x["rate"], alpha=x["decay"], batch_size=x["batch"], random_state=0
    )
    for _ in range(z["epochs"]):
        network.partial_fit(TRAIN[: z["images"]], TRAIN_DIGITS[: z["images"]], classes=range(10))
    chances = network.predict_proba(TEST)[np.arange(len(TEST)), TEST_DIGITS]
    return -np.log(np.maximum(chances, 1e-6)).mean()


def main(budget: float = 12.0) -> None:
    problem = boca.Problem(SPACE, FIDELITY, cost=lambda z: z["epochs"] * z["images"], direction="minimize")
    study = boca.Optimizer(problem, budget=boca.targets(budget), seed=1)
    print("query  loss   share of the target's cost")
    while (trial := study.ask()) is not None:
        loss = log_loss(trial.x, trial.z)
        study.tell(trial, loss)
        share = trial.cost / problem.target_cost
        mark = " <- the target" if problem.is_target(trial.z) else ""
        print(f"{trial.number:5}  {loss:.3f}  {'#' * max(1, round(30 * share))}{mark}")
    best = study.best
    print(f"\nBest network: loss {best.value:.4f} with {', '.join(f'{k} {v:.3g}' for k, v in best.x.items())}.")
    print(f"{len(study.history)} networks at the cost of {study.spent / problem.target_cost:.1f} full trainings.")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
