"""A database of the pinned commit, with what that commit suggests next: the fixture `tests/study/storage/schema1`.

    python -m benchmarks.replay.schema1 --out tests/study/storage/schema1

`study.db.xz` is the file of SQLite, `postgres.sql.xz` the same rows for PostgreSQL with the tables as that commit made
them, and `expected.json.xz` what it reads in every study and what it suggests next.  Only the commit runs `main`; tests
take the studies from here.
"""

from __future__ import annotations

import argparse
import json
import lzma
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boca as library
from benchmarks.replay import cases, recorded
from benchmarks.replay.cases import Case, boca, paper, plain
from boca import Float, Int, Problem, Space, seconds, targets

NEXT = 3  # suggestions that are asked for at once
TABLES = ("boca_meta", "boca_studies", "boca_trials", "boca_queue")


@dataclass(frozen=True)
class Stored:
    """A study in the database: a case whose trials are told until a number of steps is done."""

    case: Case
    running: int = 0
    """Trials that are left running."""
    waiting: tuple[tuple[dict[str, Any], dict[str, Any] | None], ...] = field(default=())
    """Points that are left in the queue."""
    is_retaken: bool = False
    """Whether one more trial is running under a lease, in its second attempt."""
    first_budget: Any = None
    """The budget that the study was made with, if it was widened later."""

    @property
    def name(self) -> str:
        return self.case.name


_CHOICES = {"k": 4, "l": 100, "kind": "two", "w": 0.25}
_QUICK = {"n": 0.25}
_SWITCHES = {"learn_maximum": False, "improve_at_target": True, "improve_on_draws": False, "doubt_fidelities": False}
_ODD = {"learn_maximum": True, "improve_at_target": False, "improve_on_draws": True, "doubt_fidelities": True}
_SURROGATE = {"kernel": "se", "mean": "median", "priors": False, "refit_every": 4, "starts": 2, "guard": None}
_TABLE = Problem(Space(x=Float(0.0, 1.0)), Space(n=Int(1, 8, log=True), m=Float(0.0, 1.0)), cost=lambda z: z["n"] + 1.0)

STUDIES: tuple[Stored, ...] = (
    Stored(plain("finished", cases.NEAR, boca(), budget=targets(5))),
    Stored(plain("finished paper", cases.NEAR, paper(), budget=targets(3))),
    Stored(plain("finished seconds", cases.MEASURED, boca(), budget=seconds(25), took=cases.size)),
    Stored(
        plain("boca", cases.ONE, boca(), budget=targets(8), imported=3, steps=10, fails=lambda k: k in (4, 8)),
        running=2,
        waiting=(({"a": 0.5, "b": 1.0}, _QUICK), ({"a": 0.25, "b": 2.0}, None)),
    ),
    Stored(plain("leased", cases.NEAR, boca(), budget=targets(12), steps=8), running=1, is_retaken=True),
    Stored(plain("seconds", cases.MEASURED, boca(), budget=seconds(60), took=cases.size, steps=9), running=1),
    Stored(plain("widened", cases.NEAR, boca(), budget=targets(12), steps=9), first_budget=targets(6)),
    Stored(plain("no budget", cases.NONE, boca(), budget=None, steps=10, fails=lambda k: k == 3), running=1),
    Stored(plain("three fidelities", cases.THREE, boca(), budget=targets(6), imported=8, steps=6), running=1),
    Stored(plain("target inside", cases.INSIDE, boca(), budget=targets(9), steps=8), running=1),
    Stored(
        plain("choices", cases.KINDS, boca(), budget=targets(9), steps=9, tells_noise=True, noise=lambda z: 0.1),
        running=1,
        waiting=((_CHOICES, {"n": 0.5}),),
    ),
    Stored(plain("measured", cases.MIXED, boca(), budget=targets(9), took=cases.mode, imported=3, steps=8), running=1),
    Stored(plain("cost told", cases.ONE, boca(), budget=5.0, steps=9, charged=lambda z: 1.2 * cases.quadratic(z))),
    Stored(plain("known", cases.ONE, boca(hyperparameters={**cases.KNOWN, "h_z": [0.8]}), steps=9), running=1),
    Stored(plain("switches", cases.NEAR, boca(**_SWITCHES), budget=targets(10), steps=9), running=1),
    Stored(plain("odd switches", cases.NEAR, boca(**_ODD), budget=targets(10), steps=9), running=1),
    Stored(plain("all off", cases.NEAR, boca(**cases.OFF), budget=targets(10), steps=9)),
    Stored(plain("surrogate", cases.ONE, boca(surrogate=_SURROGATE), budget=targets(6), steps=9), running=1),
    Stored(plain("kernel", cases.ONE, boca(surrogate={"fidelity_kernel": cases.close}), budget=targets(6), steps=9)),
    Stored(plain("theorem", cases.ONE, boca(theorem={"delta": 0.2}), budget=targets(6), steps=9)),
    Stored(plain("paper", cases.ONE, paper(), budget=targets(4), steps=9, fails=lambda k: k == 2), running=1),
    Stored(plain("paper theorem", cases.TWO, paper(maximizer="sobol", theorem={}), steps=9), running=1),
    Stored(plain("gp-ucb", cases.ONE, ("GPUCB", {"maximizer": "sobol"}), budget=targets(14), steps=8), running=1),
    Stored(plain("gp-ei", cases.SOURCES, ("GPEI", {"maximizer": "sobol"}), budget=targets(14), steps=8), running=1),
    Stored(
        plain("mf-gp-ucb", _TABLE, ("MFGPUCB", {"maximizer": "sobol", "fidelities": [{"n": 2, "m": 0.5}]}), steps=9),
        running=1,
    ),
    Stored(plain("mf-sko", cases.SOURCES, ("MFSKO", {"maximizer": "sobol"}), budget=targets(9), steps=9), running=1),
    Stored(
        plain(
            "mf-sko terms",
            cases.ONE,
            ("MFSKO", {"maximizer": "sobol", "hyperparameters": cases.TERMS}),
            imported=4,
            steps=6,
        )
    ),
    Stored(plain("random", cases.FEW, ("RandomSearch", {}), budget=targets(9), steps=6), running=2),
)


