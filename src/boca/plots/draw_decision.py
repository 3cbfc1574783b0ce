"""One decision step by step, with Matplotlib."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from boca.domain.errors import InvalidInput
from boca.domain.words import point
from boca.plots import decision_data as data
from boca.plots.axis import Note
from boca.plots.canvas import empty, new_axes, new_figure, plain, set_axis
from boca.plots.study import study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _ORANGE = "#0072B2", "#D55E00"
_MAX_TITLE = 90  # characters of the x and z of a trial


def decision(
    source: object,
    number: int | None = None,
    *,
    name: str | None = None,
    fidelity: str | None = None,
    axes: tuple[Axes, Axes, Axes] | None = None,
) -> tuple[Axes, Axes, Axes]:
    """Draw how one trial was chosen: x by the bound, z by deviation, threshold and cost.

    On the left are the mean and the optimistic bound along one parameter.  On the right is the deviation that a query
    at this x has at every fidelity, beside the threshold above which it is worth its cost, and that cost below it.  The
    declared cost of a stored study is not known: there, costs are assumed to be in proportion to the fidelities.

    Args:
        source: An `Optimizer`, a `Result` or what `load` returns.
        number: The trial; None for the last one that a model chose.
        name: The parameter on the left; None for the one with the shortest length scale.
        fidelity: The fidelity on the right; None for the first.
        axes: Where to draw, three of them; None for a new figure.
    """
    seen = study(source)
    left, right, below = _axes(axes)
    found = data.decision(seen, number, name=name, fidelity=fidelity)
    if isinstance(found, Note):
        for ax in (left, right, below):
            empty(ax, found)
        return left, right, below
    _draw_x(left, found.x, data.better_side(seen))
    if isinstance(found.z, Note):
        empty(right, found.z)
        empty(below, Note(""))
    else:
        _draw_z(right, below, found.z)
    where = plain(point({**found.trial.x, **found.trial.planned}), _MAX_TITLE)
    left.figure.suptitle(f"Trial {found.trial.number}: {where}", fontsize="medium")
    left.set_title(fill(plain(found.reason, 400), 52), fontsize="small", color="0.35", loc="left")
    return left, right, below


def _axes(given: tuple[Axes, Axes, Axes] | None) -> tuple[Axes, Axes, Axes]:
    if given is not None:
        if len(given) != 3:
            raise InvalidInput(f"axes must be three Matplotlib Axes, or None for a new figure; got {given!r}.")
        first, second, third = (new_axes(ax) for ax in given)
        return first, second, third
    figure = new_figure(11.0, 4.8)
    grid = figure.add_gridspec(2, 2, height_ratios=(2, 1))
    left, right = figure.add_subplot(grid[:, 0]), figure.add_subplot(grid[0, 1])
    return left, right, figure.add_subplot(grid[1, 1], sharex=right)


def _draw_x(ax: Axes, found: data.ChoiceOfX, side: str) -> None:
    is_choice = found.axis.scale == "choice"
    mean, bound = ("D", "^" if side == "upper" else "v") if is_choice else ("-", "--")
    ax.plot(found.position, found.mean, mean, color=_BLUE, label="mean of f at the target")
    ax.plot(found.position, found.bound, bound, color="black", label=f"{side} confidence bound")
    if not is_choice:
        ax.fill_between(found.position, found.mean, found.bound, color="0.9", linewidth=0)
    for at_target, marker, face, words in (
        (True, "o", "black", "result at the target"),
        (False, "^", "none", "result below the target"),
    ):
        shown = found.at_target == at_target
        if shown.any():
            ax.scatter(
                found.read[shown],
                found.value[shown],
                s=18,
                marker=marker,
                facecolors=face,
                edgecolors="0.3",
                label=words,
            )
    ax.axvline(found.chosen, color=_ORANGE, linewidth=1.0, zorder=0)
    ax.plot([found.chosen], [found.at_chosen[1]], "*", color=_ORANGE, markeredgecolor="black", ms=13, label="the trial")
    lines = np.concatenate([found.mean, found.bound])
    low, high = float(lines.min()), float(lines.max())
    edge = 0.15 * ((high - low) or 1.0)
    ax.set_ylim(low - edge, high + edge)  # results far away must not flatten the bound
    set_axis(ax, "x", found.axis)
    ax.set_ylabel("value")
    ax.legend(fontsize="x-small")


def _draw_z(ax: Axes, below: Axes, found: data.ChoiceOfZ) -> None:
    is_choice = found.axis.scale == "choice"
    solid, dashed = ("D", "_") if is_choice else ("-", "--")
    ax.plot(found.position, found.tau, solid, color=_BLUE, label="τ: deviation of a query there")
    ax.plot(found.position, found.threshold, dashed, color="black", label="c γ: threshold")
    if not is_choice:
        ax.fill_between(
            found.position,
            found.threshold,
            found.tau,
            where=found.is_candidate.tolist(),
            color="0.88",
            linewidth=0,
            label="worth their cost",
        )
    ax.plot([found.chosen], [found.at_chosen[0]], "*", color=_ORANGE, markeredgecolor="black", ms=13, label="the trial")
    ax.set(ylabel="deviation", ylim=(0.0, None))
    ax.tick_params(labelbottom=False)
    ax.legend(fontsize="x-small")
    below.plot(found.position, found.cost, solid, color="0.3")
    below.plot([found.chosen], [found.at_chosen[1]], "*", color=_ORANGE, markeredgecolor="black", ms=13)
    set_axis(below, "x", found.axis)
    below.set(ylabel="cost, share\nof the target's", ylim=(0.0, None))
    for one in (ax, below):
        one.axvline(found.target, color="0.5", linestyle=":", linewidth=1.0, zorder=0)
        one.axvline(found.chosen, color=_ORANGE, linewidth=1.0, zorder=0)
