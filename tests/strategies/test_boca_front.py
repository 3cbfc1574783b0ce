"""How Boca searches for a front: what x maximizes, which fidelity is worth a query, and what `why` says."""

from __future__ import annotations

import json

import numpy as np
import pytest

import boca
from boca import GPEI, GPUCB, MFGPUCB, MFSKO, AtMost, Boca, Float, Optimizer, Problem, RandomSearch, Space, targets
from boca.domain.errors import InvalidInput
from boca.domain.hypervolume import hypervolume
from boca.domain.objectives import scores

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
FIDELITY = Space(n=Float(0.0, 1.0))
TWO = {"f": "minimize", "g": "minimize"}


def evaluate(x, z=None):
    off = 0.0 if z is None else 1.0 - z["n"]
    rough = 0.3 * off * np.sin(5 * x["a"])
    return {"f": x["a"] ** 2 + x["b"] + rough, "g": (x["a"] - 1) ** 2 + x["b"] - rough}


def problem(fidelity=FIDELITY, **more):
    cost = None if fidelity is None else (lambda z: 0.1 + 0.9 * z["n"])
    return Problem(SPACE, fidelity, cost=cost, **({"outcomes": TWO} | more))


def run(of, budget=8, strategy=None, seed=0, function=evaluate):
    opt = Optimizer(of, budget=targets(budget), strategy=strategy, seed=seed)
    while (trial := opt.ask()) is not None:
        try:
            opt.tell(trial, function(trial.x, trial.z if of.fidelity else None))
        except ArithmeticError as error:
            opt.fail(trial, str(error))
    return opt


@pytest.fixture(scope="module")
def study():
    return run(problem())


def test_it_finds_a_front(study):
    """With b = 0 and all of a on it; random search comes nowhere near."""
    reference = np.array([-1.5, -1.5])
    found, drawn = (
        hypervolume(scores(s.problem, s.front), reference) for s in (study, run(problem(), strategy=RandomSearch()))
    )
    assert found > drawn
    assert found > 0.9 * 1.9
    assert study.best is None


def test_it_uses_cheap_queries_and_comes_back_to_the_target(study):
    cheap = [t for t in study.history if not study.problem.is_target(t.z)]
    assert cheap
    below = 0.0
    for trial in study.history:
        below = 0.0 if study.problem.is_target(trial.z) else below + trial.cost
        assert below <= 1.0 + 1e-9 or trial.phase == "start"


def test_the_last_query_is_at_the_target_and_was_kept(study):
    last = study.history[-1]
    assert last.phase == "final"
    assert study.problem.is_target(last.z)
    assert study.spent <= study.budget.total * (1 + 1e-9)


def test_why_has_every_objective_and_the_improvement(study):
    trial = [t for t in study.history if t.phase == "model"][-1]
    why = json.loads(json.dumps(trial.why))
    assert [*why["outcomes"]] == ["f", "g"]
    for said in why["outcomes"].values():
        assert {"mean", "std", "hyperparameters"} <= set(said)
    assert why["improvement"] > 0.0
    assert why["hypervolume"] > 0.0
    assert set(why["reference"]) == {"f", "g"}
    assert "hypervolume improvement" in why["reason"]
    assert "Expected there: f " in why["reason"]
    assert "mean" not in why
    reference = [-why["reference"][name] for name in TWO]
    before = study.history.read_by(trial)
    assert why["hypervolume"] == pytest.approx(
        hypervolume(scores(study.problem, before.feasible(study.problem)), np.array(reference))
    )


def test_the_same_events_give_the_same_asks(study):
    again = run(problem())
    assert [(t.x, t.z, t.why) for t in again.history] == [(t.x, t.z, t.why) for t in study.history]


def test_a_stored_study_replays_its_decisions(study):
    for trial in study.history[-4:]:
        read = study.history.read_by(trial)
        ledger = study._ledger(read)
        rng = np.random.default_rng([study.seed, trial.number])
        again = study.strategy.suggest(study.problem, read, ledger.budget, rng)
        assert (again.x, again.z, again.why) == (trial.x, trial.z, trial.why)


def test_running_trials_count():
    opt = run(problem(None), budget=6)
    more = Optimizer(problem(None), budget=targets(20), seed=0)
    for trial in opt.history:
        more.add(trial.x, None, trial.outcomes)
    batch = more.ask(4)
    points = np.array([[t.x["a"], t.x["b"]] for t in batch])
    apart = np.linalg.norm(points[:, None] - points, axis=2) + np.eye(4)
    assert apart.min() > 1e-3
    assert len({t.why.get("batch") for t in batch if t.phase == "model"}) == 1


def test_limits_hold_on_the_front():
    outcomes = {**TWO, "c": AtMost(0.5)}
    opt = run(problem(outcomes=outcomes), function=lambda x, z=None: {**evaluate(x, z), "c": x["a"]})
    assert opt.front
    assert all(t.outcomes["c"] <= 0.5 for t in opt.front)
    trial = [t for t in opt.history if t.phase == "model"][-1]
    assert 0.0 <= trial.why["feasible"] <= 1.0
    assert trial.why["outcomes"]["c"]["limit"] == 0.5
    assert "feasible at the target" in trial.why["reason"]


def test_failures_are_learned_and_carry_no_value():
    def fragile(x, z=None):
        if x["a"] > 0.6:
            raise ArithmeticError("diverged")
        return evaluate(x, z)

    opt = run(problem(None), budget=16, function=fragile)
    failed = [t.state == "failed" for t in opt.history]
    assert any(failed)
    assert sum(failed[8:]) <= 4
    assert "success" in opt.history[-1].why["outcomes"]
    assert all(t.state == "complete" for t in opt.front)


def test_three_objectives_and_a_missing_one():
    of = problem(None, outcomes={**TWO, "h": "maximize"})
    seen = []

    def function(x, z=None):
        seen.append(x)
        return {**evaluate(x), "h": None if len(seen) == 3 else x["a"] - x["b"]}

    opt = run(of, budget=8, function=function)
    assert len(opt.history) == 8
    assert 2 not in [t.number for t in opt.front]
    assert opt.history[2].state == "complete"


def test_a_given_reference_is_used():
    opt = run(problem(None, reference={"f": 1.25, "g": 1.5}), budget=5)
    assert opt.history[-1].why["reference"] == {"f": 1.25, "g": 1.5}


@pytest.mark.parametrize(
    "strategy", [GPUCB(), GPEI(), MFGPUCB(fidelities=[{"n": 0.5}]), MFSKO(fidelities=[{"n": 0.5}]), Boca.paper()]
)
def test_the_papers_strategies_refuse_several_objectives(strategy):
    with pytest.raises(InvalidInput, match=r"one objective: its paper has no front. Use boca.Boca\(\)"):
        Optimizer(problem(), budget=targets(5), strategy=strategy)


def test_a_known_process_is_of_one_objective():
    with pytest.raises(InvalidInput, match="one objective"):
        Optimizer(problem(), budget=targets(5), strategy=Boca(hyperparameters={"kappa0": 1.0}))


def test_stopping_by_price_refuses_several_objectives():
    with pytest.raises(InvalidInput, match="improvements of one objective"):
        boca.optimize(
            evaluate, SPACE, FIDELITY, outcomes=TWO, budget=targets(2), stop=boca.stopping.NotWorthIt(price=1.0)
        )
