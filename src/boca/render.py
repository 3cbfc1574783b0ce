"""Trials and results as small pieces of HTML, for notebooks and reports, and numbers and points as words.

Everything that comes from outside is escaped here.  Nothing has a color of its own, so that it can be read on a light
and on a dark page.  A trial or a result imports this module when it is displayed, and not before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boca.domain.trial import Trial
    from boca.execution.run import Result

MAX_ROWS = 20  # of a history, which is then cut in the middle: a screenful
MAX_COLUMNS = 12  # of parameters and fidelities together, so that a notebook seldom scrolls sideways
_MAX_CELL = 80  # characters
_MAX_NAME = 24  # characters of a name or an option in the table of a history
_MAX_SENTENCE = 400  # characters of a reason, an error or a warning

_TABLE = "border-collapse:collapse;margin:0.3em 0;color:inherit;font-size:inherit"
_CELL = (
    "text-align:left;padding:0.15em 0.7em 0.15em 0;vertical-align:top;border-bottom:1px solid rgba(128,128,128,0.35)"
)
_DIM = "opacity:0.75"


# Words ------------------------------------------------------------------------------------------------------------


def text(value: object, longest: int = _MAX_CELL) -> str:
    """Return a value as plain words, not escaped: floats to six digits, nothing for None, long texts cut.

    Six digits are for values and points, which are compared and typed in again; `amount` is for costs and times.
    """
    if value is None:
        return ""
    words = f"{value:.6g}" if isinstance(value, float) else " ".join(str(value).split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def option(value: object, longest: int = _MAX_CELL) -> str:
    """Return the value of a parameter as plain words: unlike in `text`, None is an option like any other."""
    return "None" if value is None else text(value, longest)


def point(values: Mapping[str, Any]) -> str:
    """Return a point as plain words, not escaped."""
    return ", ".join(f"{text(name)} = {option(value)}" for name, value in values.items())


def amount(number: float) -> str:
    """Return a cost or a time to three digits; its whole part is never rounded, and has commas from 10,000 on."""
    if 1e13 > abs(number) >= 1e4:
        return f"{number:,.0f}"
    return f"{number:.0f}" if 1e4 > abs(number) >= 1e3 else f"{number:.3g}"


def advice(mean: float, std: float, verified: bool) -> str:
    """Return what a model expects at a point, in plain words."""
    was = "was run" if verified else "was not run"
    return f"expected {mean:.6g} ± {std:.2g}; it {was} at the target"


# HTML -------------------------------------------------------------------------------------------------------------


def history(trials: Sequence[Trial], title: str) -> str:
    """Return a table with one row per trial."""
    if not trials:
        return f"<div>{escape(title)}</div>"
    parts = [("x", name) for name in trials[0].x] + [("z", name) for name in trials[0].z]
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
    values = (option(getattr(trial, part).get(name), _MAX_NAME) for part, name in parts)
    return [str(trial.number), trial.state, text(trial.value), amount(trial.cost), *values, trial.phase]


def trial(one: Trial) -> str:
    """Return one trial and why it was chosen."""
    rows = [("x", point(one.x)), ("z", point(one.z)), ("value", text(one.value)), ("cost", amount(one.cost))]
    rows += [("seconds", "" if one.seconds is None else amount(one.seconds))]
    rows += [("failed with", text(one.reason, _MAX_SENTENCE)), ("why", text(one.why.get("reason"), _MAX_SENTENCE))]
    numbers: dict[str, Any] = {
        key: one.why[key] for key in ("mean", "std", "ucb", "beta", "xi", "gamma", "c") if key in one.why
    }
    rows += [("in numbers", point(numbers))]
    return f"<div>Trial {one.number}, {escape(one.state)}{table([], [row for row in rows if row[1]])}</div>"


def result(one: Result) -> str:
    """Return what was found and what it cost, with the trials folded away."""
    rows = [("best at the target", "no trial is complete at the target" if one.x is None else text(one.value))]
    if one.x is not None:
        rows.append(("at", point(one.x)))
    if one.recommendation is not None:
        advised = one.recommendation
        rows.append(("recommended", f"{point(advised.x)}: {advice(advised.mean, advised.std, advised.verified)}"))
    rows.append(("spent", f"{amount(one.spent)} on {len(one.history)} trials"))
    rows += [("warning", text(warning, _MAX_SENTENCE)) for warning in one.warnings]
    trials = history(one.history, repr(one.history))
    head = f"<summary style='cursor:pointer;{_DIM}'>trials</summary>"
    return f"<div>{table([], rows)}<details>{head}{trials}</details></div>"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of plain words, which are escaped; a row with a single cell spans all columns."""
    head = "".join(f"<th style='{_CELL};{_DIM}'>{escape(name)}</th>" for name in heads)
    body = "".join(_cells(row, len(heads)) for row in rows)
    top = f"<thead><tr>{head}</tr></thead>" if heads else ""
    return f"<div style='overflow-x:auto'><table style='{_TABLE}'>{top}<tbody>{body}</tbody></table></div>"


def _cells(row: Sequence[str], width: int) -> str:
    if len(row) == 1:
        return f"<tr><td colspan='{width}' style='{_CELL};{_DIM}'>{escape(row[0])}</td></tr>"
    return "<tr>" + "".join(f"<td style='{_CELL}'>{escape(cell)}</td>" for cell in row) + "</tr>"
