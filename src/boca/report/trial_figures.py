"""The figures of trials in the report: progress, regret, fidelities, parallel coordinates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boca.domain.words import readable, text
from boca.plots import trial_data as data
from boca.plots.axis import Axis, Note
from boca.plots.study import StudyView
from boca.plots.window import Window, window
from boca.report.traces import (
    BLACK,
    MAX_NAME,
    Figure,
    Picture,
    axis_of,
    figure_of,
    numbers,
    points_of,
    safe,
    symbols,
)

MAX_FIDELITIES = 8  # one figure each; a study with more would be a page of them
_SHADES = ("#000000", "#a0a0a0", "#bcbcbc", "#d4d4d4")
_WORSE = (0.4, 0.7)  # the shares of better trials at which the next shade begins
_MAX_TICKS = 16  # beside one axis of the parallel coordinates
_MAX_TICK = 16  # characters of one


def progress(study: StudyView) -> Picture:
    found = data.progress(study)
    caption = "The best value at the target against the budget spent."
    if isinstance(found, Note):
        return Picture("progress", "Progress", caption, found)
    figure = staircase(found, "best at the target")
    useful = window(found.best, found.value, study.problem.direction)
    if useful is not None:
        caption += f" Results beyond the axis: {useful.beyond}; the button shows all."
        figure["layout"]["yaxis"]["range"] = [useful.low, useful.high]
    figure["layout"] |= scales(useful, is_positive=bool(np.all(found.value > 0)))
    return Picture("progress", "Progress", caption, figure)


def regret(study: StudyView, optimum: float) -> Picture:
    found = data.regret(study, optimum)
    figure = found if isinstance(found, Note) else staircase(found, "regret at the target")
    if isinstance(found, data.BestSoFar) and isinstance(figure, dict) and np.all(found.value > 0):
        figure["layout"]["yaxis"]["type"] = "log"
    return Picture("regret", "Regret", f"How far the best falls short of the known optimum, {optimum:.6g}.", figure)


def scales(useful: Window | None, *, is_positive: bool) -> Figure:
    """Return the part of a layout that has buttons for the axis of values: its useful part, all, and log."""
    to: dict[str, Figure] = {}
    if useful is not None:
        to["useful"] = {"yaxis.type": "linear", "yaxis.range": [useful.low, useful.high]}
    to["all"] = {"yaxis.type": "linear", "yaxis.autorange": True}
    if is_positive:
        to["log"] = {"yaxis.type": "log", "yaxis.autorange": True}
    if len(to) == 1:
        return {}
    buttons = [{"label": label, "method": "relayout", "args": [change]} for label, change in to.items()]
    look = {"type": "buttons", "direction": "right", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    return {"updatemenus": [look | {"buttons": buttons, "pad": {"r": 0, "t": 0}, "font": {"size": 11}}]}


def staircase(found: data.BestSoFar, label: str) -> Figure:
    """Return the best so far against the budget spent, with the trials at the target."""
    best = {
        "mode": "lines",
        "x": numbers(found.spent),
        "y": numbers(found.best),
        "line": {"shape": "hv", "color": BLACK},
        "name": "best so far",
        "hovertext": [
            f"best {value:.6g} after {readable(spent)}" for spent, value in zip(found.spent, found.best, strict=True)
        ],
        "hoverinfo": "text",
    }
    points = points_of(found.at, found.value, found.trials, name="trial at the target", color="#999999")
    return figure_of(
        [best, points],
        x={"title": {"text": f"budget spent ({found.unit})"}, "rangemode": "tozero"},
        y={"title": {"text": label}},
    )


def fidelities(study: StudyView) -> Iterator[Picture]:
    found = data.fidelities(study)
    caption = (
        "The fidelity of every trial; darker is more expensive. Discs are at the target, triangles below it, crosses "
        "are failed trials."
    )
    if isinstance(found, Note):
        yield Picture("fidelities", "Fidelities queried", caption, found)
        return
    for i, axis in enumerate(found.axes[:MAX_FIDELITIES]):
        title = f"Fidelities queried: {text(axis.name, MAX_NAME)}"
        yield Picture(f"fidelities-{i}", title, caption, _fidelity(found, axis))


def _fidelity(found: data.Fidelities, axis: Axis) -> Figure:
    unit = "cost" if found.unit == "cost" else f"cost,<br>{found.unit}"
    low, high = float(found.marks.cost.min()), float(found.marks.cost.max())
    shown = sorted({low, (low * high) ** 0.5, high}) if low > 0 else [high]
    marker = {
        "color": numbers(np.log10(found.marks.cost)),
        "colorscale": "Cividis",
        "reversescale": True,
        "showscale": True,
        "size": 8,
        "symbol": symbols(found.marks),
        "line": {"width": 0.6, "color": BLACK},
        "colorbar": {
            "title": {"text": unit},
            "thickness": 10,
            "tickvals": numbers(np.log10(shown)),
            "ticktext": [readable(cost) for cost in shown],
        },
    }
    across = np.array([t.number for t in found.marks.trials], dtype=float)
    points = points_of(across, found.marks.along(axis), found.marks.trials, name="trials", marker=marker)
    return figure_of([points], x={"title": {"text": "trial"}}, y=axis_of(axis), legend=False)


def parallel_coordinates(study: StudyView) -> Picture:
    caption = (
        "Every complete trial through its parameters, its fidelities and its value. Dashed lines are below the target; "
        "the best tenth of the trials, 25 at most, is black, and better ones are darker. Values far from typical stand "
        "at the end."
    )
    found = data.parallel_coordinates(study)
    figure = found if isinstance(found, Note) else _parallel(found)
    return Picture("parallel", "Parallel coordinates", caption, figure)


def _lines(found: data.Parallel) -> list[Figure]:
    """Return the lines, one trace per shade with gaps between its lines; the best lie on top."""
    heights = np.column_stack([column.position for column in found.columns])  # (n, columns)
    shades = np.searchsorted([found.best_share, *_WORSE], 1.0 - found.rank, side="right")
    traces = []
    for at_target in (False, True):
        for shade in reversed(range(len(_SHADES))):
            rows = heights[(shades == shade) & (found.marks.at_target == at_target)]
            if len(rows):
                x = [*range(len(found.columns)), None] * len(rows)
                y = [value for row in rows for value in (*numbers(row), None)]
                width, dash = (1.8, "solid") if at_target else (0.8, "dash")
                line = {"color": _SHADES[shade], "width": width, "dash": dash}
                traces.append({"mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"})
    return traces


def _parallel(found: data.Parallel) -> Figure:
    names = [safe(column.name, _MAX_TICK) for column in found.columns]
    figure = figure_of(
        _lines(found),
        x={"tickvals": list(range(len(names))), "ticktext": names, "range": [-0.1, len(names) - 0.5]},
        y={"showticklabels": False, "range": [-0.05, 1.05], "zeroline": False, "showgrid": False},
        legend=False,
    )
    figure["layout"]["annotations"] = [
        {
            "x": i,
            "y": height,
            "text": safe(label, _MAX_TICK),
            "showarrow": False,
            "xanchor": "left",
            "xshift": 3,
            "font": {"size": 10},
            "bgcolor": "white",
        }
        for i, column in enumerate(found.columns)
        for height, label in column.ticks[:: 1 + len(column.ticks) // _MAX_TICKS]
    ]
    figure["layout"]["shapes"] = [
        {"type": "line", "x0": i, "x1": i, "y0": 0, "y1": 1, "line": {"color": BLACK, "width": 1}}
        for i in range(len(found.columns))
    ]
    return figure
