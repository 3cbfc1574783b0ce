"""A function in, a result out."""

from __future__ import annotations

import math
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import boca
from boca import Boca, Choice, Float, Int, RandomSearch, Space, maximize, minimize, seconds, targets
from boca.domain.errors import InvalidInput, ObjectiveFailed
from boca.study.storage import Lease, Owner

SPACE = Space(a=Float(0, 1))
FIDELITY = Space(n=Float(0.1, 1))


def cost(z):
    return z["n"]


def bowl(x, z):
    return -((x["a"] - 0.3) ** 2) - 0.1 * (1 - z["n"])


def go(objective=bowl, fidelity=FIDELITY, run=maximize, **more):
    more = {"budget": targets(4), "strategy": RandomSearch(), "seed": 0} | more
    if fidelity is not None:
        more = {"cost": cost} | more
    return run(objective, SPACE, fidelity, **more)


# What comes out -------------------------------------------------------------------------------------------------------


def test_the_result_is_the_best_at_the_target_with_all_that_led_to_it():
    result = go(strategy=Boca())
    best = max((t for t in result.history if t.z == {"n": 1.0}), key=lambda t: t.value)
    assert (result.x, result.value) == (best.x, best.value)
    assert result.value == bowl(result.x, {"n": 1.0})
    assert isinstance(result.history, boca.History)
    assert [t.number for t in result.history] == list(range(len(result.history)))
    assert {t.state for t in result.history} == {"complete"}
    assert result.spent == pytest.approx(math.fsum(t.z["n"] for t in result.history))
    assert result.spent <= 4.0 * (1 + 1e-9)
    assert result.recommendation.x in [t.x for t in result.history]
    assert result.warnings == ()


def test_without_fidelities_the_objective_is_a_function_of_x():
    result = go(lambda x: -((x["a"] - 0.3) ** 2), None, budget=targets(7))
    assert len(result.history) == 7
    assert result.spent == 7.0
    assert result.value == max(t.value for t in result.history)
    assert {tuple(t.z) for t in result.history} == {()}


def test_the_objective_gets_plain_values_by_name():
    seen = []

    def objective(x, z):
        seen.append((x, z))
        return 0.0

    space = Space(a=Float(0, 1), k=Int(1, 9, log=True), kind=Choice(["u", "v"]))
    maximize(objective, space, Space(n=Int(1, 3)), cost=lambda z: z["n"], budget=targets(5), seed=0)
    assert len(seen) >= 5
    for x, z in seen:
        assert [type(v) for v in x.values()] == [float, int, str]
        assert list(x) == ["a", "k", "kind"]
        assert type(z["n"]) is int


def test_what_the_objective_does_to_its_arguments_stays_there():
    def objective(x, z):
        value = bowl(x, z)
        x["a"] = 99.0
        x["other"] = 1
        z.clear()
        return value

    assert [(t.x, t.z, t.value) for t in go(objective, strategy=Boca()).history] == [
        (t.x, t.z, t.value) for t in go(strategy=Boca()).history
    ]


def test_minimising_finds_the_minimum_and_not_the_maximum():
    result = go(lambda x, z: (x["a"] - 0.7) ** 2 + 3.0, run=minimize, strategy=Boca(), budget=targets(8))
    assert result.value == min(t.value for t in result.history if t.z == {"n": 1.0})
    assert result.value - 3.0 < 1e-3
    assert abs(result.x["a"] - 0.7) < 0.04
    assert result.recommendation.mean == pytest.approx(3.0, abs=0.01)
    assert result.recommendation.x["a"] == pytest.approx(0.7, abs=0.05)


def test_minimising_is_maximising_the_negative():
    up = go(strategy=Boca())
    down = go(lambda x, z: -bowl(x, z), run=minimize, strategy=Boca())
    assert [(t.x, t.z) for t in up.history] == [(t.x, t.z) for t in down.history]
    assert up.value == -down.value
    assert up.recommendation.x == down.recommendation.x
    assert up.recommendation.mean == pytest.approx(-down.recommendation.mean, rel=1e-12)


