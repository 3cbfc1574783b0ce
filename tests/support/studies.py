"""Small problems and studies of them, for the tests of an optimizer."""

from __future__ import annotations

from dataclasses import dataclass

import boca
from boca import Float, Optimizer, Problem, RandomSearch, Space, targets

SPACE = Space(a=Float(0, 1))
PROBLEM = Problem(SPACE, Space(n=Float(0.1, 1)), cost=lambda z: z["n"])
MEASURED = Problem(SPACE, Space(n=Float(0.1, 1)))
PLAIN = Problem(SPACE)


@dataclass(frozen=True)
class Anywhere:
    """A random x at a random z: every cost is met."""

    def suggest(self, problem, history, budget, rng):
        x, z = (s.from_unit(s.snap(rng.random((1, len(s))))[0]) for s in (problem.space, problem.fidelity))
        return boca.Suggestion(x, z, {"reason": "Anywhere will do.", "phase": "start"})


def optimizer(problem=PROBLEM, budget=None, **more):
    more = {"strategy": RandomSearch(), "seed": 0} | more
    return Optimizer(problem, budget=targets(10) if budget is None else budget, **more)


def f(trial):
    return -((trial.x["a"] - 0.3) ** 2) + 0.1 * trial.z.get("n", 1.0)


def run(opt, value=f, at_most=300, **told):
    """Ask and tell to the end."""
    while len(opt.history) < at_most and (trial := opt.ask()) is not None:
        opt.tell(trial, value(trial), **{key: what(trial) for key, what in told.items()})
    assert len(opt.history) < at_most
    return opt


def state(opt):
    return list(opt.history), opt.budget, opt.best, opt.running


def decisions(opt):
    return [repr((trial.x, trial.z, trial.why)) for trial in opt.history]
