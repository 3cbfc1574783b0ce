"""Trials that are chosen together: what they read, what they share, and that each can be made again."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca import Boca, Float, Int, Optimizer, Problem, RandomSearch, Space, targets
from boca.strategies.base import shares_batches
from boca.testing import CASES
from support.studies import decisions

SPACE = Space(a=Float(0.0, 1.0), b=Float(0.0, 1.0))
FIDELITY = Space(n=Float(0.1, 1.0))
PROBLEM = Problem(SPACE, FIDELITY, cost=lambda z: z["n"])


def f(trial):
    return -((trial.x["a"] - 0.3) ** 2) - (trial.x["b"] - 0.6) ** 2 + 0.05 * trial.z.get("n", 1.0)


def study(problem=PROBLEM, *, results=24, running=0, **more):
    """Return a study whose model decides, with results that were told and trials that run."""
    settings = {"budget": targets(400), "strategy": Boca(), "seed": 3} | more
    opt = Optimizer(problem, **settings)
    rng = np.random.default_rng(1)
    for k in range(results):
        x, z = problem.space.from_unit(rng.random(2)), {"n": 1.0 if k % 3 == 0 else float(rng.uniform(0.1, 1.0))}
        value = -((x["a"] - 0.3) ** 2) - (x["b"] - 0.6) ** 2 + 0.05 * z["n"]
        opt.add(x, z, value, cost=20.0)
    for _ in range(running):
        assert opt.ask() is not None
    return opt


def as_stored(why):
    return json.loads(json.dumps(why))


def made_again(opt, trial):
    """Make the decision of a stored trial again, from nothing but what is stored."""
    history = opt.history

    def chosen(of, shared):
        read = history.read_by(of)
        rng = np.random.default_rng([opt.seed, of.number])
        budget = opt._ledger(read).budget
        if "batch" not in of.why:
            return opt.strategy.suggest(opt.problem, read, budget, rng), None
        return opt.strategy.suggest_member(opt.problem, read, budget, rng, shared)

    shared = None
    if "batch" in trial.why and trial.why["batch"] != trial.number:
        _, shared = chosen(history[trial.why["batch"]], None)
    return chosen(trial, shared)[0]


# What they share ------------------------------------------------------------------------------------------------------


def test_a_batch_shares_one_refit_and_one_draw_of_the_shrinking():
    opt = study(running=2)
    batch = opt.ask(6)
    assert [t.why["batch"] for t in batch] == [batch[0].number] * 6
    own = [t.why["fidelity_by"]["shrink"] if "fidelity_by" in t.why else t.why["shrink"] for t in batch]
    assert own == [own[0]] * 6
    assert not any(t.why["refit"] for t in batch[1:])
    assert len({(json.dumps(t.why["hyperparameters"]), t.why["shrink"]) for t in batch}) == len(
        {t.why["shrink"] for t in batch}
    )


def test_every_trial_of_a_batch_counts_the_others_before_it_as_running():
    opt = study(running=2)
    before = [t.number for t in opt.running]
    batch = opt.ask(5)
    numbers = [t.number for t in batch]
    for k, trial in enumerate(batch):
        assert list(trial.pending) == trial.why["pending"] == [*before, *numbers[:k]]
        assert trial.seen == batch[0].seen
    assert len({(tuple(t.x.values()), tuple(t.z.values())) for t in batch}) == 5


def test_the_next_batch_shares_another_draw():
    opt = study()
    first, second = opt.ask(3), opt.ask(3)
    assert {t.why["batch"] for t in second} == {second[0].number}
    assert first[0].why["hyperparameters"] != second[0].why["hyperparameters"]


def test_the_first_of_a_batch_is_the_trial_that_would_be_asked_for_alone():
    alone, (first, *_) = study(running=1).ask(), study(running=1).ask(3)
    assert first.x == alone.x
    assert first.z == alone.z
    assert first.why == alone.why | {"batch": first.number}


@pytest.mark.parametrize("n", [None, 1])
def test_a_trial_that_is_asked_for_alone_is_no_batch(n):
    opt, plain = study(), study(strategy=Boca(share_batch=False))
    for _ in range(4):
        trial = opt.ask() if n is None else opt.ask(n)[0]
        assert "batch" not in trial.why
        plain.ask()
    assert decisions(opt) == decisions(plain)


def test_random_points_of_the_start_share_nothing():
    opt = Optimizer(PROBLEM, budget=targets(40), seed=0)
    assert [t.phase for t in opt.ask(4)] == ["start"] * 4
    assert not any("batch" in t.why for t in opt.history)


def test_a_batch_that_begins_in_the_start_has_the_model_of_its_first_trial_after_it():
    opt = Optimizer(PROBLEM, budget=targets(30), seed=0)
    for trial in opt.ask(3):
        opt.tell(trial, f(trial))
    batch = opt.ask(20)
    phases = [t.phase for t in batch]
    first = phases.index("model")
    assert set(phases[:first]) == {"start"}
    assert first > 0
    assert {t.why["batch"] for t in batch if t.phase == "model"} == {batch[first].number}
    assert as_stored(made_again(opt, batch[first + 1]).why) == as_stored(batch[first + 1].why)


@pytest.mark.parametrize("strategy", [Boca.paper(maximizer="sobol"), boca.GPUCB(maximizer="sobol"), RandomSearch()])
def test_other_strategies_choose_every_trial_of_a_batch_by_itself(strategy):
    assert not shares_batches(strategy)
    together, alone = (study(strategy=strategy, running=1) for _ in range(2))
    together.ask(4)
    for _ in range(4):
        alone.ask()
    assert decisions(together) == decisions(alone)
    assert [t.seen for t in together.history] == [t.seen for t in alone.history]


# What they read -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["memory", "sqlite"])
def test_results_that_are_told_while_a_batch_is_chosen_do_not_change_it(where, tmp_path):
    kept = {} if where == "memory" else {"storage": f"sqlite:///{tmp_path}/study.db", "name": "batch"}
    opt, quiet = study(running=2, **kept), study(running=2)
    for trial in opt.ask_each(5):
        opt.tell(trial.pending[0] if trial.number % 5 == 2 else trial, 5.0 + trial.number)
    expected = quiet.ask(5)
    batch = opt.history[-5:]
    assert [(t.x, t.z, as_stored(t.why)) for t in batch] == [(t.x, t.z, as_stored(t.why)) for t in expected]
    assert len({t.seen for t in batch}) == 1
    assert opt.ask().seen >= max(t.told or 0 for t in opt.history[:-1])


@pytest.mark.parametrize("where", ["memory", "sqlite"])
@pytest.mark.parametrize("strategy", [Boca(), Boca(max_shrink=1.0, aims=("ucb",), target_every=0.5)])
def test_every_trial_of_every_batch_is_made_again_from_what_is_stored(where, strategy, tmp_path):
    kept = {} if where == "memory" else {"storage": f"sqlite:///{tmp_path}/study.db", "name": "batch"}
    opt = study(running=1, budget=targets(60), strategy=strategy, **kept)
    rng = np.random.default_rng(0)
    for n in (4, 1, 5):
        for trial in opt.ask_each(n):
            told = opt.running[int(rng.integers(len(opt.running)))]
            if rng.random() < 0.7:
                opt.tell(told, f(told))
            elif rng.random() < 0.3:
                opt.fail(told, "it happens")
            assert trial.state == "running"
    chosen = [t for t in opt.history if not t.added]
    assert sum("batch" in t.why for t in chosen) == 9
    for trial in chosen:
        again = made_again(opt, trial)
        assert (again.x, again.z, as_stored(again.why)) == (trial.x, trial.z, as_stored(trial.why))


def test_a_trial_of_another_process_ends_a_batch(tmp_path):
    kept = {"storage": f"sqlite:///{tmp_path}/study.db", "name": "batch"}
    opt = study(**kept)
    other = Optimizer(PROBLEM, budget=targets(400), strategy=Boca(), seed=3, **kept)
    asked = opt.ask_each(4)
    first, second = next(asked), next(asked)
    stranger = other.ask()
    third, fourth = asked
    numbers = [t.number for t in (first, second, stranger, third, fourth)]
    assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert [t.why["batch"] for t in (first, second, third, fourth)] == [first.number] * 2 + [third.number] * 2
    assert third.seen == stranger.asked
    for trial in (second, third, fourth):
        assert as_stored(made_again(opt, trial).why) == as_stored(trial.why)


def test_a_trial_of_another_process_that_comes_between_choice_and_claim_is_read():
    opt = study()
    asked = opt.ask_each(3)
    next(asked)
    inner, once = opt.strategy.suggest_member, []

    class Slow(Boca):
        def suggest_member(self, *given):
            if not once:
                once.append(opt.storage.claim(replace(opt.history[-1], number=0, seen=opt.storage.read().event)))
            return inner(*given)

    opt.strategy = Slow()
    batch = list(Optimizer.ask_each(opt, 2))
    assert once[0] is not None
    assert [t.number for t in batch] == [once[0].number + 1, once[0].number + 2]
    assert once[0].number in batch[0].pending


def test_a_queued_point_comes_next_and_the_batch_goes_on_after_it():
    opt = study()
    asked = opt.ask_each(4)
    first = next(asked)
    opt.enqueue({"a": 0.9, "b": 0.9}, {"n": 1.0})
    queued, third, fourth = asked
    assert (queued.phase, queued.x) == ("queued", {"a": 0.9, "b": 0.9})
    assert {t.why["batch"] for t in (first, third, fourth)} == {first.number}
    assert queued.number in third.pending
    assert as_stored(made_again(opt, fourth).why) == as_stored(fourth.why)


# What they may cost ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [5, 60])
def test_a_batch_never_costs_more_than_is_left(n):
    opt = Optimizer(PROBLEM, budget=targets(5), seed=1)
    for trial in opt.ask(2):
        opt.tell(trial, f(trial))
    while batch := opt.ask(n):
        assert math.fsum(t.cost for t in opt.history) <= 5.0 * (1.0 + 1e-9)
        for trial in batch:
            opt.tell(trial, f(trial))
    assert opt.history[-1].phase == "final"
    assert 4.0 < opt.spent <= 5.0 * (1.0 + 1e-9)


def test_what_is_told_during_a_batch_counts_for_what_is_affordable():
    opt = Optimizer(PROBLEM, budget=targets(6), seed=1)
    for trial in opt.ask_each(60):
        opt.tell(trial, f(trial), cost=1.3 * trial.cost)
        left = opt.budget.left
    assert left > -0.5
    assert opt.ask() is None


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_batch_has_different_points_on_every_kind_of_space(case):
    opt = Optimizer(case.problem, budget=targets(20), seed=0)
    done = 0
    while done < 36 and (batch := opt.ask(6)):
        points = [(tuple(t.x.items()), tuple(t.z.items())) for t in batch]
        assert len(set(points)) == len(points) or case.problem.space.size < 7
        for trial in batch:
            seconds = 1.0 if case.problem.has_declared_cost else 1.0 + trial.z["n"]
            opt.tell(trial, case.value(trial.x, trial.z), seconds=seconds)
        done += len(batch)
    chosen = [t for t in opt.history if t.phase == "model"]
    assert chosen
    assert all("batch" in t.why for t in chosen)
    trial = chosen[-1]
    assert as_stored(made_again(opt, trial).why) == as_stored(trial.why)


def test_integers_and_a_batch_of_more_trials_than_points():
    problem = Problem(Space(k=Int(0, 2)), Space(n=Int(1, 2)), cost=lambda z: z["n"])
    opt = Optimizer(problem, budget=targets(200), seed=0)
    for trial in opt.ask(24):
        opt.tell(trial, float(trial.x["k"]))
    assert len(opt.ask(9)) == 9


def test_a_stored_study_of_an_earlier_version_goes_on_without_batches(tmp_path):
    """The field is new: a study without it keeps choosing every trial by itself."""
    assert Boca().share_batch
    assert not Boca.paper().share_batch
    field = Boca.__dataclass_fields__["share_batch"]
    assert field.metadata["off"] is False
