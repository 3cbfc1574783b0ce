"""Plots of several objectives with Matplotlib: the front, and its hypervolume against the budget spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boca.domain.errors import InvalidInput
from boca.plots import front_data as data
from boca.plots.axis import Note
from boca.plots.canvas import empty, new_axes
from boca.plots.study import study

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def front(source: object, *, ax: Axes | None = None, objectives: tuple[str, str] | None = None) -> Axes:
    """Draw the trials in the plane of two objectives, with the front; the border is of what the front dominates.

    With three or four objectives, the plane is one of several: name the two that are wanted.

    Args:
        source: An `Optimizer`, a `Result` or what `load` returns.
        ax: Where to draw; None for new axes.
        objectives: The names of the two objectives; None for the first two.
    """
    seen = study(source)
    found = data.front(seen)
    ax = new_axes(ax)
    if isinstance(found, Note):
        return empty(ax, found)
    plane = _plane(found, objectives)
    below = ~found.at_target
    beyond = found.at_target & ~found.on_front
    ax.set(xlabel=plane.labels[0], ylabel=plane.labels[1])
    if np.any(below):
        ax.scatter(plane.x[below], plane.y[below], marker="^", s=14, color="0.78", label="below the target")
    for kept, fill, label in ((True, "0.55", "dominated"), (False, "none", "not within every limit")):
        here = beyond & (found.feasible == kept)
        if np.any(here):
            ax.scatter(plane.x[here], plane.y[here], s=16, facecolors=fill, edgecolors="0.55", label=label)
    if np.any(found.on_front):
        if len(found.planes) == 1:
            ax.plot(*data.staircase(found, plane, seen), color="black", linewidth=0.8)
        ax.scatter(plane.x[found.on_front], plane.y[found.on_front], s=28, color="black", label="front")
    ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=4, frameon=False)
    return ax


def _plane(found: data.Front, objectives: tuple[str, str] | None) -> data.Plane:
    if objectives is None:
        return found.planes[0]
    for plane in found.planes:
        if set(plane.names) == set(objectives):
            x, y = plane.x, plane.y
            same = tuple(objectives) == plane.names
            return plane if same else data.Plane(plane.names[::-1], plane.labels[::-1], y, x)
    known = [list(plane.names) for plane in found.planes]
    raise InvalidInput(f"objectives is {objectives!r}, and must be one of the pairs {known}.")


def hypervolume(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw the hypervolume of the front against the budget spent: more is better."""
    seen, ax = study(source), new_axes(ax)
    found = data.hypervolume(seen)
    if isinstance(found, Note):
        return empty(ax, found)
    ax.set(xlabel=f"budget spent ({found.unit})", ylabel="hypervolume of the front")
    ax.step(found.spent, found.best, where="post", color="black")
    ax.plot(found.at, found.value, "o", color="black", markersize=3)
    ax.set_xlim(left=0.0)
    ax.set_ylim(bottom=0.0)
    return ax
