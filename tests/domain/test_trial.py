"""Trials and their history."""

from __future__ import annotations

import dataclasses
import math
import pickle
from collections.abc import Sequence

import pytest

from boca import Choice, Float, History, Int, Problem, Space, Trial
from boca.domain.reasons import Reasons
from support.trials import made as trial_of

SPACE = Space(a=Float(0, 1))
PROBLEM = Problem(SPACE, Space(n=Int(1, 4)), cost=lambda z: z["n"])
MINIMISED = Problem(SPACE, Space(n=Int(1, 4)), cost=lambda z: z["n"], direction="minimize")


def trial(number, value=None, *, n=4, state="complete", told=None, phase="start", **more):
    told = None if state == "running" else (100 + number if told is None else told)
    more = {"why": {"reason": "A test.", "phase": phase}} | more
    return trial_of(
        number, {"a": number / 10}, {"n": n}, float(n), value=value, state=state, asked=number, told=told, **more
    )


def test_a_trial_cannot_be_changed():
    one = trial(0, 1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.state = "failed"
    with pytest.raises(AttributeError):
        one.value = 2.0


def test_a_copy_is_its_users_and_copies_its_reasons_when_somebody_looks():
    one = trial(0, 1.0, why={"reason": "A test.", "phase": "model", "hyperparameters": {"h_x": [0.1]}})
    kept = repr((one, one.why))
    (twin,) = History([one]).copied()
    assert twin == one
    assert not one.copied().reasons.is_loaded
    assert one.copied().phase == "model"
    twin.x["a"] = 99.0
    twin.z.clear()
    twin.why["hyperparameters"]["h_x"][0] = 99.0
    assert repr((one, one.why)) == kept


def test_a_copy_loads_reasons_through_the_one_that_is_stored():
    asked = []
    reasons = Reasons("start", lambda: asked.append(1) or {"reason": "A test."})
    stored = Trial(0, {"a": 0.5}, {}, 1.0, reasons)
    one, other = stored.copied(), stored.copied()
    assert (one.phase, one.added, asked) == ("start", False, [])
    assert one.why == other.why == {"reason": "A test."}
    assert one.why is not other.why
    assert asked == [1]
    assert pickle.loads(pickle.dumps(one)) == stored


def test_a_new_trial_is_running_without_a_value():
    one = trial_of(0, {"a": 0.5}, {"n": 1}, 1.0, {"reason": "A test.", "phase": "start"})
    assert one.state == "running"
    assert one.value is None
    assert one.told is None
    assert one.phase == "start"
    assert not one.added


def test_the_phase_says_whether_a_result_was_brought_along():
    assert trial(0, 1.0, phase="added").added
    assert not trial(0, 1.0, phase="queued").added


def test_a_history_is_a_sequence_in_order_of_number():
    trials = [trial(0, 1.0), trial(1, state="running"), trial(2, 0.5)]
    history = History(trials)
    assert isinstance(history, Sequence)
    assert len(history) == 3
    assert list(history) == trials
    assert history[0] is trials[0]
    assert history[-1] is trials[2]
    assert list(history[1:]) == trials[1:]
    assert trials[1] in history
    with pytest.raises(IndexError):
        history[3]
    assert not History()


def test_a_history_does_not_follow_the_list_that_it_was_made_from():
    trials = [trial(0, 1.0)]
    history = History(trials)
    trials.append(trial(1, 2.0))
    assert len(history) == 1


def test_trials_are_sorted_by_state_and_results_by_the_order_in_which_they_came():
    history = History(
        [
            trial(0, 1.0, told=13),
            trial(1, state="running"),
            trial(2, state="failed", told=11),
            trial(3, 2.0, told=12),
        ]
    )
    assert [t.number for t in history.running] == [1]
    assert [t.number for t in history.finished] == [2, 3, 0]
    assert [t.number for t in history.complete] == [3, 0]


def test_the_iterations_of_the_algorithm_are_the_trials_that_a_model_chose():
    phases = ["added", "start", "queued", "model", "start", "model", "final"]
    history = History([trial(i, 1.0, phase=phase) for i, phase in enumerate(phases)])
    assert [t.number for t in history.chosen] == [3, 5, 6]


def test_the_representation_counts_states():
    assert repr(History()) == "History(empty)"
    assert repr(History([trial(0, 1.0), trial(1, 1.0), trial(2, state="failed")])) == "History(2 complete, 1 failed)"
    assert "why" not in repr(trial(0, 1.0))


# The best -------------------------------------------------------------------------------------------------------------


def test_the_best_is_the_best_at_the_target_whatever_other_fidelities_say():
    history = History([trial(0, 9.0, n=3), trial(1, 1.0), trial(2, 2.0), trial(3, 99.0, n=1), trial(4, 1.5)])
    assert history.best(PROBLEM).number == 2
    assert history.best(MINIMISED).number == 1


def test_there_is_no_best_before_a_result_at_the_target():
    assert History().best(PROBLEM) is None
    others = [trial(0, 9.0, n=3), trial(1, state="running"), trial(2, state="failed")]
    assert History(others).best(PROBLEM) is None


@pytest.mark.parametrize(("values", "highest", "lowest"), [([-3.0, -1.0, -2.0], 1, 0), ([0.0, -1.0, 1.0], 2, 1)])
def test_the_best_of_negative_values_and_zeros(values, highest, lowest):
    history = History([trial(i, value) for i, value in enumerate(values)])
    assert history.best(PROBLEM).number == highest
    assert history.best(MINIMISED).number == lowest


def test_of_equals_the_earliest_is_best():
    history = History([trial(0, 1.0), trial(1, 2.0), trial(2, 2.0)])
    assert history.best(PROBLEM).number == 1


def test_results_that_were_brought_along_may_be_best():
    assert History([trial(0, 5.0, phase="added"), trial(1, 1.0)]).best(PROBLEM).number == 0


# Scores ---------------------------------------------------------------------------------------------------------------


def test_scores_are_always_to_be_maximised_and_in_the_order_of_the_results():
    history = History(
        [trial(0, 1.0, told=13), trial(1, 3.0, told=11), trial(2, state="running"), trial(3, 2.0, told=12)]
    )
    assert history.scores("maximize").tolist() == [3.0, 2.0, 1.0]
    assert history.scores("minimize").tolist() == [-3.0, -2.0, -1.0]


def test_a_failure_scores_as_the_worst_value_told():
    history = History([trial(0, 1.0), trial(1, state="failed"), trial(2, 3.0), trial(3, state="failed")])
    assert history.scores("maximize").tolist() == [1.0, 1.0, 3.0, 1.0]
    assert history.scores("minimize").tolist() == [-1.0, -3.0, -3.0, -3.0]


def test_failures_alone_have_no_score():
    assert all(math.isnan(score) for score in History([trial(0, state="failed")]).scores("maximize"))
    assert History().scores("maximize").shape == (0,)


# As a table -----------------------------------------------------------------------------------------------------------


def test_a_table_has_a_row_a_trial_and_a_column_a_parameter():
    pd = pytest.importorskip("pandas")
    done = trial(0, 1.5, seconds=0.25, overhead=0.125)
    failed = trial(2, state="failed", n=2, reason="out of memory")
    table = History([done, trial(1, state="running", phase="model"), failed]).to_dataframe()
    assert isinstance(table, pd.DataFrame)
    assert table["number"].tolist() == [0, 1, 2]
    assert table["state"].tolist() == ["complete", "running", "failed"]
    assert table["value"][0] == 1.5
    assert table["value"].isna().tolist() == [False, True, True]
    assert table["cost"].tolist() == [4.0, 4.0, 2.0]
    assert table["seconds"][0] == 0.25
    assert table["overhead"][0] == 0.125
    assert table["phase"].tolist() == ["start", "model", "start"]
    assert table["reason"].tolist() == ["A test."] * 3
    assert table["failure"].fillna("").tolist() == ["", "", "out of memory"]
    assert table["x.a"].tolist() == [0.0, 0.1, 0.2]
    assert table["z.n"].tolist() == [4, 4, 2]


def test_the_table_of_an_empty_history_is_empty():
    pytest.importorskip("pandas")
    assert len(History().to_dataframe()) == 0


def test_choices_appear_in_a_table_as_they_are():
    pytest.importorskip("pandas")
    problem = Problem(Space(kind=Choice(["a", "b"])))
    one = trial_of(0, problem.space.validate({"kind": "b"}, "x"), {}, 1.0)
    table = History([one]).to_dataframe()
    assert table["x.kind"].tolist() == ["b"]
    assert not [column for column in table.columns if column.startswith("z.")]


def test_a_history_that_trials_join_is_the_history_with_them_running():
    past = History([trial(0, 1.0, told=13), trial(1, state="running"), trial(2, state="failed")])
    later = past.joined([trial(3, state="running", phase="model"), trial(4, state="running")])
    anew = History(list(later))
    for name in ("finished", "complete", "running", "chosen"):
        assert getattr(later, name) == getattr(anew, name)
    assert [t.number for t in later.running] == [1, 3, 4]
    assert len(past) == 3
