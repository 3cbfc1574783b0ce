"""A problem with a known height, and studies of it."""

from __future__ import annotations

import math

import boca
from boca import Choice, Float, Int, Space

SPACE = Space(C=Float(1e-2, 1e3, log=True), depth=Int(1, 12), kind=Choice(["round", "flat", None]))
FIDELITY = Space(N=Int(100, 10000, log=True), T=Float(0.1, 1.0))


def cost(z):
    return z["N"] * z["T"]


def height(x, z):
    hill = (math.log10(x["C"]) - 1) ** 2 / 10 + (x["depth"] - 7) ** 2 / 100 + (x["kind"] == "flat")
    missing = 0.0 if not z else 0.3 * (1 - z["N"] / 10000) + 0.1 * (1 - z["T"])
    return 2.0 - hill - missing


def optimizer(space=SPACE, fidelity=FIDELITY, *, direction="maximize", budget=None, storage=None, **more):
    declared = cost if fidelity is FIDELITY else None
    problem = boca.Problem(space, fidelity, cost=declared, direction=direction)
    budget = boca.targets(4) if budget is None else budget
    return boca.Optimizer(problem, budget=budget, seed=2, storage=storage, name="hills", **more)


def turn(opt):
    return 1.0 if opt.problem.direction == "maximize" else -1.0


def go(opt, n, *, failing=()):
    """Run n trials at most; those of these numbers fail."""
    for _ in range(n):
        trial = opt.ask()
        if trial is None:
            break
        if trial.number in failing:
            opt.fail(trial, "it broke", seconds=0.5)
        else:
            opt.tell(trial, turn(opt) * height(trial.x, trial.z), seconds=0.5)
    return opt
