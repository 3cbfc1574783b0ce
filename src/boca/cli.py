"""The command `boca`.

A command is a function here, or in an app of its own where several belong together.  It raises what the library raises:
`main` is the one place where an error becomes a sentence and an exit status: 0 done, 1 nothing found, 2 a mistake of
the user's or a storage that fails, 130 interrupted.
"""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

import boca
from boca.bench.command import app as bench
from boca.domain.errors import BocaError, InvalidInput, ObjectiveFailed, StorageFailed
from boca.domain.trial import History, Trial, point_key
from boca.execution.run import Result
from boca.problems import data
from boca.render import advice, point
from boca.study import spec, trial_io
from boca.study.storage import Snapshot
from boca.study.storage.location import location
from boca.study.storage.reader import Damaged, Reader, StoredStudy, refuse_to_replace
from boca.study.storage.sql import Database

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(bench, name="bench")

_data = typer.Typer(no_args_is_help=True, help="The measured data behind the real problems.")
app.add_typer(_data, name="data")

_Url = Annotated[
    str, typer.Argument(metavar="URL", help="The storage: sqlite:///study.db, a file, or postgresql+psycopg://...")
]
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of a study.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]

_COLUMNS = ("name", "trials", "complete", "running", "failed", "best")  # of the table of studies


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its status."""
    try:
        app(args=arguments, prog_name="boca")
    except ObjectiveFailed as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except BocaError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"boca {boca.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find the best settings of something expensive for a fraction of the price.

    boca run study.toml runs the study that a file describes, and goes on with it when run again. boca show, best and
    export look at what is stored, while it runs and afterwards.
    """


# A study ----------------------------------------------------------------------------------------------------------


@app.command()
def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study, in TOML.")],
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Worker processes.", show_default="what the file says")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where to keep it: a URL or a file.", show_default="what the file says"),
    ] = None,
    allow_change: Annotated[
        bool,
        typer.Option(
            "--allow-change", help="Let the budget be wider than the stored one, and the strategy of another version."
        ),
    ] = False,
) -> None:
    """Run the study of a file to the end of its budget; run it again to go on after any interruption."""
    from boca import studyfile as studies
    from boca.execution.callbacks import Log, Progress
    from boca.execution.run import drive

    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    study = studies.load(file)
    result = drive(
        study.objective,
        study.problem,
        budget=study.budget,
        strategy=study.strategy,
        seed=study.seed,
        stop=None,
        storage=study.storage if storage is None else location(storage),
        name=study.name,
        allow_change=allow_change,
        executor=workers or study.workers,
        timeout=study.timeout,
        max_retries=study.max_retries,
        on_error="fail",
        callbacks=Progress() if sys.stderr.isatty() else Log(),
    )
    _print_result(result)
    if result.interrupted:
        raise typer.Exit(130)
    if result.x is None:
        raise typer.Exit(1)


def _print_result(result: Result) -> None:
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if result.x is None:
        print("Nothing was observed at the target fidelity.")
    else:
        print(f"best at the target: {result.value:.8g} at {point(result.x)}")
    if result.recommendation is not None:
        advised = result.recommendation
        print(f"recommended: {point(advised.x)}: {advice(advised.mean, advised.std, advised.verified)}")
    print(f"{len(result.history)} trials, {result.spent:.6g} spent")


# What is stored ---------------------------------------------------------------------------------------------------


@app.command()
def show(
    url: _Url,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A study; without it, all of them.")] = None,
    trial: Annotated[int | None, typer.Option(metavar="K", help="One trial, with all its reasons.")] = None,
    as_json: _Json = False,
) -> None:
    """Show the studies of a storage, the trials of a study, or one trial."""
    if name is None:
        if trial is not None:
            raise InvalidInput(f"--trial must come with the name of a study; got {trial} and no name.")
        with closing(Reader(url)) as reader:
            _show_studies([_summary(study) for study in reader.studies()], as_json)
        return
    history = _look(url, name).history
    if trial is None:
        _show_trials(history, as_json)
        return
    if not 0 <= trial < len(history):
        raise InvalidInput(f"--trial must be one of the {len(history)} trials, from 0 on; got {trial}.")
    print(json.dumps(_whole(history[trial]), indent=None if as_json else 2, ensure_ascii=False))


@app.command()
def best(url: _Url, name: _Name, as_json: _Json = False) -> None:
    """Print the best trial at the target; exit with 1 where there is none yet."""
    study = _look(url, name)
    found = study.history.best(study.problem)
    if found is None:
        if as_json:
            print("null")
        else:
            print("There is no complete trial at the target yet.", file=sys.stderr)
        raise typer.Exit(1)
    if as_json:
        print(json.dumps(_whole(found), ensure_ascii=False))
    else:
        print(f"{found.value!r} at {point(found.x)} (trial {found.number})")


@app.command()
def export(
    url: _Url,
    name: _Name,
    format: Annotated[str, typer.Option(metavar="csv|jsonl", help="A line a trial in either.")] = "csv",
    out: Annotated[Path | None, typer.Option(metavar="FILE", show_default="standard output")] = None,
) -> None:
    """Write the trials of a study as CSV or JSON lines."""
    if out is not None:
        refuse_to_replace(out, "--out")
    text = trial_io.text(_look(url, name).history, format)  # type: ignore[arg-type]
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"--out must be a file that can be written; {out}: {error.strerror}.") from error


@app.command()
def dashboard(
    url: _Url,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="Beyond this machine a token is needed.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, metavar="N", help="0: any that is free.")] = 8321,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TOKEN", envvar="BOCA_DASHBOARD_TOKEN", help="What browsers must bring: 16 characters or more."
        ),
    ] = None,
) -> None:
    """Show the studies of a storage on a live page, until Ctrl-C; it only reads."""
    from boca.dashboard import serve

    serve(url, host=host, port=port, token=token)


