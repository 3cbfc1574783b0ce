"""Matplotlib axes for the plots: new or given, empty with a note, and with the range and ticks of a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.space import FloatArray
from boca.domain.words import text
from boca.plots.axis import Axis, Note
from boca.plots.study import StudyView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOR_MAP = "cividis"
_FEW_MARKS = 300  # that are drawn in full
_LEAST_MARK = 0.15  # of the full area
MAX_TICKS = 16  # options named on an axis; beyond, they overlap
_MAX_NOTE = 300  # characters of a note or a title
_MAX_OPTION = 16  # characters of an option on an axis
_MAX_UPRIGHT = 50  # characters of all ticks together that fit side by side


def new_axes(given: Axes | None) -> Axes:
    """Return the given axes, or new ones."""
    if given is None:
        return new_figure(6.4, 4.0).subplots()
    from matplotlib.axes import Axes as Kind

    if not isinstance(given, Kind):
        raise InvalidInput(f"ax must be a Matplotlib Axes, or None for a new one; got {given!r}.")
    return given


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of pyplot with this width and height in inches."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise InvalidInput("Plots need Matplotlib. Run `pip install 'boca[plots]'`.") from error
    return plt.figure(figsize=(width, height), layout="constrained")


def mark_area(full: float, count: int) -> float:
    """Return the area of one of many marks: thousands of full ones would hide each other and the curves."""
    return full * max(_LEAST_MARK, min(1.0, _FEW_MARKS / max(count, 1)))


def model_axes(given: Axes | None, seen: StudyView) -> Axes:
    """Return axes whose title says if the model differs from that of the study."""
    ax = new_axes(given)
    if seen.caveat is not None:
        ax.set_title(plain(seen.caveat, _MAX_NOTE), fontsize="small", color="0.35", wrap=True)
    return ax


def empty(ax: Axes, note: Note) -> Axes:
    """Say why there is nothing to see."""
    words = plain(note.words, _MAX_NOTE)
    ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", va="center", wrap=True, color="0.35")
    ax.set(xticks=[], yticks=[])
    return ax


def plain(name: str, longest: int = 28) -> str:
    """Return text that Matplotlib shows as it is: a dollar starts no formula, and a long name is cut."""
    return text(name, longest).replace("$", r"\$")


def middle_cut(name: str, longest: int = 28) -> str:
    """Return a name without its middle if it is long: names that begin alike can still be told apart."""
    if len(name) <= longest:
        return name
    end = longest // 2 - 1
    return f"{name[: longest - end - 1]}…{name[-end:]}"


def set_axis(ax: Axes, which: Literal["x", "y"], axis: Axis) -> None:
    """Give an axis the name, the range, the scale and the ticks of a parameter."""
    on = ax.xaxis if which == "x" else ax.yaxis
    on.set_label_text(plain(axis.name))
    set_limits = ax.set_xlim if which == "x" else ax.set_ylim
    low, high = axis.ends
    if axis.scale == "choice":
        set_limits(low - 0.5, high + 0.5)
        set_ticks(on, np.arange(len(axis.options), dtype=float), axis.options)
        return
    if axis.scale == "log":
        (ax.set_xscale if which == "x" else ax.set_yscale)("log")
        edge = (high / low) ** 0.02 if np.isfinite(high / low) else 1.0
        set_limits(low / edge, high * edge)
    else:
        edge = 0.02 * (high - low)
        set_limits(low - edge, high + edge)
    if axis.is_whole and axis.scale == "log":
        on.set_major_formatter(lambda value, _: f"{value:g}")
        if high < 10.0 * low:
            on.set_minor_formatter(lambda value, _: f"{value:g}" if value == round(value) else "")
    elif axis.is_whole:
        whole_ticks(on)


def whole_ticks(on: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    on.set_major_locator(MaxNLocator(integer=True))


def set_ticks(on: Any, places: FloatArray, names: Sequence[str]) -> None:
    """Name places on an axis, every second or third of them if there are many."""
    step = 1 + (len(names) - 1) // MAX_TICKS
    shown = [plain(name, _MAX_OPTION) for name in names[::step]]
    on.set_ticks(places[::step], shown)
    if on.axis_name == "x" and sum(map(len, shown)) > _MAX_UPRIGHT:
        on.set_tick_params(rotation=30)


def edges(axis: Axis, positions: FloatArray) -> FloatArray:  # (m,) -> (m + 1,)
    """Return the borders of cells around positions: half-way on the scale of the axis, and the ends of it."""
    if axis.scale == "choice":
        return np.arange(len(positions) + 1, dtype=float) - 0.5
    if axis.scale == "log":
        middle = np.sqrt(positions[:-1]) * np.sqrt(positions[1:])
    else:
        middle = positions[:-1] + 0.5 * np.diff(positions)
    return np.asarray(np.concatenate([positions[:1], middle, positions[-1:]]), dtype=float)
