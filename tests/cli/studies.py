"""Studies on which the command is tried, and ways to call it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing

from typer.testing import CliRunner

import boca
from boca.cli import app

STUDY = """
name = "bowl"
objective = "objective:bowl"
cost = { n = 1 }
budget = { targets = 4 }
seed = 3
strategy = "random"
[space]
a = { type = "float", low = 0, high = 1 }
kind = { type = "choice", choices = ["round", "flat"] }
[fidelity]
n = { type = "int", low = 1, high = 10 }
"""

OBJECTIVE = """
import os, time
def bowl(x, z):
    time.sleep(float(os.environ.get("BOWL_SLEEP", "0")))
    if os.environ.get("BOWL_FAILS"):
        raise ValueError("it broke")
    print("at", x["a"])
    return -(x["a"] - 0.3) ** 2 - (x["kind"] == "flat") - 0.01 * (10 - z["n"])
"""

SPEC = "UPDATE boca_studies SET spec = {} WHERE name = 'bowl'"


def command(*arguments, **environment):
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "boca", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def stored():
    from boca.studyfile import load

    study = load("study.toml")
    return boca.Optimizer(
        study.problem, budget=study.budget, strategy=study.strategy, seed=3, storage=study.storage, name=study.name
    )


def said(*arguments, answer=None):
    """Return exit status and output of a command run in this process."""
    try:
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=answer, catch_exceptions=False)
    except boca.BocaError as error:
        return 2, str(error)
    return result.exit_code, result.stdout


def damage(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement)
        connection.commit()
