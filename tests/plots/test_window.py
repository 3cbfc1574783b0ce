"""The useful part of an axis holds the best and leaves out what is far from typical."""

from __future__ import annotations

import numpy as np
import pytest

from boca.plots.window import window


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