def test_the_target_need_not_be_the_upper_end():
    result = go(target={"n": 0.5}, strategy=Boca(), budget=targets(6))
    assert result.value == max(t.value for t in result.history if t.z == {"n": 0.5})
    assert result.spent <= 3.0 * (1 + 1e-9)


def test_a_seed_decides_and_without_one_runs_differ():
    assert go(strategy=Boca()).history[0].x == go(strategy=Boca()).history[0].x
    assert go(seed=None).history[0].x != go(seed=None).history[0].x


def test_the_default_strategy_is_boca():
    default = maximize(bowl, SPACE, FIDELITY, cost=cost, budget=targets(2), seed=0)
    said = go(strategy=Boca(), budget=targets(2))
    assert [(t.x, t.z) for t in default.history] == [(t.x, t.z) for t in said.history]


def test_a_budget_below_one_target_gives_a_recommendation_and_a_warning_but_no_value():
    result = go(strategy=Boca(), budget=targets(0.8))
    assert result.x is None
    assert result.value is None
    assert any("does not cover one query at the target" in sentence for sentence in result.warnings)
    assert len(result.history) > 0
    assert result.recommendation.verified is False


def test_an_unknown_cost_is_measured():
    result = go(cost=None, strategy=Boca(), budget=targets(5))
    assert all(t.cost == max(t.seconds, 1e-9) for t in result.history)
    assert result.spent == pytest.approx(math.fsum(t.cost for t in result.history))
    assert len(result.history) > 0


def test_a_budget_in_seconds_ends_and_is_told_in_seconds():
    result = go(budget=seconds(0.2), cost=None)
    assert len(result.history) > 0
    assert result.spent == pytest.approx(math.fsum(t.seconds + t.overhead for t in result.history))
    plain = go(lambda x: x["a"], None, budget=seconds(0.2), strategy=Boca())
    assert plain.value is not None
    assert plain.spent == pytest.approx(math.fsum(t.seconds + t.overhead for t in plain.history))


# When the objective fails ---------------------------------------------------------------------------------------------


def test_a_trial_whose_objective_raises_fails_and_the_run_continues():
    def objective(x, z):
        if x["a"] > 0.5:
            raise MemoryError("too big")
        return bowl(x, z)

    result = go(objective, budget=targets(20))
    failed = [t for t in result.history if t.state == "failed"]
    assert len(result.history) == 20
    assert 0 < len(failed) < 20
    assert all(t.reason == "MemoryError: too big" and t.x["a"] > 0.5 for t in failed)
    assert result.spent == 20.0
    assert result.x["a"] <= 0.5
    assert any(
        f"{len(failed)} of 20 trials failed" in sentence and "too big" in sentence for sentence in result.warnings
    )


@pytest.mark.parametrize("wrong", [math.nan, math.inf, None, "0.5", True, [1.0, 2.0], {"value": 1.0}, 1j, np.ma.masked])
def test_a_trial_whose_objective_returns_no_finite_number_fails_and_the_run_continues(wrong):
    result = go(lambda x, z: wrong if x["a"] > 0.5 else 1.0, budget=targets(10))
    failed = [t for t in result.history if t.state == "failed"]
    assert len(result.history) == 10
    assert 0 < len(failed) < 10
    assert all(repr(wrong) in t.reason and t.x["a"] > 0.5 for t in failed)
    assert result.value == 1.0


def test_boca_continues_after_failures_and_finds_the_optimum_beside_them():
    def objective(x, z):
        if x["a"] > 0.6:
            raise ValueError("diverged")
        return bowl(x, z)

    result = go(objective, strategy=Boca(), budget=targets(8), seed=1)
    assert abs(result.x["a"] - 0.3) < 0.05


