"""What recording needs of the pinned commit beyond the public names.  It never changes: only that commit imports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

import boca
from boca.recommendation import recommend
from boca.storage import Lease, Memory, schema
from boca.storage.owner import Owner
from boca.strategies import Theorem

# Strategies whose recommendation is compared: not MFSKO, whose own model shall give it from now on.
RECOMMENDS = ("Boca", "Boca.paper", "GPUCB", "GPEI", "MFGPUCB", "RandomSearch")


def strategy(name: str, options: Mapping[str, Any]) -> Any:
    """Return a strategy by its name and options; `surrogate` and `theorem` are options of their own."""
    given = dict(options)
    if "surrogate" in given:
        given["surrogate"] = boca.Surrogate(**given["surrogate"])
    if "theorem" in given:
        given["theorem"] = Theorem(**given["theorem"])
    return boca.Boca.paper(**given) if name == "Boca.paper" else getattr(boca, name)(**given)


class Watched:
    """A strategy, and every call of `suggest` with its arguments and its answer."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[tuple[boca.History, boca.Budget, boca.Suggestion]] = []

    def check(self, problem: boca.Problem) -> None:
        if hasattr(self.inner, "check"):
            self.inner.check(problem)

    def suggest(
        self, problem: boca.Problem, history: boca.History, budget: boca.Budget, rng: np.random.Generator
    ) -> boca.Suggestion:
        suggestion = self.inner.suggest(problem, history, budget, rng)
        self.calls.append((history, budget, suggestion))
        return suggestion


class Scripted(Memory):
    """A study in memory whose choices take the seconds of a script, not those of the clock."""

    def claim(self, draft: boca.Trial, **how: Any) -> boca.Trial | None:
        return super().claim(replace(draft, overhead=0.125 + 0.03125 * (draft.number % 5)), **how)


def study(case: Any) -> tuple[boca.Optimizer, Watched]:
    """Return a new study of a case, whose strategy is watched."""
    watched = Watched(strategy(*case.strategy))
    optimizer = boca.Optimizer(case.problem, budget=case.budget, strategy=watched, seed=case.seed)
    optimizer.storage = Scripted()
    return optimizer, watched


def lose(optimizer: boca.Optimizer, trial: boca.Trial) -> None:
    """Let the worker of a trial die, and the same driver begin another attempt."""
    optimizer.storage.again(replace(trial, overhead=trial.overhead + 0.5), Lease())


def retaken(url: str, case: Any, name: str) -> None:
    """Hand out a trial under a lease of a process elsewhere, and give it another attempt there."""
    opened = boca.Optimizer(
        case.problem, budget=case.budget, strategy=strategy(*case.strategy), seed=case.seed, storage=url, name=name
    )
    lease = Lease(owner=Owner("elsewhere/boot/process", 4321, "1"), driver="driver", seconds=60.0)
    trial = opened.ask(lease=lease)
    opened.storage.again(replace(trial, overhead=trial.overhead + 0.5), lease)
    opened.storage.close()


def definitions() -> dict[str, list[str]]:
    """Return the statements that make the tables, by the name of the database that they are for."""
    dialects = {"sqlite": sqlite.dialect(), "postgresql": postgresql.dialect()}
    found = {}
    for name, dialect in dialects.items():
        tables = schema.metadata.sorted_tables
        made = [CreateTable(t) for t in tables] + [CreateIndex(i) for t in tables for i in t.indexes]
        found[name] = [str(statement.compile(dialect=dialect)).strip() for statement in made]
    return found


def fields(trial: boca.Trial) -> dict[str, Any]:
    return asdict(trial)


def recommendation(problem: boca.Problem, history: boca.History, chooser: Any) -> dict[str, Any] | None:
    found = recommend(problem, history, chooser)
    return None if found is None else asdict(found)
