"""The good set of the theory over a map of f, with the target queries of a study, drawn with Matplotlib."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from boca.domain.space import FloatArray
from boca.domain.trial import sign
from boca.model.posterior import Model
from boca.plots import model_data as data
from boca.plots.axis import Note, placed
from boca.plots.canvas import COLOR_MAP, edges, empty, model_axes, set_axis
from boca.plots.study import StudyView, study
from boca.theory.good_set import GoodSet
from boca.theory.good_set import good_set as good_set_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ORANGE = "#D55E00"


def good_set(
    source: object,
    f: Callable[[Mapping[str, Any]], float] | None = None,
    *,
    x: str | None = None,
    y: str | None = None,
    at: Mapping[str, Any] | None = None,
    rho: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw where the theory expects most target queries of BOCA, and where they went.

    The good set holds the points whose f is within a width of the maximum; the width grows with the information gap of
    the farthest fidelity.  The line is its border in the plane of two parameters; the title has its share of the whole
    domain, and that of the model's target queries in it.  Discs are these queries, wherever their other parameters are.

    Args:
        source: An `Optimizer`, a `Result` or what `load` returns.
        f: The true f at the target without noise; None for the posterior mean.
        x: The parameter on the horizontal axis; None for the one with the shortest length scale.
        y: The parameter on the vertical axis; None for the one with the next shortest.
        at: Values for the other parameters; those not named are as at the recommended point.
        rho: The constant of the theorem; None for the smallest that it allows.
        ax: Where to draw; None for new axes.
    """
    seen = study(source)
    ax = model_axes(ax, seen)
    plane = data.map2d(seen, x, y, at=at)
    if isinstance(plane, Note):
        return empty(ax, plane)
    if not isinstance(seen.model, Model) or not seen.problem.fidelity:
        return empty(ax, Note("The good set needs fidelities and one model of all of them, as Boca has."))
    found = good_set_of(seen, f, rho=rho)
    level = plane.mean if f is None else _values(f, seen, plane)
    borders = (edges(plane.x, plane.x_position), edges(plane.y, plane.y_position))
    mesh = ax.pcolormesh(*borders, level, cmap=COLOR_MAP, shading="flat", rasterized=True)
    _border(ax, plane, level, found, sign(seen.problem.direction))
    queries = [seen.problem.space.from_unit(u) for u in found.queries]
    across, up = (placed(axis.positions, axis.name, queries) for axis in (plane.x, plane.y))
    ax.scatter(across, up, s=26, c="black", edgecolors="white", linewidths=0.8, clip_on=False, zorder=4)
    set_axis(ax, "x", plane.x)
    set_axis(ax, "y", plane.y)
    ax.figure.colorbar(mesh, ax=ax, label="f at the target" if f is not None else "mean of f at the target")
    ax.set_title(_sentence(found), fontsize="small")
    return ax


def _values(f: Callable[[Mapping[str, Any]], float], seen: StudyView, plane: data.Map) -> FloatArray:  # (k, m)
    """Return the true f on the plane, whose other parameters are as at its center."""
    space, names = seen.problem.space, list(seen.problem.space)
    u, v = (axis.parameter.axis(data.MAP_POINTS) for axis in (plane.x, plane.y))
    U = np.repeat(space.to_unit([plane.center]), len(u) * len(v), axis=0)
    U[:, names.index(plane.x.name)] = np.tile(u, len(v))
    U[:, names.index(plane.y.name)] = np.repeat(v, len(u))
    return np.array([f(space.from_unit(each)) for each in space.snap(U)]).reshape(len(v), len(u))


def _border(ax: Axes, plane: data.Map, level: FloatArray, found: GoodSet, better: float) -> None:
    """Draw the border of the set, unless an axis has no order or the border does not cross the plane."""
    if "choice" in (plane.x.scale, plane.y.scale):
        return
    edge = found.best - better * found.width
    if np.min(level) < edge < np.max(level):
        ax.contour(plane.x_position, plane.y_position, level, levels=[edge], colors=_ORANGE, linewidths=1.8)


def _sentence(found: GoodSet) -> str:
    volume = f"Good set: {100.0 * found.volume:.3g} % of the domain"
    if not len(found.queries):
        return f"{volume}; the model has chosen no query at the target yet"
    return f"{volume}, {100.0 * found.share_inside:.0f} % of the model's {len(found.queries)} target queries"
