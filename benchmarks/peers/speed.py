"""How long a suggestion takes, ours against BoTorch's, after the same number of results.

    python -m benchmarks.peers.speed [--sizes 100 200 500] [--fantasies 16] [--repeats 3]

Hartmann 3 (three variables, two fidelities), one thread, all sides of one size in turn.  Ours is the mean of a run,
refits included, its first suggestion left out.  qLogNEI has as many results, all of them at the target; qMFKG has the
very same ones.  Theirs is the median of some suggestions, a fit in each, since BoTorch fits afresh; a first one at the
smallest size, which loads what is loaded when it is used, is left out too.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Sequence

import numpy as np

import boca
from benchmarks.overhead import Case, mean_over_a_run
from benchmarks.peers.botorch import QMFKG, QLogNEI


def seconds(strategy: boca.Strategy, case: Case, trials: Sequence[boca.Trial], *, repeats: int) -> float:
    """Return the median time of suggestions from these results, each with a seed of its own."""
    strategy.check(case.benchmark.problem)
    took = []
    for seed in range(repeats):
        began = time.perf_counter()
        strategy.suggest(case.benchmark.problem, boca.History(trials), case.budget, np.random.default_rng(seed))
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def at_target(case: Case) -> list[boca.Trial]:
    """Return the same x, all of them run at the target."""
    bench, rng = case.benchmark, np.random.default_rng(0)
    return [t.completed(bench.observe(t.x, None, rng), z=dict(bench.problem.target)) for t in case.trials]


def main() -> None:
    parser = argparse.ArgumentParser(description="Seconds per suggestion, one thread.")
    parser.add_argument("--sizes", type=int, nargs="+", default=(100, 200, 500), metavar="N")
    parser.add_argument("--fantasies", type=int, default=16, metavar="N", help="of qMFKG; its tutorial has 128")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="suggestions of a peer (default: 3)")
    options = parser.parse_args()
    kg, first = QMFKG(fantasies=options.fantasies), Case(min(options.sizes))
    seconds(QLogNEI(), first, at_target(first), repeats=1)
    seconds(QMFKG(fantasies=2), first, first.trials, repeats=1)
    print("| n | boca, mean of a run | qLogNEI | ratio | qMFKG | ratio |\n| --- | --- | --- | --- | --- | --- |")
    for n in options.sizes:
        case = Case(n)
        ours = mean_over_a_run(case, 30)
        nei = seconds(QLogNEI(), case, at_target(case), repeats=options.repeats)
        mfkg = seconds(kg, case, case.trials, repeats=options.repeats)
        row = [f"{n}", f"{ours:.4f} s", f"{nei:.2f} s", f"{nei / ours:.0f}", f"{mfkg:.1f} s", f"{mfkg / ours:.0f}"]
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
