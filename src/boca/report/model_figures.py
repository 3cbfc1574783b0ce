"""The figures of the model in the report: slices, a map, the information gap, the hyperparameters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boca.domain.space import FloatArray
from boca.domain.words import expected, point, text
from boca.plots import model_data as data
from boca.plots.axis import Note, placed
from boca.plots.model_data import BAND
from boca.plots.study import StudyView
from boca.report.traces import (
    BLACK,
    BLUE,
    COLORS,
    DASHES,
    GREY,
    MAX_NAME,
    ORANGE,
    SYMBOLS,
    Figure,
    Picture,
    axis_of,
    chosen,
    figure_of,
    numbers,
    points_of,
    safe,
)

MAX_SLICES = 8  # the parameters with the shortest length scales; the others hardly change f
_MAX_OPTIONS = 120  # characters of the options in a caption
MAX_GAPS = 8  # one figure each; a study with more fidelities would be a page of them


# Along parameters -------------------------------------------------------------------------------------------------


def slices(study: StudyView) -> Iterator[Picture]:
    caption = (
        f"What the model expects of f at the target, mean ± {BAND:g} std, with the other parameters as recommended. "
        "Discs are trials at the target, triangles below it"
    )
    for i, name in enumerate(data.by_influence(study)[:MAX_SLICES]):
        found = data.slices(study, name)
        figure = found if isinstance(found, Note) else _slice(found)
        options = {} if isinstance(found, Note) else found.options
        of = f", of those with {text(point(options), _MAX_OPTIONS)}." if options else "."
        yield Picture(f"slice-{i}", f"Slice along {text(name, MAX_NAME)}", caption + of, figure)
        if isinstance(figure, Note) and study.model is None:
            return  # the others would say the same


def _slice(found: data.Slice) -> Figure:
    traces = _belief(found)
    across = found.marks.along(found.axis)
    told = np.isfinite(found.marks.value)
    for where, name, symbol, color in (
        (told & ~found.marks.at_target, "trial below the target", "triangle-up-open", GREY),
        (told & found.marks.at_target, "trial at the target", "circle", BLACK),
    ):
        if where.any():
            trials = chosen(found.marks.trials, where)
            points = points_of(across[where], found.marks.value[where], trials, name=name, color=color, symbol=symbol)
            traces.append(points)
    useful = {} if found.useful is None else {"range": [found.useful.low, found.useful.high]}
    return figure_of(traces, x=axis_of(found.axis), y={"title": {"text": "value"}} | useful)


def _belief(found: data.Slice) -> list[Figure]:
    """Return mean and band, or a diamond with a bar for every option of a choice."""
    x = numbers(found.position)
    words = [f"mean {expected(m, s)}" for m, s in zip(found.mean, found.std, strict=True)]
    mean: Figure = {"x": x, "y": numbers(found.mean), "name": "f at the target", "text": words, "hoverinfo": "text"}
    if found.axis.scale == "choice":
        bars = {"type": "data", "array": numbers(BAND * found.std), "color": BLUE, "thickness": 1.5}
        return [mean | {"mode": "markers", "error_y": bars, "marker": {"symbol": "diamond", "color": BLUE}}]
    low, high = found.mean - BAND * found.std, found.mean + BAND * found.std
    edge = {"mode": "lines", "x": x, "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
    return [
        edge | {"y": numbers(low)},
        edge | {"y": numbers(high), "fill": "tonexty", "fillcolor": "rgba(0,0,0,0.13)"},
        mean | {"mode": "lines", "line": {"color": BLUE}},
    ]


def map2d(study: StudyView) -> Picture:
    caption = (
        "The mean of f at the target over the two parameters with the shortest length scales, the others as "
        "recommended. Discs are trials at the target, triangles below it, crosses are failed trials; the star is the "
        "recommended point."
    )
    found = data.map2d(study)
    figure = found if isinstance(found, Note) else _map(found, study)
    return Picture("map", "Map of the model", caption, figure)


def _map(found: data.Map, study: StudyView) -> Figure:
    traces = [_heat(found), *_map_marks(found)]
    if study.recommendation is not None:
        place = [numbers(placed(axis.positions, axis.name, [study.recommendation.x])) for axis in (found.x, found.y)]
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
    return figure_of(traces, x=axis_of(found.x), y=axis_of(found.y), legend=False)


def _heat(found: data.Map) -> Figure:
    words = [
        [f"mean {expected(m, s)}" for m, s in zip(*rows, strict=True)]
        for rows in zip(found.mean, found.std, strict=True)
    ]
    return {
        "type": "heatmap",
        "x": numbers(found.x_position),
        "y": numbers(found.y_position),
        "z": [numbers(row) for row in found.mean],
        "text": words,
        "hoverinfo": "text",
        "colorscale": "Cividis",
        "colorbar": {"title": {"text": "mean"}, "thickness": 10},
    } | ({} if found.useful is None else {"zmin": found.useful.low, "zmax": found.useful.high})


def _map_marks(found: data.Map) -> Iterator[Figure]:
    shown = found.marks
    across, up = shown.along(found.x), shown.along(found.y)
    for where, symbol, color, edge in (
        (~shown.at_target & ~shown.failed, "triangle-up", "white", "black"),
        (shown.at_target & ~shown.failed, "circle", "black", "white"),
        (shown.failed, "x", "white", "black"),
    ):
        if where.any():
            marker = {"symbol": symbol, "color": color, "size": 8, "line": {"color": edge, "width": 1}}
            yield points_of(across[where], up[where], chosen(shown.trials, where), name="trials", marker=marker)


# Along fidelities -------------------------------------------------------------------------------------------------


def information_gaps(study: StudyView) -> Iterator[Picture]:
    caption = (
        "What a query leaves unknown of f, from 0 at the target to 1, as the model of the last decision saw it, with "
        "the other fidelities at the target. Rings are trials."
    )
    names = list(study.problem.fidelity)[:MAX_GAPS]
    for i, name in enumerate(names or [None]):
        found = data.information_gap(study, name)
        title = "Information gap" if name is None else f"Information gap along {text(name, MAX_NAME)}"
        if isinstance(found, Note):
            yield Picture(f"gap-{i}", title, caption, found)
        else:
            yield Picture(f"gap-{i}", title, f"{caption} {found.sentence}", _gap(found))


def _gap(found: data.Gap) -> Figure:
    curve = {
        "mode": "markers" if found.axis.scale == "choice" else "lines",
        "x": numbers(found.position),
        "y": numbers(found.xi),
        "line": {"color": BLACK},
        "marker": {"symbol": "diamond", "color": BLACK},
        "name": "other fidelities at the target",
        "hovertext": [f"information gap {xi:.3g}" for xi in found.xi],
        "hoverinfo": "text",
    }
    across = found.marks.along(found.axis)
    trials = points_of(across, found.queried, found.marks.trials, name="trial", color=ORANGE, symbol="circle-open")
    return figure_of(
        [curve, trials], x=axis_of(found.axis), y={"title": {"text": "information gap ξ"}, "range": [-0.05, 1.05]}
    )


# Over the trials --------------------------------------------------------------------------------------------------


def hyperparameters(study: StudyView) -> Iterator[Picture]:
    found = data.hyperparameters(study)
    caption = "Length scales of the models behind the decisions, in units of the search range. Marks are refits."
    if isinstance(found, Note):
        yield Picture("length-scales", "Length scales", caption, found)
        return
    lines = {safe(name): values for name, values in found.length_scales.items()}
    figure = _over_trials(found, lines, "length scale")
    figure["layout"]["shapes"] = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": y, "y1": y, "line": {"dash": "dot", "color": GREY}}
        for y in found.bounds or ()
    ]
    yield Picture("length-scales", "Length scales", caption, figure)
    scales = {"f": found.signal, "noise": found.noise}
    yield Picture(
        "scales",
        "Signal and noise",
        "Standard deviations of f and of the noise that the models assumed, in units of the value.",
        _over_trials(found, scales, "standard deviation"),
    )


def _over_trials(found: data.Hyperparameters, lines: dict[str, FloatArray], label: str) -> Figure:
    sizes = numbers(np.where(found.refit, 6, 0))
    traces = [
        {
            "mode": "lines+markers",
            "x": numbers(found.numbers),
            "y": numbers(values),
            "name": name,
            "hovertext": [f"trial {n}: {name} {value:.3g}" for n, value in zip(found.numbers, values, strict=True)],
            "hoverinfo": "text",
            "line": {"color": COLORS[i % len(COLORS)], "dash": DASHES[i % len(DASHES)], "width": 1.5},
            "marker": {"symbol": SYMBOLS[i % len(SYMBOLS)], "size": sizes},
        }
        for i, (name, values) in enumerate(lines.items())
    ]
    return figure_of(traces, x={"title": {"text": "trial"}}, y={"title": {"text": label}, "type": "log"})
