"""The command `boca` and its subcommands.

A subcommand is a function in a module beside this one, or an app of its own if several belong together.  It raises what
the library raises.  Only `main` turns an error into a sentence and an exit status: 0 for success, 1 if nothing was
found, 2 for a mistake of the user or a storage that fails, 130 if the run was interrupted.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import boca
from boca.bench.command import app as bench
from boca.cli import look, manage, study
from boca.cli.mcp import mcp
from boca.cli.run import run
from boca.cli.show import show
from boca.cli.status import status
from boca.domain.errors import BocaError, ObjectiveFailed
from boca.domain.words import printable
from boca.execution.executors.remote import RemoteTraceback
from boca.problems import data

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

_data = typer.Typer(no_args_is_help=True, help="Download the measured data of the real problems.")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its status."""
    _make_streams_usable()
    try:
        try:
            app(args=arguments, prog_name="boca")
        finally:
            sys.stdout.flush()  # a full disk is an error here, and not after everything
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except ObjectiveFailed as error:
        if isinstance(error.__cause__, RemoteTraceback):
            print(printable(error.__cause__.traceback), file=sys.stderr)
        _print_error(error)
        raise SystemExit(1) from None
    except (BocaError, OSError, UnicodeError, MemoryError) as error:
        _print_error(error)
        raise SystemExit(2) from None


def _print_error(error: BaseException) -> None:
    with contextlib.suppress(OSError):  # nobody listens
        print(f"error: {printable(str(error) or repr(error))}", file=sys.stderr)


def _make_streams_usable() -> None:
    """Give the command streams that take any character, also where it was started without them."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, or a service without a terminal
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"boca {boca.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", metavar="", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Optimize something expensive, spending most of the budget on cheap approximations.

    boca init writes a study file, boca check looks whether it would run, boca run runs or resumes it.

    boca status says who works on a study; boca show, best and export read what is stored, also during a run.
    """


@_data.command()
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(data.names())}.")]) -> None:
    """Download a data set unless it is here, check it, and print its path."""
    print(data.fetch(name))


for _command in (
    study.init,
    study.check,
    run,
    show,
    status,
    look.best,
    look.export,
    look.backup,
    look.dashboard,
    look.report,
    mcp,
    manage.retry,
    manage.delete,
    study.schema,
):
    app.command()(_command)
app.add_typer(bench, name="bench")
app.add_typer(_data, name="data")
