"""Ask, tell, fail, add, enqueue, seeds and replays."""

from __future__ import annotations

import copy
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca import Boca, Choice, Float, Int, Optimizer, Problem, RandomSearch, Space, seconds, targets
from boca.domain.errors import InvalidInput, InvalidTrial
from support.strategies import EARLIER
from support.studies import PLAIN, PROBLEM, SPACE, decisions, f, optimizer, run, state

# Ask and tell ---------------------------------------------------------------------------------------------------------


def test_a_trial_has_a_number_a_point_a_cost_and_a_reason():
    opt = optimizer()
    for number in range(3):
        trial = opt.ask()
        assert trial.number == number
        assert SPACE.validate(trial.x, "x") == trial.x
        assert trial.z == PROBLEM.target
        assert trial.cost == 1.0
        assert trial.why["reason"]
        assert trial.state == "running"
        assert opt.history[number] == trial
    assert [trial.number for trial in opt.running] == [0, 1, 2]


def test_a_told_trial_is_complete_and_no_longer_running():
    opt = optimizer()
    trial = opt.ask()
    done = opt.tell(trial, 2)
    assert done == opt.history[0]
    assert (done.state, done.value, done.x, done.z) == ("complete", 2.0, trial.x, trial.z)
    assert type(done.value) is float
    assert opt.running == ()
    assert trial.state == "running"


@pytest.mark.parametrize("number", [1, np.int64(1)])
def test_a_result_can_be_told_by_number(number):
    opt = optimizer()
    opt.ask(3)
    opt.tell(number, 5.0)
    assert [trial.value for trial in opt.history] == [None, 5.0, None]


def test_results_can_come_in_any_order():
    opt = optimizer()
    trials = opt.ask(4)
    for trial in (trials[2], trials[0], trials[3], trials[1]):
        opt.tell(trial, float(trial.number))
    assert [trial.value for trial in opt.history] == [0.0, 1.0, 2.0, 3.0]
    assert [trial.number for trial in opt.history.finished] == [2, 0, 3, 1]
    assert opt.best.number == 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None, "1.0", True, [1.0, 2.0], 1j, np.nan])
def test_a_value_that_is_no_finite_number_is_refused_and_nothing_changes(value):
    opt = optimizer()
    trial, _ = opt.ask(2)
    before = state(opt)
    with pytest.raises(InvalidInput, match="value must be a finite number; got"):
        opt.tell(trial, value)
    assert state(opt) == before
    opt.tell(trial, 1.0)
    assert opt.history[0].value == 1.0


@pytest.mark.parametrize("number", [-1, 2, 100, "0", None, 0.0, True])
def test_a_result_for_an_unknown_trial_is_refused_and_nothing_changes(number):
    opt = optimizer()
    opt.ask(2)
    before = state(opt)
    with pytest.raises(InvalidTrial, match=r"no trial .* this study has 2"):
        opt.tell(number, 1.0)
    with pytest.raises(InvalidTrial, match=r"no trial .* this study has 2"):
        opt.fail(number, "lost")
    assert state(opt) == before


def test_a_second_result_is_refused_and_the_first_one_stays():
    opt = optimizer()
    told, failed = opt.ask(2)
    opt.tell(told, 1.0)
    opt.fail(failed, "out of memory")
    before = state(opt)
    for again in (lambda: opt.tell(told, 2.0), lambda: opt.tell(0, 1.0), lambda: opt.fail(told, "late")):
        with pytest.raises(InvalidTrial, match=r"Trial 0 .*\(value 1.0\)"):
            again()
    for again in (lambda: opt.tell(failed, 2.0), lambda: opt.fail(1, "again")):
        with pytest.raises(InvalidTrial, match=r"Trial 1 .*\(failure 'out of memory'\)"):
            again()
    assert state(opt) == before


def test_a_trial_of_another_study_is_refused():
    opt, other = optimizer(seed=0), optimizer(seed=1)
    opt.ask()
    before = state(opt)
    with pytest.raises(InvalidTrial, match="another study"):
        opt.tell(other.ask(), 1.0)
    assert state(opt) == before