def test_an_objective_that_always_raises_is_given_up_after_five_trials():
    calls = []

    def objective(x, z):
        calls.append(x)
        raise ValueError("learning_rate")

    with pytest.raises(ObjectiveFailed, match=r"All 5 trials failed.*ValueError: learning_rate") as caught:
        go(objective, budget=targets(50))
    assert len(calls) == 5
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_error_that_ends_a_run_travels_to_another_process_with_its_result():
    def objective(x, z):
        raise KeyError("learning_rate")

    with pytest.raises(ObjectiveFailed) as caught:
        go(objective)
    caught.value.add_note("on machine 3")
    arrived = pickle.loads(pickle.dumps(caught.value))
    assert type(arrived) is ObjectiveFailed
    assert str(arrived) == str(caught.value)
    assert list(arrived.result.history) == list(caught.value.result.history)
    assert arrived.__notes__ == ["on machine 3"]
    stopped = pickle.loads(pickle.dumps(boca.errors.RunStopped("no disk", None)))
    assert (type(stopped), str(stopped), stopped.result) == (boca.errors.RunStopped, "no disk", None)


def test_an_objective_that_never_returns_a_number_is_given_up_after_five_trials():
    calls = []

    def objective(x, z):
        calls.append(x)

    with pytest.raises(ObjectiveFailed, match=r"All 5 trials failed.*returned None"):
        go(objective, budget=targets(50))
    assert len(calls) == 5


def test_an_objective_that_always_raises_is_given_up_after_five_trials_with_several_workers():
    def objective(x):
        import random
        import time

        time.sleep(random.uniform(0.0, 0.1))
        raise RuntimeError("always")

    with pytest.raises(ObjectiveFailed, match=r"All [5-8] trials failed") as caught:
        go(objective, None, budget=targets(60), executor=ThreadPoolExecutor(4))
    found = caught.value.result
    assert 5 <= found.spent <= 8
    assert len(found.history) <= 5 + 4


def test_five_failures_after_a_success_are_no_reason_to_give_up():
    calls = []

    def objective(x, z):
        calls.append(x)
        if len(calls) > 1:
            raise RuntimeError("later")
        return 1.0

    result = go(objective, budget=targets(8))
    assert [t.state for t in result.history] == ["complete"] + ["failed"] * 7
    assert result.value == 1.0


def test_an_interrupt_before_the_first_result_ends_the_run():
    def objective(x, z):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(objective)


def test_an_interrupt_after_it_returns_what_was_paid_for():
    calls = []

    def objective(x, z):
        calls.append(x)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return float(len(calls))

    result = go(objective, budget=targets(50))
    assert [t.state for t in result.history] == ["complete"] * 3 + ["running"]
    assert any("interrupted" in sentence for sentence in result.warnings)


def test_an_error_of_something_else_keeps_what_was_paid_for():
    with pytest.raises(boca.errors.RunStopped, match="IndexError") as caught:
        go(stop=lambda history: history[3].value > 0, budget=targets(50))
    assert len(caught.value.result.history) == 1
    assert isinstance(caught.value.__cause__, IndexError)


@pytest.mark.parametrize("late", [ZeroDivisionError("late"), np.linalg.LinAlgError("not positive definite")])
def test_a_recommendation_that_fails_does_not_cost_the_result(monkeypatch, late):
    def fails(*_):
        raise late

    monkeypatch.setattr("boca.study.optimizer.recommend", fails)
    result = go()
    assert (len(result.history), result.recommendation) == (4, None)
    assert f"There is no recommendation: {late!r}" in result.warnings
    with pytest.raises(boca.errors.RunStopped, match="IndexError") as caught:
        go(stop=lambda history: history[3].value > 0)
    assert len(caught.value.result.history) == 1


def test_a_run_whose_few_trials_all_fail_says_so():
    with pytest.raises(ObjectiveFailed, match="All 2 trials failed"):
        go(lambda x, z: "fast", budget=targets(2), strategy=boca.RandomSearch())


def test_a_study_that_failed_says_that_its_budget_is_spent_and_how_to_go_on(tmp_path):
    kept = {"fidelity": None, "storage": f"sqlite:///{tmp_path}/study.db"}
    with pytest.raises(ObjectiveFailed, match="All 4 trials failed") as caught:
        go(lambda x: x["a"] / 0, **kept)
    assert "No trial was run" not in str(caught.value)
    for _ in range(2):
        with pytest.raises(ObjectiveFailed, match=r"No trial was run this time: the budget.*allow_change=True"):
            go(lambda x: x["a"], **kept)
    result = go(lambda x: x["a"], **kept, budget=targets(5), allow_change=True)
    assert [t.state for t in result.history] == ["failed"] * 4 + ["complete"]


