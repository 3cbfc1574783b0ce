"""Write a strategy: try many points cheaply, and repeat the better third at a higher fidelity, up to the target.

    python examples/strategy.py [TARGETS]

This is successive halving without rounds.  A strategy has no memory: what was promoted is read from the history.  The
contract suite checks it first; then it is compared with random search and the default on a known problem.
"""

import sys
from dataclasses import dataclass
from statistics import median

import boca
from boca.accounting.cost import costs
from boca.domain.trial import barred, point_key, sign
from boca.search.candidates import first_free
from boca.strategies.ladder import ladder
from boca.testing import check_strategy


@dataclass(frozen=True)
class Promote:
    """Promote the best points of each level to the next; if there are none, try a new point at the lowest level."""

    share: int = 3

    def suggest(self, problem, history, budget, rng):
        levels, better = ladder(problem, None, costs(problem, history)), sign(problem.direction)
        ranked, z, reason = rng.random((64, len(problem.space))), levels[0], "A new point, at the cheapest level."
        for lower, upper in zip(levels[-2::-1], levels[:0:-1], strict=True):  # the highest promotion first
            known = {point_key(t.x): t for t in history.complete if t.z == lower}
            best = sorted(known, key=lambda x: -better * known[x].value)[: len(known) // self.share]
            gone = {point_key(t.x) for t in history if t.z == upper} | barred(history)
            if waiting := [known[x].x for x in best if x not in gone]:
                ranked, z = problem.space.to_unit(waiting), upper
                reason = f"Among the best {len(best)} of {len(known)} points one level below."
                break
        u, z = first_free(problem, history, problem.space.snap(ranked), lambda _: dict(z))
        return boca.Suggestion(problem.space.from_unit(u), z, {"reason": reason, "phase": "start"})


def regret(strategy, budget, seed):
    """Return how far the best query at the target falls short of the known optimum."""
    bench = boca.problems.get("branin")
    study = boca.Optimizer(bench.problem, budget=boca.targets(budget), strategy=strategy, seed=seed)
    while (trial := study.ask()) is not None:
        study.tell(trial, bench.value(trial.x, trial.z))
    return bench.optimum - study.best.value if study.best else float("inf")


def main(budget: float = 10.0) -> None:
    check_strategy(Promote())
    print("Promote() passes the contract suite.")
    print(f"Branin, {budget:g} targets each, five seeds: distance from the optimum:")
    for strategy in (boca.RandomSearch(), Promote(), boca.Boca()):
        print(f"  {type(strategy).__name__:13} median {median(regret(strategy, budget, s) for s in range(5)):.3g}")


if __name__ == "__main__":
    main(*map(float, sys.argv[1:]))