@pytest.mark.parametrize(
    "wrong",
    [
        {"cost": 0.0},
        {"cost": -1.0},
        {"cost": math.nan},
        {"cost": math.inf},
        {"cost": "1"},
        {"noise": -0.1},
        {"noise": math.nan},
        {"noise": "0"},
        {"seconds": -1.0},
        {"seconds": math.inf},
    ],
)
def test_a_cost_a_noise_or_a_time_that_cannot_be_meant_is_refused_and_nothing_changes(wrong):
    opt = optimizer()
    trial = opt.ask()
    before = state(opt)
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        opt.tell(trial, 1.0, **wrong)
    assert state(opt) == before


def test_what_a_user_does_to_a_trial_does_not_change_the_study():
    opt = optimizer()
    trial = opt.ask()
    kept = dict(trial.x), dict(trial.z), dict(trial.why)
    for mapping in (trial.x, trial.z, trial.why):
        try:
            mapping.clear()
        except (AttributeError, TypeError):
            continue  # a read-only mapping will do as well
    stored = opt.history[0]
    assert (dict(stored.x), dict(stored.z), dict(stored.why)) == kept


def test_what_a_user_does_to_the_history_does_not_change_the_study():
    opt = optimizer(strategy=Boca())
    for _ in range(6):
        opt.tell(trial := opt.ask(), f(trial))
    opt.ask()
    opt.add({"a": 0.5}, None, 3.0)
    kept = decisions(opt)
    looks = [*opt.history, opt.history[:3][0], opt.history.complete[0], opt.best, *opt.running]
    for trial in looks:
        trial.x["a"] = 99.0
        trial.z.clear()
        trial.why.get("hyperparameters", {}).clear()
        trial.why["phase"] = "mine"
    assert decisions(opt) == kept
    assert opt.best.x == {"a": 0.5}
    assert [t.phase for t in opt.history].count("mine") == 0
    with pytest.raises(InvalidTrial, match="your code changed it"):
        opt.tell(looks[-1], 1.0)
    opt.tell(opt.running[0], 1.0)
    assert opt.ask().x["a"] <= 1.0


def test_looking_at_a_long_history_copies_no_reasons():
    opt = optimizer(PLAIN, targets(300))
    for k in range(200):
        opt.add({"a": k / 200}, None, 1.0)
    opt.tell(opt.ask(), 1.0)
    history = opt.history
    assert repr(history) == "History(201 complete)"
    assert history.best(PLAIN).number == 0
    assert sum(t.added for t in history) == 200
    assert not any(trial.reasons.is_loaded for trial in history)


def test_a_history_that_was_taken_stays_as_it_was():
    opt = optimizer()
    trial = opt.ask()
    history = opt.history
    opt.tell(trial, 1.0)
    opt.ask()
    assert len(history) == 1
    assert history[0].state == "running"


def test_asking_for_several_gives_a_list_that_may_be_shorter():
    opt = optimizer(budget=targets(3))
    first = opt.ask(2)
    assert [trial.number for trial in first] == [0, 1]
    assert [trial.number for trial in opt.ask(5)] == [2]
    assert opt.ask(5) == []
    assert opt.ask() is None


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", True])
def test_asking_for_no_number_of_trials_is_refused(n):
    opt = optimizer()
    with pytest.raises(InvalidInput, match=r"must be a positive integer"):
        opt.ask(n)
    assert len(opt.history) == 0


def test_noise_is_stored_and_lets_the_model_disbelieve_a_result():
    def recommended(noise):
        opt = optimizer(PLAIN, strategy=Boca())
        for a in np.linspace(0.0, 1.0, 11):
            opt.add({"a": a}, None, -((a - 0.3) ** 2), noise=1e-6)
        opt.enqueue({"a": 0.85})
        done = opt.tell(opt.ask(), 5.0, noise=noise)
        assert done.noise == noise
        return opt.recommend().x["a"]

    assert recommended(1e-6) == 0.85
    assert abs(recommended(1e4) - 0.3) < 0.15


