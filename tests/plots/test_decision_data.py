"""One decision step by step: the numbers are those that were stored, and the choices follow from them."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca.errors import InvalidInput
from boca.plots.axis import Note
from boca.plots.decision_data import decision
from boca.plots.study import study

SPACE = boca.Space(a=boca.Float(0, 1), b=boca.Float(0, 1), kind=boca.Choice(["p", "q"]))
FIDELITY = boca.Space(n=boca.Int(1, 10), m=boca.Float(0, 1))


def value(x, z):
    z = z or {"n": 10, "m": 1.0}
    return -((x["a"] - 0.3) ** 2) - 0.3 * (x["b"] - 0.6) ** 2 - 0.02 * (10 - z["n"]) - 0.1 * (1 - z["m"])


@pytest.fixture(scope="module", params=["maximize", "minimize"])
def seen(request):
    turn = 1.0 if request.param == "maximize" else -1.0
    problem = boca.Problem(SPACE, FIDELITY, cost=lambda z: z["n"] * (0.2 + z["m"]), direction=request.param)
    opt = boca.Optimizer(problem, budget=boca.targets(6), seed=1)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, turn * value(trial.x, trial.z))
    return study(opt)


def chosen(seen):
    return [t for t in seen.history.chosen if t.phase == "model"]


def test_mean_and_bound_are_those_of_why(seen):
    turn = 1.0 if seen.problem.direction == "maximize" else -1.0
    for trial in chosen(seen):
        found = decision(seen, trial.number)
        mean, bound = found.x.at_chosen
        assert mean == pytest.approx(trial.why["mean"], rel=1e-9, abs=1e-12)
        assert bound == pytest.approx(trial.why["ucb"], rel=1e-9, abs=1e-12)
        assert (turn * (found.x.bound - found.x.mean) >= 0).all()
        if trial.why["acquisition"] == "ucb" and found.x.axis.scale != "choice":  # x is where the bound is highest
            assert turn * bound >= (turn * found.x.bound).max() - 1e-3 * np.ptp(found.x.bound)


def test_a_cheaper_fidelity_that_was_chosen_was_a_candidate_and_a_target_had_none_cheaper(seen):
    below = [
        t for t in chosen(seen) if not seen.problem.is_target(t.z) and t.why["acquisition"] in ("ucb", "log_noisy_ei")
    ]
    assert below
    for trial in below:
        for name in FIDELITY:
            found = decision(seen, trial.number, fidelity=name).z
            here = int(np.argmin(np.abs(found.position - found.chosen)))
            assert found.position[here] == pytest.approx(found.chosen)
            assert found.is_candidate[here]
            assert found.tau[here] > found.threshold[here]
            on_grid = np.isin(np.round(found.position, 9), np.round(grid(seen, name), 9))
            cheaper = (found.cost < found.at_chosen[1] - 1e-12) & on_grid
            assert not (found.is_candidate & cheaper).any()  # it is the cheapest of them


def grid(seen, name):
    return np.array(sorted({float(z[name]) for z in seen.problem.grid[0]}))


def test_the_last_decision_is_the_default(seen):
    assert decision(seen).trial.number == seen.history.chosen[-1].number
    assert decision(seen).reason == seen.history.chosen[-1].why["reason"]


@pytest.mark.parametrize("name", ["a", "b", "kind"])
def test_any_parameter_can_be_shown(seen, name):
    found = decision(seen, name=name).x
    assert found.axis.name == name
    assert found.chosen in found.position
    assert len(found.read) == len(found.value) == len(found.at_target)


def test_only_what_the_choice_had_read_is_shown(seen):
    trial = chosen(seen)[1]
    assert len(decision(seen, trial.number).x.value) == len(seen.history.read_by(trial).valued)


def test_a_trial_that_no_model_chose_is_refused(seen):
    with pytest.raises(InvalidInput, match="chosen by a model"):
        decision(seen, 0)
    with pytest.raises(InvalidInput, match="name must be one of"):
        decision(seen, name="c")
    with pytest.raises(InvalidInput, match="fidelity must be one of"):
        decision(seen, fidelity="a")


def run(problem, told=value, **more):
    opt = boca.Optimizer(problem, budget=boca.targets(8), seed=0, **more)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, told(trial.x, trial.z))
    return study(opt)


def test_without_fidelities_there_is_only_x():
    found = decision(run(boca.Problem(SPACE)))
    assert isinstance(found.z, Note)
    assert found.x.at_chosen[0] == pytest.approx(found.trial.why["mean"], rel=1e-9)


def test_a_given_gp_is_the_one_that_is_shown():
    bench = boca.problems.get("gp-smooth", seed=0)
    opt = boca.Optimizer(
        bench.problem, budget=boca.targets(3), seed=0, strategy=boca.Boca(hyperparameters=bench.hyperparameters)
    )
    while (trial := opt.ask()) is not None:
        opt.tell(trial, bench.value(trial.x, trial.z))
    found = decision(study(opt))
    assert found.x.at_chosen[0] == pytest.approx(found.trial.why["mean"], rel=1e-9)


def test_there_is_a_note_where_there_is_nothing_to_show():
    assert isinstance(decision(study(boca.Optimizer(boca.Problem(SPACE), budget=boca.targets(3)))), Note)
    assert isinstance(decision(run(boca.Problem(SPACE), strategy=boca.GPUCB())), Note)
