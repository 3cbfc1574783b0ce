"""Probes: where they are made, and when a run has them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca.strategies.boca_probe import probe_index

PROBLEM = boca.Problem(
    boca.Space(a=boca.Float(0, 1), b=boca.Float(0, 1), c=boca.Float(0, 1)),
    boca.Space(epoch=boca.Int(1, 32)),
    cost=lambda z: z["epoch"],
    target={"epoch": 32},
)
TARGETS = 16
BUDGET = boca.targets(TARGETS)


def run(strategy, *, budget=BUDGET, problem=PROBLEM, asks=200):
    """Run on a function of which cheap fidelities tell little: the model mostly wants the target."""
    opt = boca.Optimizer(problem, budget=budget, strategy=strategy, seed=2)
    rng = np.random.default_rng(0)
    while len(opt.history) < asks and (trial := opt.ask()) is not None:
        u = np.array([trial.x[name] for name in "abc"])
        value = -float(np.sum((u - 0.4) ** 2)) + 0.1 * math.sin(6.0 * u[0])
        share = trial.z["epoch"] / 32 if "epoch" in trial.z else 1.0
        opt.tell(trial, value + (1.0 - share) * float(rng.standard_normal()))
    return opt.history


@pytest.fixture(scope="module")
def history():
    return run(boca.Boca())


def probes(history):
    return [t for t in history if "probe" in t.why]


# The fidelity ---------------------------------------------------------------------------------------------------------


def test_about_an_eighth_of_the_cost_the_fidelity_with_the_smallest_gap():
    cost = np.array([0.02, 0.09, 0.12, 0.15, 0.2, 0.3, 1.0])
    assert probe_index(cost, np.array([0.9, 0.8, 0.7, 0.5, 0.3, 0.1, 0.0])) == 3
    assert probe_index(cost, np.array([0.9, 0.2, 0.7, 0.5, 0.3, 0.1, 0.0])) == 1


def test_between_a_twelfth_and_a_quarter_if_there_is_none_at_an_eighth():
    assert probe_index(np.array([0.01, 0.2, 0.24, 1.0]), np.array([0.9, 0.6, 0.5, 0.0])) == 2


@pytest.mark.parametrize("cost", [[0.5, 1.0], [0.01, 0.05, 1.0], [1.0], []])
def test_nowhere_if_all_cost_much_less_or_much_more(cost):
    assert probe_index(np.array(cost), np.full(len(cost), 0.5)) is None


# In a run -------------------------------------------------------------------------------------------------------------


def test_probes_are_at_an_eighth_and_say_why(history):
    found = probes(history)
    assert len(found) >= 2
    for trial in found:
        assert 32 / 12 <= trial.z["epoch"] <= 32 / 4
        assert trial.why["acquisition"] in ("ucb", "max_value")
        assert "exploring below it is cheaper" in trial.why["reason"]


def test_probes_end_with_half_of_the_budget(history):
    spent = 0.0
    for trial in history:
        if "probe" in trial.why:
            assert spent < 0.5 * TARGETS * 32
        spent += trial.cost
    late = [t for t in history if t.phase == "model" and PROBLEM.is_target(t.z)][-6:]
    assert {"ucb", "max_value", "ucb_alone"} & {t.why["acquisition"] for t in late}


@pytest.mark.parametrize("turns", [boca.Boca().target_turns, ("aim",), ("ucb_alone",)])
def test_between_two_probes_there_is_a_query_at_the_target(turns):
    history = run(boca.Boca(target_turns=turns), asks=45)
    has_probed, seen = False, 0
    for trial in history:
        if "probe" in trial.why:
            assert not has_probed
            seen += 1
        has_probed = "probe" in trial.why or (has_probed and not PROBLEM.is_target(trial.z))
    assert seen


def test_a_probe_takes_the_place_of_a_turn(history):
    """After a turn for exploration comes one for improvement, wherever the first was made."""
    turns = ["probe" if "probe" in t.why else t.why["acquisition"] for t in history if t.phase == "model"]
    at_turns = [kind for kind in turns if kind in ("probe", "log_ei", "log_noisy_ei")]
    first = at_turns[: at_turns.index("probe") + 3]
    assert first[:3] == ["log_ei", "probe", "log_noisy_ei"]


@pytest.mark.parametrize(
    ("strategy", "more"),
    [
        (boca.Boca(probe_until=None), {}),
        (boca.Boca(probe_until=0.0), {}),
        (boca.Boca.paper(maximizer="sobol"), {}),
        (boca.Boca(), {"budget": None}),
        (boca.Boca(), {"problem": boca.Problem(PROBLEM.space)}),
    ],
    ids=["off", "nought", "paper", "no budget", "no fidelities"],
)
def test_there_are_runs_without_probes(strategy, more):
    assert not probes(run(strategy, asks=25, **more))


def test_it_is_a_share_of_the_budget():
    with pytest.raises(boca.errors.InvalidInput, match="probe_until must be a share of the budget between 0 and 1"):
        replace(boca.Boca(), probe_until=1.5)
