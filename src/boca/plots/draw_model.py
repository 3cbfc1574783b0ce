"""Plots of the model with Matplotlib: slices, a map, the information gap, the hyperparameters.

The marks are those of `draw_trials`: discs at the target, triangles below it, crosses for failed trials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from boca.domain.errors import one_of
from boca.domain.space import FloatArray
from boca.domain.words import point
from boca.plots import model_data as data
from boca.plots.axis import Marks, Note, placed
from boca.plots.canvas import COLOR_MAP, edges, empty, mark_area, model_axes, new_axes, plain, set_axis, whole_ticks
from boca.plots.model_data import BAND
from boca.plots.study import study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Which = Literal["bandwidths", "scales"]

_BLUE, _ORANGE = "#0072B2", "#D55E00"  # the color-blind can tell them apart
_COLORS = ("#000000", _BLUE, _ORANGE, "#009E73", "#7F7F7F", "#CC79A7")
_DASHES: tuple[Any, ...] = ("-", (0, (6, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (8, 1, 2, 1)))
_MAX_OPTIONS = 48  # characters of the options in a legend
_LARGEST_RING = 400.0  # area of the ring of a fidelity that was queried often
_MANY = 1000  # marks, whose edges are then thin
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


# Along parameters -------------------------------------------------------------------------------------------------


def slices(
    source: object, name: str | None = None, *, at: Mapping[str, Any] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the posterior at the target along one parameter, with the trials at all fidelities.

    Without a name, along the parameter with the shortest length scale.  The other parameters are as at the recommended
    point, or as `at` says.  The trials are those with the same options; each stands at its own value of the parameter,
    whatever its other numbers are.
    """
    seen = study(source)
    ax = model_axes(ax, seen)
    found = data.slices(seen, name, at=at)
    ax.set(xlabel=name and plain(name), ylabel="value")
    if isinstance(found, Note):
        return empty(ax, found)
    low, high = found.mean - BAND * found.std, found.mean + BAND * found.std
    label = f"f at the target: mean ± {BAND:g} std"
    if found.axis.scale == "choice":
        ax.errorbar(
            found.position, found.mean, BAND * found.std, fmt="D", color=_BLUE, capsize=6, zorder=3, label=label
        )
    else:
        ax.fill_between(found.position, low, high, color="0.85", linewidth=0)
        ax.plot(found.position, found.mean, color=_BLUE, label=label, zorder=5)  # above the trials, which may be many
    _results(ax, found.marks.along(found.axis), found.marks)
    set_axis(ax, "x", found.axis)
    if found.useful is not None:
        ax.set_ylim(found.useful.low, found.useful.high)
    if found.options:
        ax.legend(fontsize="small", title=plain(f"with {point(found.options)}", _MAX_OPTIONS), title_fontsize="small")
    else:
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
            norm=_greys(np.log(marks.cost[told])),
            marker="^",
            s=mark_area(24, len(across)),
            edgecolors="0.3",
            linewidths=0.5 if len(across) < _MANY else 0.2,
            label="trial below the target, expensive ones darker",
        )
    if at.any():
        ax.scatter(
            across[at],
            marks.value[at],
            c="black",
            marker="o",
            s=mark_area(26, len(across)),
            label="trial at the target",
        )
    if marks.failed.any():
        foot = ax.get_xaxis_transform()
        y = np.full(int(marks.failed.sum()), 0.02)
        ax.scatter(across[marks.failed], y, c="black", marker="x", s=24, transform=foot, label="failed trial")


def _greys(costs: FloatArray) -> Any:
    """Return greys between white, the page, and black, the target."""
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
    """Draw the posterior mean at the target over two parameters, with the trials at all fidelities.

    Lines join points of equal mean, dotted ones points of equal deviation, with their values; a star is the recommended
    point.

    Args:
        source: An `Optimizer`, a `Result` or what `load` returns.
        x: The parameter on the horizontal axis; None for the one with the shortest length scale.
        y: The parameter on the vertical axis; None for the one with the next shortest.
        at: Values for the other parameters; those not named are as at the recommended point.
        ax: Where to draw; None for new axes.
    """
    seen = study(source)
    ax = model_axes(ax, seen)
    found = data.map2d(seen, x, y, at=at)
    ax.set(xlabel=x and plain(x), ylabel=y and plain(y))
    if isinstance(found, Note):
        return empty(ax, found)
    borders = (edges(found.x, found.x_position), edges(found.y, found.y_position))
    low, high = (None, None) if found.useful is None else (found.useful.low, found.useful.high)
    mesh = ax.pcolormesh(*borders, found.mean, cmap=COLOR_MAP, shading="flat", rasterized=True, vmin=low, vmax=high)
    _lines(ax, found)
    across, up = found.marks.along(found.x), found.marks.along(found.y)
    for where, marker, face, edge in (
        (~found.marks.at_target & ~found.marks.failed, "^", "white", "black"),
        (found.marks.at_target & ~found.marks.failed, "o", "black", "white"),
        (found.marks.failed, "X", "white", "black"),
    ):
        ax.scatter(
            across[where],
            up[where],
            marker=marker,
            s=mark_area(24, len(across)),
            c=face,
            edgecolors=edge,
            linewidths=0.8,
        )
    if seen.recommendation is not None:
        best = [placed(axis.positions, axis.name, [seen.recommendation.x]) for axis in (found.x, found.y)]
        ax.scatter(best[0], best[1], marker="*", s=170, c="white", edgecolors="black", linewidths=0.9, zorder=5)
    set_axis(ax, "x", found.x)
    set_axis(ax, "y", found.y)
    ax.figure.colorbar(
        mesh, ax=ax, label="mean of f at the target", extend="neither" if found.useful is None else "both"
    )
    return ax


