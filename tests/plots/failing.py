"""A study in which trials fail or break a limit."""

from __future__ import annotations

import boca

SPACE = boca.Space(a=boca.Float(0.0, 1.0), b=boca.Float(0.0, 1.0), c=boca.Float(0.0, 1.0))


def failing() -> boca.Optimizer:
    """Return a study that fails where a > 0.7, and whose outcome is too large where b > 0.8."""
    problem = boca.Problem(SPACE, direction="minimize", subject_to={"size": boca.AtMost(0.8)})
    opt = boca.Optimizer(problem, budget=boca.targets(60), strategy=boca.RandomSearch(), seed=0)
    for _ in range(30):
        trial = opt.ask()
        assert trial is not None
        if trial.x["a"] > 0.7:
            opt.fail(trial, "diverged" if trial.x["c"] > 0.5 else "out of memory")
        else:
            opt.tell(trial, {"loss": trial.x["c"], "size": trial.x["b"]})
    return opt