def opened(stored: Stored, url: str, strategy: Any) -> library.Optimizer:
    """Go on with a study of the fixture."""
    case = stored.case
    return library.Optimizer(
        case.problem, budget=case.budget, strategy=strategy, seed=case.seed, storage=url, name=stored.name
    )


def read(optimizer: library.Optimizer) -> dict[str, Any]:
    """Return what there is to see of a study, as JSON: states, the best, what was spent, what to use."""
    history, best, found = optimizer.history, optimizer.best, optimizer.recommend()
    budget = optimizer.budget
    seen = {
        "states": [t.state for t in history],
        "phases": [t.phase for t in history],
        "values": [t.value for t in history],
        "costs": [t.cost for t in history],
        "failures": [t.reason for t in history],
        "best": None if best is None else best.number,
        "spent": optimizer.spent,
        "budget": [budget.total, budget.start, budget.spent, budget.reserved],
        "recommended": None if found is None else {"x": found.x, "mean": found.mean, "std": found.std},
        "warnings": len(optimizer.warnings),
    }
    return dict(json.loads(json.dumps(seen)))


def suggestions(stored: Stored, optimizer: library.Optimizer) -> list[dict[str, Any]]:
    """Ask, and return x, z and why of what is handed out; money in seconds depends on the clock after one."""
    asked = optimizer.ask(1 if "seconds" in stored.name else NEXT)
    return [dict(json.loads(json.dumps({"x": t.x, "z": t.z, "why": t.why}))) for t in asked]


# Making it ------------------------------------------------------------------------------------------------------------


def make(stored: Stored, url: str) -> None:
    """Play a study in the database."""
    from benchmarks.replay import pinned, record

    case = stored.case
    given = {"strategy": pinned.strategy(*case.strategy), "seed": case.seed, "storage": url, "name": stored.name}
    optimizer = library.Optimizer(case.problem, budget=stored.first_budget or case.budget, **given)
    record.play(case, optimizer)
    optimizer.storage.close()
    if stored.first_budget is not None:
        optimizer = library.Optimizer(case.problem, budget=case.budget, allow_change=True, **given)
        optimizer.storage.close()
    optimizer = opened(stored, url, given["strategy"])
    if stored.running:
        optimizer.ask(stored.running)
    for x, z in stored.waiting:
        optimizer.enqueue(x, z)
    optimizer.storage.close()
    if stored.is_retaken:
        pinned.retaken(url, case, stored.name)


def as_postgres(file: Path, definitions: list[str], tables: Sequence[str] = TABLES) -> str:
    """Return the rows of the file as statements for PostgreSQL, after those that make its tables."""
    statements = list(definitions)
    with closing(sqlite3.connect(file)) as connection:
        for table in tables:
            rows = connection.execute(f"SELECT * FROM {table}")
            names = ", ".join(f'"{column[0]}"' for column in rows.description)
            statements += [f"INSERT INTO {table} ({names}) VALUES ({', '.join(map(_literal, row))})" for row in rows]
        for table in ("boca_studies", "boca_queue"):
            last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)).fetchone()[0]
            statements.append(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {last})")
    return ";\n".join(statements) + ";\n"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def main() -> None:
    from benchmarks.replay import pinned

    parser = argparse.ArgumentParser(prog="python -m benchmarks.replay.schema1", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        file, copy = Path(directory, "study.db"), Path(directory, "copy.db")
        for stored in STUDIES:
            make(stored, f"sqlite:///{file}")
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA journal_mode = DELETE")  # one file, without a log beside it
        shutil.copy(file, copy)
        expected = {}
        for stored in STUDIES:
            optimizer = opened(stored, f"sqlite:///{copy}", pinned.strategy(*stored.case.strategy))
            expected[stored.name] = {"seen": read(optimizer), "next": suggestions(stored, optimizer)}
            optimizer.storage.close()
        (out / "study.db.xz").write_bytes(lzma.compress(file.read_bytes(), preset=9))
        definitions = pinned.definitions()
        dump = as_postgres(file, definitions["postgresql"])
        (out / "postgres.sql.xz").write_bytes(lzma.compress(dump.encode(), preset=9))
        recorded.save(out / "expected.json.xz", expected)


if __name__ == "__main__":
    main()
