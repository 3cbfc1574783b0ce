"""Measure how long a suggestion takes on a space with conditions: 50 parameters in 10 branches.

    python benchmarks/conditions.py [--results 200] [--repeat 9]

The same number of results on a box of as many parameters, and on one of as many as a branch has, are measured in turn
with it.  One thread; seconds of the processor, refits apart.
"""

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is loaded: it reads them once

import argparse  # noqa: E402
import statistics  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

import boca  # noqa: E402

BRANCHES, OWN, SHARED = 10, 4, 9  # 1 + 9 + 10 * 4 = 50 parameters, of which 14 are active at a time


def spaces() -> dict[str, boca.Space]:
    options = [f"model {i}" for i in range(BRANCHES)]
    shared = {f"s{j}": boca.Float(0.0, 1.0) for j in range(SHARED)}
    own = {
        f"m{i}p{j}": boca.Float(0.0, 1.0, when={"model": [options[i]]})
        if j
        else boca.Int(1, 20, when={"model": [options[i]]})
        for i in range(BRANCHES)
        for j in range(OWN)
    }
    return {
        "50 parameters in 10 branches": boca.Space(model=boca.Choice(options), **shared, **own),
        "a box of 50 parameters": boca.Space({f"p{j}": boca.Float(0.0, 1.0) for j in range(50)}),
        "a box of 14 parameters": boca.Space({f"p{j}": boca.Float(0.0, 1.0) for j in range(14)}),
    }


def study(space: boca.Space, results: int) -> boca.Optimizer:
    rng = np.random.default_rng(0)
    optimizer = boca.Optimizer(boca.Problem(space), budget=None, seed=0)
    for u in space.snap(rng.random((results, len(space)))):
        active = u[u >= 0.0]
        optimizer.add(space.from_unit(u), None, float(-np.square(active - 0.4).sum() + 0.05 * rng.standard_normal()))
    return optimizer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=int, default=200)
    parser.add_argument("--repeat", type=int, default=9)
    given = parser.parse_args()
    studies = {name: study(space, given.results) for name, space in spaces().items()}
    study(boca.Space(a=boca.Float(0.0, 1.0)), 8).ask()  # imports
    seconds: dict[str, dict[bool, list[float]]] = {name: {True: [], False: []} for name in studies}
    for _ in range(given.repeat):
        for name, optimizer in studies.items():
            began = time.process_time()
            trial = optimizer.ask()
            assert trial is not None
            seconds[name][trial.why["refit"]].append(time.process_time() - began)
            optimizer.tell(trial, -1.0)
    for name, taken in seconds.items():
        for refit, values in taken.items():
            if values:
                how = f"{len(values)} {'with a refit' if refit else 'without'}"
                print(f"{name}, {how}: median {statistics.median(values):.3f} s, most {max(values):.3f} s")


if __name__ == "__main__":
    main()
