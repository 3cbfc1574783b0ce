"""The pictures themselves: what `data.py` computed, drawn so that it can be read in print without colour too.

Trials at the target are black discs and those at lower fidelities triangles, lighter where they were cheaper; failures
are crosses at the foot.  Colour maps go from dark to light.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from boca.domain.errors import InvalidInput, one_of
from boca.domain.space import FloatArray, finite_number
from boca.plots import data
from boca.plots.data import BAND, Axis, Marks, Note
from boca.plots.study import StudyView, study
from boca.render import text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Which = Literal["bandwidths", "scales"]

_MAP = "cividis"
_LINES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (8, 1, 2, 1)))
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_INKS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#7F7F7F", "#CC79A7")
_MOST_TICKS = 16  # options named on an axis
_DIRECTIONS = {"maximize": "more is better", "minimize": "less is better"}


# Money ------------------------------------------------------------------------------------------------------------


def progress(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw the best value at the target against what was spent; the curve starts at the first result there."""
    seen = study(source)
    ax = _axes(ax)
    found = data.progress(seen)
    ax.set(xlabel=_spent(seen), ylabel=f"best at the target ({_DIRECTIONS[seen.problem.direction]})")
    if isinstance(found, Note):
        return _empty(ax, found)
    _staircase(ax, found, "a result at the target")
    return ax


def regret(source: object, optimum: float, *, ax: Axes | None = None) -> Axes:
    """Draw how far the best at the target falls short of a known optimum; on a log axis where it always does."""
    seen = study(source)
    best = finite_number(optimum, "optimum")
    ax = _axes(ax)
    found = data.regret(seen, best)
    ax.set(xlabel=_spent(seen), ylabel="regret at the target")
    if isinstance(found, Note):
        return _empty(ax, found)
    _staircase(ax, found, "a result at the target")
    if np.all(found.best > 0) and np.all(found.value > 0):
        ax.set_yscale("log")
    return ax


def _staircase(ax: Axes, found: data.BestSoFar, label: str) -> None:
    ax.step(found.spent, found.best, where="post", color="black", label="the best so far")
    ax.plot(found.at, found.value, linestyle="none", marker="o", color="0.55", markersize=4, label=label)
    ax.set_xlim(left=0.0)
    ax.legend(fontsize="small")


def fidelities(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw the fidelity of every trial, dearer ones darker; several fidelities lie in lanes above each other."""
    seen = study(source)
    ax = _axes(ax)
    found = data.fidelities(seen)
    ax.set(xlabel="trial", ylabel="fidelity")
    if isinstance(found, Note):
        return _empty(ax, found)
    numbers = np.array([t.number for t in found.marks.trials])
    if len(found.axes) == 1:
        (axis,) = found.axes
        _set_axis(ax, "y", axis)
        ax.axhline(float(axis.positions([found.target[axis.name]])[0]), color="0.6", linewidth=0.8, zorder=0)
        points = _costs(ax, numbers, found.marks.along(axis), found.marks)
    else:
        heights = [_lane(ax, j, axis, found) for j, axis in enumerate(found.axes)]
        points = [_costs(ax, numbers, height, found.marks) for height in heights][-1]
    _whole_ticks(ax.xaxis)
    ax.figure.colorbar(points, ax=ax, label=found.unit)
    return ax


def _lane(ax: Axes, j: int, axis: Axis, found: data.Fidelities) -> FloatArray:
    """Draw one lane's frame, its name and its ends, and return the heights of the trials in it."""
    bottom = 1.25 * (len(found.axes) - 1 - j)
    unit = axis.parameter.to_unit
    heights = bottom + unit([t.z[axis.name] for t in found.marks.trials])
    marked = [axis.parameter.from_unit(0.0), axis.parameter.from_unit(1.0), found.target[axis.name]]
    ticks = dict(zip((bottom + unit(marked)).tolist(), (text(value, 12) for value in marked), strict=True))
    every = {**dict(zip(ax.get_yticks().tolist(), _tick_labels(ax), strict=True)), **ticks} if j else ticks
    ax.set_yticks(list(every), list(every.values()))
    ax.axhline(bottom + float(unit([found.target[axis.name]])[0]), color="0.6", linewidth=0.8, zorder=0)
    ax.text(0.01, bottom + 1.04, _words(axis.name), transform=ax.get_yaxis_transform(), fontsize="small")
    ax.set_ylim(-0.1, 1.25 * len(found.axes))
    return np.asarray(heights)


def _tick_labels(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_yticklabels()]


def _costs(ax: Axes, across: FloatArray, up: FloatArray, marks: Marks) -> Any:
    """Draw trials coloured by cost: discs at the target, triangles below it, crosses where they failed."""
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
            cmap=f"{_MAP}_r",
            marker=marker,
            s=26,
            edgecolors="black",
            linewidths=0.5,
        )
    ax.scatter(across[marks.failed], up[marks.failed], c="black", marker="x", s=26, linewidths=1.0)
    return points


