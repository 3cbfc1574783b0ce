"""The map of feasibility with Matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from boca.plots.axis import Note
from boca.plots.canvas import COLOR_MAP, edges, empty, new_axes, plain, set_axis
from boca.plots.feasible_data import feasible_map
from boca.plots.study import study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEVELS = (0.1, 0.5, 0.9)  # of the probability, at which lines are drawn


def feasibility(
    source: object,
    x: str | None = None,
    y: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how likely a trial at the target completes within every limit, over two parameters.

    Crosses are failed trials, open diamonds complete ones beyond a limit, discs the others, wherever their other
    parameters are.  Lines join points of equal probability.

    Args:
        source: An `Optimizer`, a `Result` or what `load` returns.
        x: The parameter on the horizontal axis; None for the one along which the probability changes most.
        y: The parameter on the vertical axis; None for the next one.
        at: Values for the other parameters; those not named are as at the recommended point.
        ax: Where to draw; None for new axes.
    """
    seen = study(source)
    ax = new_axes(ax)
    found = feasible_map(seen, x, y, at=at)
    ax.set(xlabel=x and plain(x), ylabel=y and plain(y))
    if isinstance(found, Note):
        return empty(ax, found)
    borders = (edges(found.x, found.x_position), edges(found.y, found.y_position))
    mesh = ax.pcolormesh(*borders, found.probability, cmap=COLOR_MAP, shading="flat", rasterized=True, vmin=0, vmax=1)
    crossed = [level for level in _LEVELS if found.probability.min() < level < found.probability.max()]
    if crossed and "choice" not in (found.x.scale, found.y.scale):
        lines = ax.contour(
            found.x_position, found.y_position, found.probability, levels=crossed, colors="white", linewidths=0.8
        )
        ax.clabel(lines, fontsize="x-small", fmt="%.2g")
    across, up = found.marks.along(found.x), found.marks.along(found.y)
    complete = ~found.marks.failed & ~found.infeasible
    for where, marker, face, edge, label in (
        (complete, "o", "black", "white", "complete, within every limit"),
        (found.infeasible, "D", "none", "#D55E00", "complete, beyond a limit"),
        (found.marks.failed, "X", "#D55E00", "white", "failed"),
    ):
        if where.any():
            ax.scatter(
                across[where], up[where], marker=marker, s=30, c=face, edgecolors=edge, linewidths=0.9, label=label
            )
    set_axis(ax, "x", found.x)
    set_axis(ax, "y", found.y)
    ax.legend(fontsize="x-small")
    ax.figure.colorbar(mesh, ax=ax, label="probability of being feasible at the target")
    return ax