# When something of the caller's fails --------------------------------------------------------------------------------


@pytest.mark.parametrize("callbacks", [None, 5, [5], boca.callbacks.Log, [boca.callbacks.Log], "log", [None]])
def test_what_is_no_callback_is_refused_before_there_is_a_study(tmp_path, callbacks):
    with pytest.raises(InvalidInput, match="callbacks must be"):
        go(storage=f"sqlite:///{tmp_path}/study.db", callbacks=callbacks)
    assert list(tmp_path.iterdir()) == []


def test_callbacks_are_one_or_several():
    heard = []

    def hear(_, trial):
        heard.append(trial.number)

    for callbacks in (hear, [hear, hear], (hear,), iter([hear]), ()):
        go(callbacks=callbacks, stop=lambda history: True)
    assert heard == [0] * 5


class Heard:
    """A callback that notes how it ended."""

    def __init__(self, wrong=()):
        self.wrong = wrong
        self.said = []

    def __call__(self, optimizer, trial):
        self._say("call", trial.number)

    def fail(self, error):
        self._say("fail", type(error))

    def close(self):
        self._say("close", None)

    def _say(self, what, detail):
        self.said.append((what, detail))
        if what in self.wrong:
            raise ConnectionError("the server is down")


def test_a_callback_that_cannot_be_closed_costs_neither_the_result_nor_the_others(tmp_path, monkeypatch, caplog):
    closed = []
    monkeypatch.setattr(
        "boca.study.storage.sql_study.SqlStudy.close", lambda self: closed.append(self._database.close())
    )
    first, second = Heard(wrong=("close",)), Heard()
    result = go(callbacks=[first, second], storage=f"sqlite:///{tmp_path}/study.db")
    assert len(result.history) == 4
    assert result.study is not None
    assert [sentence for sentence in result.warnings if "the server is down" in sentence]
    assert "the server is down" in caplog.text
    assert first.said == second.said == [*(("call", k) for k in range(4)), ("close", None)]
    assert len(closed) == 1


def test_callbacks_hear_of_the_error_that_ended_the_run_before_they_are_closed():
    first, second = Heard(wrong=("fail", "close")), Heard()
    with pytest.raises(ObjectiveFailed) as caught:
        go(lambda x, z: None, budget=targets(9), callbacks=[first, lambda *_: None, second])
    assert first.said == second.said == [*(("call", k) for k in range(5)), ("fail", ObjectiveFailed), ("close", None)]
    assert sum("the server is down" in note for note in caught.value.__notes__) == 2


def test_an_error_of_a_callback_is_heard_by_the_others_too():
    first, second = Heard(wrong=("call",)), Heard()
    with pytest.raises(boca.errors.RunStopped, match="ConnectionError"):
        go(callbacks=[first, second])
    assert second.said == [("fail", boca.errors.RunStopped), ("close", None)]


def test_what_stop_and_callbacks_do_to_trials_does_not_change_the_study():
    def spoil(trial):
        trial.x["a"] = 99.0
        trial.z.clear()
        trial.why.clear()

    def stop(history):
        for trial in history:
            spoil(trial)
        return False

    def callback(optimizer, trial):
        for seen in (trial, *optimizer.history, *optimizer.running, *([optimizer.best] if optimizer.best else [])):
            spoil(seen)

    result, undisturbed = go(strategy=Boca(), stop=stop, callbacks=callback), go(strategy=Boca())
    assert [(t.x, t.z, t.value, t.phase) for t in result.history] == [
        (t.x, t.z, t.value, t.phase) for t in undisturbed.history
    ]
    stop(result.history)
    assert [t.x for t in result.study.history] == [t.x for t in undisturbed.history]


