"""The server: each tool is one thing that Python can do with a study, with the same refusals.

Tools that change a study exist only if the server was started with `--write`.  Calls are served one at a time.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from boca.agents.studies import Studies
from boca.domain.errors import BocaError, InvalidInput

if TYPE_CHECKING:
    from mcp.server import MCPServer

_ABOUT = """Multi-fidelity Bayesian optimization. A study searches for the x that is best at the target fidelity z, and
spends most of its budget on cheaper fidelities. "Best" is always at the target.
Every trial says in `why` how it was chosen; the sentence is in `reason`.
"""
_READ_ONLY = "This server is read-only: `boca mcp --write` has ask, tell, fail, enqueue and add_result too."
_WRITING = """To run an experiment: ask, evaluate x at the fidelity z of the trial, tell the value (or fail), and repeat
until ask returns no trial. Never make a value up: if there is none, call fail."""


def serve(places: Sequence[str], *, write: bool = False) -> None:
    """Offer the studies of databases and study files to the client at standard input and output, until it leaves.

    Args:
        places: study files (`.toml`), SQLite files, or URLs of databases.
        write: whether the client may change studies.
    """
    if not places:
        raise InvalidInput("No study is named. Give a database or a study file: boca mcp study.db.")
    studies = Studies(places)
    try:
        made(studies, write=write).run()
    finally:
        studies.close()


def made(studies: Studies, *, write: bool) -> MCPServer[Any]:
    """Return the server with its tools."""
    try:
        from mcp.server import MCPServer
        from mcp_types import ToolAnnotations

        from boca.agents.tools import reading, writing
    except ImportError as error:
        raise BocaError("The server needs the package mcp. Type: pip install 'boca[mcp]'") from error
    import boca

    about = f"{_ABOUT}{_WRITING if write else _READ_ONLY}"
    server: MCPServer[Any] = MCPServer("boca", instructions=about, version=boca.__version__, log_level="WARNING")
    lock = threading.Lock()
    kinds = [(True, reading(studies)), *([(False, writing(studies))] if write else [])]
    for reads, tools in kinds:
        for tool in tools:
            hints = ToolAnnotations(read_only_hint=reads, destructive_hint=False, open_world_hint=False)
            server.add_tool(_refusing(tool, lock), annotations=hints)
    return server


def _refusing(tool: Callable[..., Any], lock: threading.Lock) -> Callable[..., Any]:
    """Return a tool that is called once at a time and says what is wrong with a call in the words of the library."""
    from mcp.server.mcpserver.exceptions import ToolError

    @functools.wraps(tool)
    def called(*given: Any, **named: Any) -> Any:
        with lock:
            try:
                return tool(*given, **named)
            except BocaError as error:
                raise ToolError(in_tools(str(error))) from error

    return called


def in_tools(message: str) -> str:
    """Return a message of the library in the words of the tools: a method of the optimizer is a tool."""
    message = message.replace("opt.add", "add_result").replace("allow_change=True", "boca run --allow-change")
    return re.sub(r"\bopt\.(\w+)", r"\1", message)
