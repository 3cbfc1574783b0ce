"""`boca mcp`: studies for agents."""

from __future__ import annotations

from typing import Annotated

import typer


def mcp(
    places: Annotated[
        list[str],
        typer.Argument(metavar="STUDY.toml|URL", help="Study files, or storages, all studies of which are offered."),
    ],
    write: Annotated[bool, typer.Option("--write", metavar="", help="Let the agent change studies.")] = False,
) -> None:
    """Offer studies to an agent over the Model Context Protocol (stdin and stdout); read-only without --write."""
    from boca.agents import serve

    serve(places, write=write)