# The queue ------------------------------------------------------------------------------------------------------------


def test_queued_points_come_first_in_their_order_and_at_the_target_unless_said():
    opt = optimizer()
    opt.enqueue({"a": 0.25})
    opt.enqueue({"a": 0.75}, {"n": 0.5})
    first, second, third = opt.ask(3)
    assert (first.x, first.z, first.cost) == ({"a": 0.25}, PROBLEM.target, 1.0)
    assert (second.x, second.z, second.cost) == ({"a": 0.75}, {"n": 0.5}, 0.5)
    assert first.why["phase"] == second.why["phase"] == "queued"
    assert third.why["phase"] == "start"
    opt.tell(first, 1.0)
    assert opt.budget.spent == 1.0
    assert opt.budget.reserved == 1.5


def test_a_queued_point_that_costs_too_much_stays_and_others_go_first():
    opt = optimizer(budget=targets(1.6))
    opt.enqueue({"a": 0.5})
    opt.enqueue({"a": 0.25})
    opt.enqueue({"a": 0.75}, {"n": 0.5})
    first, second = opt.ask(2)
    assert first.x == {"a": 0.5}
    assert second.x == {"a": 0.75}
    assert opt.ask() is None
    assert any("1 queued" in sentence for sentence in opt.warnings)
    opt.tell(first, 1.0, cost=0.1)
    third = opt.ask()
    assert (third.x, third.why["phase"]) == ({"a": 0.25}, "queued")
    assert not any("queued" in sentence for sentence in opt.warnings)


def test_a_queued_point_that_can_be_paid_again_is_no_warning_any_more():
    opt = optimizer(Problem(SPACE, Space(n=Int(1, 10)), cost=lambda z: z["n"]), targets(2))
    first, _ = opt.ask(5)
    opt.enqueue({"a": 0.5}, {"n": 3})
    assert any("1 queued point has not been run" in sentence for sentence in opt.warnings)
    opt.tell(first, 1.0, cost=1.0)
    assert opt.warnings == ()
    assert opt.ask().phase == "queued"


def test_queueing_costs_nothing_until_it_is_asked():
    opt = optimizer()
    before = state(opt)
    opt.enqueue({"a": 0.25})
    assert state(opt) == before


@pytest.mark.parametrize(("x", "z"), [({"a": 2.0}, None), ({}, None), ({"a": 0.5}, {"n": 0.0}), ({"a": 0.5}, {"m": 1})])
def test_points_outside_the_problem_are_neither_queued_nor_added(x, z):
    opt = optimizer()
    before = state(opt)
    with pytest.raises(InvalidInput):
        opt.enqueue(x, z)
    with pytest.raises(InvalidInput):
        opt.add(x, z, 1.0)
    assert state(opt) == before
    assert opt.ask().why["phase"] == "start"


def test_a_queue_does_not_follow_the_mapping_that_it_was_given():
    opt = optimizer()
    x, z = {"a": 0.25}, {"n": 0.5}
    opt.enqueue(x, z)
    x["a"], z["n"] = 0.75, 1.0
    trial = opt.ask()
    assert (trial.x, trial.z) == ({"a": 0.25}, {"n": 0.5})


# Results that the user brings -----------------------------------------------------------------------------------------


def test_an_added_result_is_complete_free_and_may_be_the_best():
    opt = optimizer()
    added = opt.add({"a": 0.25}, {"n": 1.0}, 7)
    assert opt.history[0] == added
    assert (added.number, added.state, added.value, added.cost) == (0, "complete", 7.0, 1.0)
    assert added.why["phase"] == "added"
    assert opt.budget.spent == opt.spent == 0.0
    assert opt.best == added
    assert opt.add({"a": 0.5}, None, 1.0).z == PROBLEM.target
    assert opt.add({"a": 0.5}, {"n": 0.5}, 99.0, 0.75).cost == 0.75
    assert opt.best == added
    assert opt.budget.spent == 0.0
    assert opt.ask().number == 3


