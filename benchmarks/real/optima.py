"""Find the best value of a network of YAHPO: many random points, and local searches from the best of them.

The space is searched as it is seen by a method: in the unit cube, integers on their lattice.  A local search takes the
best of a cloud of normal steps around its point, and halves its width when nothing was better.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.real import yahpo
from benchmarks.real.task import OPTIMA, Optimum
from boca.domain.problem import Problem
from boca.domain.space import FloatArray, Point

RANDOM = 20_000
STARTS = 20
_CLOUD = 64
_WIDTH, _LEAST_WIDTH = 0.1, 1e-4
_SEED = 20


def search(problem: Problem, values: Callable[[Sequence[Point]], FloatArray]) -> Optimum:
    """Return the largest value at the target that a long search finds."""
    rng = np.random.default_rng(_SEED)
    space, z = problem.space, problem.target

    def at(U: FloatArray) -> FloatArray:  # (m, d) -> (m,)
        return values([{**space.from_unit(u), **z} for u in U])

    U = space.snap(rng.random((RANDOM, len(space))))
    y = at(U)
    median = float(np.median(y))
    tops = [_climbed(problem, at, U[i], y[i], rng) for i in np.argsort(-y)[:STARTS]]
    return Optimum(
        float(max(tops)), median, f"{RANDOM} random points, local searches from the best {STARTS}; seed {_SEED}"
    )


def _climbed(
    problem: Problem, at: Callable[[FloatArray], FloatArray], u: FloatArray, best: float, rng: np.random.Generator
) -> float:
    width = _WIDTH
    while width > _LEAST_WIDTH:
        steps = width * rng.standard_normal((_CLOUD, len(u))) * (rng.random((_CLOUD, len(u))) < 0.5)
        cloud = problem.space.snap(np.clip(u + steps, 0.0, 1.0))
        y = at(cloud)
        if y.max() > best:
            u, best = cloud[int(y.argmax())], float(y.max())
        else:
            width /= 2
    return best


def store(names: Sequence[str], report: Callable[[str], None]) -> None:
    """Find the optima of these tasks of YAHPO and store them beside the others."""
    stored = json.loads(OPTIMA.read_text()) if OPTIMA.exists() else {}
    for name in names:
        scenario, _, instance = name.rpartition("_")
        found = search(yahpo.problem(scenario), yahpo.Network(scenario, instance).values)
        stored[name] = found._asdict()
        report(f"{name}: {found.value:.6g}, random points have the median {found.median:.6g}")
        OPTIMA.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n")
