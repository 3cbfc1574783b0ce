"""Pieces of Plotly figures: traces, axes, hover texts, as plain mappings for plotly.js.

Plotly reads a little HTML in every text.  Names and options are escaped by `safe` before they get here, and stand in
`text`, never in a template.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple, TypeAlias

from boca.domain.space import FloatArray
from boca.domain.trial import Trial
from boca.domain.words import option, point, readable, text
from boca.plots.axis import Axis, Marks, Mask, Note

Figure: TypeAlias = dict[str, Any]

BLACK, BLUE, ORANGE, GREY = "#111111", "#0072B2", "#D55E00", "#777777"
COLORS = (BLACK, BLUE, ORANGE, "#009E73", GREY, "#CC79A7")  # the color-blind can tell them apart
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
MAX_NAME = 40  # characters of a name in a title
_MAX_TICK = 20  # characters of an option on an axis
_MAX_HOVER = 24  # characters of a name or a value under the pointer
_MAX_HOVER_LINES = 12  # parameters and fidelities under the pointer
_ALL_WHOLE_TICKS = 12  # widest range of integers of which every one has a tick
_TWO_DECADES = 2.0  # from which on an axis has ticks at powers of ten alone


class Picture(NamedTuple):
    """A figure, or a note in its place, with what it shows."""

    key: str
    title: str
    caption: str
    figure: Figure | Note


def safe(words: object, longest: int = MAX_NAME) -> str:
    """Return text that Plotly shows as it is."""
    return escape(text(words, longest), quote=False)


def figure_of(traces: Sequence[Figure], *, x: Figure, y: Figure, legend: bool = True) -> Figure:
    common = {"gridcolor": "#e6e6e6", "zeroline": False, "automargin": True}
    return {
        "data": [{"type": "scatter"} | trace for trace in traces],
        "layout": {
            "xaxis": common | x,
            "yaxis": common | y,
            "showlegend": legend,
            "legend": {"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0},
            "margin": {"l": 55, "r": 15, "t": 28, "b": 75 if legend else 45},
            "paper_bgcolor": "white",
            "plot_bgcolor": "white",
            "hovermode": "closest",
            "font": {"family": "system-ui, sans-serif", "size": 12, "color": BLACK},
        },
    }


def axis_of(axis: Axis) -> Figure:
    """Return an axis with the name, the range, the scale and the ticks of a parameter."""
    title = {"title": {"text": safe(axis.name)}}
    low, high = axis.ends
    if axis.scale == "choice":
        names = [safe(name, _MAX_TICK) for name in axis.options]
        return title | {"tickvals": list(range(len(names))), "ticktext": names, "range": [low - 0.5, high + 0.5]}
    if axis.scale == "log":
        ends = [math.log10(low), math.log10(high)]
        edge = 0.03 * (ends[1] - ends[0])
        step = 1 if ends[1] - ends[0] >= _TWO_DECADES else "D2"
        ticks = {"dtick": step} | ({"tickformat": "d"} if axis.is_whole else {})
        return title | {"type": "log", "range": [ends[0] - edge, ends[1] + edge]} | ticks
    edge = 0.03 * (high - low)
    every = {"dtick": 1} if high - low <= _ALL_WHOLE_TICKS else {}
    whole = {"tickformat": "d"} | every if axis.is_whole else {}
    return title | {"type": "linear", "range": [low - edge, high + edge]} | whole


def points_of(
    x: FloatArray,
    y: FloatArray,
    trials: Sequence[Trial],
    *,
    name: str,
    color: str = BLACK,
    symbol: str = "circle",
    marker: Figure | None = None,
) -> Figure:
    """Return trials as marks with a hover text each.

    Args:
        x: Where they stand across.
        y: Where they stand up.
        trials: The trials, in the same order.
        name: What the legend calls them.
        color: Of the marks.
        symbol: Of the marks, in Plotly's words.
        marker: The whole marker in place of color and symbol.
    """
    return {
        "mode": "markers",
        "x": numbers(x),
        "y": numbers(y),
        "name": name,
        "marker": marker or {"color": color, "symbol": symbol, "size": 7},
        "text": [_hover(trial) for trial in trials],
        "hoverinfo": "text",
    }


def _hover(trial: Trial) -> str:
    result = safe(trial.state) if trial.value is None else f"value {trial.value:.6g}"
    if trial.value is None and trial.outcomes:
        result = safe(point(trial.outcomes), 4 * _MAX_HOVER)
    pairs = [
        f"{safe(name, _MAX_HOVER)} = {safe(option(value), _MAX_HOVER)}"
        for name, value in (*trial.x.items(), *trial.z.items())
    ]
    return "<br>".join([f"trial {trial.number}: {result}, cost {readable(trial.cost)}", *pairs[:_MAX_HOVER_LINES]])


def symbols(marks: Marks) -> list[str]:
    pairs = zip(marks.failed, marks.at_target, strict=True)
    return ["x" if failed else "circle" if at_target else "triangle-up" for failed, at_target in pairs]


def chosen(trials: Sequence[Trial], where: Mask) -> list[Trial]:
    return [trial for trial, kept in zip(trials, where, strict=True) if kept]


def numbers(values: Any) -> list[float | None]:
    """Return numbers that JSON can hold: None for what is not finite."""
    return [float(value) if math.isfinite(value) else None for value in values]
