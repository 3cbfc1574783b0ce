"""A run as a user writes it, which writes down every result that was acknowledged to it.

python driver.py URL LOG STRATEGY SEED TARGETS WORKERS
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import boca

SPACE = boca.Space(a=boca.Float(0, 1), k=boca.Int(1, 50), c=boca.Choice(["u", "v"]))
FIDELITY = boca.Space(n=boca.Float(0.1, 1.0))
STRATEGIES = {"random": boca.RandomSearch(), "boca": boca.Boca()}
PAUSE = 0.01  # seconds an evaluation takes


def price(z: dict[str, Any]) -> float:
    return 0.1 + float(z["n"])


PROBLEM = boca.Problem(SPACE, FIDELITY, cost=price)


def value(x: dict[str, Any], z: dict[str, Any]) -> float:
    """Return what a trial must have, whoever evaluates it and however often; some points fail."""
    if x["k"] % 10 == 0:
        raise RuntimeError(f"There is no result for k = {x['k']}.")
    return -((x["a"] - 0.3) ** 2) - 0.001 * x["k"] + 0.1 * z["n"] + 0.05 * (x["c"] == "u")


def objective(x: dict[str, Any], z: dict[str, Any]) -> float:
    time.sleep(PAUSE)
    return value(x, z)


def settings(strategy: str, seed: int, targets: float) -> dict[str, Any]:
    return {"budget": boca.targets(targets), "strategy": STRATEGIES[strategy], "seed": seed}


def run(url: str | None, log: str | None, strategy: str, seed: int, targets: float, workers: int = 0) -> boca.Result:
    """Run, or go on with, a study to its end."""

    def note(optimizer: boca.Optimizer, trial: boca.Trial) -> None:
        if log is not None:
            with Path(log).open("a") as file:
                file.write(json.dumps([trial.number, trial.state, trial.value, trial.cost]) + "\n")
                file.flush()
                os.fsync(file.fileno())

    return boca.maximize(
        objective,
        SPACE,
        FIDELITY,
        cost=price,
        storage=url,
        executor=workers or None,
        max_retries=10**6,  # here it is the driver that is killed, not the trial that kills
        callbacks=note,
        **settings(strategy, seed, targets),
    )


def as_leader(*arguments: Any) -> None:
    """Run in a session of its own, so that whatever it starts can be found."""
    os.setsid()
    run(*arguments)


if __name__ == "__main__":
    url, log, strategy, seed, targets, workers = sys.argv[1:]
    as_leader(url, log, strategy, int(seed), float(targets), int(workers))
