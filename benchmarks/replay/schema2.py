"""A database of version 2, with what the commit that made it suggests next: the fixture `tests/study/storage/schema2`.

    python -m benchmarks.replay.schema2 --out tests/study/storage/schema2

The files are those of `schema1.py`.  It runs with the sources of a commit whose tables have version 2, and refuses
others; tests take the studies from here.
"""

from __future__ import annotations

import argparse
import lzma
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

import boca as library
from benchmarks.replay import adapter, cases, recorded
from benchmarks.replay.cases import boca, paper, plain
from benchmarks.replay.schema1 import Stored, as_postgres, opened, read, suggestions
from boca import targets

VERSION = 2

STUDIES: tuple[Stored, ...] = (
    Stored(plain("finished", cases.NEAR, boca(), budget=targets(4))),
    Stored(
        plain("boca", cases.ONE, boca(), budget=targets(8), imported=3, steps=9, fails=lambda k: k in (4, 8)),
        running=2,
        waiting=(({"a": 0.5, "b": 1.0}, {"n": 0.25}), ({"a": 0.25, "b": 2.0}, None)),
    ),
    Stored(plain("no budget", cases.NONE, boca(), budget=None, steps=10, fails=lambda k: k == 3), running=1),
    Stored(plain("choices", cases.KINDS, boca(), budget=targets(9), steps=9, tells_noise=True), running=1),
    Stored(plain("sources", cases.SOURCES, boca(aims=("ucb",)), budget=targets(14), steps=8), running=1),
    Stored(plain("paper", cases.ONE, paper(), budget=targets(4), steps=9, fails=lambda k: k == 2), running=1),
    Stored(plain("random", cases.FEW, ("RandomSearch", {}), budget=targets(9), steps=6), running=2),
)


def make(stored: Stored, url: str) -> None:
    """Play a study in the database."""
    case = stored.case
    rng = np.random.default_rng(case.seed)
    optimizer = opened(stored, url, adapter.strategy(*case.strategy))
    space, fidelity = case.problem.space, case.problem.fidelity
    for u in rng.random((case.imported, len(space))):
        x, z = space.from_unit(space.snap(u[None, :])[0]), case.problem.target
        optimizer.add(x, z, case.value(x, z), case.problem.cost(z))
    for k in range(case.steps):
        trial = optimizer.ask()
        if trial is None:
            break
        if case.fails(k):
            optimizer.fail(trial, f"failure {k}", seconds=0.5)
        else:
            noise = 0.1 if case.tells_noise else None
            optimizer.tell(trial, case.value(trial.x, trial.z), seconds=1.0, noise=noise, output=f"line {k}")
    if stored.running:
        optimizer.ask(stored.running)
    for x, z in stored.waiting:
        optimizer.enqueue(x, z if z is not None or not fidelity else None)
    optimizer.storage.close()


def write(studies: Sequence[Stored], version: int, make: Callable[[Stored, str], None] = make) -> None:
    """Make the files of the studies with the sources that run, whose tables must have this version."""
    from sqlalchemy.dialects import postgresql
    from sqlalchemy.schema import CreateIndex, CreateTable

    from boca.study.storage import schema

    parser = argparse.ArgumentParser(description=f"Make a database of version {version}.")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    out = parser.parse_args().out
    if version != schema.VERSION:
        parser.error(f"the tables of {library.__file__} have version {schema.VERSION}, not {version}")
    out.mkdir(parents=True, exist_ok=True)
    tables = schema.metadata.sorted_tables
    made = [CreateTable(t) for t in tables] + [CreateIndex(i) for t in tables for i in t.indexes]
    definitions = [str(statement.compile(dialect=postgresql.dialect())).strip() for statement in made]
    with tempfile.TemporaryDirectory() as directory:
        file, copy = Path(directory, "study.db"), Path(directory, "copy.db")
        for stored in studies:
            make(stored, f"sqlite:///{file}")
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        shutil.copy(file, copy)
        expected = {}
        for stored in studies:
            optimizer = opened(stored, f"sqlite:///{copy}", adapter.strategy(*stored.case.strategy))
            expected[stored.name] = {"seen": read(optimizer), "next": suggestions(stored, optimizer)}
            optimizer.storage.close()
        (out / "study.db.xz").write_bytes(lzma.compress(file.read_bytes(), preset=9))
        dump = as_postgres(file, definitions, [t.name for t in tables])
        (out / "postgres.sql.xz").write_bytes(lzma.compress(dump.encode(), preset=9))
        recorded.save(out / "expected.json.xz", expected)


if __name__ == "__main__":
    write(STUDIES, VERSION)
