"""Plots of trials with Matplotlib: progress, regret, fidelities, parallel coordinates.

They can be read in print without color.  Trials at the target are discs and those below it triangles; failed trials
are crosses.  Color maps go from dark to light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from boca.domain.errors import InvalidInput, one_of
from boca.domain.problem import Direction
from boca.domain.space import FloatArray, finite_number
from boca.domain.words import text
from boca.plots import trial_data as data
from boca.plots.axis import Axis, Marks, Note
from boca.plots.canvas import COLOR_MAP, MAX_TICKS, empty, mark_area, middle_cut, new_axes, plain, set_axis, whole_ticks
from boca.plots.progress_data import Band, band
from boca.plots.study import StudyView, study
from boca.plots.window import window

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Scale = Literal["useful", "all", "log"]

_DIRECTIONS = {"maximize": "higher is better", "minimize": "lower is better"}
_INCHES_PER_CHARACTER = 0.075  # of the labels beside an upright axis
_MANY = 1000  # marks, whose edges are then thin
_MAX_NAME = 18  # characters of a name below an axis
_MAX_UPRIGHT = 40  # characters of all names together that fit side by side
_LANE = 1.25  # height of one fidelity among others: its unit range, and room for its name


# Progress ---------------------------------------------------------------------------------------------------------


def progress(source: object, *, scale: Scale = "useful", ax: Axes | None = None) -> Axes:
    """Draw the best value at the target against the budget spent; the curve starts at the first result there.

    Args:
        source: An `Optimizer`, a `Result` or what `load` returns; or a list of them, the runs of which the median is
            drawn, with a band that holds the middle half.
        scale: Of the values. "useful" leaves out results that are far from typical, and says how many: one outlier
            would flatten the curve. "all" shows every result, and "log" does so on a log axis, for positive values.
        ax: Where to draw; None for new axes.
    """
    one_of(scale, get_args(Scale), "scale")
    runs = [study(each) for each in source] if isinstance(source, list | tuple) else [study(source)]
    if not runs:
        raise InvalidInput("source must be a study or a list of at least one; got an empty list.")
    if any(run.problem.objectives for run in runs):
        raise InvalidInput(
            "A best value needs one objective, and this study has several. "
            "Type boca.plots.hypervolume(source), or boca.plots.front(source)."
        )
    seen, ax = runs[0], new_axes(ax)
    direction = seen.problem.direction
    found = data.progress(seen) if len(runs) == 1 else band(runs)
    ax.set(xlabel=_spent(seen), ylabel=f"best at the target ({_DIRECTIONS[direction or 'maximize']})")
    if isinstance(found, Note):
        return empty(ax, found)
    if isinstance(found, Band):
        shown = _band(ax, found)
    else:
        _staircase(ax, found)
        shown = found.best, found.value
    _scale_values(ax, scale, *shown, direction, isinstance(found, Band))
    return ax


def _band(ax: Axes, found: Band) -> tuple[FloatArray, FloatArray]:
    """Draw the median of several runs and the middle half of them; return the median, and all ends of the band."""
    ax.fill_between(found.spent, found.low, found.high, step="post", color="0.82", linewidth=0, label="middle half")
    ax.step(found.spent, found.median, where="post", color="black", label=f"median of {found.runs} runs")
    ax.set_xlim(left=0.0)
    ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, frameon=False)
    ends = np.concatenate([found.low, found.high])
    return found.median, ends[np.isfinite(ends)]


def _scale_values(
    ax: Axes, scale: Scale, best: FloatArray, values: FloatArray, direction: Direction | None, is_band: bool
) -> None:
    if scale == "log":
        low = min(float(each.min()) for each in (best, values) if len(each))
        if not low > 0.0:
            raise InvalidInput(f'scale="log" takes positive values; the lowest is {low:.3g}. Use "useful" or "all".')
        ax.set_yscale("log")
    useful = window(best, values, direction) if scale == "useful" else None
    if useful is not None:
        ax.set_ylim(useful.low, useful.high)
        said = f"{useful.beyond} worse {'result is' if useful.beyond == 1 else 'results are'} outside"
        note = "worse values are outside" if is_band else said
        place = (0.99, 0.02, "bottom") if direction == "maximize" else (0.99, 0.98, "top")
        x, y, side = place
        ax.text(x, y, note, transform=ax.transAxes, ha="right", va=side, fontsize="small", color="0.35")


def regret(source: object, optimum: float, *, ax: Axes | None = None) -> Axes:
    """Draw how far the best at the target falls short of a known optimum; on a log axis if it always does."""
    seen = study(source)
    best = finite_number(optimum, "optimum")
    ax = new_axes(ax)
    found = data.regret(seen, best)
    ax.set(xlabel=_spent(seen), ylabel="regret at the target")
    if isinstance(found, Note):
        return empty(ax, found)
    _staircase(ax, found)
    if np.all(found.best > 0) and np.all(found.value > 0):
        ax.set_yscale("log")
    return ax


def _staircase(ax: Axes, found: data.BestSoFar) -> None:
    ax.step(found.spent, found.best, where="post", color="black", label="best so far")
    ax.plot(
        found.at,
        found.value,
        linestyle="none",
        marker="o",
        color="0.55",
        markersize=4,
        label="trial at the target",
    )
    ax.set_xlim(left=0.0)
    ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, frameon=False)


def _spent(seen: StudyView) -> str:
    return f"budget spent ({data.counted(seen)[0]})"


# Fidelities -------------------------------------------------------------------------------------------------------


def fidelities(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw the fidelity of every trial, expensive ones darker; each of several fidelities has a lane of its own."""
    seen = study(source)
    ax = new_axes(ax)
    found = data.fidelities(seen)
    ax.set(xlabel="trial", ylabel="fidelity")
    if isinstance(found, Note):
        return empty(ax, found)
    numbers = np.array([t.number for t in found.marks.trials])
    if len(found.axes) == 1:
        (axis,) = found.axes
        set_axis(ax, "y", axis)
        ax.axhline(float(axis.positions([found.target[axis.name]])[0]), color="0.6", linewidth=0.8, zorder=0)
        points = _by_cost(ax, numbers, found.marks.along(axis), found.marks)
    else:
        heights = [_lane(ax, j, axis, found) for j, axis in enumerate(found.axes)]
        points = [_by_cost(ax, numbers, height, found.marks) for height in heights][-1]
    whole_ticks(ax.xaxis)
    label = "cost" if found.unit == "cost" else f"cost ({found.unit})"
    ax.figure.colorbar(points, ax=ax, label=label)
    return ax


