"""The fidelities that a method without a model of them goes through, from cheap to the target."""

from __future__ import annotations

from benchmarks.real.task import Task
from boca.domain.problem import Problem
from boca.domain.space import Point
from boca.problems import Benchmark

_SHARES = (1 / 27, 1 / 9, 1 / 3)  # of the cost of the target, where there are no steps


def steps(benchmark: Benchmark) -> list[Point]:
    """Return every step of a training, the other fidelities at the target; without steps four rungs."""
    problem = benchmark.problem
    name = benchmark.step if isinstance(benchmark, Task) else None
    if name is None:
        rungs = [at_cost(problem, share) for share in _SHARES]
        return [*(z for i, z in enumerate(rungs) if z not in rungs[:i]), problem.target]
    low, high = problem.fidelity[name].ends or (0, 0)
    return [{**problem.target, name: step} for step in range(int(low), int(high) + 1)]


def at_cost(problem: Problem, share: float) -> Point:
    """Return the fidelity on the diagonal to the target that costs this share of it, at most if there is one."""
    lowest, highest = 0.0, 1.0
    for _ in range(30):
        middle = (lowest + highest) / 2
        cheap = problem.cost(_on_diagonal(problem, middle)) <= share * problem.target_cost
        lowest, highest = (middle, highest) if cheap else (lowest, middle)
    return _on_diagonal(problem, lowest)


def _on_diagonal(problem: Problem, share: float) -> Point:
    target = problem.fidelity.to_unit([problem.target])
    return problem.fidelity.from_unit(problem.fidelity.snap(share * target)[0])


def cheap(benchmark: Benchmark, share: float) -> Point:
    """Return the last rung that costs this share of the target at most, the first if none does."""
    problem = benchmark.problem
    if not (isinstance(benchmark, Task) and benchmark.step):
        return at_cost(problem, share)
    affordable = [z for z in steps(benchmark) if problem.cost(z) <= share * problem.target_cost]
    return affordable[-1] if affordable else steps(benchmark)[0]
