"""The figures are figures to Plotly, and have the numbers of the study."""

from __future__ import annotations

import json

import plotly.graph_objects as go
import pytest

from boca.plots import model_data
from boca.plots.study import study


def test_plotly_gets_no_markup_of_the_users(parsed):
    def texts(value):
        if isinstance(value, dict):
            for inner in value.values():
                yield from texts(inner)
        elif isinstance(value, list):
            for inner in value:
                yield from texts(inner)
        elif isinstance(value, str):
            yield value

    seen = list(texts(parsed.figures))
    assert any("&lt;/script&gt;" in text for text in seen)
    assert all("<" not in text.replace("<br>", "") for text in seen)
    assert "hovertemplate" not in json.dumps(parsed.figures)


def test_the_figures_are_figures_to_plotly(parsed):
    assert {
        "progress",
        "regret",
        "map",
        "parallel",
        "length-scales",
        "scales",
        "slice-0",
        "gap-1",
        "fidelities-1",
    } <= set(parsed.figures)
    for figure in parsed.figures.values():
        go.Figure(figure)  # which refuses what it does not know


def test_the_figures_have_the_numbers_of_the_study(hostile, parsed):
    opt, _ = hostile
    best = parsed.figures["progress"]["data"][0]
    assert best["y"][-1] == opt.best.value
    assert best["x"][-1] == pytest.approx(opt.spent / study(opt).ledger.target)
    assert parsed.figures["regret"]["data"][0]["y"][-1] == pytest.approx(opt.best.value + 1.0)
    seen = study(opt)
    name = model_data.by_influence(seen)[0]
    (curve,) = [trace for trace in parsed.figures["slice-0"]["data"] if trace.get("name") == "f at the target"]
    assert curve["y"] == pytest.approx(model_data.slices(seen, name).mean.tolist())
    assert parsed.figures["gap-0"]["data"][0]["y"] == pytest.approx(model_data.information_gap(seen).xi.tolist())