@app.command()
def report(
    url: _Url,
    name: _Name,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="FILE", help="The page to write.", show_default="report.html")
    ] = Path("report.html"),
    optimum: Annotated[
        float | None, typer.Option(metavar="VALUE", help="The best possible value, if it is known: shows the regret.")
    ] = None,
) -> None:
    """Write a study as one HTML file that anybody can open: what was found, what it cost, pictures, every trial."""
    from boca import report as reports

    print(reports.write(reports.load(url, name), out, optimum=optimum))


@app.command()
def retry(
    url: _Url,
    name: _Name,
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[K]...", help="Trials; without any, all that failed.")
    ] = None,
) -> None:
    """Have failed trials tried again, as new ones, and trials that nobody works on any more, at the next run.

    A point that has succeeded since, waits for its turn or is out already is left alone, and so is a trial whose driver
    is not known to be dead.
    """
    with closing(_open(url)) as database:
        study = database.study(name)
        now = study.read()
        chosen = _to_retry(now.history, numbers)
        failed, out = _untried(now, chosen), [trial for trial in chosen if trial.state == "running"]
        for trial in failed:
            study.enqueue(trial.x, trial.z)
        held = [trial for trial in out if not study.hand_back(trial)]
    count = len(failed) + len(out) - len(held)
    for trial in held:
        print(f"Trial {trial.number} is left alone: a driver has it.")
    if count:
        print(f"{count} trial{'' if count == 1 else 's'} will be tried at the next run.")
        _print_what_is_affordable(_look(url, name), now.history, failed)
    elif len(chosen) > len(held):
        print("Nothing is left to try: what failed has succeeded since, waits for its turn or is out.")
    elif not chosen:
        print("Nothing is left to try: no trial failed.")


def _print_what_is_affordable(study: StoredStudy, history: History, again: Sequence[Trial]) -> None:
    """Say so where the budget does not buy so many new trials and that can be known, as their cost was declared."""
    from boca.accounting.ledger import Ledger

    ledger = Ledger(study.problem, history, spec.limit_of(study.spec))
    if not ledger.is_exact or not math.isfinite(ledger.total):
        return
    left, bought = ledger.left + 1e-12 * ledger.total, 0
    for trial in again:
        if trial.cost <= left:
            left, bought = left - trial.cost, bought + 1
    if bought < len(again):
        print(
            f"But the budget buys {bought} of the {len(again)} that failed: {max(ledger.left, 0.0):.6g} of "
            f"{ledger.total:.6g} is left. Give a wider one, and boca run --allow-change."
        )


def _to_retry(history: History, numbers: Sequence[int] | None) -> list[Trial]:
    """Return the trials of these numbers, or all that failed."""
    wrong = [number for number in numbers or [] if not 0 <= number < len(history)]
    done = [number for number in numbers or [] if number not in wrong and history[number].state == "complete"]
    if wrong or done:
        raise InvalidInput(
            f"A trial to retry must have failed or still be out; of {len(history)} trials, "
            f"{', '.join(map(str, [*wrong, *done]))} {'is' if len(wrong + done) == 1 else 'are'} not such."
        )
    return [history[n] for n in sorted(set(numbers))] if numbers else [t for t in history if t.state == "failed"]


def _untried(now: Snapshot, chosen: Sequence[Trial]) -> list[Trial]:
    """Return a failed trial for every point that has not succeeded, is not queued and is not out."""
    taken = {(point_key(t.x), point_key(t.z)) for t in now.history if t.state != "failed"}
    taken |= {(point_key(queued.x), point_key(queued.z)) for queued in now.queue}
    failed = {(point_key(t.x), point_key(t.z)): t for t in chosen if t.state == "failed"}
    return [trial for point, trial in failed.items() if point not in taken]


@app.command()
def delete(
    url: _Url,
    name: _Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete a study with all its trials."""
    with closing(Reader(url)) as reader:
        count = reader.row(name).trials
    if not yes:
        typer.confirm(f"Delete the study {name!r} with its {count} trials?", abort=True)
    with closing(_open(url)) as database:
        database.delete(name)
    print(f"Deleted {name!r}.")


def _look(url: str, name: str) -> StoredStudy:
    """Read a study; nothing is made or changed."""
    with closing(Reader(url)) as reader:
        return reader.study(name)


def _open(url: str) -> Database:
    """Open a storage to change it, once a look has shown that it is one."""
    with closing(Reader(url)) as reader:
        reader.read(lambda _: None)
        return Database(reader.url)


def _summary(study: StoredStudy | Damaged) -> dict[str, Any]:
    """Return a study as a line of the table; one that is damaged has its name, and what is wrong with it."""
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


def _show_trials(history: History, as_json: bool) -> None:
    if as_json:
        print(json.dumps([_whole(trial) for trial in history], ensure_ascii=False))
        return
    heads = ["number", "state", "value", "cost", "x", "z", "why"]
    rows = [[t.number, t.state, t.value, t.cost, point(t.x), point(t.z), _reason(t)] for t in history]
    _print_table(heads, rows)


def _reason(trial: Trial) -> str | None:
    """Return why a trial failed, or was chosen; of one whose reasons are damaged, that they are."""
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
    # a pipe has no width: what is read by a program is not folded
    Console(markup=False, highlight=False, width=None if sys.stdout.isatty() else 1000).print(table)


def _whole(trial: Trial) -> dict[str, Any]:
    return asdict(trial)


# Data -------------------------------------------------------------------------------------------------------------


@_data.command()
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(data.names())}.")]) -> None:
    """Download a data set, unless it is here already, check it, and print where it is."""
    print(data.fetch(name))