def test_a_result_is_whole_when_its_database_is_gone(tmp_path):
    folder = tmp_path / "here"
    folder.mkdir()
    kept = {"storage": f"sqlite:///{folder}/study.db", "budget": targets(12)}
    go(**kept)
    again = go(**kept)
    shutil.rmtree(folder)
    assert [t.why["phase"] for t in again.history] == ["start"] * 12
    assert again.history[0].why == pickle.loads(pickle.dumps(again)).history[0].why


# What an evaluation may take ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("executor", "timeout"),
    [(None, 5), (None, lambda cost: cost), *((1, t) for t in (-1.0, 0, math.inf, math.nan, "5"))],
)
def test_a_wrong_timeout_is_refused_before_there_is_a_study(tmp_path, executor, timeout):
    with pytest.raises(InvalidInput, match="timeout"):
        go(storage=f"sqlite:///{tmp_path}/study.db", executor=executor, timeout=timeout)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("executor", ["four", 0, True, [2], ThreadPoolExecutor])
def test_a_wrong_executor_is_refused_before_there_is_a_study(tmp_path, executor):
    with pytest.raises(InvalidInput, match=r"executor must be|workers must be"):
        go(storage=f"sqlite:///{tmp_path}/study.db", executor=executor)
    assert list(tmp_path.iterdir()) == []


def test_whole_numbers_of_numpy_are_whole_numbers():
    result = go(lambda x: x["a"], None, executor=np.int64(1), max_retries=np.int64(0), seed=np.int64(3))
    assert len(result.history) == 4
    for wrong in (-1, True, 1.5, "2", None):
        with pytest.raises(InvalidInput, match="max_retries must be a whole number"):
            go(max_retries=wrong)


def test_a_study_that_is_refused_leaves_no_worker(monkeypatch):
    closed = []
    monkeypatch.setattr("boca.execution.executors.WorkerEngine.close", lambda self, *, now=False: closed.append(now))
    with pytest.raises(InvalidInput, match="seed is -1"):
        go(executor=1, seed=-1)
    assert closed == [True]


@pytest.mark.parametrize("timeout", [lambda cost: -cost, lambda cost: cost / 0, lambda: 5.0, lambda cost: "5"])
def test_a_function_that_gives_no_timeout_costs_no_trial_and_no_attempt(tmp_path, timeout):
    kept = {"storage": f"sqlite:///{tmp_path}/study.db", "fidelity": None, "objective": lambda x: x["a"]}
    with ThreadPoolExecutor(1) as pool:
        for _ in range(4):
            with pytest.raises(boca.errors.RunStopped, match="after 0 trials"):
                go(**kept, executor=pool, timeout=timeout)
        result = go(**kept, executor=pool, timeout=lambda cost: 60 * cost)
    assert [(t.state, t.attempt) for t in result.history] == [("complete", 0)] * 4


def test_a_trial_that_was_left_behind_is_not_taken_over_without_a_timeout(tmp_path):
    problem, url = boca.Problem(SPACE), f"sqlite:///{tmp_path}/study.db"
    kept = {"budget": targets(4), "strategy": RandomSearch(), "seed": 0, "storage": url}
    left = boca.Optimizer(problem, **kept)
    dead = Lease(owner=replace(Owner.me(), started="in another life"))
    left.ask(lease=dead)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(4):
            with pytest.raises(boca.errors.RunStopped, match="ZeroDivisionError"):
                maximize(lambda x: x["a"], SPACE, **kept, executor=pool, timeout=lambda cost: cost / 0)
        assert [(t.state, t.attempt) for t in left.history] == [("running", 0)]
        result = maximize(lambda x: x["a"], SPACE, **kept, executor=pool)
    assert [(t.state, t.attempt) for t in result.history] == [("complete", 1), *[("complete", 0)] * 3]


# When to stop ---------------------------------------------------------------------------------------------------------


def test_stop_sees_the_history_after_every_trial_and_ends_the_run():
    seen = []

    def stop(history):
        seen.append((len(history), history[-1].state))
        return len(history) == 3

    result = go(stop=stop, budget=targets(50))
    assert len(result.history) == 3
    assert seen == [(1, "complete"), (2, "complete"), (3, "complete")]