# The model --------------------------------------------------------------------------------------------------------


def slices(
    source: object, name: str | None = None, *, at: Mapping[str, Any] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the posterior at the target along one parameter, with the trials of all fidelities.

    Without a name, along the parameter with the shortest bandwidth.  The other parameters are as at the recommended
    point, or as `at` says; trials lie where their own value of the parameter is, wherever the others are.
    """
    seen = study(source)
    ax = _model_axes(ax, seen)
    found = data.slices(seen, name, at=at)
    ax.set(xlabel=name and _words(name), ylabel="value")
    if isinstance(found, Note):
        return _empty(ax, found)
    low, high = found.mean - BAND * found.std, found.mean + BAND * found.std
    label = f"f at the target: mean ± {BAND:g} std"
    if found.axis.kind == "choice":
        ax.errorbar(
            found.position, found.mean, BAND * found.std, fmt="D", color="#0072B2", capsize=6, zorder=3, label=label
        )
    else:
        ax.fill_between(found.position, low, high, color="0.85", linewidth=0)
        ax.plot(found.position, found.mean, color="#0072B2", label=label)
    _results(ax, found.marks.along(found.axis), found.marks)
    _set_axis(ax, "x", found.axis)
    ax.legend(fontsize="small")
    return ax


def _results(ax: Axes, across: FloatArray, marks: Marks) -> None:
    """Draw values at their place on one axis."""
    told = np.isfinite(marks.value)
    below, at = told & ~marks.at_target, told & marks.at_target
    if below.any():
        ax.scatter(
            across[below],
            marks.value[below],
            c=np.log(marks.cost[below]),
            cmap="Greys",
            norm=_shades(np.log(marks.cost[told])),
            marker="^",
            s=24,
            edgecolors="0.3",
            linewidths=0.5,
            label="a trial below the target, dearer ones darker",
        )
    if at.any():
        ax.scatter(across[at], marks.value[at], c="black", marker="o", s=26, label="a trial at the target", zorder=4)
    if marks.failed.any():
        foot = ax.get_xaxis_transform()
        y = np.full(int(marks.failed.sum()), 0.02)
        ax.scatter(across[marks.failed], y, c="black", marker="x", s=24, transform=foot, label="a trial that failed")


def _shades(costs: FloatArray) -> Any:
    """Return greys that leave white and black to others."""
    from matplotlib.colors import Normalize

    low, high = float(costs.min()), float(costs.max())
    width = high - low or 1.0
    return Normalize(low - 0.1 * width, high + 0.2 * width)


def map2d(
    source: object,
    x: str | None = None,
    y: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the posterior mean at the target over two parameters, with the trials of all fidelities.

    Without names, over the two with the shortest bandwidths.  Lines join points of equal deviation; a star is the
    recommended point.
    """
    seen = study(source)
    ax = _model_axes(ax, seen)
    from matplotlib.patheffects import AbstractPathEffect, withStroke

    found = data.map2d(seen, x, y, at=at)
    ax.set(xlabel=x and _words(x), ylabel=y and _words(y))
    if isinstance(found, Note):
        return _empty(ax, found)
    edges = (_edges(found.x, found.x_position), _edges(found.y, found.y_position))
    mesh = ax.pcolormesh(*edges, found.mean, cmap=_MAP, shading="flat", rasterized=True)
    if "choice" not in (found.x.kind, found.y.kind) and np.ptp(found.std) > 1e-9 * np.max(found.std):
        lines = ax.contour(found.x_position, found.y_position, found.std, 4, colors="black", linewidths=0.7)
        around: list[AbstractPathEffect] = [
            withStroke(linewidth=2.0, foreground="white", alpha=0.7)
        ]  # to be seen on dark and on light
        lines.set_path_effects(around)
        for label in ax.clabel(lines, fontsize="x-small", fmt="±%.2g"):
            label.set_path_effects(around)
    across, up = found.marks.along(found.x), found.marks.along(found.y)
    for where, marker, face, edge in (
        (~found.marks.at_target & ~found.marks.failed, "^", "white", "black"),
        (found.marks.at_target & ~found.marks.failed, "o", "black", "white"),
        (found.marks.failed, "X", "white", "black"),
    ):
        ax.scatter(across[where], up[where], marker=marker, s=24, c=face, edgecolors=edge, linewidths=0.8)
    if seen.recommendation is not None:
        best = [axis.positions([seen.recommendation.x[axis.name]]) for axis in (found.x, found.y)]
        ax.scatter(best[0], best[1], marker="*", s=170, c="white", edgecolors="black", linewidths=0.9, zorder=5)
    _set_axis(ax, "x", found.x)
    _set_axis(ax, "y", found.y)
    ax.figure.colorbar(mesh, ax=ax, label="mean of f at the target")
    return ax


def information_gap(
    source: object, name: str | None = None, *, number: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what a query leaves unknown of f, from 0 at the target to 1, along one fidelity, and what was bought.

    The curve is that of the last decision by a model, or of trial `number`; the other fidelities are at the target, so
    that trials that had those lower too lie above the curve.
    """
    seen = study(source)
    ax = _model_axes(ax, seen)
    found = data.information_gap(seen, name, number=number)
    ax.set(xlabel=name and _words(name), ylabel="information gap ξ", ylim=(-0.05, 1.05))
    if isinstance(found, Note):
        return _empty(ax, found)
    style = "D" if found.axis.kind == "choice" else "-"
    ax.plot(found.position, found.xi, style, color="black", label="others at the target")
    if found.marks.trials:
        across = found.marks.along(found.axis)
        points = np.column_stack([across, found.bought])
        places, counts = np.unique(np.round(points, 12), axis=0, return_counts=True)
        ax.scatter(
            places[:, 0],
            places[:, 1],
            s=18.0 * counts,
            facecolors="none",
            edgecolors="#D55E00",
            linewidths=1.2,
            label="bought",
            zorder=3,
        )
    _set_axis(ax, "x", found.axis)
    ax.legend(fontsize="small")
    return ax


def hyperparameters(source: object, which: Which = "bandwidths", *, ax: Axes | None = None) -> Axes:
    """Draw the bandwidths behind the decisions over time, or, with "scales", the deviations of f and of the noise.

    Bandwidths are in units of the unit cube, before any shrinking; dotted lines are the bounds between which they are
    learned.  Marks are refits.
    """
    one_of(which, get_args(Which), "which")
    seen = study(source)
    ax = _axes(ax)
    found = data.hyperparameters(seen)
    ax.set(xlabel="trial", ylabel="bandwidth" if which == "bandwidths" else "deviation, in units of the value")
    if isinstance(found, Note):
        return _empty(ax, found)
    ax.set_yscale("log")
    if which == "scales":
        lines = {"f": found.signal, "noise": found.noise}
    else:
        lines = {
            f"{'fidelity' if name in found.fidelities else 'parameter'} {_words(name)}": values
            for name, values in found.bandwidths.items()
        }
    for i, (label, values) in enumerate(lines.items()):
        ink, line, marker = (some[i % len(some)] for some in (_INKS, _LINES, _MARKERS))
        marked = np.flatnonzero(found.refit).tolist()
        ax.plot(
            found.numbers, values, color=ink, linestyle=line, marker=marker, markevery=marked, markersize=4, label=label
        )
    for bound in found.bounds or () if which == "bandwidths" else ():
        ax.axhline(bound, color="0.6", linestyle=":", linewidth=0.9, zorder=0)
    _whole_ticks(ax.xaxis)
    ax.legend(fontsize="small", ncols=1 + len(lines) // 8)
    return ax


# All at once ------------------------------------------------------------------------------------------------------


def parallel_coordinates(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw every complete trial as a line through its parameters, its fidelities and its value.

    Lines at the target are solid, lower fidelities dashed and thin; better values are darker.
    """
    seen = study(source)
    ax = _axes(ax)
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    found = data.parallel_coordinates(seen)
    if isinstance(found, Note):
        return _empty(ax, found)
    places = np.arange(len(found.columns), dtype=float)
    heights = np.column_stack([column.position for column in found.columns])  # (n, columns)
    value = found.marks.value
    cmap = f"{_MAP}_r" if seen.problem.direction == "maximize" else _MAP
    shown = ScalarMappable(Normalize(float(value.min()), float(value.max())), cmap)
    for where, style, width in ((~found.marks.at_target, (0, (3, 2)), 0.7), (found.marks.at_target, "-", 1.5)):
        paths = [np.column_stack([places, row]) for row in heights[where]]
        inks = shown.to_rgba(value[where])
        ax.add_collection(LineCollection(paths, colors=inks, linewidths=width, linestyles=[style], alpha=0.9))
    for place, column in zip(places, found.columns, strict=True):
        ax.axvline(float(place), color="black", linewidth=0.8)
        for height, label in column.ticks[:: 1 + len(column.ticks) // _MOST_TICKS]:
            ax.annotate(
                _words(label),
                (float(place), height),
                xytext=(3, 0),
                textcoords="offset points",
                fontsize="x-small",
                va="center",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.5},
            )
    ax.set(xlim=(-0.1, len(places) - 0.6), ylim=(-0.05, 1.05), yticks=[])
    _set_ticks(ax.xaxis, places, [column.name for column in found.columns])
    ax.figure.colorbar(shown, ax=ax, label="value")
    return ax


# Axes -------------------------------------------------------------------------------------------------------------


def _model_axes(given: Axes | None, seen: StudyView) -> Axes:
    """Return axes that say where the model is not quite the study's."""
    ax = _axes(given)
    if seen.caveat is not None:
        ax.set_title(_words(seen.caveat, 300), fontsize="small", color="0.35", wrap=True)
    return ax


def _axes(given: Axes | None) -> Axes:
    try:
        from matplotlib import pyplot as plt
        from matplotlib.axes import Axes as Kind
    except ImportError as error:
        raise InvalidInput("Pictures need Matplotlib. Run `pip install 'boca[plots]'`.") from error
    if given is None:
        return plt.subplots(figsize=(6.4, 4.0), layout="constrained")[1]
    if not isinstance(given, Kind):
        raise InvalidInput(f"ax must be a Matplotlib Axes, or None for a new one; got {given!r}.")
    return given


def _empty(ax: Axes, note: Note) -> Axes:
    """Say why there is nothing to see."""
    words = _words(note.words, 300)
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", wrap=True, color="0.35")
    ax.set(xticks=[], yticks=[])
    return ax


def _spent(seen: StudyView) -> str:
    return f"spent ({seen.ledger.unit})"


def _words(name: str, longest: int = 28) -> str:
    """Return text that Matplotlib shows as it is: a dollar begins no formula, and a long name has an end."""
    return text(name, longest).replace("$", r"\$")


def _set_axis(ax: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Give an axis the name, the range, the scale and the ticks of a parameter."""
    on = ax.xaxis if which == "x" else ax.yaxis
    on.set_label_text(_words(axis.name))
    set_limits = ax.set_xlim if which == "x" else ax.set_ylim
    low, high = axis.ends
    if axis.kind == "choice":
        set_limits(low - 0.5, high + 0.5)
        _set_ticks(on, np.arange(len(axis.options), dtype=float), axis.options)
        return
    if axis.kind == "log":
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
        edge = (high / low) ** 0.02 if np.isfinite(high / low) else 1.0
        set_limits(low / edge, high * edge)
    else:
        edge = 0.02 * (high - low)
        set_limits(low - edge, high + edge)
    if axis.is_whole and axis.kind == "log":
        on.set_major_formatter(lambda value, _: f"{value:g}")
        if high < 10.0 * low:
            on.set_minor_formatter(lambda value, _: f"{value:g}" if value == round(value) else "")
    elif axis.is_whole:
        _whole_ticks(on)


def _whole_ticks(on: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    on.set_major_locator(MaxNLocator(integer=True))


def _set_ticks(on: Any, places: FloatArray, names: Sequence[str]) -> None:
    step = 1 + (len(names) - 1) // _MOST_TICKS
    shown = [_words(name, 16) for name in names[::step]]
    on.set_ticks(places[::step], shown)
    if on.axis_name == "x" and sum(map(len, shown)) > 50:
        on.set_tick_params(rotation=30)


def _edges(axis: Axis, positions: FloatArray) -> FloatArray:  # (m,) -> (m + 1,)
    """Return the borders of cells around positions: half-way on the scale of the axis, and the ends of it."""
    if axis.kind == "choice":
        return np.arange(len(positions) + 1, dtype=float) - 0.5
    if axis.kind == "log":
        middle = np.sqrt(positions[:-1]) * np.sqrt(positions[1:])
    else:
        middle = positions[:-1] + 0.5 * np.diff(positions)
    return np.asarray(np.concatenate([positions[:1], middle, positions[-1:]]), dtype=float)
