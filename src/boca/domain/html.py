"""Tables, spaces, problems and trials as small pieces of HTML, for notebooks and reports.

Everything that comes from outside is escaped here.  Nothing has a color of its own, so that it can be read on a light
and on a dark page.  A trial imports this module when it is displayed, and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from boca.domain.words import option, point, readable, text

if TYPE_CHECKING:
    from boca.domain.problem import Problem
    from boca.domain.space import Parameter, Space
    from boca.domain.trial import Trial

MAX_ROWS = 20  # of a history, which is then cut in the middle: a screenful
MAX_COLUMNS = 12  # of parameters and fidelities together, so that a notebook seldom scrolls sideways
_MAX_NAME = 24  # characters of a name or an option in the table of a history
MAX_SENTENCE = 400  # characters of a reason, an error or a warning

_TABLE = "border-collapse:collapse;margin:0.3em 0;color:inherit;font-size:inherit"
_CELL = (
    "text-align:left;padding:0.15em 0.7em 0.15em 0;vertical-align:top;border-bottom:1px solid rgba(128,128,128,0.35)"
)
_DIM = "opacity:0.75"


def history(trials: Sequence[Trial], title: str) -> str:
    """Return a table with one row per trial."""
    if not trials:
        return f"<div>{escape(title)}</div>"
    names = dict.fromkeys(name for trial in trials for name in trial.x)
    parts = [("x", name) for name in names] + [("z", name) for name in trials[0].z]
    parts = [("outcomes", name) for name in dict.fromkeys(n for t in trials for n in t.outcomes)] + parts
    shown, hidden = parts[:MAX_COLUMNS], parts[MAX_COLUMNS:]
    heads = ["trial", "state", "value", "cost", *(text(name, _MAX_NAME) for _, name in shown), "phase"]
    rows = [_row(trial, shown) for trial in ends(trials, MAX_ROWS)]
    more = len(trials) - len(rows)
    if more:
        rows.insert(MAX_ROWS // 2, [f"… {more} more trials …"])
    note = f", {len(hidden)} more columns" if hidden else ""
    return f"<div>{escape(title)}{note}{table(heads, rows)}</div>"


def ends(trials: Sequence[Trial], limit: int) -> list[Trial]:
    """Return the trials, or the first and the last of them if there are more than the limit."""
    if len(trials) <= limit:
        return list(trials)
    return [*trials[: limit // 2], *trials[len(trials) - limit // 2 :]]


def _row(trial: Trial, parts: Iterable[tuple[str, str]]) -> list[str]:
    points = ((part, getattr(trial, part), name) for part, name in parts)
    values = (
        (text if part == "outcomes" else option)(point[name], _MAX_NAME) if name in point else ""
        for part, point, name in points
    )
    return [str(trial.number), trial.state, text(trial.value), readable(trial.cost), *values, trial.phase]


def trial(one: Trial) -> str:
    """Return one trial and why it was chosen."""
    rows = [("x", point(one.x)), ("z", point(one.z)), ("value", text(one.value)), ("cost", readable(one.cost))]
    rows += [("outcomes", point(one.outcomes)), ("notes", text(point(one.notes), MAX_SENTENCE))]
    rows += [("seconds", "" if one.seconds is None else readable(one.seconds))]
    rows += [("failed with", text(one.reason, MAX_SENTENCE)), ("why", text(one.why.get("reason"), MAX_SENTENCE))]
    known = [key for key in ("mean", "std", "ucb", "beta", "xi", "gamma", "c") if key in one.why]
    rows += [("in numbers", ", ".join(f"{key} = {readable(one.why[key])}" for key in known))]
    return f"<div>Trial {one.number}, {escape(one.state)}{table([], [row for row in rows if row[1]])}</div>"


def space(parameters: Space, title: str) -> str:
    """Return a table with one row per parameter."""
    rows = [
        [text(name, _MAX_NAME), one.kind, _range(one), "log" if one.log else ""] for name, one in parameters.items()
    ]
    return f"<div>{escape(title)}{table(['name', 'kind', 'values', 'scale'], rows)}</div>"


def _range(one: Parameter) -> str:
    if one.ends is None:
        return text(", ".join(option(value) for value in one.options))
    return " to ".join(text(end) for end in one.ends)


def problem(one: Problem) -> str:
    """Return what is optimized: the space, and the fidelities with their target and cost."""
    searched = space(one.space, f"{one.aims} over {len(one.space)} parameter{'' if len(one.space) == 1 else 's'}")
    if not one.fidelity:
        return searched
    cost = f"costs {readable(one.target_cost)}" if one.has_declared_cost else "has a measured cost"
    return f"<div>{searched}{space(one.fidelity, f'fidelities; the target {point(one.target)} {cost}')}</div>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain words, which are escaped; a row with a single cell spans all columns."""
    head = "".join(f"<th style='{_CELL};{_DIM}'>{escape(name)}</th>" for name in heads)
    body = "".join(_cells(row, len(heads)) for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<div style='overflow-x:auto'><table style='{_TABLE}'>{top}<tbody>{body}</tbody></table></div>"


def folded(summary: str, inner: str) -> str:
    """Return HTML that is folded away behind a word."""
    return f"<details><summary style='cursor:pointer;{_DIM}'>{escape(summary)}</summary>{inner}</details>"


def _cells(row: Sequence[str], width: int) -> str:
    if len(row) == 1:
        return f"<tr><td colspan='{width}' style='{_CELL};{_DIM}'>{escape(row[0])}</td></tr>"
    return "<tr>" + "".join(f"<td style='{_CELL}'>{escape(cell)}</td>" for cell in row) + "</tr>"
