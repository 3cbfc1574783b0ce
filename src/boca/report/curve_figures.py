"""The curves of runs in the report: every training over its steps, stopped ones greyed, and what was saved."""

from __future__ import annotations

from collections.abc import Iterator

from boca.accounting.savings import savings
from boca.plots import curve_data as data
from boca.plots.axis import Note
from boca.plots.study import StudyView
from boca.report.traces import BLACK, Figure, Picture, axis_of, figure_of, numbers

_LOOKS: dict[data.Fate, tuple[str, str]] = {
    "stopped": ("stopped or failed", "#c4c4c4"),
    "ended": ("ended", BLACK),
    "running": ("running", "#0072b2"),
}


def curves(study: StudyView) -> Iterator[Picture]:
    """Yield the curves of a study whose evaluations pass through steps."""
    if study.problem.steps is None:
        return
    found = data.curves(study)
    words = "Every run over its steps, with the trials that it continues; grey ones were stopped, or failed."
    caption = " ".join(part for part in (words, savings(study.ledger).words) if part)
    if isinstance(found, Note):
        yield Picture("curves", "Curves", caption, found)
        return
    if found.left_out:
        caption += f" The first {found.left_out} are left out."
    traces = [_trace(found, fate) for fate in _LOOKS if any(curve.fate == fate for curve in found.curves)]
    figure = figure_of(traces, x=axis_of(found.axis), y={"title": {"text": "value"}})
    yield Picture("curves", "Curves", caption, figure)


def _trace(found: data.Curves, fate: data.Fate) -> Figure:
    """Return all curves of one fate as a line that is interrupted between them."""
    name, color = _LOOKS[fate]
    x: list[float | None] = []
    y: list[float | None] = []
    said: list[str] = []
    for curve in found.curves:
        if curve.fate == fate:
            x += [*numbers(curve.steps), None]
            y += [*numbers(curve.values), None]
            said += [f"trial {curve.trial.number}"] * (len(curve.steps) + 1)
    line = {"color": color, "width": 1.0}
    marker = {"color": color, "size": 4}
    return {
        "x": x, "y": y, "text": said, "mode": "lines+markers", "name": name, "line": line, "marker": marker,
        "hoverinfo": "x+y+text",
    }  # fmt: skip
