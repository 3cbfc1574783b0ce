"""Figures without runs are written, the same twice, and show what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boca.bench import illustrations

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", ["1", "2", "gain"])
def test_a_figure_is_written_and_the_same_twice(name: str, tmp_path: Path) -> None:
    first = illustrations.write(name, tmp_path / "one")
    again = illustrations.write(name, tmp_path / "two")
    assert [path.name for path in first] == [f"figure-{name}.png", f"figure-{name}.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_the_three_draws_of_figure_2_get_smoother() -> None:
    lines = illustrations.bandwidths().axes[0].lines
    steepness = [float(np.mean(np.abs(np.diff(line.get_ydata())))) for line in lines]
    assert [line.get_label() for line in lines] == ["h = 0.01", "h = 0.15", "h = 0.5"]
    assert steepness[0] > 4.0 * steepness[1] > 8.0 * steepness[2] / 2.0


def test_the_gain_of_the_rougher_kernel_is_higher() -> None:
    lines = illustrations.gain().axes[0].lines
    ends = {line.get_label(): line.get_ydata()[-1] for line in lines}
    assert ends["SE, d = 1"] < ends["Matérn-5/2, d = 1"] < ends["SE, d = 2"] < ends["Matérn-5/2, d = 2"]
    for line in lines:
        assert np.all(np.diff(line.get_ydata()) > 0.0)


@pytest.mark.slow
def test_most_target_queries_are_inside_the_good_set_that_is_drawn() -> None:
    title = illustrations.good_set().axes[0].get_title()
    volume, share = (float(part.split()[-1]) for part in title.split("%")[:2])
    assert volume < 40.0
    assert share > 80.0


@pytest.mark.slow
def test_every_run_that_is_drawn_stays_below_both_bounds() -> None:
    first, second, *runs = illustrations.bound().axes[0].lines
    assert len(runs) == 5
    for run in runs:
        regret = np.asarray(run.get_ydata(), dtype=float)
        for bound in (first, second):
            assert np.nanmax(regret - np.asarray(bound.get_ydata())) < 0.0
