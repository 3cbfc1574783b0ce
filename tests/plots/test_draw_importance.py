"""The picture of importance shows the numbers behind it, the parameters that matter most at the top."""

from __future__ import annotations

import numpy as np

import boca
from boca import Float, Space, plots
from boca.plots import importance_data
from boca.plots.draw_importance import MAX_ROWS
from boca.plots.study import study


def test_bars_are_the_indices_at_the_target_in_their_order(mixed):
    found = importance_data.importance(study(mixed))
    ax = plots.importance(mixed)
    assert [label.get_text() for label in ax.get_yticklabels()] == list(found.names)
    widths = [bar.get_width() for bar in ax.patches]
    np.testing.assert_allclose(widths, [*found.views[0].total.middle, *found.views[0].first.middle])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first name is at the top


def test_a_space_of_many_parameters_is_cut_and_says_so():
    space = Space({f"p{j}": Float(0, 1) for j in range(MAX_ROWS + 5)})
    opt = boca.Optimizer(boca.Problem(space), budget=boca.targets(9), seed=0)
    for _ in range(3):
        trial = opt.ask()
        opt.tell(trial, trial.x["p3"])
    ax = plots.importance(opt)
    assert len(ax.get_yticklabels()) == MAX_ROWS
    assert "5 parameters" in ax.get_xlabel()