@pytest.mark.parametrize("value", [math.nan, None, "1"])
def test_an_added_value_must_be_a_finite_number(value):
    opt = optimizer()
    with pytest.raises(InvalidInput, match="value must be a finite number"):
        opt.add({"a": 0.5}, None, value)
    with pytest.raises(InvalidInput, match="cost"):
        opt.add({"a": 0.5}, None, 1.0, -1.0)
    assert len(opt.history) == 0


@pytest.mark.parametrize(
    "strategy", [Boca(), Boca.paper(maximizer="sobol"), boca.GPUCB(maximizer="sobol"), boca.GPEI(maximizer="sobol")]
)
def test_results_that_are_brought_replace_the_start(strategy):
    opt = optimizer(strategy=strategy)
    for a in (0.1, 0.5, 0.9):
        opt.add({"a": a}, {"n": 0.5}, -a)
    assert opt.ask().why["phase"] == "model"


def test_fewer_results_replace_a_part_of_the_start():
    def started(added):
        opt = optimizer(budget=targets(30), strategy=Boca(), seed=3)
        for i in range(added):
            opt.add({"a": i / 10}, {"n": 0.5}, 0.0)
        while (trial := opt.ask()).why["phase"] == "start":
            opt.tell(trial, f(trial))
        return sum(t.cost for t in opt.history if t.why["phase"] == "start")

    whole, part, none = started(0), started(3), started(6)
    assert 2.0 < whole <= 3.0
    assert 0.5 < part <= 1.5
    assert none == 0.0


# Failures -------------------------------------------------------------------------------------------------------------


def test_a_failed_trial_is_charged_and_keeps_its_reason():
    opt = optimizer()
    failed = opt.fail(opt.ask(), "out of memory")
    assert (failed.state, failed.value, failed.reason, failed.cost) == ("failed", None, "out of memory", 1.0)
    assert opt.history[0] == failed
    assert opt.budget.spent == 1.0
    assert opt.running == ()
    assert opt.best is None
    assert any("out of memory" in sentence for sentence in opt.warnings)


def test_a_failed_target_query_is_no_best():
    opt = optimizer()
    good, bad = opt.ask(2)
    opt.tell(good, -5.0)
    opt.fail(bad, "lost")
    assert opt.best.number == 0


@pytest.mark.parametrize(
    "strategy",
    [Boca(), Boca.paper(maximizer="sobol"), boca.GPUCB(), RandomSearch()],
    ids=["default", "paper", "ucb", "random"],
)
def test_the_third_failure_at_a_point_bars_it(strategy):
    problem = Problem(Space(kind=Choice(["good", "bad"])))
    opt = optimizer(problem, targets(60), strategy=strategy)
    opt.add({"kind": "good"}, None, 0.0)
    opt.add({"kind": "bad"}, None, 10.0)  # so that it is wanted, while it may be
    for _ in range(3):
        opt.enqueue({"kind": "bad"})
        opt.fail(opt.ask(), "it broke")
    for _ in range(12):
        trial = opt.ask()
        assert trial.x == {"kind": "good"}
        opt.tell(trial, 0.0)


@pytest.mark.parametrize(
    "strategy",
    [
        Boca(),
        boca.GPUCB(maximizer="sobol"),
        boca.MFGPUCB(maximizer="sobol"),
        boca.MFSKO(maximizer="sobol"),
        RandomSearch(),
    ],
    ids=["default", "ucb", "mf-ucb", "mf-sko", "random"],
)
def test_a_barred_point_is_not_asked_where_all_others_are_out_either(strategy):
    problem = Problem(Space(kind=Choice(["good", "fine", "bad"])))
    opt = optimizer(problem, targets(60), strategy=strategy)
    for kind, value in (("good", 0.0), ("fine", 0.1), ("bad", 10.0), ("bad", 10.0), ("bad", 10.0), ("bad", 10.0)):
        opt.add({"kind": kind}, None, value)
    for _ in range(3):
        opt.enqueue({"kind": "bad"})
        opt.fail(opt.ask(), "it broke")
    assert {trial.x["kind"] for trial in opt.ask(12)} == {"good", "fine"}


