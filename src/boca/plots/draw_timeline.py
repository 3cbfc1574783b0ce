"""When every trial ran, and on which worker, with Matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from boca.plots import timeline_data as data
from boca.plots.axis import Note
from boca.plots.canvas import empty, middle_cut, new_axes, plain
from boca.plots.study import study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_LANES = 24  # named at the side; more overlap
_UNITS = ((172_800.0, 86_400.0, "days"), (7_200.0, 3_600.0, "hours"), (120.0, 60.0, "minutes"), (0.0, 1.0, "seconds"))
_KINDS = (  # what, the face, the hatch: they can be told apart without color
    ("below the target", "#A9C6D0", None),
    ("at the target", "#256D85", None),
    ("failed", "#FFFFFF", "xxxx"),
    ("running", "#FFFFFF", None),
)


def timeline(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw when every trial ran, in one lane per worker: what waits, what takes long, and what failed when.

    A trial that was handed out again after its worker died has the bar of its last attempt.
    """
    seen = study(source)
    ax = new_axes(ax)
    found = data.timeline(seen)
    if isinstance(found, Note):
        return empty(ax, found)
    unit, words = next((size, name) for least, size, name in _UNITS if found.span >= least)
    start = (found.began - found.began.min()) / unit
    length = (found.ended - found.began) / unit
    state = np.array([trial.state for trial in found.trials])
    kinds = np.select([state == "failed", state == "running", found.at_target], [2, 3, 1], default=0)
    lane = np.array(found.lane)
    for k, (label, face, hatch) in enumerate(_KINDS):
        chosen = kinds == k
        if chosen.any():
            ax.barh(
                lane[chosen],
                length[chosen],
                left=start[chosen],
                height=0.8,
                color=face,
                edgecolor="0.25",
                linewidth=0.4,
                hatch=hatch,
                label=label,
            )
    ax.set_ylim(len(found.lanes) - 0.5, -0.5)
    step = 1 + (len(found.lanes) - 1) // _MAX_LANES
    places = range(0, len(found.lanes), step)
    ax.set_yticks(list(places), [plain(middle_cut(found.lanes[i])) for i in places])
    ax.set(xlabel=f"{words} since the first trial began", xlim=(0.0, max(found.span / unit, 1e-9)))
    ax.set_title(f"busy {found.utilization:.0%} of the time", fontsize="small", color="0.35", loc="left")
    ax.legend(fontsize="x-small", loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(_KINDS), frameon=False)
    return ax
