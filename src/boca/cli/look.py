"""Subcommands that read a storage and never change it: `show`, `best`, `export`, `dashboard`, `report`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from boca.cli.arguments import Json, Name, Url
from boca.domain.errors import InvalidInput, StorageFailed
from boca.domain.trial import History, Trial
from boca.domain.words import expected, point
from boca.plots.study import stored
from boca.study import trial_io
from boca.study.recommendation import nothing_best
from boca.study.storage.reader import Damaged, Reader, StoredStudy, refuse_to_replace, understood

_COLUMNS = ("name", "trials", "complete", "running", "failed", "best")  # of the table of studies
_WIDTH_OF_A_PIPE = 1000  # characters; a pipe has no width, and a program that reads it needs unbroken lines


def read(url: str, name: str) -> StoredStudy:
    """Read one study of a storage."""
    with closing(Reader(url)) as reader:
        return reader.study(name)


def show(
    url: Url,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A study; all studies without it.")] = None,
    trial: Annotated[int | None, typer.Option(metavar="K", help="One trial, with all that decided it.")] = None,
    as_json: Json = False,
) -> None:
    """Show the studies of a storage, the trials of a study, or one trial."""
    if name is None:
        if trial is not None:
            raise InvalidInput(f"--trial needs the name of a study; got --trial {trial} without NAME.")
        with closing(Reader(url)) as reader:
            _show_studies([_summary(study) for study in reader.studies()], as_json)
        return
    history = read(url, name).history
    if trial is None:
        _show_trials(history, as_json)
        return
    if not 0 <= trial < len(history):
        raise InvalidInput(
            f"--trial must be one of the {len(history)} trials of {name!r}, which are numbered from 0; got {trial}."
        )
    print(json.dumps(_everything(history[trial]), indent=None if as_json else 2, ensure_ascii=False))


def best(url: Url, name: Name, as_json: Json = False) -> None:
    """Print the best trial at the target; exit with status 1 if there is none yet."""
    study = read(url, name)
    with understood(name):
        view = stored(name, study.spec, study.history)
    found = view.best
    if found is None:
        if as_json:
            print("null")
        else:
            words = nothing_best(study.problem, study.history)
            is_open = words == "no trial is complete at the target"
            print(
                "There is no complete trial at the target yet." if is_open else f"There is no best: {words}.",
                file=sys.stderr,
            )
        raise typer.Exit(1)
    if as_json:
        print(json.dumps(_everything(found), ensure_ascii=False))
    else:
        outcomes = f"; {point(found.outcomes)}" if found.outcomes else ""
        believed = "" if view.believed is None else f"; the model expects {expected(*view.believed)} there"
        print(f"{found.value!r} at {point(found.x)} (trial {found.number}){outcomes}{believed}")


def export(
    url: Url,
    name: Name,
    format: Annotated[str, typer.Option(metavar="csv|jsonl", help="One line per trial in both.")] = "csv",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The file to write.", show_default="standard output")
    ] = None,
) -> None:
    """Write the trials of a study as CSV or JSON lines."""
    if out is not None:
        refuse_to_replace(out, "--out")
    text = trial_io.text(read(url, name).history, format)  # type: ignore[arg-type]
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"--out must be a file that can be written; {out}: {error.strerror}.") from error


def dashboard(
    url: Url,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Where to listen; other than this machine it needs --token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0 for any free port.")] = 8321,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN", envvar="BOCA_DASHBOARD_TOKEN", help="What browsers must send: 16 characters or more."
        ),
    ] = None,
) -> None:
    """Show the studies of a storage on a live page until Ctrl-C; read-only."""
    from boca.dashboard import serve

    serve(url, host=host, port=port, token=token)


def report(
    url: Url,
    name: Name,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="The page to write.", show_default="report.html")
    ] = Path("report.html"),
    optimum: Annotated[
        float | None, typer.Option(metavar="VALUE", help="The best possible value, if it is known, to show the regret.")
    ] = None,
) -> None:
    """Write a study as one HTML file: what was found, what it cost, plots, every trial."""
    from boca import report as reports

    print(reports.write(reports.load(url, name), out, optimum=optimum))


# Tables -----------------------------------------------------------------------------------------------------------


def _summary(study: StoredStudy | Damaged) -> dict[str, Any]:
    """Return a study as a row of the table; a damaged one has its name, and what is damaged."""
    if isinstance(study, Damaged):
        return {"name": study.name, **dict.fromkeys(_COLUMNS[1:]), "broken": str(study)}
    found = study.history.best(study.problem)
    counts = {state: sum(t.state == state for t in study.history) for state in ("complete", "running", "failed")}
    best = None if found is None else found.value
    return {"name": study.name, "trials": len(study.history), **counts, "best": best, "broken": None}


def _show_studies(summaries: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(summaries, ensure_ascii=False))
    else:
        _print_table(_COLUMNS, [[summary[column] for column in _COLUMNS] for summary in summaries])
    broken = [summary["broken"] for summary in summaries if summary["broken"]]
    for words in broken:
        print(f"error: {words}", file=sys.stderr)
    if broken:
        raise typer.Exit(2)


def _everything(trial: Trial) -> dict[str, Any]:
    """Return what is stored of a trial, with z and the value that its observations give it."""
    return trial.to_json() | {"z": trial.z, "value": trial.value, "noise": trial.noise, "outcomes": trial.outcomes}


def _show_trials(history: History, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_everything(trial) for trial in history], ensure_ascii=False))
        return
    heads = ["number", "state", "value", "cost", "x", "z", "why"]
    rows = [[t.number, t.state, t.value, t.cost, point(t.x), point(t.z), _reason(t)] for t in history]
    if any(t.outcomes for t in history):
        heads.insert(3, "outcomes")
        rows = [[*row[:3], point(t.outcomes), *row[3:]] for row, t in zip(rows, history, strict=True)]
    _print_table(heads, rows)


def _reason(trial: Trial) -> str | None:
    """Return why a trial failed, or why it was chosen, or that its stored reasons are damaged."""
    try:
        return trial.reason or trial.why.get("reason")
    except StorageFailed as error:
        return str(error)


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = Table(*heads)
    for row in rows:
        table.add_row(
            *("" if cell is None else f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row)
        )
    width = None if sys.stdout.isatty() else _WIDTH_OF_A_PIPE
    Console(markup=False, highlight=False, width=width).print(table)
