"""The command `boca`.

A command is a function here, or in an app of its own where several belong together.  It raises what the library raises:
`main` is the one place where an error of the user's becomes a sentence and an exit status.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import boca
from boca.bench.command import app as bench
from boca.errors import BocaError
from boca.problems import data

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
app.add_typer(bench, name="bench")

_data = typer.Typer(no_args_is_help=True, help="The measured data behind the real problems.")
app.add_typer(_data, name="data")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its status."""
    try:
        app(args=arguments, prog_name="boca")
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
    """Multi-fidelity Bayesian optimisation with continuous approximations."""


@_data.command()
def fetch(name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(data.names())}.")]) -> None:
    """Download a data set, unless it is here already, check it, and print where it is."""
    print(data.fetch(name))
