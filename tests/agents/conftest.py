"""A folder with a study file, and a client of the SDK that starts `boca mcp` in a process of its own."""

from __future__ import annotations

import asyncio
import os
import sys

import pytest

from cli.studies import OBJECTIVE, STUDY

pytest.importorskip("mcp", reason="the extra mcp is not installed")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "objective.py").write_text(OBJECTIVE + "print('importing the objective')\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def talk(folder):
    """Run a conversation with a server that was started as an agent starts it."""

    def run(conversation, *arguments):
        from mcp import Client, StdioServerParameters, stdio_client

        server = StdioServerParameters(
            command=sys.executable, args=["-m", "boca", "mcp", *arguments], cwd=str(folder), env=dict(os.environ)
        )

        async def talked():
            async with Client(stdio_client(server)) as client:
                return await conversation(client)

        return asyncio.run(asyncio.wait_for(talked(), 60))

    return run
