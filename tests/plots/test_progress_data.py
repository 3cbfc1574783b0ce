"""The useful part of an axis, and the band of several runs."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca import Float, Space
from boca.domain.errors import InvalidInput
from boca.plots.axis import Note
from boca.plots.progress_data import band, window
from boca.plots.study import study
from plots.hills import optimizer


def best_of(values, direction):
    return (np.minimum if direction == "minimize" else np.maximum).accumulate(values)


@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_the_window_holds_the_best_and_leaves_out_the_outlier(turn):
    direction = "maximize" if turn > 0 else "minimize"
    values = turn * np.array([-5.0, -4.0, -1e6, -3.0, -1.0])
    found = window(best_of(values, direction), values, direction)
    assert found.beyond == 1
    assert found.low < min(-5.0 * turn, -1.0 * turn)
    assert found.high > max(-5.0 * turn, -1.0 * turn)
    assert found.high - found.low < 6.0


def test_an_outlier_that_came_first_is_left_out_too():
    values = np.array([1e6, 3.0, 2.0, 2.5, 1.0])
    found = window(best_of(values, "minimize"), values, "minimize")
    assert found.high < 20.0
    assert found.beyond == 1


@pytest.mark.parametrize("values", [[1.0], [1.0, 1.0], [1.0, 2.0], [3.0, 2.0, 1.0], [1e300, -1e300, 1e308, -1e308]])
def test_ordinary_results_need_no_window(values):
    found = window(best_of(np.array(values), "minimize"), np.array(values), "minimize")
    assert found is None or np.isfinite([found.low, found.high]).all()
    assert found is None or len(values) > 3


def runs(*all_values, direction="minimize"):
    for values in all_values:
        opt = optimizer(Space(a=Float(0, 1)), None, direction=direction, budget=boca.targets(50))
        for value in values:
            opt.tell(opt.ask(), value, seconds=1.0)
        yield study(opt)


def test_the_band_ends_with_the_shortest_run():
    found = band(list(runs([3.0, 2.0, 1.0], [4.0, 3.5])))
    assert found.spent.tolist() == pytest.approx([1.0, 2.0])
    assert found.unit == "target evaluations"


def test_a_run_without_results_is_the_worst():
    found = band(list(runs([3.0], [4.0], [])))
    assert found.median.tolist() == pytest.approx([4.0])
    assert np.isnan(found.high[0])
    assert isinstance(band(list(runs([3.0], [], []))), Note)
    assert isinstance(band(list(runs([]))), Note)


def test_runs_that_cannot_be_compared_are_refused():
    with pytest.raises(InvalidInput, match="both"):
        band([*runs([1.0]), *runs([1.0], direction="maximize")])
