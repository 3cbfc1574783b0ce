"""The figures of several objectives in the report: the front, and its hypervolume."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from boca.domain.words import text
from boca.plots import front_data as data
from boca.plots.axis import Note
from boca.plots.study import StudyView
from boca.report.traces import BLACK, GREY, MAX_NAME, Figure, Picture, chosen, figure_of, numbers, points_of, safe
from boca.report.trial_figures import staircase

_LIGHT = "#c8c8c8"


def fronts(study: StudyView) -> Iterator[Picture]:
    """Yield the plane of every pair of objectives, and the hypervolume against the budget spent."""
    found = data.front(study)
    caption = "The trials at the target that none dominates, and the others; the border is of what they dominate."
    if isinstance(found, Note):
        yield Picture("front", "Front", caption, found)
    else:
        for k, plane in enumerate(found.planes):
            key = "front" if k == 0 else f"front-{k + 1}"
            title = f"Front: {text(plane.names[0], MAX_NAME)} and {text(plane.names[1], MAX_NAME)}"
            yield Picture(key, title, caption, _plane(study, found, plane))
    grown = data.hypervolume(study)
    caption = "The hypervolume of the front against the budget spent"
    if isinstance(grown, Note):
        yield Picture("hypervolume", "Hypervolume", f"{caption}.", grown)
        return
    figure = staircase(grown, "hypervolume of the front")
    yield Picture("hypervolume", "Hypervolume", f"{caption}, from {data.reference_in_words(study)}.", figure)


def _plane(study: StudyView, found: data.Front, plane: data.Plane) -> Figure:
    traces: list[Figure] = []
    kinds = (
        ("below the target", ~found.at_target, "triangle-up", _LIGHT),
        ("dominated", found.at_target & ~found.on_front & found.feasible, "circle", GREY),
        ("not within every limit", found.at_target & ~found.on_front & ~found.feasible, "circle-open", GREY),
        ("front", found.on_front, "circle", BLACK),
    )
    if np.any(found.on_front) and len(found.planes) == 1:
        x, y = data.staircase(found, plane, study)
        line = {"color": BLACK, "width": 1}
        border = {"mode": "lines", "x": numbers(x), "y": numbers(y), "line": line, "hoverinfo": "skip"}
        traces.append(border | {"showlegend": False})
    for name, here, symbol, color in kinds:
        if np.any(here):
            trials = chosen(found.trials, here)
            traces.append(points_of(plane.x[here], plane.y[here], trials, name=name, color=color, symbol=symbol))
    across, up = ({"title": {"text": safe(label, 2 * MAX_NAME)}} for label in plane.labels)
    return figure_of(traces, x=across, y=up)
