"""`boca run`: run the study of a file."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from boca.accounting.ledger import Ledger
from boca.domain.errors import BocaError, InvalidInput, Terminated
from boca.domain.words import point, readable
from boca.execution import run as execution
from boca.execution.callbacks import JsonLines, Log, Progress
from boca.execution.lines import state
from boca.execution.options import Callback, RunOptions, StudyOptions
from boca.execution.result import Result
from boca.study.recommendation import nothing_best
from boca.study.storage.location import location
from boca.studyfile import StudyFile, load

_OPTION_OF_ARGUMENT = {"allow_change=True": "--allow-change", "executor=n": "--workers N"}


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The study, in TOML.")],
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Worker processes.", show_default="what the file says")
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where to store it: a file or a URL.", show_default="what the file says"),
    ] = None,
    allow_change: Annotated[
        bool,
        typer.Option(
            "--allow-change",
            metavar="",
            help="Permit a larger budget than the stored one, and new strategy fields of this version.",
        ),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", metavar="", help="No line per trial: warnings and the result only.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="A JSON object per trial and for the result, on standard output.")
    ] = False,
) -> None:
    """Run the study of a file until its budget is spent; resume it after any interruption.

    Exit status: 0 done, 1 nothing at the target, 2 a mistake or a storage that fails, 130 Ctrl-C, 143 SIGTERM.
    """
    level = logging.WARNING if quiet or as_json else logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s  %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    if quiet and as_json:
        raise InvalidInput("--quiet prints no line per trial and --json prints one; got both. Type one of them.")
    status = 0
    show = _shown(quiet=quiet, as_json=as_json)
    try:
        result = _result(load(file), workers, storage, show, allow_change=allow_change)
    except Terminated as stopped:
        if not isinstance(stopped.result, Result):
            raise
        result, status = stopped.result, int(str(stopped.code))
    except BocaError as error:
        error.args = tuple(_in_options(str(argument)) for argument in error.args)
        raise
    if isinstance(show, JsonLines):
        show.write(_as_json(result))
    else:
        _print_result(result)
    if status:
        raise typer.Exit(status)
    if result.interrupted:
        raise typer.Exit(130)
    if not result.front:
        raise typer.Exit(1)


def _shown(*, quiet: bool, as_json: bool) -> Callback | None:
    """Return what tells of every trial; a line that is written over is of no use in a file."""
    if quiet:
        return None
    if as_json:
        return JsonLines()
    return Progress() if sys.stderr.isatty() else Log()


def _result(
    study: StudyFile, workers: int | None, storage: str | None, show: Callback | None, *, allow_change: bool
) -> Result:
    count = workers or study.workers
    with study.place.opened(count) as executor:
        return _driven(study, executor, count, storage, show, allow_change=allow_change)


def _driven(
    study: StudyFile,
    executor: object,
    workers: int | None,
    storage: str | None,
    show: Callback | None,
    *,
    allow_change: bool,
) -> Result:
    return execution.drive(
        study.objective,
        study.problem,
        StudyOptions(
            budget=study.budget,
            strategy=study.strategy,
            seed=study.seed,
            storage=study.storage if storage is None else location(storage),
            name=study.name,
            allow_change=allow_change,
        ),
        RunOptions(
            executor=executor,
            workers=workers,
            on_error=study.on_error,
            timeout=study.timeout,
            max_retries=study.max_retries,
            grace=study.grace,
            checkpoints=study.checkpoints,
            keep_checkpoints=study.keep_checkpoints,
            callbacks=() if show is None else show,
            progress=False,
        ),
    )


def _in_options(message: str) -> str:
    """Return a message of the library in the words of the command: options in place of arguments."""
    for argument, option in _OPTION_OF_ARGUMENT.items():
        message = message.replace(argument, option)
    return message


def _as_json(result: Result) -> dict[str, Any]:
    """Return the last line for programs."""
    advised = result.recommendation
    found = {} if result.study is None else state(Ledger(result.study.problem, result.history, result.study.limit))
    return {
        "event": "end",
        "trials": len(result.history),
        **found,
        "x": result.x,
        "value": result.value,
        "recommendation": None if advised is None else {"x": advised.x, "mean": advised.mean, "std": advised.std},
        "interrupted": result.interrupted,
        "warnings": list(result.warnings),
    }


def _print_result(result: Result) -> None:
    for warning in result.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if result.x is None and result.front:
        print(f"{len(result.front)} trials on the front:")
        for trial in result.front:
            print(f"  {point(trial.outcomes)} at {point(trial.x)} (trial {trial.number})")
    elif result.x is None:
        words = "Nothing was completed at the target."
        if result.study is not None and result.study.problem.subject_to:
            words = f"There is no best: {nothing_best(result.study.problem, result.history)}."
        print(words)
    else:
        print(f"best at the target: {result.value:.6g} at {point(result.x)}")
    advised = result.recommendation
    if isinstance(advised, list):
        unverified = [one for one in advised if not one.verified]
        for one in unverified:
            print(f"recommended, not run at the target: {point(one.x)}: {one.words}")
    elif advised is not None:
        print(f"recommended: {point(advised.x)}: {advised.words}")
    count = len(result.history)
    print(f"{count} trial{'' if count == 1 else 's'}, spent {_spent(result)}")


def _spent(result: Result) -> str:
    study = result.study
    if study is None:
        return readable(result.spent)
    return Ledger(study.problem, result.history, study.limit).spent_in_words
