"""Trials and results as small pieces of HTML, for notebooks and reports, and numbers and points as words.

Everything that comes from outside is escaped here.  Nothing has a color of its own, so that it can be read on a light
and on a dark page.  A trial or a result imports this module when it is displayed, and not before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from boca.accounting.ledger import Ledger

if TYPE_CHECKING:
    from boca.domain.trial import Trial
    from boca.execution.run import Result

MAX_ROWS = 20  # of a history, which is then cut in the middle: a screenful
MAX_COLUMNS = 12  # of parameters and fidelities together, so that a notebook seldom scrolls sideways
_MAX_CELL = 80  # characters
_MAX_NAME = 24  # characters of a name or an option in the table of a history
_MAX_PLACES = 8  # after the point, before a number has an exponent
_MAX_PLAIN = 1e9  # before a mean has an exponent
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


def spending(ledger: Ledger) -> str:
    """Return what was spent in the unit of the budget, and in that of the ledger if it is another."""
    spent = with_unit(ledger, ledger.spent)
    if ledger.limit is None:
        return spent
    if ledger.limit.unit != "targets" or ledger.unit == "targets":
        return f"{amount(ledger.spent)} of {with_unit(ledger, ledger.limit.amount)}"
    if ledger.target is None:
        return f"{spent}; the budget is {_targets(ledger.limit.amount)}"
    about = "" if ledger.is_exact else "about "
    in_targets = f"{about}{amount(ledger.spent / ledger.target)} of {_targets(ledger.limit.amount)}"
    return in_targets if ledger.unit == "cost" and ledger.target == 1.0 else f"{in_targets} ({spent})"


def _targets(number: float) -> str:
    return f"{amount(number)} {'target' if number == 1.0 else 'targets'}"


def with_unit(ledger: Ledger, number: float) -> str:
    """Return an amount in the unit of the ledger."""
    if ledger.unit == "targets":
        return _targets(number)
    return f"{amount(number)} {'cost units' if ledger.unit == 'cost' else 'seconds'}"


def expected(mean: float, std: float) -> str:
    """Return a mean to the last digit that its deviation allows: two digits of the deviation."""
    if not (math.isfinite(std) and std > 0.0):
        return f"{mean:.6g} ± {std:.2g}"
    places = 1 - math.floor(math.log10(std))
    if places > _MAX_PLACES or abs(mean) >= _MAX_PLAIN:
        return f"{mean:.6g} ± {std:.2g}"
    return f"{mean:.{max(places, 0)}f} ± {std:.{max(places, 0)}f}"


def advice(mean: float, std: float, verified: bool) -> str:
    """Return what a model expects at a point, in plain words."""
    was = "was run" if verified else "was not run"
    return f"expected {expected(mean, std)}; it {was} at the target"


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
    known = [key for key in ("mean", "std", "ucb", "beta", "xi", "gamma", "c") if key in one.why]
    rows += [("in numbers", ", ".join(f"{key} = {amount(one.why[key])}" for key in known))]
    return f"<div>Trial {one.number}, {escape(one.state)}{table([], [row for row in rows if row[1]])}</div>"


def result(one: Result) -> str:
    """Return what was found and what it cost, with the trials folded away."""
    rows = [("best at the target", "no trial is complete at the target" if one.x is None else text(one.value))]
    if one.x is not None:
        rows.append(("at", point(one.x)))
    if one.recommendation is not None:
        advised = one.recommendation
        rows.append(("recommended", f"{point(advised.x)}: {advice(advised.mean, advised.std, advised.verified)}"))
    study = one.study  # None for a result that was pickled, which has lost its budget
    spent = amount(one.spent) if study is None else spending(Ledger(study.problem, one.history, study.limit))
    rows.append(("spent", f"{spent} on {len(one.history)} trials"))
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