def test_two_failures_do_not_bar_a_point():
    problem = Problem(Space(kind=Choice(["good", "bad"])))
    opt = optimizer(problem, targets(60))
    for _ in range(2):
        opt.enqueue({"kind": "bad"})
        opt.fail(opt.ask(), "it broke")
    asked = []
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, 0.0)
        asked.append(trial.x["kind"])
    assert set(asked) == {"good", "bad"}


def test_a_failure_entered_the_model_as_the_worst_value():
    def mean_at(failing):
        opt = optimizer(PLAIN, strategy=EARLIER)
        for a in np.linspace(0.0, 1.0, 9):
            opt.add({"a": a}, None, 10.0 - (a - 0.5) ** 2)
        opt.enqueue({"a": 0.52})
        trial = opt.ask()
        if failing:
            opt.fail(trial, "lost")
        else:
            opt.tell(trial, 9.75)  # the lowest of the above
        return opt.ask()

    failed, told = mean_at(True), mean_at(False)
    assert failed.x == told.x
    assert failed.why["mean"] == told.why["mean"]


# Several out at once --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [Boca(), boca.GPUCB(maximizer="sobol"), RandomSearch()])
def test_every_point_of_a_finite_space_is_tried_before_one_is_out_twice(strategy):
    problem = Problem(Space(a=Int(1, 200)))
    trials = optimizer(problem, targets(1000), strategy=strategy).ask(200)
    assert len({trial.x["a"] for trial in trials}) == 200


def test_another_fidelity_is_another_point():
    problem = Problem(
        Space(kind=Choice(["a", "b", "c"])),
        Space(source=Choice(["coarse", "fine"])),
        cost=lambda z: 1.0 if z["source"] == "fine" else 0.1,
        target={"source": "fine"},
    )
    trials = optimizer(problem, targets(100), strategy=Boca()).ask(6)
    assert len({(trial.x["kind"], trial.z["source"]) for trial in trials}) == 6


def test_pending_trials_are_named_in_the_reasons():
    opt = optimizer(budget=targets(20), strategy=Boca())
    for a in (0.1, 0.4, 0.7, 0.9):
        opt.add({"a": a}, {"n": 1.0}, -a)
    trials = opt.ask(3)
    assert [trial.why["pending"] for trial in trials] == [[], [4], [4, 5]]
    opt.tell(trials[0], 0.0)
    assert opt.ask().why["pending"] == [5, 6]


# Seeds and replays ----------------------------------------------------------------------------------------------------


def test_the_same_seed_and_events_give_the_same_asks_and_looking_changes_nothing():
    def study(look, seed=5):
        opt = optimizer(budget=targets(6), strategy=Boca(), seed=seed)
        while (trial := opt.ask()) is not None:
            if look:
                assert opt.recommend() is None or opt.recommend().std > 0
                assert opt.best is None or opt.best.value is not None
                assert opt.budget.total == 6.0
                assert len(opt.warnings) <= 1
            opt.tell(trial, f(trial))
        return decisions(opt)

    assert study(False) == study(True)
    assert study(False) != study(False, seed=6)


def test_refused_results_do_not_change_what_is_asked_next():
    def study(clumsy):
        opt = optimizer(budget=targets(6), strategy=Boca(), seed=5)
        for _ in range(6):
            trial = opt.ask()
            if clumsy:
                with pytest.raises(InvalidInput):
                    opt.tell(trial, math.nan)
                with pytest.raises(InvalidTrial):
                    opt.tell(99, 1.0)
                with pytest.raises(InvalidInput):
                    opt.add({"a": 7.0}, None, 1.0)
            opt.tell(trial, f(trial))
        return decisions(opt)

    assert study(True) == study(False)


def test_the_random_stream_of_a_trial_depends_on_the_seed_and_its_number_alone():
    opt = optimizer(seed=9)
    for number in range(3):
        trial = opt.ask()
        rng = np.random.default_rng([9, number])
        expected = RandomSearch().suggest(PROBLEM, boca.History(), opt.budget, rng)
        assert trial.x == expected.x


