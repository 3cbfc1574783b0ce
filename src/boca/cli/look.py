"""Subcommands besides `show` that only read a study: `best`, `export`, `backup`, `dashboard`, `report`."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer

from boca.cli.arguments import Json, Name, Url
from boca.domain.attempt import Attempt
from boca.domain.errors import InvalidInput
from boca.domain.trial import Trial
from boca.domain.words import expected, point
from boca.plots.study import stored
from boca.study import trial_io
from boca.study.recommendation import nothing_best
from boca.study.storage.backup import back_up
from boca.study.storage.reader import Reader, StoredStudy, refuse_to_replace, understood


def read(url: str, name: str) -> StoredStudy:
    """Read one study of a storage."""
    with closing(Reader(url)) as reader:
        return reader.study(name)


def best(url: Url, name: Name, as_json: Json = False) -> None:
    """Print the best trial at the target, or all of the front; exit with status 1 if there is none yet."""
    study = read(url, name)
    with understood(name):
        view = stored(name, study.spec, study.history)
    if study.problem.objectives and view.front:
        _print_front(view.front, as_json)
        return
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
        print(json.dumps(everything(found), ensure_ascii=False))
    else:
        outcomes = f"; {point(found.outcomes)}" if found.outcomes else ""
        believed = "" if view.believed is None else f"; the model expects {expected(*view.believed)} there"
        print(f"{found.value!r} at {point(found.x)} (trial {found.number}){outcomes}{believed}")


def _print_front(front: list[Trial], as_json: bool) -> None:
    """Print one line per trial of a front, or all of them as a JSON array."""
    if as_json:
        print(json.dumps([everything(trial) for trial in front], ensure_ascii=False))
        return
    for trial in front:
        print(f"{point(trial.outcomes)} at {point(trial.x)} (trial {trial.number})")


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
    study = read(url, name)
    content = trial_io.text(study.history, format, study.attempts)  # type: ignore[arg-type]
    if out is None:
        sys.stdout.write(content)
        return
    try:
        out.write_text(content, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"--out must be a file that can be written; {out}: {error.strerror}.") from error


def backup(url: Url, file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to create.")]) -> None:
    """Copy all studies of a storage to a SQLite file, as they are at this moment; safe while drivers run."""
    print(back_up(url, file))


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


def everything(trial: Trial, attempts: Sequence[Attempt] = ()) -> dict[str, Any]:
    """Return what is stored of a trial, with z and the value that its observations give it, and times in UTC."""
    told = {"z": trial.z, "value": trial.value, "noise": trial.noise, "outcomes": trial.outcomes}
    return trial.to_json() | told | trial.clock() | {"attempts": [attempt.to_json() for attempt in attempts]}
