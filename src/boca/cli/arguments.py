"""Arguments that more than one subcommand has."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

Url: TypeAlias = Annotated[
    str, typer.Argument(metavar="URL", help="The storage: a file, sqlite:///study.db, or postgresql+psycopg://...")
]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The name of a study.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", metavar="", help="Print JSON, for programs.")]
