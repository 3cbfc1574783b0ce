"""Studies to plot: two fidelities with every kind of parameter, one that minimizes, one without fidelities."""

from __future__ import annotations

import matplotlib as mpl
import pytest

mpl.use("Agg")

from matplotlib import pyplot as plt

import boca
from boca import Choice, Space
from plots.hills import SPACE, go, height, optimizer


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """Two fidelities, a log scale, integers and options; a failure, an imported result, a running trial."""
    opt = optimizer(storage=f"sqlite:///{tmp_path_factory.mktemp('plots')}/study.db")
    go(opt, 24, failing=(3,))
    opt.add({"C": 1.0, "depth": 3, "kind": None}, None, 1.0)
    assert opt.ask() is not None
    assert any(t.phase == "model" and not opt.problem.is_target(t.z) for t in opt.history)
    assert opt.best is not None
    return opt


@pytest.fixture(scope="module")
def minimized():
    problem = boca.Problem(
        SPACE, Space(source=Choice(["sketch", "tunnel"])), target={"source": "tunnel"}, direction="minimize"
    )
    strategy = boca.MFGPUCB(maximizer="sobol")
    opt = boca.Optimizer(problem, budget=boca.seconds(30), seed=1, strategy=strategy)
    for seconds in (0.5, 1.0, 2.0, 0.75, 1.5, 0.6, 1.1):
        trial = opt.ask()
        opt.tell(trial, -height(trial.x, {}) + 0.1 * (trial.z["source"] == "sketch"), seconds=seconds)
    assert opt.history[-1].phase == "model"
    return opt


@pytest.fixture(scope="module")
def plain():
    return go(optimizer(fidelity=None, budget=boca.targets(7)), 7)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")
