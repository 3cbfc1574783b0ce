"""The band of several runs is that of their staircases."""

from __future__ import annotations

import numpy as np
import pytest

import boca
from boca import Float, Space
from boca.domain.errors import InvalidInput
from boca.plots.axis import Note
from boca.plots.progress_data import band
from boca.plots.study import study
from plots.hills import optimizer


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
