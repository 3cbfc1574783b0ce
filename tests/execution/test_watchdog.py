"""What happens after a trial: callbacks, `stop`, and giving up."""

from __future__ import annotations

import pytest

import boca
from boca.domain.errors import ObjectiveFailed
from boca.execution.watchdog import GIVE_UP_AFTER_FAILURES, Watchdog, all_failed


@pytest.fixture
def study():
    problem = boca.Problem(boca.Space(a=boca.Float(0, 1)))
    return boca.Optimizer(problem, budget=boca.targets(20), strategy=boca.RandomSearch(), seed=0)


def watch(study, callbacks=(), stop=None, *, raises=False):
    return Watchdog(study, callbacks, stop, raises=raises, result=lambda: "the result")


def fail(study, reason="it broke"):
    return study.fail(study.ask(), reason)


def test_callbacks_are_called_in_order_with_the_optimizer_and_the_trial(study):
    heard = []
    watchdog = watch(study, [lambda *given: heard.append((1, *given)), lambda *given: heard.append((2, *given))])
    trial = study.tell(study.ask(), 1.0)
    assert watchdog(trial, None) is False
    assert heard == [(1, study, trial), (2, study, trial)]


def test_stop_decides_after_each_trial_by_the_history(study):
    watchdog = watch(study, stop=lambda history: len(history) == 2)
    assert [watchdog(study.tell(study.ask(), 1.0), None) for _ in range(3)] == [False, True, False]


def test_stop_is_asked_before_the_first_trial_only_if_there_are_results(study):
    asked = []
    watchdog = watch(study, stop=lambda history: asked.append(len(history)) or True)
    assert not watchdog.has_enough()
    assert asked == []
    study.tell(study.ask(), 1.0)
    assert watchdog.has_enough()
    assert asked == [1]
    assert not watch(study).has_enough()


def test_with_raise_the_first_failure_ends_the_run_with_its_cause_and_the_result(study):
    error = KeyError("b")
    with pytest.raises(ObjectiveFailed, match=r"Trial 0 failed at a = .*: it broke") as caught:
        watch(study, raises=True)(fail(study), error)
    assert caught.value.__cause__ is error
    assert caught.value.result == "the result"


def test_the_run_gives_up_after_five_failures_and_not_before(study):
    watchdog = watch(study)
    for _ in range(GIVE_UP_AFTER_FAILURES - 1):
        assert watchdog(fail(study), None) is False
    with pytest.raises(ObjectiveFailed, match=r"All 5 trials failed, the last one at a = .*: the last") as caught:
        watchdog(fail(study, "the last"), None)
    assert "No trial was run" not in str(caught.value)


def test_one_success_is_enough_to_continue(study):
    watchdog = watch(study)
    watchdog(study.tell(study.ask(), 1.0), None)
    for _ in range(2 * GIVE_UP_AFTER_FAILURES):
        assert watchdog(fail(study), None) is False


def test_a_resumed_study_of_failures_says_why_nothing_was_run(study):
    fail(study)
    with pytest.raises(ObjectiveFailed, match=r"The only trial failed at .*\n.*budget.*allow_change=True"):
        watch(study).raise_if_all_failed(at_least=1)
    stopped = watch(study, stop=lambda history: True)
    assert stopped.has_enough()
    with pytest.raises(ObjectiveFailed, match=r"stop returned true"):
        stopped.raise_if_all_failed(at_least=1)


def test_running_trials_do_not_count_as_failures(study):
    failed = [fail(study) for _ in range(4)]
    study.ask()
    assert all_failed(study.history, at_least=5) == ()
    assert [t.number for t in all_failed(study.history, at_least=4)] == [t.number for t in failed]
