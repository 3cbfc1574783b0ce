"""Which parameters matter, with Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boca.plots.axis import Note
from boca.plots.canvas import empty, middle_cut, model_axes, plain
from boca.plots.importance_data import INTERVAL, Importance, Share
from boca.plots.importance_data import importance as indices
from boca.plots.study import study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_ROWS = 20  # parameters; the others matter less
_ROW = 0.26  # inches of one parameter, in a figure of its own
_MARKERS = ("^", "s", "D")  # of the views below the target
_INK, _BAR, _OTHER = "black", "0.8", "#0072B2"


def importance(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw which parameters matter: their first-order and total Sobol indices, from the model.

    A total index is the share of the variance of f over the whole space that remains when all other parameters are
    known; a first-order index is the share that the parameter explains alone.  What lies between them are
    interactions.  Lines are intervals of 90 % of the draws from the model.  Marks are the total indices of the function
    at a lower fidelity.  If the model warps the values, the shares are those of warped values.
    """
    seen = study(source)
    is_new = ax is None
    ax = model_axes(ax, seen)
    ax.set(xlabel="share of the variance of f")
    found = indices(seen)
    if isinstance(found, Note):
        return empty(ax, found)
    _bars(ax, found)
    if is_new:
        height = 2.0 + _ROW * min(len(found.names), MAX_ROWS)
        ax.figure.set_size_inches(6.4, max(height, 3.0))  # type: ignore[union-attr]
    return ax


def _bars(ax: Axes, found: Importance) -> None:
    count = min(len(found.names), MAX_ROWS)
    rows = np.arange(count, dtype=float)
    at_target, *others = found.views
    total, first = at_target.total, at_target.first
    ax.barh(rows, total.middle[:count], 0.62, color=_BAR, edgecolor="0.45", linewidth=0.6, label="total, at the target")
    ax.barh(rows, first.middle[:count], 0.3, color="0.25", label="first-order, at the target")
    if found.has_interval:
        _interval(ax, rows, total, _INK)
    for i, view in enumerate(others):
        off = 0.42 - 0.84 * (i + 1) / (len(others) + 1) if len(others) > 1 else 0.2
        marker = _MARKERS[i % len(_MARKERS)]
        label = f"total, {plain(view.words, 40)}"
        ax.plot(
            view.total.middle[:count], rows + off, marker, color="white", markeredgecolor=_OTHER, ms=5.5, label=label
        )
        _interval(ax, rows + off, view.total, _OTHER, width=0.9)
    names = [plain(middle_cut(name)) for name in found.names[:count]]
    ax.set_yticks(rows, names)
    ax.set(xlim=(0.0, 1.0), ylim=(count - 0.4, -0.6))
    left = len(found.names) - count
    notes = ["f warped, as the model sees it"] if found.is_warped else []
    notes += [f"lines: {INTERVAL:.0%} of the draws"] if found.has_interval else []
    notes += [f"{left} parameters that matter less are left out"] if left else []
    ax.set_xlabel("\n".join(["share of the variance of f", "; ".join(notes)]))
    ax.legend(fontsize="small", loc="lower left", bbox_to_anchor=(-0.01, 1.0), ncols=2, frameon=False)


def _interval(ax: Axes, rows: object, share: Share, color: str, width: float = 1.2) -> None:
    count = len(np.atleast_1d(np.asarray(rows)))
    ax.hlines(rows, share.low[:count], share.high[:count], colors=color, linewidths=width, zorder=3)  # type: ignore[arg-type]