def test_without_a_seed_one_is_drawn_and_can_be_used_again():
    one, other = (Optimizer(PROBLEM, budget=targets(10)) for _ in range(2))
    assert isinstance(one.seed, int)
    assert one.seed != other.seed
    again = Optimizer(PROBLEM, budget=targets(10), seed=one.seed)
    assert [trial.x for trial in one.ask(3)] == [trial.x for trial in again.ask(3)]


def test_the_history_of_a_study_survives_json():
    opt = run(optimizer(budget=targets(4), strategy=Boca()))
    for trial in opt.history:
        assert json.loads(json.dumps(trial.why, allow_nan=False)) == trial.why


def test_events_are_numbered_in_the_order_in_which_they_happened():
    opt = optimizer()
    opt.add({"a": 0.5}, None, 1.0)
    first, second = opt.ask(2)
    opt.tell(second, 1.0)
    opt.fail(first, "lost")
    added, failed, told = opt.history
    events = [added.told, failed.asked, told.asked, told.told, failed.told]
    assert events == sorted(set(events))


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [-1, 1.5, "0", True, [1]])
def test_a_seed_must_be_a_natural_number(seed):
    with pytest.raises(InvalidInput, match="must be a non-negative integer or None"):
        Optimizer(PROBLEM, budget=targets(1), seed=seed)


@pytest.mark.parametrize("strategy", ["boca", Boca, 3, object()])
def test_a_strategy_must_suggest(strategy):
    with pytest.raises(InvalidInput, match="must have a method suggest"):
        Optimizer(PROBLEM, budget=targets(1), strategy=strategy)


@pytest.mark.parametrize("budget", [0, -3.0, math.nan, math.inf, "10", True, [1]])
def test_a_budget_must_be_a_positive_amount(budget):
    with pytest.raises(InvalidInput, match="The budget must be"):
        Optimizer(PROBLEM, budget=budget)


@pytest.mark.parametrize("problem", [None, SPACE, lambda x: 1.0])
def test_a_problem_must_be_a_problem(problem):
    with pytest.raises(InvalidInput, match=r"must be a boca\.Problem"):
        Optimizer(problem, budget=targets(1))


def test_a_suggestion_outside_the_problem_is_refused_and_nothing_is_handed_out():
    class Outside:
        def suggest(self, problem, history, budget, rng):
            sound = RandomSearch().suggest(problem, history, budget, rng)
            return replace(sound, x={"a": 2.0})

    opt = optimizer(strategy=Outside())
    with pytest.raises(InvalidInput, match=r"the strategy's x\['a'\] must lie in"):
        opt.ask()
    assert len(opt.history) == 0
    assert opt.budget.reserved == 0.0


@pytest.mark.parametrize("budget", [boca.targets(3), boca.targets(10), boca.seconds(30), 25.0], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_a_learned_cost_does_not_end_a_study_with_its_money_unspent(budget, seed):
    """After one cheap result the target's cost is a guess; a study that waits to be sure would never learn it."""
    problem = boca.Problem(
        boca.Space(a=boca.Float(0.0, 1.0)), boca.Space(n=boca.Int(50, 5000, log=True)), direction="minimize"
    )
    opt, rng = boca.Optimizer(problem, budget=budget, seed=seed), np.random.default_rng(seed)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, (trial.x["a"] - 0.3) ** 2, seconds=trial.z["n"] / 1000 * math.exp(0.2 * rng.standard_normal()))
    assert opt.best is not None
    assert opt.spent > 5.0 if budget != boca.targets(3) else opt.spent > 3.0


@pytest.mark.parametrize("seed", range(6))
def test_a_slow_first_evaluation_does_not_keep_a_small_study_from_the_target(seed):
    """Whatever is loaded with the first evaluation makes the target look dear, and cheap queries correct it slowly."""
    problem = Problem(Space(a=Float(0.0, 1.0)), Space(n=Int(10, 1000, log=True)))
    opt, rng = optimizer(problem, targets(2), strategy=Boca(), seed=seed), np.random.default_rng(seed)
    while (trial := opt.ask()) is not None:
        took = trial.z["n"] / 1000 * math.exp(0.1 * rng.standard_normal())
        opt.tell(trial, f(trial), seconds=took + (0.0 if trial.number else 0.3))
    assert opt.best is not None
    assert opt.budget.spent <= opt.budget.total