def test_a_study_that_has_enough_is_not_run_again(tmp_path, caplog):
    kept = {"storage": f"sqlite:///{tmp_path}/study.db", "budget": targets(50)}
    heard = []
    for _ in range(3):
        result = go(**kept, stop=lambda history: len(history) >= 3, callbacks=lambda _, trial: heard.append(trial))
        assert len(result.history) == 3
    assert [trial.number for trial in heard] == [0, 1, 2]
    assert len(go(**kept, stop=lambda history: len(history) >= 4).history) == 4
    with caplog.at_level("INFO", logger="boca"):
        go(**kept, stop=lambda history: len(history) >= 4)
    assert "No trial is run: stop returned true" in caplog.text


def test_stop_is_not_asked_before_there_is_a_result(tmp_path):
    kept = {"storage": f"sqlite:///{tmp_path}/study.db"}

    def interrupted(x, z):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(interrupted, **kept)
    result = go(**kept, stop=lambda history: history[-1].value is not None)
    assert [t.state for t in result.history] == ["complete"]


def test_an_error_of_stop_before_the_first_trial_keeps_what_is_there(tmp_path):
    kept = {"storage": f"sqlite:///{tmp_path}/study.db"}
    go(**kept)
    with pytest.raises(boca.errors.RunStopped, match="IndexError") as caught:
        go(**kept, stop=lambda history: history[99])
    assert len(caught.value.result.history) == 4


def test_a_run_may_end_by_stop_alone():
    result = go(budget=None, stop=lambda history: len(history) == 4)
    assert len(result.history) == 4
    assert result.spent == 4.0


def test_a_run_without_an_end_is_refused():
    with pytest.raises(InvalidInput, match=r"budget=boca\.targets\(30\), or stop="):
        go(budget=None)


@pytest.mark.parametrize("objective", [None, "f", 3.0])
def test_an_objective_must_be_a_function(objective):
    with pytest.raises(InvalidInput, match="objective must be a function"):
        go(objective)


# How well -------------------------------------------------------------------------------------------------------------


def hills(x, z):
    """Two hills at the target; a cheaper fidelity shifts them a little and adds a slope."""
    u, v, gap = x["u"], x["v"], 1.0 - z["n"]
    high = math.exp(-((u - 0.7 + 0.1 * gap) ** 2 + (v - 0.25) ** 2) / 0.05)
    low = 0.7 * math.exp(-((u - 0.2) ** 2 + (v - 0.8) ** 2) / 0.1)
    return high + low + 0.1 * gap * u


def test_boca_reaches_the_optimum_and_beats_random_search():
    space = Space(u=Float(0, 1), v=Float(0, 1))

    def best(strategy, seed):
        result = maximize(
            hills, space, FIDELITY, cost=lambda z: 0.02 + z["n"] ** 2, budget=targets(20), strategy=strategy, seed=seed
        )
        assert result.value == hills(result.x, {"n": 1.0})
        return result.value

    top = max(hills({"u": u, "v": v}, {"n": 1.0}) for u in np.linspace(0.6, 0.8, 81) for v in np.linspace(0.2, 0.3, 81))
    for seed in (0, 1):
        found = best(Boca(), seed)
        assert top - found < 0.005
        assert found > best(RandomSearch(), seed)


def test_the_paper_reaches_the_optimum_of_a_smooth_function():
    result = maximize(
        bowl, SPACE, FIDELITY, cost=cost, budget=targets(12), strategy=Boca.paper(maximizer="sobol"), seed=0
    )
    assert result.value > -1e-3
    assert {t.z["n"] < 1.0 for t in result.history} == {True, False}


@pytest.mark.parametrize("stop", [3, "when it is good", True])
def test_a_stop_that_is_no_function_is_refused_before_anything_is_evaluated(stop):
    evaluated = []
    with pytest.raises(InvalidInput, match=r"stop must be a function of the history, .* or None; got"):
        boca.maximize(evaluated.append, boca.Space(a=boca.Float(0, 1)), budget=boca.targets(3), stop=stop)
    assert not evaluated