def _lane(ax: Axes, j: int, axis: Axis, found: data.Fidelities) -> FloatArray:
    """Draw one lane's frame, its name and its ends, and return the heights of the trials in it."""
    bottom = _LANE * (len(found.axes) - 1 - j)
    unit = axis.parameter.to_unit
    heights = bottom + unit([t.z[axis.name] for t in found.marks.trials])
    marked = [axis.parameter.from_unit(0.0), axis.parameter.from_unit(1.0), found.target[axis.name]]
    ticks = dict(zip((bottom + unit(marked)).tolist(), (text(value, 12) for value in marked), strict=True))
    every = {**dict(zip(ax.get_yticks().tolist(), _tick_labels(ax), strict=True)), **ticks} if j else ticks
    ax.set_yticks(list(every), list(every.values()))
    ax.axhline(bottom + float(unit([found.target[axis.name]])[0]), color="0.6", linewidth=0.8, zorder=0)
    ax.text(0.01, bottom + 1.04, plain(axis.name), transform=ax.get_yaxis_transform(), fontsize="small")
    ax.set_ylim(-0.1, _LANE * len(found.axes))
    return np.asarray(heights)


def _tick_labels(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def _by_cost(ax: Axes, across: FloatArray, up: FloatArray, marks: Marks) -> Any:
    """Draw trials colored by cost: discs at the target, triangles below it, crosses if they failed."""
    from matplotlib.colors import LogNorm, Normalize

    low, high = float(marks.cost.min()), float(marks.cost.max())
    norm = LogNorm(low, high) if low > 0 and high > 10.0 * low else Normalize(low, high if high > low else low + 1.0)
    points = None
    for where, marker in ((marks.at_target, "o"), (~marks.at_target, "^")):
        chosen = where & ~marks.failed
        points = ax.scatter(
            across[chosen],
            up[chosen],
            c=marks.cost[chosen],
            norm=norm,
            cmap=f"{COLOR_MAP}_r",
            marker=marker,
            s=mark_area(26, len(across)),
            edgecolors="black",
            linewidths=0.5 if len(across) < _MANY else 0.1,
        )
    ax.scatter(across[marks.failed], up[marks.failed], c="black", marker="x", s=26, linewidths=1.0)
    return points


# All parameters at once -------------------------------------------------------------------------------------------


def parallel_coordinates(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw every complete trial as a line through its parameters, its fidelities and its value.

    The best tenth of the trials, 25 at most, is black, solid at the target and dashed below it; the others are thin and
    grey, better ones darker.  Values that are far from typical stand at the end of their axis.
    """
    seen = study(source)
    is_new = ax is None
    ax = new_axes(ax)
    found = data.parallel_coordinates(seen)
    if isinstance(found, Note):
        return empty(ax, found)
    _lines(ax, found)
    places = np.arange(len(found.columns), dtype=float)
    if is_new:
        ax.figure.set_size_inches(max(6.4, 0.62 * len(places)), 4.0)  # type: ignore[union-attr]
    room = ax.get_position().width * ax.figure.get_figure(root=True).get_size_inches()[0] / len(places)
    longest = max(3, int(room / _INCHES_PER_CHARACTER) - 1)  # a label that is longer runs into the next axis
    for place, column in zip(places, found.columns, strict=True):
        _upright(ax, float(place), column, longest)
    ax.set(xlim=(-0.15, len(places) - 0.5), ylim=(-0.05, 1.05), yticks=[])
    ax.spines[:].set_visible(False)
    names = [plain(middle_cut(column.name, _MAX_NAME)) for column in found.columns]
    is_long = sum(map(len, names)) > _MAX_UPRIGHT
    ax.set_xticks(places, names, rotation=35 if is_long else 0, ha="right" if is_long else "center")
    ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=3, frameon=False)
    return ax


def _lines(ax: Axes, found: data.Parallel) -> None:
    """Draw one line per trial, the best ones last."""
    from matplotlib.collections import LineCollection

    heights = np.column_stack([column.position for column in found.columns])  # (n, columns)
    places = np.arange(heights.shape[1], dtype=float)
    is_best = found.rank > 1.0 - found.best_share
    order = np.argsort(found.rank, kind="stable")
    others = [np.column_stack([places, heights[k]]) for k in order if not is_best[k]]
    greys = [str(round(0.88 - 0.3 * float(found.rank[k]), 3)) for k in order if not is_best[k]]
    if others:
        ax.add_collection(LineCollection(others, colors=greys, linewidths=0.6, label="other trials"))
    for where, style, label in (
        (is_best & ~found.marks.at_target, (0, (3, 2)), "best trials, below the target"),
        (is_best & found.marks.at_target, "-", "best trials, at the target"),
    ):
        paths = [np.column_stack([places, row]) for row in heights[where]]
        if paths:
            lines = LineCollection(paths, colors="black", linewidths=1.0, linestyles=[style], label=label)
            ax.add_collection(lines)


def _upright(ax: Axes, place: float, column: data.Column, longest: int) -> None:
    """Draw one axis, with its numbers on white beside it so that no line runs through them."""
    ax.axvline(place, color="black", linewidth=0.8)
    for height, label in column.ticks[:: 1 + len(column.ticks) // MAX_TICKS]:
        ax.annotate(
            plain(label, longest),
            (place, height),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize="x-small",
            va="center",
            zorder=5,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        )
