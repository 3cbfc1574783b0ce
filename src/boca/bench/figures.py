"""Finished runs as figures: regret against the budget or, if no optimum is known, the best value.

One panel per problem, one curve per method: the mean over seeds of the best so far at the target, with bars of one
standard error at some of its points.  A curve starts when every seed of its method has queried the target; before, a
mean would be over different seeds at every point.

The same runs give the same files, byte for byte, whatever settings of Matplotlib the user has.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from boca import problems
from boca.bench import records
from boca.bench.records import Record, Runs
from boca.bench.table import FLOOR, has_optimum, in_order
from boca.domain.errors import BocaError, InvalidInput
from boca.domain.space import FloatArray
from boca.domain.trial import sign

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

POINTS = 240  # of a curve: more than the pixels of a panel
BARS = 6  # of a curve, at points of its own, so that those of two methods do not cover each other
SHOWN_FROM_SHARE = 0.25  # of the budget, from which on values are worth the space of a linear axis

_WIDTH, _HEIGHT = 7.0, 2.0  # inches: the text of a page, and a row of three panels
_CHARACTER_WIDTH = 0.065  # inches, in the legend
_CHARACTERS_UNDER_PANEL = 36  # in one line, with the font size below
_DPI = 200  # of PNG files, for a screen and for print
_SETTINGS = {
    "svg.hashsalt": "boca",  # names inside the file are random otherwise
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
}

# method -> curve
_Curves: TypeAlias = Mapping[str, "Curve"]


class Style(NamedTuple):
    """How a method looks, also in print without color."""

    color: str
    line: Any
    marker: str
    filled: bool = True


# The colors of Okabe and Ito, which the color-blind can tell apart, without the yellow, which is too pale on paper.
_BLACK, _ORANGE, _SKY, _GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
_BLUE, _VERMILION, _PURPLE, _GREY = "#0072B2", "#D55E00", "#CC79A7", "#7F7F7F"

STYLES = {
    "boca": Style(_BLACK, "-", "o"),
    "boca-paper": Style(_VERMILION, (0, (6, 1.5)), "s"),
    "gp-ucb": Style(_BLUE, (0, (4, 1, 1, 1)), "^"),
    "gp-ei": Style(_SKY, (0, (2, 1)), "v"),
    "mf-gp-ucb": Style(_GREEN, (0, (8, 1, 2, 1)), "D"),
    "mf-sko": Style(_ORANGE, (0, (4, 1, 1, 1, 1, 1)), "P"),
    "random": Style(_GREY, (0, (1, 1)), "X"),
    # hollow: variants of a method that differ in one thing
    "boca-paper-sobol": Style(_PURPLE, (0, (3, 1)), "s", filled=False),
    "boca-learned": Style(_BLACK, (0, (1, 2)), "o", filled=False),
    "boca-paper-c1": Style(_VERMILION, (0, (1, 1, 6, 1)), "p", filled=False),
    "boca-paper-theorem": Style(_VERMILION, (0, (3, 1, 3, 4)), "H", filled=False),
    "mf-gp-ucb-3": Style(_GREEN, (0, (9, 1)), "D", filled=False),
    "mf-sko-3": Style(_ORANGE, (0, (9, 1, 9, 4)), "P", filled=False),
}
_OTHER_COLORS = (_PURPLE, _ORANGE, _GREEN, _VERMILION, _BLUE, _SKY)
_OTHER_MARKERS = ("h", "<", ">", "d", "8", "*")


@dataclass(frozen=True)
class Curve:
    """A mean over seeds and its standard error, which is NaN for a single seed, at points of the budget."""

    spent: FloatArray  # (m,)
    mean: FloatArray  # (m,)
    error: FloatArray  # (m,)


def write(runs: Runs, directory: Path) -> list[Path]:
    """Write regret.png and .svg for problems whose optimum is known, value.png and .svg for the others."""
    style = _matplotlib_style()
    groups = {
        "regret": {problem: by_method for problem, by_method in runs.items() if has_optimum(by_method)},
        "value": {problem: by_method for problem, by_method in runs.items() if not has_optimum(by_method)},
    }
    records.make(directory)
    written = []
    for name, group in groups.items():
        if not group:
            continue
        with style.context(["default", _SETTINGS]):
            figure = draw(group)
            for path in (directory / f"{name}.png", directory / f"{name}.svg"):
                figure.savefig(path, dpi=_DPI, metadata={"Date": None} if path.suffix == ".svg" else None)
                written.append(path)
    return written


def _matplotlib_style() -> Any:
    try:
        import matplotlib.style
    except ImportError as error:
        raise InvalidInput("Figures need Matplotlib. Run `pip install 'boca[plots]'`.") from error
    return matplotlib.style


# Curves -----------------------------------------------------------------------------------------------------------


def grid(runs: Iterable[Record]) -> FloatArray:  # (POINTS,)
    """Return the points of the budget at which all methods on a problem are averaged; the last is all of it."""
    return np.linspace(0.0, max(run["capital"] for run in runs), POINTS + 1)[1:]


def curve(runs: Sequence[Record], points: FloatArray) -> Curve:
    """Average runs of one method: regrets, floored as in the tables, or values if there is no optimum.

    The curve starts at the point from which on every run has queried the target; it is empty if one run never did.
    """
    levels = np.array([_levels(run, points) for run in runs])  # (seeds, m)
    first = int(np.isnan(levels).any(axis=0).sum())  # a run without a value at a point has none before it
    kept = levels[:, first:]
    n = len(runs)
    error = np.std(kept, axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(kept.shape[1], math.nan)
    return Curve(points[first:], np.mean(kept, axis=0), error)


def _levels(run: Record, points: FloatArray) -> FloatArray:  # (m,) -> (m,)
    """Return the regret or the best value of one run at points of the budget; NaN before its first query at z*."""
    steps = np.array(list(records.curve(run))).reshape(-1, 2)
    spent, level = steps.T
    if run["optimum"] is not None:
        level = np.maximum(sign(run["direction"]) * (run["optimum"] - level), FLOOR)
    made = np.searchsorted(spent, points * (1.0 + 1e-9), side="right")  # sums of costs may miss a point by rounding
    return np.concatenate([[math.nan], level])[made]


def bars(curve: Curve, *, floor: float = -math.inf) -> FloatArray:  # (2, m)
    """Return how far the bars reach down and up; none ends below the floor.

    The standard error of positive numbers is at most their mean, so only rounding could take a bar lower.
    """
    return np.array([curve.mean - np.maximum(curve.mean - curve.error, floor), curve.error])


def limits(curves: _Curves, budget: float, turn: float) -> tuple[float, float]:
    """Return the values worth showing on a linear axis, from poor to good; `turn` is -1 if lower is better.

    The poor end is where the slowest of the methods that learn was after a quarter of the budget.  Earlier values, and
    those of random search, can be so far off that the rest would shrink to one line.
    """
    learners = [c for name, c in curves.items() if name != "random"] or list(curves.values())
    early = min(turn * float(c.mean[c.spent >= SHOWN_FROM_SHARE * budget][0]) for c in learners)
    late = max(turn * float(c.mean[-1]) + float(np.nan_to_num(c.error[-1])) for c in curves.values())
    margin = 0.05 * (late - early) or 1.0
    return turn * (early - margin), turn * (late + margin)


# Looks ------------------------------------------------------------------------------------------------------------


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """Return how each method looks, in the order of the legend: those of the library first, others by name."""
    names = in_order(methods, tuple(STYLES))
    others = [name for name in names if name not in STYLES]
    return {name: STYLES[name] if name in STYLES else _other(others.index(name)) for name in names}


def _other(i: int) -> Style:
    color, marker = _OTHER_COLORS[i % len(_OTHER_COLORS)], _OTHER_MARKERS[i % len(_OTHER_MARKERS)]
    return Style(color, (0, (3 + i, 2)), marker, filled=False)


def draw(runs: Runs) -> Figure:
    """Draw one panel per problem and one legend for all, beside the last panel if there is room, else below."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    looks = styles({method for by_method in runs.values() for method in by_method})
    columns = 2 if len(runs) == 4 else min(len(runs), 3)
    rows = math.ceil(len(runs) / columns)
    free = rows * columns - len(runs)
    width = _WIDTH if columns > 1 else _WIDTH / 2
    abreast = max(1, int(width / (0.6 + _CHARACTER_WIDTH * max(map(len, looks)))))  # names in one line of the legend
    below = 0.0 if free else 0.2 * math.ceil(len(looks) / abreast)
    height = rows * (_HEIGHT if columns == 3 else 1.3 * _HEIGHT) + below
    figure = Figure(figsize=(width, height), layout="constrained")
    cells = figure.add_gridspec(rows, columns)
    for i, problem in enumerate(in_order(runs, problems.names())):
        panel = figure.add_subplot(cells[i // columns, i % columns])
        _panel(panel, runs[problem], looks)
        panel.set_title(_title(problem))
        if i % columns == 0:
            panel.set_ylabel("simple regret" if has_optimum(runs[problem]) else "best value")
    handles = [Line2D([], [], label=name, **_line(look)) for name, look in looks.items()]
    if free:
        place = figure.add_subplot(cells[-1, -free:])
        place.axis("off")
        place.legend(handles=handles, loc="center", ncols=min(free, 2), frameon=False)
    else:
        figure.legend(handles=handles, loc="outside lower center", ncols=abreast, frameon=False)
    return figure


def _line(look: Style) -> dict[str, Any]:
    return {
        "color": look.color,
        "linestyle": look.line,
        "linewidth": 1.1,
        "marker": look.marker,
        "markersize": 4,
        "markerfacecolor": look.color if look.filled else "white",
        "markeredgewidth": 0.8,
    }


def _panel(panel: Axes, by_method: Mapping[str, Mapping[int, Record]], looks: Mapping[str, Style]) -> None:
    everything = [run for by_seed in by_method.values() for run in by_seed.values()]
    points = grid(everything)
    found = {name: curve(list(by_method[name].values()), points) for name in looks if name in by_method}
    drawn = {name: c for name, c in found.items() if len(c.spent)}
    floor = FLOOR if has_optimum(by_method) else -math.inf
    for name, c in reversed(drawn.items()):  # the first in the legend is drawn last, on top
        turn = list(looks).index(name) / len(looks)
        _errorbar(panel, c, looks[name], floor=floor, bars_at=_bars_at(len(c.spent), turn))
    notes = [_under(everything[0]["unit"], [len(by_seed) for by_seed in by_method.values()])]
    if drawn and has_optimum(by_method):
        _regret_axis(panel, drawn)
    elif drawn:
        notes += _value_axis(panel, drawn, everything[0])
    if len(drawn) < len(found):
        notes.append(f"no query at z* in a run of {', '.join(name for name in found if name not in drawn)}")
    panel.set_xlim(0.0, points[-1])
    panel.set_xlabel("\n".join(textwrap.fill(note, _CHARACTERS_UNDER_PANEL) for note in notes))
    panel.grid(linewidth=0.3, alpha=0.6)


def _bars_at(length: int, turn: float) -> tuple[int, int]:
    """Return the first point with a bar and the distance to the next; methods take turns along the grid."""
    every = POINTS // BARS
    return (int((0.5 + turn) * every) - (POINTS - length)) % every, every


def _errorbar(panel: Axes, c: Curve, look: Style, *, floor: float, bars_at: tuple[int, int]) -> None:
    panel.errorbar(
        c.spent,
        c.mean,
        yerr=bars(c, floor=floor),
        errorevery=bars_at,
        markevery=bars_at,
        drawstyle="steps-post",
        elinewidth=0.7,
        capsize=1.5,
        capthick=0.7,
        **_line(look),
    )


def _under(unit: str, seeds: Sequence[int]) -> str:
    what = "budget in cost units" if unit == "cost" else "budget in seconds"
    counts = str(max(seeds)) if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
    return f"{what}; {counts} seed{'' if counts == '1' else 's'}"


def _regret_axis(panel: Axes, curves: _Curves) -> None:
    """Show all means; bars that reach down to the floor are cut."""
    panel.set_yscale("log")
    low = min(float(c.mean.min()) for c in curves.values())
    high = max(float(c.mean.max()) for c in curves.values())
    panel.set_ylim(low / 2, high * 2)


def _value_axis(panel: Axes, curves: _Curves, run: Record) -> list[str]:
    """Show the values that matter, and say what is not shown."""
    turn = sign(run["direction"])
    poor, good = limits(curves, run["capital"], turn)
    panel.set_ylim(min(poor, good), max(poor, good))
    cut = any((turn * c.mean < turn * poor).any() for c in curves.values())
    return [f"values {'below' if turn > 0 else 'above'} {poor:.3g} are not shown"] if cut else []


def _title(problem: str) -> str:
    """Return the name, with the dimensions if the library knows them: a real problem may lack its data here."""
    try:
        known = problems.get(problem).problem
    except BocaError:
        return problem
    return f"{problem} (p = {len(known.fidelity)}, d = {len(known.space)})"
