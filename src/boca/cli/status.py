"""`boca status`: who works on a study, what runs, what it has spent, and when it is expected to end."""

from __future__ import annotations

import json
import sys
import time
from typing import Annotated, Any

import typer

from boca.cli import table
from boca.cli.arguments import Json, Url
from boca.cli.table import Column
from boca.domain.attempt import iso
from boca.domain.trial import Trial
from boca.domain.words import duration, moment, point, printable, readable, roughly, text
from boca.execution.lines import share, spent, state
from boca.study.recommendation import nothing_best
from boca.study.status import Driver, Status, statuses

_MOST_RUNNING = 20  # trials in the table, the oldest
_MOST_CAUSES = 5
_SECONDS_BETWEEN = 2.0  # two looks of --watch
_CLEAR = "\x1b[H\x1b[J"

_LIVES = {
    "alive": "",
    "silent": "has not renewed its lease: another driver may take its trials over",
    "dead": "is gone: the next run takes its trials over",
    "left": "stopped: the next run continues its trials",
    "by hand": "asked by hand: nothing tells whether it is alive",
}


def status(
    url: Url,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A study; all studies without it.")] = None,
    watch: Annotated[bool, typer.Option("--watch", metavar="", help="Look every two seconds until Ctrl-C.")] = False,
    as_json: Json = False,
) -> None:
    """Show who works on a study, its running trials, what is spent and what is left; read-only.

    Exit status: 0 if every study shown is running or finished, 1 if one has budget left and nothing works on it.
    """
    while True:
        found = statuses(url, name)
        if as_json:
            print(json.dumps([_facts(one) for one in found] if name is None else _facts(found[0]), ensure_ascii=False))
        else:
            width = table.columns_of_terminal()
            lines = _table(found) if name is None else _one(found[0], width)
            print((_CLEAR if watch and sys.stdout.isatty() else "") + "\n".join(lines), flush=True)
        if not watch:
            break
        try:
            time.sleep(_SECONDS_BETWEEN)
        except KeyboardInterrupt:
            break
    if any(one.words == "stopped" for one in found):
        raise typer.Exit(1)


def _table(found: list[Status]) -> list[str]:
    """Return the studies of a storage, one line each."""
    if not found:
        return ["There are no studies in this storage."]
    return table.lines_of(
        [
            Column("study", [one.study.name for one in found], is_number=False),
            Column("state", [one.words for one in found], is_number=False),
            Column("trials", [str(len(one.study.history)) for one in found]),
            Column("running", [str(len(one.holders)) for one in found]),
            Column("spent", [_percent(one) for one in found]),
            Column("best", [text(_best_value(one)) for one in found]),
            Column("last result", [_ago(one, one.last) for one in found], is_number=False),
            Column("time left", [_left(one) for one in found], is_number=False),
        ]
    )


def _percent(one: Status) -> str:
    part = share(one.ledger)
    return "" if part is None else f"{100.0 * part:.0f} %"


def _best_value(one: Status) -> float | None:
    best = one.study.history.best(one.study.problem)
    return None if best is None else best.value


def _left(one: Status) -> str:
    return "" if one.seconds_left is None else roughly(one.seconds_left)


def _ago(one: Status, trial: Trial | None) -> str:
    return "" if trial is None or trial.ended is None else f"{roughly(max(one.now - trial.ended, 0.0))} ago"


def _one(one: Status, width: int) -> list[str]:
    """Return one study as lines."""
    history, best = one.study.history, one.study.history.best(one.study.problem)
    lines = [f"{one.study.name}: {one.words}"]
    counts = {
        "complete": len(history.complete),
        "failed": len(history.finished) - len(history.complete),
        "running": len(one.holders),
        "queued": one.queued,
    }
    facts = [
        ("trials", ", ".join(f"{count} {what}" for what, count in counts.items() if count) or "none"),
        ("budget", f"{spent(one.ledger, one.seconds_left)} ({one.ledger.spent_in_words})"),
        ("expected end", "" if one.seconds_left is None else moment(one.now + one.seconds_left)),
        ("best", nothing_best(one.study.problem, history) if best is None else _found(best)),
        ("last result", "" if one.last is None else _result(one, one.last)),
    ]
    for head, words in facts:
        if words:
            first, *rest = table.wrapped(printable(words), width - 16)
            lines += [f"  {head:<14}{first}", *(f"{'':16}{line}" for line in rest)]
    for driver in one.drivers:
        lines += table.wrapped(_driver(one, driver), width, indent="  ")
    lines += _running(one)
    for cause in one.causes[:_MOST_CAUSES]:
        count = len(cause.trials)
        which = f"trial {cause.last.number}" if count == 1 else f"{count} trials, the last {cause.last.number},"
        lines += table.wrapped(f"{which} failed: {text(cause.reason, 4 * width)}", width, indent="  ")
    return lines


def _found(best: Trial) -> str:
    return f"{text(best.value)} at {point(best.x)} (trial {best.number})"


def _result(one: Status, trial: Trial) -> str:
    told = "failed" if trial.state == "failed" else text(trial.value)
    ago = _ago(one, trial)
    return f"trial {trial.number}: {told}{f', {ago}' if ago else ''}"


def _driver(one: Status, driver: Driver) -> str:
    who = "somewhere" if driver.host is None else f"process {driver.process} on {driver.host}"
    since = "" if driver.since is None else f", since {moment(driver.since)}"
    count = f"{len(driver.running)} trial{'' if len(driver.running) == 1 else 's'}"
    said = f"; {_LIVES[driver.life]}" if _LIVES[driver.life] else ""
    return printable(f"{who} has {count}{since}{said}")


def _running(one: Status) -> list[str]:
    shown = [one.study.history[number] for number in sorted(one.holders)][:_MOST_RUNNING]
    if not shown:
        return []
    ages = ["" if t.began is None else duration(max(one.now - t.began, 0.0)) for t in shown]
    columns = [
        Column("running", [str(t.number) for t in shown]),
        Column("age", ages),
        Column("cost", [readable(t.cost) for t in shown]),
        Column("attempt", [str(t.attempt + 1) for t in shown]),
        Column("at", [point(t.z or t.x) for t in shown], is_number=False),
    ]
    lines = [f"  {line}" for line in table.lines_of(columns)]
    more = len(one.holders) - len(shown)
    return [*lines, f"  and {more} more"] if more else lines


def _facts(one: Status) -> dict[str, Any]:
    """Return one study for programs."""
    history = one.study.history
    return {
        "name": one.study.name,
        "state": one.words,
        "time": iso(one.now),
        "trials": len(history),
        "complete": len(history.complete),
        "failed": len(history.finished) - len(history.complete),
        "queued": one.queued,
        **state(one.ledger),
        "seconds_left": one.seconds_left,
        "expected_end": None if one.seconds_left is None else iso(one.now + one.seconds_left),
        "last": None if one.last is None else {"number": one.last.number, "state": one.last.state, **one.last.clock()},
        "drivers": [
            {
                "host": driver.host,
                "process": driver.process,
                "since": iso(driver.since),
                "life": driver.life,
                "running": list(driver.running),
            }
            for driver in one.drivers
        ],
        "running": [
            {
                "number": number,
                "age": None if (began := history[number].began) is None else max(one.now - began, 0.0),
                "attempt": history[number].attempt,
                "x": history[number].x,
                "z": history[number].z,
                "cost": history[number].cost,
            }
            for number in sorted(one.holders)
        ],
        "failures": [
            {"reason": cause.reason, "count": len(cause.trials), "last": cause.last.number} for cause in one.causes
        ],
    }
