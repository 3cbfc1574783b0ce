"""What stopping runs saves and loses: random search on the curve tasks, with `StopHopeless` and with all runs finished.

Each study makes the same random runs twice.  What was saved is a share of the cost of finishing all of them; what was
lost is the regret at the end beside that of finishing all, in spreads of the task.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.real import tasks
from benchmarks.real.curves import stepped
from boca.domain.observation import Observation
from boca.domain.reasons import Reasons
from boca.domain.trial import History, Trial, sign
from boca.stopping import StopHopeless

_REASONS = Reasons.of({"reason": "A random run.", "phase": "start"})


class Study(NamedTuple):
    """One study: the share of the cost that was saved, how many runs were stopped and would have won, and the loss."""

    saved: float
    stopped: int
    would_have_won: int
    lost: float


def study(name: str, seed: int, runs: int, rule: StopHopeless) -> Study:
    """Make random runs at the target's other fidelities, and stop those that the rule stops."""
    task = stepped(tasks.get(name, seed))
    problem, turn = task.problem, sign(task.problem.direction)
    rng = np.random.default_rng(seed)
    star = problem.step(problem.target)
    steps = sorted({max(1, star // 2**k) for k in range(star.bit_length())})
    steps = [s for s in steps if problem.is_modelled(problem.at_step(problem.target, s))]
    trials, paid, stopped, won = list[Trial](), 0.0, 0, 0
    best = best_of_all = -np.inf
    for number in range(runs):
        x = problem.space.from_unit(problem.space.snap(rng.random((1, len(problem.space))))[0])
        told, end = list[Observation](), star
        for step in steps:
            z = problem.at_step(problem.target, step)
            told.append(Observation(z, task.result(x, z, 0), told=number))
            running = Trial(number, x, problem.target, 1.0, _REASONS, observations=tuple(told), reached=step)
            if step < star and not rule.keep_going(problem, History([*trials, running]), running, rng):
                end = step
                break
        final = turn * task.result(x, problem.target, 0)
        stopped, won = stopped + (end < star), won + (end < star and final > best)
        best_of_all, best = max(best_of_all, final), best if end < star else max(best, final)
        paid += problem.cost(problem.at_step(problem.target, end)) / problem.target_cost
        done = Trial(number, x, problem.target, 1.0, _REASONS, "complete", tuple(told), reached=end, told=number)
        trials.append(done)
    spread = 1.0 if task.best is None else task.best.spread
    return Study(1.0 - paid / runs, stopped, won, float(best_of_all - best) / spread)


def markdown(names: Sequence[str], seeds: int, runs: int = 60) -> Iterator[str]:
    """Yield the lines of a table with a row per task: means over the seeds, and the largest loss."""
    yield "| task | saved | stopped | of these, would have won | lost at the end, at most |"
    yield "| --- | --- | --- | --- | --- |"
    for name in names:
        found = [study(name, seed, runs, StopHopeless()) for seed in range(seeds)]
        stopped, won = sum(f.stopped for f in found), sum(f.would_have_won for f in found)
        saved = np.mean([f.saved for f in found])
        worst = max(f.lost for f in found)
        yield f"| {name} | {100 * saved:.0f} % | {stopped} of {runs * seeds} | {won} | {worst:.2g} |"
