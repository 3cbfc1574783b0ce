"""Which parameters matter, for Plotly."""

from __future__ import annotations

import numpy as np

from boca.domain.space import FloatArray
from boca.plots.axis import Note
from boca.plots.importance_data import INTERVAL, Importance, Share, View
from boca.plots.importance_data import importance as indices
from boca.plots.study import StudyView
from boca.report.traces import BLACK, BLUE, Figure, Picture, figure_of, numbers, safe

MAX_ROWS = 15  # parameters; the others matter less
_SYMBOLS = ("triangle-up-open", "square-open", "diamond-open")  # of the views below the target
_MAX_TICK = 24  # characters of a name beside an axis
_BAR, _CORE = "#cccccc", "#444444"


def importance(study: StudyView) -> Picture:
    found = indices(study)
    caption = (
        "How much of the variance of f over the whole space each parameter is responsible for, by the model. Light "
        "bars are total Sobol indices, interactions included; dark bars are first-order indices, what the parameter "
        "explains alone."
    )
    if isinstance(found, Note):
        return Picture("importance", "Importance", caption, found)
    if found.has_interval:
        caption += f" Lines hold {INTERVAL:.0%} of the draws from the model."
    if len(found.views) > 1:
        caption += " Open marks are the total indices at lower fidelities."
    if found.is_warped:
        caption += " The model sees warped values, and the shares are of these."
    return Picture("importance", "Importance", caption, _figure(found))


def _figure(found: Importance) -> Figure:
    count = min(len(found.names), MAX_ROWS)
    rows = np.arange(count, dtype=float)
    at_target, *others = found.views
    traces = [
        _bar(found, at_target.total, rows, "total", 0.62, _BAR),
        _bar(found, at_target.first, rows, "first-order", 0.3, _CORE),
    ]
    traces[0] |= _interval(at_target.total, count, BLACK) if found.has_interval else {}
    for i, view in enumerate(others):
        off = 0.3 * (2.0 * (i + 1) / (len(others) + 1) - 1.0) if len(others) > 1 else 0.2
        traces.append(_marks(found, view, rows + off, _SYMBOLS[i % len(_SYMBOLS)]))
    names = [safe(name, _MAX_TICK) for name in found.names[:count]]
    figure = figure_of(
        traces,
        x={"title": {"text": "share of the variance of f"}, "range": [0, 1]},
        y={"tickvals": numbers(rows), "ticktext": names, "range": [count - 0.4, -0.6], "showgrid": False},
    )
    figure["layout"] |= {"barmode": "overlay"}
    return figure


def _bar(found: Importance, share: Share, rows: FloatArray, kind: str, width: float, color: str) -> Figure:
    count = len(rows)
    return {
        "type": "bar",
        "orientation": "h",
        "x": numbers(share.middle[:count]),
        "y": numbers(rows),
        "width": width,
        "marker": {"color": color},
        "name": f"{kind}, at the target",
        "hovertext": _words(found, share, kind, count),
        "hoverinfo": "text",
    }


def _marks(found: Importance, view: View, rows: FloatArray, symbol: str) -> Figure:
    kind = f"total, {safe(view.words)}"
    return {
        "mode": "markers",
        "x": numbers(view.total.middle[: len(rows)]),
        "y": numbers(rows),
        "marker": {"symbol": symbol, "color": BLUE, "size": 8},
        "name": kind,
        "hovertext": _words(found, view.total, kind, len(rows)),
        "hoverinfo": "text",
    } | _interval(view.total, len(rows), BLUE)


def _interval(share: Share, count: int, color: str) -> Figure:
    middle = share.middle[:count]
    return {
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": numbers(share.high[:count] - middle),
            "arrayminus": numbers(middle - share.low[:count]),
            "color": color,
            "thickness": 1.2,
            "width": 0,
        }
    }


def _words(found: Importance, share: Share, kind: str, count: int) -> list[str]:
    lines = zip(found.names[:count], share.middle, share.low, share.high, strict=False)
    between = " ({:.2f} to {:.2f})" if found.has_interval else ""
    return [f"{safe(name)}: {kind} {middle:.2f}{between.format(low, high)}" for name, middle, low, high in lines]
