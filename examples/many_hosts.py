"""Ask and tell from several processes or hosts at once: run this as often as you like on one database.

    python examples/many_hosts.py sqlite:///many.db                              # processes of one machine
    python examples/many_hosts.py postgresql+psycopg://user@host/database        # any number of machines

Each process asks for a trial, evaluates it and tells the result, until the budget is spent.  SIGTERM, which schedulers
send before they take a node away, leaves the unfinished trial to the next process.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import boca
from boca.study.storage import Lease

LONGEST = 3600.0  # seconds that one evaluation takes at most: after that a silent process counts as dead

PROBLEM = boca.Problem(
    boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0)),
    boca.Space(n=boca.Int(10, 100)),
    cost=lambda z: float(z["n"]),
    direction="minimize",
)


def evaluate(x: dict[str, Any], z: dict[str, Any]) -> float:
    """Return the value of one trial; replace this by what you want to optimize."""
    time.sleep(float(os.environ.get("SECONDS_PER_TRIAL", "0.1")))
    return float((x["a"] - 0.3) ** 2 + (x["b"] - 0.7) ** 2 + 1.0 / z["n"])


def main(storage: str) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    lease = Lease(seconds=LONGEST)
    optimizer = boca.Optimizer(PROBLEM, budget=boca.targets(10), seed=0, storage=storage, name="many")
    try:
        while True:
            left = optimizer.take_over(lease, limit=1)  # what a process that is gone has not finished
            trial = left[0] if left else optimizer.ask(lease=lease)
            if trial is not None:
                optimizer.tell(trial, evaluate(trial.x, trial.z), worker=f"{os.uname().nodename}:{os.getpid()}")
            elif optimizer.running:
                time.sleep(1.0)  # nothing is affordable now; the trials of others may leave budget
            else:
                break
    finally:
        optimizer.storage.release(lease)
    best = optimizer.best
    if best is not None:
        print(f"best {best.value:.4g} at {best.x}, after {len(optimizer.history)} trials")


if __name__ == "__main__":
    main(sys.argv[1])
