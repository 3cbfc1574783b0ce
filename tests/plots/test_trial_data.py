"""The numbers behind the plots of trials."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca import Float, Int, Space
from boca.plots import trial_data
from boca.plots.study import study
from plots.hills import go, optimizer


def test_shares_of_a_target_are_called_so_until_one_is_measured():
    opt = optimizer(Space(a=Float(0, 1)), Space(n=Int(1, 10)), budget=boca.targets(20))
    trial = opt.ask()
    assert trial_data.fidelities(study(opt)).unit == "targets"
    opt.tell(trial, 1.0, seconds=3.0)
    assert trial_data.fidelities(study(opt)).unit == "seconds"


def test_progress_keeps_the_best_and_ends_where_the_spending_ends(mixed):
    found = trial_data.progress(study(mixed))
    at_target = [t for t in mixed.history.complete if mixed.problem.is_target(t.z)]
    assert [t.number for t in found.trials] == [t.number for t in at_target]
    assert found.value.tolist() == [t.value for t in at_target]
    assert found.best[:-1].tolist() == np.maximum.accumulate(found.value).tolist()
    assert found.best[-1] == found.best[-2] == mixed.best.value
    assert found.spent[-1] == pytest.approx(mixed.spent / study(mixed).ledger.target)


def test_a_direction_turns_the_staircase(minimized):
    found = trial_data.progress(study(minimized))
    assert found.best[:-1].tolist() == np.minimum.accumulate(found.value).tolist()


def test_regret_is_never_below_zero_with_the_true_optimum(minimized):
    found = trial_data.regret(study(minimized), -2.0)
    assert np.all(found.value >= 0)
    assert np.all(np.diff(found.best) <= 0)


def test_without_results_there_is_a_sentence():
    seen = study(optimizer())
    for make in (trial_data.progress, trial_data.fidelities, trial_data.parallel_coordinates):
        assert make(seen).words.endswith(".")
    assert "no fidelities" in trial_data.fidelities(study(optimizer(fidelity=None))).words


def test_columns_stand_between_zero_and_one_and_name_their_ends(mixed):
    columns = trial_data.parallel_coordinates(study(mixed)).columns
    assert [column.name for column in columns] == ["C", "depth", "kind", "N", "T", "value"]
    for column in columns:
        assert column.position.min() >= 0.0
        assert column.position.max() <= 1.0
    assert [label for _, label in columns[2].ticks] == ["round", "flat", "None"]
    assert [label for _, label in columns[3].ticks] == ["100", "1000", "10000"]


def test_equal_values_stand_in_the_middle():
    opt = optimizer(Space(a=Float(0, 1)), None)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0)
    value = trial_data.parallel_coordinates(study(opt)).columns[-1]
    assert value.position.tolist() == [0.5] * 3
    assert value.ticks == [(0.5, "1")]


def test_failed_trials_have_no_line():
    opt = go(optimizer(), 4, failing=(1,))
    assert [t.number for t in trial_data.parallel_coordinates(study(opt)).marks.trials] == [0, 2, 3]


def test_an_outlier_stands_at_the_end_of_its_axis_and_all_others_are_spread():
    opt = optimizer(Space(a=Float(0, 1)), None, direction="minimize", budget=boca.targets(50))
    for value in (3.0, 1e6, 2.0, 1.0, 1.5):
        opt.tell(opt.ask(), value, seconds=1.0)
    found = trial_data.parallel_coordinates(study(opt))
    value = found.columns[-1]
    assert value.position[1] == 1.0
    assert np.ptp(np.delete(value.position, 1)) > 0.5
    assert value.ticks[1][1].startswith("≥")
    assert found.rank.tolist() == [0.4, 0.2, 0.6, 1.0, 0.8]
