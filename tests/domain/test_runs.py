"""What happens to a run: checkpoints, stops, and the trial after them."""

from __future__ import annotations

from boca import History, Verdict
from boca.domain.runs import RunEvent
from support.trials import made


def test_a_verdict_is_what_it_says():
    assert Verdict(True)
    assert not Verdict(False, {"reason": "Enough."})


def test_the_newest_checkpoint_counts_until_it_is_dropped():
    trial = made(0, {"a": 0.5}, {"epochs": 9})
    assert (trial.checkpoint, trial.saved, trial.stop, trial.origin) == (None, 0, None, 0)
    saved = trial.happened(RunEvent("checkpoint", 3, path="one")).happened(RunEvent("checkpoint", 5, path="two"))
    assert (saved.checkpoint, saved.saved) == ("two", 5)
    stopped = saved.happened(RunEvent("stopped", 6, why={"reason": "Enough."}))
    assert (stopped.checkpoint, stopped.stop.step) == ("two", 6)
    assert stopped.happened(RunEvent("dropped", 5)).checkpoint is None


def test_a_run_that_is_handed_out_again_goes_on_from_its_checkpoint():
    trial = made(0, {"a": 0.5}, {"epochs": 9})
    assert trial.handed_out_again() is trial
    again = trial.happened(RunEvent("checkpoint", 3, path="one")).handed_out_again()
    assert (again.start, again.reached, again.origin) == (3, 3, 0)


def test_a_trial_that_continues_another_has_the_origin_that_it_was_handed_out_with():
    trial = made(1, {"a": 0.5}, {"epochs": 9}, start=3, continues=0)
    assert trial.origin == 3
    went_on = trial.happened(RunEvent("continued", 3, path="one")).happened(RunEvent("checkpoint", 5, path="two"))
    assert (went_on.handed_out_again().start, went_on.handed_out_again().origin) == (5, 3)


def test_the_copy_of_a_trial_has_reasons_of_its_own():
    trial = made(0, {"a": 0.5}, {"epochs": 9}).happened(RunEvent("stopped", 3, why={"reason": "Enough."}))
    trial.copied().stop.why["reason"] = "Changed."
    assert trial.stop.why == {"reason": "Enough."}


def test_a_chain_is_followed_to_its_first_trial():
    trials = [made(k, {"a": 0.5}, {"epochs": 9}, continues=c) for k, c in enumerate([None, None, 0, 2])]
    assert [t.number for t in History(trials).chain(trials[3])] == [0, 2, 3]
