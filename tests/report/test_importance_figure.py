"""The importance in the report has the numbers of the plot, and no markup of the user's."""

from __future__ import annotations

import plotly.graph_objects as go
import pytest

from boca.plots import importance_data
from boca.plots.study import study


def test_the_figure_has_the_numbers_of_the_model(hostile, parsed):
    found = importance_data.importance(study(hostile[0]))
    figure = parsed.figures["importance"]
    go.Figure(figure)
    total, first = figure["data"][:2]
    assert total["x"] == pytest.approx(found.views[0].total.middle.tolist())
    assert first["x"] == pytest.approx(found.views[0].first.middle.tolist())
    assert len(figure["data"]) == 1 + len(found.views)
    assert all("<" not in name for name in figure["layout"]["yaxis"]["ticktext"])
