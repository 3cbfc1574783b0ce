"""The pictures of the report for plotly.js: plain mappings, from the numbers that the Matplotlib pictures show.

Plotly reads a little HTML in every text.  Names and options are escaped before they get here, by `safe`, and stand in
`text`, never in a template.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from boca.domain.space import FloatArray
from boca.domain.trial import Trial
from boca.plots import data
from boca.plots.data import BAND, Axis, Marks, Note
from boca.plots.study import StudyView
from boca.render import option, text

Figure: TypeAlias = dict[str, Any]

MOST = 8  # slices, fidelities or gaps
_BINS = 6  # shades of parallel coordinates
_INK, _BLUE, _GREY = "#111111", "#0072B2", "#777777"
_INKS = (_INK, _BLUE, "#D55E00", "#009E73", _GREY, "#CC79A7")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x")
_SHADES = ("#00224e", "#35456c", "#666970", "#948e77", "#c8b866", "#e8d445")  # of cividis, dark to light


class Picture(NamedTuple):
    """A figure, or a note in its place, with what it shows."""

    key: str
    title: str
    caption: str
    figure: Figure | Note


def safe(words: object, longest: int = 40) -> str:
    """Return text that Plotly shows as it is."""
    return escape(text(words, longest), quote=False)


def pictures(study: StudyView, optimum: float | None = None) -> Iterator[Picture]:
    """Yield everything that there is to see."""
    yield progress(study)
    if optimum is not None:
        yield regret(study, optimum)
    yield from fidelities(study)
    yield from slices(study)
    yield map2d(study)
    yield from information_gaps(study)
    yield from hyperparameters(study)
    yield parallel_coordinates(study)


# Money ------------------------------------------------------------------------------------------------------------


def progress(study: StudyView) -> Picture:
    found = data.progress(study)
    figure = found if isinstance(found, Note) else _staircase(found, "best at the target")
    return Picture("progress", "Progress", "The best value at the target against what was spent.", figure)


def regret(study: StudyView, optimum: float) -> Picture:
    found = data.regret(study, optimum)
    figure = found if isinstance(found, Note) else _staircase(found, "regret at the target")
    if isinstance(found, data.BestSoFar) and isinstance(figure, dict) and np.all(found.value > 0):
        figure["layout"]["yaxis"]["type"] = "log"
    return Picture("regret", "Regret", f"How far the best falls short of the known optimum, {optimum:.6g}.", figure)


def _staircase(found: data.BestSoFar, label: str) -> Figure:
    line = {"shape": "hv", "color": _INK}
    best = {
        "mode": "lines",
        "x": _list(found.spent),
        "y": _list(found.best),
        "line": line,
        "name": "the best so far",
        "hoverinfo": "x+y",
    }
    points = _scatter(
        found.at, found.value, found.trials, name="a result at the target", color="#999999", symbol="circle"
    )
    return _figure(
        [best, points],
        x={"title": {"text": f"spent ({found.unit})"}, "rangemode": "tozero"},
        y={"title": {"text": label}},
    )


def fidelities(study: StudyView) -> Iterator[Picture]:
    found = data.fidelities(study)
    caption = "The fidelity of every trial, dearer ones darker; discs are at the target, crosses failed."
    if isinstance(found, Note):
        yield Picture("fidelities", "Fidelities bought", caption, found)
        return
    numbers = np.array([t.number for t in found.marks.trials], dtype=float)
    for i, axis in enumerate(found.axes[:MOST]):
        marker = {
            "color": _list(np.log10(found.marks.cost)),
            "colorscale": "Cividis",
            "reversescale": True,
            "showscale": True,
            "size": 8,
            "symbol": _symbols(found.marks),
            "line": {"width": 0.6, "color": _INK},
            "colorbar": {"title": {"text": f"log10 of<br>{found.unit}"}, "thickness": 10},
        }
        points = _scatter(numbers, found.marks.along(axis), found.marks.trials, name="trials", marker=marker)
        figure = _figure([points], x={"title": {"text": "trial"}}, y=_axis(axis), legend=False)
        yield Picture(f"fidelities-{i}", f"Fidelities bought: {text(axis.name, 40)}", caption, figure)


# The model --------------------------------------------------------------------------------------------------------


def slices(study: StudyView) -> Iterator[Picture]:
    caption = (
        f"What the model believes of f at the target, mean ± {BAND:g} std, the other parameters as recommended. "
        "Discs are trials at the target, triangles below it, wherever their other parameters are."
    )
    for i, name in enumerate(data.by_influence(study)[:MOST]):
        found = data.slices(study, name)
        figure = found if isinstance(found, Note) else _slice(found)
        yield Picture(f"slice-{i}", f"Slice along {text(name, 40)}", caption, figure)
        if isinstance(figure, Note):
            return  # the others would say the same


def _slice(found: data.Slice) -> Figure:
    x = _list(found.position)
    low, high = found.mean - BAND * found.std, found.mean + BAND * found.std
    words = [f"mean {m:.6g} ± {s:.2g}" for m, s in zip(found.mean, found.std, strict=True)]
    middle: Figure = {"x": x, "y": _list(found.mean), "name": "f at the target", "text": words, "hoverinfo": "text"}
    belief: list[Figure]
    if found.axis.kind == "choice":
        bars = {"type": "data", "array": _list(BAND * found.std), "color": _BLUE, "thickness": 1.5}
        belief = [middle | {"mode": "markers", "error_y": bars, "marker": {"symbol": "diamond", "color": _BLUE}}]
    else:
        edge = {"mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        belief = [
            edge | {"y": _list(low)},
            edge | {"y": _list(high), "fill": "tonexty", "fillcolor": "rgba(0,0,0,0.13)"},
            middle | {"mode": "lines", "line": {"color": _BLUE}},
        ]
    across = found.marks.along(found.axis)
    told = np.isfinite(found.marks.value)
    for where, name, symbol, color in (
        (told & ~found.marks.at_target, "below the target", "triangle-up-open", _GREY),
        (told & found.marks.at_target, "at the target", "circle", _INK),
    ):
        if where.any():
            trials = _some(found.marks.trials, where)
            belief.append(
                _scatter(across[where], found.marks.value[where], trials, name=name, color=color, symbol=symbol)
            )
    return _figure(belief, x=_axis(found.axis), y={"title": {"text": "value"}})


def map2d(study: StudyView) -> Picture:
    caption = (
        "The mean of f at the target over the two parameters with the shortest bandwidths, the others as recommended. "
        "Discs are trials at the target, triangles below it, crosses failed; the star is the recommended point."
    )
    found = data.map2d(study)
    figure = found if isinstance(found, Note) else _map(found, study)
    return Picture("map", "Map of the model", caption, figure)


def _map(found: data.Map, study: StudyView) -> Figure:
    words = [
        [f"mean {m:.6g} ± {s:.2g}" for m, s in zip(*rows, strict=True)]
        for rows in zip(found.mean, found.std, strict=True)
    ]
    heat = {
        "type": "heatmap",
        "x": _list(found.x_position),
        "y": _list(found.y_position),
        "z": [_list(row) for row in found.mean],
        "text": words,
        "hoverinfo": "text",
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": "mean"}, "thickness": 10},
    }
    shown = found.marks
    across, up = shown.along(found.x), shown.along(found.y)
    traces: list[Figure] = [heat]
    for where, symbol, color, edge in (
        (~shown.at_target & ~shown.failed, "triangle-up", "white", "black"),
        (shown.at_target & ~shown.failed, "circle", "black", "white"),
        (shown.failed, "x", "white", "black"),
    ):
        if where.any():
            marker = {"symbol": symbol, "color": color, "size": 8, "line": {"color": edge, "width": 1}}
            traces.append(_scatter(across[where], up[where], _some(shown.trials, where), name="trials", marker=marker))
    if study.recommendation is not None:
        place = [_list(axis.positions([study.recommendation.x[axis.name]])) for axis in (found.x, found.y)]
        star = {"symbol": "star", "size": 16, "color": "white", "line": {"color": "black", "width": 1}}
        traces.append(
            {
                "mode": "markers",
                "x": place[0],
                "y": place[1],
                "marker": star,
                "text": ["recommended"],
                "hoverinfo": "text",
            }
        )
    return _figure(traces, x=_axis(found.x), y=_axis(found.y), legend=False)


def information_gaps(study: StudyView) -> Iterator[Picture]:
    caption = (
        "What a query leaves unknown of f, from 0 at the target to 1, as the model of the last decision saw it, the "
        "other fidelities at the target; rings are what was bought."
    )
    names = list(study.problem.fidelity)[:MOST]
    for i, name in enumerate(names or [None]):
        found = data.information_gap(study, name)
        title = "Information gap" if name is None else f"Information gap along {text(name, 40)}"
        figure = found if isinstance(found, Note) else _gap(found)
        yield Picture(f"gap-{i}", title, caption, figure)


def _gap(found: data.Gap) -> Figure:
    is_choice = found.axis.kind == "choice"
    curve = {
        "mode": "markers" if is_choice else "lines",
        "x": _list(found.position),
        "y": _list(found.xi),
        "line": {"color": _INK},
        "marker": {"symbol": "diamond", "color": _INK},
        "name": "others at the target",
        "hoverinfo": "y",
    }
    bought = _scatter(
        found.marks.along(found.axis),
        found.bought,
        found.marks.trials,
        name="bought",
        color="#D55E00",
        symbol="circle-open",
    )
    return _figure(
        [curve, bought], x=_axis(found.axis), y={"title": {"text": "information gap ξ"}, "range": [-0.05, 1.05]}
    )


def hyperparameters(study: StudyView) -> Iterator[Picture]:
    found = data.hyperparameters(study)
    caption = "Bandwidths of the models behind the decisions, in units of the search range; marks are refits."
    if isinstance(found, Note):
        yield Picture("bandwidths", "Bandwidths", caption, found)
        return
    lines = {safe(name): values for name, values in found.bandwidths.items()}
    figure = _over_time(found, lines, "bandwidth")
    figure["layout"]["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": {"dash": "dot", "color": _GREY}}
        for y in found.bounds or ()
    ]
    yield Picture("bandwidths", "Bandwidths", caption, figure)
    scales = {"f": found.signal, "noise": found.noise}
    yield Picture(
        "scales",
        "Signal and noise",
        "Deviations of f and of the noise that the models assumed, in units of the value.",
        _over_time(found, scales, "deviation"),
    )


def _over_time(found: data.Hyperparameters, lines: dict[str, FloatArray], label: str) -> Figure:
    traces = []
    for i, (name, values) in enumerate(lines.items()):
        sizes = np.where(found.refit, 6, 0)
        traces.append(
            {
                "mode": "lines+markers",
                "x": _list(found.numbers),
                "y": _list(values),
                "name": name,
                "hoverinfo": "x+y+name",
                "line": {"color": _INKS[i % len(_INKS)], "dash": _DASHES[i % len(_DASHES)], "width": 1.5},
                "marker": {"symbol": _SYMBOLS[i % len(_SYMBOLS)], "size": _list(sizes)},
            }
        )
    return _figure(traces, x={"title": {"text": "trial"}}, y={"title": {"text": label}, "type": "log"})


# All at once ------------------------------------------------------------------------------------------------------


def parallel_coordinates(study: StudyView) -> Picture:
    caption = (
        "Every complete trial through its parameters, its fidelities and its value: dashed below the target, better "
        "ones darker."
    )
    found = data.parallel_coordinates(study)
    figure = found if isinstance(found, Note) else _parallel(found, study)
    return Picture("parallel", "Parallel coordinates", caption, figure)


def _parallel(found: data.Parallel, study: StudyView) -> Figure:
    heights = np.column_stack([column.position for column in found.columns])  # (n, columns)
    goodness = heights[:, -1] if study.problem.direction == "maximize" else 1.0 - heights[:, -1]
    bins = np.minimum(((1.0 - goodness) * _BINS).astype(int), _BINS - 1)
    traces = []
    for at_target in (False, True):
        for shade in reversed(range(_BINS)):
            rows = heights[(bins == shade) & (found.marks.at_target == at_target)]
            if len(rows):  # one trace for many lines, with gaps between them
                x = [*range(len(found.columns)), None] * len(rows)
                y = [value for row in rows for value in (*_list(row), None)]
                width, dash = (1.8, "solid") if at_target else (0.8, "dash")
                line = {"color": _SHADES[shade], "width": width, "dash": dash}
                traces.append({"mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"})
    figure = _figure(
        traces,
        x={
            "tickvals": list(range(len(found.columns))),
            "ticktext": [safe(column.name, 16) for column in found.columns],
            "range": [-0.1, len(found.columns) - 0.5],
        },
        y={"showticklabels": False, "range": [-0.05, 1.05], "zeroline": False, "showgrid": False},
        legend=False,
    )
    figure["layout"]["annotations"] = [
        {
            "x": i,
            "y": height,
            "text": safe(label, 16),
            "showarrow": False,
            "xanchor": "left",
            "xshift": 3,
            "font": {"size": 10},
            "bgcolor": "rgba(255,255,255,0.75)",
        }
        for i, column in enumerate(found.columns)
        for height, label in column.ticks[:: 1 + len(column.ticks) // 16]
    ]
    figure["layout"]["shapes"] = [
        {"type": "line", "x0": i, "x1": i, "y0": 0, "y1": 1, "line": {"color": _INK, "width": 1}}
        for i in range(len(found.columns))
    ]
    return figure


# Pieces -----------------------------------------------------------------------------------------------------------


def _figure(traces: Sequence[Figure], *, x: Figure, y: Figure, legend: bool = True) -> Figure:
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
            "font": {"family": "system-ui, sans-serif", "size": 12, "color": _INK},
        },
    }


def _axis(axis: Axis) -> Figure:
    """Return an axis with the name, the range, the scale and the ticks of a parameter."""
    title = {"title": {"text": safe(axis.name)}}
    low, high = axis.ends
    if axis.kind == "choice":
        names = [safe(name, 20) for name in axis.options]
        return title | {"tickvals": list(range(len(names))), "ticktext": names, "range": [low - 0.5, high + 0.5]}
    if axis.kind == "log":
        ends = [math.log10(low), math.log10(high)]
        edge = 0.03 * (ends[1] - ends[0])
        ticks = {"dtick": 1 if ends[1] - ends[0] >= 2.0 else "D2"} | ({"tickformat": "d"} if axis.is_whole else {})
        return title | {"type": "log", "range": [ends[0] - edge, ends[1] + edge]} | ticks
    edge = 0.03 * (high - low)
    whole = {"tickformat": "d"} | ({"dtick": 1} if high - low <= 12 else {}) if axis.is_whole else {}
    return title | {"type": "linear", "range": [low - edge, high + edge]} | whole


def _scatter(
    x: FloatArray,
    y: FloatArray,
    trials: Sequence[Trial],
    *,
    name: str,
    color: str = _INK,
    symbol: str = "circle",
    marker: Figure | None = None,
) -> Figure:
    return {
        "mode": "markers",
        "x": _list(x),
        "y": _list(y),
        "name": name,
        "marker": marker or {"color": color, "symbol": symbol, "size": 7},
        "text": [_hover(trial) for trial in trials],
        "hoverinfo": "text",
    }


def _hover(trial: Trial) -> str:
    result = safe(trial.state) if trial.value is None else f"value {trial.value:.6g}"
    pairs = [f"{safe(name, 24)} = {safe(option(value), 24)}" for name, value in (*trial.x.items(), *trial.z.items())]
    return "<br>".join([f"trial {trial.number}: {result}, cost {trial.cost:.4g}", *pairs[:12]])


def _symbols(marks: Marks) -> list[str]:
    pairs = zip(marks.failed, marks.at_target, strict=True)
    return ["x" if failed else "circle" if at_target else "triangle-up" for failed, at_target in pairs]


def _some(trials: Sequence[Trial], where: data.Mask) -> list[Trial]:
    return [trial for trial, kept in zip(trials, where, strict=True) if kept]


def _list(values: Any) -> list[float | None]:
    """Return numbers that JSON knows."""
    return [float(value) if math.isfinite(value) else None for value in values]
