"""Trainings that report their steps, for tests that need runs."""

from __future__ import annotations

import math

import boca

SPACE = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0))


def training_problem(*, direction="maximize", steps=16, **more):
    """Return a problem whose evaluations pass through steps, of equal cost."""
    fidelity = boca.Space(**more, epochs=boca.Steps(1, steps))
    return boca.Problem(SPACE, fidelity, cost=lambda z: z["epochs"] * z.get("share", 1.0), direction=direction)


def score(x, step):
    """Return what a training has reached at a step: it rises towards a peak at (0.3, 0.6), fast or slowly."""
    top = -((x["a"] - 0.3) ** 2) - (x["b"] - 0.6) ** 2
    return top - math.exp(-step / (2.0 + 3.0 * x["b"]))


def trained(opt, trial, *, saves=True, value=score):
    """Run a trial of an optimizer until its planned step, or until it is told to stop; return the last step."""
    problem = opt.problem
    for step in range(trial.start + 1, problem.step(trial.planned) + 1):
        if not opt.report(trial, step, value(trial.x, step)):
            break
    if saves:
        opt.saved(trial, step, f"checkpoint-{trial.number}")
    opt.tell(trial, None)
    return step


def studied(problem=None, *, trials=30, budget=20, saves=True, seed=0, strategy=None, **more):
    """Return an optimizer after this many trials, or when its budget is spent."""
    problem = training_problem() if problem is None else problem
    chosen = boca.Boca() if strategy is None else strategy
    opt = boca.Optimizer(problem, budget=boca.targets(budget), seed=seed, strategy=chosen, **more)
    for _ in range(trials):
        trial = opt.ask()
        if trial is None:
            break
        trained(opt, trial, saves=saves)
    return opt
