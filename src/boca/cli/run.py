"""`boca run`: run the study of a file."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from boca.accounting.ledger import Ledger
from boca.domain.errors import BocaError, Terminated
from boca.domain.words import point, readable
from boca.execution import run as execution
from boca.execution.callbacks import Log, Progress
from boca.execution.options import RunOptions, StudyOptions
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
            help="Permit a larger budget than the stored one, and new strategy fields of this version.",
        ),
    ] = False,
) -> None:
    """Run the study of a file until its budget is spent; resume it after any interruption."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    status = 0
    try:
        result = _result(load(file), workers, storage, allow_change=allow_change)
    except Terminated as stopped:
        if not isinstance(stopped.result, Result):
            raise
        result, status = stopped.result, int(str(stopped.code))
    except BocaError as error:
        error.args = tuple(_in_options(str(argument)) for argument in error.args)
        raise
    _print_result(result)
    if status:
        raise typer.Exit(status)
    if result.interrupted:
        raise typer.Exit(130)
    if not result.front:
        raise typer.Exit(1)


def _result(study: StudyFile, workers: int | None, storage: str | None, *, allow_change: bool) -> Result:
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
            executor=workers or study.workers,
            timeout=study.timeout,
            max_retries=study.max_retries,
            grace=study.grace,
            callbacks=Progress() if sys.stderr.isatty() else Log(),
        ),
    )


def _in_options(message: str) -> str:
    """Return a message of the library in the words of the command: options in place of arguments."""
    for argument, option in _OPTION_OF_ARGUMENT.items():
        message = message.replace(argument, option)
    return message


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
