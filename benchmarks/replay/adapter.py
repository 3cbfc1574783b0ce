"""What comparing needs of the working tree.  A change of names or records in `boca` changes this file and no other.

It takes what the pinned commit stored, in the words of that commit, and hands it to today's strategies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import boca
from boca.accounting.ledger import Ledger
from boca.domain.reasons import Reasons
from boca.strategies import Theorem
from boca.study.recommendation import recommend
from boca.study.spec import off_values


def strategy(name: str, options: Mapping[str, Any]) -> Any:
    """Return a strategy by the name and the options that it has in the pinned commit."""
    given = dict(options)
    if "surrogate" in given:
        given["surrogate"] = boca.Surrogate(**(off_values(boca.Surrogate) | given["surrogate"]))
    elif name == "Boca":
        given["surrogate"] = boca.Surrogate(**off_values(boca.Surrogate))
    if name == "Boca":
        given = off_values(boca.Boca) | given
    if "theorem" in given:
        given["theorem"] = Theorem(**given["theorem"])
    if _SWITCHES & given.keys():
        given |= _in_turn({key: given.pop(key) for key in _SWITCHES & given.keys()})
    return boca.Boca.paper(**given) if name == "Boca.paper" else getattr(boca, name)(**given)


_LATER_KEYS = {"at_bound"}  # of `why`, which the pinned commit does not have
_SWITCHES = {"learn_maximum", "improve_at_target", "improve_on_draws", "doubt_fidelities"}


def _in_turn(switches: Mapping[str, bool]) -> dict[str, Any]:
    """Return the aims and the turns at the target that four switches of the pinned commit stand for."""
    turns = ["log_ei", "aim", "log_noisy_ei", "ucb_alone"]
    if not switches.get("improve_on_draws", True):
        turns[2] = "log_ei"
    if not switches.get("improve_at_target", True):
        turns[0] = turns[2] = "aim"
    if not switches.get("doubt_fidelities", True):
        turns[3] = "aim"
    return {"aims": ("ucb", "max_value") if switches.get("learn_maximum", True) else ("ucb",), "target_turns": turns}


def history(trials: Sequence[Mapping[str, Any]]) -> boca.History:
    """Return a history of the stored fields of its trials, each of which had one value in the pinned commit."""
    return boca.History([_trial(stored) for stored in trials])


def _trial(stored: Mapping[str, Any]) -> boca.Trial:
    own = {name: value for name, value in stored.items() if name not in ("z", "why", "value", "noise")}
    trial = boca.Trial(**own, planned=stored["z"], reasons=Reasons.of(stored["why"]))
    return trial if stored["value"] is None else trial.completed(stored["value"], noise=stored["noise"])


def suggest(
    chooser: Any, problem: boca.Problem, past: boca.History, budget: Mapping[str, float], rng: np.random.Generator
) -> dict[str, Any]:
    """Return x, z and why of a decision; `budget` has total, start, spent and reserved."""
    suggestion = chooser.suggest(problem, past, boca.Budget(**budget), rng)
    why = {key: value for key, value in suggestion.why.items() if key not in _LATER_KEYS}
    return {"x": suggestion.x, "z": suggestion.z, "why": why}


def budget(problem: boca.Problem, past: boca.History, limit: Any) -> dict[str, float]:
    """Return total, start, spent and reserved after this history, as today's accounts have them."""
    given = boca.Optimizer(problem, budget=limit, strategy=boca.RandomSearch(), seed=0).limit
    return asdict(Ledger(problem, past, given).budget)


def recommendation(problem: boca.Problem, past: boca.History, chooser: Any) -> dict[str, Any] | None:
    """Return x, mean, std and verified of the point to use; None before the first result."""
    found = recommend(problem, past, chooser)
    return None if found is None else asdict(found)