def _lines(ax: Axes, found: data.Map) -> None:
    """Draw lines of equal mean and of equal deviation with their values, unless an axis has no order."""
    from matplotlib.patheffects import AbstractPathEffect, withStroke

    if "choice" in (found.x.scale, found.y.scale):
        return
    halo: list[AbstractPathEffect] = [withStroke(linewidth=2.0, foreground="white", alpha=0.7)]
    mean = found.mean if found.useful is None else np.clip(found.mean, found.useful.low, found.useful.high)
    for moment, count, style, words in ((mean, 6, "solid", "%.3g"), (found.std, 3, "dotted", "±%.2g")):
        if not np.ptp(moment) > 1e-9 * np.max(np.abs(moment)):  # the same everywhere
            continue
        lines = ax.contour(
            found.x_position, found.y_position, moment, count, colors="black", linewidths=0.8, linestyles=style
        )
        lines.set_path_effects(halo)  # readable on dark and on light
        for label in ax.clabel(lines, fontsize="x-small", fmt=words):
            label.set_path_effects(halo)


# Along fidelities -------------------------------------------------------------------------------------------------


def information_gap(
    source: object, name: str | None = None, *, number: int | None = None, ax: Axes | None = None
) -> Axes:
    """Draw what a query leaves unknown of f along one fidelity, from 0 at the target to 1, and what was queried.

    The curve is that of the last decision by a model, or of trial `number`.  It has the other fidelities at the
    target, so a trial in which these were lower too lies above the curve.
    """
    seen = study(source)
    ax = model_axes(ax, seen)
    found = data.information_gap(seen, name, number=number)
    ax.set(xlabel=name and plain(name), ylabel="information gap ξ", ylim=(-0.05, 1.05))
    if isinstance(found, Note):
        return empty(ax, found)
    style = "D" if found.axis.scale == "choice" else "-"
    ax.plot(found.position, found.xi, style, color="black", label="other fidelities at the target")
    if found.marks.trials:
        across = found.marks.along(found.axis)
        points = np.column_stack([across, found.queried])
        places, counts = np.unique(np.round(points, 12), axis=0, return_counts=True)
        ax.scatter(
            places[:, 0],
            places[:, 1],
            s=np.minimum(18.0 * counts, _LARGEST_RING),
            facecolors="none",
            edgecolors=_ORANGE,
            linewidths=1.2,
            label="trial",
            zorder=3,
        )
    set_axis(ax, "x", found.axis)
    ax.legend(fontsize="small")
    if not ax.get_title():
        ax.set_title(found.sentence, fontsize="small", color="0.35", wrap=True)
    return ax


# Over the trials --------------------------------------------------------------------------------------------------


def hyperparameters(source: object, which: Which = "bandwidths", *, ax: Axes | None = None) -> Axes:
    """Draw the length scales behind the decisions, trial by trial; with "scales", the deviations of f and of the noise.

    Length scales are in units of the unit cube, before any shrinking; dotted lines are the bounds between which they
    are learned.  Marks are refits.
    """
    one_of(which, get_args(Which), "which")
    seen = study(source)
    ax = new_axes(ax)
    found = data.hyperparameters(seen)
    is_deviation = which == "scales"
    ax.set(xlabel="trial", ylabel="standard deviation, in units of the value" if is_deviation else "length scale")
    if isinstance(found, Note):
        return empty(ax, found)
    ax.set_yscale("log")
    if is_deviation:
        lines = {"f": found.signal, "noise": found.noise}
    else:
        lines = {
            f"{'fidelity' if name in found.fidelities else 'parameter'} {plain(name)}": values
            for name, values in found.length_scales.items()
        }
    for i, (label, values) in enumerate(lines.items()):
        color, line, marker = (looks[i % len(looks)] for looks in (_COLORS, _DASHES, _MARKERS))
        refits = np.flatnonzero(found.refit).tolist()
        ax.plot(
            found.numbers,
            values,
            color=color,
            linestyle=line,
            marker=marker,
            markevery=refits,
            markersize=4,
            label=label,
        )
    for bound in () if is_deviation else found.bounds or ():
        ax.axhline(bound, color="0.6", linestyle=":", linewidth=0.9, zorder=0)
    whole_ticks(ax.xaxis)
    ax.legend(fontsize="small", ncols=1 + len(lines) // 8)
    return ax
