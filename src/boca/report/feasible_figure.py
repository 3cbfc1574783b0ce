"""The map of feasibility in the report, and failures by cause."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from boca.domain.failure_regions import where_trials_fail
from boca.domain.words import text
from boca.plots import feasible_data as data
from boca.plots.axis import Note
from boca.plots.study import StudyView
from boca.report.traces import Figure, Picture, axis_of, chosen, figure_of, numbers, points_of

_MOST_CAUSES = 12
_MAX_CAUSE = 160  # characters


def feasible_map(study: StudyView) -> Iterator[Picture]:
    """Yield the map if there is something to say: a limit, or a failed trial."""
    if not study.problem.subject_to and not any(t.state == "failed" for t in study.history):
        return
    caption = (
        "How likely a trial at the target completes within every limit, over the two parameters along which that "
        "changes most, the others as recommended. Crosses are failed trials, open diamonds complete ones beyond a "
        "limit."
    )
    found = data.feasible_map(study)
    yield Picture("feasible", "Map of feasibility", caption, found if isinstance(found, Note) else _map(found))


def _map(found: data.FeasibleMap) -> Figure:
    words = [[f"feasible with probability {p:.2g}" for p in row] for row in found.probability]
    heat: Figure = {
        "type": "heatmap",
        "x": numbers(found.x_position),
        "y": numbers(found.y_position),
        "z": [numbers(row) for row in found.probability],
        "text": words,
        "hoverinfo": "text",
        "colorscale": "Cividis",
        "zmin": 0.0,
        "zmax": 1.0,
        "colorbar": {"title": {"text": "probability"}, "thickness": 10},
    }
    return figure_of([heat, *_marks(found)], x=axis_of(found.x), y=axis_of(found.y), legend=False)


def _marks(found: data.FeasibleMap) -> Iterator[Figure]:
    across, up = found.marks.along(found.x), found.marks.along(found.y)
    for where, symbol, color, edge in (
        (~found.marks.failed & ~found.infeasible, "circle", "black", "white"),
        (found.infeasible, "diamond-open", "#D55E00", "#D55E00"),
        (found.marks.failed, "x", "#D55E00", "white"),
    ):
        if where.any():
            marker = {"symbol": symbol, "color": color, "size": 8, "line": {"color": edge, "width": 1}}
            yield points_of(across[where], up[where], chosen(found.marks.trials, where), name="trials", marker=marker)


def causes(study: StudyView) -> list[tuple[str, str]]:
    """Return why trials failed and how many for each reason, the most frequent first, and where they fail."""
    failed = [trial for trial in study.history if trial.state == "failed"]
    counted = Counter(text(trial.reason or "no reason was given", _MAX_CAUSE) for trial in failed).most_common()
    rows = [(said, _trials(count)) for said, count in counted[:_MOST_CAUSES]]
    if len(counted) > _MOST_CAUSES:
        rest = sum(count for _, count in counted[_MOST_CAUSES:])
        rows.append((f"{len(counted) - _MOST_CAUSES} other reasons", _trials(rest)))
    where = where_trials_fail(study.problem, study.history)
    return rows + ([("where", where)] if where else [])


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
