"""What comparing needs of the working tree.  A change of names or records in `boca` changes this file and no other.

It takes what the pinned commit stored, in the words of that commit, and hands it to today's strategies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import boca
from boca.accounting.ledger import Books
from boca.strategies import Theorem
from boca.study.recommendation import recommend


def strategy(name: str, options: Mapping[str, Any]) -> Any:
    """Return a strategy by the name and the options that it has in the pinned commit."""
    given = dict(options)
    if "surrogate" in given:
        given["surrogate"] = boca.Surrogate(**given["surrogate"])
    if "theorem" in given:
        given["theorem"] = Theorem(**given["theorem"])
    return boca.Boca.paper(**given) if name == "Boca.paper" else getattr(boca, name)(**given)


def history(trials: Sequence[Mapping[str, Any]]) -> boca.History:
    """Return a history of the stored fields of its trials."""
    return boca.History([boca.Trial(**trial) for trial in trials])


def suggest(
    chooser: Any, problem: boca.Problem, past: boca.History, budget: Mapping[str, float], rng: np.random.Generator
) -> dict[str, Any]:
    """Return x, z and why of a decision; `budget` has total, start, spent and reserved."""
    suggestion = chooser.suggest(problem, past, boca.Budget(**budget), rng)
    return {"x": suggestion.x, "z": suggestion.z, "why": suggestion.why}


def budget(problem: boca.Problem, past: boca.History, capital: Any) -> dict[str, float]:
    """Return total, start, spent and reserved after this history, as today's accounts have them."""
    given = boca.Optimizer(problem, budget=capital, strategy=boca.RandomSearch(), seed=0).capital
    return asdict(Books(problem, past, given).budget)


def recommendation(problem: boca.Problem, past: boca.History, chooser: Any) -> dict[str, Any] | None:
    """Return x, mean, std and verified of the point to use; None before the first result."""
    found = recommend(problem, past, chooser)
    return None if found is None else asdict(found)
