"""The curves of runs as numbers: a chain is one curve, and its fate that of its last trial."""

from __future__ import annotations

import pytest

import boca
from boca.plots import curve_data
from boca.plots.axis import Note
from boca.plots.study import study

PROBLEM = boca.Problem(
    boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(epochs=boca.Steps(1, 9)), cost=lambda z: float(z["epochs"])
)


class InTurns:
    """A new point, its continuation, and so on; every second point is stopped."""

    def suggest(self, problem, history, budget, rng):
        last = history[-1] if len(history) else None
        if last is not None and last.state == "complete" and last.stop is None and last.z["epochs"] < 9:
            return boca.Suggestion(last.x, {"epochs": 9}, {"reason": "To the end.", "phase": "start"}, last.number)
        return boca.Suggestion({"a": float(rng.random())}, {"epochs": 4}, {"reason": "New.", "phase": "start"})

    def keep_going(self, problem, history, trial, rng):
        return trial.number != 2 or trial.reached < 2


def played():
    opt = boca.Optimizer(PROBLEM, budget=None, strategy=InTurns(), seed=0)
    for _ in range(3):
        trial = opt.ask()
        for step in range(trial.start + 1, trial.z["epochs"] + 1):
            if not opt.report(trial, step, 0.1 * step):
                break
        opt.saved(trial, step, "here")
        opt.tell(trial, None)
    opt.report(opt.ask(), 1, 0.5)
    return opt


def test_a_chain_is_one_curve():
    found = curve_data.curves(study(played()))
    assert [(c.trial.number, c.fate, c.steps.tolist()) for c in found.curves] == [
        (1, "ended", [float(s) for s in range(1, 10)]),
        (2, "stopped", [1.0, 2.0]),
        (3, "running", [1.0]),
    ]
    assert found.curves[0].values == pytest.approx([0.1 * s for s in range(1, 10)])
    assert (found.axis.name, found.axis.is_whole, found.left_out) == ("epochs", True, 0)


def test_without_curves_there_is_a_note():
    opt = boca.Optimizer(PROBLEM, budget=None, strategy=InTurns(), seed=0)
    assert isinstance(curve_data.curves(study(opt)), Note)
    plain = boca.Optimizer(boca.Problem(PROBLEM.space), budget=None, strategy=boca.RandomSearch(), seed=0)
    assert isinstance(curve_data.curves(study(plain)), Note)