@pytest.mark.parametrize(
    "fidelity",
    [Space(s=Choice(["cheap", "dear"])), Space(s=Float(0.0, 1.0)), Space(s=Int(0, 10)), Space(s=Float(-3, -1))],
)
def test_with_an_unknown_cost_every_kind_of_fidelity_is_tried(fidelity):
    """Nothing can be learned of a cost that is assumed to be the same everywhere and so never met."""
    problem = Problem(Space(a=Float(0.0, 1.0)), fidelity, target={"s": "dear"} if "dear" in str(fidelity) else None)
    opt = Optimizer(problem, budget=targets(15), seed=0)
    while (trial := opt.ask()) is not None:
        opt.tell(trial, -((trial.x["a"] - 0.3) ** 2), seconds=1.0 if problem.is_target(trial.z) else 0.05)
    assert sum(not problem.is_target(t.z) for t in opt.history) >= 3
    assert opt.best is not None


def test_a_told_cost_is_the_time_where_no_cost_is_declared():
    opt = Optimizer(Problem(Space(a=Float(0.0, 1.0)), Space(n=Int(1, 10))), budget=seconds(100), seed=0)
    for _ in range(3):
        trial = opt.ask()
        opt.tell(trial, trial.x["a"], cost=float(trial.z["n"]))
    assert [t.seconds for t in opt.history] == [float(t.z["n"]) for t in opt.history]
    assert opt.spent >= sum(t.z["n"] for t in opt.history)


def test_a_point_that_is_queued_twice_is_not_out_twice():
    opt = Optimizer(Problem(Space(a=Float(0.0, 1.0))), budget=targets(10), seed=0)
    opt.enqueue({"a": 0.5})
    opt.enqueue({"a": 0.5})
    first, second = opt.ask(2)
    assert first.x == {"a": 0.5} != second.x
    opt.tell(first, 1.0)
    assert opt.ask().x == {"a": 0.5}


def test_before_the_first_result_a_budget_in_seconds_limits_what_is_out():
    for budget in (seconds(5), 5.0):
        opt = Optimizer(Problem(Space(a=Float(0.0, 1.0)), Space(n=Int(1, 100))), budget=budget, seed=0)
        assert len(opt.ask(100)) == 32
        assert opt.ask() is None


def test_what_a_user_does_to_what_tell_returns_does_not_change_the_study():
    opt = optimizer()
    done = opt.tell(opt.ask(), 1.0)
    done.x.clear()
    done.why["phase"] = "mine"
    assert opt.history[0].x
    assert opt.history[0].phase == "start"


def test_the_scale_of_a_kernel_on_fidelities_does_not_matter():
    problem = Problem(Space(a=Float(0.0, 1.0)), Space(n=Float(0.0, 1.0)), cost=lambda z: 0.1 + z["n"])

    def asked(scale):
        kernel = boca.Surrogate(fidelity_kernel=lambda a, b: scale * np.exp(-(((a["n"] - b["n"]) / 0.5) ** 2)))
        opt = Optimizer(problem, budget=targets(6), strategy=Boca(surrogate=kernel), seed=0)
        while (trial := opt.ask()) is not None:
            opt.tell(trial, -((trial.x["a"] - 0.3) ** 2) + 0.1 * trial.z["n"])
        return [(t.x, t.z) for t in opt.history]

    assert asked(1.0) == asked(1024.0) == asked(2.0**-10)


def test_an_optimizer_is_not_copied_and_says_how_to_share_a_study(tmp_path):
    for storage in (None, f"sqlite:///{tmp_path}/s.db"):
        opt = Optimizer(Problem(Space(a=Float(0, 1))), budget=targets(3), storage=storage)
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(InvalidInput, match="URL of the storage"):
                attempt(opt)
